"""structperc tag MODEL FILE: the file's columns with one more, the predicted label."""

from structperc.commands.command import Command, CommandParser
from structperc.commands.labelled_file import add_file, reading
from structperc.commands.saved_model import add_model


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("tag", "Label a file of CoNLL columns.")
    add_model(made)
    add_file(made, "default: those the model reads come first")
    made.add_argument("-o", "--output", help="write here instead of to standard output")
    made.add_argument("-k", type=int, help="print the k best labellings with their scores instead")
    order = "write before the label in which step, from 1, a guided tagger decided the token"
    made.add_argument("--order", action="store_true", help=order)
    return made


def run(arguments: list[str]) -> None:
    """Load the model and write the file with labels, or the k best labellings."""
    options = parser().parse_args(arguments)

    from structperc.commands.tagging import tag_file

    wanted = (options.output, options.k, options.order)
    tag_file(options.model, options.file, reading(options), *wanted, trusted=options.trust)


TAG = Command("tag", "MODEL FILE", "label a file of columns with a saved model", run)
