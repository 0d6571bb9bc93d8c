"""Learned features in files."""

import json
from collections.abc import Mapping
from typing import Any

import xxhash

from structperc.data.array_folder import ArrayFolder, ArrayWriter
from structperc.errors import InputError
from structperc.features import DocumentAttribute, FeatureExtractor
from structperc.public_names import path_of

LIBRARY = __name__.partition(".")[0]
PLACE = "features.documents."  # of an attribute of documents in what `FeatureExtractor.from_state` reads
STRINGS = "strings"
COUNTED = ("vocabularies", "buckets", "bag")  # of the state of features what they have from a corpus


class _Given:
    """Gives attributes of documents, which have learned nothing, in place of building them anew."""

    trusted: tuple[str, ...] = ()

    def __init__(self, attributes: Mapping[str, DocumentAttribute]) -> None:
        self._attributes = attributes

    def part(self, described: Any, base: type, place: str) -> Any:
        """Return the one that a place names."""
        return self._attributes[place.removeprefix(PLACE)]

    def function(self, path: Any, place: str) -> Any:
        """Refuse: features with functions of a user's own are not kept."""
        raise InputError(f"{place}: {path} is not kept")


def can_be_kept(features: FeatureExtractor) -> bool:
    """Return whether the state of features, a corpus and the version of the library decide all ids.

    Attributes of documents that learn, such as the labels of first models, and those of other packages may look at
    anything else; so may functions of a user's own.
    """
    return not features.attributes and all(
        type(one).learn is DocumentAttribute.learn and path_of(type(one)).partition(".")[0] == LIBRARY
        for one in features.documents.values()
    )


def unlearned(features: FeatureExtractor) -> list[Any]:
    """Return all that decides what features learn of a corpus, plain JSON types."""
    told = {name: value for name, value in features.state_dict_json().items() if name not in COUNTED}
    return [told, None if features.bag is None else features.bag.column]


def learned_digest(features: FeatureExtractor) -> str:
    """Return a checksum of features and their ids."""
    total = xxhash.xxh3_128(_told(features).encode("utf-8", "surrogatepass"))
    for name, array in sorted(features.state_arrays().items()):
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        total.update(array)  # type: ignore[arg-type]
    return total.hexdigest()


def write_features(writer: ArrayWriter, features: FeatureExtractor) -> None:
    """Write features and their ids."""
    writer.append_text(STRINGS, _told(features))
    arrays = features.state_arrays()
    for name, array in arrays.items():
        writer.append(name, array)
    writer.finish({"arrays": list(arrays)})


def filed_features(folder: ArrayFolder, like: FeatureExtractor) -> FeatureExtractor:
    """Return the features that `write_features` has written; what they show of progress is as of `like`."""
    arrays = {name: folder.array(name).whole() for name in folder.about["arrays"]}
    found = FeatureExtractor.from_state(json.loads(folder.text(STRINGS)), arrays, _Given(like.documents))
    found.progress = like.progress
    return found


def _told(features: FeatureExtractor) -> str:
    return json.dumps(features.state_dict_json())
