import bz2
import gzip
import io
import lzma
import pickle
import sys
import zipfile
from pathlib import Path

import pytest

from structperc.data.text_files import expand_path, read_lines, read_text
from structperc.errors import InputError


def test_only_line_feeds_end_lines(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes("\ufeffa\u2028b\x0bc\x85\r\nd\re\n\n".encode())
    assert read_lines(file) == ["a\u2028b\x0bc\x85", "d\re", "", ""]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_encodings(tmp_path, encoding):
    file = tmp_path / "a.txt"
    file.write_bytes("é\nü".encode(encoding))
    assert read_lines(file, encoding) == ["é", "ü"]


def test_missing_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        read_lines("conll2003/eng.trian")
    message = str(error.value)
    assert message.startswith("conll2003/eng.trian: ")
    assert message.endswith(f"relative paths start in {tmp_path}")
    with pytest.raises(InputError, match="Is a directory"):
        read_lines(tmp_path)


def complaint(tmp_path, data, encoding=None):
    """-> what is said about these bytes, without the path."""
    file = tmp_path / "a.txt"
    file.write_bytes(data)
    with pytest.raises(InputError) as error:
        read_lines(file, encoding)
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(str(file))


def test_wrong_encoding(tmp_path):
    wrong = ":3: byte 0xe9 is not utf-8; "
    assert complaint(tmp_path, b"ab\ncd\nf\xe9 x\n", "utf-8") == f"{wrong}set encoding: latin-1, perhaps"
    assert complaint(tmp_path, b"ab\rcd\rf\xe9 x\r", "utf-8") == f"{wrong}set encoding: latin-1, perhaps"
    assert complaint(tmp_path, b"ab\ncd\nf\xe9 x\n") == f"{wrong}save it as UTF-8"
    assert complaint(tmp_path, "é".encode(), "ascii") == ":1: byte 0xc3 is not ascii; set encoding: latin-1, perhaps"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_wide_encodings_are_named(tmp_path, encoding):
    text = "Müller B-PER\nschläft O\n"
    assert complaint(tmp_path, text.encode(encoding), "utf-8") == f": this is {encoding} text; set encoding: {encoding}"
    assert complaint(tmp_path, text.encode(encoding)) == f": this is {encoding} text; save it as UTF-8"
    assert read_lines(tmp_path / "a.txt", encoding) == [*text.splitlines(), ""]
    assert f": this is not {encoding} text" in complaint(tmp_path, text.encode(), encoding)


def test_other_file_formats(tmp_path):
    noise = bytes(range(256))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", "b")
    for data, name in (
        (bz2.compress(b"Anna O\n"), "a bzip2 file; unpack it first"),
        (lzma.compress(b"Anna O\n"), "an xz file; unpack it first"),
        (packed.getvalue(), "a zip archive; unpack it first"),
        (b"PAR1" + noise + b"PAR1", "a parquet file; write its columns as text first"),
        (pickle.dumps(["Anna"]), "a Python pickle; a text file is needed"),
        (b'\x80\x01\0\0\0\0\0\0{"a":' + noise, "a safetensors file; a text file is needed"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + noise, "a PDF document; a text file is needed"),
        (b"\x89PNG\r\n\x1a\n" + noise, "an image; a text file is needed"),
    ):
        for encoding in (None, "utf-8", "latin-1"):
            assert complaint(tmp_path, data, encoding) == f": this is {name}"
    assert complaint(tmp_path, b"ab\nc\0d\n", "latin-1") == ":2: zero byte: this is not a text file"


def test_gzip_by_content(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(gzip.compress("é O\r\nü O\n".encode("latin-1")))
    assert read_lines(file, "latin-1") == ["é O", "ü O", ""]
    assert read_text(file, "latin-1") == "é O\r\nü O\n"
    assert complaint(tmp_path, gzip.compress(b"ab\nf\xe9"), "utf-8").startswith(":2: byte 0xe9 is not utf-8")
    packed = gzip.compress(b"Anna O\n" * 99)
    for damaged in (packed[:-9], packed[:12] + b"\xff" * 20, b"\x1f\x8b", packed[:-1] + b"x"):
        assert "gzip" in complaint(tmp_path, damaged)


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Käthe\n".encode())))
    assert read_lines("-") == ["Käthe", ""]
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        read_lines("-")


def test_words_at_the_start_of_a_text(tmp_path):
    file = tmp_path / "a.txt"
    for word in ("PK", "PAR1", "%PDF-1.7", "GIF89a", "BZh91AY&SY", "MZ", "\x1b[0m"):
        file.write_text(f"{word} O\n")
        assert read_lines(file) == [f"{word} O", ""]


def test_carriage_returns(tmp_path):
    file = tmp_path / "a.txt"
    for end in ("\r", "\n", "\r\n"):
        file.write_bytes(f"Anna B{end}sleeps O{end}{end}".encode())
        assert read_lines(file) == ["Anna B", "sleeps O", "", ""]


def test_unknown_encoding(tmp_path):
    for name in ("utf8000", "hex", "a\0", ""):
        assert f"unknown encoding {name!r}" in complaint(tmp_path, b"a\xe9", name)


def test_invalid_file_names():
    with pytest.raises(InputError, match="is not a valid file name"):
        read_lines("a\0b")
    with pytest.raises(InputError, match="~nobody-of-this-name"):
        read_lines("~nobody-of-this-name/a.txt")


def test_variables_in_paths(monkeypatch):
    monkeypatch.setenv("FOLDER", "texts")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("MISSING", raising=False)
    assert expand_path("${FOLDER}/a.txt") == Path("texts/a.txt")
    assert expand_path("${FOLDER:-other}/a.txt") == Path("texts/a.txt")
    assert expand_path("${EMPTY:-other}/${MISSING:-owner/name}") == Path("other/owner/name")
    with pytest.raises(InputError, match=r"\$MISSING/a"):
        expand_path("$MISSING/a.txt")
