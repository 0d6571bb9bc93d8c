"""structperc explain MODEL FILE: what non-local features changed, and by which counts."""

from structperc.commands.command import Command, CommandParser
from structperc.commands.labelled_file import add_labelled_file, reading


def parser() -> CommandParser:
    """Of the arguments."""
    made = CommandParser("explain", "Show which decisions non-local features changed, and why.")
    add_labelled_file(made)
    made.add_argument("--document", type=int, help="number of the one to explain, from 1; default: all that changed")
    made.add_argument("--n", type=int, help="candidates; default: as many as the model decodes with, or 100")
    made.add_argument("--html", metavar="FILE", help="write a page for the browser, too")
    return made


def run(arguments: list[str]) -> None:
    """Prints the explanations."""
    options = parser().parse_args(arguments)

    from structperc.inspection.explain import explain_file

    document, n = options.document, options.n
    for line in explain_file(
        options.model, options.file, document, n, reading(options), options.html, trusted=options.trust
    ):
        print(line)


EXPLAIN = Command("explain", "MODEL FILE", "why non-local features changed decisions", run)
