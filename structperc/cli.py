"""The command line: fit, validate, test and predict from a YAML file; tag and compare for saved models and files."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

from structperc.errors import InputError

TRAINING = ("fit", "validate", "test", "predict")
USAGE = """usage: structperc COMMAND ...

  fit       -c FILE                 train, then print results and where the model lies
  validate  -c FILE --ckpt_path F   scores on the development split
  test      -c FILE --ckpt_path F   scores on the test split
  predict   -c FILE --ckpt_path F   write predicted labels as CoNLL columns
  tag       MODEL FILE              label a file of CoNLL columns with a saved model
  compare   A B --gold FILE         two prediction files against gold, with McNemar tests

structperc COMMAND --help says more."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; -> exit status (0 fine, 1 interrupted, 2 bad input)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    try:
        return run(given[0], given[1:])
    except InputError as error:
        print(f"structperc: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("structperc: interrupted", file=sys.stderr)
        return 1


def run(command: str, rest: list[str]) -> int:
    """Dispatches to the command. InputError for an unknown one."""
    if command in TRAINING:
        from structperc.training.program import train

        return train([command, *rest])
    if command == "tag":
        return tag(rest)
    if command == "compare":
        return compare_files(rest)
    raise InputError(f"unknown command {command!r}; known are {', '.join((*TRAINING, 'tag', 'compare'))}")


def tag(arguments: list[str]) -> int:
    """structperc tag MODEL FILE: the file's columns with one more, the predicted label."""
    parser = argparse.ArgumentParser("structperc tag", description="Label a file of CoNLL columns.")
    parser.add_argument("model", help="folder of a saved model, e.g. runs/quickstart/1/model")
    parser.add_argument("file", help="one token per line, blank lines between sentences")
    parser.add_argument("--columns", nargs="+", help="roles of the file's columns; default: those the model reads")
    parser.add_argument("--unit", choices=("sentence", "document"), help="default: as the model was trained")
    parser.add_argument("-o", "--output", help="write here instead of to standard output")
    parser.add_argument("-k", type=int, help="print the k best labellings with their scores instead")
    options = parser.parse_args(arguments)

    from structperc.training.commands import tag_file

    tag_file(options.model, options.file, options.columns, options.unit, options.output, options.k)
    return 0


def compare_files(arguments: list[str]) -> int:
    """structperc compare A B --gold FILE: scores of both and McNemar's p-values."""
    parser = argparse.ArgumentParser("structperc compare", description="Compare two prediction files.")
    parser.add_argument("a", help="CoNLL columns, label last")
    parser.add_argument("b", help="CoNLL columns, label last")
    parser.add_argument("--gold", required=True, help="CoNLL columns, label last")
    parser.add_argument("--scheme", default="IOB2", help="IOB1, IOB2, IOBES, BILOU or none (default IOB2)")
    options = parser.parse_args(arguments)

    from structperc.training.commands import compare_predictions

    print(compare_predictions(options.a, options.b, options.gold, options.scheme))
    return 0
