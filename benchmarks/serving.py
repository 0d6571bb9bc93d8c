"""The service under load: many clients at once, whose requests are labelled together or one by one.

Each request is a text of two sentences. The models read words alone: an averaged perceptron of two epochs, and a
BiLSTM-CRF, untrained, since its time does not depend on its weights. Clients are threads of this process with one
connection each, the service a process of its own. What is compared is the service that labels up to 32 waiting requests
together with one that labels them one by one. Where clients and service share the processors, the processor time of the
service tells what it could answer with a processor of its own.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch

from benchmarks.epoch import _data
from benchmarks.neural import _encoder
from benchmarks.tagging import _trained
from structperc.chain import KBest
from structperc.criteria import CRFLoss
from structperc.datamodules import SequenceDataModule
from structperc.features import FeatureExtractor
from structperc.scorers import Neural
from structperc.taggers import Tagger

CLIENTS, REQUESTS = 16, 1000
NODE: list = [{"of": ["w", "shape", "p3", "s3"], "at": [-1, 0, 1]}]


def run(smoke: bool) -> list[dict]:
    """Return, for each model, requests/s of the two services and their processor time per request."""
    data, name = _data(smoke)
    corpus = data.corpus("dev")
    sentences = [" ".join(words) for words in corpus.sentences_of(corpus.columns["word"])]
    pairs = zip(sentences[::2], sentences[1::2], strict=False)
    texts = [" ".join(pair) for pair in pairs][: 40 if smoke else REQUESTS]
    models = {"perceptron": _trained(FeatureExtractor(NODE, progress=False), data)}
    if not smoke:
        models["BiLSTM-CRF"] = _bilstm(data)
    return [row for model, tagger in models.items() for row in _rows(model, tagger, texts, name)]


def _rows(model: str, tagger: Tagger, texts: list[str], corpus: str) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(Path(folder) / "model")
        (together, busy), (alone, busy_alone) = (_measured(folder, texts, most) for most in (32, 1))
    size = f"{model}, {CLIENTS} clients, {len(texts)} texts of two sentences of {corpus}"
    return [
        _row("service, requests together against one by one", size, together, alone, together / alone, "requests/s"),
        _row("the same, processor time of the service", size, busy, busy_alone, busy / busy_alone, "ms/request"),
    ]


def _bilstm(data: SequenceDataModule) -> Tagger:
    torch.manual_seed(1)
    tagger = Tagger(None, Neural(_encoder(smoke=False)), CRFLoss(), KBest(1), torch.optim.Adam)
    tagger.build_vocabulary(data)
    return tagger.eval()


def _measured(folder: str, texts: list[str], together: int) -> tuple[float, float]:
    """Requests/s, and milliseconds of processor time per request."""
    with _service(folder, together) as (process, port), ThreadPoolExecutor(CLIENTS) as clients:
        _client(port, texts[:20])  # loads what is compiled
        begin, before = time.perf_counter(), _processor_seconds(process)
        for _ in clients.map(_client, [port] * CLIENTS, [texts[i::CLIENTS] for i in range(CLIENTS)]):
            pass
        whole, busy = time.perf_counter() - begin, _processor_seconds(process) - before
    return len(texts) / whole, 1000 * busy / len(texts)


@contextmanager
def _service(folder: str, together: int) -> Iterator[tuple[int, int]]:
    """A process that answers; -> its id and port."""
    model = str(Path(folder) / "model")
    command = [sys.executable, "-m", "structperc", "serve", model, "--port", "0", "--max-together", str(together)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield process.pid, int(re.findall(r":(\d+)", process.stderr.readline())[-1])
        process.terminate()


def _processor_seconds(process: int) -> float:
    """Seconds of processor time that a process has taken; Linux only."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _client(port: int, texts: list[str]) -> None:
    """Send one request after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for text in texts:
        connection.request("POST", "/annotate", json.dumps({"text": text}), {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200


def _row(what: str, size: str, ours: float, peer: float, ratio: float, unit: str) -> dict:
    return {"what": what, "size": size, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, "target": None}
