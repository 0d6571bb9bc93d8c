"""Commands for configurations: configs lists those of the package, init writes one for a data file."""

import json
import os
import re
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from structperc.cli.arguments import FILE, CommandParser, add_data_options, command, read_options
from structperc.cli.recipes import LEARNERS, Recipe, name_parts_of_speech, task_of
from structperc.errors import InputError
from structperc.packaged_configs import PREFIX, ROW, packaged_names, packaged_path, split_row
from structperc.reports.tables import text_table
from structperc.spelling import visible

if TYPE_CHECKING:
    from yaml import MappingNode

    from structperc.data.annotations import SpanReport
    from structperc.data.read_options import ReadOptions
    from structperc.data.survey import Survey
    from structperc.text.alignment import SpanConflict

RECOMMENDED = "best"  # folder of the recommended configurations
HOLDOUT = 0.1  # share of the sentences for development, without a file of development data
MIN_SENTENCES = 10  # sentences of a file that is split into training and development data
NOT_PLAIN = ("null", "true", "false", "yes", "no", "on", "off", "y", "n")  # words with a meaning in YAML

DataOption = tuple[str, str]  # a line of the configuration, and its comment

TEMPLATE = """\
# {summary}
{remarks}# Written by `structperc init --learner {learner}`. Train, score and save: structperc fit -c {own}
# Every key is an option, too: structperc fit -c {own} --trainer.max_epochs 20
# Faster: {faster}. `structperc fit -c {own} --print_config` shows all values.
overlays:  # `structperc configs pkg:NAME` shows one; the keys below replace theirs
{overlays}
seed_everything: 1
data:
{data}
{model}
"""


def _configs_arguments(parser: CommandParser) -> None:
    words = "words in names and descriptions, such as entities clusters; or names to show, such as pkg:quickstart"
    parser.add_argument("words", nargs="*", metavar="WORD", help=words)


@command("[WORD ...]", "configurations that come with the package", _configs_arguments)
def configs(options: Namespace) -> None:
    """List the configurations of the package that have all the words, recommended ones first, or show one."""
    if options.words and options.words[0].startswith(PREFIX):
        for name in options.words:
            file, row = split_row(packaged_path(name))
            print(Path(file).read_text(encoding="utf-8") if row is None else _row_text(name), end="")
        return
    lines = {one: line for name in packaged_names() for one, line in _contents(name)}
    names = [name for name, line in lines.items() if _has_words(f"{name} {line}", options.words)]
    if not names:
        raise InputError(f"configs: none has {' and '.join(options.words)}; structperc configs lists all")
    names.sort(key=lambda name: not name.startswith(f"{RECOMMENDED}/"))
    trees: dict[str, MappingNode] = {}
    rows = [[PREFIX + name, _variables(name, trees), lines[name]] for name in names]
    print("\n".join(text_table([["name", "reads", "content"], *rows], "<<<")))


def _has_words(text: str, words: Sequence[str]) -> bool:
    return all(word.casefold() in text.casefold() for word in words)


def _contents(name: str) -> Iterator[tuple[str, str]]:
    """Yield the names and descriptions of a packaged file and its rows; those of a row are files without any."""
    from structperc.data.yaml_file import parse_yaml

    text = Path(packaged_path(PREFIX + name)).read_text(encoding="utf-8")
    yield name, text.partition("\n")[0].removeprefix("# ")
    for row, entry in parse_yaml(text, name).get("rows", {}).items():
        yield f"{name}{ROW}{row}", entry.get("about") or " ".join(entry.get("configs", []))


def _row_text(name: str) -> str:
    """Return the configuration of a row, merged with the files that it names."""
    from structperc.training.overlays import read_configuration, to_yaml

    return to_yaml(read_configuration(name))


def _variables(name: str, trees: "dict[str, MappingNode]") -> str:
    """Return the environment variables that a packaged configuration reads; `trees` caches its parts."""
    from yaml import serialize

    from structperc.training.overlays import ROWS, compose

    file = packaged_path(PREFIX + name)
    if ROW in name or f"\n{ROWS}:" not in Path(file).read_text(encoding="utf-8"):
        return " ".join(dict.fromkeys(re.findall(r"\$\{(\w+)", serialize(compose(file, trees)))))
    return ""


def _init_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "file", type=FILE, help="training data: CoNLL columns, CoNLL-U, JSON lines, CSV, parquet or a saved folder"
    )
    parser.add_argument(
        "--dev", type=FILE, metavar="FILE", help="development data; default: a tenth of the file, drawn at random"
    )
    parser.add_argument("--test", type=FILE, metavar="FILE", help="test data")
    parser.add_argument("--learner", choices=LEARNERS, default="crf", help="the recipe, see below (default crf)")
    encoder = "folder or hub id of the encoder of frozen and fine-tuned"
    parser.add_argument("--encoder", metavar="MODEL", help=encoder)
    parser.add_argument("--clusters", type=FILE, metavar="FILE", help="word clusters to read")
    lists = "lists of names to read, each a file with a name on each line"
    parser.add_argument("--gazetteers", type=FILE, nargs="+", action="extend", default=[], metavar="FILE", help=lists)
    parser.add_argument("-o", "--output", metavar="FILE", help="a new file; default: standard output")
    add_data_options(parser)
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = "learners:\n" + "\n".join(f"  {name:<12}{learner.summary}" for name, learner in LEARNERS.items())


