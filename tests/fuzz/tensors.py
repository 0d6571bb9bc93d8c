"""Files of tensors, with what they say about themselves set right or wrong."""

import json
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.trees import VALUES

HEAD = 8  # bytes of the header's length


def header_changed(draw: Random, file: Path) -> str:
    """Change what the header of a safetensors file says of one tensor; -> what was done."""
    data = file.read_bytes()
    size = int.from_bytes(data[:HEAD], "little")
    header, body = json.loads(data[HEAD : HEAD + size]), data[HEAD + size :]
    name = draw.choice([name for name in header if name != "__metadata__"])
    done = draw.choice(list(HEADERS))
    HEADERS[done](draw, header, name)
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(HEAD, "little") + text + body)
    return f"header: {done}"


def _shape(draw: Random, header: dict[str, Any], name: str) -> None:
    header[name]["shape"] = draw.choice(
        ([], [0], [-1], [2**62, 4], [1, *header[name]["shape"]], header[name]["shape"][::-1])
    )


def _dtype(draw: Random, header: dict[str, Any], name: str) -> None:
    header[name]["dtype"] = draw.choice(("F64", "F16", "I32", "U8", "BOOL", "F99", ""))


def _offsets(draw: Random, header: dict[str, Any], name: str) -> None:
    start, end = header[name]["data_offsets"]
    header[name]["data_offsets"] = draw.choice(
        ([0, end - start], [start, end + 8], [end, start], [start, 2**63], [-8, end])
    )


def _name(draw: Random, header: dict[str, Any], name: str) -> None:
    header[draw.choice((name + "x", "", "criterion.such", name.upper()))] = header.pop(name)


def _entry(draw: Random, header: dict[str, Any], name: str) -> None:
    header[name] = draw.choice(VALUES[:12]).value


def _gone(draw: Random, header: dict[str, Any], name: str) -> None:
    del header[name]


def _metadata(draw: Random, header: dict[str, Any], name: str) -> None:
    header["__metadata__"] = draw.choice((None, {}, {"words": 1}, {"format": "tf"}, []))


HEADERS = {
    "shape": _shape,
    "dtype": _dtype,
    "offsets": _offsets,
    "name": _name,
    "entry": _entry,
    "entry gone": _gone,
    "metadata": _metadata,
}
