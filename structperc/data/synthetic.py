"""The embedded corpus: generated documents with ambiguous names that only non-local evidence resolves.

Two names of each document are its topics. The class of a topic (person, place or company, with equal probabilities) is
drawn for each document, so that the name is no evidence. A document has

* a headline in capitals, which contains the first topic with probability a (`ambiguity`);
* one clear mention of each topic ("Mr. X", "police in X", "X Corp.") and two more, each in a sentence that fits every
  class ("nothing was heard from X") with probability a, and clear otherwise;
* with probability a, a list "in X, Y and Z" of a topic and two more names of its class: only X is clear;
* two sentences with two names each, whose class is clear from their form or context.

That is 10 + 4a names on average. For 7a of them two tokens to either side are not sufficient: predicting one class for
all is right for a third. So the segment F1 of local evidence is at most

    1 - (2/3) * 7a / (10 + 4a),    0.806 for a = 0.5,

while the other mentions in the document (the same name, alone, inside a longer one, or in capitals) and the first name
of the list are sufficient for all. Splits share only some names. The column `evidence` is the kind of evidence for each
name: "local", "list" or "document"; it is "O" outside names.
"""

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import BEGIN, parse_tag
from structperc.errors import InputError

if TYPE_CHECKING:
    from datasets import Dataset

CLASSES = ("PER", "LOC", "ORG")  # possible classes of an ambiguous name
ROLES = ("word", "pos", "chunk", "label", "evidence")
INVENTORIES = 100
MAX_DOCUMENTS = 1_000_000
SentenceColumns = dict[str, list[str]]

_ONSETS = (*"bdfgklmnprstvz", "br", "dr", "gr", "kr", "st", "tr")
_VOWELS = tuple("aeiou")
_CODAS = (*"lnrsm", "nd")
_GIVEN = ("Anna", "Boris", "Clara", "David", "Elena", "Frank", "Greta", "Henry", "Irene", "Jakob", "Karen")
_ENDINGS = {
    "PER": ("sen", "ski", "ez"),
    "LOC": ("ville", "burg", "stead"),
    "ORG": ("Inc.", "Group", "Union"),
    "MISC": ("ian", "ese"),
}
_KINDS = ("ambiguous", "PER", "LOC", "ORG", "MISC")  # kinds of stems
_SIZE = 80  # stems of a kind in an inventory
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CHUNKS = {
    **dict.fromkeys(("DT", "JJ", "JJR", "NN", "NNS", "NNP", "CD", "PRP", "PRP$"), "NP"),
    **dict.fromkeys(("VBD", "VBZ", "VBP", "VB", "VBG", "MD"), "VP"),
    **dict.fromkeys(("IN", "TO"), "PP"),
    "RB": "ADVP",
}

# {X}: a single name; {LONG}: a longer name that contains it and shows its class; {Y}, {Z}: other names of a list;
# {PER}, {LOC}, {ORG}, {MISC}: names whose form shows their class. The two tokens before and after {X} in NEUTRAL and
# HEADLINES, and {Y} and {Z}, do not depend on the class.

