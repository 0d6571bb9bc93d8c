"""Explanations of decisions as text.

A document as HTML with its segments marked; those that changed are shown with what they were before.

Explanations of decisions as one HTML page.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from structperc.analysis.explanation import VERDICTS, Candidate, Change, ChangedSentence, Explanation, Term
from structperc.data.tag_schemes import Span
from structperc.reports.html_pages import MARK_COLOURS, STYLE, html_page, html_table, type_colours
from structperc.reports.tables import text_table

CONTEXT = 12  # words to either side of what changed


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield what changed, then a table of scores with a column for each candidate."""
    yield explanation_headline(explanation)
    for change in explanation.changes:
        yield ""
        yield from _change_lines(change)
    yield ""
    yield from text_table(score_rows(explanation), indent="  ")


def legend(explanations: Sequence[Explanation]) -> list[str]:
    """Return lines that explain the words of the tables; none where there are no explanations."""
    if not explanations:
        return []
    known = any(candidate.is_gold for one in explanations for candidate in one.candidates)
    return [
        "before: the labels that words and neighbouring labels alone would choose, those of the best local score",
        "after: the labels that are chosen with the non-local features, those of the best total score",
        *(["gold: the correct labels"] if known else []),
        "Tables have a column for each of these, and for some others of the list; difference is after minus before.",
        "non-local, shared: what non-local features add to all of these columns alike",
        "A row such as phrase(PER,PER) +0.5 is a non-local feature and its weight. 1 (2) in it means that the labels "
        "of this column have it 2 times, which adds 1 to their score.",
        "no difference: such rows in which before and after agree, added up",
    ]


def explanation_headline(explanation: Explanation) -> str:
    """Return one line about a document: which candidate by local score has become the best."""
    new = explanation.candidates[explanation.after]
    where = f"document {explanation.row + 1} ({explanation.place})"
    if new.local_rank == 1:
        return f"{where}: the best of {explanation.n} by local score stays the best"
    return f"{where}: number {new.local_rank} of {explanation.n} by local score becomes the best"


def context(change: Change) -> tuple[str, str, str]:
    """Return the words before what changed, its own, and those after it; long sentences are cut."""
    first, stop = change.extent
    before, after = change.words[max(0, first - CONTEXT) : first], change.words[stop : stop + CONTEXT]
    opening = ["..."] * (first > CONTEXT) + before
    closing = after + ["..."] * (len(change.words) - stop > CONTEXT)
    return " ".join(opening), " ".join(change.words[first:stop]), " ".join(closing)


def readings(change: Change) -> list[tuple[str, str]]:
    """Return [(name, segments as text)]: before and after non-local features, and gold where it is known."""
    who = [("before", change.before), ("after", change.after)]
    who += [] if change.gold is None else [("gold", change.gold)]
    return [(name, _segments(known, change.words)) for name, known in who]


def change_verdict(change: Change) -> str:
    """Return the verdict in words; "" when gold is not known."""
    return "" if change.gold is None else VERDICTS[change.verdict]


def score_rows(explanation: Explanation) -> list[list[str]]:
    """Return the scores as cells: a heading, local score, same, terms with counts, total, ranks.

    A column per candidate. The last column is what the decision after has more than the one before.
    """
    shown, after = explanation.candidates, explanation.after
    rows = [["", *map(_title, shown), "difference"]]
    values = [("local score", [c.local for c in shown]), ("non-local, shared", [explanation.same] * len(shown))]
    rows += [[name, *map(number, scores), _signed(scores[after] - scores[0])] for name, scores in values]
    rows += _term_rows(explanation.terms, after)
    rows.append(["total score", *(number(c.total) for c in shown), _signed(shown[after].total - shown[0].total)])
    rows.append(["rank by local score", *(str(c.local_rank) for c in shown), ""])
    rows.append(["rank by total score", *(str(c.rank) for c in shown), ""])
    return rows


def _term_rows(terms: Sequence[Term], after: int) -> Iterator[list[str]]:
    """A row per term; several that make no difference between the two decisions, where these are two, are added up."""
    differences = [_signed(term.products[after] - term.products[0]) for term in terms]
    alike = [term.products for term, difference in zip(terms, differences, strict=True) if difference == "+0"]
    added = after > 0 and len(alike) > 1
    for term, difference in zip(terms, differences, strict=True):
        if not (added and difference == "+0"):
            cells = [f"{number(x)} ({count:g})" for x, count in zip(term.products, term.counts, strict=True)]
            yield [f"{term.name} {term.weight:+.6g}", *cells, difference]
    if added:
        sums = [sum(products) for products in zip(*alike, strict=True)]
        yield [f"{len(alike)} rows, no difference", *map(number, sums), _signed(sums[after] - sums[0])]


def _title(candidate: Candidate) -> str:
    facts = {"before": candidate.local_rank == 1, "after": candidate.rank == 1, "gold": candidate.is_gold}
    return ", ".join(name for name, holds in facts.items() if holds) or "other"


def _segments(known: Sequence[Span], words: Sequence[str]) -> str:
    return ", ".join(f"{kind} {' '.join(words[start:end])}" for kind, start, end in known) or "no segment"


def _change_lines(change: Change) -> Iterator[str]:
    before, own, after = context(change)
    yield "  " + " ".join(part for part in (f"{change.place}:", before, f"[{own}]", after) if part)
    yield from (f"    {who:<6} {text}" for who, text in readings(change))
    if change_verdict(change):
        yield f"    {change_verdict(change)}"


def number(value: float) -> str:
    """Return a number as text, with up to three decimals."""
    return f"{round(value, 3) + 0.0:.12g}"  # + 0.0 so that nothing is -0


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.12g}"