@command("FILE", "write a configuration to begin with", _init_arguments)
def init(options: Namespace) -> None:
    """Write a commented configuration to begin with, the recommended one of a learner, for a labelled file."""
    import logging

    from structperc.data.output import check_output_path, write_lines
    from structperc.data.survey import inspect_file

    if options.output is not None:
        if os.path.lexists(options.output):
            raise InputError(f"{options.output}: this file exists; name a new one")
        check_output_path(options.output)
    recipe = Recipe(options.learner, options.encoder, options.clusters, options.gazetteers)
    recipe.check()
    read = read_options(options)
    survey = name_parts_of_speech(inspect_file(options.file, read))
    if not survey.labelled:
        how = "name their column 'label' in --columns" if survey.table is None else "name label= or spans= in --columns"
        raise InputError(f"{options.file}: no labels; {how}")
    further = {name: file for name, file in (("dev", options.dev), ("test", options.test)) if file is not None}
    survey, *others = _split_surveys(survey, list(further.values()), read)
    missing, holdout = ([], 0) if "dev" in further or survey.sets else _missing_in_holdout(survey)
    remarks = [*survey.remarks()]
    if "dev" not in further and survey.sets:
        remarks.append("no development data: scores need complete labels; name a file of them with --dev")
    elif "dev" not in further and not holdout:
        remarks.append("no development data: there is too little to hold some out; name a file with --dev")
    elif missing:
        remarks.append(f"the development data, {holdout:,} sentences that are held out, lack {', '.join(missing)}")
    logger = logging.getLogger("pytorch_lightning.structperc")
    for remark in remarks:
        logger.warning("%s: %s", survey.file, remark)
    for other in others:
        for remark in other.label_remarks():
            logger.warning("%s: %s", other.file, remark)
        if other.file_scheme != survey.file_scheme and other.corpus.tokens:
            logger.warning("%s: labels of scheme %s, but %s there", other.file, other.file_scheme, survey.file_scheme)
    data = _data_options(survey, further, options.encoding, holdout > 0)
    text = _configuration(survey, data, recipe, options.output or "own.yaml", remarks)
    if options.output is None:
        print(text, end="")
    else:
        write_lines(options.output, [text])
        print(f"{options.output}: structperc fit -c {options.output}")


def _split_surveys(found: "Survey", files: Sequence[str], read: "ReadOptions") -> "list[Survey]":
    """Return surveys of the training file and of the files of other splits, all read in the same way.

    Raises InputError for a file of another format than the training file.
    """
    from structperc.data.survey import inspect_file, inspect_matching_files
    from structperc.data.table_files import DELIMITERS, table_format
    from structperc.data.text_files import expand_path

    kinds = {file: table_format(expand_path(file)) for file in files}
    if found.table is None:
        if tables := [file for file, kind in kinds.items() if kind not in (None, *DELIMITERS)]:
            raise InputError(f"{tables[0]}: this is a table, unlike {found.file}; give files of one format")
        return inspect_matching_files(found, files, read)
    if others := [file for file, kind in kinds.items() if kind is None]:
        raise InputError(f"{others[0]}: this is not a table, unlike {found.file}; give files of one format")
    named = read._replace(columns=[f"{role}={column}" for role, column in found.table.reader.columns.items()])
    surveys, table = [inspect_file(file, named) for file in files], found.table
    for other in surveys:
        assert other.table is not None
        table = table.joined(other.table)
    return [found._replace(table=table), *surveys]


def _configuration(
    found: "Survey", data: Sequence[DataOption], recipe: Recipe, own: str, remarks: Sequence[str]
) -> str:
    kind = "Table" if found.table is not None else "Conllu" if found.tags else "Conll"
    lines = [f"  class_path: structperc.data.{kind}", "  init_args:"]
    lines += [f"    {option:<28}  # {comment}" for option, comment in data]
    task = task_of(found)
    return TEMPLATE.format(
        summary=" ".join(f"{found.file}: {found.size}".split()),
        remarks="".join(f"# {' '.join(visible(remark).split())}\n" for remark in remarks),
        learner=recipe.learner,
        own=own,
        faster=LEARNERS[recipe.learner].faster,
        overlays="\n".join(f"  - {name:<36}  # {comment}" for name, comment in recipe.overlays(task)),
        data="\n".join(lines),
        model="\n".join(recipe.model(task)),
    )


