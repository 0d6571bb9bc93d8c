"""structperc compare A B [C ...]: scores of each and McNemar's p-values of each pair."""

from argparse import Namespace

from structperc.cli.arguments import CommandParser, add_encoding, add_labels, command, prediction_folder
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
    from structperc.data.scheme_detection import check_labels, common_scheme, to_scheme
    from structperc.metrics import compare, compare_all
    from structperc.training.predictions import (
        gold_column,
        labelled_column,
        predicted_column,
        predictions_of,
        short_names,
    )

    places, encoding = options.systems, options.encoding
    if len(places) < 2:
        raise InputError(f"compare needs two or more prediction files or folders of runs, got {' '.join(places)}")
    paths = [str(predictions_of(prediction_folder(place), options.split)) for place in places]
    encodings = {path: encoding if path == place else "utf-8" for path, place in zip(paths, places, strict=True)}
    if options.gold is None:
        words, gold = gold_column(paths[0], encodings[paths[0]])
    else:
        words, gold = labelled_column(options.gold, encoding)
    predictions = {}
    for path in paths:
        own_words, predicted = predicted_column(path, encodings[path])
        if own_words != words:
            raise InputError(f"{path}: its sentences or words are not those of {options.gold or paths[0]}")
        if options.gold is None and gold_column(path, encodings[path])[1] != gold:
            raise InputError(f"{path}: its gold labels are not those of {paths[0]}; set --gold FILE")
        predictions[path] = predicted
    scheme = options.scheme or common_scheme(predictions)
    for path, predicted in predictions.items():
        check_labels(predicted, path, scheme)
    converted = to_scheme(gold, options.gold or paths[0], scheme, options.labels)
    names, found = short_names(places), [predictions[path] for path in paths]
    if len(places) == 2:
        print(compare(converted, found[0], found[1], scheme, (names[0], names[1]), options.beta).table())
    else:
        print(compare_all(converted, found, names, scheme, options.beta).table())