HEADLINES = (
    "{X} faces/VBZ new/JJ questions/NNS",
    "New/JJ doubts/NNS over/IN {X}",
    "Markets/NNS wait/VBP for/IN {X}",
    "Ministers/NNS blame/VBP {X} again/RB",
)
NAMELESS_HEADLINES = (
    "Markets/NNS fall/VBP as/IN talks/NNS end/VBP",
    "Storm/NN closes/VBZ roads/NNS and/CC schools/NNS",
    "Ministers/NNS agree/VBP on/IN new/JJ budget/NN",
)
CLEAR = {
    "PER": (
        "Mr./NNP {X} said/VBD the/DT plan/NN was/VBD ready/JJ ./.",
        "The/DT lawyer/NN of/IN Mrs./NNP {X} denied/VBD the/DT report/NN on/IN {DAY} ./.",
        "Doctors/NNS told/VBD Mr./NNP {X} to/TO rest/VB for/IN two/CD weeks/NNS ./.",
        "{LONG} resigned/VBD after/IN a/DT long/JJ dispute/NN ./.",
        "On/IN {DAY} {LONG} married/VBD for/IN the/DT second/JJ time/NN ./.",
    ),
    "LOC": (
        "Police/NNS in/IN {X} closed/VBD several/JJ roads/NNS on/IN {DAY} ./.",
        "Heavy/JJ snow/NN fell/VBD near/IN {X} overnight/RB ./.",
        "The/DT streets/NNS of/IN {X} were/VBD quiet/JJ after/IN the/DT vote/NN ./.",
        "{LONG} lies/VBZ close/RB to/TO the/DT border/NN ./.",
        "Farmers/NNS across/IN {LONG} expect/VBP a/DT poor/JJ harvest/NN ./.",
    ),
    "ORG": (
        "Shares/NNS of/IN {X} fell/VBD sharply/RB in/IN early/JJ trading/NN ./.",
        "The/DT chairman/NN of/IN {X} sold/VBD its/PRP$ two/CD plants/NNS ./.",
        "Workers/NNS at/IN {X} accepted/VBD the/DT wage/NN offer/NN on/IN {DAY} ./.",
        "{LONG} reported/VBD a/DT higher/JJR profit/NN ./.",
        "Analysts/NNS rated/VBD {LONG} a/DT buy/NN ./.",
    ),
}
NEUTRAL = (
    "Questions/NNS about/IN {X} remained/VBD open/JJ ./.",
    "Critics/NNS said/VBD {X} had/VBD been/VBD slow/JJ to/TO react/VB ./.",
    "{X} did/VBD not/RB comment/VB on/IN {DAY} ./.",
    "The/DT report/NN mentions/VBZ {X} twice/RB ./.",
    "According/VBG to/TO {X} ,/, talks/NNS will/MD resume/VB on/IN {DAY} ./.",
    "A/DT dispute/NN over/IN {X} dominated/VBD the/DT meeting/NN ./.",
    "For/IN {X} ,/, the/DT news/NN came/VBD late/RB ./.",
    "Nothing/NN was/VBD heard/VBD from/IN {X} until/IN {DAY} ./.",
)
LISTS = {
    "PER": "He/PRP met/VBD Mr./NNP {X} ,/, {Y} and/CC {Z} on/IN {DAY} ./.",
    "LOC": "Rain/NN fell/VBD in/IN {X} ,/, {Y} and/CC {Z} on/IN {DAY} ./.",
    "ORG": "Traders/NNS sold/VBD shares/NNS of/IN {X} ,/, {Y} and/CC {Z} on/IN {DAY} ./.",
}
BACKGROUND = (
    "{MISC} officials/NNS met/VBD {PER} on/IN {DAY} ./.",
    "{PER} of/IN {ORG} spoke/VBD for/IN almost/RB an/DT hour/NN ./.",
    "{ORG} opened/VBD an/DT office/NN in/IN {LOC} last/JJ week/NN ./.",
    "The/DT {MISC} team/NN lost/VBD to/TO {LOC} by/IN three/CD goals/NNS ./.",
    "{MISC} troops/NNS left/VBD {LOC} late/RB on/IN {DAY} ./.",
    "{PER} flew/VBD to/TO {LOC} for/IN a/DT holiday/NN ./.",
    "The/DT {MISC} bank/NN lent/VBD {ORG} 40/CD million/CD dollars/NNS ./.",
)


