"""structperc sweep -c FILE --grid KEY=V1,V2: a training per value, the best on development data."""

from structperc.cli.arguments import Command, CommandParser
from structperc.cli.output import print_lines
from structperc.cli.train import ALL, FIT


def parser() -> CommandParser:
    """Return the parser of the command's arguments, other than those of fit."""
    made = CommandParser(
        "sweep",
        "Train a configuration once per value of some options, choose the best on development data.",
        epilog="Further options are those of fit, for all trainings, such as --trainer.max_epochs=20: "
        "structperc fit --help, or --help-all.",
    )
    made.add_argument("-c", "--config", action="append", required=True, metavar="FILE", help="as of fit")
    grid = "an option and its values, e.g. model.prior.init_args.C=0.01,0.1,1; again for a second option"
    made.add_argument("--grid", action="append", required=True, metavar="KEY=V1,V2", help=grid)
    held = "choose on the last N training sequences, or on a share below 1 drawn at random; then train on all"
    made.add_argument("--holdout", type=_number, default=0, metavar="N", help=held)
    seeds = "train each point with each of these seeds; points are chosen by their mean score"
    made.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help=seeds)
    made.add_argument("--root", metavar="FOLDER", help="of the sweep; default: sweep-KEY among the runs of the file")
    return made


def _number(text: str) -> int | float:
    """A number of sequences, or a share of them."""
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def run(arguments: list[str]) -> None:
    """Train the points of the sweep, and print the progress and the outcome."""
    if ALL in arguments:
        parser().print_help()
        FIT.run([ALL])
        return
    options, rest = parser().parse_known_args(arguments)

    from structperc.experiments import sweep
    from structperc.packaged_configs import packaged
    from structperc.training.run_folders import resume_hint

    with resume_hint(lambda: ["sweep", *arguments]):
        files = [packaged(file) for file in options.config]
        print_lines(sweep(files, options.grid, options.holdout, options.seeds, options.root, rest))


SWEEP = Command("sweep", "-c FILE --grid KEY=V,V", "train once per value, choose on dev", run)
