"""Files of annotation tools with one document each: brat stand-off, WebAnno TSV 3, UIMA CAS JSON.

A folder of such files, as tools export it, is read as a table with a row for each document. A row has the columns
`document`, `text` and `spans`; layers of INCEpTION other than that of the spans are columns LAYER.FEATURE.

Formats: https://brat.nlplab.org/standoff.html; the user guide of INCEpTION, section "WebAnno TSV 3.3 File format"; the
specification of Apache UIMA JSON CAS. Offsets of brat count characters, those of the other two UTF-16 code units.
"""

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from structperc.data.annotations import QUOTE, AnnotatedText, TableRow, to_characters
from structperc.data.text_files import read_lines, read_text, stream_text
from structperc.errors import InputError
from structperc.text.alignment import TextSpan, to_character_offsets

BRAT, WEBANNO, CAS = "brat", "WebAnno TSV", "CAS JSON"
STANDOFF = (BRAT, WEBANNO, CAS)
ENTITIES = "NamedEntity.value"  # the usual layer and feature of entities in INCEpTION
SPANS, TEXT, DOCUMENT = "spans", "text", "document"  # columns
_OPENS = {".tsv": (re.compile(r"#FORMAT=WebAnno TSV 3"), WEBANNO), ".json": (re.compile(r'\s*\{\s*"%[A-Z]'), CAS)}
_BRAT_SPAN = re.compile(r"T\S*\t(\S+) (\d+ \d+(?:;\d+ \d+)*)(?:\t(.*))?")
_BRAT_KINDS = {"E": "events", "R": "relations", "A": "attributes", "M": "attributes", "N": "normalisations"} | {
    "#": "notes",
    "*": "equivalences",
}
_UNIT = re.compile(r"\d+-\d+(?:\.\d+)?\t(\d+)-(\d+)\t([^\t]*)\t?(.*)")
_STACKED = re.compile(r"(?:[^\\|]|\\.)+")  # values between separators; a backslash escapes the next character
_VALUE = re.compile(r"((?:[^\\]|\\.)*?)(?:\[(\d+)\])?")
_ESCAPED = re.compile(r"\\(->|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r"}
_NO_SPANS = ("segmentation.type.", "lexmorph.type.", "uima.tcas.DocumentAnnotation", "metadata.type.")  # CAS types

logger = logging.getLogger("pytorch_lightning.structperc")


class Document(NamedTuple):
    """A document of an annotation tool: its text, the spans of each layer, and numbers of what is not read."""

    text: str
    layers: dict[str, list[TextSpan]]
    unread: Counter[str]


def standoff_format(path: Path) -> str | None:
    """Return the format of an annotated document, or of the first one in a folder; None for other files."""
    if path.is_dir():
        return next(filter(None, map(standoff_format, _files_below(path))), None)
    if path.suffix == ".ann":
        return BRAT
    if path.suffix not in _OPENS or not path.is_file():
        return None
    pattern, name = _OPENS[path.suffix]
    try:
        with closing(stream_text(path)) as pieces:
            return name if pattern.match(next(pieces, "")) else None
    except InputError:  # another encoding or format
        return None


def read_standoff(path: Path, encoding: str = "utf-8") -> Iterator[TableRow]:
    """Yield a row for each document of a file, or of the files of the same format in a folder.

    The spans are those of the layer NamedEntity of INCEpTION, feature `value`, or of the only layer. Raises InputError
    with file and line for malformed files, and for .ann files without a .txt file.
    """
    kind = standoff_format(path)
    assert kind is not None, path
    files = [path] if not path.is_dir() else [entry for entry in _files_below(path) if standoff_format(entry) == kind]
    read = {BRAT: _read_brat, WEBANNO: _read_webanno, CAS: _read_cas}[kind]
    documents = [(file, read(file, encoding)) for file in files]
    layers = dict.fromkeys(layer for _, document in documents for layer in document.layers)
    chosen = ENTITIES if ENTITIES in layers else next(iter(layers), SPANS)
    clear = chosen == ENTITIES or len(layers) < 2
    columns = {layer: SPANS if clear and layer == chosen else layer for layer in layers}
    if unread := sum((document.unread for _, document in documents), Counter[str]()):
        logger.info("%s: not read: %s", path, ", ".join(f"{name} {count:,}" for name, count in unread.items()))
    empty: dict[str, Any] = {SPANS: []} if not layers else {}
    for file, document in documents:
        name = file.relative_to(path).with_suffix("") if path.is_dir() else Path(file.stem)
        rows = {column: [_record(span) for span in document.layers.get(layer, ())] for layer, column in columns.items()}
        yield str(file), {DOCUMENT: str(name), TEXT: document.text, **empty, **rows}


