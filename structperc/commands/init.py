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
    from structperc.data.survey import Survey

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
    made.add_argument("file", help="training data: CoNLL columns or CoNLL-U")
    made.add_argument("--dev", metavar="FILE", help="development data; default: the last tenth of the sentences")
    made.add_argument("--test", metavar="FILE", help="test data")
    made.add_argument("-o", "--output", metavar="FILE", help="a new file; default: standard output")
    add_data_options(made)
    return made


def run(arguments: list[str]) -> None:
    """Look at the data file and write a configuration for it."""
    options = parser().parse_args(arguments)

    from structperc.data.output import check_target, write_lines
    from structperc.data.survey import survey

    if options.output is not None:
        if os.path.lexists(options.output):
            raise InputError(f"{options.output}: this file is there already; name a new one")
        check_target(options.output)
    read = data_reading(options)
    found = survey(options.file, read)
    if not found.labelled:
        raise InputError(f"{options.file}: there are no labels to learn; name their column 'label' in --columns")
    further = {name: file for name, file in (("dev", options.dev), ("test", options.test)) if file is not None}
    for file in further.values():
        survey(file, read if found.tags else read._replace(columns=found.roles))
    text = configuration_text(found, further, options.encoding, options.output or "own.yaml")
    if options.output is None:
        print(text, end="")
    else:
        write_lines(options.output, [text])
        print(f"{options.output}: structperc fit -c {options.output}")


def configuration_text(found: "Survey", further: dict[str, str], encoding: str, own: str) -> str:
    """Return the text of a configuration for a file, with files of further splits; `own` is its name."""
    data = data_lines(found, further, encoding)
    comment = "# a column, which new text must have, too"
    features = [f"        - {{of: [{written(role)}], at: [-1, 0, 1]}}  {comment}\n" for role in extra(found)]
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


def extra(found: "Survey") -> list[str]:
    """Return the columns before the label that can make features besides words: those of a few different strings."""
    if found.tags:
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
