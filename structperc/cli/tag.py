"""structperc tag MODEL FILE [FILE ...]: columns, running text or JSON lines with the labels that a model predicts."""

import os
from argparse import Namespace

from structperc.cli.arguments import (
    FILE,
    CommandParser,
    add_bias,
    add_encoding,
    add_line_format,
    add_model,
    add_splitting,
    command,
    read_options,
)
from structperc.data.read_options import UNITS
from structperc.errors import InputError


def _arguments(parser: CommandParser) -> None:
    add_model(parser)
    files = "files to label, optionally gzipped; - for standard input; several files or folders require -o FOLDER"
    parser.add_argument("files", type=FILE, nargs="+", metavar="file", help=files)
    parser.add_argument(
        "--input", choices=("text", "columns", "jsonl"), help="input format; default: detected from the file"
    )
    parser.add_argument(
        "--format", choices=("columns", "jsonl", "brat", "html"), help="output format; default: that of the input"
    )
    sure = "add the probability of each label and segment; columns: before the label"
    parser.add_argument("--probabilities", action="store_true", help=sure)
    add_bias(parser)
    least = "add --probabilities and all other segments with a probability above P to JSON lines"
    lexicon = "file of allowed labels of words: lines of a word, a tab, and labels such as B-LOC|O"
    parser.add_argument("--lexicon", type=FILE, metavar="FILE", help=lexicon)
    parser.add_argument("--min-probability", type=float, metavar="P", help=least)
    add_splitting(parser)
    roles = "roles of the file's columns, _ skips one; default: first the columns that the model reads"
    parser.add_argument("--columns", nargs="+", action="extend", help=roles)
    parser.add_argument("--unit", choices=UNITS, help="unit of a sequence; default: as in training")
    add_encoding(parser)
    add_line_format(parser)
    out = "output file, default standard output; or a folder: one file, or brat pair, per input file"
    parser.add_argument("-o", "--output", help=out)
    parser.add_argument("-k", type=int, help="print the k best label sequences with their scores instead")
    order = "add a column before the label: the step, from 1, at which a guided tagger decided the token"
    parser.add_argument("--order", action="store_true", help=order)
    shared = "number of worker processes, each with the model in memory (default 1)"
    parser.add_argument("--workers", type=int, default=1, help=shared)
    parser.set_defaults(labels=None)


@command("MODEL FILE [FILE ...]", "label columns, text or JSON lines", _arguments)
def tag(options: Namespace) -> None:
    """Label a file of CoNLL columns, running text or JSON lines."""
    from structperc.analysis.tag_input import TextSplitting
    from structperc.cli.tagging import FileTagger, OutputOptions, is_folder

    output_options = OutputOptions(
        options.format,
        options.k,
        options.order,
        options.probabilities,
        options.min_probability,
        options.bias,
        options.lexicon,
    )
    text_options = TextSplitting(options.input, options.tokens, options.sentences)
    several = len(options.files) > 1 or os.path.isdir(options.files[0])
    if several and options.output is None:
        raise InputError("several input files require an output folder; set -o FOLDER")
    tagger = FileTagger(
        options.model, output_options, read_options(options), text_options, options.trust, options.workers
    )
    if several or is_folder(options.output):
        tagger.tag_files(options.files, options.output)
    else:
        tagger.tag_file(options.files[0], options.output)
