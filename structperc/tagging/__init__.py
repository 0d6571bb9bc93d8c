"""Files that a saved model reads and labels, block by block.

column_roles.py    roles of the columns of a file
reading.py         input: columns, running text or JSON lines as corpora
labelled_files.py  files with gold labels as corpora
labelling.py       blocks and files labelled by a model
writing.py         output of labelled blocks, and the files it is written to
"""
