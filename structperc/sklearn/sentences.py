"""Parsing of sentences, labels and feature dicts in the forms of scikit-learn and python-crfsuite."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import chain, count, repeat, starmap
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.weights import WEIGHT
from structperc.errors import InputError
from structperc.features.string_arrays import IdLists
from structperc.features.weighted_features import FeatureColumn, WeightedName
from structperc.metrics.seqeval import counted, is_sequence, label_sequences

LISTS = (list, tuple, set, frozenset)
PARTS = (Mapping, *LISTS)
TEXT = (str, bytes)
LARGEST = float(np.finfo(np.float32).max)


def features_of(token: Any, place: str = "features") -> Iterator[tuple[str, float]]:
    """Yield name and weight of each feature of a token.

    In a dict, {"w": "the"} is the feature w:the with weight 1, {"len": 3} is len with weight 3, {"flag": True} is flag
    with weight 1, and {"flag": False} with weight 0. Dicts may be nested: {"next": {"len": 3}} is next:len with weight
    3. Lists and sets contain names: {"has": ["a", "b"]} is has:a and has:b with weight 1.

    Args:
        token: A dict of features, or a list or set of names, as in python-crfsuite.
        place: Begins error messages.

    Raises:
        InputError: A name is not a string, or a weight is not a finite number.

    Example:
        >>> list(features_of({"w": "the", "len": 3, "has": ["a", "b"]}))
        [('w:the', 1.0), ('len', 3.0), ('has:a', 1.0), ('has:b', 1.0)]
        >>> list(features_of(["w=the", "upper"]))
        [('w=the', 1.0), ('upper', 1.0)]
    """
    if not isinstance(token, PARTS):
        raise InputError(f"{place}: expected a dict of features or a list of their names, got {token!r:.40}")
    yield from _features_in(token, "", place)


def _features_in(token: Any, prefix: str, place: str) -> list[WeightedName]:
    if isinstance(token, Mapping):
        return [feature for item in token.items() for feature in _features_of_item(*item, prefix, place)]
    names = sorted(token, key=str) if isinstance(token, set | frozenset) else token  # sets in a reproducible order
    return [(_name(name, prefix, place), 1.0) for name in names]


def _features_of_item(key: Any, value: Any, prefix: str = "", place: str = "features") -> list[WeightedName]:
    name = _name(key, prefix, place)
    if isinstance(value, TEXT):
        return [(f"{name}:{_decode(value)}", 1.0)]
    if isinstance(value, PARTS):
        return _features_in(value, f"{name}:", place)
    return [(name, _weight(value, name, place))]


def _name(name: Any, prefix: str, place: str) -> str:
    if not isinstance(name, TEXT):
        raise InputError(f"{place}: the name of a feature must be a string, not {name!r:.40}")
    return prefix + _decode(name)


def _decode(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode()


def _weight(value: Any, name: str, place: str) -> float:
    if not isinstance(value, (Real, np.bool_)):
        advice = "give a string, a number, a bool, a dict or a list of strings"
        raise InputError(f"{place}, feature {name!r}: {value!r:.40} is a {type(value).__name__}; {advice}")
    if not abs(float(value)) <= LARGEST:
        raise InputError(f"{place}, feature {name!r}: {value!r} is not a finite number; change or remove it")
    return float(value)


WORD, LABEL, FEATURES = "word", "label", "features"  # columns
Form = Literal["words", "columns", "features"]
FORMS = {
    "words": "lists of words",
    "columns": "dicts of columns",
    "features": "lists of feature dicts, or of lists of feature names",
}


class ParsedSentences(NamedTuple):
    """Sentences as flat columns, and their original form; None if there are no tokens."""

    form: Form | None
    columns: dict[str, Sequence[str]]
    lengths: list[int]  # number of tokens of each sentence

    @property
    def corpus(self) -> Corpus:
        """The sentences as a corpus."""
        return Corpus.from_columns(
            self.columns, np.cumsum([0, *self.lengths]).tolist(), range(len(self.lengths)), name="X"
        )


class SentenceList(list[Any]):
    """A list with an item for each of N sentences, which NumPy reads as an array (N,) of objects.

    Nested lists of different lengths are not an array, so that scikit-learn cannot concatenate the folds of
    `cross_val_predict`.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = np.fromiter(self, object, len(self))
        return found if dtype is None else found.astype(dtype)


def parse_sentences(X: Iterable[Any], instead: str = "give [X]", name: str = "X") -> ParsedSentences:
    """Parse sentences of one form: lists of words, dicts of columns, or lists of features for each token.

    Features are the column `features`, with empty words.

    Args:
        X: Sentences.
        instead: Advice for a single sentence.
        name: Name of the argument in messages.

    Raises:
        InputError: Sentences have another form or different forms, or X is a single sentence; the message counts
            sentence, token and feature from 1.
    """
    given = _sentences(X, instead, name)
    forms = [_form(sentence, f"{name}, sentence {n}") for n, sentence in enumerate(given, 1)]
    known = [(n, form) for n, form in enumerate(forms, 1) if form is not None]
    for n, form in known:
        if form != known[0][1]:
            before = f"but sentence {known[0][0]} of {FORMS[known[0][1]]}; give all in one form"
            raise InputError(f"{name}, sentence {n} is of the form {FORMS[form]}, {before}")
    if not known:
        return ParsedSentences(None, {WORD: []}, [0] * len(given))
    number, form = known[0]
    if form == "features":
        features = _feature_column(given, name)
        return ParsedSentences(form, {WORD: [""] * len(features), FEATURES: features}, list(map(len, given)))
    rows = []
    for n, sentence in enumerate(given, 1):
        place = f"{name}, sentence {n}"
        if form == "words":
            rows.append({WORD: _strings(sentence, place, "a word")})
        else:
            rows.append(_parse_columns(sentence, list(given[number - 1]), place))
    columns: dict[str, Sequence[str]] = {role: [value for row in rows for value in row[role]] for role in rows[0]}
    return ParsedSentences(form, columns, [len(row[WORD]) for row in rows])


