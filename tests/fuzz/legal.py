"""What must be accepted without a word although it was changed: by kind and mutation (with * and ?), and why.

Where the reason is SAME, the command must give what it gives for the right input.
"""

from fnmatch import fnmatchcase

SAME = "means the same"
SHORTER = "the part that is left is one, too"
OTHER = "other text is text, too"

PHRASES = (
    "line separators of Unicode",
    "form feed",
    "NUL put in",
    "* phrase*",
    "phrase *",
    "spaces of Unicode",
    "columns",
    "a web page",
    "one long line",
    "brackets nested",
    "plain text",
    "JSON",
    "very many phrases",
)
SPELLINGS = {
    "CRLF": SAME,
    "one CR": SAME,
    "CR alone": SAME,
    "no last line end": SAME,
    "empty lines after": SAME,
    "byte-order mark": SAME,
    "gzip": SAME,
    "a link to it": SAME,
}
ACCIDENTS = {
    "truncated": SHORTER,
    "bit flipped": OTHER,
    "bytes replaced": OTHER,
    "bytes dropped": OTHER,
    "part twice": OTHER,
    "twice": "nothing forbids the same text again",
    "another file in its place": OTHER,
    "latin-1": OTHER,
}

DEFAULT = "what may be left out has a default"
WEIGHTS_ALONE = "to label a text, weights are all that is read of a checkpoint"
COUNTS = "counts of the trainer that steer nothing"
WEIGHT = "without checksums, as in format 2, another number is another weight"
WORD = "without checksums, as in format 2, another word is another word"
HELP = "asks for help"
ANY_WORD = "a word is any text without spaces and tabs"
ANY_LABEL = "a label is any text without spaces and tabs"
NOT_READ = "this is not read"
PHRASE = "a line is a phrase, whatever it says; one that no text has costs nothing"

