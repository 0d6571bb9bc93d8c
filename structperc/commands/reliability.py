"""structperc reliability MODEL [MODEL ...] FILE: is what is said with confidence 0.8 right in 8 of 10 cases."""

from structperc.commands.command import Command, CommandParser
from structperc.commands.labelled_file import add_labelled_file, reading


def parser() -> CommandParser:
    """Of the arguments."""
    made = CommandParser("reliability", "Confidence of predicted labels and segments against their accuracy.")
    add_labelled_file(made, several=True)
    made.add_argument("--bins", type=int, default=10, help="of equal width (default 10)")
    made.add_argument("--plot", metavar="FILE", help="write reliability diagrams: .png, .svg, .pdf")
    made.add_argument("--csv", metavar="FILE", help="write the bins")
    return made


def run(arguments: list[str]) -> None:
    """Prints the tables."""
    options = parser().parse_args(arguments)

    from structperc.inspection.reliability import reliability_file

    print(
        reliability_file(
            options.models,
            options.file,
            options.bins,
            reading(options),
            options.plot,
            options.csv,
            trusted=options.trust,
        )
    )


RELIABILITY = Command("reliability", "MODEL [MODEL ...] FILE", "confidence against accuracy", run)
