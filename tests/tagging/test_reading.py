"""Where a file may be cut that a model labels: what the model or the format looks at stays together."""

from types import SimpleNamespace

import pytest

from structperc.data.format_detection import read_head
from structperc.data.labels import LabelSet
from structperc.data.read_options import ReadOptions
from structperc.features import CaseElsewhere, FeatureExtractor, TokenMajority
from structperc.tagging.reading import plan_input

MARKED, PLAIN = "-DOCSTART-\n\nAnna\n\nBo\n\n", "Anna\n\nBo\n\n"
TEXT, OBJECTS = "Anna left. Bo too.\n\nWhy?\n\n", '{"text": ""}\n'


def cut(text, extent="sequence", unit="sentence", output_format=None, form=None, sentences="rules"):
    known = {
        "extent": extent,
        "unsupported_reason": None,
        "training_files": {},
        "labels": LabelSet(("O", "B-PER", "I-PER")),
    }
    tagger = SimpleNamespace(columns=["word"], unit="sentence", check_reads_words_only=lambda: None, **known)
    begun = read_head(iter([text, "more"]), lambda lines: True)
    reading = ReadOptions(unit=unit, form=form, sentences=sentences)
    return plan_input(tagger, begun, "file", output_format, reading).cut


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (PLAIN, {}, "sentences"),
        (MARKED, {}, "sentences"),
        (MARKED, {"unit": "document"}, "documents"),
        (MARKED, {"extent": "document"}, "documents"),
        (MARKED, {"extent": "corpus"}, "whole file"),
        (MARKED, {"output_format": "jsonl"}, "documents"),
        (MARKED, {"output_format": "html"}, "whole file"),
        (PLAIN, {"extent": "document"}, "sentences"),  # each of which is a document
        (PLAIN, {"extent": "corpus"}, "whole file"),
        (TEXT, {"form": "text"}, "paragraphs"),
        (TEXT, {"form": "text", "extent": "document"}, "whole file"),
        (TEXT, {"form": "text", "unit": "document"}, "whole file"),
        (TEXT, {"form": "text", "sentences": "one"}, "whole file"),
        (TEXT, {"form": "text", "output_format": "brat"}, "whole file"),
        (OBJECTS, {}, "lines"),
        (OBJECTS, {"extent": "document", "unit": "document"}, "lines"),
        (OBJECTS, {"extent": "corpus"}, "whole file"),
        (OBJECTS, {"output_format": "html"}, "whole file"),
    ],
)
def test_where_a_file_is_cut(text, options, expected):
    assert cut(text, **options) == expected


@pytest.mark.parametrize(
    ("documents", "extent"),
    [
        ({}, "sequence"),
        ({"case": CaseElsewhere()}, "document"),
        ({"case": CaseElsewhere(), "token": TokenMajority("w")}, "document"),
        ({"case": CaseElsewhere(), "token": TokenMajority("w", within="corpus")}, "corpus"),
    ],
)
def test_range_of_features(documents, extent):
    node = ["w[0]", *(f"{name}[0]" for name in documents)]
    assert FeatureExtractor(node, documents=documents).extent == extent
