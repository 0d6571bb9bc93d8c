"""The documentation is true: its code runs and prints what it says, its names, options and links are there."""

import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pycrfsuite
import pytest
import torch
from torch import Tensor, nn
from torchcrf import CRF

import structperc
from structperc import Corpus, FeatureExtractor, LabelSet, Lattice, Tagger, kbest, log_partition, viterbi
from structperc.batching import EncodedCorpus
from structperc.chain import edge_marginals, path_score
from structperc.cli import main
from structperc.criteria import Likelihood
from structperc.encoders import WordEmbedding
from structperc.experiments.draft import draft
from structperc.optim import OWLQN
from structperc.structures import Candidates, Scored

ROOT = Path(__file__).parents[1]
DOCS, QUICKSTART = ROOT / "docs", ROOT / "configs" / "quickstart.yaml"
BUILT = "reference"  # written by docs/reference.py where somebody wants to read it, not stored
PAGES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(DOCS.glob("*.md"))
    if path.stem not in ("README", BUILT)
}
TEXTS = {"README": ROOT / "README.md", "docs/README": DOCS / "README.md"} | {
    f"docs/{name}": DOCS / f"{name}.md" for name in PAGES
}
RUN = ("data", "features", "search", "optimizers", "evaluation", "extending", "migration")
OVERLAYS = ("data", "features", "neural", "optimizers", "extending", "migration")

each_text = pytest.mark.parametrize("path", TEXTS.values(), ids=TEXTS)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Iterator[Path]:
    """The current folder, with what pages speak of: own.py, train.txt and template."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "train.txt").write_text(training_text(random.Random(5)), encoding="utf-8")
    (folder / "template").write_text("U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,0]\nB\n", encoding="utf-8")
    (folder / "own.py").write_text("\n".join(blocks("extending", "python")), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        yield folder


def training_text(draw: random.Random) -> str:
    """Forty sentences; two words are labelled by their first letter, the third at random."""
    words = [draw.choices(["Anna", "Bo", "met", "left"], k=draw.randint(1, 6)) for _ in range(40)]
    lines = [[f"{word} {draw.choice('XY') if word == 'Bo' else word[0]}\n" for word in sentence] for sentence in words]
    return "\n".join("".join(sentence) for sentence in lines)


@pytest.fixture(scope="module")
def ran(here) -> Callable[[str], dict[str, Any]]:
    """Runs the code of a page from top to bottom, once; -> its names. `print(...)  # text` must print that text."""

    @cache
    def run(page: str) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": page}
        torch.manual_seed(0)
        for number, code in enumerate(blocks(page, "python")):
            with redirect_stdout(StringIO()) as printed:
                exec(compile(code, f"{page}.md, block {number}", "exec"), names)
            if expected := re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE):
                assert printed.getvalue().splitlines() == expected
        return names

    return run


# -- pages, names, links -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> str:
    """The reference as the command writes it into a file."""
    file = tmp_path_factory.mktemp("reference") / "reference.md"
    command = [sys.executable, str(DOCS / "reference.py"), str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return file.read_text(encoding="utf-8")


def test_the_reference_has_every_public_name_once(reference):
    headings = re.findall(r"^### (structperc\..*)$", reference, re.MULTILINE)
    assert len(set(headings)) == len(headings)
    described = [resolved(name) for name in headings]
    rooms = [import_module(f"structperc.{room}") for room in structperc._STAGES]
    offered = [getattr(room, name) for room in rooms for name in getattr(room, "__all__", ())]
    assert offered
    assert not [one for one in offered if not any(one is other for other in described)]


def test_the_reference_has_docstrings_methods_and_links(reference):
    links, headings = re.findall(r"\]\(#([^)]+)\)", reference), re.findall(r"^### .*$", reference, re.MULTILINE)
    assert len(links) == len(headings)
    assert set(links) <= anchors(reference)
    stubs = dict(re.findall(r"^### structperc\.(\S+)\n\n```python\n(.*?)^```", reference, re.MULTILINE | re.DOTALL))
    assert Likelihood.__doc__ in stubs["criteria.Likelihood"]
    assert "unary: Tensor  # (B, T, L)" in stubs["structures.Lattice"]
    tagger = stubs["taggers.SequenceTagger"] + stubs["taggers.Tagger"]
    for method in ("tag", "kbest", "marginals", "save", "load", "decode"):  # some are of classes without an entry
        assert re.search(rf"^    def {method}\(", tagger, re.MULTILINE), method
    assert "def judge" in stubs["criteria.Criterion"]
    assert "def forward" not in stubs["criteria.Margin"]  # it is told with the base class


def test_the_reference_can_be_printed(reference, capsys):
    spec = spec_from_file_location("reference", DOCS / "reference.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    script.write("-")
    assert capsys.readouterr().out == reference


@pytest.mark.parametrize("page", RUN)
def test_code_runs_and_prints_what_it_says(page, ran):
    assert ran(page)


@pytest.mark.parametrize(("page", "number"), [(page, n) for page in OVERLAYS for n in range(len(blocks(page, "yaml")))])
def test_configurations_are_accepted_and_built(page, number, here):
    (here / "overlay.yaml").write_text(blocks(page, "yaml")[number], encoding="utf-8")
    draft(["-c", str(QUICKSTART), "-c", "overlay.yaml", "--trainer.default_root_dir=runs", "--trainer.accelerator=cpu"])


@each_text
def test_dotted_names_exist(path):
    for name in re.findall(r"\bstructperc(?:\.\w+)+", path.read_text(encoding="utf-8")):
        if not name.endswith((".toml", ".md")):
            assert resolved(name) is not None


def resolved(name: str) -> Any:
    """What users get for a dotted name: a room's own name before the file that is called the same."""
    found: Any = structperc
    for n, part in enumerate(name.split(".")[1:], 2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join(name.split(".")[:n]))
    return found


