"""Word clusters: a word's path in a hierarchy of classes, used by its prefixes."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from structperc.data.json_data import check_fields
from structperc.data.text_files import read_lines
from structperc.errors import InputError
from structperc.features.attributes import Attribute


class Clusters:
    """Bit paths of words, as Brown clusters are distributed (Koo, Carreras & Collins 2008).

    `paths` is a file of lines "path TAB word TAB frequency" (UTF-8; the frequency may be missing) or a
    mapping from word to path. A word is looked up as it stands and, with `lower_case`, down-cased if that
    fails.

    Raises InputError for a file or mapping without words; with file:line for a line of another form, and for a word
    that has two paths.
    """

    def __init__(self, paths: str | Path | Mapping[str, str], lower_case: bool = True) -> None:
        self.paths = _read_clusters(paths) if isinstance(paths, str | Path) else dict(paths)
        self.lower_case = lower_case
        if not self.paths:
            place = paths if isinstance(paths, str | Path) else "clusters"
            raise InputError(f"{place}: there are no words in it; give lines of bit path TAB word")

    def path(self, token: str) -> str:
        """Return the full bit path of a word, "" if the word is in no cluster."""
        found = self.paths.get(token, "")
        return self.paths.get(token.lower(), "") if self.lower_case and not found else found

    def attribute(self, name: str, key: str = "c") -> Attribute | None:
        """Return the attribute c4, c6, ... of clusters called c: so many leading bits, all of a shorter path.

        None for any other name.
        """
        match = re.fullmatch(f"{re.escape(key)}([1-9][0-9]*)", name)
        bits = int(match[1]) if match else 0
        return partial(self._prefix, bits) if match else None

    def _prefix(self, bits: int, token: str) -> str:
        return self.path(token)[:bits]

    def to_json(self) -> dict[str, Any]:
        """Return the clusters as {"words": {path: [words]}, "lower_case": ...}."""
        words: dict[str, list[str]] = {}
        for word, path in self.paths.items():
            words.setdefault(path, []).append(word)
        return {"words": words, "lower_case": self.lower_case}

    @classmethod
    def from_json(cls, state: Mapping[str, Any], place: str = "clusters") -> "Clusters":
        """Rebuild clusters from `to_json`; InputError, naming the place, for anything else, such as a path."""
        check_fields(state, {"words": dict[str, list[str]], "lower_case": bool}, place)
        if wrong := [path for path in state["words"] if not re.fullmatch("[01]+", path)]:
            raise InputError(f"{place}.words: {wrong[0]!r} is not a bit path")
        return cls({word: path for path, words in state["words"].items() for word in words}, state["lower_case"])


def _read_clusters(path: str | Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        if line:
            word, bits = _entry(path, number, line)
            if found.setdefault(word, bits) != bits:
                raise InputError(f"{path}:{number}: {word!r} has the path {bits}, but {found[word]} above; keep one")
    return found


def _entry(path: str | Path, number: int, line: str) -> tuple[str, str]:
    fields = line.split("\t")
    if len(fields) not in (2, 3) or not re.fullmatch("[01]+", fields[0]) or not fields[1].strip(" "):
        raise InputError(f"{path}:{number}: expected bit path TAB word TAB frequency, got {line!r}")
    return fields[1], fields[0]
