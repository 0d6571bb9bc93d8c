"""Commands that change saved models, or bring them elsewhere: calibrate and push."""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from structperc.cli.arguments import CommandParser, add_labelled_file, add_model, command, read_options, refuse
from structperc.errors import InputError

if TYPE_CHECKING:
    from structperc.analysis.bias_fitting import Goal
    from structperc.models import Model


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
            fitted = fit_bias(tagger, corpus, goal, options.methods)
            lines = bias_lines(fitted, name)
        else:
            settings = options.recall, options.guarantee, options.next_documents, options.methods
            certified = fit_certified_bias(tagger, corpus, *settings)
            fitted, lines = certified.fitted, certified_lines(certified, name)
        tagger.biases.add(name, fitted.chosen.best.decoder)
        if options.default:
            tagger.biases.use(name)
        write_figure(plot, plot_precision_recall(fitted))
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


def _push_arguments(parser: CommandParser) -> None:
    add_model(parser)
    repository = "id of the repository, such as me/tagger; it is created if missing; or -o FOLDER"
    parser.add_argument("repository", nargs="?", help=repository)
    parser.add_argument("-o", "--output", metavar="FOLDER", help="write the model into a folder, not to the hub")
    small = "leave out features all of whose weights are smaller than that; 0: features without weights"
    parser.add_argument("--below", type=float, metavar="W", help=small)
    types = ("float32", "float16", "int8")
    parser.add_argument("--table", choices=types, default="float32", help="numbers of feature weights in the file")
    parser.add_argument("--private", action="store_true", default=None, help="make a new repository private")
    parser.add_argument("--token", help="access token of the hub; default: HF_TOKEN, or that of `hf auth login`")
    parser.add_argument(
        "--licence", metavar="ID", help="licence for the card, such as apache-2.0; default: that of the card"
    )
    languages = "language for the card, such as en; repeat for several languages"
    parser.add_argument("--language", metavar="CODE", action="append", default=[], help=languages)
    parser.add_argument("--branch", help="branch of the repository; default: main")
    parser.add_argument("--message", help="commit message; default: A saved model")


@command("MODEL REPOSITORY", "a model on the hub, or a smaller one", _push_arguments)
def push(options: Namespace) -> None:
    """Put a saved model and its card, README.md, on the Hugging Face hub, or into a folder; as it is, or smaller."""
    from tempfile import TemporaryDirectory

    from structperc.models.hub import push_folder

    if (options.repository is None) == (options.output is None):
        raise InputError("push: name a repository, or a folder with -o")
    card = {
        "licence": options.licence,
        "language": options.language,
        "commit_message": options.message or "A saved model",
    }
    place = {"private": options.private, "token": options.token, "branch": options.branch}
    if options.output is not None:
        hub = ("private", "token", "licence", "language", "branch", "message")
        refuse("push", options, hub, "is of the hub")
        _save_smaller(options.output, options)
    elif options.below is None and options.table == "float32":
        print(push_folder(options.model, options.repository, **card, **place))
    else:
        with TemporaryDirectory() as folder:
            _save_smaller(folder, options)
            print(push_folder(folder, options.repository, **card, **place))


def _save_smaller(folder: str, options: Namespace) -> None:
    """Save a model without small weights, or with fewer bits, and print its sizes before and after."""
    from structperc.data.output import write_errors
    from structperc.models import Model
    from structperc.models.saving import prune
    from structperc.reports.tables import text_table

    model = Model.load(options.model, trusted=options.trust)
    small = model if options.below is None else prune(model, options.below)
    with write_errors(folder):
        Path(folder).parent.mkdir(parents=True, exist_ok=True)
    small.save(folder, options.table)
    rows = [["", "megabytes", "features", "weights not 0"]]
    small = Model.load(folder, trusted=options.trust)
    rows += [_size("before", options.model, model), _size("after", folder, small)]
    print("\n".join(text_table(rows, "<>")))


def _size(name: str, folder: str, model: "Model") -> list[str]:
    from structperc.scorers import SegmentLinear

    size = sum(file.stat().st_size for file in Path(folder).iterdir() if file.is_file())
    features = model.features.n_node_features + model.features.n_edge_features
    scorer = getattr(model, "scorer", None)
    if isinstance(scorer, SegmentLinear):
        features += scorer.segments.n_features
    weights = sum(int(parameter.count_nonzero()) for parameter in model.parameters())
    return [name, f"{size / 1e6:.2f}", f"{features:,}", f"{weights:,}"]