def synthetic_splits(
    seed: int = 0,
    train: int = 300,
    dev: int = 100,
    test: int = 100,
    *,
    ambiguity: float = 0.5,
    unseen: float = 0.3,
) -> "dict[str, Dataset]":
    """Generate the splits of the embedded corpus.

    Each split also has names that no other split has. Returns rows of sentences for "train", "dev" and "test", with the
    columns `word`, `pos`, `chunk`, `label` (IOB2) and `evidence`.

    Args:
        seed: equal arguments give equal rows.
        train: number of documents for training.
        dev: number of documents for development.
        test: number of documents for testing.
        ambiguity: probability that the sentence of a name fits every class, a in the description of the module.
        unseen: share of names that are in no other split.

    Raises:
        InputError: an argument is out of range.

    Example:
        >>> splits = synthetic_splits(train=2, dev=1, test=1)
        >>> list(splits), len(set(splits["train"]["document"]))
        (['train', 'dev', 'test'], 2)
    """
    sizes = {"train": train, "dev": dev, "test": test}
    return {
        split: synthetic_corpus(seed, size, ambiguity=ambiguity, unseen=unseen, inventory=number)
        for number, (split, size) in enumerate(sizes.items())
    }


def synthetic_corpus(
    seed: int = 0, documents: int = 300, *, ambiguity: float = 0.5, unseen: float = 0.3, inventory: int = 0
) -> "Dataset":
    """Return rows of sentences with the columns `word`, `pos`, `chunk`, `label` (IOB2) and `evidence`.

    `seed`: equal arguments give equal rows. `documents`: number of documents. `ambiguity`: the probability a in the
    description of the module. `unseen`: share of names that are in no other inventory. `inventory`: number of the set
    of names. Raises InputError: an argument is out of range.
    """
    if not 1 <= documents <= MAX_DOCUMENTS:
        raise InputError(f"documents must be between 1 and {MAX_DOCUMENTS}, not {documents}")
    if not 0 <= inventory < INVENTORIES:
        raise InputError(f"inventory must be between 0 and {INVENTORIES - 1}, not {inventory}")
    for option, value in (("ambiguity", ambiguity), ("unseen", unseen)):
        if not 0 <= value <= 1:
            raise InputError(f"{option} must be between 0 and 1, not {value}")
    generator = _Generator(random.Random(f"{seed} {inventory}"), ambiguity, unseen, inventory)
    flat: SentenceColumns = {role: [] for role in ROLES}
    boundaries, ids = [0], []
    for document in range(documents):
        for sentence in generator.document():
            for role in ROLES:
                flat[role] += sentence[role]
            boundaries.append(len(flat["word"]))
            ids.append(document)
    return Corpus.from_columns(flat, boundaries, ids, name="synthetic").to_dataset()


def local_f1_bound(corpus: "Dataset") -> float:
    """Return the highest expected segment F1 of a tagger that reads two tokens to either side of a name.

    It is the expected F1 if names with local evidence, and a third of the others, are right. `corpus`: rows of
    `synthetic_corpus` or `synthetic_splits`.
    """
    columns = Corpus.from_dataset(corpus).columns
    tokens = zip(columns["label"], columns["evidence"], strict=True)
    kinds = [evidence for label, evidence in tokens if parse_tag(label).prefix == BEGIN]
    local = kinds.count("local")
    return (local + (len(kinds) - local) / len(CLASSES)) / len(kinds)


class Mention(NamedTuple):
    """A name in a sentence, and the kind of evidence for its type."""

    words: tuple[str, ...]
    type: str
    evidence: str = "local"
    pos: str = "NNP"


