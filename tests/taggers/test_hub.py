"""Models as repositories of the hub, here a server on this machine: one commit of three files, or one line."""

import base64
import http.server
import json
import threading
from functools import partial
from shutil import copytree
from typing import ClassVar

import pytest
from huggingface_hub import HfApi, ModelCard

from structperc.chain import KBest
from structperc.criteria import PerceptronLoss
from structperc.models import hub as publishing
from structperc.models.hub import push_folder
from structperc.taggers import Tagger
from tests.errors import error_message
from tests.tiny import Sentences, make_tagger, sentences

FILES = {"README.md", "model.json", "model.safetensors"}


class Hub(http.server.BaseHTTPRequestHandler):
    """Takes commits of small files; `refused` has the status of the paths that it refuses."""

    asked: ClassVar[list[tuple[str, dict]]] = []
    commits: ClassVar[list[dict[str, bytes]]] = []
    tokens: ClassVar[list[str | None]] = []
    places: ClassVar[list[str]] = []  # of commits
    refused: ClassVar[dict[str, int]] = {}

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        what = next(name for name in ("create", "validate-yaml", "preupload", "commit") if f"/{name}" in self.path)
        if what in self.refused:
            return self.answer(self.refused[what], {"error": "not\nfor you", "url": "https://huggingface.co/me/x"})
        self.tokens.append(self.headers["Authorization"])
        if what == "commit":
            self.places.append(self.path)
            lines = [json.loads(line) for line in body.splitlines()]
            files = [line["value"] for line in lines if line["key"] == "file"]
            self.commits.append({file["path"]: base64.b64decode(file["content"]) for file in files})
            found = {"commitUrl": "https://huggingface.co/me/x/commit/1", "commitOid": "1" * 40}
            return self.answer(200, {**found, "pullRequestUrl": "https://huggingface.co/me/x/discussions/1"})
        content = json.loads(body)
        self.asked.append((what, content))
        if what == "create":
            return self.answer(200, {"url": f"https://huggingface.co/{content['organization']}/{content['name']}"})
        names = [file["path"] for file in content.get("files", [])]
        return self.answer(
            200, {"files": [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]}
        )

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch):
    for name, empty in (("asked", []), ("commits", []), ("places", []), ("tokens", []), ("refused", {})):
        monkeypatch.setattr(Hub, name, empty)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setattr(
            publishing, "HfApi", partial(HfApi, endpoint=f"http://127.0.0.1:{server.server_port}"), raising=True
        )
        yield Hub
        server.shutdown()


@pytest.fixture(scope="module")
def saved_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    make_tagger(Sentences(sentences(8)), PerceptronLoss(), KBest(1)).save(folder)
    return folder


@pytest.fixture
def saved(saved_once, tmp_path):
    """A saved model of words, whose files a test may change."""
    return copytree(saved_once, tmp_path / "saved")


def metadata(hub):
    return ModelCard(hub.commits[-1]["README.md"].decode()).data.to_dict()


# -- what is pushed -----------------------------------------------------------------------------------------------


def test_one_commit_has_the_files_of_the_folder(hub, saved):
    assert push_folder(saved, "me/x") == "https://huggingface.co/me/x/commit/1"
    (commit,) = hub.commits
    assert commit.keys() == FILES
    for name in ("model.json", "model.safetensors"):
        assert commit[name] == (saved / name).read_bytes()


def test_pushed_model(hub, saved, tmp_path):
    own = Tagger.load(saved)
    assert own.push_to_hub("me/x") == "https://huggingface.co/me/x/commit/1"
    (tmp_path / "had").mkdir()
    for name, content in hub.commits[0].items():
        (tmp_path / "had" / name).write_bytes(content)
    words = [["Anna", "saw", "Rome"]]
    assert Tagger.from_pretrained(tmp_path / "had").kbest(words, 3) == own.kbest(words, 3)


def test_repository_that_exists(hub, saved):
    hub.refused["create"] = 409
    assert push_folder(saved, "me/x") == "https://huggingface.co/me/x/commit/1"


def test_branch_and_pull_request(hub, saved):
    push_folder(saved, "me/x", branch="dev", create_pr=True)
    assert hub.places == ["/api/models/me/x/commit/dev?create_pr=1"]


