import pytest

from structperc.data.text import read_lines
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


def test_missing_file_names_the_path_and_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        read_lines("conll2003/eng.trian")
    message = str(error.value)
    assert message.startswith("conll2003/eng.trian: cannot read this file (No such file or directory)")
    assert message.endswith(f"relative paths start in {tmp_path}")
    with pytest.raises(InputError, match="Is a directory"):
        read_lines(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ab\ncd\nf\xe9 x\n", ":3: byte 0xe9 is not utf-8; set encoding, perhaps latin-1"),
        (b"\xff\xfea\x00\n\x00", ":1: byte 0xff is not utf-8; set encoding, perhaps utf-16"),
    ],
)
def test_wrong_encoding_names_the_line_and_the_option(tmp_path, data, message):
    file = tmp_path / "a.txt"
    file.write_bytes(data)
    with pytest.raises(InputError) as error:
        read_lines(file)
    assert str(error.value) == f"{file}{message}"


def test_unknown_encoding(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"a")
    with pytest.raises(InputError, match="unknown encoding 'utf8000'"):
        read_lines(file, "utf8000")