def _feature_column(sentences: Sequence[Any], name: str) -> FeatureColumn:
    """Return the features of all tokens. Each distinct item of their dicts is parsed once, which is most of the work.

    Items that are equal have the same weight: 1, 1.0 and True.
    """
    tokens = [token for sentence in sentences for token in sentence]
    try:
        return _column_of(tokens, map(_items, tokens))
    except (TypeError, InputError):  # unhashable, since dicts are nested, or invalid: an error with its place
        features = [
            list(features_of(token, f"{name}, sentence {n}, token {t}"))
            for n, sentence in enumerate(sentences, 1)
            for t, token in enumerate(sentence, 1)
        ]
        return _column_of(features, features)


def _column_of(tokens: Sequence[Sized], items: Iterable[Iterable[tuple[Any, Any]]]) -> FeatureColumn:
    """Return the features of tokens that have these items (key, value), as many as their length.

    Raises TypeError for unhashable items, InputError for invalid ones.
    """
    index: defaultdict[tuple[Any, Any], int] = defaultdict(count().__next__)
    counts = np.array(list(map(len, tokens)), np.int64)
    numbers = np.fromiter(map(index.__getitem__, chain.from_iterable(items)), np.int32, int(counts.sum()))
    return FeatureColumn.from_items(starmap(_features_of_item, index), IdLists.from_counts(numbers, counts))


def _items(token: Any) -> Iterable[tuple[Any, Any]]:
    """Return the items of a dict of features, or of one that is equivalent to a list. Raises TypeError for others."""
    if isinstance(token, dict):
        return token.items()
    if isinstance(token, list | tuple):
        return zip(token, repeat(1.0))
    raise TypeError(f"{type(token).__name__} is neither a dict nor a list")


def read_labels(y: Iterable[Any], lengths: Sequence[int], names: tuple[str, str] = ("X", "y")) -> list[list[str]]:
    """Return the labels of sentences of these lengths.

    Args:
        y: Labels of each sentence.
        lengths: Number of tokens of each sentence.
        names: Names of the two arguments in messages.

    Raises:
        InputError: The lengths differ, or a label is not a string.
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


def read_weights(sample_weight: Any, sentences: ParsedSentences) -> list[str]:
    """Return the weight of each sentence as a string.

    Raises InputError if it is not a finite number >= 0 for each sentence, and if the sentences have weights already.
    """
    if WEIGHT in sentences.columns:
        raise InputError(f"X has a column {WEIGHT!r} of token weights; leave out the column or sample_weight")
    try:
        values = np.asarray(sample_weight, np.float32)
    except (TypeError, ValueError):
        raise InputError(f"sample_weight: expected a number for each sentence, got {sample_weight!r:.40}") from None
    if values.shape != (len(sentences.lengths),):
        counts = f"X has {counted(len(sentences.lengths), 'sentence')}, sample_weight the shape {values.shape}"
        raise InputError(f"{counts}; give one number for each sentence")
    for n, value in enumerate(values.tolist(), 1):
        if not 0 <= value < np.inf:
            raise InputError(f"sample_weight, sentence {n}: {value} must be a finite number >= 0")
    return list(map(str, values.tolist()))


def _sentences(X: Any, instead: str, name: str) -> list[Any]:
    """Return X as a list. Raises InputError for a single sentence."""
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
    """Return True for a dict of columns, False for the features of a token."""
    return is_sequence(sentence.get(WORD)) or (bool(sentence) and all(map(is_sequence, sentence.values())))


def _form(sentence: Any, place: str) -> Form | None:
    """Return the form of a sentence; None without tokens."""
    if isinstance(sentence, Mapping):
        return "columns"
    if not is_sequence(sentence):
        raise InputError(f"{place} is {sentence!r:.40}; expected a list of tokens; split it into words")
    if not len(sentence):
        return None
    return "words" if isinstance(sentence[0], str) else "features"


def _parse_columns(sentence: Any, roles: Sequence[str], place: str) -> dict[str, list[str]]:
    found = sentence if isinstance(sentence, Mapping) else {role: [] for role in roles}
    if LABEL in found:
        raise InputError(f"{place} has a column {LABEL!r}; give labels as y")
    if WORD not in found or set(found) != set(roles):
        wanted = ", ".join(dict.fromkeys([WORD, *roles]))
        raise InputError(f"{place} has columns {', '.join(map(str, found)) or 'none'}; give {wanted}")
    columns = {}
    for role in roles:
        if not is_sequence(found[role]):
            raise InputError(f"{place}: column {role!r} is {found[role]!r:.40}; give a list of strings")
        columns[role] = _strings(found[role], f"{place}, column {role!r}", "a value")
    for role in roles:
        if len(columns[role]) != len(columns[WORD]):
            raise InputError(f"{place}: {len(columns[WORD])} words, but {len(columns[role])} of {role!r}; correct it")
    return columns


def _strings(values: Any, place: str, what: str) -> list[str]:
    for t, value in enumerate(values, 1):
        if not isinstance(value, str):
            raise InputError(f"{place}, token {t}: {what} must be a string, not {value!r:.40}")
    return list(map(str, values))
