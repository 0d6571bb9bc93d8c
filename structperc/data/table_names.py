"""Which files are tables, by their names, and which of their columns are what, by theirs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from structperc.errors import InputError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON = (".jsonl", ".ndjson", ".json")
PARQUET = ".parquet"
FOLDER = "folder"  # of `save_to_disk`

USUAL: Mapping[str, tuple[str, ...]] = {  # names that columns of a role often have, without _, spaces and capitals
    "word": ("word", "words", "token", "tokens", "form"),
    "label": ("label", "labels", "tag", "tags", "nertag", "nertags", "ner", "nerlabel", "nerlabels", "bio", "iob"),
    "text": ("text",),
    "spans": ("spans", "entities", "label", "labels", "annotations"),
    "sentence": ("sentence", "sentence#", "sentenceid", "sentid", "sent", "sentenceidx", "sentencenumber"),
    "document": ("document", "documentid", "docid", "doc"),
}


def kind_of_table(path: Path) -> str | None:
    """Return the form of a table, its suffix before .gz or FOLDER; None for other names."""
    if any((path / name).is_file() for name in ("dataset_info.json", "dataset_dict.json")):
        return FOLDER
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    kind = suffixes[-1].lower() if suffixes else ""
    return kind if kind in (PARQUET, *JSON, *DELIMITERS) else None


def usual_columns(role: str, names: Iterable[str]) -> list[str]:
    """Return the columns that a role often has, whatever their capitals and word breaks are.

    Example:
        >>> usual_columns("sentence", ["Sentence #", "Word", "Tag"])
        ['Sentence #']
    """
    plain = {name: re.sub(r"[\s_-]", "", name.lower()) for name in names}
    return [name for usual in USUAL.get(role, (role,)) for name in plain if plain[name] == usual]


def candidate_columns(row: Mapping[str, Any], roles: Iterable[str]) -> dict[str, list[str]]:
    """Return for each role the columns of a row that have a usual name of it and a value that it can have.

    Example:
        >>> candidate_columns({"id": 1, "text": "Anna left", "label": [[0, 4, "PER"]]}, ["text", "spans", "label"])
        {'text': ['text'], 'spans': ['label'], 'label': []}
    """
    return {role: [name for name in usual_columns(role, row) if _can_be(role, row[name])] for role in roles}


def named_columns(columns: Sequence[str], file: str) -> dict[str, str]:
    """Return the columns of roles that a user names as ROLE=COLUMN. Raises InputError for other names."""
    pairs = [one.partition("=") for one in columns]
    if wrong := [role for role, equals, _ in pairs if not equals]:
        raise InputError(f"{file}: --columns of a table are ROLE=COLUMN, such as word=tokens, not {wrong[0]!r}")
    return {role: column for role, _, column in pairs}


def _can_be(role: str, value: Any) -> bool:
    if role == "text":
        return isinstance(value, str)
    marks = _is_list(value) and all(isinstance(one, Mapping) or _is_list(one) for one in value)
    if role == "spans":
        return marks or isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip().startswith("[{"))
    return not (marks and value) and not isinstance(value, Mapping)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
