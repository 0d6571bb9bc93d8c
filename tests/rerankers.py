"""Sentences with quotation marks, small re-rankers of their candidates, and what these say, string by string."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch

from structperc.chain import KBest, kbest
from structperc.criteria import MEMMLoss, Prior
from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import spans
from structperc.datamodules.base import SequenceDataModule
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import LexiconShapes, QuotedEntity, QuotedTags, StartBigrams, WholeEntity
from structperc.optim import LBFGS
from structperc.reranking import Boosting, Examples
from structperc.reranking.global_reranker import GlobalReranker
from structperc.reranking.jackknife import JackKnife
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from tests.nonlocal_features.naive_strings import MARKS, Sentence, strings
from tests.tiny import sentences

QUIET = {"accelerator": "cpu", "enable_progress_bar": False}
LIMIT = 5  # of quotes


def quoted(n: int, seed: int) -> list[list[tuple[str, str]]]:
    """Sentences of `tiny` with words in upper case here and there, and quotation marks, which need not match."""
    draw, made = random.Random(seed), []
    for sentence in sentences(n, seed):
        made.append([])
        for word, label in sentence:
            if label[0] != "I" and draw.random() < 0.3:
                made[-1].append((draw.choice(MARKS), "O"))
            made[-1].append((word.capitalize() if draw.random() < 0.2 else word, label))
    return made


class Text(SequenceDataModule):
    """train, dev and test; two sentences are a document. The first sentence of dev has one token."""

    def __init__(self, train: int = 16, dev: int = 8, test: int = 4, **options) -> None:
        super().__init__(**{"batch_size": 8, **options})
        made = {"train": quoted(train, 0), "dev": [[("Bo", "B-PER")], *quoted(dev, 1)], "test": quoted(test, 2)}
        sizes = {"train": train, "dev": dev, "test": test}
        self.splits = {split: made[split] for split, size in sizes.items() if size}

    def read(self, split):
        if split not in self.splits:
            return None
        made = self.splits[split]
        flat = [pair for sentence in made for pair in sentence]
        columns = {"word": [word for word, _ in flat], "label": [label for _, label in flat]}
        boundaries = np.cumsum([0, *map(len, made)])
        documents = [i // 2 for i in range(len(made))]
        return split, Corpus.from_columns(columns, boundaries.tolist(), documents).to_dataset()


def make_first(criterion=None, k: int = 1, optimizer=LBFGS, **options) -> Tagger:
    """Without a criterion the maximum-entropy tagger of the paper."""
    features = FeatureExtractor([{"of": ["w"], "at": [-1, 0]}, "bias"], ["bias"], cutoff=1, progress=False)
    scorer = SparseLinear(transitions=False, sparse_grad=False)
    if criterion is None:
        criterion, options = MEMMLoss(), {"prior": Prior(C=1), **options}
    return Tagger(features, scorer, criterion, KBest(k), optimizer, **options)


def make_features() -> list:
    """Of entities and of quotes, with types and without, with and without a lexicon."""
    return [WholeEntity(), LexiconShapes(typed=False), StartBigrams(), QuotedTags(LIMIT), QuotedEntity()]


def make_reranker(cache, ranker=None, **options) -> GlobalReranker:
    parts = {
        "first": make_first(),
        "ranker": ranker or Boosting(rounds=6),
        "search": KBest(5),
        "nonlocal_features": make_features(),
        "jackknife": JackKnife(folds=2, epochs=4, cache=str(cache)),
        "min_sequences": 1,
        **options,
    }
    return GlobalReranker(**parts)


def ready(cache, data, ranker=None, **options) -> GlobalReranker:
    """With first models and lists; the data are encoded."""
    made = make_reranker(cache, ranker, **options)
    made.train_first(data, **QUIET)
    data.encode(made.encode, "fit")
    return made


# -- string by string ----------------------------------------------------------------------------------------

Strings = set[tuple[int, str]]  # which feature, and the string


class Naive:
    """What a re-ranker's features see in text, with the lexicon of some training words."""

    def __init__(self, made: GlobalReranker, train: Sequence[str]) -> None:
        balance = Counter()
        for word in train:
            balance[word.casefold()] += word[0].islower() - word[0].isupper()
        self.lexicon, self.made = {word for word, lead in balance.items() if lead > 0}, made

    def strings(self, corpus, row: int, labels: Sequence[str]) -> Strings:
        """All strings of a labelling of one sequence of a corpus."""
        start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
        boundaries = [b for b in corpus.sentences.tolist() if start <= b <= end]
        found = set()
        for a, b in pairwise(boundaries):
            words, own = corpus.columns["word"][a:b], labels[a - start : b - start]
            for i, feature in enumerate(self.made.global_features):
                limit, typed = getattr(feature, "limit", 0), feature.typed or feature.template == "Q"
                spelled = strings(feature.template, Sentence(words, own, self.lexicon, limit), typed)
                found |= {(i, string) for string in spelled}
        return found

    def listed(self, corpus, row: int, n: int) -> list[tuple[list[str], float, Strings]]:
        """The n best of the first model: labels, score, strings."""
        batch = self.made.encode(corpus)[[row]]
        with torch.no_grad():
            labels, scores, valid = (values[0] for values in kbest(self.made.first(batch), n))
        paths = [self.made.labels.decode(path) for path in labels[valid]]
        found = zip(paths, scores[valid].tolist(), strict=True)
        return [(path, score, self.strings(corpus, row, path)) for path, score in found]


