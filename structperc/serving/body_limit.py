"""Bodies that are too large are refused, before they are read where their length is told."""

from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """An application in front of another one, which gets no body above a number of bytes; the answer is 413.

    Args:
        app: the application behind.
        most: bytes.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        """Answer a request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if told.isdigit() and int(told) > self._most:
            return await self._refusal()(scope, receive, send)
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":  # the client has gone
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._most:
                return await self._refusal()(scope, receive, send)
        return await self._app(scope, _Body(bytes(body), receive), send)

    def _refusal(self) -> JSONResponse:
        detail = f"a request has at most {self._most} bytes; send less at a time"
        return JSONResponse({"detail": detail}, 413, {"Connection": "close"})


class _Body:
    """A body that was read, and whatever follows it."""

    def __init__(self, body: bytes, after: Receive) -> None:
        self._body: bytes | None = body
        self._after = after

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._after()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}
