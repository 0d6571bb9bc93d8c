"""Numbers that are logged during training, written as people read them."""

from collections.abc import Mapping
from typing import Any

from pytorch_lightning.callbacks import ModelCheckpoint

SHARES = ("dev/", "test/", "train/error")  # logged as 0..1, shown in per cent


def shown(name: str, value: float, score: str = "score") -> str:
    """Return a logged value as text: ("dev/score", 0.8285, "F1") becomes "dev F1 82.85".

    Of names that begin with "train/" only the rest is shown, as in "objective 33,994". `score` is what "score" is.
    """
    plain = name.removeprefix("train/").replace("/", " ").replace("_", " ")
    plain = f"{plain.removesuffix('score')}{score}" if plain.endswith(" score") else plain
    if name.startswith(SHARES):
        return f"{plain} {100 * value:.2f}"
    return f"{plain} {value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{plain} {value:.4g}"


def all_shown(values: Mapping[str, float], score: str = "score") -> list[str]:
    """Return all logged values as texts, in the order of their importance: shares of 100 % first."""
    names = sorted(values, key=lambda name: not name.startswith(SHARES))
    return [shown(name, float(values[name]), score) for name in names]


def score_name(tagger: Any) -> str:
    """Return what the score of a tagger is: "F1", "F0.5", ... of segments, "accuracy" of labels without segments."""
    labels = getattr(tagger, "labels", None)
    if labels is None:
        return "score"
    return "accuracy" if labels.scheme == "none" else f"F{tagger.gamma:g}"


def best_score(checkpoints: ModelCheckpoint, score: str = "score") -> str:
    """Return the name and the value of the score by which the best epoch was chosen."""
    assert checkpoints.monitor is not None
    assert checkpoints.best_model_score is not None
    return shown(checkpoints.monitor, float(checkpoints.best_model_score), score)


def duration(seconds: float) -> str:
    """Return a time as people read it: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
