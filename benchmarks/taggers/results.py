"""Figures of the page "Other taggers" from predictions: scores, intervals, p and costs, without any words.

python -m benchmarks.taggers.results study STUDY.json FOLDER > results/NAME.json
python -m benchmarks.taggers.results scores FOLDER ... > results/NAME.json

`study` takes scores and tests from a study and the costs of each row from the costs.json of the folder; `scores` takes
all predictions of FOLDER/SYSTEM. `python -m benchmarks.taggers.results table NAME.json`
prints the table of the page.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structperc.metrics.comparison import evaluate_systems
from structperc.metrics.corpus_scores import CorpusScores
from structperc.training.predictions import read_predictions

COSTS = ("seconds", "tokens_per_second", "peak_memory_mb", "model_mb", "seed", "train_sentences", "versions")
TESTS = ("score", "score_low", "score_high", "difference", "difference_low", "difference_high")
TESTS += ("p_documents", "p_documents_holm")


def costs(folder: Path) -> dict[str, Any]:
    """Return what a system has written about its training."""
    written = json.loads((folder / "costs.json").read_text(encoding="utf-8"))
    return {key: written[key] for key in COSTS}


def study(record: Path, folder: Path) -> dict[str, Any]:
    """Return the scores of a study by row and text."""
    written = json.loads(record.read_text(encoding="utf-8"))
    rows = {}
    for row in written["rows"]:
        numbers = row["numbers"]
        files = sorted(
            {key.split("/")[0] for key in numbers if key.endswith("/score") and key.split("/")[0] != "score"}
        )
        starts = {written["split"]: "", **{file: f"{file}/" for file in files}}
        texts = {text: pick(numbers, start) for text, start in starts.items()}
        place = Path(next(iter(row["predictions"].values()))).parent if "predictions" in row else folder / row["name"]
        rows[row["name"]] = {"texts": texts, "costs": costs(place)}
    return {"baseline": written["baseline"], "rows": rows}


def pick(numbers: dict[str, float], start: str) -> dict[str, float]:
    return {key: round(numbers[start + key], 6) for key in TESTS if start + key in numbers}


def scores(*folders: Path) -> dict[str, Any]:
    """Return the score on each text, by "SYSTEM, FOLDER"."""
    found: dict[str, Any] = {}
    for place in (file.parent for folder in folders for file in sorted(folder.glob("*/costs.json"))):
        texts = {}
        for file in sorted(place.glob("*.conll")):
            _, gold, predicted = read_predictions(str(file))
            has_segments = any(label.startswith("B-") for labels in gold for label in labels)
            (system,) = evaluate_systems(gold, [predicted], "IOB2" if has_segments else "none", [place.name])
            measured = CorpusScores(system.segments, *system.accuracies).by_name()
            texts[file.stem] = {"score": round(measured["score"], 6)}
        found[f"{place.name}, {place.parent.name}"] = {"texts": texts, "costs": costs(place)}
    return {"rows": found}


def table(file: Path) -> str:
    """Return a Markdown table of a file of results."""
    written = json.loads(file.read_text(encoding="utf-8"))
    rows: dict[str, dict[str, Any]] = written["rows"]
    texts = list(next(iter(rows.values()))["texts"])
    heads = [head for text in texts for head in score_heads(text, "baseline" in written)]
    heads = ["", *heads, "seconds", "tokens/s", "memory MB", "model MB"]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for name, row in rows.items():
        measured = row["costs"]
        cells = [cell for text in texts for cell in score_cells(row["texts"][text], "baseline" in written)]
        cells += [f"{measured[key]:,.{digits}f}" for key, digits in zip(COSTS, (0, 0, 0, 1), strict=False)]
        lines.append([name, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def score_heads(text: str, has_tests: bool) -> Iterator[str]:
    yield text
    if has_tests:
        yield from ("95 %", "difference", "p Holm")


def score_cells(scores: dict[str, float], has_tests: bool) -> Iterator[str]:
    """Yield score, interval, difference with its interval, and p; empty for the baseline's own tests."""
    yield f"{100 * scores['score']:.2f}"
    if not has_tests:
        return
    yield f"{100 * scores['score_low']:.2f} to {100 * scores['score_high']:.2f}"
    if "difference" not in scores:
        yield from ("", "")
        return
    low, high = 100 * scores["difference_low"], 100 * scores["difference_high"]
    yield f"{100 * scores['difference']:+.2f} ({low:+.2f} to {high:+.2f})"
    yield f"{scores['p_documents_holm']:.2g}"


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    if command == "table":
        print(table(Path(paths[0])))
    else:
        print(json.dumps({"study": study, "scores": scores}[command](*map(Path, paths)), indent=1))
