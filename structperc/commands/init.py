"""structperc init FILE: a configuration to begin with, for a data file that it has looked at."""

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from structperc.commands.command import Command, CommandParser
from structperc.commands.data_files import add_data_options, data_reading
from structperc.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structperc.data.annotations import SpanReport
    from structperc.data.reading import Reading
    from structperc.data.survey import Survey
    from structperc.text import Misfit

FEW = 200  # a column with more different strings makes no features
HELD_OUT = 10  # one of so many sentences is development data, where no file of them is named

TEMPLATE = """\
# {summary}
# Written by `structperc init`. Train, score and save: structperc fit -c {own}
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
  criterion: {{class_path: structperc.criteria.Perceptron}}     # others: docs/training_criteria.md
  search: {{class_path: structperc.chain.KBest, init_args: {{k: 1}}}}
  optimizer: {{class_path: structperc.optim.Perceptron, init_args: {{average: true}}}}
"""


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("init", "Write a commented configuration to begin with, for a labelled file.")
    made.add_argument("file", help="training data: CoNLL columns, CoNLL-U, JSON lines, CSV, parquet or a saved folder")
    made.add_argument("--dev", metavar="FILE", help="development data; default: the last tenth of the sentences")
    made.add_argument("--test", metavar="FILE", help="test data")
    made.add_argument("-o", "--output", metavar="FILE", help="a new file; default: standard output")
    add_data_options(made)
    return made


def run(arguments: list[str]) -> None:
    """Look at the data file and write a configuration for it."""
    options = parser().parse_args(arguments)

    from structperc.data.output import check_target, write_lines
    from structperc.data.table_survey import survey_file

    if options.output is not None:
        if os.path.lexists(options.output):
            raise InputError(f"{options.output}: this file is there already; name a new one")
        check_target(options.output)
    read = data_reading(options)
    found = survey_file(options.file, read)
    if not found.labelled:
        how = "name their column 'label' in --columns" if found.table is None else "name label= or spans= in --columns"
        raise InputError(f"{options.file}: there are no labels to learn; {how}")
    further = {name: file for name, file in (("dev", options.dev), ("test", options.test)) if file is not None}
    for file in further.values():
        found = with_split(file, found, read)
    text = configuration_text(found, further, options.encoding, options.output or "own.yaml")
    if options.output is None:
        print(text, end="")
    else:
        write_lines(options.output, [text])
        print(f"{options.output}: structperc fit -c {options.output}")


def with_split(file: str, found: "Survey", read: "Reading") -> "Survey":
    """Return what was found of the training data, with how a file of another split is read, too.

    Raises InputError for one that cannot be read in the same way.
    """
    from structperc.data.table_names import DELIMITERS, kind_of_table
    from structperc.data.table_survey import survey_file
    from structperc.data.text import expand

    if found.table is not None:
        columns = found.table.reader.columns
        if kind_of_table(expand(file)) is None:
            raise InputError(f"{file}: this is no table, but {found.file} is one; give files of one format")
        named = [f"{role}={column}" for role, column in columns.items()]
        other = survey_file(file, read._replace(columns=named))
        assert other.table is not None
        return found._replace(table=found.table.joined(other.table))
    if kind_of_table(expand(file)) not in (None, *DELIMITERS):
        raise InputError(f"{file}: this is a table, but {found.file} is none; give files of one format")
    survey_file(file, read if found.tags else read._replace(columns=found.roles))
    return found


def configuration_text(found: "Survey", further: dict[str, str], encoding: str, own: str) -> str:
    """Return the text of a configuration for a file, with files of further splits; `own` is its name."""
    data = (data_lines if found.table is None else table_lines)(found, further, encoding)
    features = [
        f"        - {{of: [{written(role)}], at: [-1, 0, 1]}}  # the column of that name\n" for role in extra(found)
    ]
    summary = " ".join(f"{found.file}: {found.size}".split())
    return TEMPLATE.format(summary=summary, own=own, data="\n".join(data), features="".join(features))


