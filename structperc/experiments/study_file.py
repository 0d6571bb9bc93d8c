"""Study files: the rows, seeds and baseline of a study, and checks before its first training."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Literal, NamedTuple

from yaml import MappingNode

from structperc.builder import type_name
from structperc.data.corpus import Corpus
from structperc.data.json_data import matches_type
from structperc.data.tag_schemes import convert
from structperc.data.text_files import expand_path
from structperc.data.yaml_file import read_yaml
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError, errors_at
from structperc.experiments.experiment import ExperimentRow, dry_run
from structperc.experiments.prediction_files import check_words, path_of
from structperc.packaged_configs import ROW, packaged_path
from structperc.progress import bar
from structperc.training.configuration import flat_options
from structperc.training.overlays import compose
from structperc.training.predictions import SentenceStrings, label_column

TOP_TYPES: dict[str, Any] = {
    "base": list[str],
    "baseline": str,
    "evaluate": dict[str, str],
    "rows": dict[Any, Any],
    "seeds": list[int],
    "split": Literal["dev", "test"],
    "train_sizes": list[int | float | None],
    "with": dict[str, Any],
}
ROW_TYPES: dict[str, Any] = {
    "about": str,
    "command": Literal["fit", "rerank"],
    "configs": list[str],
    "costs": str,
    "init_from": str | None,
    "predictions": dict[str, str],
    "seeds": list[int],
    "with": dict[str, Any],
}
RESERVED = ("ckpt_path", "data.seed", "seed_everything", "trainer.default_root_dir")  # options that a study sets
SPLITS = ("train", "dev", "test")
BATCH_OPTIONS = ("batch_size", "batch_tokens", "eval_batch_size", "shuffle", "predict")

logger = logging.getLogger("pytorch_lightning.structperc")


class Study(NamedTuple):
    """The contents of a study file."""

    file: str
    rows: list[ExperimentRow]
    baseline: str  # name of a row of the file
    split: str  # split of the table, dev or test
    files: dict[str, str]  # name: further file that all models are evaluated on


def read_study(file: str) -> Study:
    r"""Return the contents of a study file.

    The file is YAML::

        baseline: crf                         # default: the first row
        split: dev                            # or test; default: dev
        seeds: [1, 2, 3]
        base: [data.yaml]                     # configurations below all rows; default: none
        with: {trainer: {max_epochs: 20}}     # values of all rows; default: none
        rows:
          crf: {about: A CRF, configs: [pkg:overlays/methods#map], with: {model: {prior: {C: 1}}}}
          re-ranking: {configs: [FILE, FILE], command: rerank, seeds: [1]}
          mce_f: {configs: ["#crf", FILE], init_from: crf}    # starts from the model of the same seed, or the only one

    A row is the configuration FILE#ROW, see `overlays.compose`.

    With `train_sizes: [250, 0.5, null]` each row is trained with each of these values of `data.train_size`, as rows
    "crf, 250", "crf, 0.5" and "crf, all". With `evaluate: {news: FILE}` each model is also scored on these labelled
    files, and their scores have columns of their own.

    A row may have the predictions of another system in place of configurations: files of columns with the words of the
    study and, last, the predicted labels, for the split and any of the further files. `costs` names a JSON file with
    any of `seconds`, `tokens_per_second`, `peak_memory_mb` and `model_mb`; {seed} in a path is the seed::

          spaCy: {predictions: {dev: spacy/dev.conll, news: spacy/news.conll}, costs: spacy/costs.json}

    Args:
        file: The study file, or pkg:NAME.

    Raises:
        InputError: A value is invalid, or a file or another row is missing; the message has file and key.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("own.yaml").write_text("model: {}")
        >>> _ = Path("study.yaml").write_text("seeds: [1, 2]\nrows:\n  CRF: {configs: [own.yaml]}\n")
        >>> study = read_study("study.yaml")
        >>> study.baseline, study.rows[0].seeds
        ('CRF', [1, 2])
    """
    file = packaged_path(file)
    top = _checked(read_yaml(file), f"{file}: ", TOP_TYPES, ("rows", "seeds"))
    if not top["rows"]:
        raise InputError(f"{file}: rows: name at least one row, as in CRF: {{configs: [FILE]}}")
    rows: list[ExperimentRow] = []
    nodes: dict[str, MappingNode] = {}
    for name, given in top["rows"].items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{file}: rows: invalid name {name!r}; write it in quotes")
        place = f"{file}: rows.{name}."
        row = _checked(given, place, ROW_TYPES, ())
        seeds = row.get("seeds", top["seeds"])
        if "predictions" in row:
            rows.append(_foreign_row(name, row, seeds, place, {top.get("split", "dev"), *top.get("evaluate", {})}))
            continue
        if "costs" in row:
            raise InputError(f"{place}costs: a study measures the costs of its own trainings; leave it out")
        compose(f"{file}{ROW}{name}", nodes)
        made = ExperimentRow(name, row.get("command", "fit"), [f"{file}{ROW}{name}"], [], seeds, row.get("init_from"))
        _check_start(made, rows, f"{place}init_from")
        rows.append(made)
    baseline = top.get("baseline", rows[0].name)
    if baseline not in top["rows"]:
        raise InputError(f"{file}: baseline: there is no row {baseline!r}; rows are {', '.join(top['rows'])}")
    if all(row.predictions for row in rows):
        raise InputError(f"{file}: rows: all are predictions of other systems; structperc evaluate compares files")
    other = [f"{row.name} {row.seeds}" for row in rows if not {*row.seeds} <= {*top["seeds"]}]
    if other:
        logger.warning("%s: seeds are %s, but rows have others: %s", file, top["seeds"], ", ".join(other))
    rows = _with_sizes(rows, top.get("train_sizes"), file)
    return Study(file, rows, baseline, top.get("split", "dev"), _further_files(top.get("evaluate", {}), file))


def _foreign_row(name: str, row: Mapping[str, Any], seeds: list[int], place: str, texts: Set[str]) -> ExperimentRow:
    """Return a row of predictions of another system. Raises InputError for unknown texts and missing files."""
    if others := [key for key in row if key not in ("predictions", "costs", "seeds")]:
        raise InputError(f"{place}{others[0]}: predictions of another system are not trained; leave it out")
    files = {text: str(expand_path(path)) for text, path in row["predictions"].items()}
    costs = str(expand_path(row["costs"])) if "costs" in row else None
    if unknown := [text for text in files if text not in texts]:
        raise InputError(f"{place}predictions: unknown text {unknown[0]!r}; known are {', '.join(sorted(texts))}")
    patterns = [*files.values(), *([] if costs is None else [costs])]
    if "seeds" not in row and not any("{seed}" in path for path in patterns):
        seeds = seeds[:1]
    for path in (path.replace("{seed}", str(seed)) for path in patterns for seed in seeds):
        if not Path(path).is_file():
            raise InputError(f"{place}predictions: no file {path}; relative paths start in {Path.cwd()}")
    return ExperimentRow(name, "", [], [], seeds, predictions=tuple(files.items()), costs=costs)


def _further_files(given: Mapping[str, str], study: str) -> dict[str, str]:
    """Return the further files of a study with their variables replaced. Raises InputError for a missing one."""
    files = {name: str(expand_path(path)) for name, path in given.items()}
    for name, path in files.items():
        if name in SPLITS:
            raise InputError(f"{study}: evaluate.{name}: this is the name of a split; choose another one")
        if not Path(path).is_file():
            raise InputError(f"{study}: evaluate.{name}: no file {path}; relative paths start in {Path.cwd()}")
    return files


def _with_sizes(rows: Sequence[ExperimentRow], sizes: Sequence[float | None] | None, file: str) -> list[ExperimentRow]:
    """Return each row with each size of training data; the rows as they are if `sizes` is None."""
    if sizes is None:
        return [*rows]
    if not sizes or len(set(sizes)) < len(sizes):
        raise InputError(f"{file}: train_sizes: write different sizes, as in [250, 500, null], not {sizes}")
    points = []
    for size in sizes:
        ending, value = (", all", "null") if size is None else (f", {size}", str(size))
        for row in rows:
            option = ("data.train_size", value)
            if row.predictions:
                continue
            point = row._replace(name=row.name + ending, curve=row.name, values=(option,))
            options, start = [*row.options, f"--{'='.join(option)}"], row.init_from and row.init_from + ending
            points.append(point._replace(options=options, init_from=start))
    return [*points, *(row for row in rows if row.predictions)]


def _checked(given: Any, place: str, types: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """Return a mapping with values of these types. Raises InputError for other ones; `place` is the prefix of keys."""
    if not isinstance(given, dict) or not given.keys() >= set(required):
        keys = ", ".join(f"{key}: ..." for key in required) or "a mapping"
        raise InputError(f"{place.rstrip('. :')}: write {keys}; keys are {', '.join(types)}")
    for key, value in given.items():
        if key not in types:
            raise InputError(f"{place}{key}: unknown key; known are {', '.join(types)}")
        if not matches_type(value, types[key]):
            raise InputError(f"{place}{key}: expected {type_name(types[key])}, got {value!r}")
    seeds = given.get("seeds", [0])
    if not seeds or len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**32 for seed in seeds):
        raise InputError(
            f"{place}seeds: write different whole numbers from 0 to 2**32 - 1, as in [1, 2, 3], not {seeds}"
        )
    if reserved := flat_options(given.get("with", {})).keys() & RESERVED:
        raise InputError(f"{place}with: a study sets {min(reserved)} itself; leave it out")
    return given


def _check_start(row: ExperimentRow, above: Sequence[ExperimentRow], where: str) -> None:
    """Raise InputError if the models that a row starts from are not trained before it."""
    if row.init_from is None:
        return
    if row.command != "fit":
        raise InputError(f"{where}: a re-ranker cannot start from another model; leave it out")
    source = next((other for other in above if other.name == row.init_from and other.command == "fit"), None)
    if source is None:
        raise InputError(f"{where}: {row.init_from!r} is not a row above this one that fit trains")
    lacking = [seed for seed in row.seeds if seed not in source.seeds]
    if lacking and len(source.seeds) > 1:
        raise InputError(f"{where}: {source.name} has no seed {lacking[0]}; give both rows the same seeds")


class Task(NamedTuple):
    """Text, gold labels and score, which must be the same for all rows."""

    text: str  # digest of words and sentences of the split
    gold: str  # digest of its gold labels, in IOB2 for segments
    measure: str  # name of the score: "accuracy", or "F1"


def check_study(study: Study) -> Task:
    """Return the task that all rows of a study share.

    Raises InputError for mistakes in any row, and for rows with different tasks.
    """
    tasks: list[Task] = []
    read: dict[str, tuple[str, str]] = {}
    for row in bar([row for row in study.rows if not row.predictions], "checking"):
        with errors_at(f"{study.file}: rows.{row.name}"):
            program = dry_run(row.arguments(row.seeds[0]), row.command)
            data = program.config["data"]
            options = {key: value for key, value in data.get("init_args", {}).items() if key not in BATCH_OPTIONS}
            source = json.dumps([data["class_path"], options], sort_keys=True, default=str)
            if source not in read:
                read[source] = digests(program.datamodule, study.split)
            measure = "accuracy" if program.datamodule.scheme == "none" else f"F{program.model.beta:g}"
            tasks.append(Task(*read[source], measure))
            _check_same_task(tasks[0], tasks[-1], study.split)
            if len(tasks) == 1:
                check_predictions(study, words_of(program.datamodule.corpus(study.split)))
    return tasks[0]


def check_predictions(study: Study, words: SentenceStrings) -> None:
    """Raise InputError for predictions of other systems that are not of the words of the split, by sentence."""
    for row in study.rows:
        for name, pattern in row.predictions:
            for seed in row.seeds if name == study.split else []:
                path = path_of(pattern, seed)
                check_words(path, label_column(path)[0], words)


def digests(data: SequenceDataModule, split: str) -> tuple[str, str]:
    """Return digests of the words and of the gold labels of a split; that of segments is independent of their scheme.

    Sentences without a word do not count.

    Raises InputError for data without this split or its gold labels.
    """
    data.corpus("train")
    corpus: Corpus = data.corpus(split)
    if "label" not in corpus.columns:
        raise InputError(f"data: the {split} split has no gold labels to compare with")
    labels = list(filter(len, corpus.sentences_of(corpus.columns["label"])))
    if data.scheme != "none":
        labels = [convert(tags, data.scheme, "IOB2") for tags in labels]
    return _digest(words_of(corpus)), _digest(labels)


def words_of(corpus: Corpus) -> SentenceStrings:
    """Return the words of each sentence that has any."""
    return list(filter(len, corpus.sentences_of(corpus.columns["word"])))


def _check_same_task(first: Task, other: Task, split: str) -> None:
    for part, words in (("text", "sentences or words"), ("gold", "gold labels"), ("measure", "scores")):
        if getattr(first, part) != getattr(other, part):
            which = f" ({other.measure}, not {first.measure})" if part == "measure" else ""
            raise InputError(
                f"its {words} of the {split} split{which} differ from those of the first row; compared rows need the "
                "same data"
            )


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
