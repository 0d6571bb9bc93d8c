"""structperc study: train the configurations of a study, or one configuration with several values of its options."""

from structperc.cli.arguments import FILE, Command, CommandParser, refuse
from structperc.cli.messages import print_lines
from structperc.cli.train import FIT, HELP_ALL, parse_with_configuration


def study_parser() -> CommandParser:
    """Return the parser of the arguments of study that fit does not have."""
    parser = CommandParser(
        "study",
        "Train a list of configurations over seeds and write one table; with --grid, train a configuration once per "
        "value of some options, and choose the best on development data.",
        epilog="Further options with --grid are those of fit, for all trainings, such as --trainer.max_epochs=20: "
        "structperc fit --help, or --help-all.",
    )
    parser.add_argument("file", type=FILE, nargs="?", help="a study, such as configs/studies/embedded.yaml")
    config = "with --grid: configuration file, as in fit"
    parser.add_argument("-c", "--config", action="append", default=[], metavar="FILE", help=config)
    grid = "an option and its values, e.g. model.prior.init_args.C=0.01,0.1,1; repeat for several options"
    parser.add_argument("--grid", action="append", default=[], metavar="KEY=V1,V2", help=grid)
    holdout = "with --grid: evaluate on the last N training sequences, or on a random share below 1; then train on all"
    parser.add_argument("--holdout", type=_number, metavar="N", help=holdout)
    seeds = "with --grid: train each point with each of these seeds; points are chosen by their mean score"
    parser.add_argument("--seeds", nargs="+", action="extend", type=int, metavar="SEED", help=seeds)
    root = "folder of all runs and the table; default: runs/ and the file's name, or sweep-KEY"
    parser.add_argument("--root", metavar="FOLDER", help=root)
    return parser


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _study(arguments: list[str]) -> None:
    parser = study_parser()
    if HELP_ALL in arguments:
        parser.print_help()
        FIT.run([HELP_ALL])
        return
    options, rest = parse_with_configuration(parser, arguments)
    if bool(options.grid) != bool(options.config) or bool(options.grid) == (options.file is not None):
        parser.error("give the file of a study, or a configuration with -c and --grid")
    if not options.grid:
        refuse("study", options, ("holdout", "seeds"), "is of --grid")
        parser.parse_args(arguments)  # without options of fit
        FILE.check(options.file)

    from structperc.experiments.studies import study
    from structperc.experiments.sweeps import sweep
    from structperc.training.run_folders import resume_hint

    with resume_hint(lambda: ["study", *arguments]):
        if options.grid:
            print_lines(sweep(options.config, options.grid, options.holdout or 0, options.seeds, options.root, rest))
        else:
            print_lines(study(options.file, options.root))


STUDY = Command("study", "FILE | -c FILE --grid", "train configurations, or values; one table", _study, study_parser)
