"""Commands that train a configuration several times, or several ones: sweep, study and noise."""

from argparse import Namespace

from structperc.cli.arguments import FILE, Command, CommandParser, command
from structperc.cli.messages import print_lines
from structperc.cli.train import FIT, HELP_ALL, check_configuration


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
    parser.add_argument("--seeds", nargs="+", action="extend", type=int, metavar="SEED", help=seeds)
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
    check_configuration([*(f"--config={file}" for file in options.config), *rest], ("train",))

    from structperc.experiments import sweep
    from structperc.packaged_configs import packaged_path
    from structperc.training.run_folders import resume_hint

    with resume_hint(lambda: ["sweep", *arguments]):
        files = [packaged_path(file) for file in options.config]
        print_lines(sweep(files, options.grid, options.holdout, options.seeds, options.root, rest))


SWEEP = Command("sweep", "-c FILE --grid KEY=V,V", "train once per value, choose on dev", _sweep, sweep_parser)


def noise_parser() -> CommandParser:
    """Return the parser of the arguments of noise that fit does not have."""
    parser = CommandParser(
        "noise",
        "List labels of the training data that models trained without them contradict: possible errors of annotation.",
        epilog="The report ends with the F1 of the models on sentences that they were not trained on. Below 70 most "
        "contradictions are errors of the models: give more text, or a configuration with a higher score. "
        "Further options are those of fit, such as --trainer.max_epochs=20: structperc fit --help.",
    )
    config = "configuration file, as in fit"
    parser.add_argument("-c", "--config", action="append", required=True, metavar="FILE", help=config)
    parser.add_argument("--folds", type=int, default=10, metavar="N", help="parts of the data (default 10)")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="splits into folds (default 1)")
    parser.add_argument("-n", type=int, default=100, metavar="N", help="contradictions to print (default 100)")
    parser.add_argument("--csv", metavar="FILE", help="write all contradictions")
    rows = "write the sentences with their spans and contradictions as JSON lines, which convert reads"
    parser.add_argument("--json", metavar="FILE", help=rows)
    return parser


def _noise(arguments: list[str]) -> None:
    parser = noise_parser()
    options, rest = parser.parse_known_args(arguments)
    if options.n < 0:
        parser.error(f"-n must be >= 0, got {options.n}")
    check_configuration([*(f"--config={file}" for file in options.config), *rest], ("train",))

    from structperc.analysis.label_noise import CSV_HEADER, label_noise, noise_lines, noise_rows
    from structperc.data.json_data import json_line
    from structperc.data.output import check_output_path, write_lines
    from structperc.experiments.experiment import dry_run
    from structperc.packaged_configs import packaged_path
    from structperc.reports.tables import write_csv
    from structperc.reranking.jackknife import JackKnife

    check_output_path(options.csv)
    check_output_path(options.json)
    program = dry_run([*(f"--config={packaged_path(file)}" for file in options.config), *rest])
    trainer = program.config["trainer"]
    seed = program.config["seed_everything"]
    plan = JackKnife(
        options.folds,
        trainer["max_epochs"],
        1 if seed is False else seed,
        gradient_clip_val=trainer["gradient_clip_val"],
    )
    shared = {name: trainer[name] for name in ("accelerator", "enable_progress_bar")}
    found = label_noise(program.model, program.datamodule, plan, options.rounds, **shared)  # type: ignore[arg-type]
    if options.csv is not None:
        write_csv(options.csv, CSV_HEADER, (one.row() for one in found.contradictions))
    if options.json is not None:
        write_lines(options.json, map(json_line, noise_rows(found.contradictions)))
    print("\n".join(noise_lines(found, options.n)))


NOISE = Command("noise", "-c FILE", "training labels that may be wrong", _noise, noise_parser)


def _study_arguments(parser: CommandParser) -> None:
    parser.add_argument("file", type=FILE, help="a study, such as configs/studies/embedded.yaml")
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
