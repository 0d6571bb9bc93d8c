"""Files that are no text in the encoding asked for: which format they have, by marks that no other format has."""

import re

HEAD = 4096  # bytes looked at

FORMATS = (  # first bytes, what they open
    (rb"BZh\d1AY&SY", "a bzip2 file; unpack it first"),
    (rb"\xfd7zXZ\0", "an xz file; unpack it first"),
    (rb"\x28\xb5\x2f\xfd", "a zstd file; unpack it first"),
    (rb"PK[\x03\x05]", "a zip archive; unpack it first"),  # new Office documents, .npz and .pt files, too
    (rb"7z\xbc\xaf", "a 7z archive; unpack it first"),
    (rb"PAR1", "a parquet file; write its columns as text first"),
    (rb"ARROW1\0|\xff\xff\xff\xff", "an Arrow file; write its columns as text first"),
    (rb"...\0{5}\{\"", "a safetensors file; a text file is needed"),
    (rb"\x93NUMPY", "a NumPy array; a text file is needed"),
    (rb"\x80[\x02-\x05]", "a Python pickle; a text file is needed"),
    (rb"SQLite format 3\0", "an SQLite data base; write its columns as text first"),
    (rb"\x89HDF", "an HDF5 file; write its columns as text first"),
    (rb"%PDF-", "a PDF document; a text file is needed"),
    (rb"\xd0\xcf\x11\xe0", "an old Office document; a text file is needed"),
    (rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF....WEBP", "an image; a text file is needed"),
    (rb"\x7fELF|MZ", "a program; a text file is needed"),
)
WIDE = (  # first bytes of texts with two or four bytes for each character
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def known_format(data: bytes) -> str | None:
    """Return what a file is that opens with these bytes, and what to do about it; None for an unknown format.

    This is to be asked about files that cannot be text: a text may open with any of these letters.
    """
    found = (name for opening, name in FORMATS if re.match(opening, data[:HEAD], re.DOTALL))
    return next(found, None)


def wide_encoding(data: bytes) -> str | None:
    """Return utf-16 or utf-32, by the mark at the beginning or, in mostly Latin texts, by the zeros between.

    Or None.
    """
    for mark, encoding in WIDE:
        if data.startswith(mark):
            return encoding
    head = data[: min(HEAD, len(data) // 4 * 4)]
    zeros = "".join("0" if 2 * head[i::4].count(0) > len(head) // 4 else "x" for i in range(4))
    return {"x0x0": "utf-16-le", "0x0x": "utf-16-be", "x000": "utf-32-le", "000x": "utf-32-be"}.get(zeros)