LEGAL: dict[str, dict[str, str]] = {
    "columns": {
        **SPELLINGS,
        **ACCIDENTS,
        "plain text": "tag says that it takes it for running text",
        "tabs in a line": SAME,
        "two spaces": SAME,
        "two tabs": SAME,
        "spaces around": SAME,
        "all tabs": SAME,
        "no empty lines": "one long sentence is a sentence",
        "empty lines everywhere": "sentences of one word are sentences",
        "no documents": "sentences without marks of documents are documents",
        "line of a space*": "a line of white space ends a sentence",
        "many types": "a segment may be of any type",
        "all labels O": "fit says so above its bar; other commands take any labels",
        "long sentence": "there is no longest sentence",
        "word of *": ANY_WORD,
        "word with *": ANY_WORD,
        "long word": ANY_WORD,
        "word -DOCSTART-": "a line that begins so opens a document",
        "label *": "the column of labels is not read unless it is asked for",
        "unknown label": "the column of labels is not read unless it is asked for",
        "fields swapped": "check tells what is in a file; elsewhere the column of labels is not read",
        "no label of the scheme": "the column of labels is not read unless it is asked for",
    },
    "conllu": {
        **SPELLINGS,
        **ACCIDENTS,
        "head of text": NOT_READ,
        "form of *": "FORM is any text; an underscore is a word, too",
        "form with markup": "FORM is any text",
        "tag with a space": "a tag is any text between tabs",
        "unknown tag": "tags are those of the data",
        "id of an empty node": "empty nodes are no words of the text, and are skipped",
        "no tag": "tags of the other kind are not read, and where others are known _ is one, too",
        "comment in a sentence": "comments are dropped wherever they stand",
    },
    "templates": {
        **SPELLINGS,
        **ACCIDENTS,
        "no colon": "CRF++ takes any text before a macro",
        "U alone": "a template without macros is the bias",
        "form feed": "white space around a template does not count",
    },
    "gazetteers": {**SPELLINGS, **ACCIDENTS, **dict.fromkeys(PHRASES, PHRASE)},
    "clusters": {
        **SPELLINGS,
        **ACCIDENTS,
        "long path": "paths have any length",
        "frequency *": NOT_READ,
        "negative *": NOT_READ,
    },
    "vectors": {
        **SPELLINGS,
        **ACCIDENTS,
        "tensors: half precision": "numbers of any precision are numbers",
        "tensors: truth values": "numbers of any precision are numbers",
        "tensors: integers": "numbers of any precision are numbers",
        "tensors: bit flipped": "an own number or word in place of another",
        "underscores in numbers": "Python reads 1_0 as 10",
        "no word": "a word without letters is in no text",
        "tensors: empty words": "a word without letters is in no text",
        "word twice": "the first vector counts",
        "tensors: word twice": "the first vector counts",
        "no counts": "the line of counts may be missing",
    },
    "predictions": {
        **SPELLINGS,
        **ACCIDENTS,
        "tabs in a line": SAME,
        "two spaces": SAME,
        "two tabs": SAME,
        "spaces around": SAME,
        "all tabs": SAME,
        "label with a space of Unicode": ANY_LABEL,
        "label I- after O": "in IOB1 it begins a segment; without segments a label is any text",
        "label of a dash": "without segments a label is any text",
        "unknown label": "of any label it can be said whether two systems agree on it",
    },
    "studies": {
        **SPELLINGS,
        **ACCIDENTS,
        "* removed": DEFAULT,
        "rows.*.seeds.* := *": "any number that can be a seed is one",
        "options with an entry twice": "the last of two options counts",
        "* reversed": "files and options may stand in any order",
    },
    "configurations": {
        **SPELLINGS,
        **ACCIDENTS,
        "* removed": DEFAULT,
        "merge key": "YAML has merge keys; what they bring is checked as what is written out",
        "model.features.init_args.node*with an entry twice": "templates count once",
        "trainer.default_root_dir := *": "a folder has any name",
        "seed_everything := *": "any number that can be a seed is one",
        "checkpoint.save_top_k := 10*": "all are kept of fewer",
        "model.optimizer.init_args.lr := *": "torch takes any learning rate from 0 on",
        "model.criterion.init_args.C := *": "any number from 0 on is a margin",
        "checkpoint.filename := *": "a name of a file is any text",
    },
    "models": {
        "kept: *": SAME,
        "empty lines after": SAME,
        "tensors: a link to it": "the hub keeps the files of a model as links",
        "features.vocabularies.* swapped": WORD,
        "*.learned.* cut": WORD,
        "features.vocabularies.* := *": WORD,
        "tensors: bit flipped": WEIGHT,
        "tensors: bytes replaced": WEIGHT,
        "header: metadata": NOT_READ,
        "*: one huge": WEIGHT,
        "*: one negative": WEIGHT,
        "*: all zero": WEIGHT,
        "*: shuffled": WEIGHT,
    },
    "checkpoints": {
        "*: an entry of the archive missing": "without its notes on versions an archive holds the same tensors",
        "labelling: loops*": WEIGHTS_ALONE,
        "labelling: callbacks*": WEIGHTS_ALONE,
        "labelling: random_states*": WEIGHTS_ALONE,
        "labelling: optimizer_states*": WEIGHTS_ALONE,
        "labelling: lr_schedulers*": WEIGHTS_ALONE,
        "*: model with a key more": "the commands take the model from configuration and data",
        "*: model.*": "the commands take the model from configuration and data",
        "training: loops*": COUNTS,
        "training: callbacks*": COUNTS,
        "*: bit flipped": "between its parts, whose checksums are looked at, an archive may hold anything",
        "*: a link to it": SAME,
    },
    "command_lines": {
        "-h: another command": HELP,
        "help: another command": HELP,
        "--version: another command": HELP,
        "*: without *": DEFAULT,
        "* twice": "the last of two options counts, and two equal files or numbers may be given",
        "* swapped": "in the other order it is right, too",
        "*: with --debug": "it shows tracebacks, and there is none",
        "*: argument 1 := 'runs/crf/1/model'": "that is a model, too",
        "tag: argument [56] := *": "a column that a model does not read has any name",
        "decisions: --html := *": "a name of a file is any text",
        "weights: --csv := *": "a name of a file is any text",
        "tag: -o := *": "a name of a file is any text",
        "*: with --encoding=latin-1": "every file is a text of latin-1",
        "fit: --model.beta := *": "beta is any number above 0",
    },
}


def reason(kind: str, mutation: str) -> str | None:
    """Why a mutation of this kind is to be accepted, if it is."""
    return next((why for which, why in LEGAL[kind].items() if fnmatchcase(mutation, which)), None)
