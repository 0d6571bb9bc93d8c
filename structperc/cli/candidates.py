"""structperc candidates MODEL FILE: scores for several lengths of the list of candidates."""

from structperc.cli.arguments import Command, CommandParser, add_labelled_file, reading

LENGTHS = [1, 20, 100, 400, 800, 1600, 6400]


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("candidates", "Scores of the n best, re-scored, for several n from one search.")
    add_labelled_file(made)
    text = f"lengths of the list (default {' '.join(map(str, LENGTHS))})"
    made.add_argument("--n", nargs="+", type=int, default=LENGTHS, help=text)
    made.add_argument("--plot", metavar="FILE", help="write a figure with curves: .png, .svg, .pdf")
    made.add_argument("--csv", metavar="FILE", help="write the table")
    return made


def run(arguments: list[str]) -> None:
    """Load the model, read the file and print the table; write the figure and the CSV file that are asked for."""
    options = parser().parse_args(arguments)

    from structperc.analysis.input_files import read_gold
    from structperc.analysis.nbest import HEADER, csv_rows, nbest_lines, nbest_scores
    from structperc.data.output import check_output_path
    from structperc.reports.figures import check_figure, plot_nbest, write_figure
    from structperc.reports.tables import write_csv
    from structperc.taggers.tagger import Tagger

    check_figure(options.plot)
    check_output_path(options.csv)
    tagger = Tagger.load(options.model, trusted=options.trust)
    lists = nbest_scores(tagger, read_gold(tagger, options.file, reading(options)), options.n)
    if options.plot:
        n, f1, best, gold_in_list = zip(
            *((r.n, r.chosen.f1, r.oracle.f1, r.gold_in_list) for r in lists.rows), strict=True
        )
        write_figure(options.plot, plot_nbest(n, f1, best, gold_in_list))
    if options.csv:
        write_csv(options.csv, HEADER, csv_rows(lists))
    print("\n".join(nbest_lines(lists)))


CANDIDATES = Command("candidates", "MODEL FILE", "scores for several lengths of the list", run)
