"""The argument of the commands that load a saved model, and whose code that may run; loading a guided tagger."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from structperc.commands.command import CommandParser
from structperc.errors import InputError

if TYPE_CHECKING:
    from structperc.taggers.guided_tagger import GuidedTagger


def add_model(parser: CommandParser, several: bool = False) -> None:
    """Add the argument of a model's folder, or of several, and the option for modules that models may name."""
    if several:
        parser.add_argument("models", nargs="+", metavar="model", help="folders of saved models")
    else:
        parser.add_argument("model", help="folder of a saved model, e.g. runs/quickstart/1/model")
    trust = "let the model use classes of this module, whose code runs; again for a second module"
    parser.add_argument("--trust", action="append", default=[], metavar="MODULE", help=trust)


def load_guided(model: str, trusted: Sequence[str]) -> "GuidedTagger":
    """Return a saved guided tagger. Raises InputError for a model that has no order of decisions."""
    from structperc.taggers.guided_tagger import GuidedTagger
    from structperc.taggers.sequence_tagger import SequenceTagger

    tagger = SequenceTagger.load(model, trusted=trusted)
    if not isinstance(tagger, GuidedTagger):
        name = type(tagger).__name__
        raise InputError(f"{model}: a {name} decides all tokens at once; only a GuidedTagger has an order of decisions")
    return tagger
