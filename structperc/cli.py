"""The command line: fit, validate, test and predict from a YAML file; small commands for saved models and files."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence

from structperc.errors import InputError

TRAINING = ("fit", "validate", "test", "predict")
USAGE = """usage: structperc COMMAND ...

  fit         -c FILE                 train, then print results and where the model lies
  validate    -c FILE --ckpt_path F   scores on the development split
  test        -c FILE --ckpt_path F   scores on the test split
  predict     -c FILE --ckpt_path F   write predicted labels as CoNLL columns
  rerank      -c FILE                 train first models by jack-knifing, then a re-ranker of their candidates
  tag         MODEL FILE              label a file of CoNLL columns with a saved model
  sweep       -c FILE --grid KEY=V,V  train once per value, choose on development data
  study       FILE                    train a list of configurations over seeds, write one table
  compare     A B [C ...]             runs or prediction files against gold, with McNemar tests
  weights     MODEL                   the largest weights of a saved model, by name
  candidates  MODEL FILE              scores for several lengths of the list of candidates
  explain     MODEL FILE              why non-local features changed decisions
  decisions   MODEL FILE              in which order a guided tagger decided, and what it knew
  reliability MODEL [MODEL ...] FILE  confidence against accuracy, by token and by segment

structperc COMMAND --help says more."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; -> exit status (0 fine, 1 interrupted, 2 bad input)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())  # configurations may name classes in the folder one starts from
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
    if command == "rerank":
        from structperc.training.reranking import rerank

        return rerank(rest)
    if command in COMMANDS:
        return COMMANDS[command](rest)
    raise InputError(f"unknown command {command!r}; known are {', '.join((*TRAINING, 'rerank', *COMMANDS))}")


def tag(arguments: list[str]) -> int:
    """structperc tag MODEL FILE: the file's columns with one more, the predicted label."""
    parser = argparse.ArgumentParser("structperc tag", description="Label a file of CoNLL columns.")
    parser.add_argument("model", help="folder of a saved model, e.g. runs/quickstart/1/model")
    parser.add_argument("file", help="one token per line, blank lines between sentences")
    parser.add_argument("--columns", nargs="+", help="roles of the file's columns; default: those the model reads")
    parser.add_argument("--unit", choices=("sentence", "document"), help="default: as the model was trained")
    parser.add_argument("-o", "--output", help="write here instead of to standard output")
    parser.add_argument("-k", type=int, help="print the k best labellings with their scores instead")
    order = "write before the label in which step, from 1, a guided tagger decided the token"
    parser.add_argument("--order", action="store_true", help=order)
    options = parser.parse_args(arguments)

    from structperc.training.commands import tag_file

    reading = (options.columns, options.unit)
    tag_file(options.model, options.file, *reading, options.output, options.k, options.order)
    return 0


def compare_files(arguments: list[str]) -> int:
    """structperc compare A B [C ...]: scores of each and McNemar's p-values of each pair."""
    parser = argparse.ArgumentParser("structperc compare", description="Compare runs or prediction files.")
    what = "folder of a run, e.g. runs/quickstart/1, or a file of CoNLL columns, label last"
    parser.add_argument("systems", nargs="+", metavar="RUN-OR-FILE", help=what)
    parser.add_argument("--gold", help="CoNLL columns, label last; default: the last column but one of the predictions")
    parser.add_argument("--split", default="test", help="which predictions of a run: test or dev (default test)")
    parser.add_argument("--scheme", default="IOB2", help="IOB1, IOB2, IOBES, BILOU or none (default IOB2)")
    parser.add_argument("--gamma", type=float, default=1.0, help="of the F measure; above 1 recall counts more")
    options = parser.parse_args(arguments)

    from structperc.training.commands import compare_predictions

    print(compare_predictions(options.systems, options.gold, options.scheme, options.split, options.gamma))
    return 0


def sweep_values(arguments: list[str]) -> int:
    """structperc sweep -c FILE --grid KEY=V1,V2: a training per value, the best on development data."""
    parser = argparse.ArgumentParser(
        "structperc sweep",
        allow_abbrev=False,
        description="Train a configuration once per value of some options, choose the best on development data.",
        epilog="Further options are those of fit, for all trainings, such as --trainer.max_epochs=20.",
    )
    parser.add_argument("-c", "--config", action="append", required=True, metavar="FILE", help="as of fit")
    grid = "an option and its values, e.g. model.prior.init_args.C=0.01,0.1,1; again for a second option"
    parser.add_argument("--grid", action="append", required=True, metavar="KEY=V1,V2", help=grid)
    held = "choose on the last N training sequences, then train on all with the chosen value"
    parser.add_argument("--holdout", type=int, default=0, metavar="N", help=held)
    seeds = "train each point with each of these seeds; points are chosen by their mean score"
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help=seeds)
    parser.add_argument("--root", metavar="FOLDER", help="of the sweep; default: sweep-KEY among the runs of the file")
    options, rest = parser.parse_known_args(arguments)

    from structperc.training.sweep import sweep

    for line in sweep(options.config, options.grid, options.holdout, options.seeds, options.root, rest):
        print(line, flush=True)
    return 0


def run_study(arguments: list[str]) -> int:
    """structperc study FILE: each configuration that the file lists, with each seed, and one table."""
    parser = argparse.ArgumentParser(
        "structperc study", description="Train a list of configurations over seeds and write one table."
    )
    parser.add_argument("file", help="a study, such as configs/studies/embedded.yaml")
    parser.add_argument(
        "--root", metavar="FOLDER", help="of all runs and the table; default: runs/ and the file's name"
    )
    options = parser.parse_args(arguments)

    from structperc.training.study import study

    for line in study(options.file, options.root):
        print(line, flush=True)
    return 0


