"""Sentence patterns of the embedded corpus: word/POS tokens and {SLOTS} for names."""

import random
from typing import NamedTuple

SentenceColumns = dict[str, list[str]]


class Mention(NamedTuple):
    """A name as it appears in a sentence; `evidence` says what decides its type."""

    words: tuple[str, ...]
    type: str
    evidence: str = "local"
    pos: str = "NNP"


def render(pattern: str, chance: random.Random, **names: Mention) -> SentenceColumns:
    """Return a pattern with its slots filled: columns `word`, `pos`, `chunk`, `label` and `evidence`."""
    sentence: SentenceColumns = {"word": [], "pos": [], "label": [], "evidence": []}
    for piece in pattern.split():
        for token in _tokens(piece, chance, names):
            for column, value in zip(sentence.values(), token, strict=True):
                column.append(value)
    return {**sentence, "chunk": _chunks(sentence["pos"])}


def _tokens(piece: str, chance: random.Random, names: dict[str, Mention]) -> list[tuple[str, str, str, str]]:
    """One piece of a pattern -> its tokens as (word, POS, label, evidence)."""
    if piece == "{DAY}":
        return [(chance.choice(_DAYS), "NNP", "O", "O")]
    if piece.startswith("{"):
        words, kind, evidence, pos = names[piece[1:-1]]
        return [(word, pos, f"{'I' if i else 'B'}-{kind}", evidence) for i, word in enumerate(words)]
    word, _, pos = piece.rpartition("/")
    return [(word, pos, "O", "O")]


def _chunks(pos: list[str]) -> list[str]:
    """Base chunks in IOB2: neighbours of one kind are one chunk, a determiner opens a new one."""
    kinds = [_CHUNKS.get(tag) for tag in pos]
    chunks = []
    for tag, kind, before in zip(pos, kinds, [None, *kinds], strict=False):
        chunks.append("O" if kind is None else f"{'B' if kind != before or tag == 'DT' else 'I'}-{kind}")
    return chunks


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CHUNKS = {
    **dict.fromkeys(("DT", "JJ", "JJR", "NN", "NNS", "NNP", "CD", "PRP", "PRP$"), "NP"),
    **dict.fromkeys(("VBD", "VBZ", "VBP", "VB", "VBG", "MD"), "VP"),
    **dict.fromkeys(("IN", "TO"), "PP"),
    "RB": "ADVP",
}

# {X}: a name on its own; {LONG}: it inside a longer name that shows its class; {Y}, {Z}: others of a list;
# {PER}, {LOC}, {ORG}, {MISC}: names whose form shows their class. Nothing within two tokens of {X} in
# NEUTRAL and HEADLINES, or of {Y} and {Z}, depends on the class.

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
