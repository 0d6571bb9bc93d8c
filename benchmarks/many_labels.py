"""Hundreds of labels with one table of transitions: the averaged perceptron by `fit`, start of the program left out.

Words are drawn from a lexicon in which each has one label of 400, nine times of ten the one it has in a text; a type of
segments has two labels where they are IOB2.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LABELS, TOKENS, EPOCHS = 400, 30_000, 3
SMALL = 2_000  # tokens


def run(smoke: bool) -> list[dict]:
    """Return seconds of an epoch and peak memory, for labels of tokens and for segments."""
    tokens = SMALL if smoke else TOKENS
    rows = []
    for scheme in ["none"] if smoke else ["none", "IOB2"]:
        found = _fitted(scheme, tokens, (1,) if smoke else (1, EPOCHS))
        size = f"{tokens} tokens, {LABELS} labels, scheme {scheme}"
        for what, unit, ours, target in (
            ("averaged-perceptron epoch, many labels", "s/epoch", found["seconds"] / found["epochs"], "≤ 4 s/epoch"),
            ("averaged perceptron, many labels, peak memory", "MB", found["peak_memory_mb"], "≤ 2000 MB"),
        ):
            row = {"what": what, "size": size, "ours": ours, "unit": unit, "target": target}
            rows.append({**row, "peer": None, "ratio": None})
    return rows


def _fitted(scheme: str, tokens: int, trainings: Sequence[int]) -> dict[str, Any]:
    """The results of the last of trainings of so many epochs; those before have all compiled."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.txt").write_text("".join(_text(scheme, tokens)), encoding="utf-8")
        (folder / "fit.yaml").write_text(json.dumps(_configuration(folder, scheme)), encoding="utf-8")
        command = [sys.executable, "-m", "structperc", "fit", "-c", str(folder / "fit.yaml")]
        for epochs in trainings:
            options = ["--trainer.enable_progress_bar=false", f"--trainer.max_epochs={epochs}"]
            subprocess.run([*command, *options], check=True, capture_output=True)
        return json.loads((folder / "runs" / str(len(trainings)) / "results.json").read_text(encoding="utf-8"))


def _text(scheme: str, tokens: int) -> Iterator[str]:
    draw = random.Random(1)
    kinds = [f"T{i}" for i in range(LABELS // (1 if scheme == "none" else 2))]
    lexicon = {f"w{i}": draw.choice(kinds) for i in range(tokens // 4)}
    words = list(lexicon)
    for t in range(tokens):
        word = draw.choice(words)
        kind = lexicon[word] if draw.random() < 0.9 else draw.choice(kinds)
        own, inside = (kind, None) if scheme == "none" else (f"B-{kind}", f"I-{kind}")
        yield f"{word} {own}\n"
        if inside and draw.random() < 0.5:
            yield f"{draw.choice(words)} {inside}\n"
        if t % 20 == 19:
            yield "\n"


def _configuration(folder: Path, scheme: str) -> dict[str, Any]:
    def made(name: str, **options: Any) -> dict[str, Any]:
        return {"class_path": f"structperc.{name}", "init_args": options}

    return {
        "trainer": {"default_root_dir": str(folder / "runs"), "logger": False},
        "data": made(
            "data.Conll", path=str(folder), files={"train": "train.txt"}, columns=["word", "label"], scheme=scheme,
            batch_size=64,
        ),
        "model": made(
            "taggers.Tagger",
            features=made("features.FeatureExtractor", node=[{"of": ["w", "s3", "p3"], "at": [-1, 0, 1]}]),
            scorer=made("scorers.SparseLinear"),
            criterion=made("criteria.PerceptronLoss"),
            search=made("chain.KBest", k=1),
            optimizer=made("optim.Perceptron"),
        ),
    }  # fmt: skip
