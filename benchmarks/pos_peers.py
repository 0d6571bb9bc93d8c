"""Part-of-speech taggers side by side on the same files: accuracy, McNemar's tests against guided learning, time.

python -m benchmarks.pos_peers [--corpus ud_ewt] [--only NAME ...] [--iterations N ...] [--seed 1] [--output FOLDER]

prints one table. The taggers (see `pos_taggers`) learn from the training file and label the development file, from
words to labels. Each number of iterations is a training of its own.
"""

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from benchmarks.__main__ import hardware
from benchmarks.pos_taggers import TAGGERS, Strings, Task, column
from structperc.data import Conll, Synthetic, write_conll
from structperc.errors import InputError
from structperc.metrics import compare_all
from structperc.training.overlays import read_configuration

CORPORA = {"ud_ewt": "UD English EWT, XPOS", "wsj": "the WSJ sample", "embedded": "the embedded corpus"}
ITERATIONS = {"window": (5, 10, 15, 20), "set_e": (5, 10, 15, 20), "nltk": (5, 10), "averaged": (10,), "guided": (10,)}
DOCUMENTS = 1500  # of the embedded corpus
PASSES = 3  # over the development file; the fastest is the speed of tagging
HEAD = (
    "| tagger | iterations | tokens | sentences | p tokens / sentences | training | tagging |",
    "|---|---|---|---|---|---|---|",
)


class Row(NamedTuple):
    """A tagger's labels of the development file, seconds of training, tokens that it tags per second."""

    tagger: str
    iterations: int
    labels: Strings
    seconds: float
    speed: float


class Scores(NamedTuple):
    """Shares of tokens and sentences that are right; p of both in McNemar's tests against guided learning."""

    tokens: float
    sentences: float
    p: tuple[float, float] | None  # None of guided learning itself, and where it did not run


def run(smoke: bool) -> list[dict]:
    """Return accuracy, seconds of training and speed of guided learning beside those of each other tagger."""
    name = "embedded" if smoke or "STRUCTPERC_DATA" not in os.environ else "ud_ewt"
    plan = [(tagger, 1 if smoke else counts[-1]) for tagger, counts in ITERATIONS.items()]
    with task_of(name, seed=1, documents=20 if smoke else DOCUMENTS) as task:
        rows = measure(task, plan)
        *others, ours = (_figures(row, one) for row, one in zip(rows, scores(task, rows), strict=True))
        return [
            _row(f"parts of speech: {what}, guided learning against {row.tagger}", size(task, name), unit, mine, theirs)
            for row, figures in zip(rows, others, strict=False)
            for (what, unit, mine), (*_, theirs) in zip(ours, figures, strict=True)
        ]


def measure(task: Task, plan: Sequence[tuple[str, int]], output: Path | None = None) -> list[Row]:
    """A row for each tagger and number of iterations; their labels are written as soon as there are any."""
    rows = []
    for tagger, iterations in (bar := tqdm(plan)):
        bar.set_description(f"{tagger}, {iterations} iterations")
        rows.append(row := measured(task, tagger, iterations))
        if output is not None:
            labels = [label for sentence in row.labels for label in sentence]
            write_conll(output / f"{tagger}_{iterations}.conll", task.dev, ["word", "label"], labels)
    return rows


def measured(task: Task, tagger: str, iterations: int) -> Row:
    """Train a tagger and let it label the development file."""
    tag, seconds = TAGGERS[tagger](task, iterations)
    times = []
    for _ in range(PASSES):
        start = time.perf_counter()
        labels = tag(task.dev)
        times.append(time.perf_counter() - start)
    return Row(tagger, iterations, labels, seconds, task.dev.tokens / min(times))


def scores(task: Task, rows: Sequence[Row]) -> Iterator[Scores]:
    """The scores of each row; the last row of guided learning is the one that the tests are against."""
    labels, names = [row.labels for row in rows], [row.tagger for row in rows]
    systems = compare_all(column(task.dev, "label"), labels, names, "none").systems
    guided = {system.name: system for system in systems}.get("guided")
    for system in systems:
        tests = None if guided is None or system.name == "guided" else system.against(guided)
        yield Scores(*system.accuracies, tests and (tests.tokens.p, tests.sentences.p))


def table(task: Task, rows: Sequence[Row]) -> str:
    """Accuracies in per cent and times."""
    lines = []
    for row, one in zip(rows, scores(task, rows), strict=True):
        p = "" if one.p is None else " / ".join(f"{value:.2g}" for value in one.p)
        cells = [row.tagger, str(row.iterations), f"{100 * one.tokens:.2f}", f"{100 * one.sentences:.2f}", p]
        lines.append(f"| {' | '.join(cells)} | {row.seconds:.1f} s | {row.speed:,.0f} tokens/s |")
    return "\n".join([*HEAD, *lines])


def size(task: Task, name: str) -> str:
    """What is learned from and what is labelled."""
    train, dev = task.train, task.dev
    return f"{CORPORA[name]}: {len(train)} and {len(dev)} sentences, {train.tokens} and {dev.tokens} tokens"


@contextmanager
def task_of(name: str, seed: int, documents: int = DOCUMENTS) -> Iterator[Task]:
    """A corpus and its configurations; the embedded one is written to files and has those of wsj."""
    study = f"pkg:studies/{'wsj' if name == 'embedded' else name}"
    options = read_configuration(f"{study}#guided")
    data, templates = options["data"]["init_args"], options["model"]["init_args"]["features"]["init_args"]["node"]
    with tempfile.TemporaryDirectory() as folder:
        if name == "embedded":
            embedded = Synthetic(train=documents, dev=documents // 5, test=1, unit="sentence")
            for split, file in data["files"].items():
                write_conll(Path(folder) / file, embedded.corpus(split), ["word", "pos"])
            data["path"] = folder
        yield Task(study, Conll(**data), templates, seed)


def _figures(row: Row, one: Scores) -> list[tuple[str, str, float]]:
    return [
        ("accuracy", "%", 100 * one.tokens),
        ("training", "s", row.seconds),
        ("tagging", "tokens/s", row.speed),
    ]


def _row(what: str, size: str, unit: str, ours: float, peer: float) -> dict:
    ratio = ours / peer if peer else None
    return {"what": what, "size": size, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, "target": None}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.pos_peers", description="Part-of-speech taggers, one table.")
    names = list(TAGGERS)
    parser.add_argument("--corpus", choices=CORPORA, default="ud_ewt", help="default: ud_ewt")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--iterations", nargs="+", type=int, metavar="N", help="of all; a training and a row for each")
    parser.add_argument("--seed", type=int, default=1, help="of the order of sentences (default 1)")
    parser.add_argument("--output", type=Path, help="folder for predictions: columns of word, gold and predicted label")
    options = parser.parse_args()
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
    plan = [(name, n) for name in options.only for n in options.iterations or ITERATIONS[name]]
    try:
        with task_of(options.corpus, options.seed) as task:
            rows = measure(task, plan, options.output)
            command = shlex.join(["python", "-m", "benchmarks.pos_peers", *sys.argv[1:]])
            print(f"`{command}`", f"{hardware()}; {size(task, options.corpus)}; seed {options.seed}", sep="\n\n")
            print(f"\n{table(task, rows)}")
    except InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
