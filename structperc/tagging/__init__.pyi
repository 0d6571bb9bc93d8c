from .labelled_files import read_corpus as read_corpus
from .labelled_files import read_incomplete as read_incomplete
