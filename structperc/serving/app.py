"""The service as an application of FastAPI."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict

from structperc.errors import InputError
from structperc.light import Labeller
from structperc.serving.batcher import Batcher, TooMany
from structperc.serving.body_limit import BodyLimit
from structperc.serving.counters import Counters
from structperc.serving.limits import Limits
from structperc.serving.questions import Question, SentencesQuestion, TextQuestion, answers
from structperc.text import conll_tokens, rule_sentences, tokenized
from structperc.text.sentences import Split
from structperc.text.tokenizer import Cut
from structperc.version import __version__


class Text(BaseModel):
    """Running text, a document."""

    model_config = ConfigDict(extra="forbid", strict=True)
    text: str


class Sentences(BaseModel):
    """Sentences of a document: words, or {column: strings} for a tagger that reads more than words."""

    model_config = ConfigDict(extra="forbid", strict=True)
    sentences: list[list[str] | dict[str, list[str]]]


def application(
    tagger: Labeller,
    limits: Limits = Limits(),  # noqa: B008  # immutable
    tokenizer: Cut = conll_tokens,
    sentences: Split = rule_sentences,
) -> FastAPI:
    """Return an ASGI application that labels with a tagger.

    POST /annotate  {"text": ...}       -> {"spans": [{"start", "end", "type", "text", "confidence"}, ...]}
    POST /tag       {"sentences": ...}  -> {"labels": [[...], ...], "probabilities": [[...], ...]}
    GET  /health                        -> {"status", "version", "columns", "labels", "scheme"}
    GET  /metrics                       -> counters and times, as Prometheus reads them

    Confidences and probabilities are there where the tagger has them. Requests that wait together are labelled
    together. Mistakes of a client are answered by 422 and {"detail": one line}, bodies that are too large by 413, and
    by 503 what comes while as many wait as may. Raises InputError for limits below 1.

    Args:
        tagger: from `structperc.load`.
        limits: of bodies, waiting requests and batches.
        tokenizer: gives the offsets (start, end) of the tokens of a text.
        sentences: gives the boundaries of sentences among them.
    """
    limits.check()

    def ask(questions: Sequence[Question]) -> list[dict[str, Any] | InputError]:
        counters.labelled(len(questions))
        return answers(tagger, questions)

    batcher: Batcher[Question, dict[str, Any] | InputError] = Batcher(ask, limits.together, limits.waiting)
    counters = Counters(lambda: len(batcher))
    app = FastAPI(title="structperc", version=__version__, lifespan=partial(_answering, batcher))
    app.add_middleware(BodyLimit, most=limits.body)
    app.middleware("http")(partial(_counted, counters))
    app.exception_handler(RequestValidationError)(_not_valid)
    app.exception_handler(InputError)(_wrong)
    app.exception_handler(TooMany)(_busy)

    async def answered(question: Question) -> dict[str, Any]:
        found = await batcher.answer(question)
        if isinstance(found, InputError):
            raise found
        return found

    @app.post("/annotate")
    async def annotate(body: Text) -> dict[str, Any]:
        """Return the spans of a text."""
        tagger.check_words_alone()
        return await answered(TextQuestion(body.text, partial(tokenized, tokenizer=tokenizer, sentences=sentences)))

    @app.post("/tag")
    async def tag(body: Sentences) -> dict[str, Any]:
        """Return the labels of sentences."""
        return await answered(SentencesQuestion(body.sentences, ["word", *tagger.features.columns]))

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """Tell that the service answers, and what it labels."""
        own = {"labels": list(tagger.labels.names), "scheme": tagger.labels.scheme}
        return {"status": "ok", "version": __version__, "columns": tagger.features.columns, **own}

    @app.get("/metrics")
    async def metrics() -> Response:
        """Return counters and times."""
        return Response(counters.text(), media_type=CONTENT_TYPE_LATEST)

    return app


@asynccontextmanager
async def _answering(batcher: Batcher[Any, Any], app: FastAPI) -> AsyncIterator[None]:
    """Answer questions as long as the application runs."""
    task = asyncio.create_task(batcher.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _counted(counters: Counters, request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Count a request by its path; unknown paths count as one, since anybody may invent them."""
    begin = time.perf_counter()
    response = await answer(request)
    route = request.scope.get("route")
    counters.answered("other" if route is None else route.path, response.status_code, time.perf_counter() - begin)
    return response


async def _not_valid(request: Request, error: Exception) -> JSONResponse:
    """Tell in one line what a body lacks, or has wrong."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"detail": f"the body is no JSON ({first['ctx']['error']})"}, 422)
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    return JSONResponse({"detail": f"{where}: {first['msg']}" if where else first["msg"]}, 422)


async def _wrong(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 422)


async def _busy(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": "too many requests wait; come back later"}, 503, {"Retry-After": "1"})
