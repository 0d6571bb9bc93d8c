"""The page about serving: its application, and the statuses in its table."""

import asyncio
import re
import threading

import pytest
from starlette.testclient import TestClient

from structperc.serving import Limits, application
from tests.docs.written import PAGES, blocks
from tests.serving.serving_models import tagger


def test_service_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tagger().save(tmp_path / "runs" / "words" / "1" / "model")
    (code,) = blocks("how_to/serve", "python")
    names = {}
    exec(code, names)
    with TestClient(names["app"]) as client:
        assert client.get("/health").json()["status"] == "ok"


def answered(path="/annotate", method="POST", content=b'{"text": "Anna"}', headers=None, limits=None, decided=None):
    """The answer of an application to a request, as the client gets it."""
    own = tagger()
    if decided is not None:
        own.predict = decided
    app = application(own, limits or Limits())
    with TestClient(app, raise_server_exceptions=False) as client:
        return client.request(method, path, content=content, headers=headers)


def slow_body():
    """The status that an application sends to who sends no more of a body."""
    sent = []

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/annotate", "headers": [], "query_string": b""}
    asyncio.run(application(tagger(), Limits(seconds=0.01))(scope, receive, send))
    return sent[0]["status"]


def no_answer():
    """That to who would have to wait for a tagger."""
    go = threading.Event()
    try:
        answer = answered(limits=Limits(seconds=0.01), decided=lambda *_: go.wait(10))
    finally:
        go.set()
    assert answer.headers["retry-after"].isdigit()
    return answer.status_code


def broken(*_):
    raise RuntimeError


PROVOKED = {
    200: lambda: answered().status_code,
    404: lambda: answered("/annotate/").status_code,
    405: lambda: answered(method="GET").status_code,
    408: slow_body,
    413: lambda: answered(limits=Limits(body=4)).status_code,
    415: lambda: answered(headers={"content-encoding": "gzip"}).status_code,
    422: lambda: answered(content=b"{").status_code,
    500: lambda: answered(decided=broken).status_code,
    503: no_answer,
}


def test_table_of_statuses():
    numbers = re.findall(r"^\| (\d+) \|", PAGES["how_to/serve"], re.MULTILINE)
    assert list(map(int, numbers)) == list(PROVOKED)


@pytest.mark.parametrize("status", PROVOKED)
def test_a_status_of_the_table_is_answered(status):
    assert PROVOKED[status]() == status
