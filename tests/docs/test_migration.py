"""What docs/how_to/migrate.md says of other libraries is true: their numbers are ours."""

from pathlib import Path
from typing import Any

import pycrfsuite
import pytest
import torch
from torch import nn
from torchcrf import CRF

from structperc import Tagger
from structperc.chain import kbest, log_partition, path_score, viterbi
from structperc.chain.marginals import edge_marginals
from structperc.optim import OWLQN
from tests.docs.written import blocks
from tests.oracle import label_sequences
from tests.tiny import without_names


def as_crf(names: dict[str, Any]) -> CRF:
    """The module of pytorch-crf with the weights of the page."""
    crf = CRF(names["L"], batch_first=True)
    for name, key in (("start_transitions", "start"), ("transitions", "transitions"), ("end_transitions", "end")):
        setattr(crf, name, nn.Parameter(names[key]))
    return crf


def test_equals_pytorch_crf(ran):
    names = ran("how_to/migrate")
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
    names = ran("how_to/migrate")
    crf = as_crf({**names, "start": torch.zeros(names["L"]), "end": torch.zeros(names["L"])})
    total = torch.zeros(())
    for row, kept in enumerate(names["word_labels"] != -100):
        logits, gold = names["logits"][row, kept][None], names["word_labels"][row, kept][None]
        total = total - crf(logits, gold)
        assert names["predicted"][row, kept].tolist() == crf.decode(logits)[0]
        assert (names["predicted"][row, ~kept] == -100).all()
    torch.testing.assert_close(names["loss"], total.detach())


def test_potentials_of_torch_struct(ran):
    names = ran("how_to/migrate")
    potentials, lengths = torch.randn(2, 3, 3, 3).double(), torch.tensor([4, 2])
    lattice = names["chain_lattice"](potentials, lengths)
    pairs = edge_marginals(lattice)
    for row, n in enumerate(lengths.tolist()):
        scores = {
            y: float(sum(potentials[row, t, y[t + 1], y[t]] for t in range(n - 1)))  # z_{t+1}, z_t
            for y in label_sequences(n, 3)
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


WORDS = ["Anna", "met", "Bo"]


def test_equals_crfsuite(here, ran):
    names = ran("how_to/migrate")
    peer, objective = crfsuite(here, c1=0.0, c2=names["c2"])
    tagger = names["tagger"]
    peer.set(strings(WORDS))
    marginals = torch.tensor([[peer.marginal(name, t) for name in tagger.labels.names] for t in range(3)])
    torch.testing.assert_close(names["probabilities"], marginals, rtol=0, atol=5e-3)
    assert names["trainer"].optimizers[0].lowest == pytest.approx(objective, rel=1e-4)
    assert tagger.tag([WORDS])[0] == peer.tag(strings(WORDS))
    (best, *_) = tagger.kbest([WORDS], k=2)[0]
    peer.set(strings(WORDS))
    assert torch.tensor(best.log_probability).exp().item() == pytest.approx(peer.probability(best.labels), abs=5e-3)


def test_c1_of_crfsuite(here, ran):
    names = ran("how_to/migrate")
    c1 = 0.5
    _, objective = crfsuite(here, c1=c1, c2=0.0)
    code = blocks("how_to/migrate", "python")[-1]
    for ours, theirs in (("optimizer=LBFGS", "optimizer=OWLQN"), ("prior=Prior(C=1 / (2 * c2))", "prior=None")):
        assert ours in code
        code = code.replace(ours, theirs)
    exec(code, names | {"OWLQN": lambda params: OWLQN(params, C=1 / c1)}, found := {})
    assert found["trainer"].optimizers[0].lowest == pytest.approx(objective, rel=1e-3)


def test_template_file_of_crfpp(here, ran, structperc_says):
    """crf_learn -c 2 has the objective of CRFsuite with c2 = 0.25, which the page trains in Python."""
    names = ran("how_to/migrate")
    (config,) = blocks("how_to/migrate", "yaml")
    (here / "crfpp.yaml").write_text(config, encoding="utf-8")
    structperc_says("fit", "-c", "crfpp.yaml", f"--model.prior.C={1 / (2 * names['c2'])}")
    tagger = Tagger.load("runs/crfpp/1/model")
    torch.testing.assert_close(tagger.marginals([WORDS])[0], names["probabilities"], rtol=0, atol=5e-3)
    (here / "new.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    labelled = without_names(structperc_says("tag", "runs/crfpp/1/model", "new.txt")).strip().split("\n")
    assert [line.split()[-1] for line in labelled] == tagger.tag([WORDS])[0]
