"""Corpora, label sets and tag schemes; readers and writers of files.

Text       text_files, streaming, format_detection, json_data, yaml_file
Columns    conll, conllu, hub, synthetic
Tables     tables, table_files, annotations
Surveys    survey, table_survey
Corpora    corpus, normalise, splits, read_options, arrays
Labels     tag_schemes, scheme_detection, labels
Words      words, lexicon
Output     output

hub needs the package `datasets` and lexicon PyTorch when they are imported; other modules import them on use only.
The data modules for these sources are defined in `structperc.datamodules`.
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from structperc.data.conll import read_conll, write_conll
    from structperc.data.conllu import read_conllu
    from structperc.data.corpus import Corpus
    from structperc.data.hub import read_hub
    from structperc.data.labels import LabelSet
    from structperc.data.lexicon import LowerCaseLexicon
    from structperc.data.normalise import normalise_labels, rename_types
    from structperc.data.read_options import ReadOptions
    from structperc.data.synthetic import local_f1_bound, synthetic_splits
    from structperc.data.tag_schemes import Span, spans

__all__ = [
    "read_conll",
    "write_conll",
    "read_conllu",
    "read_hub",
    "synthetic_splits",
    "local_f1_bound",
    "ReadOptions",
    "Corpus",
    "normalise_labels",
    "rename_types",
    "LabelSet",
    "Span",
    "spans",
    "LowerCaseLexicon",
]

__getattr__ = lazy_imports(
    __name__,
    {
        "structperc.data.conll": ["read_conll", "write_conll"],
        "structperc.data.conllu": ["read_conllu"],
        "structperc.data.hub": ["read_hub"],
        "structperc.data.synthetic": ["synthetic_splits", "local_f1_bound"],
        "structperc.data.read_options": ["ReadOptions"],
        "structperc.data.corpus": ["Corpus"],
        "structperc.data.labels": ["LabelSet"],
        "structperc.data.tag_schemes": ["Span", "spans"],
        "structperc.data.normalise": ["normalise_labels", "rename_types"],
        "structperc.data.lexicon": ["LowerCaseLexicon"],
        "structperc.datamodules.sources": ["Conll", "Conllu", "Hub", "Synthetic", "Table", "InMemory"],
    },
)
