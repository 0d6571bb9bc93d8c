"""structperc decisions MODEL FILE: which token was decided when, with which label and score."""

from structperc.commands.command import Command, CommandParser
from structperc.commands.labelled_file import add_labelled_file, reading


def parser() -> CommandParser:
    """Of the arguments."""
    made = CommandParser("decisions", "Show how a guided tagger decides sentences, step by step.")
    add_labelled_file(made)
    which = made.add_mutually_exclusive_group()
    which.add_argument("--sentence", nargs="+", type=int, metavar="N", help="numbers of those to show, from 1")
    which.add_argument("--n", type=int, default=10, help="show the first n sentences (default 10)")
    made.add_argument("--html", metavar="FILE", help="write a page for the browser, too")
    return made


def run(arguments: list[str]) -> None:
    """Prints the sentences."""
    options = parser().parse_args(arguments)

    from structperc.inspection.decisions import decisions_file

    numbers, n = options.sentence, options.n
    for line in decisions_file(
        options.model, options.file, numbers, n, reading(options), options.html, trusted=options.trust
    ):
        print(line)


DECISIONS = Command("decisions", "MODEL FILE", "in which order a guided tagger decided", run)