def data_lines(found: "Survey", further: dict[str, str], encoding: str) -> list[str]:
    """Return the lines of the configuration that say where the data are and what they are like."""
    folder = Path(found.file).parent
    files = {"train": Path(found.file).name, **{name: os.path.relpath(file, folder) for name, file in further.items()}}
    held = 0 if "dev" in further else holdout_size(found)
    more = "dev and test may be added" if len(files) < 3 else "relative to path"
    kept = {"word", "label", *extra(found)}
    columns = [written(role if role in kept else "_") for role in found.roles]
    roles = f"columns: [{', '.join(columns)}]", "a name for each column, _ skips one; `label` is what is learned"
    source = {"scheme": "none" if found.scheme == "none" else "IOB2"}
    lines = [
        (f"path: {written(str(folder))}", "a folder; relative ones start where the command runs"),
        (f"files: {{{', '.join(f'{name}: {written(file)}' for name, file in files.items())}}}", more),
        (f"tags: {found.tags}", "or the other of upos and xpos") if found.tags else roles,
        (f"labels: {found.scheme}", "how the files are labelled") if found.scheme not in ("none", "IOB2") else None,
        (f"scheme: {source['scheme']}", "of the labels that are learned; none: they are no segments"),
        ("unit: sentence", "or document, for features of whole documents") if found.documents else None,
        (f"holdout: {held}", "the last sentences are development data; leave out with a dev file") if held else None,
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
    held = 0 if "dev" in further else holdout_size(found)
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
        (f"holdout: {held}", "the last sentences are development data; leave out with a dev file") if held else None,
        (f"encoding: {written(encoding)}", "of the files") if encoding != "utf-8" else None,
    ]
    body = [f"    {line[0]:<28}  # {line[1]}" for line in lines if line is not None]
    return ["  class_path: structperc.data.Table", "  init_args:", *body]


def span_lines(spans: "SpanReport") -> list[tuple[str, str]]:
    """Return the options that texts with spans need, with the reasons."""
    cutting = spans.cutting
    cut = [one for _, one in spans.misfits if one.misaligned]
    shared = [one for _, one in spans.misfits if not one.misaligned]
    lines = [
        (f"tokens: {cutting.tokens}", "how text is cut: conll or ud"),
        ("sentences: rules", "where they begin; lines: with each line, one: each text is one"),
    ]
    if cutting.offsets != "characters":
        lines.append((f"offsets: {cutting.offsets}", "what those of spans count: characters, utf-16 or utf-8"))
    if cut:
        why = f"{misfit_example(spans, cut)}; skip: leave out, error: refuse"
        lines.append(("misaligned: expand", f"to whole tokens: {why}"))
    if shared:
        lines.append(("overlaps: longest", f"the longest is kept: {misfit_example(spans, shared)}; error: refuse"))
    return lines


def misfit_example(spans: "SpanReport", some: "Sequence[Misfit]") -> str:
    """Return how many spans do not fit, and one of them with its place, on one line."""
    place = next(place for place, one in spans.misfits if one is some[0])
    found = f"{len(some):,} of {spans.total:,} spans, {Path(place).name}: {some[0].message}"
    return " ".join(found.split())


def extra(found: "Survey") -> list[str]:
    """Return the columns before the label that can make features besides words: those of a few different strings."""
    if found.tags or found.table:
        return []
    named = [role for role in found.roles[: found.roles.index("label")] if role not in ("word", "_")]
    return [role for role in named if 1 < len(found.counts(role)) <= FEW]


def holdout_size(found: "Survey") -> int:
    """Return how many of the last sentences can be development data, so that none of their labels is new there."""
    from structperc.data.segments import spans

    sentences = found.corpus.sentences_of(found.repaired)
    names = [set(s) if found.scheme == "none" else {span.type for span in spans(s)} for s in sentences]
    n = len(names) // HELD_OUT
    while n and not set().union(*names[-n:]) <= set().union(*names[:-n]):
        n //= 2
    return n


def written(text: str) -> str:
    """Return a text as YAML, in quotes where it could mean something else."""
    plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text, re.ASCII) and text.lower() not in _OTHER
    return text if plain else json.dumps(text, ensure_ascii=False)


_OTHER = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")

INIT = Command("init", "FILE", "write a configuration to begin with", run)
