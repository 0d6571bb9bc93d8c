"""Commands that analyse saved models: weights, candidates, explain, decisions and reliability."""

from argparse import Namespace

from structperc.cli.arguments import (
    CommandParser,
    add_labelled_file,
    add_model,
    command,
    read_options,
)
from structperc.errors import InputError

LENGTHS = [1, 20, 100, 400, 800, 1600, 6400]
EXPLAINED = 100  # candidates of `explain` for models that decode with the best one alone


def _weights_arguments(parser: CommandParser) -> None:
    add_model(parser)
    parser.add_argument("--top", type=int, default=20, help="weights, label pairs and templates per list (default 20)")
    parser.add_argument("--plot", metavar="FILE", help="write a figure with bars: .png, .svg, .pdf")
    parser.add_argument("--csv", metavar="FILE", help="write all weights that are listed")
    parser.add_argument("--html", metavar="FILE", help="write a page for the browser")


@command("MODEL", "the largest weights of a model, by name", _weights_arguments)
def weights(options: Namespace) -> None:
    """Show the largest weights of a saved model."""

    from structperc.analysis.weight_ranking import Weight, weight_lines, weights, weights_page
    from structperc.data.output import check_output_path, write_lines
    from structperc.models.chain_model import ChainModel
    from structperc.reports.figures import check_figure, plot_weights, write_figure
    from structperc.reports.tables import write_csv
    from structperc.training.predictions import short_names

    check_figure(options.plot)
    check_output_path(options.csv)
    check_output_path(options.html)
    tagger = ChainModel.load(options.model, trusted=options.trust)
    groups = weights(tagger, options.top)
    if options.plot:
        bars = [(group.sums.name, [(weight.name, weight.value) for weight in group.largest]) for group in groups]
        write_figure(options.plot, plot_weights(bars))
    if options.csv:
        write_csv(options.csv, Weight._fields, (weight for group in groups for weight in group.listed))
    if options.html:
        title = f"Weights of {short_names([options.model])[0]}"
        write_lines(options.html, weights_page(groups, title, [options.model]))
    print("\n".join([*tagger.features.summary(), *weight_lines(groups, options.top)]))


def _candidates_arguments(parser: CommandParser) -> None:
    add_labelled_file(parser)
    text = f"lengths of the list (default {' '.join(map(str, LENGTHS))})"
    parser.add_argument("--n", nargs="+", action="extend", type=int, help=text)
    parser.add_argument("--plot", metavar="FILE", help="write a figure with curves: .png, .svg, .pdf")
    parser.add_argument("--csv", metavar="FILE", help="write the table")


@command("MODEL FILE", "scores for several lengths of the list", _candidates_arguments)
def candidates(options: Namespace) -> None:
    """Score the n best, re-scored, for several n from one search."""

    from structperc.analysis.nbest import HEADER, csv_rows, nbest_lines, nbest_scores
    from structperc.data.output import check_output_path
    from structperc.models.chain_model import ChainModel
    from structperc.reports.figures import check_figure, plot_nbest, write_figure
    from structperc.reports.tables import write_csv
    from structperc.tagging.labelled_files import read_gold

    check_figure(options.plot)
    check_output_path(options.csv)
    tagger = ChainModel.load(options.model, trusted=options.trust)
    lists = nbest_scores(tagger, read_gold(tagger, options.file, read_options(options)), options.n or LENGTHS)
    if options.plot:
        curves = zip(*((r.n, r.chosen.f1, r.oracle.f1, r.gold_in_list) for r in lists.rows), strict=True)
        write_figure(options.plot, plot_nbest(*curves))
    if options.csv:
        write_csv(options.csv, HEADER, csv_rows(lists))
    print("\n".join(nbest_lines(lists)))


def _explain_arguments(parser: CommandParser) -> None:
    add_labelled_file(parser)
    parser.add_argument("--document", type=int, help="number of the one to explain, from 1; default: all that changed")
    parser.add_argument("--n", type=int, help="candidates; default: as many as the model decodes with, or 100")
    parser.add_argument("--html", metavar="FILE", help="write a page for the browser, too")


