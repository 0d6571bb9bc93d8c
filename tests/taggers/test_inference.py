"""A trained tagger on new sentences, against labellings enumerated and scored by hand from its named weights."""

import itertools
import json
import math
from collections import defaultdict

import pytest
import torch

from structperc.cli.main import main
from structperc.data.corpus import Corpus
from structperc.data.synthetic import synthetic_corpus
from structperc.data.tag_schemes import first_violation
from structperc.errors import InputError
from structperc.taggers.tagger import Tagger
from tests.errors import error_message
from tests.forks import printing, run_code
from tests.oracle import label_sequences

LIKELIHOOD = """
seed_everything: 1
trainer: {{max_epochs: {epochs}, default_root_dir: {root}, enable_progress_bar: false, accelerator: cpu}}
data:
  class_path: structperc.data.Conll
  init_args:
    path: {folder}
    files: {{train: train.txt, dev: train.txt}}
    columns: [word, label]
    batch_size: 2
model:
  features:
    class_path: structperc.features.FeatureExtractor
    init_args: {{node: [bias, {{of: [w], at: [-1, 0]}}], cutoff: 1}}
  scorer: {{class_path: structperc.scorers.SparseLinear, init_args: {{sparse_grad: {sparse}}}}}
  criterion: {{class_path: structperc.criteria.CRFLoss}}
  search: {{class_path: structperc.chain.KBest, init_args: {{k: 1}}}}
  optimizer: {{class_path: {optimizer}, init_args: {{lr: {lr}}}}}
"""
TEXT = """Anna B-PER
Smith I-PER
sleeps O

Rome B-LOC
waits O
for O
Anna B-PER

New B-LOC
York I-LOC
sleeps O

Smith B-PER
waits O

York B-LOC
"""
GOLD = [[line.split() for line in block.split("\n")] for block in TEXT.strip().split("\n\n")]
SENTENCES = [[word for word, _ in sentence] for sentence in GOLD]
UNSEEN = ["Anna", "waits", "elsewhere", "York"]


def fit(folder, optimizer, lr, sparse="false", epochs=20):
    """Trains by likelihood through the program; -> the saved model."""
    (folder / "train.txt").write_text(TEXT)
    options = {"optimizer": optimizer, "lr": lr, "sparse": sparse, "epochs": epochs}
    config = folder / "likelihood.yaml"
    config.write_text(LIKELIHOOD.format(root=folder / "runs", folder=folder, **options))
    assert main(["fit", "-c", str(config)]) == 0
    return Tagger.load(folder / "runs" / "1" / "model")


@pytest.fixture(scope="module")
def likely(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("likelihood"), "torch.optim.Adam", 0.1)


@pytest.fixture(scope="module")
def perceptron(trained):
    return Tagger.load(trained.folder / "model")


@pytest.fixture(scope="module")
def text():
    """Sentences with all columns of the embedded corpus but the labels, and the document of each."""
    corpus = Corpus.from_dataset(synthetic_corpus(5, 6), "document")
    roles = ("word", "pos", "chunk")
    columns = [corpus.sentences_of(corpus.columns[role]) for role in roles]
    sentences = [dict(zip(roles, sentence, strict=True)) for sentence in zip(*columns, strict=True)]
    documents = [
        d
        for d, a, b in zip(corpus.documents, corpus.starts, corpus.starts[1:], strict=False)
        for s in corpus.sentences[:-1]
        if a <= s < b
    ]
    return sentences, documents


class ByHand:
    """Scores of labellings from a tagger's weights and feature names alone."""

    def __init__(self, tagger):
        self.labels = tagger.labels.names
        rows = tagger.scorer.node.detach().double()
        self.node = defaultdict(lambda: torch.zeros(len(self.labels), dtype=torch.float64))
        self.node.update(zip(tagger.features.index.names("node"), rows, strict=True))
        self.transition = tagger.scorer.transition.detach().double()

    def score(self, words, labelling):
        ids = [self.labels.index(name) for name in labelling]
        before = ["_B-1", *words[:-1]]
        total = sum(self.transition[i, j] for i, j in itertools.pairwise(ids))
        for word, previous, y in zip(words, before, ids, strict=True):
            total += sum(self.node[name][y] for name in ("bias", f"w[0]={word}", f"w[-1]={previous}"))
        return float(total)

    def ranked(self, words):
        """All legal labellings with score and log-probability, best first."""
        possible = [y for y in label_sequences(len(words), self.labels) if first_violation(y, "IOB2") is None]
        scores = [self.score(words, y) for y in possible]
        log_z = math.log(sum(map(math.exp, scores)))
        found = [(score, score - log_z, list(y)) for score, y in zip(scores, possible, strict=True)]
        return sorted(found, key=lambda one: -one[0])


