"""HTML pages that need no other files, from the Jinja2 templates in the folder `templates`."""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

HUES = (210, 20, 130, 280, 50, 330, 170, 0)  # colours of the first segment types
UNDERLINES = ("none", "solid", "dotted")  # for further types with the same hue
COLOURS = len(HUES) * len(UNDERLINES)


class Link(NamedTuple):
    """A cell of a table that links to an element of the page, by its id.

    Example:
        >>> Link("12", target="errors-0-1").text
        '12'
    """

    text: str
    target: str


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("structperc.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(hues=HUES, underlines=UNDERLINES)
    return made


def render(template: str, **values: Any) -> Iterator[str]:
    """Yield the parts of a page; all text in `values` is escaped.

    Args:
        template: name of a file in `templates`; those that extend page.html need `title` and `notes`.
        values: variables and functions of the template.
    """
    return _environment().get_template(template).generate(values)


def page_title(subject: str, model: str, file: str) -> tuple[str, list[str]]:
    """Return a title with the name of a file without its folder, and a note with both paths."""
    return f"{subject}: {Path(file).name}", [f"model {model}, file {file}"]


def type_colours(types: Iterable[str], seen: Iterable[str] = ()) -> dict[str, int]:
    """Return the colour number of each segment type: its index among the types of the model, then the others `seen`.

    A type has the same colour on all pages of a model.
    """
    known = list(dict.fromkeys(types))
    return {name: i % COLOURS for i, name in enumerate([*known, *sorted({*seen} - {*known})])}
