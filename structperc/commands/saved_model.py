"""The argument of the commands that load a saved model, and whose code that may run."""

from structperc.commands.command import CommandParser


def add_model(parser: CommandParser, several: bool = False) -> None:
    """The folder of a model, or of several, and modules outside of this library that models may name."""
    if several:
        parser.add_argument("models", nargs="+", metavar="model", help="folders of saved models")
    else:
        parser.add_argument("model", help="folder of a saved model, e.g. runs/quickstart/1/model")
    trust = "let the model use classes of this module, whose code runs; again for a second module"
    parser.add_argument("--trust", action="append", default=[], metavar="MODULE", help=trust)
