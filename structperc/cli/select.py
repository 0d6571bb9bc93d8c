"""structperc select MODEL POOL: the texts of a pool to label next, with the predictions of the model."""

import logging
import sys
from argparse import Namespace
from itertools import pairwise
from typing import TYPE_CHECKING

from structperc.cli.arguments import FILE, CommandParser, add_model, add_text_reading, command, read_options

if TYPE_CHECKING:
    from structperc.analysis.selection import Measure
    from structperc.data.survey import Survey
    from structperc.models.chain_model import ChainModel

logger = logging.getLogger("pytorch_lightning.structperc")


def _arguments(parser: CommandParser) -> None:
    add_model(parser)
    parser.add_argument(
        "file", type=FILE, help="pool: columns, running text or JSON lines without labels; - for standard input"
    )
    parser.add_argument("-n", type=int, default=100, help="number of texts of JSON lines, else of sentences")
    measures = (
        "measure: entropy (default; without probabilities margin), margin of the two best, change that labels would "
        "bring, or random"
    )
    parser.add_argument("--by", choices=("entropy", "margin", "change", "random"), help=measures)
    similar = "leave out texts with a larger share of equal words with a chosen or labelled one (default 0.7); 1: none"
    parser.add_argument("--max-similarity", type=float, default=0.7, metavar="S", help=similar)
    labelled = "labelled files of any format; texts that are similar to theirs are left out"
    parser.add_argument("--labelled", type=FILE, nargs="+", action="extend", default=[], metavar="FILE", help=labelled)
    parser.add_argument("--seed", type=int, default=1, help="seed of --by random (default 1)")
    add_text_reading(parser)
    parser.add_argument("-o", "--output", help="file of JSON lines; default: standard output")


@command("MODEL POOL", "the texts to label next, pre-labelled", _arguments)
def select(options: Namespace) -> None:
    """Choose the texts of a pool to label next, and write them as JSON lines with predictions."""
    from structperc.analysis.selection import item_counts, select, selected_lines
    from structperc.data.output import check_output_path, write_lines
    from structperc.data.survey import inspect_file
    from structperc.models.chain_model import ChainModel
    from structperc.tagging.reading import read_input

    check_output_path(options.output)
    tagger = ChainModel.load(options.model, trusted=options.trust)
    by = options.by or _default_measure(tagger, options.model)
    given = read_input(tagger, options.file, read_options(options))
    labelled = [item for file in options.labelled for item in _items(inspect_file(file))]
    counts = item_counts(given)
    chosen = select(tagger, given.corpus, options.n, by, options.max_similarity, labelled, counts, options.seed)
    lines = selected_lines(tagger, given, chosen)
    if options.output is None:
        sys.stdout.writelines(lines)
    else:
        write_lines(options.output, lines)
        print(f"{options.output}: {len(chosen):,} of {len(counts):,}, by {by}")


def _default_measure(tagger: "ChainModel", model: str) -> "Measure":
    """Return the measure for a model: entropy, or margin, with a warning, if it has no probabilities."""
    if tagger.probabilistic:
        return "entropy"
    logger.warning("%s: no probabilities, so the measure is margin; structperc init --learner crf gives them", model)
    return "margin"


def _items(found: "Survey") -> list[list[str]]:
    """Return the words of each row of a table, or of each sentence of other files."""
    corpus = found.corpus
    if found.table is None:
        return corpus.sentences_of(corpus.columns["word"])
    return [list(corpus.columns["word"][a:b]) for a, b in pairwise([*corpus.document_starts, corpus.tokens])]