def _data_options(found: "Survey", further: dict[str, str], encoding: str, holdout: bool) -> list[DataOption]:
    folder = Path(found.file).parent
    files = {"train": Path(found.file).name, **{name: os.path.relpath(file, folder) for name, file in further.items()}}
    spans = found.table.spans if found.table is not None else None
    more = "dev and test may be added" if len(files) < 3 else "relative to path"
    options = [
        (f"path: {_yaml(str(folder))}", "a folder; relative ones start in the current folder"),
        (
            f"files: {{{', '.join(f'{name}: {_yaml(file)}' for name, file in files.items())}}}",
            more if found.table is None else found.table.format,
        ),
        *(_column_options(found) if found.table is None else _table_options(found)),
    ]
    if found.file_scheme != "none" and spans is None:
        options.append((f"labels: {found.file_scheme}", "tag scheme of the files"))
    scheme = "none" if found.scheme == "none" else "IOB2"
    options.append((f"scheme: {scheme}", "tag scheme of the model; none: labels without segments"))
    if found.sets and spans is None:
        options.append(("incomplete: true", "labels may be ? (unknown), B-PER|B-ORG (one of) or !B-PER (not)"))
    if spans is not None:
        options += _span_options(spans)
    if found.documents:
        options.append(("unit: sentence", "or document, for features of whole documents"))
    if holdout:
        parts = "documents" if found.documents else "sentences"
        comment = f"share of {parts}, drawn at random, for development; not with a dev file"
        options.append((f"holdout: {HOLDOUT}", comment))
    if found.line_format.comments:
        comment = "lines that begin with # and have another number of fields are not tokens"
        options.append(("comments: true", comment))
    if found.line_format.separator == "tab":
        options.append(("separator: tab", "fields contain spaces"))
    if encoding != "utf-8":
        options.append((f"encoding: {_yaml(encoding)}", "of the files"))
    return options


def _column_options(found: "Survey") -> list[DataOption]:
    if found.tags:
        return [(f"tags: {found.tags}", "or the other of upos and xpos")]
    kept = {"word", "label", *found.feature_columns}
    columns = [_yaml(role if role in kept else "_") for role in found.roles]
    skipped = ", others with labels of its types are skipped" if found.other_labels else ""
    return [(f"columns: [{', '.join(columns)}]", f"a name for each column, _ skips one; `label` is gold{skipped}")]


def _table_options(found: "Survey") -> list[DataOption]:
    assert found.table is not None
    reader, others = found.table.reader, found.table.others
    columns = ", ".join(f"{role}: {_yaml(column)}" for role, column in reader.columns.items())
    ends = " (an empty row ends a sentence)" if reader.columns.get("sentence") == "" else ""
    more = f"; not read: {' '.join(', '.join(others).split())}" if others else ""
    options = [(f"columns: {{{columns}}}", f"the column of each role{ends}{more}")]
    if not reader.heading:
        options.append(("heading: false", "the first row has no names; columns are called 1, 2, ..."))
    if names := ", ".join(map(_yaml, reader.names.get("label", ()))):
        options.append((f"label_names: {{label: [{names}]}}", "of the labels 0, 1, ...; write their right names"))
    return options


def _span_options(spans: "SpanReport") -> list[DataOption]:
    text_options = spans.text_options
    cut = [conflict for _, conflict in spans.conflicts if conflict.misaligned]
    shared = [conflict for _, conflict in spans.conflicts if not conflict.misaligned]
    lines = [
        (f"tokens: {text_options.tokens}", "tokenizer: conll, ud or characters"),
        ("sentences: rules", "sentence splitter; lines: each line is one, one: each text is one"),
    ]
    if text_options.offsets != "characters":
        lines.append((f"offsets: {text_options.offsets}", "unit of offsets: characters, utf-16 or utf-8"))
    if cut:
        why = f"{_misfit_example(spans, cut)}; drop: leave out, refuse: raise an error"
        lines.append(("misaligned: expand", f"to whole tokens: {why}"))
    if shared:
        lines.append(
            ("overlaps: longest", f"the longest is kept: {_misfit_example(spans, shared)}; refuse: raise an error")
        )
    return lines


def _misfit_example(spans: "SpanReport", some: "Sequence[SpanConflict]") -> str:
    place = next(place for place, conflict in spans.conflicts if conflict is some[0])
    text = f"{len(some):,} of {spans.total:,} spans, {Path(place).name}: {some[0].message}"
    return " ".join(text.split())


def _missing_in_holdout(found: "Survey") -> tuple[list[str], int]:
    """Return the types (or labels) that the development data held out of a file lack, and their number of sentences."""
    from structperc.data.splits import missing_types, sample_holdout

    corpus = found.corpus.replace_column("label", found.repaired)
    if len(corpus) < MIN_SENTENCES:
        return [], 0
    try:
        chosen = sample_holdout(corpus, HOLDOUT, found.scheme, seed=1)
    except InputError:
        return [], 0
    return missing_types(corpus, corpus.subset(chosen), found.scheme), int(chosen.sum())


def _yaml(text: str) -> str:
    """Return a text as YAML, in quotes where it could have another meaning."""
    plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text, re.ASCII) and text.lower() not in NOT_PLAIN
    return text if plain else json.dumps(text, ensure_ascii=False)