@each_text
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", path.read_text(encoding="utf-8")):
        file, _, heading = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        if heading:
            assert heading in anchors(target.read_text(encoding="utf-8")), link


def anchors(text: str) -> set[str]:
    """Headings as links name them."""
    found: Counter[str] = Counter()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        found[re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")] += 1
    return {f"{name}-{n}" if n else name for name, count in found.items() for n in range(count)}


def test_the_index_has_every_page():
    links = re.findall(r"\]\((\w+)\.md\)", TEXTS["docs/README"].read_text(encoding="utf-8"))
    assert set(links) == set(PAGES)
    assert len(links) == len(set(links))


# -- parts of one's own --------------------------------------------------------------------------------------


def labellings(lattice: Lattice, row: int) -> dict[tuple[int, ...], float]:
    """All labellings of a sequence with their scores, term by term."""
    edge, L = lattice.edge.expand(*lattice.unary.shape, -1), lattice.unary.shape[2]
    found = {}
    for labels in product(range(L), repeat=int(lattice.lengths[row])):
        steps = [edge[row, t, i, j] for t, (i, j) in enumerate(pairwise(labels), 1)]
        found[labels] = float(sum([lattice.unary[row, t, y] for t, y in enumerate(labels)] + steps))
    return found


def some_lattice(B: int, T: int, L: int) -> Lattice:
    lengths = torch.tensor([T, *range(1, B)])
    return Lattice(torch.randn(B, T, L).double(), torch.randn(B, T, L, L).double(), lengths)


@pytest.mark.parametrize("gamma", [0.0, 2.0])
def test_own_criterion_is_the_formula_it_gives(gamma, ran):
    lattice = some_lattice(4, 4, 3)
    criterion, gold = ran("extending")["FocalLikelihood"](gamma), torch.randint(3, (4, 4))
    unary = lattice.unary.requires_grad_()
    own, none = path_score(lattice, gold), torch.zeros(4, 0).double()
    candidates = Candidates(torch.zeros(4, 0, 4).long(), none, none.bool())
    scored = Scored(lattice, gold, candidates, own, none, torch.zeros_like(own), none)
    losses = criterion(scored)
    for row, loss in enumerate(losses.tolist()):
        scores = torch.tensor(list(labellings(lattice, row).values())).double()
        p = (own[row].detach() - scores.logsumexp(0)).exp()
        assert loss == pytest.approx(float(-((1 - p) ** gamma) * p.log()))
    if gamma == 0:
        torch.testing.assert_close(losses, Likelihood()(scored))
    (gradient,) = torch.autograd.grad(losses.sum(), unary)
    assert gradient.any()
    assert (gradient.sum(2).abs() < 1e-9).all()  # a constant added to all labels of a token changes nothing


def test_own_encoder_gives_vectors_that_do_not_depend_on_the_batch(ran):
    encoder = ran("extending")["Convolution"]([WordEmbedding(5, cutoff=1)], width=7, window=3).eval()
    words = [["Anna", "met", "Bo"], ["Bo"], ["met", "Anna", "met", "Anna"]]
    corpus = Corpus.from_sentences([{"word": sentence} for sentence in words])
    encoder.learn(corpus)
    features = FeatureExtractor(progress=False)
    features.fit(corpus)
    encoded = EncodedCorpus(corpus, features, LabelSet(("O",), "none"), encoder.read(corpus))
    whole = encoder(encoded[[0, 1, 2]])
    assert whole.shape == (3, 4, 7)
    assert encoder.width == 7
    for row, sentence in enumerate(words):
        torch.testing.assert_close(whole[row, : len(sentence)], encoder(encoded[[row]])[0])
        assert not whole[row, len(sentence) :].any()
    assert whole[0].any()


def test_own_optimizer_makes_steps_of_one_length(ran):
    kind = ran("extending")["Normalised"]
    weights = [nn.Parameter(torch.zeros(2, 2)) for _ in range(2)]
    dense, sparse = (kind([w], lr=2.0) for w in weights)
    for gradient in ([[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, -5.0], [0.0, 0.0]]):
        weights[0].grad = torch.tensor(gradient)
        weights[1].grad = weights[0].grad.to_sparse()
        dense.step()
        sparse.step()
    last, average = [[-1.2, 2.0], [0.0, -1.6]], [[-1.2, 2 / 3], [0.0, -1.6]]
    for w, optimizer in zip(weights, (dense, sparse), strict=True):
        torch.testing.assert_close(w.detach(), torch.tensor(last))
        with optimizer.averaged():
            torch.testing.assert_close(w.detach(), torch.tensor(average))


def test_own_source_is_read_like_any_other(ran):
    sentences = {"word": [["Anna", "met", "Bo"], ["Bo"]], "label": [["B-PER", "O", "I-PER"], ["I-PER"]]}
    data = ran("extending")["InMemory"]({"train": sentences}, labels="IOB1")
    assert data.corpus("train").columns["label"] == ["B-PER", "O", "B-PER", "B-PER"]
    assert not data.has("dev")
    documents = {**sentences, "document": [7, 7]}
    joined = ran("extending")["InMemory"]({"train": documents}, unit="document")
    assert joined.corpus("train").lengths.tolist() == [4]


def fit(*options: str) -> None:
    quiet = ["--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false", "--trainer.accelerator=cpu"]
    with redirect_stdout(StringIO()):
        assert main(["fit", *options, *quiet]) == 0


def test_own_parts_learn_and_are_saved(here):
    (overlay,) = blocks("extending", "yaml")
    (here / "own.yaml").write_text(overlay, encoding="utf-8")
    small = ["--data.train=20", "--data.dev=8", "--data.test=0", "--trainer.max_epochs=8"]
    fit("-c", str(QUICKSTART), "-c", "own.yaml", *small)
    metrics = (here / "runs/own/1/logs/version_0/metrics.csv").read_text(encoding="utf-8").splitlines()
    column = metrics[0].split(",").index("train/objective")
    objectives = [float(value) for line in metrics[1:] if (value := line.split(",")[column])]
    assert len(objectives) == 8
    assert objectives[-1] < objectives[0] / 2
    tagger = Tagger.load("runs/own/1/model", trusted=["own"])
    assert type(tagger.scorer.encoder).__module__ == "own"
    assert len(tagger.tag([["Mr.", "Lindal", "left", "."]])[0]) == 4


# -- other libraries -----------------------------------------------------------------------------------------


def as_crf(names: dict[str, Any]) -> CRF:
    """The module of pytorch-crf with the weights of the page."""
    crf = CRF(names["L"], batch_first=True)
    for name, key in (("start_transitions", "start"), ("transitions", "transitions"), ("end_transitions", "end")):
        setattr(crf, name, nn.Parameter(names[key]))
    return crf


def test_numbers_are_those_of_pytorch_crf(ran):
    names = ran("migration")
    crf, emissions, tags = as_crf(names), names["emissions"], names["tags"]
    lengths = torch.tensor([6, 1, 4])
    mask = torch.arange(6) < lengths[:, None]
    lattice = names["crf_lattice"](emissions, lengths, names["start"], names["transitions"], names["end"])
    ours = path_score(lattice, tags) - log_partition(lattice)
    torch.testing.assert_close(ours, crf(emissions, tags, mask, reduction="none"))
    scores, best = viterbi(lattice)
    decoded = crf.decode(emissions, mask)
    assert [row[:n].tolist() for row, n in zip(best, lengths, strict=True)] == decoded
    torch.testing.assert_close(scores, path_score(lattice, best))


def test_sub_words_are_left_out(ran):
    """Sentence by sentence what pytorch-crf says of the words alone, with no transitions at the ends."""
    names = ran("migration")
    crf = as_crf({**names, "start": torch.zeros(names["L"]), "end": torch.zeros(names["L"])})
    total = torch.zeros(())
    for row, kept in enumerate(names["word_labels"] != -100):
        logits, gold = names["logits"][row, kept][None], names["word_labels"][row, kept][None]
        total = total - crf(logits, gold)
        assert names["predicted"][row, kept].tolist() == crf.decode(logits)[0]
        assert (names["predicted"][row, ~kept] == -100).all()
    torch.testing.assert_close(names["loss"], total.detach())


def test_potentials_of_torch_struct_are_pairs_to_from(ran):
    names = ran("migration")
    potentials, lengths = torch.randn(2, 3, 3, 3).double(), torch.tensor([4, 2])
    lattice = names["chain_lattice"](potentials, lengths)
    pairs = edge_marginals(lattice)
    for row, n in enumerate(lengths.tolist()):
        scores = {
            y: float(sum(potentials[row, t, y[t + 1], y[t]] for t in range(n - 1)))  # z_{t+1}, z_t
            for y in product(range(3), repeat=n)
        }
        log_z = torch.tensor(list(scores.values())).double().logsumexp(0)
        assert log_partition(lattice)[row].item() == pytest.approx(log_z.item())
        best = max(scores, key=scores.get)
        assert kbest(lattice, 2).labels[row, 0, :n].tolist() == list(best)
        through = [(s - log_z).exp() for y, s in scores.items() if y[:2] == (1, 2)]
        assert pairs[row, 1, 1, 2].item() == pytest.approx(float(sum(through)))


def crfsuite(here: Path, **options: float) -> tuple[pycrfsuite.Tagger, float]:
    """A model of train.txt with the features of the page, and its objective."""
    trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
    everything = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params({**everything, "epsilon": 1e-7, "delta": 1e-9, **options})
    for sentence in (here / "train.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        words, labels = zip(*(line.split() for line in sentence.split("\n")), strict=True)
        trainer.append(strings(words), labels)
    trainer.train(str(here / "crfsuite"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(here / "crfsuite"))
    return tagger, trainer.logparser.last_iteration["loss"]


def strings(words: tuple[str, ...] | list[str]) -> list[list[str]]:
    seen = ["_B-1", *words, "_B+1"]
    return [[f"w[{at}]={seen[t + 1 + at]}" for at in (-1, 0, 1)] for t in range(len(words))]


def crfsuite_marginals(peer: pycrfsuite.Tagger, words: list[str], labels: LabelSet) -> Tensor:
    peer.set(strings(words))
    return torch.tensor([[peer.marginal(name, t) for name in labels.names] for t in range(len(words))])


WORDS = ["Anna", "met", "Bo"]


def test_numbers_are_those_of_crfsuite(here, ran):
    names = ran("migration")
    peer, objective = crfsuite(here, c1=0.0, c2=names["c2"])
    tagger = names["tagger"]
    torch.testing.assert_close(
        names["probabilities"], crfsuite_marginals(peer, WORDS, tagger.labels).float(), rtol=0, atol=5e-3
    )
    assert names["trainer"].optimizers[0].lowest == pytest.approx(objective, rel=1e-4)
    assert tagger.tag([WORDS])[0] == peer.tag(strings(WORDS))
    (best, *_) = tagger.kbest([WORDS], k=2)[0]
    peer.set(strings(WORDS))
    assert torch.tensor(best.log_probability).exp().item() == pytest.approx(peer.probability(best.labels), abs=5e-3)


def test_c1_of_crfsuite_is_the_inverse_of_owlqns_c(here, ran):
    names = ran("migration")
    c1 = 0.5
    _, objective = crfsuite(here, c1=c1, c2=0.0)
    code = blocks("migration", "python")[-1]
    for ours, theirs in (("optimizer=LBFGS", "optimizer=OWLQN"), ("prior=Prior(C=1 / (2 * c2))", "prior=None")):
        assert ours in code
        code = code.replace(ours, theirs)
    exec(code, names | {"OWLQN": lambda params: OWLQN(params, C=1 / c1)}, found := {})
    assert found["trainer"].optimizers[0].lowest == pytest.approx(objective, rel=1e-3)


def test_a_template_file_of_crfpp_makes_the_same_model(here, ran, capsys):
    """crf_learn -c 2 has the objective of CRFsuite with c2 = 0.25, which the page trains in Python."""
    names = ran("migration")
    (config,) = blocks("migration", "yaml")
    (here / "crfpp.yaml").write_text(config, encoding="utf-8")
    fit("-c", "crfpp.yaml", f"--model.prior.C={1 / (2 * names['c2'])}")
    tagger = Tagger.load("runs/crfpp/1/model")
    torch.testing.assert_close(tagger.marginals([WORDS])[0], names["probabilities"], rtol=0, atol=5e-3)
    (here / "new.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    capsys.readouterr()
    assert main(["tag", "runs/crfpp/1/model", "new.txt"]) == 0
    assert [line.split()[-1] for line in capsys.readouterr().out.strip().split("\n")] == tagger.tag([WORDS])[0]
