"""structperc tag labels what arrives: the same bytes, whatever the pieces; in order, early, in little memory."""

import gzip
import json
import os
import select
import signal
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from structperc.cli.main import main
from structperc.data.read_options import ReadOptions
from structperc.tagging import labelling
from structperc.tagging.labelling import FileTagger, OutputOptions
from tests.tiny import without_names

WAIT = 120  # seconds, for a busy machine
WORDS = ["Anna", "sleeps", "Rome", "waits", "for", "her"]
SENTENCES = [[WORDS[(i * i + t) % 6] for t in range(1 + i % 4)] for i in range(23)]
PLAIN = "".join("".join(f"{word} x\n" for word in one) + "\n" * (1 + i % 2) for i, one in enumerate(SENTENCES))
MARKED = "".join(
    "-DOCSTART- O\n\n" * (i % 5 == 0) + "".join(f"{word}\tx\n" for word in one) + "\n"
    for i, one in enumerate(SENTENCES)
)
TEXT = "".join(" ".join(one) + (". " if i % 3 else ".\r\n\r\n") for i, one in enumerate(SENTENCES)) + "Mr. J.\n\nBo\n"
ROWS = [
    {"tokens": one} if i % 3 else {"id": i, "text": f"{' '.join(one)}. She left."} for i, one in enumerate(SENTENCES)
]
JSONL = "".join(json.dumps(row) + "\n" for row in ROWS)
NAMED = "".join(json.dumps(row | {"spans": [i]}) + "\n" for i, row in enumerate(ROWS))
SENTENCE, DOCUMENT = ReadOptions(unit="sentence"), ReadOptions(unit="document")
CASES = {
    "columns": (PLAIN, SENTENCE, OutputOptions(), None),
    "probabilities": (MARKED, SENTENCE, OutputOptions(probabilities=True), None),
    "documents": (MARKED, DOCUMENT, OutputOptions(), None),
    "documents without marks": (PLAIN, DOCUMENT, OutputOptions(), None),
    "no line end": (MARKED + "Anna y", DOCUMENT, OutputOptions(), None),
    "marks at the end": (MARKED + "-DOCSTART- O\n\n\n", DOCUMENT, OutputOptions(), None),
    "line ends of Windows": (MARKED.replace("\n", "\r\n"), DOCUMENT, OutputOptions(), None),
    "lists": (MARKED, SENTENCE, OutputOptions(k=2), None),
    "columns as objects": (MARKED, SENTENCE, OutputOptions("jsonl"), None),
    "sentences as objects": (PLAIN, DOCUMENT, OutputOptions("jsonl"), None),
    "objects": (JSONL, DOCUMENT, OutputOptions(), None),
    "objects with fields of our names": (NAMED, SENTENCE, OutputOptions(), None),
    "objects as columns": (JSONL, SENTENCE, OutputOptions("columns"), None),
    "text": (TEXT, SENTENCE, OutputOptions(), "text"),
    "text as one document": (TEXT, DOCUMENT, OutputOptions(), "text"),
    "text as an object": (TEXT, SENTENCE, OutputOptions("jsonl"), "text"),
    "text as marks": (TEXT, SENTENCE, OutputOptions("brat"), "text"),
    "a page": (MARKED, SENTENCE, OutputOptions("html"), None),
}


@pytest.fixture
def tagged(model, file, tmp_path):
    """-> the bytes that are written of a text."""

    def tagged(text, reading, shown, form, piece=10**9, workers=1):
        given = file(text)
        if piece < 10**9:
            given.write_bytes(gzip.compress(text.encode()) if piece % 2 else text.encode())
        out, reading = tmp_path / "out", reading._replace(form=form)
        FileTagger(str(model), shown, reading, workers=workers, chunk_size=piece).tag_file(str(given), str(out))
        return out.read_bytes()

    return tagged


@pytest.mark.parametrize("case", CASES)
def test_streaming_gives_the_same_bytes(tagged, case):
    whole = tagged(*CASES[case])
    assert len(whole) > 500
    for piece in (1, 30, 201):
        assert tagged(*CASES[case], piece=piece).decode() == whole.decode()


