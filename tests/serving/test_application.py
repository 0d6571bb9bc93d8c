"""What the service answers is what the tagger says; mistakes of a client are answered in one line."""

import asyncio
import json
import threading

import pytest
from starlette.testclient import TestClient

from structperc.criteria import CRFLoss, PerceptronLoss
from structperc.errors import InputError
from structperc.serving import Limits, application
from structperc.serving import jobs as module
from structperc.serving.jobs import CHUNK_SIZE, SentencesJob, TextJob, label_in_chunks
from structperc.text import tokenize
from structperc.text.tokenizer import line_sentences
from tests.serving.serving_models import TEXTS, conll_tokens_of, tagger


def label_jobs(tagger, jobs, *limits):
    """What `jobs.label_jobs` gives, read."""
    found = module.label_jobs(tagger, jobs, *limits)
    return [json.loads(one) if isinstance(one, str) else one for one in found]


@pytest.fixture(scope="module")
def model():
    return tagger()


@pytest.fixture
def client(model):
    with TestClient(application(model)) as client:
        yield client


def test_spans_equal_those_of_annotate(model, client):
    for text in TEXTS:
        spans = client.post("/annotate", json={"text": text}).json()["spans"]
        expected = model.annotate(text)
        assert [(one["start"], one["end"], one["type"]) for one in spans] == [one[:3] for one in expected]
        assert [one["confidence"] for one in spans] == pytest.approx([one.confidence for one in expected], abs=1e-6)
        assert [one["text"] for one in spans] == [text[one.start : one.end] for one in expected]
    assert client.post("/annotate", json={"text": TEXTS[0]}).json()["spans"]


def test_independent_texts(model):
    together = label_jobs(model, [TextJob(text, tokenize) for text in TEXTS])
    for one, text in zip(together, TEXTS, strict=True):
        alone = label_jobs(model, [TextJob(text, tokenize)])[0]["spans"]
        assert one["spans"] == [span | {"confidence": pytest.approx(span["confidence"], abs=1e-6)} for span in alone]


def test_labels_equal_those_of_tag(model, client):
    sentences = [["Anna", "met", "Bo"], [], ["Bo"]]
    answer = client.post("/tag", json={"sentences": sentences}).json()
    assert answer["labels"] == model.tag(sentences, [0, 0, 0])
    assert [len(one) for one in answer["probabilities"]] == [3, 0, 1]
    decided = model.predict(model.read([one for one in sentences if one], [0, 0]), True)
    assert [p for one in answer["probabilities"] for p in one] == pytest.approx(decided.tokens.tolist(), abs=1e-6)
    assert client.post("/tag", json={"sentences": []}).json() == {"labels": [], "probabilities": []}


def test_further_columns():
    reads_more = tagger(PerceptronLoss, ("w[0]", "pos[0]"))
    with TestClient(application(reads_more)) as client:
        sentence = {"word": ["Anna", "met"], "pos": ["N", "V"], "unread": []}
        answer = client.post("/tag", json={"sentences": [sentence]}).json()
        assert answer == {"labels": reads_more.tag([{"word": ["Anna", "met"], "pos": ["N", "V"]}])}
        detail = client.post("/annotate", json={"text": "Anna"}).json()["detail"]
        assert detail.startswith("this model requires the column pos")


def test_limits_of_requests(model, client):
    """As `tag` and JSON lines have them; an error is that of one request among others."""
    best = client.post("/annotate", json={"text": "Anna met Bo."}).json()["spans"][0]
    span = [best["start"], best["end"], best["type"]]
    found = client.post("/annotate", json={"text": "Anna met Bo.", "forbidden": [span], "forced": [[9, 11, "LOC"]]})
    assert [[one[name] for name in ("start", "end", "type")] for one in found.json()["spans"]][-1] == [9, 11, "LOC"]
    assert span not in [[one[name] for name in ("start", "end", "type")] for one in found.json()["spans"]]
    words, allowed, forbidden = ["Anna", "met"], [["B-PER", "I-PER"], None], [[0, 1, "PER"]]
    limits = {"allowed": [allowed, None], "forbidden": [forbidden, None], "forced": [None, [[0, 1, "LOC"]]]}
    answer = client.post("/tag", json={"sentences": [words, ["Bo"]], **limits}).json()
    assert answer["labels"] == [*model.tag([words], None, [allowed], [[("PER", 0, 1)]]), ["B-LOC"]]
    jobs = [TextJob("Bo", tokenize), SentencesJob([["Bo"]], ["word"], {"allowed": [[[]]]}), TextJob("Anna", tokenize)]
    first, wrong, last = label_jobs(model, jobs)
    assert "'Bo'" in str(wrong)
    assert [first, last] == label_jobs(model, [jobs[0], jobs[2]])