def _files_below(folder: Path) -> list[Path]:
    inside = (file for file in sorted(folder.rglob("*")) if file.suffix in (".ann", *_OPENS) and file.is_file())
    return [file for file in inside if not any(part.startswith(".") for part in file.relative_to(folder).parts)]


def _record(span: TextSpan) -> Mapping[str, Any]:
    record = {"start": span.start, "end": span.end, "label": span.type}
    quote = {} if span.quote is None else {QUOTE: span.quote}
    return {**record, **quote} if span.continuous else {**record, **quote, "continuous": False}


# -- brat -----------------------------------------------------------------------------------------------------


def _read_brat(path: Path, encoding: str) -> Document:
    """Read a pair NAME.ann, NAME.txt; a byte-order mark of the text is a character."""
    source = path.with_suffix(".txt")
    if not source.is_file():
        raise InputError(f"{path}: brat needs its text, {source}, which does not exist; put it there")
    text = "".join(stream_text(source, encoding, keep_mark=True))
    spans, unread = [], Counter[str]()
    for number, line in enumerate(read_lines(path, encoding), 1):
        if not line.strip():
            continue
        match = _BRAT_SPAN.fullmatch(line)
        if match is None and line[0] in _BRAT_KINDS:
            unread[_BRAT_KINDS[line[0]]] += 1
            continue
        if match is None:
            raise InputError(f"{path}:{number}: {line!r:.60} is not of the form 'T1<tab>PER 0 4<tab>Anna'; correct it")
        parts = [tuple(map(int, part.split())) for part in match[2].split(";")]
        span = TextSpan(parts[0][0], parts[-1][1], match[1], quote=match[3])
        between = "".join(text[a:b] for (_, a), (b, _) in pairwise(parts))
        spans.append(span._replace(continuous=not between.strip()))
    return Document(text, {SPANS: spans}, unread)


def brat_lines(text: str, spans: Sequence[TextSpan], before: int = 0) -> Iterator[str]:
    """Yield the lines of a brat .ann file; a span over several lines has a part for each of them.

    `before` is the number of characters before the text in its file. Raises InputError for a type with a space.
    """
    for number, span in enumerate(spans, 1):
        if " " in span.type:
            raise InputError(f"the type {span.type!r} has a space, which brat does not allow; choose another format")
        parts = [part.span() for part in re.compile(r"[^\n\r]+").finditer(text, span.start, span.end)]
        where = ";".join(f"{a + before} {b + before}" for a, b in parts)
        yield f"T{number}\t{span.type} {where}\t{' '.join(text[a:b] for a, b in parts)}\n"
        if span.confidence is not None:
            yield f"#{number}\tAnnotatorNotes T{number}\tconfidence {span.confidence:.4f}\n"


# -- INCEpTION ------------------------------------------------------------------------------------------------


class _Layer(NamedTuple):
    """A column of WebAnno TSV; without a feature the type of a span is the name of the layer."""

    name: str
    feature: str
    read: bool

    @property
    def column(self) -> str:
        """The column of its spans in a row."""
        return _column(self.name, self.feature)


def _column(layer: str, feature: str) -> str:
    return f"{layer}.{feature}" if feature else layer


