"""The service as a process: it says where it answers, and answers what is open before it ends."""

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest

from structperc.cli import serve

TEXT = "Anna met Bo. " * 10_000
WAIT = 120  # seconds, for a busy machine


@pytest.fixture
def model(tmp_path):
    from tests.serving.serving_models import tagger

    tagger().save(tmp_path / "model")
    return tmp_path / "model"


def asked(address, text):
    body = json.dumps({"text": text}).encode()
    with urlopen(Request(f"{address}/annotate", body, {"content-type": "application/json"})) as answer:
        return json.load(answer)["spans"]


@contextmanager
def ended(process):
    """Has a process end with the block, whatever fails there."""
    try:
        yield
    finally:
        process.kill()


@pytest.mark.slow
def test_shutdown_answers_open_requests(model):
    command = [sys.executable, "-m", "structperc", "serve", str(model), "--port", "0", "--max-together", "1"]
    command += ["--grace", str(WAIT), "--max-seconds", str(WAIT)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process, ended(process):
        said = process.stderr.readline()
        address = address_in(said)
        assert str(model) in said
        with ThreadPoolExecutor(4) as clients:
            open_requests = [clients.submit(asked, address, TEXT) for _ in range(4)]
            while metric(address, "structperc_waiting_requests") < 2:  # one is being labelled
                assert not all(one.done() for one in open_requests)
            process.send_signal(signal.SIGTERM)
            lengths = {len(one.result()) for one in open_requests}
        assert process.wait(WAIT) == 0
        assert process.stderr.read() == ""
    assert len(lengths) == 1
    assert lengths.pop() > 1000


@pytest.mark.slow
def test_open_requests_at_shutdown(model):
    command = [sys.executable, "-m", "structperc", "serve", str(model), "--port", "0", "--grace", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process, ended(process):
        address = address_in(process.stderr.readline())
        with ThreadPoolExecutor(4) as clients:
            open_requests = [clients.submit(asked, address, TEXT * 7) for _ in range(4)]
            while metric(address, "structperc_waiting_requests") < 4:
                assert not all(one.done() for one in open_requests)
            process.send_signal(signal.SIGTERM)
            errors = [error for one in open_requests if (error := one.exception()) is not None]
        assert process.wait(WAIT) == 0
        assert [error.code for error in errors] == [503] * len(errors)
        assert {error.headers["retry-after"].isdigit() for error in errors} == {True}
        (line,) = process.stderr.read().splitlines()
        assert line.startswith(f"{len(errors)} request")


def address_in(line):
    return re.search(r"http://\S+", line)[0]


def metric(address, name):
    with urlopen(f"{address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[-1])


def test_bad_options(fails, model, monkeypatch):
    import socket

    assert "--port " in fails("serve", model, "--port", "70000")
    assert " waiting " in fails("serve", model, "--max-waiting", "0")
    assert " seconds " in fails("serve", model, "--max-seconds", "0")
    assert "--grace " in fails("serve", model, "--grace", "0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1:{port}" in fails("serve", model, "--port", port)
    assert "nowhere.invalid:8000" in fails("serve", model, "--host", "nowhere.invalid")
    monkeypatch.setattr(serve, "NEEDED", ("uvicorn", "no_such_package"))
    assert "no_such_package" in fails("serve", model)
