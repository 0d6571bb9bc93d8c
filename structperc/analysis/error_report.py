"""Error analyses as text, as plain JSON types and as an HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from structperc.analysis.error_analysis import AnalysedSentence, ErrorAnalysis, FrequentError
from structperc.analysis.explanation_report import surrounding
from structperc.metrics.f_measure import SegmentScore
from structperc.metrics.segment_errors import ERROR_KINDS, ErrorKinds, SegmentPair
from structperc.reports.html_pages import Link, render, type_colours
from structperc.reports.tables import percent, text_table
from structperc.spelling import counted

LISTED = 20  # frequent errors, and confusions of many types
WORST = 10  # documents
WIDEST = 12  # types of a matrix
NOTHING = "nothing"  # gold or predicted type of a missing segment

Cell = str | Link
Rows = list[list[Cell]]


class Section(NamedTuple):
    """A table with its heading."""

    name: str  # in JSON
    heading: str
    rows: Rows
    align: str = "<>"


def error_lines(analysis: ErrorAnalysis) -> Iterator[str]:
    """Yield the tables of an error analysis, and the most frequent errors with context.

    Args:
        analysis: Result of `error_analysis`.

    Example:
        >>> from structperc.data import Span
        >>> pairs = [SegmentPair(Span("PER", 0, 1), None)]
        >>> analysis = ErrorAnalysis([AnalysedSentence(0, 0, "dev.txt:1", ["Anna", "left"], pairs)])
        >>> print(*list(error_lines(analysis))[-3:], sep="\\n")
        Most frequent errors
          1  missed: gold PER Anna
             dev.txt:1: [Anna] left
    """
    for section in _sections(analysis):
        rows = [[cell.text if isinstance(cell, Link) else cell for cell in row] for row in section.rows]
        yield from ("", section.heading, *text_table(rows, section.align, indent="  "))
    yield from ("", "Most frequent errors")
    frequent = analysis.frequent()[:LISTED]
    width = len(str(len(frequent[0].places))) if frequent else 0
    for error in frequent:
        sentence, pair = error.places[0]
        yield f"  {len(error.places):>{width}}  {describe_error(error, _kind_names(analysis))}"
        before, text, after = surrounding(sentence.words, *pair.extent)
        yield " " * (width + 4) + " ".join(part for part in (f"{sentence.place}:", before, f"[{text}]", after) if part)


def describe_error(error: FrequentError, kinds: Mapping[str, str] = ERROR_KINDS) -> str:
    """Return kind, gold and predicted segment in one line; `kinds` are the names of the kinds.

    Example:
        >>> describe_error(FrequentError("type", ("LOC", "Penus"), ("ORG", "Penus"), []))
        'wrong type: gold LOC Penus, predicted ORG Penus'
    """
    both = [("gold", error.gold), ("predicted", error.found)]
    parts = (f"{name} {' '.join(segment)}" for name, segment in both if segment is not None)
    return f"{kinds[error.kind]}: {', '.join(parts)}"


def _kind_names(analysis: ErrorAnalysis) -> dict[str, str]:
    """Return the names of the kinds of errors; labels without segments have a single kind."""
    return ERROR_KINDS if analysis.segments else {"type": "wrong label"}


def error_record(analysis: ErrorAnalysis) -> dict[str, Any]:
    """Return an error analysis as plain JSON types: shares in 0..1, numbers of documents and sentences from 1.

    Args:
        analysis: Result of `error_analysis`.

    Example:
        >>> from structperc.data import Span
        >>> pairs = [SegmentPair(Span("PER", 0, 1), None)]
        >>> analysis = ErrorAnalysis([AnalysedSentence(0, 0, "dev.txt:1", ["Anna", "left"], pairs)])
        >>> error_record(analysis)["kinds"]["PER"]["missed"]
        1
    """
    kinds, intervals = analysis.kinds(), analysis.intervals
    types = analysis.scores_by(lambda sentence, span: span.type)
    confusion = [{"gold": a, "predicted": b, "count": n} for (a, b), n in analysis.confusion().most_common() if a != b]
    whole = ErrorKinds.from_pairs(analysis.pairs)
    return {
        "types": {name: {**_shares(score), "intervals": intervals[name]._asdict()} for name, score in types.items()},
        "intervals": intervals[""]._asdict(),
        "kinds": {name: counts._asdict() for name, counts in kinds.items()},
        "semeval": {name: {**score._asdict(), **_prf(score)} for name, score in whole.semeval().items()},
        "confusion": confusion,
        "novelty": {name: _shares(score) for name, score in analysis.by_novelty().items()},
        "lengths": {name: _shares(score) for name, score in analysis.by_length().items()},
        "documents": {str(n + 1): _shares(score) for n, score in analysis.by_document().items()},
        "errors": [_error_record(error) for error in analysis.frequent()],
    }


def _prf(score: Any) -> dict[str, float]:
    return {"precision": score.precision, "recall": score.recall, "f1": score.f1}


def _shares(score: SegmentScore) -> dict[str, float]:
    return {**_prf(score), "correct": score.correct, "predicted": score.found, "gold": score.gold}


def _error_record(error: FrequentError) -> dict[str, Any]:
    sides = (("gold", error.gold), ("predicted", error.found))
    segments = {name: None if side is None else {"type": side[0], "words": side[1]} for name, side in sides}
    places = [f"sentence {sentence.number + 1}, {sentence.place}" for sentence, _ in error.places]
    return {"kind": error.kind, **segments, "count": len(places), "places": places}


# -- tables --------------------------------------------------------------------------------------------------


def _sections(analysis: ErrorAnalysis) -> Iterator[Section]:
    """Yield the tables; their cells link to parts of the HTML page."""
    unit, things = _unit(analysis), "segments" if analysis.segments else "tokens"
    yield Section("types", f"Scores by {unit}, {_drawn(analysis)}", _type_rows(analysis))
    yield Section("kinds", f"Kinds of errors: numbers of {things}", _kind_rows(analysis))
    if analysis.segments:
        yield Section("semeval", "Scores of SemEval-2013", _semeval_rows(analysis))
    if len(analysis.types) <= WIDEST:
        yield Section("confusion", f"Gold {unit}s (rows) and predicted {unit}s (columns)", _matrix_rows(analysis))
    else:
        yield Section("confusion", f"Most frequent confusions of {unit}s", _confusion_rows(analysis), "<<>")
    if novelty := analysis.by_novelty():
        yield Section("novelty", "Scores by words of the training data", _score_rows("words", novelty))
    if analysis.segments:
        yield Section("lengths", "Scores by number of tokens", _score_rows("tokens", analysis.by_length()))
    if analysis.documents:
        yield Section("documents", "Documents with the most errors", _document_rows(analysis))


def _unit(analysis: ErrorAnalysis) -> str:
    return "type" if analysis.segments else "label"


def _drawn(analysis: ErrorAnalysis) -> str:
    sentences = counted(len(analysis.sentences), "sentence")
    drawn = counted(analysis.documents, "document") if analysis.documents else sentences
    return f"95 % intervals of F1 by bootstrap over {drawn}"


def _type_rows(analysis: ErrorAnalysis) -> Rows:
    rows: Rows = [[_unit(analysis), "gold", "predicted", "precision", "recall", "F1", "from", "to"]]
    intervals, scores = analysis.intervals, analysis.scores_by(lambda sentence, span: span.type)
    whole = SegmentScore(*(sum(column) for column in zip(*scores.values(), strict=True))) if scores else None
    for name, score in [("", whole or SegmentScore(0, 0, 0)), *scores.items()]:
        rows.append([name or "all", *_score_cells(score), *map(percent, intervals[name].f1)])
    return rows


def _score_cells(score: SegmentScore) -> list[Cell]:
    return [f"{score.gold:,}", f"{score.found:,}", *map(percent, (score.precision, score.recall, score.f1))]


def _score_rows(what: str, scores: Mapping[str, SegmentScore]) -> Rows:
    heading: list[Cell] = [what, "gold", "predicted", "precision", "recall", "F1"]
    return [heading, *([name, *_score_cells(score)] for name, score in scores.items())]


def _kind_rows(analysis: ErrorAnalysis) -> Rows:
    rows: Rows = [[_unit(analysis), "correct", *_kind_names(analysis).values()]]
    number = _numbers(analysis)
    for name, kinds in [("all", ErrorKinds.from_pairs(analysis.pairs)), *analysis.kinds().items()]:
        counts: list[Cell] = [f"{count:,}" for count in kinds]
        if name in number:
            of_type, nothing = number[name], number[None]
            lists = [_target(of_type, of_type), _target(of_type, nothing), _target(nothing, of_type)]
            for place, target in zip((1, 3, 2, 4, 5), ("confusion", "confusion", *lists), strict=True):
                counts[place] = _linked(kinds[place], target)
        rows.append([name, *counts[: len(rows[0]) - 1]])
    return rows


def _semeval_rows(analysis: ErrorAnalysis) -> Rows:
    heading: list[Cell] = ["", "correct", "incorrect", "partial", "missed", "spurious", "precision", "recall", "F1"]
    rows: Rows = [heading]
    for name, score in ErrorKinds.from_pairs(analysis.pairs).semeval().items():
        rows.append([name, *(f"{n:,}" for n in score), *map(percent, _prf(score).values())])
    return rows


def _matrix_rows(analysis: ErrorAnalysis) -> Rows:
    confusion, number = analysis.confusion(), _numbers(analysis)
    if not analysis.segments:
        del number[None]
    rows: Rows = [["", *(name or NOTHING for name in number)]]
    for gold, i in number.items():
        cells: list[Cell] = []
        for other, j in number.items():
            count = confusion[gold, other]
            cells.append(_linked(count, _target(i, j)) if gold != other else f"{count:,}" if gold is not None else "")
        rows.append([gold or NOTHING, *cells])
    return rows


def _confusion_rows(analysis: ErrorAnalysis) -> Rows:
    number = _numbers(analysis)
    rows: Rows = [["gold", "predicted", "count"]]
    pairs = [(pair, n) for pair, n in analysis.confusion().most_common() if pair[0] != pair[1]]
    for (gold, predicted), count in pairs[:LISTED]:
        rows.append([gold or NOTHING, predicted or NOTHING, _linked(count, _target(number[gold], number[predicted]))])
    return rows


def _document_rows(analysis: ErrorAnalysis) -> Rows:
    first = {sentence.document: sentence for sentence in reversed(analysis.sentences)}
    rows: Rows = [["document", "begins at", "gold", "predicted", "precision", "recall", "F1"]]
    for number, score in [*analysis.by_document().items()][:WORST]:
        name = Link(str(number + 1), f"document-{number + 1}") if score.correct < max(score[1:]) else str(number + 1)
        rows.append([name, Path(first[number].place).name, *_score_cells(score)])
    return rows


def _numbers(analysis: ErrorAnalysis) -> dict[str | None, int]:
    """Return the number of each type in the names of links, and that of a missing segment."""
    return {name: i for i, name in enumerate([*analysis.types, None])}


def _linked(count: int, target: str) -> Cell:
    return Link(f"{count:,}", target) if count else "0"


def _target(gold: int, found: int) -> str:
    return f"errors-{gold}-{found}"


# -- HTML ----------------------------------------------------------------------------------------------------


class ErrorGroup(NamedTuple):
    """The errors with one gold and one predicted type."""

    target: str
    heading: str
    rows: list[tuple[FrequentError, str]]  # errors and their kinds


def error_html(
    analysis: ErrorAnalysis, title: str, notes: Sequence[str] = (), types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page in parts: tables with links to lists of errors, which link to sentences.

    Args:
        analysis: Result of `error_analysis`.
        title: Title of the page.
        notes: Lines below the title.
        types: Segment types of the model; segments have the colours of their types.

    Example:
        >>> from structperc.data import Span
        >>> pairs = [SegmentPair(Span("PER", 0, 1), None)]
        >>> analysis = ErrorAnalysis([AnalysedSentence(0, 0, "dev.txt:1", ["Anna", "left"], pairs)])
        >>> page = "".join(error_html(analysis, "Errors"))
        >>> 'href="#errors-0-1"' in page, 'id="errors-0-1"' in page, 'id="sentence-1"' in page
        (True, True, True)
    """
    return render(
        "errors.html",
        title=title,
        notes=notes,
        sections=list(_sections(analysis)),
        groups=list(_groups(analysis)),
        documents=_wrong_sentences(analysis),
        marked=bool(analysis.documents),
        colours=type_colours(types, analysis.types),
        pieces=_pieces,
    )