def _read_webanno(path: Path, encoding: str) -> Document:
    lines = read_lines(path, encoding)
    layers = [layer for line in lines if line.startswith("#T_") for layer in _layers(line)]
    parts: list[str] = []
    size = 0  # of the text in UTF-16 code units
    pending: list[str] = []  # text of a sentence without known offsets
    spans: dict[str, dict[Any, TextSpan]] = {layer.column: {} for layer in layers if layer.read}
    unread: Counter[str] = Counter()
    for number, line in enumerate(lines, 1):
        if line.startswith("#Text="):
            pending.append(_unescape(line.removeprefix("#Text=")))
        if line.startswith("#") or not line.strip():
            continue
        unit = _UNIT.fullmatch(line)
        if unit is None:
            raise InputError(f"{path}:{number}: {line!r:.60} is not a token such as '1-1<tab>0-4<tab>Anna'; correct it")
        start, end = int(unit[1]), int(unit[2])
        if pending:
            if start < size:
                raise InputError(f"{path}:{number}: offset {start} is in the sentence before, which ends at {size}")
            parts += "\n"[: start - size], " " * (start - size - 1), "\n".join(pending)
            size, pending = start + _utf16_length(parts[-1]), []
        for layer, field in zip(layers, unit[4].split("\t"), strict=False):
            if field in ("_", ""):
                continue
            if not layer.read:
                unread[layer.name] += 1
                continue
            for index, mark in enumerate(_STACKED.findall(field)):
                match = _VALUE.fullmatch(mark)
                assert match is not None
                value, identity = match.groups()
                kind = layer.name if not layer.feature else "" if value == "*" else _unescape(value)
                key = identity or (number, index)
                before = spans[layer.column].get(key, TextSpan(start, end, kind, quote=""))
                wide = before._replace(start=min(start, before.start), end=max(end, before.end))
                spans[layer.column][key] = wide._replace(quote=f"{before.quote} {_unescape(unit[3])}".strip())
    text = "".join(parts)
    layered = [AnnotatedText(str(path), text, list(of_layer.values())) for of_layer in spans.values()]
    placed = to_characters(layered, "utf-16")
    if placed.remark:
        logger.warning("%s: %s", path, placed.remark)
    return Document(
        text, {column: annotated.spans or [] for column, annotated in zip(spans, placed.texts, strict=True)}, unread
    )


def _layers(line: str) -> Iterator[_Layer]:
    """Yield the columns of a line such as #T_SP=LAYER|FEATURE|FEATURE; only plain features of spans are read."""
    kind, _, rest = line.partition("=")
    layer, *features = rest.split("|")
    name = layer.rpartition(".")[2]
    spans = kind == "#T_SP" and not any(part in layer for part in _NO_SPANS)
    slot = False
    for feature in [given for given in features if given] or [""]:
        role = feature.startswith("ROLE_")
        yield _Layer(name, feature, spans and not role and not slot)
        slot = role  # the next column has its targets


def _unescape(value: str) -> str:
    return _ESCAPED.sub(lambda match: _CONTROL.get(match[1], match[1]), value)


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _read_cas(path: Path, encoding: str) -> Document:
    try:
        given = json.loads(read_text(path, encoding))
        structures = given["%FEATURE_STRUCTURES"]
        structures = structures if isinstance(structures, list) else list(structures.values())
        texts = {
            structure.get("%ID"): structure["sofaString"]
            for structure in structures
            if isinstance(structure.get("sofaString"), str)
        }
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError) as error:
        raise InputError(f"{path}: invalid CAS JSON ({type(error).__name__}: {error}); export it again") from None
    if len(texts) != 1:
        raise InputError(f"{path}: {len(texts)} texts (sofaString) in this CAS; export one view of a text document")
    (text,) = texts.values()
    layers: dict[str, list[TextSpan]] = {}
    unread: Counter[str] = Counter()
    for structure in structures:
        kind = str(structure.get("%TYPE"))
        start, end = (structure.get(name, structure.get(f"^{name}")) for name in ("begin", "end"))
        if any(part in kind for part in _NO_SPANS) or not isinstance(start, int) or not isinstance(end, int):
            continue
        name = kind.rpartition(".")[2]
        if any(key in structure for key in ("@Governor", "@Dependent", "@next")):
            unread[name] += 1
            continue
        features = {key: value for key, value in structure.items() if key[:1] not in "%@^" and isinstance(value, str)}
        for feature in _string_features(given, kind) or [*features] or [""]:
            span = TextSpan(start, end, str(features.get(feature, "")) if feature else name)
            layers.setdefault(_column(name, feature), []).append(span)
    return Document(text, {key: to_character_offsets(text, spans, "utf-16") for key, spans in layers.items()}, unread)


def _string_features(cas: Mapping[str, Any], kind: str) -> list[str]:
    """Return the features of a type that are strings, as the type system of a CAS defines them."""
    definition = (cas.get("%TYPES") or {}).get(kind) or {}
    return [
        name
        for name, feature in definition.items()
        if isinstance(feature, dict) and feature.get("%RANGE") == "uima.cas.String"
    ]
