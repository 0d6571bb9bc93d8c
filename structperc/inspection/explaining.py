"""Why non-local features changed a decision: the labelling best by local score beside the one best by total score."""

from collections.abc import Iterable, Iterator, Sequence

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.inspection.candidate_counts import Count, Rated, counted, rated
from structperc.inspection.changes import changed_sentences
from structperc.inspection.explanation import VERDICTS, Candidate, Explanation, Summary, Term
from structperc.progress import bar
from structperc.structures import Batch
from structperc.taggers.lattice_tagger import LatticeTagger

BETWEEN = 3  # further candidates that are shown


def explain(tagger: LatticeTagger, corpus: Corpus, row: int, n: int = 100) -> Explanation:
    """Return what non-local features do to the n best labellings by local score of sequence `row` of a corpus, from 0.

    Raises InputError for n < 1, a row that is not there, and a tagger without non-local features.
    """
    check_explainable(tagger, n)
    if not 0 <= row < len(corpus):
        raise InputError(f"document {row + 1} is not among the {len(corpus)} of {corpus.name}; choose 1..{len(corpus)}")
    batch = tagger.encode(corpus.stretch(row, row + 1))[[0]]
    return _explanation(tagger, corpus, row, batch, rated(tagger, batch, n))


def explain_changed(
    tagger: LatticeTagger, corpus: Corpus, n: int = 100, progress: bool = True
) -> Iterator[Explanation]:
    """Yield explanations of those sequences of a corpus on which non-local features change the decision.

    Raises InputError as `explain` does.
    """
    check_explainable(tagger, n)
    rows = tagger.encode(corpus)
    for row in bar(range(len(corpus)), "explaining", show=progress):
        batch = rows[[row]]
        found = rated(tagger, batch, n)
        if int(found.totals.argmax()) > 0:
            yield _explanation(tagger, corpus, row, batch, found)


def summarise(explanations: Sequence[Explanation], corpus: Corpus) -> Summary:
    """Return counts over the explanations of all changed decisions of a corpus."""
    changes = [change for one in explanations for change in one.changes]
    verdicts = {verdict: sum(c.verdict == verdict for c in changes) for verdict in VERDICTS}
    known = "label" in corpus.columns
    return Summary(len(corpus), len(explanations), verdicts if known else None, len(changes))


def check_explainable(tagger: LatticeTagger, n: int) -> None:
    """Raise InputError for n < 1, and for a tagger without non-local features or whose scores are votes."""
    if n < 1:
        raise InputError(f"--n must be >= 1, got {n}")
    if not tagger.nonlocal_features:
        raise InputError("the model has no non-local features to explain; train one with model.nonlocal_features")
    if not tagger.additive:
        raise InputError("the model's weight vectors vote, which no sum explains; set ranker.predict: average")


# -- ranking --------------------------------------------------------------------------------------------------


def _explanation(tagger: LatticeTagger, corpus: Corpus, row: int, batch: Batch, found: Rated) -> Explanation:
    order = found.totals.argsort(descending=True, stable=True).tolist()
    shown = _shown(order[: found.n], found.golden.nonzero().flatten().tolist())
    after = shown.index(order[0])
    same, terms = _terms(counted(tagger, batch, found.candidates.labels[:, shown]), after)
    candidates = []
    for i, k in enumerate(shown):
        local = float(found.candidates.scores[0, k])
        total = sum((term.products[i] for term in terms), local + same)
        names = tagger.labels.decode(found.candidates.labels[0, k].cpu())
        candidates.append(Candidate(names, k + 1, order.index(k) + 1, local, total, bool(found.golden[k])))
    sentences = list(changed_sentences(corpus, row, candidates[0].labels, candidates[after].labels))
    place = corpus.where(int(corpus.starts[row]))
    return Explanation(row, place, found.n, candidates, same, terms, sentences)


def _shown(order: list[int], golden: list[int]) -> list[int]:
    """Which candidates are shown, of places by total score: first and best, gold, the best ones between these two.

    Where the first stays the best, those that come next.
    """
    best = order[0]
    others = [k for k in order if 0 < k < best] if best else order[1:]
    return sorted({0, best, *others[:BETWEEN], *golden})


def _terms(counts: Iterable[Count], after: int) -> tuple[float, list[Term]]:
    """-> score of the counts that all candidates have, the others by how much they moved the decision."""
    same, terms = 0.0, []
    for name, weight, values in counts:
        if len(set(values)) == 1:
            same += weight * values[0]
        elif weight:
            terms.append(Term(name, weight, values))
    return same, sorted(terms, key=lambda term: -abs(term.products[after] - term.products[0]))
