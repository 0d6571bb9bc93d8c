"""Learned features in files, without attributes that read documents."""

import hashlib
import json
from typing import Any

from structperc.data.array_folder import ArrayFolder, ArrayWriter
from structperc.features import FeatureExtractor

STRINGS = "strings"
COUNTED = ("vocabularies", "buckets", "bag")  # of the state of features what they have from a corpus


class _NoParts:
    """Builds nothing: there are no parts to be built."""

    trusted: tuple[str, ...] = ()

    def part(self, described: Any, base: type, place: str) -> Any:
        raise AssertionError(f"{place}: a part among features that were kept")


def unlearned(features: FeatureExtractor) -> list[Any]:
    """Return all that decides what features learn of a corpus, plain JSON types."""
    told = {name: value for name, value in features.state_dict_json().items() if name not in COUNTED}
    return [told, None if features.bag is None else features.bag.column]


def learned_digest(features: FeatureExtractor) -> str:
    """Return a checksum of features and their ids."""
    total = hashlib.sha256(_told(features).encode("utf-8", "surrogatepass"))
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
    found = FeatureExtractor.from_state(json.loads(folder.text(STRINGS)), arrays, _NoParts())
    found.progress = like.progress
    return found


def _told(features: FeatureExtractor) -> str:
    return json.dumps(features.state_dict_json())
