"""The hub is played by a small HTTP server on this machine; nothing here leaves it."""

import http.server
import json
import os
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet
import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

from structperc.data import hub_datasets as hub_module
from structperc.data.corpus import Corpus
from structperc.data.hub_datasets import read_hub
from structperc.errors import InputError
from tests.errors import error_message

COMMIT = "a" * 40
COLUMNS = {"word": "tokens", "label": "ner_tags"}
PROGRAM = """
import json, sys, time
from structperc.data.hub_datasets import read_hub
from structperc.errors import InputError

results = []
for hub, columns, options in json.loads(sys.argv[1]):
    begun = time.monotonic()
    try:
        results.append(read_hub(hub, columns, **options).to_list())
    except InputError as error:
        results.append(str(error))
    assert time.monotonic() - begun < 10, "retries"
print(json.dumps(results))
"""


def read(home, *calls, **environment):
    """Results or error messages of calls of `read_hub` in one fresh process with its own cache."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    variables |= {"HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", **environment}
    command = [sys.executable, "-c", PROGRAM, json.dumps(calls)]
    result = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def tiny() -> Dataset:
    features = Features({"tokens": List(Value("string")), "ner_tags": List(ClassLabel(names=["O", "B-PER", "I-PER"]))})
    rows = {"tokens": [["Peter", "Pan", "flew"], ["Yes"], []], "ner_tags": [[1, 2, 0], [0], []]}
    return Dataset.from_dict(rows, features=features)


EXPECTED = [
    {"document": 0, "sentence": 0, "word": ["Peter", "Pan", "flew"], "label": ["B-PER", "I-PER", "O"]},
    {"document": 1, "sentence": 1, "word": ["Yes"], "label": ["O"]},
    {"document": 2, "sentence": 2, "word": [], "label": []},
]


class FakeHub(http.server.BaseHTTPRequestHandler):
    """Serves one data set, owner/tiny, with one parquet file."""

    parquet = b""
    name = "data/train-00000-of-00001.parquet"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def json(self, content):
        self.answer(200, json.dumps(content).encode(), Content_Type="application/json")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.json([self.entry()] if "paths-info" in self.path else {})

    def entry(self):
        return {"type": "file", "path": self.name, "size": len(self.parquet), "oid": "b" * 40}

    def do_GET(self):
        path = self.path.split("?")[0]
        if not path.startswith(("/api/datasets/owner/tiny", "/datasets/owner/tiny")):
            self.answer(404, X_Error_Code="RepoNotFound")
        elif "/revision/" in path and path.rsplit("/", 1)[1] not in ("main", COMMIT):
            self.answer(404, X_Error_Code="RevisionNotFound")
        elif "/tree/" in path:
            directory = path.endswith("/data") or "recursive=True" in self.path
            self.json([self.entry()] if directory else [{"type": "directory", "path": "data", "oid": "c" * 40}])
        elif path.startswith("/api/"):
            self.json({"id": "owner/tiny", "sha": COMMIT, "siblings": [{"rfilename": self.name}]})
        elif path.endswith(self.name):
            self.answer(200, self.parquet, X_Repo_Commit=COMMIT, ETag='"e"', Accept_Ranges="none")
        else:
            self.answer(404, X_Error_Code="EntryNotFound")

    def do_HEAD(self):
        self.do_GET()


@pytest.fixture(scope="module")
def server():
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(tiny().with_format("arrow")[:], sink)
    FakeHub.parquet = sink.getvalue().to_pybytes()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeHub) as hub:
        threading.Thread(target=hub.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{hub.server_port}"
        hub.shutdown()


def test_download_then_offline(server, tmp_path):
    found, revision, owner, split, column = read(
        tmp_path,
        ("owner/tiny", COLUMNS, {}),
        ("owner/tiny", COLUMNS, {"revision": "v2"}),
        ("owner/small", COLUMNS, {}),
        ("owner/tiny", COLUMNS, {"split": "dev"}),
        ("owner/tiny", {"word": "words"}, {"revision": COMMIT}),
        HF_ENDPOINT=server,
    )
    assert found == EXPECTED
    check_line(revision, "hub owner/tiny: ", "'v2'")
    check_line(owner, "hub owner/small: ", "`hub`")
    check_line(split, "hub owner/tiny: ", '"dev"')
    check_line(column, "hub owner/tiny: ", "['words'] among ['tokens', 'ner_tags']")
    given = ("owner/tiny", COLUMNS, {}), ("owner/small", COLUMNS, {"revision": COMMIT})
    kept, other = read(tmp_path, *given, HF_HUB_OFFLINE="1")
    assert kept == EXPECTED
    check_line(other, "hub owner/small: ", "HF_HUB_OFFLINE")


def check_line(error, start, message):
    assert error.startswith(start)
    assert message in error
    assert "\n" not in error


def test_without_network(tmp_path):
    (error,) = read(tmp_path, ("owner/tiny", COLUMNS, {"revision": COMMIT}), HF_ENDPOINT="http://127.0.0.1:9")
    check_line(error, "hub owner/tiny: ", "http://127.0.0.1:9 (ConnectError)")


def load(monkeypatch, data):
    monkeypatch.setattr(hub_module, "load_split", lambda *arguments: data)


def test_rows_become_a_corpus_without_documents(monkeypatch):
    load(monkeypatch, tiny().select([2, 0]))
    corpus = Corpus.from_dataset(read_hub("owner/tiny", COLUMNS), name="owner/tiny")
    assert corpus.columns == {"word": ["Peter", "Pan", "flew"], "label": ["B-PER", "I-PER", "O"]}
    assert corpus.sentences.tolist() == [0, 0, 3]


def test_numbers_need_names(monkeypatch):
    load(monkeypatch, Dataset.from_dict({"tokens": [["a", "b"]], "ner_tags": [[2, 0]]}))
    found = error_message(read_hub, "owner/tiny", COLUMNS)
    assert found.startswith("hub owner/tiny, row 1: column 'ner_tags'")
    assert "label_names: {label: [O, B-..., ...]}" in found
    data = read_hub("owner/tiny", COLUMNS, label_names={"label": ["O", "B-X", "I-X"]})
    assert data["label"] == [["I-X", "O"]]
    with pytest.raises(InputError, match="'ner_tags' has 2"):
        read_hub("owner/tiny", COLUMNS, label_names={"label": ["O", "B-X"]})


def test_columns_must_hold_lists(monkeypatch):
    load(monkeypatch, Dataset.from_dict({"tokens": [5], "ner_tags": [[0.5]]}))
    for columns in ({"word": "tokens"}, {"word": "ner_tags"}):
        with pytest.raises(InputError, match="hub owner/tiny, row 1: "):
            read_hub("owner/tiny", columns)


def test_paths_are_never_tried(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("eng.train", "/data/eng.train", "json", "a/b/c", "../x"):
        with pytest.raises(InputError, match=r"must be the id OWNER/NAME .*`path`"):
            read_hub(path, COLUMNS)
    (tmp_path / "owner" / "tiny").mkdir(parents=True)
    with pytest.raises(InputError, match="owner/tiny"):
        read_hub("owner/tiny", COLUMNS)


def test_configuration_split_and_commit_are_loaded(monkeypatch):
    def load_dataset(hub, config, *, split, revision):
        assert (hub, config, split, revision) == ("owner/tiny", "german", "dev", COMMIT)
        return tiny()

    monkeypatch.setattr(hub_module, "_commit", lambda hub, revision: COMMIT if revision == "v2" else None)
    monkeypatch.setattr(hub_module.datasets, "load_dataset", load_dataset)
    assert len(read_hub("owner/tiny", COLUMNS, split="dev", revision="v2", config="german")) == len(tiny())


def test_programs_are_not_run(monkeypatch):
    def refuses(*arguments, **options):
        raise RuntimeError("Dataset scripts are no longer supported, but found tiny.py")

    monkeypatch.setattr(hub_module, "_commit", lambda hub, revision: COMMIT)
    monkeypatch.setattr(hub_module.datasets, "load_dataset", refuses)
    with pytest.raises(InputError, match=r"hub owner/tiny: .*`revision"):
        read_hub("owner/tiny", COLUMNS)