MARK_STYLE = (
    MARK_COLOURS
    + """
.document { line-height: 1.9; max-width: 46rem; }
.document p { margin: .1rem 0; }
mark.changed { background: none; outline: 2px solid var(--dim); margin: 0 .15em; }
mark.repaired { outline-color: var(--good); }
mark.damaged { outline-color: var(--bad); }
mark del { color: var(--dim); }
mark ins { text-decoration: none; }
"""
)

Tints = Mapping[str, int]


def types_of(explanations: Iterable[Explanation]) -> set[str]:
    """Return the types of all segments that are shown."""
    return {span.type for one in explanations for sentence in one.sentences for span in _all_spans(sentence)}


def _all_spans(sentence: ChangedSentence) -> Iterator[Span]:
    yield from sentence.found
    for change in sentence.changes:
        yield from change.before


def marked_lines(sentences: Iterable[ChangedSentence], tinted: Tints) -> Iterator[str]:
    """Yield a paragraph of HTML for each sentence."""
    yield '<div class="document">\n'
    yield from (f"<p>{' '.join(_pieces(sentence, tinted))}</p>\n" for sentence in sentences if sentence.words)
    yield "</div>\n"


def _pieces(sentence: ChangedSentence, tinted: Tints) -> Iterator[str]:
    """Words and marks, in their order."""
    at, marks = 0, {change.extent: _changed_mark(change) for change in sentence.changes}
    for kind, start, end in sentence.found:
        if not any(first < end and start < stop for first, stop in marks):
            marks[start, end] = _marked(sentence.words[start:end], kind, tinted)
    for (start, end), mark in sorted(marks.items()):
        yield from map(escape, sentence.words[at:start])
        yield mark
        at = end
    yield from map(escape, sentence.words[at:])


def _marked(words: Sequence[str], kind: str, tinted: Tints) -> str:
    """A segment with its type."""
    return f'<mark class="t{tinted[kind]}">{escape(" ".join(words))}<small>{escape(kind)}</small></mark>'


def _changed_mark(change: Change) -> str:
    first, stop = change.extent
    words = escape(" ".join(change.words[first:stop]))
    before, after = (escape(_named(change, spans)) for spans in (change.before, change.after))
    kind = "changed" if change.gold is None else f"changed {change.verdict}"
    return f'<mark class="{kind}">{words}<small><del>{before}</del> <ins>{after}</ins></small></mark>'


def _named(change: Change, spans: Sequence[Span]) -> str:
    """Types of segments; with their words, where they are not all that changed."""
    names = [
        span.type if span[1:] == change.extent else f"{span.type} {' '.join(change.words[span.start : span.end])}"
        for span in spans
    ]
    return ", ".join(names) or "none"


def explanation_html(
    explanations: Sequence[Explanation], title: str, notes: Sequence[str] = (), types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page about decisions, line by line with line ends; all text is escaped.

    Where there are several documents, an index comes first. Colours go by the segment types of the model, if these are
    given.
    """
    yield from html_page(title, notes, _contents(explanations, types), STYLE + STYLE)


def _contents(explanations: Sequence[Explanation], types: Sequence[str]) -> Iterator[str]:
    tinted = type_colours(types, types_of(explanations))
    if len(explanations) > 1:
        yield from _index(explanations)
    if explanations:
        yield from _legend(explanations, tinted)
    for explanation in explanations:
        yield from _section(explanation, tinted, len(explanations) > 1)


def _index(explanations: Sequence[Explanation]) -> Iterator[str]:
    """Links to all documents, with what came of their changes."""
    yield '<nav id="index">\n<p>Documents:</p>\n<ul>\n'
    for one in explanations:
        found = Counter(change_verdict(change) or "changed" for change in one.changes)
        about = escape(", ".join(f"{n} {what}" for what, n in found.items()))
        yield f'<li><a href="#{_anchor(one)}">{one.row + 1}</a> <small>{about}</small></li>\n'
    yield "</ul>\n</nav>\n"


def _anchor(explanation: Explanation) -> str:
    return f"document-{explanation.row + 1}"


def _legend(explanations: Sequence[Explanation], tinted: Tints) -> Iterator[str]:
    seen = types_of(explanations)
    types = " ".join(f'<mark class="t{tint}">{escape(name)}</mark>' for name, tint in tinted.items() if name in seen)
    changed = '<mark class="changed">words<small><del>before</del> <ins>after</ins></small></mark>'
    yield f'<div class="legend">\n<p>{types} {changed} changed by non-local features</p>\n'
    yield from (f"<p>{escape(line)}</p>\n" for line in legend(explanations))
    yield "</div>\n"


def _section(explanation: Explanation, tinted: Tints, indexed: bool) -> Iterator[str]:
    back = '<a href="#index">index</a>' if indexed else ""
    yield f'<section id="{_anchor(explanation)}">\n<h2>{escape(explanation_headline(explanation))}{back}</h2>\n'
    yield from marked_lines(explanation.sentences, tinted)
    for change in explanation.changes:
        yield from _change(change)
    rows = score_rows(explanation)
    yield from html_table(rows, ["total" if row[0] == "total score" else "" for row in rows[1:]])
    yield "</section>\n"


def _change(change: Change) -> Iterator[str]:
    before, own, after = map(escape, context(change))
    yield f'<p><span class="place">{escape(change.place)}</span> {before} <strong>{own}</strong> {after}</p>\n<dl>\n'
    for who, text in readings(change):
        yield f"<dt>{who}</dt><dd>{escape(text)}</dd>\n"
    if change_verdict(change):
        yield f'<dt></dt><dd class="{change.verdict}">{escape(change_verdict(change))}</dd>\n'
    yield "</dl>\n"
