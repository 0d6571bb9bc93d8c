"""Limits of a service, and bodies of requests: read up to a limit, parsed as JSON and checked."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request

from structperc.errors import InputError
from structperc.predictor.limits import FORBIDDEN_FIELD, FORCED_FIELD, LIMITS

TEXT = '{"text": "..."}'
SENTENCES = '{"sentences": [["Anna", "left"], ...]}'


class Limits(NamedTuple):
    """Limits of a service; requests above them get an error.

    Args:
        body: Bytes of a request.
        waiting: Number of requests that wait for the tagger.
        together: Number of requests that are labelled in one batch.
        tokens: Tokens of a request.
        seconds: Maximum time for the body to arrive, and from then to the answer.

    Example:
        >>> limits = Limits(body=10_000, seconds=5)
        >>> limits.check()
        >>> limits.waiting
        256
    """

    body: int = 2**20
    waiting: int = 256
    together: int = 32
    tokens: int = 2**18
    seconds: float = 60.0

    def check(self) -> None:
        """Raise InputError for a limit below 1, or seconds that are not positive."""
        for name, value in self._asdict().items():
            if name == "seconds" and not value > 0:
                raise InputError(f"the limit seconds must be above 0, not {value:g}")
            if name != "seconds" and value < 1:
                raise InputError(f"the limit {name} must be at least 1, not {value}")


def invalid(detail: str) -> HTTPException:
    """Return the error of a request with an invalid body."""
    return HTTPException(422, detail)


def too_large(limit: int, unit: str) -> HTTPException:
    """Return the error of a request with more bytes or tokens than the limit."""
    headers = {"Connection": "close"} if unit == "bytes" else {}  # the rest of its body is not read
    return HTTPException(413, f"a request has at most {limit} {unit}; send smaller requests", headers)


def unavailable(detail: str, seconds: int = 1) -> HTTPException:
    """Return the error of a request that may be sent again after so many seconds."""
    return HTTPException(503, detail, {"Retry-After": str(seconds)})


async def text_of(request: Request, limits: Limits) -> tuple[str, dict[str, Any]]:
    """Return the text of a request, and its forced and forbidden spans. Raises HTTPException."""
    fields = await _fields(request, limits, "text", TEXT, (FORCED_FIELD, FORBIDDEN_FIELD))
    text = fields.pop("text")
    if not isinstance(text, str):
        raise invalid(f"text is {_kind(text)}; send a string: {TEXT}")
    _check_characters(text, "text")
    return text, fields


async def sentences_of(
    request: Request, limits: Limits
) -> tuple[list[list[str] | dict[str, list[str]]], dict[str, list[Any]]]:
    """Return the sentences of a request, words or {column: strings} each, and the limits of its predictions.

    Limits are allowed labels, forced and forbidden spans, a list or null for each sentence. Raises HTTPException.
    """
    fields = await _fields(request, limits, "sentences", SENTENCES, LIMITS)
    sentences = fields.pop("sentences")
    if not isinstance(sentences, list):
        raise invalid(f"sentences is {_kind(sentences)}; send a list of sentences: {SENTENCES}")
    for number, sentence in enumerate(sentences):
        where = f"sentences[{number}]"
        if isinstance(sentence, dict):
            for role, values in sentence.items():
                _check_characters(role, f"{where}: the name of a column")
                _check_strings(values, f"{where}.{role}")
        elif isinstance(sentence, list):
            _check_strings(sentence, where)
        else:
            raise invalid(f'{where} is {_kind(sentence)}; send a list of words, or {{"word": [...], "pos": [...]}}')
    for name, values in fields.items():
        if not isinstance(values, list) or len(values) != len(sentences):
            raise invalid(f"{name} must be a list with an item for each of the {len(sentences)} sentences, or null")
    return sentences, fields


def _check_strings(values: Any, where: str) -> None:
    if not isinstance(values, list):
        raise invalid(f"{where} is {_kind(values)}; send a list of strings")
    for place, value in enumerate(values):
        if not isinstance(value, str):
            raise invalid(f"{where}[{place}] is {_kind(value)}; send a string")
        if not value.isascii():
            _check_characters(value, f"{where}[{place}]")


def _check_characters(text: str, where: str) -> None:
    """Raise HTTPException for half a surrogate pair, which cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise invalid(f"{where}: character {error.start} is {half}, half of a pair; send whole characters") from None


async def _fields(request: Request, limits: Limits, name: str, example: str, further: Sequence[str]) -> dict[str, Any]:
    """Return the object of a request with the field `name`, and possibly further ones that are not null."""
    found = _parsed(await _read(request, limits), example)
    if not isinstance(found, dict):
        raise invalid(f"the body is {_kind(found)}; send an object: {example}")
    if unknown := [field for field in found if field not in (name, *further)]:
        raise invalid(f"unknown field {unknown[0][:40]!a}; send {example}")
    if name not in found:
        raise invalid(f"the field {name!r} is missing; send {example}")
    return {field: value for field, value in found.items() if field == name or value is not None}


async def _read(request: Request, limits: Limits) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limits.body:
        raise too_large(limits.body, "bytes")
    coding = request.headers.get("content-encoding", "identity")
    if coding != "identity":
        raise HTTPException(415, f"the body is compressed ({coding[:40]!a}); send it without content-encoding")
    body = bytearray()
    try:
        async with asyncio.timeout(limits.seconds):
            async for piece in request.stream():
                body += piece
                if len(body) > limits.body:
                    raise too_large(limits.body, "bytes")
    except TimeoutError:
        late = f"the body has not arrived within {limits.seconds:g} seconds; send it without pauses"
        raise HTTPException(408, late, {"Connection": "close"}) from None
    return bytes(body)


def _parsed(body: bytes, example: str) -> Any:
    send = f"send {example}"
    if not body.strip():
        raise invalid(f"the body is empty; {send}")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = f"byte {error.start} is 0x{body[error.start]:02x}"
        raise invalid(f"the body is not UTF-8 ({at}); {send}, encoded as UTF-8") from None
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_distinct)
    except RecursionError:
        raise invalid(f"the body is nested too deeply; {send}") from None
    except json.JSONDecodeError as error:
        place = f"{error.msg}, line {error.lineno}, column {error.colno}"
        raise invalid(f"the body is not JSON ({place}); {send}") from None
    except ValueError:  # an integer of thousands of digits
        raise invalid(f"the body has a number of too many digits; {send}") from None


def _no_constant(name: str) -> Any:
    raise invalid(f"the body is not JSON: {name} is not a JSON value; send strings")


def _distinct(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises HTTPException for a repeated name."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise invalid(f"the field {name[:40]!a} is given twice; send it once")
        found[name] = value
    return found


def _kind(value: Any) -> str:
    """Return the name of a JSON type, with its article."""
    kinds = {type(None): "null", bool: "true or false", str: "a string", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")
