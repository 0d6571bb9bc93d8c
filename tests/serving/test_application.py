"""What the service answers is what the tagger says; mistakes of a client are answered in one line."""

import json

import pytest
from serving_models import TEXTS, tagger
from starlette.testclient import TestClient

from structperc.criteria import Perceptron
from structperc.errors import InputError
from structperc.serving import Limits, application
from structperc.serving.questions import SentencesQuestion, TextQuestion, answers
from structperc.text import line_sentences, tokenized


@pytest.fixture(scope="module")
def model():
    return tagger()


@pytest.fixture
def client(model):
    with TestClient(application(model)) as client:
        yield client


def test_spans_are_those_of_annotate(model, client):
    for text in TEXTS:
        spans = client.post("/annotate", json={"text": text}).json()["spans"]
        expected = model.annotate(text)
        assert [(one["start"], one["end"], one["type"]) for one in spans] == [one[:3] for one in expected]
        assert [one["confidence"] for one in spans] == pytest.approx([one.confidence for one in expected], abs=1e-6)
        assert [one["text"] for one in spans] == [text[one.start : one.end] for one in expected]
    assert client.post("/annotate", json={"text": TEXTS[0]}).json()["spans"]


def test_texts_that_are_labelled_together_do_not_see_each_other(model):
    questions = [TextQuestion(text, tokenized) for text in TEXTS]
    alone = [answers(model, [TextQuestion(text, tokenized)])[0] for text in TEXTS]
    for one, other in zip(answers(model, questions), alone, strict=True):
        assert [span | {"confidence": 0} for span in one["spans"]] == [
            span | {"confidence": 0} for span in other["spans"]
        ]
        sure = [span["confidence"] for span in other["spans"]]
        assert [span["confidence"] for span in one["spans"]] == pytest.approx(sure, abs=1e-6)


def test_labels_are_those_of_tag(model, client):
    sentences = [["Anna", "met", "Bo"], [], ["Bo"]]
    answer = client.post("/tag", json={"sentences": sentences}).json()
    assert answer["labels"] == model.tag(sentences, [0, 0, 0])
    assert [len(one) for one in answer["probabilities"]] == [3, 0, 1]
    decided = model.decided(model.read([one for one in sentences if one], [0, 0]), True)
    assert [p for one in answer["probabilities"] for p in one] == pytest.approx(decided.tokens.tolist(), abs=1e-6)
    assert client.post("/tag", json={"sentences": []}).json()["labels"] == []


def test_further_columns():
    reads_more = tagger(Perceptron, ("w[0]", "pos[0]"))
    with TestClient(application(reads_more)) as client:
        sentence = {"word": ["Anna", "met"], "pos": ["N", "V"], "unread": []}
        answer = client.post("/tag", json={"sentences": [sentence]}).json()
        assert answer == {"labels": reads_more.tag([{"word": ["Anna", "met"], "pos": ["N", "V"]}])}
        assert client.post("/annotate", json={"text": "Anna"}).json()["detail"].startswith("this model reads pos")


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/annotate", {"texts": ["a"]}, "text: Field required"),
        ("/annotate", {"text": 3}, "text: Input should be a valid string"),
        ("/annotate", {"text": "a", "language": "en"}, "language: Extra inputs are not permitted"),
        ("/annotate", "{", "the body is no JSON (Expecting property name enclosed in double quotes)"),
        ("/tag", {"sentences": "Anna met"}, "sentences: Input should be a valid list"),
        ("/tag", {"sentences": [["Anna"], ["a", ""]]}, "sentences[1]: word 1 is empty; leave it out"),
        ("/tag", {"sentences": [{"pos": ["N"]}]}, "sentences[0]: there is no 'word', which this model reads"),
    ],
)
def test_mistakes_are_told_in_one_line(client, path, body, said):
    content = body if isinstance(body, str) else json.dumps(body)
    answer = client.post(path, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()) == (422, {"detail": said})


def test_columns_of_different_lengths():
    question = SentencesQuestion([{"word": ["a", "b"], "pos": ["N"]}], ["word", "pos"])
    with pytest.raises(InputError, match=r"sentences\[0\]: 'pos' has 1 strings for 2 words"):
        question.sentences()


def test_one_wrong_question_among_others_is_answered_alone(model):
    good, bad = SentencesQuestion([["Anna"]], ["word"]), SentencesQuestion([["Anna", ""]], ["word"])
    first, wrong, last = answers(model, [good, bad, TextQuestion("Anna", tokenized)])
    assert first["labels"] == model.tag([["Anna"]])
    assert isinstance(wrong, InputError)
    assert [span["text"] for span in last["spans"]] == [span.type and "Anna" for span in model.annotate("Anna")]


def test_bodies_that_are_too_large(model):
    with TestClient(application(model, Limits(body=40))) as client:
        assert client.post("/annotate", json={"text": "Anna met Bo"}).status_code == 200
        told = client.post("/annotate", json={"text": "x" * 40})
        chunks = (piece for piece in [b'{"text": "', b"x" * 40, b'"}'])
        untold = client.post("/annotate", content=chunks)
    for answer in (told, untold):
        assert answer.status_code == 413
        assert answer.json()["detail"] == "a request has at most 40 bytes; send less at a time"


def test_limits_below_one(model):
    with pytest.raises(InputError, match="the limit waiting must be at least 1, not 0"):
        application(model, Limits(waiting=0))


def test_what_the_service_says_of_itself(client):
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


def test_sentences_of_a_text_are_cut_as_asked():
    alone = tagger(unit="sentence")
    with TestClient(application(alone, sentences=line_sentences)) as client:
        found = client.post("/annotate", json={"text": TEXTS[0]}).json()["spans"]
    assert [one["start"] for one in found] == [one.start for one in alone.annotate(TEXTS[0], sentences=line_sentences)]
