"""Commands that train many configurations: sweep and study."""

from argparse import Namespace

from structperc.cli.arguments import Command, CommandParser, command
from structperc.cli.output import print_lines
from structperc.cli.train import FIT, HELP_ALL


def sweep_parser() -> CommandParser:
    """Return the parser of the arguments of sweep that fit does not have."""
    parser = CommandParser(
        "sweep",
        "Train a configuration once per value of some options, choose the best on development data.",
        epilog="Further options are those of fit, for all trainings, such as --trainer.max_epochs=20: "
        "structperc fit --help, or --help-all.",
    )
    config = "configuration file, as in fit"
    parser.add_argument("-c", "--config", action="append", required=True, metavar="FILE", help=config)
    grid = "an option and its values, e.g. model.prior.init_args.C=0.01,0.1,1; repeat for several options"
    parser.add_argument("--grid", action="append", required=True, metavar="KEY=V1,V2", help=grid)
    holdout = "evaluate on the last N training sequences, or on a random share below 1; then train on all"
    parser.add_argument("--holdout", type=_number, default=0, metavar="N", help=holdout)
    seeds = "train each point with each of these seeds; points are chosen by their mean score"
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help=seeds)
    parser.add_argument("--root", metavar="FOLDER", help="folder of the sweep; default: sweep-KEY in the runs folder")
    return parser


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _sweep(arguments: list[str]) -> None:
    if HELP_ALL in arguments:
        sweep_parser().print_help()
        FIT.run([HELP_ALL])
        return
    options, rest = sweep_parser().parse_known_args(arguments)

    from structperc.experiments import sweep
    from structperc.packaged_configs import packaged_path
    from structperc.training.run_folders import resume_hint

    with resume_hint(lambda: ["sweep", *arguments]):
        files = [packaged_path(file) for file in options.config]
        print_lines(sweep(files, options.grid, options.holdout, options.seeds, options.root, rest))


SWEEP = Command("sweep", "-c FILE --grid KEY=V,V", "train once per value, choose on dev", _sweep, sweep_parser)


def _study_arguments(parser: CommandParser) -> None:
    parser.add_argument("file", help="a study, such as configs/studies/embedded.yaml")
    parser.add_argument(
        "--root", metavar="FOLDER", help="folder of all runs and the table; default: runs/ and the file's name"
    )


@command("FILE", "train configurations over seeds, one table", _study_arguments)
def study(options: Namespace) -> None:
    """Train a list of configurations over seeds and write one table."""
    from structperc.experiments import study
    from structperc.training.run_folders import resume_hint

    arguments = ["study", options.file, *([] if options.root is None else ["--root", options.root])]
    with resume_hint(lambda: arguments):
        print_lines(study(options.file, options.root))
