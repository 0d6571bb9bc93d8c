"""Texts with their segments marked in place, as one HTML page that needs nothing else."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from structperc.reports.page import STYLE, TINTED, framed, tints
from structperc.text import TextSpan, TokenizedText

OWN = """
.text { line-height: 1.9; max-width: 46rem; white-space: pre-wrap; }
mark small i { font-style: normal; font-weight: normal; margin-left: .3em; }
"""


def text_page(
    texts: Sequence[TokenizedText], spans: Sequence[Sequence[TextSpan]], title: str, types: Sequence[str] = ()
) -> Iterator[str]:
    """Yield an HTML page of texts, line by line with line ends; all of their characters are escaped.

    Colours go by the segment types of the model, if these are given.
    """
    counts = Counter(span.type for found in spans for span in found)
    tinted = tints(types, counts)
    yield from framed(title, [], _contents(texts, spans, tinted, counts), STYLE + TINTED + OWN)


def _contents(
    texts: Sequence[TokenizedText], spans: Sequence[Sequence[TextSpan]], tinted: dict[str, int], counts: Counter[str]
) -> Iterator[str]:
    types = (
        f'<mark class="t{tint}">{escape(kind)}<small>{counts[kind]}</small></mark>'
        for kind, tint in tinted.items()
        if counts[kind]
    )
    yield f'<p class="legend">{" ".join(types)}</p>\n'
    for text, found in zip(texts, spans, strict=True):
        yield f'<section class="text">{"".join(_pieces(text.text, found, tinted))}</section>\n'


def _pieces(text: str, spans: Sequence[TextSpan], tinted: dict[str, int]) -> Iterator[str]:
    """The characters of a text, those of spans in marks."""
    at = 0
    for start, end, kind, confidence in spans:
        sure = "" if confidence is None else f"<i>{confidence:.2f}</i>"
        yield escape(text[at:start])
        yield f'<mark class="t{tinted[kind]}">{escape(text[start:end])}<small>{escape(kind)}{sure}</small></mark>'
        at = end
    yield escape(text[at:])
