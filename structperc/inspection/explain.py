"""Why non-local features changed a decision: the labelling best by local score beside the one best in all."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor

from structperc.chain import kbest
from structperc.data.corpus import Corpus
from structperc.data.output import write_lines
from structperc.data.reading import Reading
from structperc.data.segments import Span, spans
from structperc.errors import InputError
from structperc.inspection.explanation import VERDICTS, Candidate, Change, Explanation, Sentence, Summary, Term
from structperc.inspection.explanation_page import page_lines
from structperc.inspection.explanation_text import explanation_lines, legend
from structperc.inspection.reading import read_corpus
from structperc.nonlocal_features import NonlocalFeature, find_segments
from structperc.progress import bar
from structperc.reports.writing import check_targets
from structperc.structures import Batch, Candidates
from structperc.taggers.tagger import Tagger

BETWEEN = 3  # further candidates that are shown


def explain(tagger: Tagger, corpus: Corpus, row: int, n: int = 100) -> Explanation:
    """What non-local features do to the n best labellings by local score of sequence `row` of a corpus, from 0.

    InputError for n < 1, a row that is not there, and a tagger without non-local features.
    """
    _check(tagger, n)
    if not 0 <= row < len(corpus):
        raise InputError(f"document {row + 1} is not among the {len(corpus)} of {corpus.name}; choose 1..{len(corpus)}")
    batch = tagger.encode(corpus.stretch(row, row + 1))[[0]]
    return _explanation(tagger, corpus, row, batch, *_search(tagger, batch, n))


def explain_changed(tagger: Tagger, corpus: Corpus, n: int = 100, progress: bool = True) -> Iterator[Explanation]:
    """-> explanations of those sequences of a corpus on which non-local features change the decision.

    InputError as of `explain`.
    """
    _check(tagger, n)
    rows = tagger.encode(corpus)
    for row in bar(range(len(corpus)), "explaining", show=progress):
        batch = rows[[row]]
        candidates, totals = _search(tagger, batch, n)
        if int(totals.argmax()) > 0:
            yield _explanation(tagger, corpus, row, batch, candidates, totals)


def summarise(explanations: Sequence[Explanation], corpus: Corpus) -> Summary:
    """Counts over the explanations of all changed decisions."""
    changes = [change for one in explanations for change in one.changes]
    verdicts = {verdict: sum(c.verdict == verdict for c in changes) for verdict in VERDICTS}
    known = "label" in corpus.columns
    return Summary(len(corpus), len(explanations), verdicts if known else None, len(changes))


def explain_file(
    model: str,
    file: str,
    document: int | None,
    n: int | None,
    reading: Reading,
    html: str | None,
    trusted: Sequence[str] = (),
) -> Iterator[str]:
    """Lines about one document of a file, from 1, or about all whose decision non-local features change.

    By default n is that of the model's decoder, or 100 where that takes the best alone. InputError as of the parts.
    """
    check_targets(html)
    tagger = Tagger.load(model, trusted=trusted)
    n = n if n is not None else (tagger.decoder.k if tagger.decoder.k > 1 else 100)
    _check(tagger, n)
    corpus = read_corpus(tagger, file, reading)
    if document is None:
        found = list(explain_changed(tagger, corpus, n))
        closing = [summarise(found, corpus).line()]
    else:
        found, closing = [explain(tagger, corpus, document - 1, n)], []
    for explanation in found:
        yield from explanation_lines(explanation)
        yield ""
    yield from legend(found)
    yield from closing
    if html is not None:
        write_lines(html, page_lines(found, f"{model}: {file}", closing))


# -- search ---------------------------------------------------------------------------------------------------


def _check(tagger: Tagger, n: int) -> None:
    if n < 1:
        raise InputError(f"--n must be >= 1, got {n}")
    if not tagger.nonlocal_features:
        raise InputError("the model has no non-local features to explain; train one with model.nonlocal_features")
    if not tagger.additive:
        raise InputError("the model's weight vectors vote, which no sum explains; set ranker.predict: average")


@torch.no_grad()
def _search(tagger: Tagger, batch: Batch, n: int) -> tuple[Candidates, Tensor]:
    """-> the n best by local score of one sequence, total scores (n,)."""
    moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
    candidates = kbest(tagger(moved), n)
    return tagger.rated(moved, candidates), tagger.totals(moved, candidates)[0]


# -- the explanation ------------------------------------------------------------------------------------------


def _explanation(
    tagger: Tagger, corpus: Corpus, row: int, batch: Batch, candidates: Candidates, totals: Tensor
) -> Explanation:
    order = totals.argsort(descending=True, stable=True)
    gold = batch.gold
    golden = torch.zeros_like(candidates.valid[0])
    if gold is not None:
        golden = (candidates.labels[0] == gold.to(totals.device)).all(1) & candidates.valid[0]
    shown = _shown(order[: int(candidates.valid.sum())].tolist(), golden.nonzero().flatten().tolist())
    same, terms = _terms(tagger, batch, candidates.labels[:, shown], shown.index(int(order[0])))
    found = []
    for i, k in enumerate(shown):
        local = float(candidates.scores[0, k])
        total = sum((term.products[i] for term in terms), local + same)
        names = tagger.labels.decode(candidates.labels[0, k].cpu())
        found.append(Candidate(names, k + 1, order.tolist().index(k) + 1, local, total, bool(golden[k])))
    before, after = found[0].labels, found[shown.index(int(order[0]))].labels
    sentences = list(_sentences(corpus, row, before, after))
    n, place = int(candidates.valid.sum()), corpus.where(int(corpus.starts[row]))
    return Explanation(row, place, n, found, same, terms, sentences)


def _shown(order: list[int], golden: list[int]) -> list[int]:
    """Which candidates are shown, of places by total score: first and best, gold, the best ones between these two.

    Where the first stays the best, those that come next.
    """
    best = order[0]
    others = [k for k in order if 0 < k < best] if best else order[1:]
    return sorted({0, best, *others[:BETWEEN], *golden})


@torch.no_grad()
def _terms(tagger: Tagger, batch: Batch, labels: Tensor, after: int) -> tuple[float, list[Term]]:
    """labels (1, S, T) -> score of the counts that all have, the others by how much they moved the decision."""
    moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
    valid = torch.ones(labels.shape[:2], dtype=torch.bool, device=labels.device)
    segments = find_segments(moved, labels, valid, tagger.labels)
    same, terms = 0.0, []
    for feature in cast(Iterable[NonlocalFeature], tagger.nonlocal_features):
        counts, names = feature.counts(segments).to_dense().t(), feature.names(tagger.labels.type_names)
        held = counts.any(1).nonzero().squeeze(1)  # of many names a few occur
        for f, weight, row in zip(held.tolist(), feature.weight[held].tolist(), counts[held].tolist(), strict=True):
            if len(set(row)) == 1:
                same += weight * row[0]
            elif weight:
                terms.append(Term(names[f], weight, row))
    return same, sorted(terms, key=lambda term: -abs(term.products[after] - term.products[0]))


# -- what changed ---------------------------------------------------------------------------------------------


def _sentences(corpus: Corpus, row: int, before: list[str], after: list[str]) -> Iterator[Sentence]:
    start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
    boundaries = corpus.sentences[(corpus.sentences >= start) & (corpus.sentences <= end)].tolist()
    gold = corpus.columns.get("label")
    for a, b in pairwise(boundaries):
        old, new = (spans(labels[a - start : b - start]) for labels in (before, after))
        wanted = None if gold is None else spans(gold[a:b])
        words, changes = corpus.columns["word"][a:b], []
        for region in _regions(set(old) ^ set(new)):
            right = None if wanted is None else _within(wanted, *region)
            place = corpus.where(a + region[0])
            changes.append(Change(place, words, _within(old, *region), _within(new, *region), right))
        yield Sentence(words, new, changes)


def _regions(differing: set[Span]) -> Iterator[tuple[int, int]]:
    """Boundaries of the runs of segments that overlap."""
    ordered = sorted(differing, key=lambda span: span.start)
    while ordered:
        first, stop = ordered[0].start, ordered[0].end
        while ordered and ordered[0].start < stop:
            stop = max(stop, ordered.pop(0).end)
        yield first, stop


def _within(known: list[Span], first: int, stop: int) -> list[Span]:
    return [span for span in known if span.start < stop and span.end > first]
