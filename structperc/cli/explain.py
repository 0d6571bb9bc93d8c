"""structperc explain MODEL [FILE]: weights by name, decisions that non-local features changed, order of decisions."""

from argparse import Namespace
from typing import TYPE_CHECKING

from structperc.cli.arguments import FILE, CommandParser, add_gold_reading, add_model, command, read_options, refuse
from structperc.errors import InputError

if TYPE_CHECKING:
    from structperc.models.chain_model import ChainModel
    from structperc.taggers.guided_tagger import GuidedTagger

CANDIDATES = 100  # for models that decode with the best one alone
FIRST = 10  # sentences whose decisions are shown
OF_WEIGHTS, OF_CHANGES, OF_DECISIONS = ("top", "plot", "csv"), ("document", "candidates"), ("sentences",)


def _arguments(parser: CommandParser) -> None:
    add_model(parser)
    file = "file with or without gold labels: explain the decisions in it; without FILE: the largest weights by name"
    parser.add_argument("file", type=FILE, nargs="?", help=file)
    parser.add_argument("--top", type=int, help="weights, label pairs and templates per list (default 20)")
    parser.add_argument("--plot", metavar="FILE", help="write a figure of the weights: .png, .svg, .pdf")
    parser.add_argument("--csv", metavar="FILE", help="write all weights that are listed")
    parser.add_argument("--document", type=int, help="number of the one to explain, from 1; default: all that changed")
    n = "candidates that non-local features re-score; default: as many as the model decodes with, or 100"
    parser.add_argument("--candidates", type=int, metavar="N", help=n)
    numbers = "numbers of those whose decisions are shown in order, from 1; default: the first ten"
    parser.add_argument("--sentences", nargs="+", action="extend", type=int, metavar="N", help=numbers)
    parser.add_argument("--html", metavar="FILE", help="write a page for the browser, too")
    add_gold_reading(parser)


@command("MODEL [FILE]", "weights by name; why it decided in a file", _arguments)
def explain(options: Namespace) -> None:
    """Show the largest weights of a model; or, given a file, what non-local features changed or a guided tagger did."""
    from structperc.data.output import check_output_path
    from structperc.models import ChainModel, Model
    from structperc.reports.figures import check_figure

    check_figure(options.plot)
    check_output_path(options.csv)
    check_output_path(options.html)
    if options.file is None:
        refuse("explain", options, (*OF_CHANGES, *OF_DECISIONS), "explains decisions in a FILE")
        _weights(ChainModel.load(options.model, trusted=options.trust), options)
        return
    refuse("explain", options, OF_WEIGHTS, "is of weights, without FILE")
    model = Model.load(options.model, trusted=options.trust)
    if isinstance(model, ChainModel):
        refuse("explain", options, OF_DECISIONS, "is of guided taggers")
        _changes(model, options)
        return
    from structperc.taggers.guided_tagger import GuidedTagger  # imports Lightning

    if not isinstance(model, GuidedTagger):
        kinds = "a model with non-local features, or of a guided tagger"
        raise InputError(f"{options.model}: a {type(model).__name__} has no decisions to explain; use {kinds}")
    refuse("explain", options, OF_CHANGES, "is of non-local features")
    _decisions(model, options)


def _weights(tagger: "ChainModel", options: Namespace) -> None:
    """Print and write the largest weights of a model."""
    from structperc.analysis.weight_ranking import Weight, weight_lines, weights, weights_page
    from structperc.data.output import write_lines
    from structperc.reports.figures import plot_weights, write_figure
    from structperc.reports.tables import write_csv
    from structperc.training.predictions import short_names

    top = 20 if options.top is None else options.top
    groups = weights(tagger, top)
    if options.plot:
        bars = [(group.sums.name, [(weight.name, weight.value) for weight in group.largest]) for group in groups]
        write_figure(options.plot, plot_weights(bars))
    if options.csv:
        write_csv(options.csv, Weight._fields, (weight for group in groups for weight in group.listed))
    if options.html:
        title = f"Weights of {short_names([options.model])[0]}"
        write_lines(options.html, weights_page(groups, title, [options.model]))
    print("\n".join([*tagger.features.index.summary(), *weight_lines(groups, top)]))


def _changes(tagger: "ChainModel", options: Namespace) -> None:
    """Print and write which decisions non-local features changed, and why."""
    from structperc.analysis.explanation import check_explainable, explain, explain_changed, summarise
    from structperc.analysis.explanation_report import explanation_html, explanation_lines, legend
    from structperc.data.output import write_lines
    from structperc.reports.html_pages import page_title
    from structperc.tagging.labelled_files import read_corpus

    n = options.candidates
    if n is None:
        n = tagger.decoder.k if tagger.decoder.k > 1 else CANDIDATES
    check_explainable(tagger, n)
    corpus = read_corpus(tagger, options.file, read_options(options))
    if options.document is None:
        explanations = list(explain_changed(tagger, corpus, n))
        closing = [summarise(explanations, corpus).line()]
    else:
        explanations, closing = [explain(tagger, corpus, options.document - 1, n)], []
    if options.html is not None:
        title, notes = page_title("Changed by non-local features", options.model, options.file)
        write_lines(options.html, explanation_html(explanations, title, [*notes, *closing], tagger.labels.type_names))
    for explanation in explanations:
        print("\n".join([*explanation_lines(explanation), ""]))
    for line in (*legend(explanations), *closing):
        print(line)


def _decisions(tagger: "GuidedTagger", options: Namespace) -> None:
    """Print and write how a guided tagger decides sentences, step by step."""
    from structperc.analysis.decision_order import DECISION_NOTES, decision_html, decision_lines, decisions
    from structperc.data.output import write_lines
    from structperc.reports.html_pages import page_title
    from structperc.tagging.labelled_files import read_corpus

    reading = read_options(options)
    tagger.requirements.check_unit(reading.unit or tagger.unit)
    corpus = read_corpus(tagger, options.file, reading)
    numbers = options.sentences or range(1, min(FIRST, len(corpus)) + 1)
    sentences = decisions(tagger, corpus, [number - 1 for number in numbers])
    if options.html is not None:
        title, notes = page_title("Order of decisions", options.model, options.file)
        write_lines(options.html, decision_html(sentences, title, notes, tagger.labels.type_names))
    for sentence in sentences:
        print("\n".join([*decision_lines(sentence), ""]))
    for line in DECISION_NOTES:
        print(line)
