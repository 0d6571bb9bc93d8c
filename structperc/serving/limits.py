"""Limits of a service, and how it refuses what is above them."""

from collections.abc import Mapping
from typing import NamedTuple

from structperc.errors import InputError


class Limits(NamedTuple):
    """Limits of a service; what is above them is refused, and the client told to change it or to come back.

    Args:
        body: bytes of a request.
        waiting: requests that wait for the tagger.
        together: requests that are labelled together.
        tokens: tokens of a request.
        seconds: for the body of a request to arrive, and from then on to its answer.
    """

    body: int = 2**20
    waiting: int = 256
    together: int = 32
    tokens: int = 2**18
    seconds: float = 60.0

    def check(self) -> None:
        """Raise InputError for a limit below 1, of seconds for one that is not above 0."""
        for name, value in self._asdict().items():
            if name == "seconds" and not value > 0:
                raise InputError(f"the limit seconds must be above 0, not {value:g}")
            if name != "seconds" and value < 1:
                raise InputError(f"the limit {name} must be at least 1, not {value}")


class Refusal(Exception):  # noqa: N818  # an answer, not a fault of the program
    """A request is answered by a status that is no success.

    Args:
        status: of HTTP.
        detail: one line that names what to change.
        headers: those of the answer.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def invalid(detail: str) -> Refusal:
    """Return the refusal of a request whose body does not hold what it should."""
    return Refusal(422, detail)


def too_large(most: int, unit: str) -> Refusal:
    """Return the refusal of a request with more than so many bytes or tokens."""
    headers = {"Connection": "close"} if unit == "bytes" else {}  # the rest of its body is not read
    return Refusal(413, f"a request has at most {most} {unit}; send less at a time", headers)


def unavailable(detail: str, seconds: int = 1) -> Refusal:
    """Return the refusal of a request that may be sent again after so many seconds."""
    return Refusal(503, detail, {"Retry-After": str(seconds)})