# -- training by likelihood -----------------------------------------------------------------------------------


def test_crf_with_optimizers_of_torch(likely, tmp_path):
    """Adam, and SGD with dense and with sparse gradients."""
    folders = [tmp_path / name for name in ("dense", "sparse")]
    for folder in folders:
        folder.mkdir()
    dense, sparse = (fit(f, "torch.optim.SGD", 0.3, s) for f, s in zip(folders, ("false", "true"), strict=True))
    for tagger in (likely, dense):
        assert tagger.tag(SENTENCES) == [[label for _, label in sentence] for sentence in GOLD]
        likelihood = sum(found[0].log_probability for found in tagger.kbest(SENTENCES, 1))
        untrained = sum(-math.log(len(ByHand(tagger).ranked(words))) for words in SENTENCES)
        assert likelihood > untrained / 2
    for a, b in zip(dense.scorer.parameters(), sparse.scorer.parameters(), strict=True):
        torch.testing.assert_close(a, b)
        assert a.abs().sum() > 0


# -- labels ---------------------------------------------------------------------------------------------------


def test_words_may_be_given_bare_or_as_a_column(likely):
    assert likely.tag([{"word": words} for words in SENTENCES]) == likely.tag(SENTENCES)


def test_tag_by_hand(likely):
    for words in [*SENTENCES, UNSEEN]:
        assert likely.tag([words]) == [ByHand(likely).ranked(words)[0][2]]


def test_neighbours_in_the_list_change_nothing(perceptron, text):
    sentences, _ = text
    assert perceptron.tag(sentences) == [perceptron.tag([sentence])[0] for sentence in sentences]
    assert perceptron.tag(sentences[::-1]) == perceptron.tag(sentences)[::-1]


def test_document_as_one_sequence(perceptron, text):
    sentences, documents = text
    corpus = Corpus.from_sentences(sentences, documents, "document")
    assert len(corpus) == len(set(documents)) < len(sentences)
    tagged = perceptron.tag(sentences, documents)
    assert tagged == perceptron.label(corpus)
    assert [len(labels) for labels in tagged] == [len(sentence["word"]) for sentence in sentences]


def test_scattered_documents(perceptron, text):
    sentences, _ = text
    with pytest.raises(InputError, match="document"):
        perceptron.tag(sentences[:3], [0, 1, 0])


def test_a_new_process_gives_the_same_labels(perceptron, text, trained, fork_server, tmp_path):
    sentences, documents = text
    code = (
        "import json, sys; from structperc.taggers.tagger import Tagger; "
        "print(json.dumps(Tagger.load(sys.argv[1]).tag(*json.loads(sys.argv[2]))))"
    )
    given = json.dumps([sentences, [int(d) for d in documents]])
    log, out = tmp_path / "log", tmp_path / "out"
    assert fork_server(log, printing, out, run_code, code, str(trained.folder / "model"), given).status == 0, (
        log.read_text()
    )
    assert json.loads(out.read_text()) == perceptron.tag(sentences, documents)


def test_missing_column_is_named(perceptron):
    for sentence in (["Anna", "sleeps"], {"word": ["Anna"], "pos": ["NNP"]}):
        with pytest.raises(InputError) as error:
            perceptron.tag([sentence])
        assert "'pos'" in str(error.value) or "'chunk'" in str(error.value)
        assert "\n" not in str(error.value)


def test_no_words_at_all(perceptron):
    with pytest.raises(InputError, match="'word'"):
        perceptron.tag([{"pos": ["NNP"], "chunk": ["B-NP"]}])


def test_columns_of_unequal_length(perceptron):
    with pytest.raises(InputError, match=r"sentence 2 .*1 .*2"):
        perceptron.tag(
            [{"word": ["a"], "pos": ["b"], "chunk": ["c"]}, {"word": ["a"], "pos": ["b", "b"], "chunk": ["c"]}]
        )


def test_a_string_is_no_sentence(likely):
    for sentences in (["Anna sleeps"], "Anna sleeps", [{"word": "Anna sleeps"}]):
        for method in (likely.tag, likely.marginals, lambda given: likely.kbest(given, 2)):
            with pytest.raises(InputError, match=r"'Anna sleeps'.*\[words\]"):
                method(sentences)
    with pytest.raises(InputError, match="3"):
        likely.tag([["Anna", 3]])
    with pytest.raises(InputError, match=r"1 document .*2 sentences"):
        likely.tag([["Anna"], ["Bo"]], documents=[0])


