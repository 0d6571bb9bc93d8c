"""structperc compare A B [C ...]: scores of each and McNemar's p-values of each pair."""

from structperc.cli.arguments import Command, CommandParser, add_encoding, add_labels
from structperc.data.read_options import ReadOptions


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("compare", "Compare runs or prediction files.")
    what = "folder of a run, e.g. runs/quickstart/1, or a file of CoNLL columns, label last"
    made.add_argument("systems", nargs="+", metavar="RUN-OR-FILE", help=what)
    made.add_argument("--gold", help="CoNLL columns, label last; default: the last column but one of the predictions")
    made.add_argument("--split", default="test", help="which predictions of a run: test or dev (default test)")
    scheme = "of the predictions: IOB1, IOB2, IOBES, BILOU or none; default: the one that fits them all, else IOB2"
    made.add_argument("--scheme", help=scheme)
    add_labels(made, "gold; default: that of the predictions, or the one that fits")
    add_encoding(made)
    made.add_argument("--beta", type=float, default=1.0, help="of the F measure; above 1 recall counts more")
    return made


def run(arguments: list[str]) -> None:
    """Read the predictions and print the table of scores and tests."""
    options = parser().parse_args(arguments)

    from structperc.cli.compare_predictions import compare_predictions

    reading = ReadOptions(labels=options.labels, encoding=options.encoding)
    print(compare_predictions(options.systems, options.gold, options.scheme, options.split, options.beta, reading))


COMPARE = Command("compare", "A B [C ...]", "runs or prediction files, McNemar tests", run)
