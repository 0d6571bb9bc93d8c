"""structperc shrink MODEL -o FOLDER: the same model in a smaller folder, and what that changes."""

from typing import TYPE_CHECKING

from structperc.cli.arguments import Command, CommandParser, add_labels, add_model, add_reading, reading

if TYPE_CHECKING:
    from structperc.data.corpus import Corpus
    from structperc.taggers.tagger import Tagger


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("shrink", "Save a model without features of weight 0, small weights, or with fewer bits.")
    add_model(made)
    made.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where the smaller model is written")
    made.add_argument("--below", type=float, default=0.0, help="weights smaller than that count as 0 (default 0)")
    made.add_argument("--table", choices=("float32", "float16", "int8"), default="float32", help="numbers in the file")
    made.add_argument("--data", metavar="FILE", help="score the model before and after on a labelled file")
    add_reading(made, "gold is `label`; default: those the model reads, then others, gold last")
    add_labels(made, "gold in the file; default: the model's")
    return made


def run(arguments: list[str]) -> None:
    """Load the model, write the smaller one, and print sizes and, with a file, the scores of both."""
    options = parser().parse_args(arguments)

    from pathlib import Path

    from structperc.analysis.input_files import read_gold
    from structperc.data.output import write_errors
    from structperc.reports.tables import text_table
    from structperc.taggers.saving import prune
    from structperc.taggers.tagger import Tagger

    tagger = Tagger.load(options.model, trusted=options.trust)
    corpus = read_gold(tagger, options.data, reading(options)) if options.data else None
    before = _row("before", options.model, tagger, corpus)
    small = prune(tagger, options.below)
    with write_errors(options.output):
        Path(options.output).parent.mkdir(parents=True, exist_ok=True)
    small.save(options.output, options.table)
    after = _row("after", options.output, Tagger.load(options.output, trusted=options.trust), corpus)
    if corpus is not None:
        after.append(f"{float(after[-1]) - float(before[-1]):+.2f}")
    heading = ["", "megabytes", "features", "weights not 0", *(["score", "change"] if corpus else [])]
    print("\n".join(text_table([heading, before, after], "<>")))


def _row(name: str, folder: str, tagger: "Tagger", corpus: "Corpus | None") -> list[str]:
    """Sizes and score of a model as cells."""
    from pathlib import Path

    from structperc.cli.evaluate import scores

    size = sum(file.stat().st_size for file in Path(folder).iterdir() if file.is_file())
    features = tagger.features.n_node_features + tagger.features.n_edge_features
    weights = sum(int(parameter.count_nonzero()) for parameter in tagger.parameters())
    score = [] if corpus is None else [f"{100 * scores(tagger, corpus).compute()['score']:.2f}"]
    return [name, f"{size / 1e6:.2f}", f"{features:,}", f"{weights:,}", *score]


SHRINK = Command("shrink", "MODEL -o FOLDER", "drop small weights, store fewer bits", run)
