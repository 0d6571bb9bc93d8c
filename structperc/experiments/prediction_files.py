"""Predictions of the rows of a study: of its models on further files, and those that other systems have written.

Each run has the scores of all texts in its results and the predictions in its folder, whoever made them.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.json_data import check_fields
from structperc.data.tag_schemes import label_type, to_iob2
from structperc.errors import InputError, errors_at
from structperc.experiments.experiment import ExperimentRow, Run
from structperc.loading import load_biased
from structperc.metrics.comparison import evaluate_systems
from structperc.metrics.corpus_scores import CorpusScores, score_prediction
from structperc.reports.tables import write_json
from structperc.tagging.labelled_files import read_gold
from structperc.training.predictions import (
    SentenceStrings,
    document_numbers,
    label_column,
    read_predictions,
    write_predictions,
)

EVALUATIONS = "evaluations.json"
COSTS = {"seconds": float, "peak_memory_mb": float, "model_mb": float, "tokens_per_second": float}


def with_further_files(run: Run, files: Mapping[str, str]) -> Run:
    """Return a run of a model with its results on further files, {name: file with gold labels}.

    Predictions are written into the folder of the run, and not repeated as long as the file is the same.

    Raises:
        InputError: a file cannot be read, or has no gold labels.
    """
    if run.folder is None or run.results is None or not files:
        return run
    folder, model = Path(run.folder), None
    record = folder / EVALUATIONS
    done: dict[str, Any] = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    for name, file in files.items():
        digest = sha256(Path(file).read_bytes()).hexdigest()
        if done.get(name, {}).get("sha256") == digest:
            continue
        with errors_at(f"{run.name}: {name}"):
            model = load_biased(folder / "model", None) if model is None else model
            corpus = read_gold(model, file)
            prediction = model.predict(corpus)
            write_predictions(folder, name, corpus, prediction.labels)
            scores = score_prediction(model.gold_labels(corpus), corpus, prediction)
        done[name] = {"file": file, "sha256": digest, **_entry(scores)}
        write_json(record, done)
    return run._replace(results=_merged(run.results, {name: done[name] for name in files}))


def _entry(scores: CorpusScores) -> dict[str, Any]:
    return {"scores": scores.by_name(), "types": scores.by_type()}


def _merged(results: Mapping[str, Any], entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return results with the scores of further texts."""
    scores, types = ({name: entry[key] for name, entry in entries.items()} for key in ("scores", "types"))
    return {**results, **scores, "types": {**results.get("types", {}), **types}}


class GoldText(NamedTuple):
    """Words, gold labels and documents of a text, by sentence."""

    words: SentenceStrings
    labels: SentenceStrings  # in IOB2, or labels without segments
    documents: np.ndarray  # (R,) int64

    @property
    def scheme(self) -> str:
        """IOB2, or "none" for labels without segments."""
        return "IOB2" if any(label_type(label) for sentence in self.labels for label in sentence) else "none"


def gold_text(runs: Sequence[Run], name: str) -> GoldText | None:
    """Return a text of a study, from the predictions of a model; None without any."""
    files = [Path(run.folder) / "predictions" / f"{name}.conll" for run in runs if run.folder is not None]
    path = next((str(file) for file in files if file.is_file()), None)
    return None if path is None else _gold_of(path)


def _gold_of(path: str) -> GoldText:
    words, gold, _ = read_predictions(path)
    return GoldText(words, _segments(gold), document_numbers(path))


def _segments(labels: SentenceStrings) -> SentenceStrings:
    """Return labels in IOB2; labels without segments as they are."""
    try:
        return [to_iob2(sentence) for sentence in labels]
    except InputError:
        return labels


def foreign_run(row: ExperimentRow, seed: int | None, folder: Path, texts: Mapping[str, GoldText | None]) -> Run:
    """Return the run of a row of another system, of which there are only predictions.

    Gold labels are those of `texts`, {name of a split or file: text}; where there is none they are in the file itself,
    in the last column but one. Predictions with gold labels are written into the folder.

    Raises:
        InputError: a file cannot be read, or is not of the text.
    """
    entries: dict[str, Any] = {}
    for name, pattern in row.predictions:
        path = path_of(pattern, seed)
        with errors_at(f"{row.name}: {name}"):
            text = texts.get(name) or _gold_of(path)
            words, predicted = label_column(path)
            check_words(path, words, text.words)
            predicted = predicted if text.scheme == "none" else _segments(predicted)
            scores = _scores(row.name, text, predicted)
        columns = {"word": text.words, "label": text.labels}
        sentences = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        corpus = Corpus.from_sentences(sentences, text.documents.tolist(), name=path)
        write_predictions(folder, name, corpus, [label for sentence in predicted for label in sentence])
        entries[name] = {"file": path, **_entry(scores)}
    results = _merged(_costs(row, seed), entries)
    return Run(row, seed, [], str(folder), results, None)


def path_of(pattern: str, seed: int | None) -> str:
    """Return the path of a seed."""
    return pattern.replace("{seed}", str(seed))


def check_words(path: str, words: SentenceStrings, wanted: SentenceStrings) -> None:
    """Raise InputError for a file of predictions with other words than a text, by sentence."""
    pairs = enumerate(zip(words, wanted, strict=False), 1)
    other = next((number for number, (a, b) in pairs if a != b), None)
    if other is not None:
        raise InputError(
            f"{path}: sentence {other} begins {' '.join(words[other - 1][:5])!r}, "
            f"but that of the study {' '.join(wanted[other - 1][:5])!r}; label the words of the study"
        )
    if len(words) != len(wanted):
        raise InputError(f"{path}: {len(words)} sentences, but the text of the study has {len(wanted)}")


def _scores(name: str, text: GoldText, predicted: SentenceStrings) -> CorpusScores:
    (system,) = evaluate_systems(text.labels, [predicted], text.scheme, [name])
    return CorpusScores(system.segments, *system.accuracies)


def _costs(row: ExperimentRow, seed: int | None) -> dict[str, Any]:
    """Return the seconds, memory, size and speed that the system reports of itself, as in the results of a run."""
    if row.costs is None:
        return {}
    path = path_of(row.costs, seed)
    try:
        given = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{row.name}: costs: {path} cannot be read as JSON: {error}") from None
    given = {key: value for key, value in given.items() if key in COSTS}
    check_fields(given, {key: COSTS[key] for key in given}, f"{path}")
    speed = given.pop("tokens_per_second", None)
    return given if speed is None else {**given, "tokens_per_second": dict.fromkeys(dict(row.predictions), speed)}
