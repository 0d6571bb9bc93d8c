"""Refusals of the parser, of Lightning and of optimizers, as one line that names what to change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jsonargparse import ArgumentError
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from structperc.errors import InputError
from structperc.training import trainer_options
from structperc.training.parser_messages import parser_message
from structperc.user_code import error_location

ADVICE = {  # what optimizers and callbacks say that they cannot do -> where they are configured, and what to do
    "sparse gradients": ("model.optimizer", "; or set model.scorer.init_args.sparse_grad: false"),
    "does not allow for gradient clipping": (
        "model.optimizer",
        "; set its option fused: false, or leave out trainer.gradient_clip_val",
    ),
    "Early stopping conditioned on metric": ("trainer.callbacks", ""),
}

NOT_BUILT = "Does not validate against any of the Union subtypes"  # how the parser begins to say so


@contextmanager
def refusals(arguments: Sequence[str] = ()) -> Iterator[None]:
    """Turn mistakes in a command's options and configurations, found within the block, into InputErrors."""
    try:
        yield
    except ArgumentError as error:
        raise _in_user_code(error) or InputError(parser_message(str(error), arguments)) from None
    except (ValueError, TypeError, MisconfigurationException) as error:
        raise told(cause(error)) from None
    except RuntimeError as error:
        found = next((advice for words, advice in ADVICE.items() if words in str(error)), None)
        if found is None:
            raise
        place, advice = found
        raise InputError(f"{place}: {' '.join(str(error).split())}{advice}") from None


def _in_user_code(error: BaseException) -> InputError | None:
    """Return the failure of a user's own module that the parser wrapped while it imported it, if there is one."""
    chained: BaseException | None = error
    while chained is not None and not isinstance(chained, InputError):
        if place := error_location(chained):
            return InputError(f"{place}: {type(chained).__name__}: {chained}")
        chained = chained.__cause__ or chained.__context__
    return None


def told(error: Exception) -> Exception:
    """Return complaints of Lightning about its use, and of optimizers about their options, as InputErrors.

    Other errors are returned as they are.
    """
    if trainer_options.is_lightnings(error):
        return trainer_options.as_input_error(error)
    if type(error) is ValueError and trainer_options.raised_in(error).startswith("torch.optim."):
        return InputError(f"model.optimizer: {' '.join(str(error).split())}")
    return error


def cause(error: Exception) -> Exception:
    """Return the InputError that the parser wrapped while it built the configured objects.

    Where there is none, the error itself is returned, unless it came up while one of these objects was built, such as
    for the lack of a package: that makes an InputError, too.
    """
    outer: BaseException = error
    chained: BaseException = error
    while not isinstance(chained, InputError) and chained.__cause__ is not None:
        outer, chained = chained, chained.__cause__
    if isinstance(chained, InputError):
        return chained
    if isinstance(chained, Exception) and (place := error_location(chained)):
        return InputError(f"{place}: {type(chained).__name__}: {chained}")
    if isinstance(chained, ModuleNotFoundError):
        return InputError(parser_message(str(outer)))
    return InputError(parser_message(str(error))) if str(error).startswith(NOT_BUILT) else error
