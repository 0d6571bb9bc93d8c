"""structperc compare A B [C ...]: scores of each and McNemar's p-values of each pair."""

from structperc.commands.command import Command, CommandParser


def parser() -> CommandParser:
    """Of the arguments."""
    made = CommandParser("compare", "Compare runs or prediction files.")
    what = "folder of a run, e.g. runs/quickstart/1, or a file of CoNLL columns, label last"
    made.add_argument("systems", nargs="+", metavar="RUN-OR-FILE", help=what)
    made.add_argument("--gold", help="CoNLL columns, label last; default: the last column but one of the predictions")
    made.add_argument("--split", default="test", help="which predictions of a run: test or dev (default test)")
    made.add_argument("--scheme", default="IOB2", help="IOB1, IOB2, IOBES, BILOU or none (default IOB2)")
    made.add_argument("--gamma", type=float, default=1.0, help="of the F measure; above 1 recall counts more")
    return made


def run(arguments: list[str]) -> None:
    """Prints the table."""
    options = parser().parse_args(arguments)

    from structperc.training.commands import compare_predictions

    print(compare_predictions(options.systems, options.gold, options.scheme, options.split, options.gamma))


COMPARE = Command("compare", "A B [C ...]", "runs or prediction files, McNemar tests", run)
