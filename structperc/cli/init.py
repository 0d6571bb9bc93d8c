"""structperc init FILE: a configuration to begin with, for a data file that it has looked at."""

import json
import os
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from structperc.cli.arguments import CommandParser, add_data_options, command, read_options
from structperc.errors import InputError
from structperc.spelling import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structperc.data.annotations import SpanReport
    from structperc.data.read_options import ReadOptions
    from structperc.data.survey import Survey
    from structperc.text import SpanConflict

FEW = 200  # a column with more different strings makes no features
HELD_OUT = 0.1  # share of the sentences that are development data, where no file of them is named
FEWEST = 10  # sentences of which some are held out

TEMPLATE = """\
# {summary}
{remarks}# Written by `structperc init`. Train, score and save: structperc fit -c {own}
# Every key is an option, too: structperc fit -c {own} --trainer.max_epochs 20
seed_everything: 1
trainer: {{max_epochs: 10}}
data:
{data}
model:
  features:                       # what of a token the weights are about
    class_path: structperc.features.FeatureExtractor
    init_args:
      cutoff: 1                   # a feature must occur so often in training
      node:
        - bias
        - {{of: [w, wl, shape, p3, s3], at: [-2, -1, 0, 1, 2]}}  # word, in lower case, shape, prefix, suffix
{features}  scorer: {{class_path: structperc.scorers.SparseLinear}}
  criterion: {{class_path: structperc.criteria.PerceptronLoss}}     # others: docs/training_criteria.md
  search: {{class_path: structperc.chain.KBest, init_args: {{k: 1}}}}
  optimizer: {{class_path: structperc.optim.Perceptron, init_args: {{average: true}}}}
"""


def _arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "file", help="training data: CoNLL columns, CoNLL-U, JSON lines, CSV, parquet or a saved folder"
    )
    parser.add_argument("--dev", metavar="FILE", help="development data; default: a tenth of the file, drawn at random")
    parser.add_argument("--test", metavar="FILE", help="test data")
    parser.add_argument("-o", "--output", metavar="FILE", help="a new file; default: standard output")
    add_data_options(parser)


@command("FILE", "write a configuration to begin with", _arguments)
def init(options: Namespace) -> None:
    """Write a commented configuration to begin with, for a labelled file."""
    import logging

    from structperc.data.output import check_output_path, write_lines
    from structperc.data.survey import survey_file

    if options.output is not None:
        if os.path.lexists(options.output):
            raise InputError(f"{options.output}: this file is there already; name a new one")
        check_output_path(options.output)
    read = read_options(options)
    found = survey_file(options.file, read)
    if not found.labelled:
        how = "name their column 'label' in --columns" if found.table is None else "name label= or spans= in --columns"
        raise InputError(f"{options.file}: there are no labels to learn; {how}")
    further = {name: file for name, file in (("dev", options.dev), ("test", options.test)) if file is not None}
    found, *others = split_surveys(found, list(further.values()), read)
    remarks = [*found.remarks(), *holdout_remarks(found, further)]
    logger = logging.getLogger("pytorch_lightning.structperc")
    for remark in remarks:
        logger.warning("%s: %s", found.file, remark)
    for other in others:
        for remark in other.label_remarks():
            logger.warning("%s: %s", other.file, remark)
        if other.scheme != found.scheme and other.corpus.tokens:
            logger.warning("%s: labels of scheme %s, but %s there", other.file, other.scheme, found.scheme)
    text = configuration_text(found, further, options.encoding, options.output or "own.yaml", remarks)
    if options.output is None:
        print(text, end="")
    else:
        write_lines(options.output, [text])
        print(f"{options.output}: structperc fit -c {options.output}")


def split_surveys(found: "Survey", files: "Sequence[str]", read: "ReadOptions") -> "list[Survey]":
    """Return surveys of the training file and of the files of other splits, all read in the same way.

    Raises InputError for a file of another format than the training file.
    """
    from structperc.data.survey import survey_alike, survey_file
    from structperc.data.tables import DELIMITERS, table_format
    from structperc.data.text_files import expand_path

    kinds = {file: table_format(expand_path(file)) for file in files}
    if found.table is None:
        if tables := [file for file, kind in kinds.items() if kind not in (None, *DELIMITERS)]:
            raise InputError(f"{tables[0]}: this is a table, but {found.file} is none; give files of one format")
        return survey_alike(found, files, read)
    if others := [file for file, kind in kinds.items() if kind is None]:
        raise InputError(f"{others[0]}: this is no table, but {found.file} is one; give files of one format")
    named = read._replace(columns=[f"{role}={column}" for role, column in found.table.reader.columns.items()])
    surveys, table = [survey_file(file, named) for file in files], found.table
    for other in surveys:
        assert other.table is not None
        table = table.joined(other.table)
    return [found._replace(table=table), *surveys]


