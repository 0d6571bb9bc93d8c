"""Sentences and labels as users of scikit-learn hold them, as columns of strings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from structperc.errors import InputError
from structperc.features import bag_string
from structperc.sklearn.feature_dicts import features_of

WORD, LABEL, FEATURES = "word", "label", "features"  # columns
Form = Literal["words", "columns", "features"]
FORMS = {
    "words": "lists of words",
    "columns": "dicts of columns",
    "features": "lists of feature dicts, or of lists of feature names",
}


class Sentences(NamedTuple):
    """Sentences, each as {column: strings}, and the form that they came in; None where none has a token."""

    form: Form | None
    rows: list[dict[str, list[str]]]

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each sentence."""
        return [len(row[WORD]) for row in self.rows]


def read_sentences(X: Iterable[Any]) -> Sentences:
    """Return sentences that are all of one form: lists of words, dicts of columns, or lists of features for each token.

    Features become strings of the column `features`, whose words are empty. Raises InputError, with sentence, token and
    feature counted from 1, for sentences that are none of these or not of one form.
    """
    if isinstance(X, str | bytes | Mapping):
        raise InputError(f"X is a list of sentences, not a {type(X).__name__}; put a single sentence into a list")
    given = list(X)
    forms = [_form(sentence, f"X, sentence {n}") for n, sentence in enumerate(given, 1)]
    known = [(n, form) for n, form in enumerate(forms, 1) if form is not None]
    for n, form in known:
        if form != known[0][1]:
            before = f"but sentence {known[0][0]} of {FORMS[known[0][1]]}; give all in one form"
            raise InputError(f"X, sentence {n} is of the form {FORMS[form]}, {before}")
    if not known:
        return Sentences(None, [{WORD: []} for _ in given])
    form = known[0][1]
    read = {"words": _words, "columns": _columns, "features": _features}[form]
    roles = list(given[known[0][0] - 1]) if form == "columns" else [WORD]
    return Sentences(form, [read(one, roles, f"X, sentence {n}") for n, one in enumerate(given, 1)])


def read_labels(y: Iterable[Any], lengths: Sequence[int]) -> list[list[str]]:
    """Return labels of sentences of these lengths.

    Raises InputError for other lengths, and for labels that are no strings.
    """
    if y is None or isinstance(y, str | bytes | Mapping):
        raise InputError(f"y is a list with the labels of each sentence, not {y!r:.40}")
    given = list(y)
    if len(given) != len(lengths):
        raise InputError(f"X has {len(lengths)} sentences, y has {len(given)}; give a list of labels for each sentence")
    for n, (labels, length) in enumerate(zip(given, lengths, strict=True), 1):
        if isinstance(labels, str) or not _listed(labels):
            raise InputError(f"y, sentence {n}: the labels of a sentence are a list of strings, not {labels!r:.40}")
        if len(labels) != length:
            raise InputError(f"sentence {n}: X has {length} tokens, y has {len(labels)} labels; give one for each")
        for t, label in enumerate(labels, 1):
            if not isinstance(label, str) or not label:
                raise InputError(f"y, sentence {n}, token {t}: a label is a string, not {label!r:.40}; write its name")
    return [list(map(str, labels)) for labels in given]


def _form(sentence: Any, place: str) -> Form | None:
    """The form of a sentence, None for one without tokens."""
    if isinstance(sentence, Mapping):
        return "columns"
    if isinstance(sentence, str | bytes) or not _listed(sentence):
        raise InputError(f"{place} is {sentence!r:.40}; a sentence is a list of tokens, so split it into words")
    if not len(sentence):
        return None
    return "words" if isinstance(sentence[0], str) else "features"


def _listed(value: Any) -> bool:
    """Whether it is a list of things, also a tuple or an array."""
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, Mapping)


def _words(sentence: Any, roles: Sequence[str], place: str) -> dict[str, list[str]]:
    return {WORD: _strings(sentence, place, "a word")}


def _columns(sentence: Any, roles: Sequence[str], place: str) -> dict[str, list[str]]:
    found = sentence if isinstance(sentence, Mapping) else {role: [] for role in roles}
    if LABEL in found:
        raise InputError(f"{place} has a column {LABEL!r}; labels are given as y")
    if WORD not in found or set(found) != set(roles):
        wanted = ", ".join(dict.fromkeys([WORD, *roles]))
        raise InputError(f"{place} has columns {', '.join(map(str, found)) or 'none'}; give {wanted}")
    columns = {}
    for role in roles:
        if isinstance(found[role], str) or not _listed(found[role]):
            raise InputError(f"{place}: column {role!r} is {found[role]!r:.40}; give a list of strings")
        columns[role] = _strings(found[role], f"{place}, column {role!r}", "a value")
    for role in roles:
        if len(columns[role]) != len(columns[WORD]):
            raise InputError(f"{place}: {len(columns[WORD])} words, but {len(columns[role])} of {role!r}; correct it")
    return columns


def _features(sentence: Any, roles: Sequence[str], place: str) -> dict[str, list[str]]:
    strings = [bag_string(features_of(token, f"{place}, token {t}")) for t, token in enumerate(sentence, 1)]
    return {WORD: [""] * len(strings), FEATURES: strings}


def _strings(values: Any, place: str, what: str) -> list[str]:
    for t, value in enumerate(values, 1):
        if not isinstance(value, str):
            raise InputError(f"{place}, token {t}: {what} is a string, not {value!r:.40}")
    return list(map(str, values))
