"""What a service takes at most."""

from typing import NamedTuple

from structperc.errors import InputError


class Limits(NamedTuple):
    """Limits of a service; what is above them is refused, and the client told to change it or to come back.

    Args:
        body: bytes of a request.
        waiting: requests that wait for the tagger.
        together: requests that are labelled together.
    """

    body: int = 2**20
    waiting: int = 256
    together: int = 32

    def check(self) -> None:
        """Raise InputError for a limit below 1."""
        for name, value in self._asdict().items():
            if value < 1:
                raise InputError(f"the limit {name} must be at least 1, not {value}")
