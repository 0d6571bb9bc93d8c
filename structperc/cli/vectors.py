"""structperc vectors FILE [FILE ...] -o VECTORS: word vectors from the words of files."""

from argparse import Namespace

from structperc.cli.arguments import CommandParser, add_data_options, command, read_options


def _arguments(parser: CommandParser) -> None:
    parser.add_argument("files", nargs="+", metavar="file", help="CoNLL columns or CoNLL-U")
    parser.add_argument("-o", "--output", required=True, help="write here; name it .safetensors")
    parser.add_argument("--width", type=int, default=100, help="numbers of a vector (default 100)")
    parser.add_argument("--window", type=int, default=2, help="words to each side that are counted (default 2)")
    parser.add_argument("--cutoff", type=int, default=3, help="minimum occurrences of a word (default 3)")
    add_data_options(parser)


@command("FILE [FILE ...]", "word vectors from the words of files", _arguments)
def vectors(options: Namespace) -> None:
    """Train word vectors for WordEmbedding on the words of files, labelled or not."""
    from structperc.data.survey import survey_file
    from structperc.encoders.cooccurrence import cooccurrence_vectors
    from structperc.encoders.word_vectors import check_vectors_target, write_vectors
    from structperc.progress import bar

    check_vectors_target(options.output)
    texts = []
    for file in bar(options.files, "reading"):
        corpus = survey_file(file, read_options(options)).corpus
        texts += corpus.sentences_of(corpus.columns["word"])
    words, found = cooccurrence_vectors(texts, options.width, options.window, options.cutoff)
    write_vectors(options.output, words, found)
    tokens = sum(map(len, texts))
    print(f"{options.output}: vectors of {len(words):,} words, width {options.width}, from {tokens:,} tokens")
