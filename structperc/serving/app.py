"""The service as a Starlette application, with metrics for Prometheus."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from structperc.errors import InputError
from structperc.predictor import Predictor
from structperc.serving.jobs import Job, SentencesJob, TextJob, label_in_chunks, label_jobs
from structperc.serving.requests import SENTENCES, TEXT, Limits, sentences_of, text_of, unavailable
from structperc.serving.scheduler import Scheduler
from structperc.text import tokenize
from structperc.text.tokenizer import SentenceSplitter, Tokenizer, conll_tokens, rule_sentences
from structperc.version import __version__

BATCHES = (1, 2, 4, 8, 16, 32, 64)
SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10)


class ServiceMetrics:
    """Counters and histograms of one service.

    Args:
        waiting: returns the number of waiting requests.
    """

    def __init__(self, waiting: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        own = {"namespace": "structperc", "registry": self._registry}
        self._requests = Counter("requests", "Answered requests.", ["path", "status"], **own)
        self._seconds = Histogram("request_seconds", "Duration of requests.", ["path"], buckets=SECONDS, **own)
        self._batch_sizes = Histogram("batch_requests", "Requests per batch.", buckets=BATCHES, **own)
        Gauge("waiting_requests", "Waiting requests.", **own).set_function(waiting)

    def record_response(self, path: str, status: int, seconds: float) -> None:
        """Record the response to a request."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def record_batch(self, size: int) -> None:
        """Record the size of a batch."""
        self._batch_sizes.observe(size)

    def text(self) -> bytes:
        """Return all counters in Prometheus' text format."""
        return generate_latest(self._registry)


PATHS = {"/annotate": f"POST {TEXT}", "/tag": f"POST {SENTENCES}", "/health": "GET", "/metrics": "GET"}
CLIENT_CLOSED_REQUEST = 499  # only the metrics see this status


def application(
    tagger: Predictor,
    limits: Limits = Limits(),  # noqa: B008  # immutable
    tokenizer: Tokenizer = conll_tokens,
    sentences: SentenceSplitter = rule_sentences,
) -> Starlette:
    """Return an ASGI application that labels with a tagger.

    Requests and answers::

        POST /annotate  {"text": ...}       -> {"spans": [{"start", "end", "type", "text", "confidence"}, ...]}
        POST /tag       {"sentences": ...}  -> {"labels": [[...], ...], "probabilities": [[...], ...]}
        GET  /health                        -> {"status", "version", "columns", "labels", "scheme"}
        GET  /metrics                       -> counters and times in the text format of Prometheus

    Both may have the fields "forced" and "forbidden", `/tag` also "allowed", see `predictor.limits`: spans in
    characters of the text, or a list for each sentence, in tokens. Taggers with probabilities add confidences and
    probabilities. Short requests that wait together are labelled in one batch; long ones are labelled in chunks that
    take turns. Errors have a status and {"detail": one line}: 422 for invalid bodies, 413 for bodies that are too
    large, 503 for requests that cannot be answered in time.

    Args:
        tagger: Tagger loaded by `structperc.load`.
        limits: Maximum body size, tokens, seconds, waiting requests and batch size.
        tokenizer: Returns the offsets (start, end) of the tokens of a text.
        sentences: Returns the boundaries of sentences.

    Raises:
        InputError: A limit is below 1.

    Example:
        >>> from starlette.testclient import TestClient
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger("averaged_perceptron", random_state=1).fit(X, y).tagger_
        >>> with TestClient(application(tagger)) as client:
        ...     client.post("/tag", json={"sentences": [["Anna", "left"]]}).json()
        {'labels': [['B-PER', 'O']]}
    """
    limits.check()
    if (evaluate := getattr(tagger, "eval", None)) is not None:  # a module of PyTorch, shared by two threads
        evaluate()
    cut = partial(tokenize, tokenizer=tokenizer, sentences=sentences)

    def label_batch(jobs: Sequence[Job]) -> list[str | Exception]:
        counters.record_batch(len(jobs))
        return label_jobs(tagger, jobs, limits.tokens)

    scheduler = Scheduler(label_batch, lambda job: label_in_chunks(tagger, job, limits.tokens), limits)
    counters = ServiceMetrics(lambda: len(scheduler))

    async def annotate(request: Request) -> Response:
        tagger.check_reads_words_only()
        text, own = await text_of(request, limits)
        return await _answered(request, TextJob(text, cut, own))

    async def tag(request: Request) -> Response:
        columns = list(dict.fromkeys(["word", *tagger.columns]))
        rows, own = await sentences_of(request, limits)
        return await _answered(request, SentencesJob(rows, columns, own))

    async def _answered(request: Request, job: Job) -> Response:
        return Response(await _unless_disconnected(request, scheduler.answer(job)), media_type="application/json")

    async def health(request: Request) -> Response:
        own = {"labels": list(tagger.labels.names), "scheme": tagger.labels.scheme}
        return JSONResponse({"status": "ok", "version": __version__, "columns": tagger.columns, **own})

    async def metrics(request: Request) -> Response:
        return Response(counters.text(), media_type=CONTENT_TYPE_LATEST)

    endpoints = {"/annotate": annotate, "/tag": tag, "/health": health, "/metrics": metrics}
    routes = [Route(path, endpoints[path], methods=[form.split()[0]]) for path, form in PATHS.items()]
    handlers = {HTTPException: _http_error, InputError: _input_error, ClientDisconnect: _disconnected}
    app = Starlette(routes=routes, exception_handlers={**handlers, Exception: _unexpected_error})
    app.router.redirect_slashes = False
    app.state.requests = Requests(scheduler)
    app.add_middleware(_Middleware, counters=counters, requests=app.state.requests)
    return app