def configuration_text(
    found: "Survey", further: dict[str, str], encoding: str, own: str, remarks: "Sequence[str]" = ()
) -> str:
    """Return the text of a configuration for a file, with files of further splits; `own` is its name.

    Remarks on the file become comments.
    """
    data = (data_lines if found.table is None else table_lines)(found, further, encoding)
    comment = "# a column, which new text must have, too"
    features = [f"        - {{of: [{written(role)}], at: [-1, 0, 1]}}  {comment}\n" for role in extra(found)]
    summary = " ".join(f"{found.file}: {found.size}".split())
    notes = "".join(f"# {' '.join(visible(remark).split())}\n" for remark in remarks)
    return TEMPLATE.format(summary=summary, remarks=notes, own=own, data="\n".join(data), features="".join(features))


def data_lines(found: "Survey", further: dict[str, str], encoding: str) -> list[str]:
    """Return the lines of the configuration that say where the data are and what they are like."""
    folder = Path(found.file).parent
    files = {"train": Path(found.file).name, **{name: os.path.relpath(file, folder) for name, file in further.items()}}
    more = "dev and test may be added" if len(files) < 3 else "relative to path"
    kept = {"word", "label", *extra(found)}
    columns = [written(role if role in kept else "_") for role in found.roles]
    skipped = ", others with labels of its types are skipped" if found.other_labels else ""
    about = f"a name for each column, _ skips one; `label` is what is learned{skipped}"
    roles = f"columns: [{', '.join(columns)}]", about
    source = {"scheme": "none" if found.scheme == "none" else "IOB2"}
    lines = [
        (f"path: {written(str(folder))}", "a folder; relative ones start where the command runs"),
        (f"files: {{{', '.join(f'{name}: {written(file)}' for name, file in files.items())}}}", more),
        (f"tags: {found.tags}", "or the other of upos and xpos") if found.tags else roles,
        (f"labels: {found.scheme}", "how the files are labelled") if found.scheme not in ("none", "IOB2") else None,
        (f"scheme: {source['scheme']}", "of the labels that are learned; none: they are no segments"),
        ("unit: sentence", "or document, for features of whole documents") if found.documents else None,
        holdout_line(found, further),
        ("comments: true", "lines that begin with # and have another number of fields are no tokens")
        if found.line_format.comments
        else None,
        ("separator: tab", "fields hold spaces") if found.line_format.separator == "tab" else None,
        (f"encoding: {written(encoding)}", "of the files") if encoding != "utf-8" else None,
    ]
    kind = "Conllu" if found.tags else "Conll"
    body = [f"    {line[0]:<28}  # {line[1]}" for line in lines if line is not None]
    return [f"  class_path: structperc.data.{kind}", "  init_args:", *body]


def table_lines(found: "Survey", further: dict[str, str], encoding: str) -> list[str]:
    """Return the lines of the configuration that say where the data are, for tables."""
    assert found.table is not None
    reader, spans, others = found.table.reader, found.table.spans, found.table.others
    folder = Path(found.file).parent
    files = {"train": Path(found.file).name, **{name: os.path.relpath(file, folder) for name, file in further.items()}}
    columns = ", ".join(f"{role}: {written(column)}" for role, column in reader.columns.items())
    names = ", ".join(map(written, reader.names.get("label", ())))
    ends = " (an empty row ends a sentence)" if reader.columns.get("sentence") == "" else ""
    more = f"; not read: {' '.join(', '.join(others).split())}" if others else ""
    own = found.scheme not in ("none", "IOB2") and spans is None
    scheme = "none" if found.scheme == "none" else "IOB2"
    lines = [
        (f"path: {written(str(folder))}", "a folder; relative ones start where the command runs"),
        (f"files: {{{', '.join(f'{name}: {written(file)}' for name, file in files.items())}}}", found.table.format),
        (f"columns: {{{columns}}}", f"the column of each role{ends}{more}"),
        None if reader.heading else ("heading: false", "the first row names no columns; they are called 1, 2, ..."),
        (f"label_names: {{label: [{names}]}}", "of the labels 0, 1, ...; write their right names") if names else None,
        (f"labels: {found.scheme}", "how the files are labelled") if own else None,
        (f"scheme: {scheme}", "of the labels that are learned; none: they are no segments"),
        *(span_lines(spans) if spans is not None else []),
        ("unit: sentence", "or document, for features of whole documents") if found.documents else None,
        holdout_line(found, further),
        (f"encoding: {written(encoding)}", "of the files") if encoding != "utf-8" else None,
    ]
    body = [f"    {line[0]:<28}  # {line[1]}" for line in lines if line is not None]
    return ["  class_path: structperc.data.Table", "  init_args:", *body]


