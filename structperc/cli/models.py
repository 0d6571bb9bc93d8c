"""Commands for saved models and their predictions: evaluate, pseudo-label, calibrate, compare, shrink and push."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from structperc.cli.arguments import (
    FILE,
    MODEL,
    CommandParser,
    ModelArgument,
    add_bias,
    add_encoding,
    add_gold_reading,
    add_labelled_file,
    add_labels,
    add_model,
    command,
    prediction_folder,
    read_options,
)
from structperc.errors import InputError

if TYPE_CHECKING:
    from structperc.analysis.bias_fitting import Goal
    from structperc.data.corpus import Corpus
    from structperc.models.base import Model
    from structperc.models.chain_model import ChainModel
    from structperc.predictor import Prediction


def _evaluate_arguments(parser: CommandParser) -> None:
    add_labelled_file(parser)
    add_bias(parser)
    parser.add_argument("--json", metavar="FILE", help="write the scores, those by type among them")
    errors = "print kinds of errors, confusions of types, scores by length and document, the most frequent errors"
    parser.add_argument("--errors", action="store_true", help=errors)
    parser.add_argument("--html", metavar="FILE", help="write a page of the errors with their sentences")
    train = "training data, read as FILE is: adds the scores of segments that occur in it, and of others, to the errors"
    parser.add_argument("--train", type=FILE, metavar="FILE", help=train)


@command("MODEL FILE", "scores and errors on a labelled file", _evaluate_arguments)
def evaluate(options: Namespace) -> None:
    """Score a saved model on a labelled file, as fit scores it on development data, and analyse its errors."""
    from pathlib import Path

    from structperc.data.output import check_output_path
    from structperc.loading import load_biased
    from structperc.metrics.corpus_scores import score_prediction
    from structperc.reports.tables import write_json
    from structperc.tagging.labelled_files import read_gold

    check_output_path(options.json)
    check_output_path(options.html)
    if options.train is not None and not (options.errors or options.html):
        raise InputError("evaluate: --train adds to the errors; set --errors or --html as well")
    tagger = load_biased(options.model, options.bias, options.trust)
    corpus = read_gold(tagger, options.file, read_options(options))
    prediction = tagger.predict(corpus)
    found = score_prediction(tagger.gold_labels(corpus), corpus, prediction)
    size = {"sentences": len(corpus.sentences) - 1, "tokens": corpus.tokens}
    record = {"model": options.model, "file": options.file, **size, **found.by_name(), "types": found.by_type()}
    print(found.table())
    if options.errors or options.html:
        record["errors"] = _errors(tagger, corpus, prediction, options)
    if options.json is not None:
        write_json(Path(options.json), record)


def _errors(tagger: "Model", corpus: "Corpus", prediction: "Prediction", options: Namespace) -> dict[str, Any]:
    """Print and write the errors of a tagger as requested, and return them as plain JSON types."""
    from structperc.analysis import error_analysis, error_html, error_lines, error_record
    from structperc.data.output import write_lines
    from structperc.reports.html_pages import page_title
    from structperc.tagging.labelled_files import read_gold

    reading = read_options(options)._replace(dropped="ignored")
    training = None if options.train is None else read_gold(tagger, options.train, reading)
    analysis = error_analysis(corpus, prediction, tagger.labels.scheme, training)
    if options.errors:
        print("\n".join(error_lines(analysis)))
    if options.html is not None:
        title, notes = page_title("Errors", options.model, options.file)
        write_lines(options.html, error_html(analysis, title, notes, tagger.labels.type_names))
    return error_record(analysis)


def _pseudo_label_arguments(parser: CommandParser) -> None:
    add_labelled_file(parser)
    parser.add_argument("-o", "--output", required=True, help="a file of columns to write")
    least = "lowest probability of an added label (default 0.9)"
    parser.add_argument("--min-probability", type=float, default=0.9, metavar="P", help=least)


@command("MODEL FILE -o FILE", "labels for unknown ones of training data", _pseudo_label_arguments)
def pseudo_label(options: Namespace) -> None:
    """Replace unknown labels of training data by those of which a model is sure, to train again (self-training)."""
    from structperc.analysis.pseudo_labels import output_lines, pseudo_labels
    from structperc.data.output import check_output_path, write_lines
    from structperc.loading import load_chain
    from structperc.tagging.labelled_files import read_incomplete

    check_output_path(options.output)
    tagger, reading = load_chain(options.model, options.trust), read_options(options)
    found = pseudo_labels(tagger, read_incomplete(tagger, options.file, reading), options.min_probability)
    write_lines(options.output, output_lines(tagger, options.file, found.corpus, reading))
    print("\n".join([*found.lines(), f"{options.output}: columns with labels in {tagger.labels.scheme}"]))


def _calibrate_arguments(parser: CommandParser) -> None:
    add_labelled_file(parser)
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--recall", type=float, metavar="R", help="the highest precision with at least this recall, 0..1")
    goal.add_argument("--precision", type=float, metavar="P", help="the highest recall with at least this precision")
    goal.add_argument("--beta", type=float, metavar="B", help="the highest F_beta; above 1, recall counts more")
    costs = "the lowest cost: missed=5 counts a missed segment as 5 spurious ones; also spurious=COST"
    goal.add_argument("--cost", nargs="+", action="extend", metavar="ERROR=COST", help=costs)
    guarantee = (
        "with --recall: the recall of all segments together, in all text of this kind, reaches R with probability P; "
        "assumes independent documents, and tests thresholds on four fifths of them"
    )
    parser.add_argument("--guarantee", type=float, metavar="P", help=guarantee)
    following = (
        "with --guarantee: the recall in the next N documents, such as another file, reaches R; it varies by chance, "
        "so more recall is needed than for all text of this kind, the default"
    )
    parser.add_argument("--next-documents", type=int, metavar="N", help=following)
    temperature = "fit and save a temperature, for probabilities"
    parser.add_argument("--temperature", action="store_true", help=temperature)
    methods = (
        "methods to try: outside, begin, types, segments, overlap; default: all, overlap only if the others fail; "
        "with --guarantee segments or overlap"
    )
    parser.add_argument("--methods", nargs="+", action="extend", default=[], help=methods)
    parser.add_argument("--name", help="name of the bias; default: recall, precision, f2 or cost, as its goal")
    default = "predict with this bias by default, without --bias"
    parser.add_argument("--default", action="store_true", help=default)
    plot = "figure of precision against recall: .png, .svg, .pdf; default: NAME.png in the folder of the model's folder"
    parser.add_argument("--plot", metavar="FILE", help=plot)


@command("MODEL FILE", "a bias for recall or precision", _calibrate_arguments)
def calibrate(options: Namespace) -> None:
    """Fit a bias for recall or precision, and a temperature, on development data, and save them with the model."""
    from pathlib import Path

    from structperc.analysis import fit_certified_bias
    from structperc.analysis.bias_fitting import fit_bias, fit_temperature
    from structperc.analysis.bias_report import bias_lines, certified_lines, plot_precision_recall
    from structperc.loading import load_chain
    from structperc.models.biases import check_bias_name, save_biases
    from structperc.reports.figures import check_figure, write_figure
    from structperc.tagging.labelled_files import read_gold

    goal = _goal(options)
    name = (goal.name if goal else "") if options.name is None else options.name
    plot = options.plot or str(Path(options.model).parent / f"{name}.png")
    if goal is not None:
        check_bias_name(name)
        check_figure(plot)
    tagger = load_chain(options.model, options.trust)
    corpus = read_gold(tagger, options.file, read_options(options))
    if options.temperature:
        tagger.temperature = fit_temperature(tagger, corpus)
        print(f"temperature: {tagger.temperature:.4g}")
    if goal is not None:
        if options.guarantee is None:
            found = fit_bias(tagger, corpus, goal, options.methods)
            lines = bias_lines(found, name)
        else:
            settings = options.recall, options.guarantee, options.next_documents, options.methods
            certified = fit_certified_bias(tagger, corpus, *settings)
            found, lines = certified.fitted, certified_lines(certified, name)
        tagger.add_bias(name, found.chosen.best.decoder)
        if options.default:
            tagger.use_bias(name)
        write_figure(plot, plot_precision_recall(found))
        print("\n".join([*lines, f"figure: {plot}"]))
    save_biases(tagger, Path(options.model))


def _goal(options: Namespace) -> "Goal | None":
    """Return the goal of a bias; None to fit only a temperature. Raises InputError for neither of them."""
    from structperc.analysis.bias_fitting import cost_goal, f_goal, precision_goal, recall_goal

    for option, needed in (("guarantee", "recall"), ("next_documents", "guarantee")):
        if getattr(options, option) is not None and getattr(options, needed) is None:
            raise InputError(f"calibrate: --{option.replace('_', '-')} needs --{needed}")
    if options.recall is not None:
        return recall_goal(options.recall)
    if options.precision is not None:
        return precision_goal(options.precision)
    if options.beta is not None:
        return f_goal(options.beta)
    if options.cost is not None:
        costs = list(map(_cost, options.cost))
        if len(dict(costs)) < len(costs):
            raise InputError(f"--cost {' '.join(options.cost)}: give one cost for each error")
        return cost_goal(dict(costs))
    if not options.temperature:
        raise InputError("calibrate: set --recall, --precision, --beta or --cost, or --temperature")
    for option in ("methods", "name", "default", "plot"):
        if getattr(options, option):
            raise InputError(f"calibrate: --{option} needs --recall, --precision, --beta or --cost")
    return None


def _cost(text: str) -> tuple[str, float]:
    name, _, cost = text.partition("=")
    try:
        return name, float(cost)
    except ValueError:
        raise InputError(f"--cost {text}: give missed=COST or spurious=COST, such as missed=5") from None


def _compare_arguments(parser: CommandParser) -> None:
    what = "folder of a run, e.g. runs/quickstart/1, or a file of CoNLL columns, label last"
    parser.add_argument("systems", type=FILE, nargs="+", metavar="RUN-OR-FILE", help=what)
    parser.add_argument(
        "--gold", type=FILE, help="CoNLL columns, label last; default: the last column but one of the predictions"
    )
    parser.add_argument("--split", default="test", help="which predictions of a run: test or dev (default test)")
    scheme = "of the predictions: IOB1, IOB2, IOBES, BILOU, IO or none; default: the one that fits them all, else IOB2"
    parser.add_argument("--scheme", help=scheme)
    add_labels(parser, "gold; default: that of the predictions, or the one that fits")
    add_encoding(parser)
    parser.add_argument("--beta", type=float, default=1.0, help="beta of the F measure; above 1, recall counts more")


@command("A B [C ...]", "runs or prediction files, McNemar tests", _compare_arguments)
def compare(options: Namespace) -> None:
    """Compare runs or prediction files."""
    from structperc.data.scheme_detection import check_labels, common_scheme, to_scheme
    from structperc.metrics import compare, compare_all
    from structperc.training.predictions import (
        document_numbers,
        gold_column,
        label_column,
        predictions_of,
        short_names,
    )

    places, encoding = options.systems, options.encoding
    if len(places) < 2:
        raise InputError(f"compare needs two or more prediction files or folders of runs, got {' '.join(places)}")
    paths = [str(predictions_of(prediction_folder(place), options.split)) for place in places]
    encodings = {path: encoding if path == place else "utf-8" for path, place in zip(paths, places, strict=True)}
    if options.gold is None:
        words, gold = gold_column(paths[0], encodings[paths[0]])
    else:
        words, gold = label_column(options.gold, encoding, "label")
    predictions = {}
    for path in paths:
        own_words, predicted = label_column(path, encodings[path])
        if own_words != words:
            raise InputError(f"{path}: its sentences or words are not those of {options.gold or paths[0]}")
        if options.gold is None and gold_column(path, encodings[path])[1] != gold:
            raise InputError(f"{path}: its gold labels are not those of {paths[0]}; set --gold FILE")
        predictions[path] = predicted
    scheme = options.scheme or common_scheme(predictions)
    for path, predicted in predictions.items():
        check_labels(predicted, path, scheme)
    converted = to_scheme(gold, options.gold or paths[0], scheme, options.labels)
    names, found = short_names(places), [predictions[path] for path in paths]
    if len(places) == 2:
        documents = document_numbers(options.gold or paths[0], encodings.get(options.gold or paths[0], encoding))
        pair = (names[0], names[1])
        print(compare(converted, found[0], found[1], scheme, pair, options.beta, documents).table())
    else:
        print(compare_all(converted, found, names, scheme, options.beta).table())


def _shrink_arguments(parser: CommandParser) -> None:
    add_model(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where the smaller model is written")
    parser.add_argument("--below", type=float, default=0.0, help="weights smaller than that count as 0 (default 0)")
    types = ("float32", "float16", "int8")
    parser.add_argument("--table", choices=types, default="float32", help="numbers in the file")
    parser.add_argument("--data", type=FILE, metavar="FILE", help="score the model before and after on a labelled file")
    add_gold_reading(parser)


@command("MODEL -o FOLDER", "drop small weights, store fewer bits", _shrink_arguments)
def shrink(options: Namespace) -> None:
    """Save a model without features of weight 0, small weights, or with fewer bits."""
    from pathlib import Path

    from structperc.data.output import write_errors
    from structperc.models.chain_model import ChainModel
    from structperc.models.saving import prune
    from structperc.reports.tables import text_table
    from structperc.tagging.labelled_files import read_gold

    tagger = ChainModel.load(options.model, trusted=options.trust)
    corpus = read_gold(tagger, options.data, read_options(options)) if options.data else None
    before = _size_and_score("before", options.model, tagger, corpus)
    small = prune(tagger, options.below)
    with write_errors(options.output):
        Path(options.output).parent.mkdir(parents=True, exist_ok=True)
    small.save(options.output, options.table)
    small = ChainModel.load(options.output, trusted=options.trust)
    after = _size_and_score("after", options.output, small, corpus)
    if corpus is not None:
        after.append(f"{float(after[-1]) - float(before[-1]):+.2f}")
    heading = ["", "megabytes", "features", "weights not 0", *(["score", "change"] if corpus else [])]
    print("\n".join(text_table([heading, before, after], "<>")))


def _size_and_score(name: str, folder: str, tagger: "ChainModel", corpus: "Corpus | None") -> list[str]:
    from pathlib import Path

    from structperc.metrics.corpus_scores import score_prediction
    from structperc.scorers import SegmentLinear

    size = sum(file.stat().st_size for file in Path(folder).iterdir() if file.is_file())
    features = tagger.features.n_node_features + tagger.features.n_edge_features
    if isinstance(tagger.scorer, SegmentLinear):
        features += tagger.scorer.segments.n_features
    weights = sum(int(parameter.count_nonzero()) for parameter in tagger.parameters())
    row = [name, f"{size / 1e6:.2f}", f"{features:,}", f"{weights:,}"]
    if corpus is None:
        return row
    scores = score_prediction(tagger.gold_labels(corpus), corpus, tagger.predict(corpus)).by_name()
    return [*row, f"{100 * scores['score']:.2f}"]


def _push_arguments(parser: CommandParser) -> None:
    model = "folder of a saved model, or of a run, e.g. runs/quickstart/1"
    parser.add_argument("model", type=MODEL, action=ModelArgument, help=model)
    parser.add_argument("repository", help="id of the repository, such as me/tagger; it is created if missing")
    parser.add_argument("--private", action="store_true", default=None, help="make a new repository private")
    parser.add_argument("--token", help="access token of the hub; default: HF_TOKEN, or that of `hf auth login`")
    parser.add_argument(
        "--licence", metavar="ID", help="licence for the card, such as apache-2.0; default: that of the card"
    )
    languages = "language for the card, such as en; repeat for several languages"
    parser.add_argument("--language", metavar="CODE", action="append", default=[], help=languages)
    parser.add_argument("--branch", help="branch of the repository; default: main")
    parser.add_argument("--message", default="A saved model", help="commit message")


@command("MODEL REPOSITORY", "a saved model and its card on the hub", _push_arguments)
def push(options: Namespace) -> None:
    """Put a saved model and its card, README.md, into a repository of the Hugging Face hub."""
    from structperc.models.hub import push_folder

    card = {"licence": options.licence, "language": options.language, "commit_message": options.message}
    place = {"private": options.private, "token": options.token, "branch": options.branch}
    print(push_folder(options.model, options.repository, **card, **place))
