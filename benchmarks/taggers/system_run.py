"""Run of one system: reads column files, trains, labels, measures costs; needs only Python's own library."""

import argparse
import json
import platform
import random
import re
import resource
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

SEGMENT = re.compile(r"O|[BI]-.+")
DOCUMENT = "-DOCSTART-"


class Sentence(NamedTuple):
    """Words and gold labels, in IOB2 if they are labels of segments, and the number of the document."""

    words: list[str]
    labels: list[str]
    document: int


Sentences = Sequence[Sentence]
Tag = Callable[[Sentences], list[list[str]]]  # labels of each sentence


class Task(NamedTuple):
    """What a system learns from, and the folder for its model."""

    train: list[Sentence]
    dev: list[Sentence]
    seed: int
    model: Path
    options: argparse.Namespace

    @property
    def labels(self) -> list[str]:
        return sorted({label for sentence in self.train for label in sentence.labels})

    @property
    def has_segments(self) -> bool:
        return all(SEGMENT.fullmatch(label) for label in self.labels)


def read_sentences(path: str, column: int = -1) -> list[Sentence]:
    """Read words (first column) and labels (the given column); IOB1 becomes IOB2."""
    sentences: list[Sentence] = []
    rows: list[list[str]] = []
    document = 0
    for line in [*Path(path).read_text(encoding="utf-8").splitlines(), ""]:
        fields = line.split()
        if fields and fields[0] != DOCUMENT:
            rows.append(fields)
            continue
        if rows:
            words, labels = [row[0] for row in rows], [row[column] for row in rows]
            sentences.append(Sentence(words, labels, document))
            rows = []
        document += bool(fields)
    if all(SEGMENT.fullmatch(label) for sentence in sentences for label in sentence.labels):
        return [sentence._replace(labels=iob2(sentence.labels)) for sentence in sentences]
    return sentences


def iob2(labels: Sequence[str]) -> list[str]:
    """Return labels in which each segment begins with B-.

    >>> iob2(["I-PER", "I-PER", "B-PER", "O", "I-LOC"])
    ['B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC']
    """
    starts = (label[:1] == "I" and label[1:] != before[1:] for before, label in pairwise(["O", *labels]))
    return [f"B{label[1:]}" if start else label for label, start in zip(labels, starts, strict=True)]


def spans(labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (start, end, type) of the segments of labels in IOB2; ends are exclusive.

    >>> spans(["B-PER", "I-PER", "O", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    found: list[tuple[int, int, str]] = []
    for t, label in enumerate(iob2(labels)):
        if label[0] == "B":
            found.append((t, t + 1, label[2:]))
        elif label[0] == "I":
            found[-1] = (found[-1][0], t + 1, label[2:])
    return found


def labels_of_spans(segments: Sequence[tuple[int, int, str]], length: int) -> list[str]:
    """Return labels in IOB2 of (start, end, type); the first of two that overlap counts.

    >>> labels_of_spans([(0, 2, "PER"), (3, 4, "LOC")], 4)
    ['B-PER', 'I-PER', 'O', 'B-LOC']
    """
    labels = ["O"] * length
    for start, end, name in segments:
        if all(label == "O" for label in labels[start:end]):
            labels[start:end] = [f"B-{name}", *[f"I-{name}"] * (end - start - 1)]
    return labels


def write_predictions(path: Path, sentences: Sentences, predicted: Sequence[Sequence[str]]) -> None:
    """Write word, gold label and predicted label of each token, with a mark before each document."""
    lines, document = [], 0
    for sentence, labels in zip(sentences, predicted, strict=True):
        if sentence.document != document:
            lines += [f"{DOCUMENT} O O", ""]
            document = sentence.document
        lines += [" ".join(row) for row in zip(sentence.words, sentence.labels, labels, strict=True)]
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(
    packages: Sequence[str], train: Callable[[Task], Tag], add_options: Callable[[argparse.ArgumentParser], Any] = id
) -> None:
    """Train a system as the command line says, label the files and write what it cost.

    Args:
        packages: whose versions are written.
        train: trains on a task and saves the model in `task.model`; the result labels sentences.
        add_options: adds further options of the system to the command line.
    """
    parser = argparse.ArgumentParser(description="Train a tagger on column files and label others.")
    parser.add_argument("--train", required=True, help="file to learn from: word first, label in --column")
    parser.add_argument("--dev", required=True, help="development file, which is labelled, too")
    parser.add_argument("--column", type=int, default=-1, help="column of the label (default -1: the last)")
    parser.add_argument("--output", type=Path, required=True, help="folder of predictions, costs and the model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", default="dev", help="name of the file whose labelling is timed (default dev)")
    parser.add_argument("files", nargs="*", metavar="NAME=FILE", help="further files to label")
    add_options(parser)
    options = parser.parse_args()
    files = {"dev": options.dev, **dict(file.split("=", 1) for file in options.files)}
    texts = {name: read_sentences(path, options.column) for name, path in files.items()}
    train_sentences, model = read_sentences(options.train, options.column), options.output / "model"
    task = Task(train_sentences, texts["dev"], options.seed, model, options)
    model.mkdir(parents=True, exist_ok=True)
    random.seed(task.seed)
    start = time.process_time()
    tag = train(task)
    trained = time.process_time()
    predicted = {options.speed: tag(texts[options.speed])}
    speed = sum(len(sentence.words) for sentence in texts[options.speed]) / (time.process_time() - trained)
    predicted |= {name: tag(text) for name, text in texts.items() if name != options.speed}
    for name, labels in predicted.items():
        write_predictions(options.output / f"{name}.conll", texts[name], labels)
    costs = {
        "seconds": round(trained - start, 1),  # of the processor, as everything here
        "tokens_per_second": round(speed),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "model_mb": round(sum(f.stat().st_size for f in task.model.rglob("*") if f.is_file()) / 2**20, 1),
        "seed": task.seed,
        "train_sentences": len(task.train),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
    }
    (options.output / "costs.json").write_text(json.dumps(costs, indent=2) + "\n", encoding="utf-8")
