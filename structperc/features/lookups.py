"""Templates as compiled loops look them up."""

from collections.abc import Sequence

import numpy as np

from structperc.features.finder import Finder
from structperc.features.gather import Alone, Joined, Places, count_alone, gathering
from structperc.features.id_lists import IdLists
from structperc.features.keys import NO_FEATURE
from structperc.features.templates import Template, TemplatePart
from structperc.features.windows import View
from structperc.progress import bar

PIECE = 4096  # tokens looked up between two steps of the bar


class Lookups:
    """Gives the features at the tokens of a view.

    Templates of one part become lists of ids, one for each string that stands at a place; the others have keys.

    Args:
        templates: which conjunctions are features.
        finder: gives them ids.
    """

    def __init__(self, templates: Sequence[Template], finder: Finder) -> None:
        self._templates, self._finder = templates, finder
        self._joined = [number for number, template in enumerate(templates) if len(template) != 1]
        self._table = finder.table(self._joined)

    def encode(self, view: View, progress: bool) -> IdLists:
        """Return the ids of the features at each token."""
        strings, alone, joined = view.strings, self._alone_in(view), self._joined_in(view)
        gather = gathering(self._finder.look_up)
        ids = np.empty(count_alone(strings, alone) + len(self._joined) * view.tokens, np.int32)
        ends, end = np.zeros(view.tokens + 1, np.int64), 0
        with bar(None, "encoding features", view.tokens, progress) as shown:
            for first in range(0, view.tokens, PIECE):
                stop = min(first + PIECE, view.tokens)
                end = gather(first, stop, end, strings, alone, joined, ids, ends)
                shown.update(stop - first)
        ids.resize(end, refcheck=False)  # gives back what was not needed, and copies nothing
        return IdLists(ids, ends)

    def _alone_in(self, view: View) -> Alone:
        """Templates of one part; those that meet the same string share its list."""
        groups: dict[tuple[str, int], list[int]] = {}
        for number, template in enumerate(self._templates):
            if len(template) == 1:
                groups.setdefault((view.columns[template[0].attribute], template[0].offset), []).append(number)
        parts = [self._templates[group[0]][0] for group in groups.values()]
        tables = [np.stack([self._found(number, view) for number in group], 1) for group in groups.values()]
        present = [table != NO_FEATURE for table in tables]
        ids = [np.empty(0, np.int32), *(table[mask] for table, mask in zip(tables, present, strict=True))]
        counts = [np.zeros(1, np.int64), *(np.count_nonzero(mask, 1) for mask in present)]
        return Alone(_places(view, parts, list(map(len, tables))), np.concatenate(ids), np.concatenate(counts).cumsum())

    def _found(self, number: int, view: View) -> np.ndarray:
        """The ids of a template of one part for each string at its place."""
        return self._finder.ids(number, view.codes[self._templates[number][0].attribute])

    def _joined_in(self, view: View) -> Joined:
        """Templates of several parts, and the bias, which has none."""
        parts = [part for number in self._joined for part in self._templates[number]]
        codes = [view.codes[part.attribute] for part in parts]
        return Joined(
            _places(view, parts, list(map(len, codes))),
            np.cumsum([0, *(len(self._templates[number]) for number in self._joined)]),
            np.concatenate([np.empty(0, self._finder.code), *codes]),
            self._table,
        )


def _places(view: View, parts: Sequence[TemplatePart], entries: Sequence[int]) -> Places:
    """What parts look at, each of which has so many entries."""
    column = np.array([view.row(part.attribute) for part in parts], np.int64)
    offset = np.array([part.offset for part in parts], np.int64)
    return Places(column, offset, np.cumsum([0, *entries], dtype=np.int64)[:-1])