class _Generator:
    """Draws names and documents. A stem has one kind and one inventory; inventory 0 is shared by all splits."""

    def __init__(self, chance: random.Random, ambiguity: float, unseen: float, inventory: int) -> None:
        self.chance, self.ambiguity, self.unseen, self.own = chance, ambiguity, unseen, inventory + 1

    def document(self) -> Iterator[SentenceColumns]:
        chance, ambiguity = self.chance, self.ambiguity
        drawn: dict[str, None] = {}
        while len(drawn) < 4:
            drawn[self.stem("ambiguous")] = None
        first, second, *others = drawn
        topics = {first: chance.choice(CLASSES), second: chance.choice(CLASSES)}
        pattern = chance.choice(HEADLINES if chance.random() < ambiguity else NAMELESS_HEADLINES)
        headline = self.render(pattern, X=Mention((first,), topics[first], "document"))
        yield {**headline, "word": [word.upper() for word in headline["word"]]}
        body = [self.clear(*topic) for topic in topics.items()]
        for name, kind in (*topics.items(), *topics.items()):
            if chance.random() < ambiguity:
                body.append(self.render(chance.choice(NEUTRAL), X=Mention((name,), kind, "document")))
            else:
                body.append(self.clear(name, kind))
        if chance.random() < ambiguity:
            kind = topics[first]
            y, z = (Mention((other,), kind, "list") for other in others)
            body.append(self.render(LISTS[kind], X=Mention((first,), kind), Y=y, Z=z))
        for pattern in chance.choices(BACKGROUND, k=2):
            body.append(self.render(pattern, **{kind: self.marked(kind) for kind in _ENDINGS}))
        chance.shuffle(body)
        yield from body

    def stem(self, kind: str) -> str:
        """Draw a pronounceable name; each kind and inventory has a separate block of numbers below 60000."""
        inventory = self.own if self.chance.random() < self.unseen else 0
        block = inventory * len(_KINDS) + _KINDS.index(kind)
        number = (block * _SIZE + self.chance.randrange(_SIZE)) * 37547 % 60000  # a bijection that scatters neighbours
        letters = ""
        for parts in (_ONSETS, _VOWELS, _ONSETS, _VOWELS, _CODAS):
            number, at = divmod(number, len(parts))
            letters += parts[at]
        return letters.capitalize()

    def marked(self, kind: str) -> Mention:
        """Draw a name whose form shows its class."""
        stem, ending = self.stem(kind), self.chance.choice(_ENDINGS[kind])
        if kind == "PER":
            return Mention((self.chance.choice(_GIVEN), stem + ending), kind)
        if kind == "ORG":
            return Mention((stem, ending), kind)
        return Mention((stem + ending,), kind, pos="JJ" if kind == "MISC" else "NNP")

    def clear(self, name: str, kind: str) -> SentenceColumns:
        """Draw a sentence that shows the class of a name by its context, or by a longer name."""
        pattern = self.chance.choice(CLEAR[kind])
        long = (self.chance.choice(_GIVEN), name) if kind == "PER" else (name, "Valley" if kind == "LOC" else "Corp.")
        return self.render(pattern, X=Mention((name,), kind), LONG=Mention(long, kind))

    def render(self, pattern: str, **names: Mention) -> SentenceColumns:
        """Return a pattern with its slots filled: columns `word`, `pos`, `label`, `evidence` and `chunk`."""
        tokens: list[tuple[str, str, str, str]] = []
        for piece in pattern.split():
            if piece == "{DAY}":
                tokens.append((self.chance.choice(_DAYS), "NNP", "O", "O"))
            elif piece.startswith("{"):
                words, kind, evidence, pos = names[piece[1:-1]]
                tokens += [(word, pos, f"{'I' if i else 'B'}-{kind}", evidence) for i, word in enumerate(words)]
            else:
                word, _, pos = piece.rpartition("/")
                tokens.append((word, pos, "O", "O"))
        columns = dict(zip(("word", "pos", "label", "evidence"), map(list, zip(*tokens, strict=True)), strict=True))
        kinds = [_CHUNKS.get(tag) for tag in columns["pos"]]
        columns["chunk"] = [  # neighbours of one kind are one chunk, a determiner opens a new one
            "O" if kind is None else f"{'B' if kind != before or tag == 'DT' else 'I'}-{kind}"
            for tag, kind, before in zip(columns["pos"], kinds, [None, *kinds], strict=False)
        ]
        return columns
