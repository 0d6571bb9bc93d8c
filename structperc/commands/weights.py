"""structperc weights MODEL: the largest weights by name, sums by label and template."""

from structperc.commands.command import Command, CommandParser
from structperc.commands.saved_model import add_model


def parser() -> CommandParser:
    """Of the arguments."""
    made = CommandParser("weights", "Show the largest weights of a saved model.")
    add_model(made)
    made.add_argument("--top", type=int, default=20, help="weights, label pairs and templates per list (default 20)")
    made.add_argument("--plot", metavar="FILE", help="write a figure with bars: .png, .svg, .pdf")
    made.add_argument("--csv", metavar="FILE", help="write all weights that are listed")
    return made


def run(arguments: list[str]) -> None:
    """Prints the lists."""
    options = parser().parse_args(arguments)

    from structperc.inspection.weights import weights_file

    print(weights_file(options.model, options.top, options.plot, options.csv, trusted=options.trust))


WEIGHTS = Command("weights", "MODEL", "the largest weights of a model, by name", run)
