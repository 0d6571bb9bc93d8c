"""Corpora, label sets and tag schemes; readers and writers of files.

Text       text_files, format_detection, json_data, yaml_file
Columns    conll, hub, synthetic
Tables     tables, annotations, standoff
Surveys    survey, conversion
Corpora    corpus, normalise, splits, read_options, arrays
Labels     tag_schemes, scheme_detection, labels, possible_labels
Words      words, lexicon, word_vectors
Output     output

When they are imported, hub needs the package `datasets`, and lexicon and word_vectors PyTorch; other modules import
them on use only.
The data modules for these sources are defined in `structperc.datamodules`.
"""

from importlib import import_module
from typing import Any

import lazy_loader

_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_DATA_MODULES = (
    "Conll",
    "Conllu",
    "Hub",
    "Synthetic",
    "Table",
    "InMemory",
    "Combined",
)  # configurations name them here


def __getattr__(name: str) -> Any:
    return getattr(import_module("structperc.datamodules"), name) if name in _DATA_MODULES else _find(name)
