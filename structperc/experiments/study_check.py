"""Checks before the first training of a study: mistakes in configurations, and rows that cannot be compared."""

import hashlib
import json
from typing import Any, NamedTuple

from structperc.batching.sequence_data import SequenceData
from structperc.data.corpus import Corpus
from structperc.data.segments import in_iob2
from structperc.errors import InputError
from structperc.experiments.draft import draft
from structperc.experiments.study_file import Study
from structperc.progress import bar
from structperc.training.program import Program

CUTTING = ("batch_size", "eval_batch_size", "shuffle", "predict")


class Task(NamedTuple):
    """What rows must have in common to be compared: the text, its gold labels and the score."""

    text: str  # digest of words and sentences of the split
    gold: str  # digest of its gold labels, of segments whatever their scheme
    measure: str  # what the score is: "accuracy", or "F1"


def check_study(study: Study) -> Task:
    """Return the task that all rows of a study share.

    Raises InputError for what fit would refuse, as far as that shows at once, and if rows have different tasks.
    """
    tasks: list[Task] = []
    read: dict[str, tuple[str, str]] = {}
    for row in bar(study.rows, "checking"):
        try:
            program = draft(row.arguments(row.seeds[0]), row.command)
            source = _source(program)
            if source not in read:
                read[source] = digests(program.datamodule, study.split)
            tasks.append(Task(*read[source], score_name(program)))
            _check_same(tasks[0], tasks[-1], study.split)
        except InputError as error:
            raise InputError(f"{study.file}: rows.{row.name}: {error}") from None
    return tasks[0]


def _source(program: Program) -> str:
    """What names the sequences of a program: its data without the options that only say how they are cut up."""
    data = program.config["fit"].data.as_dict()
    options = {name: value for name, value in data["init_args"].items() if name not in CUTTING}
    return json.dumps([data["class_path"], options], sort_keys=True, default=str)


def digests(data: SequenceData, split: str) -> tuple[str, str]:
    """Return digests of the words and of the gold labels of a split; the same segments have one in all schemes.

    Raises InputError for data without this split or its gold labels.
    """
    data.corpus("train")
    corpus: Corpus = data.corpus(split)
    if "label" not in corpus.columns:
        raise InputError(f"data: the {split} split has no gold labels to compare with")
    sentences = [sentence for sentence in corpus.sentences_of(corpus.columns["word"]) if sentence]
    labels = corpus.sentences_of(corpus.columns["label"])
    return _digest(sentences), _digest(labels if data.scheme == "none" else list(map(in_iob2, labels)))


def score_name(program: Program) -> str:
    """Return the name of a program's score: "accuracy" if labels are no segments, else "F1" or the F of its gamma."""
    return "accuracy" if program.datamodule.scheme == "none" else f"F{program.model.gamma:g}"


def _check_same(first: Task, other: Task, split: str) -> None:
    for part, words in (("text", "sentences or words"), ("gold", "gold labels"), ("measure", "scores")):
        if getattr(first, part) != getattr(other, part):
            which = f" ({other.measure}, not {first.measure})" if part == "measure" else ""
            raise InputError(
                f"its {words} of the {split} split{which} are not those of the first row; rows that are compared need "
                "the same data"
            )


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
