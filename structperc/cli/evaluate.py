"""structperc evaluate: scores and errors of models on a labelled file, confidence, candidates, and comparisons."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structperc.cli.arguments import (
    FILE,
    MODEL,
    MODEL_FILES,
    CommandParser,
    add_bias,
    add_gold_reading,
    add_trust,
    command,
    model_folder,
    prediction_folder,
    read_options,
    refuse,
)
from structperc.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from structperc.data.corpus import Corpus
    from structperc.metrics.comparison import LabelLists
    from structperc.models.base import Model
    from structperc.predictor import Prediction

OF_ERRORS, OF_CONFIDENCE = ("json", "errors", "html", "train"), ("reliability", "types", "abstention")
OF_CANDIDATES, OF_BOTH = ("candidates",), ("plot", "csv")  # those of both are of confidence and of candidates
LENGTHS = [1, 20, 100, 400, 800, 1600, 6400]


def _arguments(parser: CommandParser) -> None:
    places = (
        "saved models or their runs, then a labelled file; or runs, or files of predictions, label last, to compare"
    )
    parser.add_argument("places", type=FILE, nargs="+", metavar="MODEL-OR-FILE", help=places)
    add_trust(parser)
    add_bias(parser)
    parser.add_argument("--json", metavar="FILE", help="write the scores, those by type among them")
    errors = "print kinds of errors, confusions of types, scores by length and document, the most frequent errors"
    parser.add_argument("--errors", action="store_true", help=errors)
    parser.add_argument("--html", metavar="FILE", help="write a page of the errors with their sentences")
    train = "training data, read as FILE is: adds the scores of segments that occur in it, and of others, to the errors"
    parser.add_argument("--train", type=FILE, metavar="FILE", help=train)
    confidence = "compare confidence with accuracy, in bins of equal width (default 10)"
    parser.add_argument("--reliability", type=int, nargs="?", const=10, metavar="BINS", help=confidence)
    parser.add_argument("--types", action="store_true", help="with --reliability: also for the segments of each type")
    dropped = "print scores when segments of low probability are dropped, and write a figure of them"
    parser.add_argument("--abstention", metavar="FILE", help=dropped)
    lengths = f"score the n best, re-scored, for several n (default {' '.join(map(str, LENGTHS))})"
    parser.add_argument("--candidates", nargs="*", type=int, metavar="N", help=lengths)
    parser.add_argument("--plot", metavar="FILE", help="figure of --reliability or --candidates: .png, .svg, .pdf")
    parser.add_argument("--csv", metavar="FILE", help="table of --reliability or --candidates")
    gold = "to compare: CoNLL columns, label last; default: the last column but one of the predictions"
    parser.add_argument("--gold", type=FILE, metavar="FILE", help=gold)
    parser.add_argument("--split", help="to compare runs: their predictions of test (default) or dev")
    scheme = "to compare: IOB1, IOB2, IOBES, BILOU, IO or none; default: the one that fits all predictions, else IOB2"
    parser.add_argument("--scheme", help=scheme)
    parser.add_argument("--beta", type=float, help="to compare: beta of the F measure (default 1)")
    add_gold_reading(parser)


@command("MODEL FILE | A B ...", "scores and errors; comparisons of systems", _arguments)
def evaluate(options: Namespace) -> None:
    """Score saved models on a labelled file, and analyse their errors; or compare runs, or files of predictions."""
    from structperc.data.output import check_output_path
    from structperc.reports.figures import check_figure

    for figure in (options.plot, options.abstention):
        check_figure(figure)
    for table in (options.json, options.html, options.csv):
        check_output_path(table)
    *systems, last = options.places
    if options.gold is not None or not _is_model(options.places[0]) or (systems and Path(last).is_dir()):
        refuse("evaluate", options, (*OF_ERRORS, *OF_CONFIDENCE, *OF_CANDIDATES, *OF_BOTH, "bias"), "is of models")
        _compare_predictions(options.places, options)
        return
    refuse("evaluate", options, ("split", "scheme"), "is of predictions")
    if not systems:
        raise InputError(f"evaluate {last}: name a labelled file after the model")
    models = [model_folder(system) for system in systems]
    for model in models:
        MODEL.check(model)
    if options.reliability is not None or options.abstention:
        refuse("evaluate", options, (*OF_ERRORS, *OF_CANDIDATES, "bias", "beta"), "has no effect on confidence")
        _reliability(models, last, options)
    elif options.candidates is not None:
        refuse("evaluate", options, (*OF_ERRORS, *OF_CONFIDENCE, "bias", "beta"), "has no effect on candidates")
        _candidates(models, last, options)
    elif options.plot or options.csv:
        raise InputError("evaluate: --plot and --csv are of --reliability or --candidates; set one of them")
    elif len(models) > 1:
        refuse("evaluate", options, (*OF_ERRORS, "types"), "is of one model")
        _compare_models(models, last, options)
    else:
        refuse("evaluate", options, ("types", "beta"), "is of --reliability or of several models")
        _scores(models[0], last, options)


def _is_model(place: str) -> bool:
    """Return whether a path is a folder or a file of a saved model or a run."""
    path = Path(place)
    return path.is_dir() or path.name in MODEL_FILES or path.suffix == ".ckpt"


def _scores(model: str, file: str, options: Namespace) -> None:
    """Print the scores of a model, as fit scores it on development data, and its errors if requested."""
    from structperc.loading import load_biased
    from structperc.metrics.corpus_scores import score_prediction
    from structperc.reports.tables import write_json
    from structperc.tagging.labelled_files import read_gold

    if options.train is not None and not (options.errors or options.html):
        raise InputError("evaluate: --train adds to the errors; set --errors or --html as well")
    tagger = load_biased(model, options.bias, options.trust)
    corpus = read_gold(tagger, file, read_options(options))
    prediction = tagger.predict(corpus)
    scores = score_prediction(tagger.gold_labels(corpus), corpus, prediction)
    size = {"sentences": len(corpus.sentences) - 1, "tokens": corpus.tokens}
    record = {"model": model, "file": file, **size, **scores.by_name(), "types": scores.by_type()}
    print(scores.table())
    if options.errors or options.html:
        record["errors"] = _errors(tagger, corpus, prediction, (model, file), options)
    if options.json is not None:
        write_json(Path(options.json), record)


def _errors(
    tagger: "Model", corpus: "Corpus", prediction: "Prediction", places: tuple[str, str], options: Namespace
) -> dict[str, Any]:
    """Print and write the errors of a tagger as requested, and return them as plain JSON types."""
    from structperc.analysis import error_analysis, error_html, error_lines
    from structperc.analysis.error_report import error_record
    from structperc.data.output import write_lines
    from structperc.reports.html_pages import page_title
    from structperc.tagging.labelled_files import read_gold

    reading = read_options(options)._replace(dropped="ignored")
    training = None if options.train is None else read_gold(tagger, options.train, reading)
    analysis = error_analysis(corpus, prediction, tagger.labels.scheme, training)
    if options.errors:
        print("\n".join(error_lines(analysis)))
    if options.html is not None:
        title, notes = page_title("Errors", *places)
        write_lines(options.html, error_html(analysis, title, notes, tagger.labels.type_names))
    return error_record(analysis)


def _reliability(models: list[str], file: str, options: Namespace) -> None:
    """Compare the confidence of labels and segments with their accuracy, without and with a temperature."""
    from structperc.analysis.abstention import abstention, abstention_lines, plot_abstention
    from structperc.analysis.calibration import HEADER, bin_rows, plot_reliability, reliability, reliability_lines
    from structperc.loading import load_chain
    from structperc.reports.figures import write_figure
    from structperc.reports.tables import write_csv
    from structperc.tagging.labelled_files import read_gold
    from structperc.training.predictions import short_names

    bins, results, curves = 10 if options.reliability is None else options.reliability, [], []
    for model, name in zip(models, short_names(models), strict=True):
        tagger = load_chain(model, options.trust)
        corpus, fitted = read_gold(tagger, file, read_options(options)), tagger.temperature
        for temperature in [None] if fitted is None else [None, fitted]:
            tagger.temperature = temperature
            title = name if fitted is None else f"{name}, temperature {temperature or 1:.3g}"
            results.append(reliability(tagger, corpus, bins, title, types=options.types))
        if options.abstention:
            curves.append((name, abstention(tagger, corpus)))
    if options.abstention:
        write_figure(options.abstention, plot_abstention(curves))
    if options.plot:
        write_figure(options.plot, plot_reliability([(result.name, result.levels) for result in results]))
    if options.csv:
        write_csv(options.csv, HEADER, bin_rows(results))
    print("\n".join([*reliability_lines(results), *abstention_lines(curves)]))


def _candidates(models: list[str], file: str, options: Namespace) -> None:
    """Score the n best, re-scored, for several n from one search."""
    from structperc.analysis.nbest import HEADER, csv_rows, nbest_lines, nbest_scores
    from structperc.models.chain_model import ChainModel
    from structperc.reports.figures import plot_nbest, write_figure
    from structperc.reports.tables import write_csv
    from structperc.tagging.labelled_files import read_gold

    if len(models) > 1:
        raise InputError("evaluate: --candidates scores one model")
    tagger = ChainModel.load(models[0], trusted=options.trust)
    lists = nbest_scores(tagger, read_gold(tagger, file, read_options(options)), options.candidates or LENGTHS)
    if options.plot:
        curves = zip(*((r.n, r.chosen.f1, r.oracle.f1, r.gold_in_list) for r in lists.rows), strict=True)
        write_figure(options.plot, plot_nbest(*curves))
    if options.csv:
        write_csv(options.csv, HEADER, csv_rows(lists))
    print("\n".join(nbest_lines(lists)))


def _compare_models(models: list[str], file: str, options: Namespace) -> None:
    """Compare the labels that several models predict for a labelled file."""
    import numpy as np

    from structperc.data.tag_schemes import convert
    from structperc.loading import load_biased
    from structperc.tagging.labelled_files import read_gold

    predictions = []
    for model in models:
        tagger = load_biased(model, options.bias, options.trust)
        corpus, scheme = read_gold(tagger, file, read_options(options)), tagger.labels.scheme
        if corpus.dropped:
            raise InputError(f"{file}: gold spans that labels cannot represent are not compared; set --dropped ignored")
        target = "none" if scheme == "none" else "IOB2"
        columns = corpus.columns["label"], tagger.predict(corpus).labels
        gold, labels = (
            [convert(tags, scheme, target) for tags in corpus.sentences_of(list(column))] for column in columns
        )
        predictions.append(labels)
    documents = np.searchsorted(corpus.document_starts, corpus.sentences[:-1], side="right")
    print(_comparison(gold, predictions, models, target, options.beta, documents))


def _compare_predictions(places: list[str], options: Namespace) -> None:
    """Compare runs or prediction files."""
    from structperc.data.scheme_detection import check_labels, common_scheme, to_scheme
    from structperc.training.predictions import document_numbers, gold_column, label_column, predictions_of

    encoding = options.encoding
    if len(places) < 2:
        raise InputError(f"evaluate compares two or more prediction files or folders of runs; got {' '.join(places)}")
    paths = [str(predictions_of(prediction_folder(place), options.split or "test")) for place in places]
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
    documents = document_numbers(options.gold or paths[0], encodings.get(options.gold or paths[0], encoding))
    print(_comparison(converted, [predictions[path] for path in paths], places, scheme, options.beta, documents))


def _comparison(
    gold: "LabelLists",
    predictions: Sequence["LabelLists"],
    places: list[str],
    scheme: str,
    beta: float | None,
    documents: "np.ndarray",
) -> str:
    """Return the scores of several systems, given labels by sentence, and tests of their differences."""
    from structperc.metrics import compare, compare_all
    from structperc.training.predictions import short_names

    names, beta = short_names(places), 1.0 if beta is None else beta
    if len(names) > 2:
        return compare_all(gold, predictions, names, scheme, beta).table()
    first, other = predictions
    return compare(gold, first, other, scheme, (names[0], names[1]), beta, documents).table()