def test_memory_does_not_grow_with_the_text(tagged):
    def peak(tokens):
        text = "".join(f"Anna\nword{i}\n\n" for i in range(tokens // 2))
        tagged(PLAIN, SENTENCE, OutputOptions(), None)
        tracemalloc.start()
        tagged(text, SENTENCE, OutputOptions(), None, piece=4000)
        found = tracemalloc.get_traced_memory()[1] - len(text)
        tracemalloc.stop()
        return found

    assert peak(12000) < peak(3000) + 600_000  # all at once takes more than ten times as much


# -- mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentences", "message"),
    [
        ("Anna x\nBo y\n\nRome z\n\nher\nfor x\n\nAnna x\n", 2, ":6: 1"),
        ('{"tokens": ["Anna"]}\n\n{"tokens": ["Bo"]}\n{"tokens": 1}\n', 2, ":4: field 'tokens'"),
        ("Anna x\nBo y\n\nBo y\n\nRome \udcff\n\nAnna x\n", 2, ":6: byte 0xff"),
    ],
)
@pytest.mark.parametrize("piece", [5, 10**6])
def test_output_before_a_mistake(model, tmp_path, capsys, monkeypatch, text, sentences, message, piece):
    given, out = tmp_path / "given", tmp_path / "out"
    given.write_bytes(text.encode("utf-8", "surrogateescape"))
    monkeypatch.setattr(FileTagger.__init__, "__defaults__", (*FileTagger.__init__.__defaults__[:-1], piece))
    assert main(["tag", str(model), str(given), "--unit", "sentence"]) == 2
    written, said = capsys.readouterr()
    assert f"error: {given}{message}" in said
    assert said.count("\n") == 1
    blocks = [block for block in written.replace("}\n", "}\n\n").split("\n\n") if block.strip()]
    assert len([block for block in blocks if not block.startswith("#columns=")]) == sentences
    assert main(["tag", str(model), str(given), "--unit", "sentence", "-o", str(out)]) == 2
    assert not out.exists()


def test_late_document_mark(model, file, tagged):
    text = PLAIN + "-DOCSTART- x\n\nAnna x\n"
    line = PLAIN.count("\n") + 1
    with pytest.raises(ValueError, match=f"text.txt:{line}: "):
        tagged(text, DOCUMENT, OutputOptions(), None, piece=30)
    assert tagged(text, SENTENCE, OutputOptions(), None, piece=30) == tagged(text, SENTENCE, OutputOptions(), None)


def test_much_memory_is_announced(model, file, caplog, monkeypatch):
    monkeypatch.setattr(labelling, "MAX_BLOCK", 1000)
    given = file("Anna sleeps.\n\n" + "Anna sleeps and " * 100 + "\n\nAnna sleeps.\n")
    for options, line in ((["--unit", "sentence"], 1), ([], 1)):
        assert main(["tag", str(model), str(given), "--input", "text", *options]) == 0
        (warning,) = [record.getMessage() for record in caplog.records]
        caplog.clear()
        assert warning.startswith(f"{given}:{line}: ")
        assert ("empty line" in warning) == bool(options)
        assert ("--unit sentence" in warning) != bool(options)


# -- as a process ---------------------------------------------------------------------------------------------


def started(model, *arguments, **pipes):
    command = [sys.executable, "-m", "structperc", "tag", str(model), *arguments]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | pipes
    return subprocess.Popen(command, **streams, env=os.environ | {"OMP_NUM_THREADS": "1"})


def arrives(process):
    """What comes next on standard output."""
    assert select.select([process.stdout], [], [], WAIT)[0]
    return os.read(process.stdout.fileno(), 10**6).decode()


def give(process, text):
    process.stdin.write(text.encode())
    process.stdin.flush()


def test_streaming_and_closed_output(model):
    with started(model, "-") as process:
        give(process, "Anna\nsleeps\n\nRo")
        first = arrives(process)
        assert [line.split()[:1] for line in without_names(first).splitlines()] == [["Anna"], ["sleeps"], []]
        give(process, "me\n\n")
        assert arrives(process).split()[0] == "Rome"
        process.stdout.close()
        give(process, "Anna\n\n")
        assert process.wait(WAIT) == 1
        assert process.stderr.read() == b"-: read as columns; set --input to change that\n"


@pytest.mark.slow
def test_workers_write_the_same(tagged):
    assert tagged(*CASES["documents"], piece=30, workers=2) == tagged(*CASES["documents"])


@pytest.mark.slow
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_processes_end_when_interrupted(model, workers, number):
    with started(model, "-", "--workers", workers, start_new_session=True) as process:
        give(process, "Anna\nsleeps\n\nRome\n\n")
        shown = arrives(process)
        while "Rome" not in shown:  # then the main process waits for more input
            shown += arrives(process)
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        assert process.wait(WAIT) == 1
        said = process.stderr.read().decode()  # ends when all processes have
        assert "structperc: interrupted" in said
        assert "Traceback" not in said


@pytest.mark.slow
def test_a_mistake_among_workers(model, file):
    text = PLAIN * 40 + "Anna\n\n" + PLAIN
    with started(model, str(file(text)), "--workers", "2", "--unit", "sentence") as process:
        out, said = process.communicate(timeout=WAIT)
    assert process.returncode == 2
    assert f"text.txt:{40 * PLAIN.count(chr(10)) + 1}: 1 field, but line 1 has 2" in said.decode()
    assert [line.split()[:2] for line in without_names(out.decode()).splitlines()] == [
        line.split() for line in (PLAIN * 40).splitlines()
    ]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks up processes in /proc")
def test_a_killed_worker_is_one_line(model):
    with started(model, "-", "--workers", "2") as process:
        give(process, "Anna\n\n")
        arrives(process)
        for number in workers(process.pid):
            os.kill(number, signal.SIGKILL)
        give(process, "Bo\n\n")
        assert process.wait(WAIT) == 2
        *_, last = process.stderr.read().decode().splitlines()
        assert last.startswith("structperc: error: ")
        assert "worker" in last
        assert "--workers 1" in last


def workers(parent):
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # processes end
            above = file.read_text().rpartition(")")[2].split()[1]
            if above == str(parent) and b"popen_loky" in file.with_name("cmdline").read_bytes():
                found.append(int(file.parent.name))
    assert len(found) == 2
    return found