class Requests:
    """The open requests of an application; they get 503 when it shuts down."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.tasks: set[asyncio.Task[Any]] = set()
        self.shutting_down, self.rejected = False, 0

    @property
    def busy(self) -> bool:
        """True if a thread is labelling, even without a waiting client."""
        return self._scheduler.busy

    def shut_down(self) -> None:
        """Answer all open and further requests by 503."""
        self.shutting_down = True
        for task in self.tasks:
            task.cancel()


class _Middleware:
    """Outermost middleware: measures each request, and rejects it when the service shuts down."""

    def __init__(self, app: ASGIApp, counters: ServiceMetrics, requests: Requests) -> None:
        self._app, self._counters, self._requests = app, counters, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begin, status, task = time.perf_counter(), 0, asyncio.current_task()
        assert task is not None

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._requests.tasks.add(task)
        try:
            if self._requests.shutting_down:
                await self._reject(scope, receive, noted)
            else:
                await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if not self._requests.shutting_down:
                raise
            task.uncancel()
            if not status:
                await self._reject(scope, receive, noted)
        finally:
            self._requests.tasks.discard(task)
            path = scope["path"] if scope["path"] in PATHS else "other"  # clients can send any path
            self._counters.record_response(path, status or 500, time.perf_counter() - begin)

    async def _reject(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._requests.rejected += 1
        await _error_response(unavailable("the service is shutting down; try again later", seconds=5))(
            scope, receive, send
        )


async def _unless_disconnected(request: Request, answer: Coroutine[Any, Any, str]) -> str:
    """Return the answer to a request. Cancels it and raises ClientDisconnect if the client disconnects before."""
    work, gone = asyncio.ensure_future(answer), asyncio.ensure_future(_disconnection(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
        return work.result()
    finally:
        work.cancel()
        gone.cancel()


async def _disconnection(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _error_response(error: HTTPException) -> JSONResponse:
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    """Return an error response; errors of the router list the available paths, or the method of the path."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 405:
        error.detail = f"{request.method} {path} is not supported; send {PATHS[path]}"
    elif error.status_code == 404:
        known = ", ".join(f"{form.split()[0]} {one}" for one, form in PATHS.items())
        error.detail = f"unknown path {path[:80]!a}; available paths: {known}"
    return _error_response(error)


async def _input_error(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 422)


async def _disconnected(request: Request, error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED_REQUEST)


async def _unexpected_error(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": "unexpected error; see the log of the service"}, 500)
