"""Feature extraction: Table 1 of Kazama & Torisawa 2007 with four gazetteers, counted and encoded.

The peer looks at one token at a time and counts strings in a dictionary; both must find the same features.
"""

import os
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np

from structperc.data import Corpus
from structperc.features import FeatureExtractor, Gazetteer
from structperc.features.attributes import surface_attribute
from structperc.features.resources import TAGS

TEMPLATES = ["kazama2007", "kazama2007_gazetteers"]
LISTS = {"go": "org", "gp": "per", "gm": "misc", "gl": "loc"}
SAMPLE = 5_000  # tokens for the peer


def run(smoke: bool) -> list[dict]:
    """Return one row: tokens/s of ours and of the peer, which sees the beginning of the corpus only."""
    corpus, gazetteers, name = _real() if "STRUCTPERC_DATA" in os.environ else _random(20_000 if smoke else 203_621)
    if smoke:
        corpus = _head(corpus, 20_000)
    extractor = FeatureExtractor(TEMPLATES, TEMPLATES, gazetteers=gazetteers, progress=False)
    sample = _head(corpus, 1_000 if smoke else SAMPLE)
    if _peer(sample, extractor) != len(extractor.fit_encode(sample).nodes.ids):
        raise AssertionError("the peer finds other features")
    ours = corpus.tokens / min(_seconds(extractor.fit_encode, corpus) for _ in range(1 if smoke else 3))
    peer = sample.tokens / _seconds(_peer, sample, extractor)
    return [
        {
            "what": "feature extraction, Table 1",
            "size": f"{corpus.tokens} tokens of {name} x {len(extractor.node)} templates",
            "ours": ours,
            "peer": peer,
            "ratio": ours / peer,
            "unit": "tokens/s",
            "target": "80000 tokens/s",
        }
    ]


def _seconds(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def _peer(corpus: Corpus, extractor: FeatureExtractor) -> int:
    """Count and look up the features of each token as strings; return how many there are."""
    values = _values(corpus, extractor)
    tokens = [
        _names(extractor.node, values, i, start, end)
        for start, end in pairwise(corpus.starts.tolist())
        for i in range(start, end)
    ]
    counts = Counter(name for names in tokens for name in names)
    index = {name: i for i, name in enumerate(counts) if counts[name] >= extractor.cutoff}
    return sum(len([index[name] for name in names if name in index]) for names in tokens)


def _values(corpus: Corpus, extractor: FeatureExtractor) -> dict[str, list[str]]:
    words = corpus.columns["word"]
    values = dict(corpus.columns)
    for attribute in {part.attribute for template in extractor.node for part in template}:
        if function := surface_attribute(attribute):
            values[attribute] = [function(word) for word in words]
    for attribute, gazetteer in extractor.gazetteers.items():
        tags = gazetteer.tag(*corpus.factorize("word"), corpus.sentences)
        values[attribute] = [TAGS[tag] for tag in tags]
    return values


def _names(templates, values: dict[str, list[str]], i: int, start: int, end: int) -> list[str]:
    names = []
    for template in templates:
        found = [_value(values[attribute], i + offset, start, end) for attribute, offset in template]
        if any(found) or not template:
            names.append("|".join(f"{part}={value}" for part, value in zip(template, found, strict=True)))
    return names


def _value(column: list[str], at: int, start: int, end: int) -> str:
    if at < start:
        return f"_B-{start - at}"
    return column[at] if at < end else f"_B+{at - end + 1}"


def _head(corpus: Corpus, tokens: int) -> Corpus:
    """Return the first sequences, up to so many tokens."""
    last = max(1, int(np.searchsorted(corpus.starts, tokens, side="right")) - 1)
    size = corpus.starts[last]
    columns = {role: column[:size] for role, column in corpus.columns.items()}
    sentences = corpus.sentences[corpus.sentences <= size]
    return Corpus(columns, corpus.starts[: last + 1], sentences, corpus.documents[:last])


def _real() -> tuple[Corpus, dict[str, Gazetteer], str]:
    folder = Path(os.environ["STRUCTPERC_DATA"])
    blocks = (folder / "conll2003" / "eng.train").read_text(encoding="utf-8").split("\n\n")
    rows = [[line.split() for line in block.strip().split("\n")] for block in blocks if block.strip()]
    documents = np.cumsum([row[0][0] == "-DOCSTART-" for row in rows])
    kept = [(row, document) for row, document in zip(rows, documents, strict=True) if row[0][0] != "-DOCSTART-"]
    sentences = [dict(zip(("word", "pos", "chunk"), zip(*row, strict=True), strict=False)) for row, _ in kept]
    corpus = Corpus.from_sentences(sentences, [document for _, document in kept], "document")
    lists = {attribute: Gazetteer(folder / "gazetteers" / f"{name}.txt") for attribute, name in LISTS.items()}
    return corpus, lists, "CoNLL-2003"


def _random(tokens: int) -> tuple[Corpus, dict[str, Gazetteer], str]:
    """Return words with frequencies as in text (Zipf) and lists of one to three of them."""
    rng = np.random.default_rng(0)
    vocabulary = np.array(["".join(rng.choice(list("abcdeAB1-."), rng.integers(1, 10))) for _ in range(25_000)])
    words = vocabulary[rng.zipf(1.2, tokens) % len(vocabulary)]
    columns = {"word": words.tolist()}
    columns |= {role: rng.choice(n, tokens).astype(str).tolist() for role, n in (("pos", 45), ("chunk", 20))}
    sentences = np.append(np.arange(0, tokens, 14), tokens)
    starts = np.append(sentences[:-1:15], tokens)
    corpus = Corpus(columns, starts, sentences, np.arange(len(starts) - 1))
    lists = {
        attribute: Gazetteer([" ".join(rng.choice(vocabulary, rng.integers(1, 4))) for _ in range(10_000)])
        for attribute in LISTS
    }
    return corpus, lists, "random text"