def test_revision_of_a_download(saved, monkeypatch):
    def download(model, *, revision, allow_patterns, token):
        assert (model, revision, {*allow_patterns}, token) == ("me/x", "v1", FILES, "secret")
        return str(saved)

    monkeypatch.setattr(publishing, "snapshot_download", download)
    assert publishing.download("me/x", "v1", token="secret") == saved


def test_save_pretrained_with_push(hub, saved, tmp_path):
    own = Tagger.load(saved)
    assert own.save_pretrained(tmp_path / "x") is None
    assert not hub.commits
    assert own.save_pretrained(tmp_path / "x", push_to_hub=True, repo_id="me/x", licence="mit")
    assert metadata(hub)["license"] == "mit"


@pytest.mark.usefixtures("hub")
def test_a_smaller_model_is_pushed(saved, run):
    *sizes, address = run("push", saved, "me/x", "--table", "int8").splitlines()
    assert [line.split()[0] for line in sizes[1:]] == ["before", "after"]
    assert address == "https://huggingface.co/me/x/commit/1"


def test_the_command(hub, saved, run):
    options = ["--private", "--token", "secret", "--licence", "apache-2.0", "--language", "en", "--language", "de"]
    assert run("push", saved, "me/x", *options) == "https://huggingface.co/me/x/commit/1\n"
    assert (metadata(hub)["license"], metadata(hub)["language"]) == ("apache-2.0", ["en", "de"])
    assert set(hub.tokens) == {"Bearer secret"}
    (made,) = (content for what, content in hub.asked if what == "create")
    assert "private" in json.dumps(made)


def test_no_licence_and_no_language_are_invented(hub, saved):
    push_folder(saved, "me/x")
    assert not {"license", "language"} & metadata(hub).keys()


def test_card_with_download_command(hub, saved):
    push_folder(saved, "me/x")
    card = hub.commits[0]["README.md"].decode()
    assert 'ChainModel.from_pretrained("me/x")' in card
    assert "hf download me/x --local-dir model" in card
    assert "this folder" not in card


def test_edited_card(hub, saved):
    card = saved / "README.md"
    card.write_text(card.read_text().replace("## Use", "Trained for tests.\n\n## Use"))
    push_folder(saved, "me/x")
    push_folder(saved, "me/y")
    first, second = (commit["README.md"].decode() for commit in hub.commits)
    assert "Trained for tests." in first
    assert second == first.replace("me/x", "me/y")


def test_scores_in_the_form_of_the_hub(hub, trained):
    push_folder(trained.folder / "model", "me/x")
    (index,) = metadata(hub)["model-index"]
    assert index["name"] == "x"
    scores = json.loads((trained.folder / "results.json").read_text())
    found = {
        (result["dataset"]["split"], metric["name"]): metric["value"]
        for result in index["results"]
        for metric in result["metrics"]
    }
    assert found.keys() == {(s, n) for s in ("dev", "test") for n in ("f1", "precision", "recall", "token accuracy")}
    assert found["test", "f1"] == pytest.approx(scores["test"]["score"], abs=1e-6)
    assert found["dev", "token accuracy"] == pytest.approx(scores["dev"]["token_accuracy"], abs=1e-6)


# -- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("repo", ["a/b/c", "me/--"])
def test_invalid_ids(hub, saved, repo):
    assert repo in error_message(push_folder, saved, repo)
    assert not hub.asked


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("model.safetensors", b"damaged", "model.safetensors is damaged"),
        ("model.json", None, "model.json is missing"),
        ("README.md", None, "README.md, the card of the model, is missing"),
        ("README.md", b"---\na: [\n---\n# x\n", "metadata cannot be read"),
    ],
)
def test_incomplete_folder(hub, saved, file, content, words):
    (saved / file).unlink() if content is None else (saved / file).write_bytes(content)
    assert words in error_message(push_folder, saved, "me/x")
    assert not hub.asked


def test_without_permission(hub, saved):
    hub.refused["create"] = 403
    message = error_message(push_folder, saved, "me/x")
    assert message.startswith("hub me/x: cannot push (")
    assert "hf auth login" in message
    assert not hub.commits


def test_refused_on_the_way(hub, saved):
    hub.refused["commit"] = 403
    assert "hub me/x: " in error_message(push_folder, saved, "me/x")
    assert not hub.commits


def test_without_network(saved, monkeypatch, fails):
    monkeypatch.setattr(publishing, "HfApi", partial(HfApi, endpoint="http://127.0.0.1:9"))
    assert "hub me/x: " in fails("push", saved, "me/x")
