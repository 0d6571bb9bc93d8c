"""The features that have ids: those of templates by kind, and those that a bag lists."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structperc.data.corpus import Corpus
from structperc.features.bag import Bag
from structperc.features.id_lists import FeatureIds
from structperc.features.numbering import Index, Numbering
from structperc.features.templates import Template, template_name
from structperc.features.windows import View


class KnownFeatures:
    """Node features, of templates and then of a bag, and edge features.

    Args:
        indices: by kind, "node" and, if there are templates for them, "edge": the same object where both are the same;
            none before training data were read.
        bag: what data list; None: nothing.
    """

    def __init__(self, indices: Mapping[str, Index], bag: Bag | None) -> None:
        self.bag, self._indices = bag, dict(indices)

    @classmethod
    def restored(
        cls,
        numbering: Numbering,
        templates: Mapping[str, Sequence[Template]],
        bag: Bag | None,
        state: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
    ) -> "KnownFeatures":
        """Return the features that told the strings of `state` and the arrays, beside others.

        Raises InputError for what does not fit together.
        """
        told = state["buckets"]
        indices = {
            kind: numbering.index(templates[kind], told.get(kind, {}), own, f"features.{kind}")
            for kind in templates
            if (own := within(arrays, f"{kind}_"))
        }
        if templates["edge"]:
            indices.setdefault("edge", indices["node"])
        if bag is not None:
            bag = bag.restored(state["bag"], told.get("bag", {}), within(arrays, "bag_"), "features.bag")
        return cls(indices, bag)

    def index(self, kind: str) -> Index:
        """Return the index of a kind. Raises ValueError where there is none, RuntimeError where there is none yet."""
        if not self._indices:
            raise RuntimeError("the feature extractor has no index yet; call fit with the training corpus first")
        if kind not in self._indices:
            raise ValueError(f"there are no {kind!r} features; kinds are {', '.join(self._indices)}")
        return self._indices[kind]

    @property
    def shared(self) -> bool:
        """Whether edges have the features of the nodes' templates, with the same ids."""
        return "edge" in self._indices and self._indices["edge"] is self._indices["node"]

    def size(self, kind: str) -> int:
        """Return the number of features of a kind."""
        return len(self.index(kind)) + self._listed(kind)

    def ids(self, view: View, corpus: Corpus, progress: bool) -> FeatureIds:
        """Return the ids at each token of a corpus, which the view shows."""
        node, edge = self.index("node"), self._indices.get("edge")
        found = node.encode(view, progress)
        nodes = found if self.bag is None else found.beside(self.bag.encode(corpus, len(node)))
        if edge is None:
            return FeatureIds(nodes, None)
        return FeatureIds(nodes, found if edge is node else edge.encode(view, progress))

    def names(self, kind: str, rows: np.ndarray | None) -> list[str]:
        """Return the features with these ids, ascending (n,); None: all."""
        index = self.index(kind)
        wanted = np.arange(self.size(kind)) if rows is None else rows
        own = wanted[wanted < len(index)]
        listed = wanted[len(own) :] - len(index)
        return [*index.names(own), *(self.bag.names(listed) if self.bag is not None and len(listed) else [])]

    def template_sizes(self, kind: str) -> list[tuple[str, int]]:
        """Return the templates of a kind, and then the bag, with their numbers of features; none where they mix."""
        index = self.index(kind)
        sizes = [*zip(map(template_name, index.templates), index.sizes(), strict=False)]
        listed = [(self.bag.column, len(self.bag))] if self.bag is not None and kind == "node" else []
        return [*sizes, *listed] if len(sizes) == len(index.templates) else []

    def told(self) -> list[str]:
        """Return what is to be known about hashed features, a line for each kind; nothing about indexed ones."""
        lines = {name: one.told() for name, one in self._apart().items()}
        return [f"{name} features: {line}" for name, line in lines.items() if line]

    def subset(self, kind: str, keep: np.ndarray) -> "KnownFeatures":
        """Return only those features of a kind where keep (F,) bool is true, renumbered."""
        index = self.index(kind)
        if keep.shape != (self.size(kind),):
            raise ValueError(f"keep has shape {keep.shape}; there are {self.size(kind)} {kind} features")
        indices = _shared(self._indices | {kind: index.subset(keep[: len(index)])})
        listed = self.bag is not None and kind == "node"
        return KnownFeatures(
            indices, self.bag.subset(keep[len(index) :]) if self.bag is not None and listed else self.bag
        )

    def strings(self) -> dict[str, dict[str, Any]]:
        """Return the strings of hashed features by name, "node", "edge" and "bag"."""
        return {name: strings for name, one in self._apart().items() if (strings := one.strings())}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the numbers of the state by name; edges have none where they are the same features as the nodes."""
        parts = self._apart().items()
        return {f"{name}_{part}": array for name, one in parts for part, array in one.arrays().items()}

    def _listed(self, kind: str) -> int:
        return len(self.bag) if self.bag is not None and kind == "node" else 0

    def _apart(self) -> dict[str, Index | Bag]:
        """What has ids of its own, by name."""
        alone = {"node": self._indices["node"]} if self.shared else self._indices
        apart: dict[str, Index | Bag] = {**alone}
        return apart if self.bag is None else {**apart, "bag": self.bag}


def within(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _shared(indices: dict[str, Index]) -> dict[str, Index]:
    """Make edges use the index of the nodes where both are the same, so that nothing is looked up twice."""
    same = "edge" in indices and indices["edge"].same(indices["node"])
    return dict.fromkeys(indices, indices["node"]) if same else indices