def _groups(analysis: ErrorAnalysis) -> Iterator[ErrorGroup]:
    number = _numbers(analysis)
    grouped: dict[tuple[str | None, str | None], list[FrequentError]] = {}
    for error in analysis.frequent():
        grouped.setdefault((error.gold and error.gold[0], error.found and error.found[0]), []).append(error)
    for (gold, predicted), errors in sorted(grouped.items(), key=lambda one: (number[one[0][0]], number[one[0][1]])):
        heading = f"gold {gold or NOTHING}, predicted {predicted or NOTHING}"
        total = counted(sum(len(error.places) for error in errors), "error")
        rows = [(error, _kind_names(analysis)[error.kind]) for error in errors]
        yield ErrorGroup(_target(number[gold], number[predicted]), f"{heading}: {total}", rows)


def _wrong_sentences(analysis: ErrorAnalysis) -> dict[int, list[AnalysedSentence]]:
    """Return the sentences with errors by document."""
    sentences: dict[int, list[AnalysedSentence]] = {}
    for sentence in analysis.sentences:
        if sentence.errors:
            sentences.setdefault(sentence.document, []).append(sentence)
    return sentences


def _pieces(sentence: AnalysedSentence) -> Iterator[tuple[str, str | None, list[SegmentPair]]]:
    """Yield words, the type of a correct segment, and the errors of the words; errors that overlap are one piece."""
    at = 0
    parts: list[tuple[int, int, list[SegmentPair]]] = []
    for pair in sentence.pairs:
        start, end = pair.extent
        if parts and start < parts[-1][1]:
            first, last, pairs = parts.pop()
            start, end, before = first, max(last, end), pairs
        else:
            before = []
        parts.append((start, end, [*before, pair]))
    for start, end, pairs in parts:
        yield from ((word, None, []) for word in sentence.words[at:start])
        errors = [pair for pair in pairs if pair.kind != "correct"]
        gold = pairs[0].gold
        yield " ".join(sentence.words[start:end]), None if errors or gold is None else gold.type, errors
        at = end
    yield from ((word, None, []) for word in sentence.words[at:])