def holdout_line(found: "Survey", further: dict[str, str]) -> tuple[str, str] | None:
    """Return the option that holds out development data, with a comment; None with a dev file or too few sentences."""
    if "dev" in further or not held_out_by(found)[1]:
        return None
    parts = "documents" if found.documents else "sentences"
    return f"holdout: {HELD_OUT}", f"share of {parts}, drawn at random, for development; not with a dev file"


def span_lines(spans: "SpanReport") -> list[tuple[str, str]]:
    """Return the options that texts with spans need, with the reasons."""
    text_options = spans.text_options
    cut = [one for _, one in spans.conflicts if one.misaligned]
    shared = [one for _, one in spans.conflicts if not one.misaligned]
    lines = [
        (f"tokens: {text_options.tokens}", "how text is cut: conll or ud"),
        ("sentences: rules", "where they begin; lines: with each line, one: each text is one"),
    ]
    if text_options.offsets != "characters":
        lines.append((f"offsets: {text_options.offsets}", "what those of spans count: characters, utf-16 or utf-8"))
    if cut:
        why = f"{misfit_example(spans, cut)}; skip: leave out, error: refuse"
        lines.append(("misaligned: expand", f"to whole tokens: {why}"))
    if shared:
        lines.append(("overlaps: longest", f"the longest is kept: {misfit_example(spans, shared)}; error: refuse"))
    return lines


def misfit_example(spans: "SpanReport", some: "Sequence[SpanConflict]") -> str:
    """Return how many spans do not fit, and one of them with its place, on one line."""
    place = next(place for place, one in spans.conflicts if one is some[0])
    found = f"{len(some):,} of {spans.total:,} spans, {Path(place).name}: {some[0].message}"
    return " ".join(found.split())


def extra(found: "Survey") -> list[str]:
    """Return the columns before the label that can make features besides words: those of a few different strings."""
    if found.tags or found.table:
        return []
    named = [role for role in found.roles[: found.roles.index("label")] if role not in ("word", "_")]
    return [role for role in named if 1 < len(found.counts(role)) <= FEW and role not in found.other_labels]


def held_out_by(found: "Survey") -> tuple[list[str], list[int]]:
    """Return the types (or labels) that the development data held out of a file lack, and their sentences."""
    from structperc.data.splits import missing_types, sample_holdout

    corpus = found.corpus.replace_column("label", found.repaired)
    if len(corpus) < FEWEST:
        return [], []
    try:
        chosen = sample_holdout(corpus, HELD_OUT, found.scheme, seed=1)
    except InputError:
        return [], []
    return missing_types(corpus, corpus.subset(chosen), found.scheme), chosen.nonzero()[0].tolist()


def holdout_remarks(found: "Survey", further: dict[str, str]) -> Iterator[str]:
    """Yield what a user should know about development data where no file of them is given."""
    if "dev" in further:
        return
    missing, chosen = held_out_by(found)
    if not chosen:
        yield "no development data: there is too little to hold some out; name a file with --dev"
    elif missing:
        yield f"the development data, {len(chosen):,} sentences that are held out, lack {', '.join(missing)}"


def written(text: str) -> str:
    """Return a text as YAML, in quotes where it could mean something else."""
    plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text, re.ASCII) and text.lower() not in _OTHER
    return text if plain else json.dumps(text, ensure_ascii=False)


_OTHER = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
