"""Numbers that are logged during training, written as people read them."""

from collections.abc import Mapping

from pytorch_lightning.callbacks import ModelCheckpoint

SHARES = ("dev/", "test/", "train/error")  # logged as 0..1, shown in per cent


def shown(name: str, value: float) -> str:
    """Return a logged value as text: ("dev/score", 0.8285) becomes "dev score 82.85".

    Of names that begin with "train/" only the rest is shown, as in "objective 33,994".
    """
    plain = name.removeprefix("train/").replace("/", " ").replace("_", " ")
    if name.startswith(SHARES):
        return f"{plain} {100 * value:.2f}"
    return f"{plain} {value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{plain} {value:.4g}"


def all_shown(values: Mapping[str, float]) -> str:
    """Return all logged values as one line of text, scores first: where the line is cut off, they are still seen."""
    names = sorted(values, key=lambda name: not name.startswith(SHARES))
    return ", ".join(shown(name, float(values[name])) for name in names)


def best_score(checkpoints: ModelCheckpoint) -> str:
    """Return the name and the value of the score by which the best epoch was chosen."""
    assert checkpoints.monitor is not None
    assert checkpoints.best_model_score is not None
    return shown(checkpoints.monitor, float(checkpoints.best_model_score))
