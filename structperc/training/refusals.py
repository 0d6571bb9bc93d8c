"""What the parser, Lightning and optimizers refuse, in one line that names what to change."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from jsonargparse import ArgumentError

from structperc.errors import InputError

ADVICE = {  # where an optimizer says what it cannot do
    "sparse gradients": "or set model.scorer.init_args.sparse_grad: false",
    "does not allow for gradient clipping": "set its option fused: false, or leave out trainer.gradient_clip_val",
}


@contextmanager
def refusals() -> Iterator[None]:
    """Mistakes in options and configurations that show within the block become InputErrors."""
    try:
        yield
    except ArgumentError as error:
        raise InputError(one_line(error)) from None
    except ValueError as error:
        raise cause(error) from None
    except RuntimeError as error:
        advice = next((advice for words, advice in ADVICE.items() if words in str(error)), None)
        if advice is None:
            raise
        raise InputError(f"model.optimizer: {' '.join(str(error).split())}; {advice}") from None


def cause(error: BaseException) -> BaseException:
    """The InputError that the parser wrapped while it built the configured objects; else the error itself.

    A package that one of these objects needs and that is not there makes an InputError, too.
    """
    outer = chained = error
    while not isinstance(chained, InputError) and chained.__cause__ is not None:
        outer, chained = chained, chained.__cause__
    if isinstance(chained, ModuleNotFoundError):
        return InputError(one_line(outer))
    return chained if isinstance(chained, InputError) else error


def one_line(error: BaseException) -> str:
    """A parser's message without line breaks and without the types that a value might also have had."""
    text = " ".join(str(error).split())
    text = re.sub(r"- Expected a path but \S+ either not accessible or invalid - ", "", text)
    text = re.sub(r"Does not validate against any of the Union subtypes.*?Errors: - (.*?) - Expected a .*", r"\1", text)
    unknown = r"Parser key \"([^\"]+)\": Problem with given class_path '([^']+)': Option '([^']+)' is not accepted"
    return re.sub(unknown, r"\1.\3 is no option of \2", text)