def test_limits_of_long_requests(model, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_SIZE", 20)
    sentences = [["Anna", "met", "Bo"]] * 9
    own = tagger(unit="sentence")
    job = SentencesJob(sentences, ["word"], {"forbidden": [None] * 8 + [[[0, 1, "PER"]]]})
    *_, answer = label_in_chunks(own, job)
    assert json.loads(answer)["labels"] == own.tag(sentences, None, None, [None] * 8 + [[("PER", 0, 1)]])
    with pytest.raises(InputError, match="sentence 9"):
        list(label_in_chunks(own, SentencesJob(sentences, ["word"], {"allowed": [None] * 8 + [[[], None, None]]})))


UNREADABLE = [  # path, body, what the message must contain
    ("/annotate", {"texts": ["a"]}, ["'texts'", '{"text": "..."}']),
    ("/annotate", {}, ["'text'", '{"text": "..."}']),
    ("/annotate", {"text": 3}, ["text is a number", '{"text": "..."}']),
    ("/annotate", {"text": "a", "language": "en"}, ["'language'"]),
    ("/annotate", ["a"], ["a list", '{"text": "..."}']),
    ("/annotate", "", ["empty", '{"text": "..."}']),
    ("/annotate", "{", ["not JSON", "line 1, column 2", '{"text": "..."}']),
    ("/annotate", '{"text": NaN}', ["NaN"]),
    ("/annotate", '{"text": "a", "text": "b"}', ["'text'", "twice"]),
    ("/annotate", "[" * 100_000, ["nested too deeply"]),
    ("/annotate", '{"text": ' + "9" * 5000 + "}", ["digits"]),
    ("/annotate", '{"text": "Jürgen"}'.encode("latin-1"), ["not UTF-8", "byte 11 is 0xfc"]),
    ("/annotate", b'{"text": "\xed\xa0\xbd"}', ["not UTF-8", "byte 10"]),
    ("/annotate", r'{"text": "Mr. \ud83d left"}', ["text", "character 4", r"\ud83d"]),
    ("/annotate", r'{"\ud83d": "a"}', [r"\ud83d"]),
    ("/tag", r'{"sentences": [["a", "\udfff"]]}', ["sentences[0][1]", r"\udfff"]),
    ("/tag", r'{"sentences": [{"word": ["a"], "\udfff": ["b"]}]}', ["sentences[0]", r"\udfff"]),
    ("/annotate", {"text": "Anna", "forced": [[0, 2, "PER"]]}, ["forced"]),
    ("/tag", {"sentences": [["Anna"], ["Bo"]], "forced": [None, [["PER", 0, 1]]]}, ["sentences[1]", "forced[0]"]),
    ("/annotate", {"text": "Anna", "allowed": [["O"]]}, ["'allowed'"]),
    ("/tag", {"sentences": [["a"]], "allowed": [["O"]]}, ["sentences[0]", "allowed[0]"]),
    ("/tag", {"sentences": [["a"]], "forbidden": [[[0, 2, "PER"]]]}, ["sentences[0]", "forbidden"]),
    ("/tag", {"sentences": [["a"]], "forbidden": [[[0, 1, "X"]]]}, ["'X'"]),
    ("/tag", {"sentences": "Anna met"}, ["sentences is a string", '{"sentences":']),
    ("/tag", {"sentences": ["Anna met"]}, ["sentences[0] is a string"]),
    ("/tag", {"sentences": [["Anna"], ["met", 3]]}, ["sentences[1][1] is a number"]),
    ("/tag", {"sentences": [{"word": "Anna"}]}, ["sentences[0].word is a string"]),
    ("/tag", {"sentences": [["Anna"], ["a", ""]]}, ["sentences[1]", "word 1 is empty"]),
    ("/tag", {"sentences": [{"pos": ["N"]}]}, ["sentences[0]", "'word'"]),
]


@pytest.mark.parametrize(("path", "body", "facts"), UNREADABLE)
def test_invalid_requests(client, path, body, facts):
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    answer = client.post(path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert "\n" not in detail
    assert [fact for fact in facts if fact not in detail] == []


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/json"])
def test_content_type_is_ignored(client, kind):
    headers = {} if kind is None else {"content-type": kind}
    for content in (b'{"text": "Anna"}', b'\xef\xbb\xbf{"text": "Anna"}'):
        assert client.post("/annotate", content=content, headers=headers).status_code == 200
    pair = client.post("/annotate", content=rb'{"text": "\ud83d\ude00 Anna"}', headers=headers)
    assert [span["text"] for span in pair.json()["spans"]][-1:] == ["Anna"]


def test_columns_of_different_lengths():
    job = SentencesJob([{"word": ["a", "b"], "pos": ["N"]}], ["word", "pos"])
    with pytest.raises(InputError, match=r"sentences\[0\]: 'pos' .*1 .*2 words"):
        job.sentences(tagger().labels)


def test_one_invalid_request_among_others(model):
    good, bad = SentencesJob([["Anna"]], ["word"]), SentencesJob([["Anna", ""]], ["word"])
    first, wrong, last = label_jobs(model, [good, bad, TextJob("Anna", tokenize)])
    assert first["labels"] == model.tag([["Anna"]])
    assert isinstance(wrong, InputError)
    assert [span["text"] for span in last["spans"]] == [span.type and "Anna" for span in model.annotate("Anna")]


def test_large_bodies(model):
    with TestClient(application(model, Limits(body=40))) as client:
        assert client.post("/annotate", json={"text": "Anna met Bo"}).status_code == 200
        told = client.post("/annotate", json={"text": "x" * 40})
        chunks = (piece for piece in [b'{"text": "', b"x" * 40, b'"}'])
        untold = client.post("/annotate", content=chunks)
    for answer in (told, untold):
        assert answer.status_code == 413
        assert "40 bytes" in answer.json()["detail"]


@pytest.mark.parametrize("size", [10, 10 * CHUNK_SIZE], ids=["short", "long"])
def test_requests_of_too_many_tokens(model, size):
    with TestClient(application(model, Limits(tokens=4))) as client:
        assert client.post("/annotate", json={"text": "x" * size + " y z ."}).status_code == 200
        text = client.post("/annotate", json={"text": "x" * size + " y z v w"})
        words = client.post("/tag", json={"sentences": [["x" * size, "y"], ["z", "v", "w"]]})
    for answer in (text, words):
        assert answer.status_code == 413
        assert "4 tokens" in answer.json()["detail"]


@pytest.mark.parametrize("unit", ["sentence", "document"])
@pytest.mark.parametrize("criterion", [CRFLoss, PerceptronLoss])
def test_long_requests(unit, criterion, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_SIZE", 40)
    own = tagger(criterion, unit=unit)
    words = [conll_tokens_of(text) for text in TEXTS] * 20
    for job in (TextJob(" ".join(TEXTS) * 20, tokenize), SentencesJob(words, ["word"])):
        *steps, answer = label_in_chunks(own, job)
        assert steps == [None] * len(steps)
        assert len(steps) == 1 if unit == "document" else len(steps) > 10
        assert json.loads(answer) == label_jobs(own, [job, job])[0]  # in one call


def test_evaluation_mode(model):
    model.train()
    application(model)
    assert not any(part.training for part in model.modules())


def test_corpus_level_features(model, monkeypatch):
    monkeypatch.setattr(type(model.features), "extent", "corpus")
    corpora, predict = [], model.predict
    monkeypatch.setattr(model, "predict", lambda corpus, *own: corpora.append(corpus) or predict(corpus, *own))
    found = label_jobs(model, [TextJob(text, tokenize) for text in TEXTS])
    assert len(found) == len(corpora) == len(TEXTS)


def test_limits_below_one(model):
    with pytest.raises(InputError, match=r"waiting .*0"):
        application(model, Limits(waiting=0))


def test_description_of_the_service(client):
    health = client.get("/health").json()
    assert (health["status"], health["columns"], health["scheme"]) == ("ok", ["word"], "IOB2")
    assert set(health["labels"]) == {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"}
    for text in ("Anna", "Bo"):
        client.post("/annotate", json={"text": text})
    client.post("/annotate", json={})
    for path in ("/a", "/b"):
        assert client.get(path).status_code == 404
    lines = client.get("/metrics").text.splitlines()
    assert 'structperc_requests_total{path="/annotate",status="200"} 2.0' in lines
    assert 'structperc_requests_total{path="/annotate",status="422"} 1.0' in lines
    assert 'structperc_requests_total{path="other",status="404"} 2.0' in lines
    assert "structperc_batch_requests_count 2.0" in lines
    assert "structperc_waiting_requests 0.0" in lines


def test_sentence_splitting():
    alone = tagger(unit="sentence")
    with TestClient(application(alone, sentences=line_sentences)) as client:
        found = client.post("/annotate", json={"text": TEXTS[0]}).json()["spans"]
    assert [one["start"] for one in found] == [one.start for one in alone.annotate(TEXTS[0], sentences=line_sentences)]


# -- requests that are not answered ------------------------------------------------------------------------------


class Blocked:
    """What a tagger decides, once `go` is set."""

    def __init__(self):
        self.go = threading.Event()

    def __call__(self, corpus, confident):
        assert self.go.wait(10)
        raise RuntimeError("nobody waits for this")


@pytest.fixture
def blocked(monkeypatch):
    own = tagger()
    monkeypatch.setattr(own, "predict", decided := Blocked())
    yield application(own)
    decided.go.set()


async def sent_to(app, *messages, path="/annotate"):
    """Ask for something; the client sends these messages and then none. -> the messages that it gets."""
    given, got = iter(messages), []

    async def receive():
        if (message := next(given, None)) is None:
            await asyncio.sleep(60)
        return message

    async def send(message):
        got.append(message)

    await app({"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}, receive, send)
    return got


BODY = {"type": "http.request", "body": b'{"text": "Anna"}', "more_body": False}
LONG = {"type": "http.request", "body": json.dumps({"text": "Anna left. " * CHUNK_SIZE}).encode(), "more_body": False}


def test_open_requests_are_refused_at_the_end(blocked):
    async def scene():
        slow = {"type": "http.request", "body": b"{", "more_body": True}
        tasks = [asyncio.create_task(sent_to(blocked, one)) for one in (BODY, LONG, LONG, slow)]
        await asyncio.sleep(0.1)
        blocked.state.requests.shut_down()
        return [*await asyncio.gather(*tasks), await sent_to(blocked, BODY)]

    for start, body in asyncio.run(scene()):
        assert start["status"] == 503
        assert b"retry-after" in dict(start["headers"])
        assert set(json.loads(body["body"])) == {"detail"}
    assert blocked.state.requests.rejected == 5
    assert blocked.state.requests.busy


@pytest.mark.parametrize("body", [BODY, LONG], ids=["short", "long"])
def test_closed_connection(blocked, body):
    async def scene():
        await sent_to(blocked, body, {"type": "http.disconnect"})
        return await sent_to(blocked, {"type": "http.disconnect"}), blocked.state.requests

    _, requests = asyncio.run(scene())
    assert not requests.tasks
    counters = TestClient(blocked).get("/metrics").text.splitlines()
    assert 'structperc_requests_total{path="/annotate",status="499"} 2.0' in counters