@command("MODEL FILE", "why non-local features changed decisions", _explain_arguments)
def explain(options: Namespace) -> None:
    """Show which decisions non-local features changed, and why."""

    from structperc.analysis.explanation import check_explainable, explain, explain_changed, summarise
    from structperc.analysis.explanation_report import explanation_html, explanation_lines, legend
    from structperc.data.output import check_output_path, write_lines
    from structperc.models.chain_model import ChainModel
    from structperc.reports.html_pages import page_title
    from structperc.tagging.labelled_files import read_corpus

    check_output_path(options.html)
    tagger = ChainModel.load(options.model, trusted=options.trust)
    n = options.n if options.n is not None else (tagger.decoder.k if tagger.decoder.k > 1 else EXPLAINED)
    check_explainable(tagger, n)
    corpus = read_corpus(tagger, options.file, read_options(options))
    if options.document is None:
        found = list(explain_changed(tagger, corpus, n))
        closing = [summarise(found, corpus).line()]
    else:
        found, closing = [explain(tagger, corpus, options.document - 1, n)], []
    if options.html is not None:
        title, notes = page_title("Changed by non-local features", options.model, options.file)
        write_lines(options.html, explanation_html(found, title, [*notes, *closing], tagger.labels.type_names))
    for explanation in found:
        print("\n".join([*explanation_lines(explanation), ""]))
    for line in (*legend(found), *closing):
        print(line)


def _decisions_arguments(parser: CommandParser) -> None:
    add_labelled_file(parser)
    which = parser.add_mutually_exclusive_group()
    numbers = "numbers of those to show, from 1"
    which.add_argument("--sentence", nargs="+", action="extend", type=int, metavar="N", help=numbers)
    which.add_argument("--n", type=int, default=10, help="show the first n sentences (default 10)")
    parser.add_argument("--html", metavar="FILE", help="write a page for the browser, too")


@command("MODEL FILE", "in which order a guided tagger decided", _decisions_arguments)
def decisions(options: Namespace) -> None:
    """Show how a guided tagger decides sentences, step by step."""

    from structperc.analysis.decision_order import DECISION_NOTES, decision_html, decision_lines, decisions
    from structperc.data.output import check_output_path, write_lines
    from structperc.loading import load_guided
    from structperc.reports.html_pages import page_title
    from structperc.tagging.labelled_files import read_corpus

    check_output_path(options.html)
    if options.n < 1:
        raise InputError(f"--n must be >= 1, got {options.n}")
    reading = read_options(options)
    tagger = load_guided(options.model, options.trust)
    tagger.check_unit(reading.unit or tagger.unit)
    corpus = read_corpus(tagger, options.file, reading)
    numbers = options.sentence or range(1, min(options.n, len(corpus)) + 1)
    found = decisions(tagger, corpus, [number - 1 for number in numbers])
    if options.html is not None:
        title, notes = page_title("Order of decisions", options.model, options.file)
        write_lines(options.html, decision_html(found, title, notes, tagger.labels.type_names))
    for one in found:
        print("\n".join([*decision_lines(one), ""]))
    for line in DECISION_NOTES:
        print(line)


def _reliability_arguments(parser: CommandParser) -> None:
    add_labelled_file(parser, several=True)
    parser.add_argument("--bins", type=int, default=10, help="of equal width (default 10)")
    parser.add_argument("--types", action="store_true", help="also for the segments of each type")
    parser.add_argument("--plot", metavar="FILE", help="write reliability diagrams: .png, .svg, .pdf")
    parser.add_argument("--csv", metavar="FILE", help="write the bins")
    dropped = "print scores when segments of low probability are dropped, and write a figure of them"
    parser.add_argument("--abstention", metavar="FILE", help=dropped)


@command("MODEL [MODEL ...] FILE", "confidence against accuracy", _reliability_arguments)
def reliability(options: Namespace) -> None:
    """Compare the confidence of predicted labels and segments with their accuracy, without and with a temperature."""

    from structperc.analysis.abstention import abstention, abstention_lines, plot_abstention
    from structperc.analysis.calibration import HEADER, bin_rows, plot_reliability, reliability, reliability_lines
    from structperc.data.output import check_output_path
    from structperc.loading import load_chain
    from structperc.reports.figures import check_figure, write_figure
    from structperc.reports.tables import write_csv
    from structperc.tagging.labelled_files import read_gold
    from structperc.training.predictions import short_names

    check_figure(options.plot)
    check_figure(options.abstention)
    check_output_path(options.csv)
    found, curves = [], []
    for model, name in zip(options.models, short_names(options.models), strict=True):
        tagger = load_chain(model, options.trust)
        corpus, fitted = read_gold(tagger, options.file, read_options(options)), tagger.temperature
        for temperature in [None] if fitted is None else [None, fitted]:
            tagger.temperature = temperature
            title = name if fitted is None else f"{name}, temperature {temperature or 1:.3g}"
            found.append(reliability(tagger, corpus, options.bins, title, types=options.types))
        if options.abstention:
            curves.append((name, abstention(tagger, corpus)))
    if options.abstention:
        write_figure(options.abstention, plot_abstention(curves))
    if options.plot:
        write_figure(options.plot, plot_reliability([(one.name, one.levels) for one in found]))
    if options.csv:
        write_csv(options.csv, HEADER, bin_rows(found))
    print("\n".join([*reliability_lines(found), *abstention_lines(curves)]))