def show_weights(arguments: list[str]) -> int:
    """structperc weights MODEL: the largest weights by name, sums by label and template."""
    parser = argparse.ArgumentParser("structperc weights", description="Show the largest weights of a saved model.")
    parser.add_argument("model", help="folder of a saved model")
    parser.add_argument("--top", type=int, default=20, help="weights, label pairs and templates per list (default 20)")
    parser.add_argument("--plot", metavar="FILE", help="write a figure with bars: .png, .svg, .pdf")
    parser.add_argument("--csv", metavar="FILE", help="write all weights that are listed")
    options = parser.parse_args(arguments)

    from structperc.training.weights import weights_file

    print(weights_file(options.model, options.top, options.plot, options.csv))
    return 0


def score_candidates(arguments: list[str]) -> int:
    """structperc candidates MODEL FILE: scores for several lengths of the list of candidates."""
    parser = argparse.ArgumentParser(
        "structperc candidates", description="Scores of the n best, re-scored, for several n from one search."
    )
    _labelled_file(parser)
    lengths = [1, 20, 100, 400, 800, 1600, 6400]
    text = f"lengths of the list (default {' '.join(map(str, lengths))})"
    parser.add_argument("--n", nargs="+", type=int, default=lengths, help=text)
    parser.add_argument("--plot", metavar="FILE", help="write a figure with curves: .png, .svg, .pdf")
    parser.add_argument("--csv", metavar="FILE", help="write the table")
    options = parser.parse_args(arguments)

    from structperc.training.nbest import nbest_file

    reading = (options.columns, options.unit, options.labels)
    print(nbest_file(options.model, options.file, options.n, *reading, options.plot, options.csv))
    return 0


def explain_decisions(arguments: list[str]) -> int:
    """structperc explain MODEL FILE: what non-local features changed, and by which counts."""
    parser = argparse.ArgumentParser(
        "structperc explain", description="Show which decisions non-local features changed, and why."
    )
    _labelled_file(parser)
    parser.add_argument("--document", type=int, help="number of the one to explain, from 1; default: all that changed")
    parser.add_argument("--n", type=int, help="candidates; default: as many as the model decodes with, or 100")
    parser.add_argument("--html", metavar="FILE", help="write a page for the browser, too")
    options = parser.parse_args(arguments)

    from structperc.training.explain import explain_file

    reading = (options.columns, options.unit, options.labels)
    for line in explain_file(options.model, options.file, options.document, options.n, *reading, options.html):
        print(line)
    return 0


def show_decisions(arguments: list[str]) -> int:
    """structperc decisions MODEL FILE: which token was decided when, with which label and score."""
    parser = argparse.ArgumentParser(
        "structperc decisions", description="Show how a guided tagger decides sentences, step by step."
    )
    _labelled_file(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sentence", nargs="+", type=int, metavar="N", help="numbers of those to show, from 1")
    which.add_argument("--n", type=int, default=10, help="show the first n sentences (default 10)")
    parser.add_argument("--html", metavar="FILE", help="write a page for the browser, too")
    options = parser.parse_args(arguments)

    from structperc.training.decisions import decisions_file

    chosen, reading = (options.sentence, options.n), (options.columns, options.unit, options.labels)
    for line in decisions_file(options.model, options.file, *chosen, *reading, options.html):
        print(line)
    return 0


def show_reliability(arguments: list[str]) -> int:
    """structperc reliability MODEL [MODEL ...] FILE: is what is said with confidence 0.8 right in 8 of 10 cases."""
    parser = argparse.ArgumentParser(
        "structperc reliability", description="Confidence of predicted labels and segments against their accuracy."
    )
    _labelled_file(parser, several=True)
    parser.add_argument("--bins", type=int, default=10, help="of equal width (default 10)")
    parser.add_argument("--plot", metavar="FILE", help="write reliability diagrams: .png, .svg, .pdf")
    parser.add_argument("--csv", metavar="FILE", help="write the bins")
    options = parser.parse_args(arguments)

    from structperc.training.reliability import reliability_file

    reading = (options.columns, options.unit, options.labels)
    print(reliability_file(options.models, options.file, options.bins, *reading, options.plot, options.csv))
    return 0


def _labelled_file(parser: argparse.ArgumentParser, several: bool = False) -> None:
    if several:
        parser.add_argument("models", nargs="+", metavar="model", help="folders of saved models")
    else:
        parser.add_argument("model", help="folder of a saved model")
    parser.add_argument("file", help="one token per line, blank lines between sentences")
    columns = "roles of the file's columns, gold is `label`; default: those the model reads, then others, gold last"
    parser.add_argument("--columns", nargs="+", help=columns)
    parser.add_argument("--unit", choices=("sentence", "document"), help="default: as the model was trained")
    schemes = ("IOB1", "IOB2", "IOBES", "BILOU")
    parser.add_argument("--labels", choices=schemes, help="tag scheme of gold in the file; default: the model's")


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "tag": tag,
    "sweep": sweep_values,
    "study": run_study,
    "compare": compare_files,
    "weights": show_weights,
    "candidates": score_candidates,
    "explain": explain_decisions,
    "decisions": show_decisions,
    "reliability": show_reliability,
}
