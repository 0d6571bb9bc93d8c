"""Study files: the configurations, seeds and baseline of a study, and checks before its first training."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

from structperc.builder import type_name
from structperc.data.corpus import Corpus
from structperc.data.json_data import matches_type
from structperc.data.tag_schemes import convert
from structperc.data.yaml_file import read_yaml
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError, errors_at
from structperc.experiments.experiment import ExperimentRow, dry_run
from structperc.packaged_configs import PREFIX, is_packaged, packaged_path, packaged_root
from structperc.progress import bar

TOP_TYPES: dict[str, Any] = {
    "baseline": str,
    "options": list[str],
    "rows": dict[Any, Any],
    "seeds": list[int],
    "split": Literal["dev", "test"],
    "train_sizes": list[int | float | None],
}
ROW_TYPES: dict[str, Any] = {
    "command": Literal["fit", "rerank"],
    "configs": list[str],
    "init_from": str | None,
    "options": list[str],
    "seeds": list[int],
}
RESERVED_OPTIONS = ("--ckpt_path", "--config", "--data.seed", "--seed_everything", "--trainer.default_root_dir")
BATCH_OPTIONS = ("batch_size", "batch_tokens", "eval_batch_size", "shuffle", "predict")

logger = logging.getLogger("pytorch_lightning.structperc")


class Study(NamedTuple):
    """The contents of a study file."""

    file: str
    rows: list[ExperimentRow]
    baseline: str  # name of a row of the file
    split: str  # split of the table, dev or test


def read_study(file: str) -> Study:
    r"""Return the contents of a study file.

    The file is YAML::

        baseline: CRF                         # default: the first row
        split: dev                            # or test; default: dev
        seeds: [1, 2, 3]
        options: [--trainer.max_epochs=20]    # options of all rows; default: none
        rows:
          CRF: {configs: [configs/conll2000/map.yaml]}
          NAME: {configs: [FILE, FILE], options: [--KEY=VALUE], command: rerank, seeds: [1]}
          MCE-F: {configs: [FILE], init_from: CRF}    # start from the model of the same seed, or of the only one

    With `train_sizes: [250, 0.5, null]` each row is trained with each of these values of `data.train_size`, as rows
    "CRF, 250", "CRF, 0.5" and "CRF, all".

    Args:
        file: The study file.

    Raises:
        InputError: A value is invalid or a file is missing; the message has file and key.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("own.yaml").write_text("model: {}")
        >>> _ = Path("study.yaml").write_text("seeds: [1, 2]\nrows:\n  CRF: {configs: [own.yaml]}\n")
        >>> study = read_study("study.yaml")
        >>> study.baseline, study.rows[0].seeds
        ('CRF', [1, 2])
    """
    top = _checked(read_yaml(file), f"{file}: ", TOP_TYPES, ("rows", "seeds"))
    if not top["rows"]:
        raise InputError(f"{file}: rows: name at least one row, as in CRF: {{configs: [FILE]}}")
    rows: list[ExperimentRow] = []
    for name, given in top["rows"].items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{file}: rows: invalid name {name!r}; write it in quotes")
        place = f"{file}: rows.{name}."
        row = _checked(given, place, ROW_TYPES, ("configs",))
        configs = [configuration_file(config, file) for config in row["configs"]]
        if not configs:
            raise InputError(f"{place}configs: name at least one file")
        for config in configs:
            if not Path(config).is_file():
                raise InputError(f"{place}configs: no file {config}; relative paths start in {Path.cwd()}")
        if twice := next((one for one, other in combinations(configs, 2) if Path(one).samefile(other)), None):
            raise InputError(f"{place}configs: {twice} is given twice; leave out one")
        options = [*top.get("options", []), *row.get("options", [])]
        seeds, command = row.get("seeds", top["seeds"]), row.get("command", "fit")
        made = ExperimentRow(name, command, configs, options, seeds, row.get("init_from"))
        _check_start(made, rows, f"{place}init_from")
        rows.append(made)
    baseline = top.get("baseline", rows[0].name)
    if baseline not in top["rows"]:
        raise InputError(f"{file}: baseline: there is no row {baseline!r}; rows are {', '.join(top['rows'])}")
    other = [f"{row.name} {row.seeds}" for row in rows if not {*row.seeds} <= {*top["seeds"]}]
    if other:
        logger.warning("%s: seeds are %s, but rows have others: %s", file, top["seeds"], ", ".join(other))
    return Study(file, _with_sizes(rows, top.get("train_sizes"), file), baseline, top.get("split", "dev"))


def _with_sizes(rows: Sequence[ExperimentRow], sizes: Sequence[float | None] | None, file: str) -> list[ExperimentRow]:
    """Return each row with each size of training data; the rows as they are if `sizes` is None."""
    if sizes is None:
        return [*rows]
    if not sizes or len(set(sizes)) < len(sizes):
        raise InputError(f"{file}: train_sizes: write different sizes, as in [250, 500, null], not {sizes}")
    found = []
    for size in sizes:
        ending, value = (", all", "null") if size is None else (f", {size}", str(size))
        for row in rows:
            option = ("data.train_size", value)
            point = row._replace(name=row.name + ending, curve=row.name, values=(option,))
            options, start = [*row.options, f"--{'='.join(option)}"], row.init_from and row.init_from + ending
            found.append(point._replace(options=options, init_from=start))
    return found


def _checked(given: Any, place: str, types: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """Return a mapping with values of these types. Raises InputError for other ones; `place` is the prefix of keys."""
    if not isinstance(given, dict) or not given.keys() >= set(required):
        keys = ", ".join(f"{key}: ..." for key in required)
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
    for option in given.get("options", []):
        key, equals, _ = option.partition("=")
        if not (key.startswith("--") and equals):
            raise InputError(f"{place}options: invalid option {option!r}; write --KEY=VALUE")
        if key in RESERVED_OPTIONS:
            raise InputError(f"{place}options: a study sets {key} itself; leave it out")
    return given


def configuration_file(name: str, study: str) -> str:
    """Return the path of a file named by a study; packaged studies may name packaged files, by configs/..."""
    if not is_packaged(study) or name.startswith(PREFIX):
        return packaged_path(name)
    own = packaged_root().parent / name
    here = not own.is_file() or (Path(name).is_file() and own.samefile(name))
    return name if here else str(own)


def _check_start(row: ExperimentRow, above: Sequence[ExperimentRow], where: str) -> None:
    """Raise InputError if the models that a row starts from are not trained before it."""
    if row.init_from is None:
        return
    if row.command != "fit":
        raise InputError(f"{where}: a re-ranker cannot start from another model; leave it out")
    source = next((one for one in above if one.name == row.init_from and one.command == "fit"), None)
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
    for row in bar(study.rows, "checking"):
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
    return tasks[0]


def digests(data: SequenceDataModule, split: str) -> tuple[str, str]:
    """Return digests of the words and of the gold labels of a split; that of segments is independent of their scheme.

    Sentences without a word do not count.

    Raises InputError for data without this split or its gold labels.
    """
    data.corpus("train")
    corpus: Corpus = data.corpus(split)
    if "label" not in corpus.columns:
        raise InputError(f"data: the {split} split has no gold labels to compare with")
    words, labels = (list(filter(len, corpus.sentences_of(corpus.columns[name]))) for name in ("word", "label"))
    return _digest(words), _digest(
        labels if data.scheme == "none" else [convert(one, data.scheme, "IOB2") for one in labels]
    )


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
