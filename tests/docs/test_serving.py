"""The application of the page about serving."""

from serving_models import tagger
from starlette.testclient import TestClient
from written import blocks


def test_it_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tagger().save(tmp_path / "runs" / "words" / "1" / "model")
    (code,) = blocks("serving", "python")
    names = {}
    exec(code, names)
    with TestClient(names["app"]) as client:
        assert client.get("/health").json()["status"] == "ok"
