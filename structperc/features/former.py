"""The states of extractors that were saved before some of their entries, such as bags or hashes, as those of today."""

from collections.abc import Mapping
from typing import Any


def present_state(strings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state of an extractor with the entries of today; one that has them already is returned as it is.

    There was one inventory of clusters or none, neighbours were looked for in the sequence, there was no bag, and all
    features had an index. States without attributes of a user's own are saved without that entry.
    """
    strings = {"bag": None, "hash": None, "buckets": {}, "attributes": {}, **strings}
    if "documents" in strings or "within" in strings:
        return strings
    clusters = strings.get("clusters")
    named = {} if clusters is None else {"c": clusters}
    return {**strings, "clusters": named, "documents": {}, "within": "sequence"}
