"""structperc reliability MODEL [MODEL ...] FILE: whether what is said with confidence 0.8 is right in 8 of 10 cases."""

from structperc.cli.arguments import Command, CommandParser, add_labelled_file, reading


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("reliability", "Confidence of predicted labels and segments against their accuracy.")
    add_labelled_file(made, several=True)
    made.add_argument("--bins", type=int, default=10, help="of equal width (default 10)")
    made.add_argument("--plot", metavar="FILE", help="write reliability diagrams: .png, .svg, .pdf")
    made.add_argument("--csv", metavar="FILE", help="write the bins")
    return made


def run(arguments: list[str]) -> None:
    """Load the models, read the file and print the tables; write the figure and the CSV file that are asked for."""
    options = parser().parse_args(arguments)

    from structperc.analysis.calibration import HEADER, bin_rows, plot_reliability, reliability, reliability_lines
    from structperc.analysis.input_files import read_gold
    from structperc.data.output import check_output_path
    from structperc.reports.figures import check_figure, write_figure
    from structperc.reports.tables import write_csv
    from structperc.taggers.tagger import Tagger
    from structperc.training.predictions import short_names

    check_figure(options.plot)
    check_output_path(options.csv)
    found = []
    for model, name in zip(options.models, short_names(options.models), strict=True):
        tagger = Tagger.load(model, trusted=options.trust)
        found.append(reliability(tagger, read_gold(tagger, options.file, reading(options)), options.bins, name))
    if options.plot:
        write_figure(options.plot, plot_reliability([(one.name, one.levels) for one in found]))
    if options.csv:
        write_csv(options.csv, HEADER, bin_rows(found))
    print("\n".join(reliability_lines(found)))


RELIABILITY = Command("reliability", "MODEL [MODEL ...] FILE", "confidence against accuracy", run)
