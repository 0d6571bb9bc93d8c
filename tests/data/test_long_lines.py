"""Long texts without line ends or sentences: all that reads input takes time in proportion to its length.

A loop or regular expression of quadratic time would take many minutes for these texts.
"""

import pytest

from structperc.data.conll import detect_line_format, document_ends, header_row, scan_context, sentence_ends
from structperc.data.format_detection import (
    detect_format,
    is_conllu,
    is_detectable,
    is_json,
    looks_like_text,
    read_head,
)
from structperc.data.json_data import looks_like_json, parse_json_records
from structperc.data.scheme_detection import fit_scheme
from structperc.data.standoff import read_standoff
from structperc.data.table_files import detect_delimiter
from structperc.data.tag_schemes import suggest_label
from structperc.data.text_files import blocks, split_lines
from structperc.errors import InputError
from structperc.spelling import is_blank
from structperc.text.alignment import TextSpan, align, join_words
from structperc.text.tokenizer import conll_tokens, line_sentences, paragraph_ends, rule_sentences, ud_tokens

SIZE = 3 * 10**5  # characters of a text for detectors
SMALLER = 2 * 10**5  # for tokenizers, whose output is large
UNITS = ["a", "Anna ", "a|O ", "1\t", '["a", ']


def pieces(text):
    return (text[at : at + 2**17] for at in range(0, len(text), 2**17))


DETECTORS = {
    "format": lambda text: detect_format([text], 1, "file"),
    "format of columns": lambda text: detect_format([text], 2, "file"),
    "running text": lambda text: looks_like_text([text]),
    "CoNLL-U": lambda text: is_conllu([text]),
    "JSON": is_json,
    "JSON, by its beginning": lambda text: looks_like_json([text]),
    "JSON records": lambda text: parse_json_records(text, "file"),
    "line format": lambda text: detect_line_format([text]),
    "header": lambda text: header_row([text]),
    "context": lambda text: scan_context([text]),
    "scheme": lambda text: fit_scheme([[text]]),
    "label": lambda text: suggest_label(text, "IOB2"),
    "delimiter": lambda text: detect_delimiter(text, ".csv"),
    "blank": is_blank,
    "head": lambda text: read_head(pieces(text), lambda lines: is_detectable(lines, 1)).lines,
    "lines": split_lines,
    "sentences of columns": lambda text: list(sentence_ends(text)),
    "documents of columns": lambda text: list(document_ends(text)),
    "paragraphs": lambda text: list(paragraph_ends(text)),
    "blocks": lambda text: list(blocks(pieces(text), paragraph_ends)),
}


@pytest.mark.parametrize("name", DETECTORS)
def test_detectors_are_linear(name):
    for unit in UNITS:
        try:
            DETECTORS[name]((unit * SIZE)[:SIZE])
        except InputError:
            continue


@pytest.mark.parametrize(
    "unit",
    ["a ", ". ", '" ', "'' ", ") ", "Mr. ", "a-", "a.", "@a.", "http://.", "A. ", "\u200b", "a\u200b", "$ ", ")"],
)
def test_tokenizers_are_linear(unit):
    text = (unit * SMALLER)[: SMALLER // 16] + "x"
    for tokenizer in (conll_tokens, ud_tokens):
        tokens = tokenizer(text)
        assert rule_sentences(text, tokens)[-1] == line_sentences(text, tokens)[-1] == len(tokens)


@pytest.mark.parametrize("line", ["\n", " \n", "\u200b\n\n", "-DOCSTART-\n\n"])
def test_many_empty_lines(line):
    text = "Anna left.\n" + (line * SMALLER)[: SMALLER // 4] + "\n"
    empty = sum(one.strip(" ") == "" for one in text.split("\n")[:-1])
    assert len(list(paragraph_ends(text))) == empty
    head = read_head(pieces(text), lambda lines: is_detectable(lines, 2))
    assert len("".join(head.pieces)) == len(text)


def test_many_spans_that_overlap_or_do_not_fit():
    size = 10_000
    text = join_words([["ab"] * size])
    half = size // 2
    long = TextSpan(3 * half, 3 * size - 1, "A")
    before = [TextSpan(3 * n, 3 * half + 2, "B") for n in range(2, half)]  # all end in the first token of the long one
    found = align(text, [long, *before], overlaps="longest")
    assert found.spans == [(half, size, "A")]
    assert len(found.conflicts) == len(before)
    cut = [TextSpan(3 * n, 3 * size - 2, "A") for n in range(half)]
    assert {one.kind for one in align(text, cut, "drop").conflicts} == {"token cut"}


def test_webanno_of_many_sentences(tmp_path):
    rows, at = ["#FORMAT=WebAnno TSV 3.3", "#T_SP=webanno.custom.NamedEntity|value", "", ""], 0
    for number in range(1, 5_001):
        rows += [f"#Text=Anna \U0001f355{number}", f"{number}-1\t{at}-{at + 4}\tAnna\tPER[{number}]\t", ""]
        at += 8 + len(str(number))
    (tmp_path / "many.tsv").write_text("\n".join(rows), encoding="utf-8")
    (row,) = read_standoff(tmp_path / "many.tsv")
    spans = row[1]["spans"]
    assert len(spans) == 5_000
    assert {row[1]["text"][one["start"] : one["end"]] for one in spans} == {"Anna"}
