"""Pieces of a text as they arrive, and blocks of whole sentences, documents and lines."""

import gzip
import os
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from structperc.data.conll import document_ends, sentence_ends
from structperc.data.format_detection import read_head
from structperc.data.text_files import Block, blocks, line_ends, no_ends, read_text, stream_text
from structperc.errors import InputError
from tests.errors import error_message

TEXT = "\ufeffKäthe O\r\nschläft O\n\n€ 𝄞 O\n" * 3


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32-le"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])])
def test_pieces_are_the_text(tmp_path, size, encoding, pack):
    file = tmp_path / "a"
    file.write_bytes(pack(TEXT.encode(encoding)))
    pieces = list(stream_text(file, encoding, size))
    assert "".join(pieces) == TEXT.encode(encoding).decode(encoding).removeprefix("\ufeff")
    assert size == 1000 or len(pieces) > 5


@pytest.mark.parametrize("size", [1, 6, 1000])
@pytest.mark.parametrize(
    ("data", "before", "message"),
    [
        (b"ab\ncd\nf\xe9 x\nmore\n", "ab\ncd\nf", ":3: byte 0xe9"),
        (b"ab\rcd\rf\xe9", "ab\rcd\rf", ":3: byte 0xe9"),
        ("abä".encode()[:-1], "ab", ":1: byte 0xc3"),
        (b"ab\nc\0d\n", "ab\nc", ":2: "),
    ],
)
def test_invalid_bytes_after_valid_text(tmp_path, size, data, before, message):
    file, seen = tmp_path / "a", []
    file.write_bytes(data)
    assert error_message(list, map(seen.append, stream_text(file, None, size))).startswith(f"{file}{message}")
    assert "".join(seen) == before


def test_pipe_without_more_data():
    ends, begin = os.pipe()
    os.write(begin, b"Anna\n")
    pieces = stream_text(Path(f"/dev/fd/{ends}"))
    assert [next(pieces), next(pieces)] == ["Anna\n", ""]
    os.write(begin, b"\xc3")
    os.close(begin)
    with pytest.raises(InputError, match="0xc3"):
        list(pieces)
    os.close(ends)


LINES = ["Anna x\n", "-DOCSTART- O\n", "\n", " \t\n", "\r\n", "Bo -DOCSTART-\n", "-DOCSTART-x\n", "\t-DOCSTART-\n"]
WHERE = {sentence_ends: r"[ \t]*\r?\n", document_ends: r"(?!)", line_ends: r".*\n", no_ends: r"(?!)"}


@pytest.mark.parametrize("ends", WHERE)
@pytest.mark.parametrize("size", [1, 5, 40, 10000])
def test_ends_of_blocks(ends, size):
    draw = random.Random(size)
    for _ in range(30):
        lines = draw.choices(LINES, k=draw.randint(1, 20))
        text = "".join(lines) + draw.choice(["", "her"])
        found = list(blocks([text[a : a + size] for a in range(0, len(text), size)], ends))
        assert "".join(block.text for block in found) == text
        assert [block.first for block in found] == [
            1 + "".join(block.text for block in found[:i]).count("\n") for i in range(len(found))
        ]
        for block, after in pairwise(found):
            last = block.text.splitlines(keepends=True)[-1]
            opens = ends is document_ends and after.text.split()[:1] == ["-DOCSTART-"]
            assert opens or re.fullmatch(WHERE[ends], last)
        if size == 1:  # as small as can be, but for empty lines after each other
            assert sum(len(block.parts(ends)) for block in found) == len(found)


def test_blocks_without_more_data():
    found = list(blocks(["a\n\nb", "", "\n", "", "\n", "c"], sentence_ends))
    assert found == [Block(1, "a\n\n"), None, None, Block(3, "b\n\n"), Block(5, "c")]


def test_blocks_are_read_no_further_than_needed():
    taken = []
    pieces = (taken.append(i) or "a\n\n" for i in range(9))
    found = blocks(pieces, sentence_ends)
    next(found)
    assert taken == [0]


@pytest.mark.parametrize(
    ("pieces", "text", "whole"),
    [
        (["Anna\n", "", "sleeps\n", "\n", "", "x"], "Anna\nsleeps\n\n", False),
        (["-DOCSTART-\n\n", "Anna\n", "\n"], "-DOCSTART-\n\nAnna\n\n", True),
        (['{"a": 1}\n', "", "x"], '{"a": 1}\n', False),
        (["Anna\n", "sleeps\n"], "Anna\nsleeps\n", True),
        ([], "", True),
    ],
)
def test_the_opening_shows_a_sentence(pieces, text, whole):
    found = read_head(iter(pieces), lambda lines: True)
    assert (found.text, found.whole) == (text, whole)
    assert "".join(found.pieces) == "".join(pieces)


def test_growing_file(tmp_path):
    file = tmp_path / "a"
    file.write_text(TEXT * 99, encoding="utf-8")
    assert read_text(file) == "".join(stream_text(file, size=100))
