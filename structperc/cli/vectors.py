"""structperc vectors FILE [FILE ...] -o VECTORS: word vectors from the words of files."""

from structperc.cli.arguments import Command, CommandParser, add_data_options, data_reading


def parser() -> CommandParser:
    """Return the parser of the command's arguments."""
    made = CommandParser("vectors", "Train word vectors for WordEmbedding on the words of files, labelled or not.")
    made.add_argument("files", nargs="+", metavar="file", help="CoNLL columns or CoNLL-U")
    made.add_argument("-o", "--output", required=True, help="write here; name it .safetensors")
    made.add_argument("--width", type=int, default=100, help="numbers of a vector (default 100)")
    made.add_argument("--window", type=int, default=2, help="words to each side that are looked at (default 2)")
    made.add_argument("--cutoff", type=int, default=3, help="how often a word must occur (default 3)")
    add_data_options(made)
    return made


def run(arguments: list[str]) -> None:
    """Read the files, train the vectors and write them."""
    options = parser().parse_args(arguments)

    from structperc.data.survey import survey_file
    from structperc.encoders.cooccurrence import cooccurrence_vectors
    from structperc.encoders.word_vectors import check_vectors_target, write_vectors
    from structperc.progress import bar

    check_vectors_target(options.output)
    texts = []
    for file in bar(options.files, "reading"):
        corpus = survey_file(file, data_reading(options)).corpus
        texts += corpus.sentences_of(corpus.columns["word"])
    words, vectors = cooccurrence_vectors(texts, options.width, options.window, options.cutoff)
    write_vectors(options.output, words, vectors)
    tokens = sum(map(len, texts))
    print(f"{options.output}: vectors of {len(words):,} words, width {options.width}, from {tokens:,} tokens")


VECTORS = Command("vectors", "FILE [FILE ...]", "word vectors from the words of files", run)
