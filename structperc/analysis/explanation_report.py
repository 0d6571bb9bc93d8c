"""Explanations of changed decisions as text and as an HTML page."""

from collections import Counter
from collections.abc import Iterator, Sequence

from structperc.analysis.explanation import VERDICTS, Change, ChangedSentence, Explanation, Term
from structperc.data.tag_schemes import Span
from structperc.reports.html_pages import render, type_colours
from structperc.reports.tables import decimal, text_table

CONTEXT = 12  # words to either side of a change


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    r"""Yield the changes, then a table of scores with a column for each candidate.

    Args:
        explanation: The decision on a document, see `explain`.

    Example:
        >>> from structperc.analysis.explanation import Candidate
        >>> first, second = Candidate(["O"], 1, 2, 3.0, 3.0, False), Candidate(["B-PER"], 2, 1, 2.5, 4.0, True)
        >>> terms = [Term("phrase(PER,PER)", 1.5, [0.0, 1.0])]
        >>> explanation = Explanation(0, "a.txt:1", 2, [first, second], 0.0, terms, [])
        >>> print(*explanation_lines(explanation), sep="\n")
        document 1 (a.txt:1): number 2 of 2 by local score becomes the best
        <BLANKLINE>
                                before  after, gold  difference
          local score                3          2.5        -0.5
          non-local, shared          0            0          +0
          phrase(PER,PER) +1.5   0 (0)      1.5 (1)        +1.5
          total score                3            4          +1
          rank by local score        1            2
          rank by total score        2            1
    """
    yield explanation_headline(explanation)
    for change in explanation.changes:
        before, inside, after = context(change)
        yield from ("", "  " + " ".join(part for part in (f"{change.place}:", before, f"[{inside}]", after) if part))
        yield from (f"    {who:<6} {text}" for who, text in readings(change))
        if change.verdict:
            yield f"    {VERDICTS[change.verdict]}"
    yield ""
    yield from text_table(score_rows(explanation), indent="  ")


def legend(explanations: Sequence[Explanation]) -> list[str]:
    """Return a legend of the tables; empty without explanations."""
    if not explanations:
        return []
    with_gold = any(candidate.is_gold for explanation in explanations for candidate in explanation.candidates)
    return [
        "before: the labels of the best local score, without non-local features",
        "after: the labels of the best total score, with non-local features",
        *(["gold: the correct labels"] if with_gold else []),
        "Tables have a column for each of these, and for some others of the list; difference is after minus before.",
        "non-local, shared: the sum of the non-local features that are equal in all columns",
        "A row such as phrase(PER,PER) +0.5 is a non-local feature and its weight. 1 (2) in it means that the labels "
        "of this column have it 2 times, which adds 1 to their score.",
        "no difference: the sum of the rows that are equal before and after",
    ]


def explanation_headline(explanation: Explanation) -> str:
    """Return one line: place of the document, and local rank of its best candidate."""
    new = explanation.candidates[explanation.after]
    where = f"document {explanation.row + 1} ({explanation.place})"
    if new.local_rank == 1:
        return f"{where}: the best of {explanation.n_candidates} by local score stays the best"
    return f"{where}: number {new.local_rank} of {explanation.n_candidates} by local score becomes the best"


def context(change: Change) -> tuple[str, str, str]:
    """Return the words before, in and after a change, without the ends of long sentences."""
    return surrounding(change.words, *change.extent)


def surrounding(words: Sequence[str], first: int, stop: int) -> tuple[str, str, str]:
    """Return the words before, in and after the tokens first, ..., stop - 1, without the ends of long sentences.

    Example:
        >>> surrounding(["She", "met", "Bo", "Ek"], 2, 4)
        ('She met', 'Bo Ek', '')
    """
    before, after = words[max(0, first - CONTEXT) : first], words[stop : stop + CONTEXT]
    opening = ["..."] * (first > CONTEXT) + [*before]
    closing = [*after] + ["..."] * (len(words) - stop > CONTEXT)
    return " ".join(opening), " ".join(words[first:stop]), " ".join(closing)


def readings(change: Change) -> list[tuple[str, str]]:
    """Return [(name, segments as text)]: before and after non-local features, and the gold ones if they are known."""
    who = [("before", change.before), ("after", change.after)]
    who += [] if change.gold is None else [("gold", change.gold)]
    return [(name, _segments(labels, change.words)) for name, labels in who]


