"""The names of a head's labels: from what a user has, into saved states, and compared when a state is loaded."""

import json
from collections.abc import Iterable, Mapping
from itertools import zip_longest

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.errors import InputError

EXPECTED = "give a LabelSet, the names in the order of the logits, or id2label, such as {0: 'O', 1: 'B-PER'}"


def label_set(labels: LabelSet | Iterable[str] | Mapping[int, str] | Mapping[str, str], scheme: str) -> LabelSet:
    """Return labels as a LabelSet: a LabelSet as it is, or names of a scheme, in order or by number.

    Raises:
        InputError: something else; numbers that are not 0..L-1, each once; what a LabelSet refuses.
    """
    if isinstance(labels, LabelSet):
        return labels
    if isinstance(labels, Mapping):
        labels = _in_order(labels)
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"labels: got {labels!r}; {EXPECTED}")
    names = tuple(labels)
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise InputError(f"labels: label {place} is {name!r}, which is not a name; {EXPECTED}")
    return LabelSet(names, scheme)


def _in_order(id2label: Mapping[int, str] | Mapping[str, str]) -> list[str]:
    """The names by number, which may be a string as in JSON."""
    names: dict[int, str] = {}
    for key, name in id2label.items():
        if isinstance(key, bool) or not str(key).isdecimal():
            raise InputError(f"labels: {key!r} is not a label's number (label2id in place of id2label?); {EXPECTED}")
        if int(key) in names:
            raise InputError(f"labels: number {int(key)} is there twice, as {names[int(key)]!r} and {name!r}")
        names[int(key)] = name
    for number in range(len(names)):
        if number not in names:
            raise InputError(
                f"labels: there is no label {number}, but {len(names)} labels up to {max(names)}; "
                f"number them 0..{len(names) - 1}, as the logits are"
            )
    return [names[number] for number in range(len(names))]


def to_state(labels: LabelSet) -> Tensor:
    """Return names and scheme as UTF-8 JSON in a uint8 tensor, as files of tensors alone can hold it."""
    text = json.dumps({"scheme": labels.scheme, "labels": labels.names}, ensure_ascii=False)
    return torch.tensor(list(text.encode()), dtype=torch.uint8)


def check_state(state: Tensor, labels: LabelSet) -> None:
    """Raise InputError, with the first difference, unless a state from `to_state` has these labels."""
    try:
        saved = json.loads(bytes(state.detach().to("cpu", torch.uint8).tolist()))
        scheme, names = saved["scheme"], saved["labels"]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError("state: the names of the labels cannot be read; save the state again") from None
    advice = "make the head with the labels that the state was saved with, in their order"
    for number, (old, new) in enumerate(zip_longest(names, labels.names)):
        if old != new:
            here, there = ("missing" if name is None else name for name in (new, old))
            raise InputError(f"state: label {number} is {there} in the saved state, but {here} in this head; {advice}")
    if scheme != labels.scheme:
        raise InputError(f"state: the scheme of the saved labels is {scheme}, that of this head {labels.scheme}")