def test_iterators(likely):
    def sentences():
        return ((word for word in sentence) for sentence in SENTENCES)

    assert likely.tag(sentences()) == likely.tag(SENTENCES)
    assert likely.tag(sentences(), iter(range(len(SENTENCES)))) == likely.tag(SENTENCES)
    assert likely.kbest(sentences(), 2) == likely.kbest(SENTENCES, 2)
    columns = ({"word": iter(sentence)} for sentence in SENTENCES)
    for found, expected in zip(likely.marginals(columns), likely.marginals(SENTENCES), strict=True):
        assert torch.equal(found, expected)


def test_more_candidates_than_paths(likely):
    """Lists of 10^15 of them would fit into no memory."""
    short = [["Anna"], ["Rome", "waits"]]
    assert likely.kbest(short, 10**15) == likely.kbest(short, len(likely.labels) ** 2)
    with pytest.raises(InputError, match="set k lower"):
        likely.kbest([["Anna"] * 40], 10**15)


@pytest.mark.parametrize("which", ["likely", "perceptron"])
def test_no_sentences(which, request):
    tagger = request.getfixturevalue(which)
    assert tagger.tag([]) == []
    assert tagger.kbest([], 3) == []


def test_empty_sentences(likely, perceptron):
    assert likely.tag([[], ["Anna"], []]) == [[], likely.tag([["Anna"]])[0], []]
    assert likely.tag([[]]) == [[]]
    nothing = {"word": [], "pos": [], "chunk": []}
    assert perceptron.tag([nothing, nothing]) == [[], []]
    assert [one.labels for one in likely.kbest([[]], 3)[0]] == [[]]
    assert likely.kbest([[]], 3)[0][0].log_probability == pytest.approx(0)
    assert likely.marginals([[], ["Anna"]])[0].shape == (0, 5)


# -- k best ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 7, 100_000])
def test_kbest_by_hand(likely, k):
    sentences = [*SENTENCES, UNSEEN]
    for words, found in zip(sentences, likely.kbest(sentences, k), strict=True):
        wanted = ByHand(likely).ranked(words)[:k]
        assert len(found) == len(wanted)
        assert [one.score for one in found] == pytest.approx([score for score, _, _ in wanted], abs=1e-4)
        assert [one.log_probability for one in found] == pytest.approx([log_p for _, log_p, _ in wanted], abs=1e-4)
        assert len({tuple(one.labels) for one in found}) == len(found)
        for one in found:
            assert one.score == pytest.approx(ByHand(likely).score(words, one.labels), abs=1e-4)


@pytest.mark.parametrize("k", [5, 100_000])
def test_sum_of_log_probabilities(likely, k):
    for words, found in zip(SENTENCES, likely.kbest(SENTENCES, k), strict=True):
        total = sum(math.exp(one.log_probability) for one in found)
        complete = k >= len(ByHand(likely).ranked(words))
        assert total == pytest.approx(1, abs=1e-4) if complete else total < 1 + 1e-6


def test_kbest_of_a_perceptron_has_scores_only(perceptron, text):
    sentences, _ = text
    for sentence, found in zip(sentences, perceptron.kbest(sentences, 4), strict=True):
        scores = [one.score for one in found]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(one.labels) for one in found}) == len(found) == 4
        assert all(one.log_probability is None for one in found)
        assert all(first_violation(one.labels, "IOB2") is None for one in found)
        assert found[0].score == pytest.approx(perceptron.kbest([sentence], 1)[0][0].score)


@pytest.mark.parametrize("k", [0, -1])
def test_bad_k(likely, k):
    with pytest.raises(InputError, match=r"^k "):
        likely.kbest(SENTENCES, k)


# -- marginals ------------------------------------------------------------------------------------------------


def test_marginals_by_hand(likely):
    sentences = [*SENTENCES, UNSEEN]
    for words, table in zip(sentences, likely.marginals(sentences), strict=True):
        wanted = torch.zeros(len(words), len(likely.labels), dtype=torch.float64)
        for _, log_p, labelling in ByHand(likely).ranked(words):
            for t, name in enumerate(labelling):
                wanted[t, likely.labels.index(name)] += math.exp(log_p)
        torch.testing.assert_close(table.double(), wanted, atol=1e-5, rtol=0)
        torch.testing.assert_close(table.sum(1), torch.ones(len(words)), atol=1e-5, rtol=0)


def test_marginals_of_a_perceptron(perceptron, text):
    found = error_message(perceptron.marginals, text[0])
    assert "Perceptron" in found
    assert "CRFLoss" in found