def score_rows(explanation: Explanation) -> list[list[str]]:
    """Return the scores as cells: a heading, local score, shared score, terms with counts, total, ranks.

    There is a column per candidate; the last column is the difference, after minus before.
    """
    shown, after = explanation.candidates, explanation.after
    titles = []
    for candidate in shown:
        facts = {"before": candidate.local_rank == 1, "after": candidate.rank == 1, "gold": candidate.is_gold}
        titles.append(", ".join(name for name, holds in facts.items() if holds) or "other")
    rows = [["", *titles, "difference"]]
    values = [("local score", [c.local for c in shown]), ("non-local, shared", [explanation.shared_score] * len(shown))]
    rows += [[name, *map(decimal, scores), _signed(scores[after] - scores[0])] for name, scores in values]
    rows += _term_rows(explanation.terms, after)
    rows.append(["total score", *(decimal(c.total) for c in shown), _signed(shown[after].total - shown[0].total)])
    rows.append(["rank by local score", *(str(c.local_rank) for c in shown), ""])
    rows.append(["rank by total score", *(str(c.rank) for c in shown), ""])
    return rows


def _term_rows(terms: Sequence[Term], after: int) -> Iterator[list[str]]:
    """Yield a row per term; several terms that are equal for both decisions are summed in one row."""
    differences = [_signed(term.products[after] - term.products[0]) for term in terms]
    alike = [term.products for term, difference in zip(terms, differences, strict=True) if difference == "+0"]
    added = after > 0 and len(alike) > 1
    for term, difference in zip(terms, differences, strict=True):
        if not (added and difference == "+0"):
            cells = [f"{decimal(x)} ({count:g})" for x, count in zip(term.products, term.counts, strict=True)]
            yield [f"{term.name} {term.weight:+.6g}", *cells, difference]
    if added:
        sums = [sum(products) for products in zip(*alike, strict=True)]
        yield [f"{len(alike)} rows, no difference", *map(decimal, sums), _signed(sums[after] - sums[0])]


def _segments(known: Sequence[Span], words: Sequence[str]) -> str:
    return ", ".join(f"{kind} {' '.join(words[start:end])}" for kind, start, end in known) or "no segment"


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.12g}"


def explanation_html(
    explanations: Sequence[Explanation], title: str, notes: Sequence[str] = (), types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page in parts; an index comes first if there are several documents.

    Args:
        explanations: Decisions on documents, see `explain`.
        title: Title of the page.
        notes: Lines below the title.
        types: Segment types of the model; segments have the colours of their types.

    Example:
        >>> page = "".join(explanation_html([], "Changed by non-local features", notes=["0 documents changed"]))
        >>> "<title>Changed by non-local features</title>" in page
        True
    """
    sentences = [sentence for explanation in explanations for sentence in explanation.sentences]
    shown = {span.type for sentence in sentences for span in sentence.found}
    shown |= {span.type for sentence in sentences for change in sentence.changes for span in change.before}
    return render(
        "explanations.html",
        title=title,
        notes=notes,
        explanations=explanations,
        colours=type_colours(types, shown),
        types_shown=shown,
        legend=legend(explanations),
        verdicts=VERDICTS,
        **{function.__name__: function for function in (explanation_headline, context, readings, score_rows)},
        pieces=_pieces,
        types_text=_types_text,
        verdict_counts=_verdict_counts,
    )


def _verdict_counts(explanation: Explanation) -> str:
    counts = Counter(VERDICTS[change.verdict] if change.verdict else "changed" for change in explanation.changes)
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.items())


def _pieces(sentence: ChangedSentence) -> Iterator[tuple[str, str | None, Change | None]]:
    at = 0
    marks: dict[tuple[int, int], tuple[str | None, Change | None]]
    marks = {change.extent: (None, change) for change in sentence.changes}
    for kind, start, end in sentence.found:
        if not any(first < end and start < stop for first, stop in marks):
            marks[start, end] = (kind, None)
    for (start, end), mark in sorted(marks.items(), key=lambda item: item[0]):
        yield from ((word, None, None) for word in sentence.words[at:start])
        yield " ".join(sentence.words[start:end]), *mark
        at = end
    yield from ((word, None, None) for word in sentence.words[at:])


def _types_text(change: Change, known: Sequence[Span]) -> str:
    """Return types of segments; with their words, unless these are all words of the change."""
    names = [
        span.type if span[1:] == change.extent else f"{span.type} {' '.join(change.words[span.start : span.end])}"
        for span in known
    ]
    return ", ".join(names) or "none"
