"""structperc weights MODEL: the largest weights by name, sums by label and template."""

from structperc.cli.arguments import Command, CommandParser, add_model


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("weights", "Show the largest weights of a saved model.")
    add_model(made)
    made.add_argument("--top", type=int, default=20, help="weights, label pairs and templates per list (default 20)")
    made.add_argument("--plot", metavar="FILE", help="write a figure with bars: .png, .svg, .pdf")
    made.add_argument("--csv", metavar="FILE", help="write all weights that are listed")
    made.add_argument("--html", metavar="FILE", help="write a page for the browser")
    return made


def run(arguments: list[str]) -> None:
    """Load the model, write the figure, the CSV file and the page that are asked for, and print its largest weights."""
    options = parser().parse_args(arguments)

    from structperc.analysis.weight_ranking import weights
    from structperc.analysis.weight_report import Weight, weight_lines, weights_page
    from structperc.data.output import check_output_path, write_lines
    from structperc.reports.figures import check_figure, plot_weights, write_figure
    from structperc.reports.tables import write_csv
    from structperc.taggers.tagger import Tagger
    from structperc.training.predictions import short_names

    check_figure(options.plot)
    check_output_path(options.csv)
    check_output_path(options.html)
    tagger = Tagger.load(options.model, trusted=options.trust)
    groups = weights(tagger, options.top)
    if options.plot:
        bars = [(group.sums.name, [(weight.name, weight.value) for weight in group.largest]) for group in groups]
        write_figure(options.plot, plot_weights(bars))
    if options.csv:
        write_csv(options.csv, Weight._fields, (weight for group in groups for weight in group.listed))
    if options.html:
        write_lines(
            options.html, weights_page(groups, f"Weights of {short_names([options.model])[0]}", [options.model])
        )
    print("\n".join([*tagger.features.summary(), *weight_lines(groups, options.top)]))


WEIGHTS = Command("weights", "MODEL", "the largest weights of a model, by name", run)
