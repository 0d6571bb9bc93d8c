"""Files or hub -> rows of sentences -> columns of strings, in flow order.

arriving.py, blocks.py                       a text file in pieces, as it comes -> whole sentences, documents or lines
text.py                                      a text file -> lines, with errors that name file and line
other_formats.py                             what a file is that is no text in its encoding
unfinished.py                                names of files that are not complete yet; what was left of them is swept
output.py                                    bytes or lines -> a file that is complete or what it was before
reading.py                                   how a file of columns is to be read
not_columns.py, recognition.py               text that is no column file although it could be read as such; what it is
json_lines.py                                objects on lines
even_columns.py                              a column file whose lines are all alike -> `Corpus`, at once
conll.py, conllu.py, hub.py, synthetic.py    a file, a hub data set or a seed -> `datasets.Dataset`
patterns.py                                  the sentences of synthetic.py
tables.py, table_files.py, table_names.py    a sentence, a token or a marked text a row -> the same; parquet, JSON, CSV
annotations.py, exports.py                   texts with spans -> tokens with labels; rows of annotation tools
rows.py                                      the row format they share: one sentence per row
distinct.py, column.py                       a column -> its distinct strings, and which of them is where; as a list
corpus.py                                    rows -> `Corpus`, sentences or documents as flat columns
normalise.py                                 labels of a corpus repaired and brought into another tag scheme
stretches.py, array_folder.py                arrays in memory or in files, of which stretches are read; folders of them
holdout.py, pieces.py                        sequences of a corpus that are held out; where it is cut into pieces
tags.py                                      tag schemes: what may follow what, and where a segment begins
labels.py                                    `LabelSet`: the labels of a task by number, and their masks
segments.py, segment_masks.py                segments of labellings: their one reader; the same for tensors of label ids
schemes.py                                   the tag scheme of labels where nobody says
survey.py, table_survey.py                   what a labelled file holds, found by looking at it
yaml_file.py, typed.py                       YAML and JSON as plain values of the types that are due
words.py, lexicon.py                         words by number, their shapes; which are usually in lower case

hub and table_files need the package `datasets`, and so do `rows` and what makes rows by it, such as `read_conll`, when
they are called. segment_masks and lexicon need PyTorch, and labels where a tensor of theirs is asked for. The
others need neither.
The data modules that read these sources are made in `structperc.datamodules`; they are named here, beside their
sources.
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

__getattr__ = lazy_imports(  # sources need datasets, data modules torch and Lightning, too
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
