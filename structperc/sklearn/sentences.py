"""Sentences and labels as users of scikit-learn hold them, as columns of strings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from structperc.errors import InputError
from structperc.features import bag_string
from structperc.metrics.label_sequences import counted, is_listed, label_sequences
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


def read_sentences(X: Iterable[Any], instead: str = "give [X]", name: str = "X") -> Sentences:
    """Return sentences that are all of one form: lists of words, dicts of columns, or lists of features for each token.

    Features become strings of the column `features`, whose words are empty. Raises InputError, with sentence, token and
    feature counted from 1, for sentences that are none of these or not of one form, and for a single sentence, where
    `instead` says what to give. `name` is that of the argument.
    """
    given = _sentences(X, instead, name)
    forms = [_form(sentence, f"{name}, sentence {n}") for n, sentence in enumerate(given, 1)]
    known = [(n, form) for n, form in enumerate(forms, 1) if form is not None]
    for n, form in known:
        if form != known[0][1]:
            before = f"but sentence {known[0][0]} of {FORMS[known[0][1]]}; give all in one form"
            raise InputError(f"{name}, sentence {n} is of the form {FORMS[form]}, {before}")
    if not known:
        return Sentences(None, [{WORD: []} for _ in given])
    form = known[0][1]
    read = {"words": _words, "columns": _columns, "features": _features}[form]
    roles = list(given[known[0][0] - 1]) if form == "columns" else [WORD]
    return Sentences(form, [read(one, roles, f"{name}, sentence {n}") for n, one in enumerate(given, 1)])


def read_labels(y: Iterable[Any], lengths: Sequence[int], names: tuple[str, str] = ("X", "y")) -> list[list[str]]:
    """Return labels of sentences of these lengths; `names` are those of the two arguments.

    Raises InputError for other lengths, and for labels that are not strings.
    """
    labels = label_sequences(y, names[1])
    if len(labels) != len(lengths):
        counts = f"{names[0]} has {counted(len(lengths), 'sentence')}, {names[1]} has {len(labels)}"
        raise InputError(f"{counts}; give a list of labels for each sentence")
    for n, (own, length) in enumerate(zip(labels, lengths, strict=True), 1):
        if len(own) != length:
            counts = f"{names[0]} has {counted(length, 'token')}, {names[1]} has {counted(len(own), 'label')}"
            raise InputError(f"sentence {n}: {counts}; give one for each")
    return labels


def _sentences(X: Any, instead: str, name: str) -> list[Any]:
    """The sentences of X, which must not be a single one."""
    if isinstance(X, Mapping):
        raise InputError(f"{name} is one sentence; {instead}")
    if isinstance(X, str | bytes) or hasattr(X, "columns") or not isinstance(X, Iterable):
        raise InputError(f"{name} is a list of sentences, not a {type(X).__name__}; a sentence is a list of words")
    given = list(X)
    words = bool(given) and all(isinstance(one, str) for one in given)
    if words and any(" " in one for one in given):
        raise InputError(f"{name}, sentence 1 is the text {given[0]!r:.40}; split each sentence into a list of words")
    tokens = bool(given) and all(isinstance(one, Mapping) for one in given) and not all(map(_has_columns, given))
    if words or tokens:
        raise InputError(f"{name} is one sentence; {instead}")
    return given


def _has_columns(sentence: Mapping[str, Any]) -> bool:
    """Whether a dict is one of columns, and not one of the features of a token."""
    return is_listed(sentence.get(WORD)) or (bool(sentence) and all(map(is_listed, sentence.values())))


def _form(sentence: Any, place: str) -> Form | None:
    """The form of a sentence, None for one without tokens."""
    if isinstance(sentence, Mapping):
        return "columns"
    if not is_listed(sentence):
        raise InputError(f"{place} is {sentence!r:.40}; a sentence is a list of tokens, so split it into words")
    if not len(sentence):
        return None
    return "words" if isinstance(sentence[0], str) else "features"


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
        if not is_listed(found[role]):
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
