"""Recipes of init: the recommended features and learners, as parts of a configuration."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from structperc.errors import InputError

if TYPE_CHECKING:
    from structperc.data.survey import Survey

Task = Literal["entities", "chunks", "parts_of_speech"]

METHODS = "pkg:overlays/methods#"
FEATURES = "pkg:overlays/features#"
FROZEN = "pkg:studies/pretrained_entities#frozen"  # with the templates that go with the vectors of an encoder
ENCODER = re.compile(r"\$\{STRUCTPERC_ENCODER\b[^}]*\}")
FEATURE_SUMMARIES = {
    "entities": "words, affixes, character types, and other mentions of a word in its document",
    "chunks": "words, affixes, character types, and the column pos of parts of speech",
    "parts_of_speech": "words, affixes and character types",
}


class Learner(NamedTuple):
    """A learner that init offers.

    Args:
        summary: Its costs and needs, in a line.
        method: Name of the overlay with its criterion and optimizer.
        faster: How to make training faster.
        encoder: Name of the overlay with its encoder; "": it learns weights of feature templates.
        templates: True if it reads feature templates.

    Example:
        >>> LEARNERS["pa"].method
        'pa_sentences'
    """

    summary: str
    method: str
    faster: str
    encoder: str = ""
    templates: bool = True


LEARNERS = {
    "crf": Learner(
        "conditional random field: probabilities, the best scores with few data; minutes",
        "map",
        "set trainer.max_epochs: 30, or init --learner pa",
    ),
    "pa": Learner(
        "passive-aggressive, averaged: fast, the best scores with much data; no probabilities",
        "pa_sentences",
        "set trainer.max_epochs: 5",
    ),
    "perceptron": Learner(
        "averaged perceptron: fast and simple, slightly worse than pa; no probabilities",
        "averaged",
        "set trainer.max_epochs: 5",
    ),
    "frozen": Learner(
        "CRF on the vectors of an encoder that stays as it is: probabilities; minutes on a CPU; needs --encoder",
        "bilstm_crf_decay",
        "set trainer.max_epochs: 3, or use a smaller encoder",
        "frozen_transformer",
    ),
    "fine-tuned": Learner(
        "CRF on an encoder, trained together: probabilities; slow without a GPU; needs --encoder",
        "fine_tuning",
        "init --learner frozen, or use a smaller encoder",
        "transformer",
        templates=False,
    ),
}


class Recipe(NamedTuple):
    """A learner, with what it reads besides words.

    Args:
        learner: Name of the learner.
        encoder: Folder or hub id of the encoder of neural learners.
        clusters: A file of word clusters.
        gazetteers: Files of names.

    Example:
        >>> Recipe("pa").overlays("chunks")[0]
        ('pkg:overlays/features#chunks', 'words, affixes, character types, and the column pos of parts of speech')
    """

    learner: str
    encoder: str | None = None
    clusters: str | None = None
    gazetteers: Sequence[str] = ()

    def check(self) -> None:
        """Check the options of the learner.

        Raises:
            InputError: The encoder is missing, is not used, or is a path that is not a folder; or the learner reads
                no clusters or gazetteers.
        """
        learner = LEARNERS[self.learner]
        if learner.encoder and self.encoder is None:
            example = "a folder with a saved model, or a hub id such as google-bert/bert-base-cased"
            raise InputError(f"init: --learner {self.learner} needs --encoder: {example}")
        if self.encoder is not None:
            if not learner.encoder:
                raise InputError(f"init: --learner {self.learner} has no encoder; set --learner frozen or fine-tuned")
            from structperc.encoders.pretrained import encoder_place

            encoder_place(self.encoder)
        if (self.gazetteers or self.clusters) and not learner.templates:
            raise InputError(f"init: --learner {self.learner} reads no clusters and gazetteers; set --learner frozen")

    def overlays(self, task: Task) -> list[tuple[str, str]]:
        """Return the packaged configurations below that of a task, each with a comment."""
        learner = LEARNERS[self.learner]
        features = [] if learner.encoder else [(FEATURES + task, FEATURE_SUMMARIES[task])]
        return [*features, (METHODS + learner.method, learner.summary)]

    def model(self, task: Task) -> list[str]:
        """Return the lines of the part `model` of a configuration."""
        learner = LEARNERS[self.learner]
        features = self._feature_lines(task) if learner.templates else []
        return ["model:", *(f"  {line}" for line in features), *(self._encoder_lines() if learner.encoder else [])]

    def _feature_lines(self, task: Task) -> list[str]:
        neural = LEARNERS[self.learner].encoder != ""
        node, at = recommended_templates(task, neural), [0] if neural else [-1, 0, 1]
        names = {
            f"list{n}" if len(self.gazetteers) > 1 else "list": gazetteer
            for n, gazetteer in enumerate(self.gazetteers, 1)
        }
        if self.clusters:
            node += cluster_templates(task, neural)
        if names:
            node.append({"of": [*names], "at": at})
        lines = [
            f"# templates; add {_flow({'of': ['COLUMN'], 'at': at})} to read a further column",
            f"node: {_flow(node)}",
        ]
        if self.clusters:
            lines.append(f"clusters: {_flow(_part('Clusters', paths=self.clusters))}")
        if names:
            lines.append("gazetteers:")
            lines += [f"  {name}: {_flow(_part('Gazetteer', phrases=file))}" for name, file in names.items()]
        if not (self.clusters or names):
            lines.append("# word clusters and lists of names: see init --clusters FILE --gazetteers FILE")
        return ["features:", "  class_path: structperc.features.FeatureExtractor", "  init_args:"] + [
            f"    {line}" for line in lines
        ]

    def _encoder_lines(self) -> list[str]:
        """Return the lines of the overlay with the encoder that are below the key `model`."""
        from structperc.training.overlays import read_configuration, to_yaml

        text = to_yaml(read_configuration(FEATURES + LEARNERS[self.learner].encoder)["model"])
        return [f"  {line}" for line in ENCODER.sub(lambda _: json.dumps(self.encoder), text).splitlines()]


def recommended_templates(task: Task, neural: bool) -> list[Any]:
    """Return the node templates of the recommended configuration of a task, for a neural or a linear learner."""
    from structperc.training.overlays import read_configuration

    configuration = read_configuration(FROZEN if neural else FEATURES + task)
    return list(configuration["model"]["features"]["init_args"]["node"])


def cluster_templates(task: Task, neural: bool) -> list[Any]:
    """Return the node templates that read word clusters."""
    if neural:
        return [{"of": ["c4", "c6", "c10", "c20"], "at": [0]}]
    return ["clusters", "clusters_documents"] if task == "entities" else ["clusters"]


def _part(name: str, **options: str) -> dict[str, Any]:
    return {"class_path": f"structperc.features.{name}", "init_args": options}


def _flow(value: Any) -> str:
    """Return a value as a line of YAML."""
    import yaml

    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6).strip()


def task_of(found: "Survey") -> Task:
    """Return the task whose templates suit the labels of a file.

    Chunks need a column of parts of speech; without one they are learned as entities.
    """
    if found.scheme == "none":
        return "parts_of_speech"
    return "chunks" if _part_of_speech_column(found) else "entities"


def name_parts_of_speech(found: "Survey") -> "Survey":
    """Return a survey in which the column of parts of speech that templates of chunks read is called pos."""
    column = _part_of_speech_column(found)
    if column in (None, "pos"):
        return found
    columns = {"pos" if role == column else role: values for role, values in found.corpus.columns.items()}
    roles = ["pos" if role == column else role for role in found.roles]
    return found._replace(roles=roles, corpus=replace(found.corpus, columns=columns))


def _part_of_speech_column(found: "Survey") -> str | None:
    """Return the column of parts of speech of a file of chunks; None for other labels, or without one."""
    from structperc.data.survey import CHUNK_OR_ROLE

    segments = found.types()[0] if found.scheme != "none" else {}
    if not segments or not all(CHUNK_OR_ROLE.fullmatch(kind.upper()) for kind in segments):
        return None
    named = [role for role in found.feature_columns if role not in found.further_labels]
    return "pos" if "pos" in named else next(iter(named), None)
