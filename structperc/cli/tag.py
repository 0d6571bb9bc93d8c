"""structperc tag MODEL FILE [FILE ...]: columns, running text or JSON lines with the labels that a model predicts."""

import os
from argparse import Namespace

from structperc.cli.arguments import (
    FILE,
    CommandParser,
    add_bias,
    add_model,
    add_text_reading,
    command,
    read_options,
    refuse,
)
from structperc.errors import InputError


def _arguments(parser: CommandParser) -> None:
    add_model(parser)
    files = "files to label, optionally gzipped; - for standard input; several files or folders require -o FOLDER"
    parser.add_argument("files", type=FILE, nargs="+", metavar="file", help=files)
    add_text_reading(parser)
    parser.add_argument(
        "--format", choices=("columns", "jsonl", "brat", "html"), help="output format; default: that of the input"
    )
    sure = "add the probability of each label and segment; columns: before the label"
    parser.add_argument("--probabilities", action="store_true", help=sure)
    add_bias(parser)
    least = (
        "add --probabilities and all other segments with a probability above P to JSON lines; with --incomplete: of "
        "added labels (default 0.9)"
    )
    lexicon = "file of allowed labels of words: lines of a word, a tab, and labels such as B-LOC|O"
    parser.add_argument("--lexicon", type=FILE, metavar="FILE", help=lexicon)
    parser.add_argument("--min-probability", type=float, metavar="P", help=least)
    out = "output file, default standard output; or a folder: one file, or brat pair, per input file"
    parser.add_argument("-o", "--output", help=out)
    parser.add_argument("-k", type=int, help="print the k best label sequences with their scores instead")
    order = "add a column before the label: the step, from 1, at which a guided tagger decided the token"
    parser.add_argument("--order", action="store_true", help=order)
    unknown = (
        "FILE is training data with unknown labels: replace those of which the model is sure, to train again "
        "(self-training)"
    )
    parser.add_argument("--incomplete", action="store_true", help=unknown)
    shared = "number of worker processes, each with the model in memory (default 1)"
    parser.add_argument("--workers", type=int, default=1, help=shared)


@command("MODEL FILE [FILE ...]", "label columns, text or JSON lines", _arguments)
def tag(options: Namespace) -> None:
    """Label a file of CoNLL columns, running text or JSON lines."""
    from structperc.tagging.labelling import FileTagger, OutputOptions

    if options.incomplete:
        _label_unknown(options)
        return
    content = options.k, options.order, options.probabilities, options.min_probability, options.bias, options.lexicon
    several = len(options.files) > 1 or os.path.isdir(options.files[0])
    if several and options.output is None:
        raise InputError("several input files require an output folder; set -o FOLDER")
    output_options = OutputOptions(options.format, *content)
    tagger = FileTagger(options.model, output_options, read_options(options), options.trust, options.workers)
    if several or _is_folder(options.output):
        tagger.tag_files(options.files, options.output)
    else:
        tagger.tag_file(options.files[0], options.output)


def _label_unknown(options: Namespace) -> None:
    """Write training data with labels in place of unknown ones of which a model is sure."""
    from structperc.analysis.pseudo_labels import output_lines, pseudo_labels
    from structperc.data.output import check_output_path, write_lines
    from structperc.loading import load_chain
    from structperc.tagging.labelled_files import read_incomplete

    others = ("format", "probabilities", "bias", "lexicon", "k", "order")
    refuse("tag", options, others, "has no effect with --incomplete")
    if options.output is None or len(options.files) > 1:
        raise InputError("tag --incomplete reads one file of training data, and writes columns to -o FILE")
    (file,), least = options.files, 0.9 if options.min_probability is None else options.min_probability
    check_output_path(options.output)
    tagger, reading = load_chain(options.model, options.trust), read_options(options)
    labelled = pseudo_labels(tagger, read_incomplete(tagger, file, reading), least)
    write_lines(options.output, output_lines(tagger, file, labelled.corpus, reading))
    print("\n".join([*labelled.lines(), f"{options.output}: columns with labels in {tagger.labels.scheme}"]))


def _is_folder(output: str | None) -> bool:
    """Return True for an existing folder, and for a path that ends with a separator."""
    return output is not None and (os.path.isdir(output) or output.endswith((os.sep, "/")))
