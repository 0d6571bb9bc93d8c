"""structperc candidates MODEL FILE: scores for several lengths of the list of candidates."""

from structperc.commands.command import Command, CommandParser
from structperc.commands.labelled_file import add_labelled_file, reading

LENGTHS = [1, 20, 100, 400, 800, 1600, 6400]


def parser() -> CommandParser:
    """Of the arguments."""
    made = CommandParser("candidates", "Scores of the n best, re-scored, for several n from one search.")
    add_labelled_file(made)
    text = f"lengths of the list (default {' '.join(map(str, LENGTHS))})"
    made.add_argument("--n", nargs="+", type=int, default=LENGTHS, help=text)
    made.add_argument("--plot", metavar="FILE", help="write a figure with curves: .png, .svg, .pdf")
    made.add_argument("--csv", metavar="FILE", help="write the table")
    return made


def run(arguments: list[str]) -> None:
    """Prints the table."""
    options = parser().parse_args(arguments)

    from structperc.inspection.nbest import nbest_file

    print(
        nbest_file(
            options.model, options.file, options.n, reading(options), options.plot, options.csv, trusted=options.trust
        )
    )


CANDIDATES = Command("candidates", "MODEL FILE", "scores for several lengths of the list", run)
