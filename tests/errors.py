"""What calls say that must fail."""

from collections.abc import Callable
from typing import Any

import pytest

from structperc.errors import InputError


def error_message(call: Callable[..., Any], *args: Any, **options: Any) -> str:
    """The message of the InputError that a call must raise: one line."""
    with pytest.raises(InputError) as error:
        call(*args, **options)
    assert "\n" not in str(error.value)
    return str(error.value)