def naive(made, data):
    return Naive(made, data.corpus("train").columns["word"])


def training_lists(made, data):
    """Of each training sequence, in the order of the corpus: labels, first score and strings of its candidates."""
    corpus, by_hand = data.corpus("train"), naive(made, data)
    for row in range(len(corpus)):
        (labels,), (scores,), (valid,) = made.lists.batch(torch.tensor([row])).candidates
        paths = [made.labels.decode(path) for path in labels[valid]]
        found = zip(paths, scores[valid].tolist(), strict=True)
        yield [(path, score, by_hand.strings(corpus, row, path)) for path, score in found]


def segments(labels: Sequence[str], boundaries: Sequence[int]) -> set[tuple[str, int, int]]:
    """(type, start, end) of one sequence with these boundaries of sentences, sentence by sentence."""
    return {(kind, a + start, a + end) for a, b in pairwise(boundaries) for kind, start, end in spans(labels[a:b])}


def known(made: GlobalReranker) -> list[tuple[int, str]]:
    """Every string that is a feature: which feature, and its name; of a re-ranker in training or a settled one."""
    if made.examples is not None:
        names = dict(made.feature_strings(torch.arange(made.examples.n_features)))
    else:
        names = dict(enumerate(name for feature in made.global_features for name in feature.names(())))
    row_ids = [i for i, feature in enumerate(made.global_features) for _ in range(len(feature.keys))]
    return [(owner, names[i]) for i, owner in enumerate(row_ids)]


def linear_totals(made: GlobalReranker, listed) -> list[float]:
    """w0 times the first score and the sum of the weights of the strings, in float64."""
    weights = dict(zip(known(made), made.ranker.weights.tolist(), strict=True))
    w0 = made.ranker.first_weight
    return [w0 * first + sum(weights.get(string, 0.0) for string in strings) for _, first, strings in listed]


def votes(made: GlobalReranker, listed) -> list[float]:
    """How many examples the weight vectors survived that prefer each candidate, vector by vector."""
    ranker, names = made.ranker, known(made)
    vector, w0, counts = Counter(), 0.0, [0.0] * len(listed)
    for u, survived in enumerate(ranker.survival.tolist()):
        if u:
            a, b = ranker.update_offsets[u - 1 : u + 1].tolist()
            for i, sign in zip(ranker.update_ids[a:b].tolist(), ranker.update_signs[a:b].tolist(), strict=True):
                vector[names[i]] += sign
            w0 += float(ranker.update_first[u - 1])
        scores = [w0 * (first / ranker.unit) + sum(vector[s] for s in strings) for _, first, strings in listed]
        counts[scores.index(max(scores))] += survived
    return counts


def total_scores(made: GlobalReranker, listed) -> list[float]:
    return linear_totals(made, listed) if made.ranker.linear else votes(made, listed)


def decisions(made, corpus, n=5):
    """Labels of each sequence of a corpus, decided among its n best."""
    made.decoder = KBest(n)
    flat = [label for sentence in made.label(corpus) for label in sentence]
    return [flat[a:b] for a, b in pairwise(corpus.starts.tolist())]


def examples_of(lists, F: int, K: int) -> Examples:
    """Of (features of candidates, first scores, the correct one or None) per list.

    Places without a candidate have features, too, which must not count.
    """
    padded = [[*features, *[range(0, F, 2)] * (K - len(features))] for features, *_ in lists]
    pairs = [(s * K + k, f) for s, row in enumerate(padded) for k, own in enumerate(row) for f in own]
    candidate_ids, ids = torch.tensor(pairs).long().view(-1, 2).unbind(1)
    first = [[*scores, *[torch.nan] * (K - len(scores))] for _, scores, _ in lists]
    first = torch.tensor(first, dtype=torch.float64)
    correct = torch.tensor([-1 if c is None else c for _, _, c in lists])
    return Examples.from_pairs(candidate_ids, ids, first, first.isfinite(), correct, F)
