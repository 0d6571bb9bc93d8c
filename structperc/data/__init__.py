"""Files or hub -> rows of sentences -> columns of strings, in flow order.

text.py                                      a text file -> lines, with errors that name file and line
other_formats.py                             what a file is that is no text in its encoding
unfinished.py                                names of files that are not complete yet; what was left of them is swept
output.py                                    bytes or lines -> a file that is complete or what it was before
reading.py                                   how a file of columns is to be read
not_columns.py                               text that is no column file although it could be read as such
conll.py, conllu.py, hub.py, synthetic.py    a file, a hub data set or a seed -> `datasets.Dataset`
patterns.py                                  the sentences of synthetic.py
rows.py                                      the row format they share: one sentence per row
corpus.py                                    rows -> `Corpus`, sentences or documents as flat columns
normalise.py                                 labels of a corpus repaired and brought into another tag scheme
labels.py                                    tag schemes, segments, `LabelSet` with its masks
schemes.py                                   the tag scheme of labels where nobody says
words.py, lexicon.py                         words by number, their shapes; which are usually in lower case

conll, conllu, hub, synthetic and rows need the package `datasets`; the others do not.
"""
