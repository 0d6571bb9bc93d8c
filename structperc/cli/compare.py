"""structperc compare A B [C ...]: scores of each and McNemar's p-values of each pair."""

from argparse import Namespace
from collections.abc import Sequence

from structperc.cli.arguments import CommandParser, add_encoding, add_labels, command, prediction_folder
from structperc.data.read_options import ReadOptions
from structperc.errors import InputError


def _arguments(parser: CommandParser) -> None:
    what = "folder of a run, e.g. runs/quickstart/1, or a file of CoNLL columns, label last"
    parser.add_argument("systems", nargs="+", metavar="RUN-OR-FILE", help=what)
    parser.add_argument("--gold", help="CoNLL columns, label last; default: the last column but one of the predictions")
    parser.add_argument("--split", default="test", help="which predictions of a run: test or dev (default test)")
    scheme = "of the predictions: IOB1, IOB2, IOBES, BILOU or none; default: the one that fits them all, else IOB2"
    parser.add_argument("--scheme", help=scheme)
    add_labels(parser, "gold; default: that of the predictions, or the one that fits")
    add_encoding(parser)
    parser.add_argument("--beta", type=float, default=1.0, help="of the F measure; above 1 recall counts more")


@command("A B [C ...]", "runs or prediction files, McNemar tests", _arguments)
def compare(options: Namespace) -> None:
    """Compare runs or prediction files."""
    reading = ReadOptions(labels=options.labels, encoding=options.encoding)
    print(compare_predictions(options.systems, options.gold, options.scheme, options.split, options.beta, reading))


def compare_predictions(
    places: Sequence[str],
    gold: str | None,
    scheme: str | None = None,
    split: str = "test",
    beta: float = 1.0,
    reading: ReadOptions = ReadOptions(),  # noqa: B008  # immutable
) -> str:
    """Return the table of `compare` for two prediction files or folders of runs, of `compare_all` for more.

    A folder with one run below it, such as a row of a study, stands for that run.

    The label is in the last column of each file, of the gold file too; without one gold is the last column but one
    of the prediction files, which must agree on it. Where the first line of a file names its columns, these count.
    `scheme` is that of the predictions, by default the `common_scheme`; gold is of the scheme that `reading` names and
    compared as `to_scheme` gives it. The encoding is that of files, not of those in folders of runs. Raises InputError
    for a single place, files of different texts, and as `compare`, `gold_column` and these two do.
    """
    from structperc.data.scheme_detection import check_labels, common_scheme, to_scheme
    from structperc.metrics import compare, compare_all
    from structperc.training.predictions import (
        gold_column,
        labelled_column,
        predicted_column,
        predictions_of,
        short_names,
    )

    if len(places) < 2:
        raise InputError(f"compare needs two or more prediction files or folders of runs, got {' '.join(places)}")
    paths = [str(predictions_of(prediction_folder(place), split)) for place in places]
    of = {path: reading.encoding if path == place else "utf-8" for path, place in zip(paths, places, strict=True)}
    found_gold = gold_column(paths[0], of[paths[0]]) if gold is None else labelled_column(gold, reading.encoding)
    words, wanted = found_gold
    predictions = {}
    for path in paths:
        own_words, predicted = predicted_column(path, of[path])
        if own_words != words:
            raise InputError(f"{path}: its sentences or words are not those of {gold or paths[0]}")
        if gold is None and gold_column(path, of[path])[1] != wanted:
            raise InputError(f"{path}: its gold labels are not those of {paths[0]}; set --gold FILE")
        predictions[path] = predicted
    scheme = scheme or common_scheme(predictions)
    for path, predicted in predictions.items():
        check_labels(predicted, path, scheme)
    right = to_scheme(wanted, gold or paths[0], scheme, reading.labels)
    names, found = short_names(places), [predictions[path] for path in paths]
    if len(places) == 2:
        return compare(right, found[0], found[1], scheme, (names[0], names[1]), beta).table()
    return compare_all(right, found, names, scheme, beta).table()
