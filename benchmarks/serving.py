"""The service under load: many clients at once, whose requests are labelled together or one by one.

The model is an averaged perceptron of two epochs that reads words alone; each request is a text of two sentences.
Clients are threads of this process with one connection each, the service a process of its own. What is compared is the
service that labels up to 32 waiting requests together with one that labels them one by one.
"""

import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchmarks.epoch import _data
from benchmarks.tagging import _trained
from structperc.features import FeatureExtractor

CLIENTS, REQUESTS = 16, 4000
NODE: list = [{"of": ["w", "shape", "p3", "s3"], "at": [-1, 0, 1]}]


def run(smoke: bool) -> list[dict]:
    """Return requests/s of the two services, and the time that one request in a hundred takes longer than."""
    data, name = _data(smoke)
    tagger = _trained(FeatureExtractor(NODE, progress=False), data)
    corpus = data.corpus("dev")
    sentences = [" ".join(words) for words in corpus.sentences_of(corpus.columns["word"])]
    pairs = zip(sentences[::2], sentences[1::2], strict=False)
    texts = [" ".join(pair) for pair in pairs][: 40 if smoke else REQUESTS]
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(Path(folder) / "model")
        (together, slow), (alone, slow_alone) = (_measured(folder, texts, most) for most in (32, 1))
    size = f"{CLIENTS} clients, {len(texts)} texts of two sentences of {name}"
    return [
        _row("service, requests together against one by one", size, together, alone, together / alone, "requests/s"),
        _row("the same, 99th percentile of a request", size, slow, slow_alone, slow_alone / slow, "ms"),
    ]


def _measured(folder: str, texts: list[str], together: int) -> tuple[float, float]:
    """Requests/s, and milliseconds of the 99th percentile."""
    with _service(folder, together) as port, ThreadPoolExecutor(CLIENTS) as clients:
        _client(port, texts[:20])  # loads what is compiled
        begin = time.perf_counter()
        seconds = [one for found in clients.map(_client, [port] * CLIENTS, _shares(texts)) for one in found]
        whole = time.perf_counter() - begin
    return len(texts) / whole, 1000 * statistics.quantiles(seconds, n=100)[-1]


@contextmanager
def _service(folder: str, together: int) -> Iterator[int]:
    """A process that answers; -> its port."""
    model = str(Path(folder) / "model")
    command = [sys.executable, "-m", "structperc", "serve", model, "--port", "0", "--max-together", str(together)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield int(re.findall(r":(\d+)", process.stderr.readline())[-1])
        process.terminate()


def _client(port: int, texts: list[str]) -> list[float]:
    """Seconds of each request."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    seconds = []
    for text in texts:
        begin = time.perf_counter()
        connection.request("POST", "/annotate", json.dumps({"text": text}), {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        seconds.append(time.perf_counter() - begin)
    return seconds


def _shares(texts: list[str]) -> list[list[str]]:
    return [texts[i::CLIENTS] for i in range(CLIENTS)]


def _row(what: str, size: str, ours: float, peer: float, ratio: float, unit: str) -> dict:
    return {"what": what, "size": size, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, "target": None}
