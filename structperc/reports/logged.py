"""What is logged during training, as people read it."""

from collections.abc import Mapping

from pytorch_lightning.callbacks import ModelCheckpoint

SHARES = ("dev/", "test/", "train/error")  # logged as 0..1, shown in per cent


def shown(name: str, value: float) -> str:
    """ "dev/score", 0.8285 -> "dev score 82.85"; of training the name alone: "objective 33,994"."""
    plain = name.removeprefix("train/").replace("/", " ").replace("_", " ")
    if name.startswith(SHARES):
        return f"{plain} {100 * value:.2f}"
    return f"{plain} {value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{plain} {value:.4g}"


def all_shown(values: Mapping[str, float]) -> str:
    """All of them, shares first: where there is little room, they are what is seen."""
    names = sorted(values, key=lambda name: not name.startswith(SHARES))
    return ", ".join(shown(name, float(values[name])) for name in names)


def best_score(checkpoints: ModelCheckpoint) -> str:
    """What made the best epoch the best."""
    assert checkpoints.monitor is not None
    assert checkpoints.best_model_score is not None
    return shown(checkpoints.monitor, float(checkpoints.best_model_score))
