"""A few sentences with names, and features of their tokens as users of crfsuite write them."""

import random

import pytest

PER, LOC, WORDS = ["Anna", "Bo", "Paris"], ["Rome", "Paris", "Bo"], ["met", "in", "saw", "the", "left"]


def corpus(n=40, seed=0):
    """X and y: words, and IOB2 labels."""
    draw, X, y = random.Random(seed), [], []
    for _ in range(n):
        words, labels = [], []
        for _ in range(draw.randint(1, 3)):
            kind, names = draw.choice([("PER", PER), ("LOC", LOC)])
            name = draw.sample(names, draw.randint(0, 2))
            words += [*name, draw.choice(WORDS)]
            labels += [*(f"{'BI'[i > 0]}-{kind}" for i in range(len(name))), "O"]
        X.append(words)
        y.append(labels)
    return X, y


def weighted(words):
    """A dict for each token with all kinds of values."""
    return [
        {
            "w": word,
            "len": len(word) / 4,
            "title": word.istitle(),
            "affix": {"first": word[0], "last": {word[-1]: 0.5}},
            "around": [f"-1{words[t - 1]}" if t else "BOS", *(["+1" + words[t + 1]] if t + 1 < len(words) else [])],
        }
        for t, word in enumerate(words)
    ]


@pytest.fixture
def words():
    return corpus()


@pytest.fixture
def dicts(words):
    X, y = words
    return [weighted(one) for one in X], y
