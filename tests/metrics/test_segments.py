"""Segment metrics against naive readers and exact fractions."""

from fractions import Fraction

import matplotlib
import pytest
import pytorch_lightning as pl
import torch
from seqeval.metrics import classification_report
from torch.utils.data import DataLoader
from torchmetrics import MetricCollection, MetricTracker

from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import PREFIX_SCHEMES, SCHEMES, first_violation, spans
from structperc.errors import InputError
from structperc.metrics import SegmentF1, SegmentFScore, SegmentPrecision, SegmentRecall, f_measure
from structperc.metrics.counts import segment_counts
from structperc.metrics.f_measure import SegmentScore, SegmentScores

matplotlib.use("Agg")

# gold, predicted ("|" between sentences): correct, found, gold segments, right tokens, found per type
CASES = {
    "the same": ("O B-P I-P O B-L", "O B-P I-P O B-L", 2, 2, 2, 5, {"P": 1, "L": 1}),
    "nothing found": ("B-P I-P O B-L", "O O O O", 0, 0, 2, 1, {"P": 0, "L": 0}),
    "nothing to find": ("O O", "B-P O", 0, 1, 0, 1, {"P": 1}),
    "too long": ("B-P O O", "B-P I-P I-P", 0, 1, 1, 1, {"P": 1}),
    "other type": ("B-P I-P", "B-L I-L", 0, 1, 1, 0, {"L": 1, "P": 0}),
    "I after O opens": ("O B-P I-P", "O I-P I-P", 1, 1, 1, 2, {"P": 1}),
    "I opens at the start": ("B-P I-P O", "I-P I-P O", 1, 1, 1, 2, {"P": 1}),
    "I of another type opens": ("B-P I-P I-P", "B-P I-L I-L", 0, 2, 1, 1, {"P": 1, "L": 1}),
    "I between two others": ("B-P B-L B-P", "I-P I-L I-P", 3, 3, 3, 0, {"P": 2, "L": 1}),
    "neighbours merged": ("B-P B-P O", "B-P I-P O", 0, 1, 2, 2, {"P": 1}),
    "one cut in two": ("B-P I-P I-P I-P", "B-P I-P B-P I-P", 0, 2, 1, 3, {"P": 2}),
    "IOB1 gold": ("I-P I-P B-P O I-L", "B-P I-P B-P O B-L", 3, 3, 3, 3, {"P": 2, "L": 1}),
    "IOB1 type change": ("I-P I-L I-L", "I-P I-L B-L", 1, 3, 2, 2, {"P": 1, "L": 2}),
    "sentence boundary": ("O B-P|B-P O", "O B-P|I-P O", 2, 2, 2, 3, {"P": 2}),
    "hyphens in the type": ("B-a-b I-a-b O", "B-a-b I-a-b B-a", 1, 2, 1, 2, {"a-b": 1, "a": 1}),
    "no type": ("B I O B", "I I O O", 1, 1, 2, 2, {"": 1}),
    "one of two per type": ("B-P O B-L|B-P O B-L", "B-P O B-L|O O O", 2, 2, 4, 4, {"P": 1, "L": 1}),
}


def cut(text):
    return [sentence.split() for sentence in text.split("|")]


def label_set(*texts, scheme="IOB2"):
    return LabelSet(tuple(sorted({name for text in texts for row in text for name in row})), scheme)


def scored(padded, gold, predicted, scheme="IOB2"):
    labels = label_set(gold, predicted, scheme=scheme)
    metric = SegmentF1(labels)
    wanted, lengths = padded(labels, gold)
    metric.update(padded(labels, predicted)[0], wanted, lengths)
    return metric.compute()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_by_hand(case, padded):
    gold, predicted, *expected, found = case
    scores = scored(padded, cut(gold), cut(predicted))
    assert [*scores.total, scores.correct_tokens] == expected
    assert {name: score.found for name, score in scores.nonempty_types.items()} == found


def test_closing_letters_by_hand(padded):
    # S and U stand alone, E and L close, whatever follows
    assert scored(padded, [["S-P", "S-P"]], [["S-P", "S-P"]], "IOBES").total == (2, 2, 2)
    gold, predicted = [["B-P", "E-P", "B-P", "E-P"]], [["B-P", "I-P", "I-P", "E-P"]]
    assert scored(padded, gold, predicted, "IOBES").total == (0, 1, 2)
    assert scored(padded, [["B-P", "L-P", "U-P"]], [["B-P", "L-P", "I-P"]], "BILOU").total == (2, 2, 2)
    assert scored(padded, [["B-P", "E-P", "O"]], [["E-P", "E-P", "O"]], "IOBES").total == (0, 2, 1)


def test_shares_by_hand(padded):
    scores = scored(padded, cut("B-P O B-L B-L O"), cut("B-P B-P B-L I-L O"))  # 1 of 3 found, 1 of 3 gold
    assert (scores.precision, scores.recall, scores.f1) == (1 / 3, 1 / 3, 1 / 3)
    assert scores.types["P"] == (1, 2, 1)
    assert scores.types["P"].precision == 1 / 2
    assert scores.types["P"].recall == 1.0
    assert scores.types["P"].f1 == 2 / 3
    assert scores.types["L"] == (0, 1, 2)


@pytest.mark.filterwarnings("error")
def test_empty_against_empty(padded):
    scores = scored(padded, [["O", "O"]], [["O", "O"]])
    assert (scores.f1, scores.precision, scores.recall, scores.types) == (0.0, 0.0, 0.0, {})


IMPROPER = [
    ("IOB2", "I-P O|B-P I-L I-L|O I-P", 3),
    ("IOB2", "B-P I-P B-P|B-L", 0),
    ("IOB1", "I-P B-P I-P I-L|O B-P", 1),
    ("IOB1", "B-P", 1),
    ("IOBES", "B-P E-P S-P O|B-P I-P E-P", 0),
    ("IOBES", "B-P|I-P", 2),  # may not be last; may be neither first nor last, and counts once
    ("IOBES", "B-P O S-P E-P", 2),
    ("BILOU", "U-P B-P U-P|O L-P", 2),
]


@pytest.mark.parametrize(("scheme", "predicted", "expected"), IMPROPER)
def test_improper_labels_by_hand(scheme, predicted, expected, padded):
    gold = [["O"] * len(row) for row in cut(predicted)]
    assert scored(padded, gold, cut(predicted), scheme).n_improper == expected


def random_rows(scheme, count, seed, longest=9):
    generator = torch.Generator().manual_seed(seed)
    names = LabelSet.from_corpus([f"{letter}-{kind}" for letter in SCHEMES[scheme] for kind in "AB"], scheme).names
    lengths = torch.randint(0, longest + 1, (count,), generator=generator).tolist()
    return [[names[i] for i in torch.randint(0, len(names), (n,), generator=generator)] for n in lengths]


def counted(gold, predicted, kind):
    """By plain sets of spans: correct, found, gold segments of a type in one sentence."""
    g, p = ({span for span in spans(row) if span.type == kind} for row in (gold, predicted))
    return [len(g & p), len(p), len(g)]


@pytest.mark.parametrize("scheme", PREFIX_SCHEMES)
def test_agrees_with_spans_in_every_row(scheme, padded):
    gold, predicted = random_rows(scheme, 100, 1), random_rows(scheme, 100, 2)
    predicted = [[*(p + g)][: len(g)] for p, g in zip(predicted, gold, strict=True)]
    labels = LabelSet.from_corpus(["B-A", "B-B"] if scheme != "IOB1" else ["I-A", "I-B"], scheme)
    wanted, lengths = padded(labels, gold)
    counts = segment_counts(padded(labels, predicted)[0], wanted, lengths, labels)
    for b, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        for i, kind in enumerate(labels.type_names):
            found = [int(count[b, i]) for count in (counts.correct, counts.found, counts.gold)]
            assert found == counted(g, p, kind)
        assert (int(counts.improper[b]) > 0) == (first_violation(p, scheme) is not None)


@pytest.mark.parametrize("scheme", PREFIX_SCHEMES)
def test_documents_count_as_their_sentences_do(scheme, padded):
    gold, predicted = random_rows(scheme, 60, 3), random_rows(scheme, 60, 4)
    predicted = [[*(p + g)][: len(g)] for p, g in zip(predicted, gold, strict=True)]
    labels = label_set(gold, predicted, scheme=scheme)
    documents = [slice(i, i + 7) for i in range(0, 60, 7)]
    joined = [[[name for row in text[d] for name in row] for d in documents] for text in (gold, predicted)]
    (wanted, lengths), (guessed, _) = (padded(labels, rows) for rows in joined)
    sentences = torch.full_like(wanted, 5)
    for b, d in enumerate(documents):
        numbers = [number for number, row in enumerate(gold[d]) for _ in row]
        sentences[b, : len(numbers)] = torch.tensor(numbers)
    metric = SegmentF1(labels)
    metric.update(guessed, wanted, lengths, sentences)
    assert metric.compute() == scored(padded, gold, predicted, scheme)
    metric.reset()
    metric.update(guessed, wanted, lengths)
    assert metric.compute() != scored(padded, gold, predicted, scheme)  # so the boundaries did matter


def random_batch(padded, scheme="IOB2", count=30):
    gold, predicted = random_rows(scheme, count, 5), random_rows(scheme, count, 6)
    predicted = [[*(p + g)][: len(g)] for p, g in zip(predicted, gold, strict=True)]
    labels = label_set(gold, predicted, scheme=scheme)
    wanted, lengths = padded(labels, gold)
    return labels, padded(labels, predicted)[0], wanted, lengths


def test_padding_does_not_matter(padded):
    labels, predicted, gold, lengths = random_batch(padded)
    expected = segment_counts(predicted, gold, lengths, labels)
    padding = torch.arange(gold.shape[1]) >= lengths[:, None]
    for junk in (-100, 3, 10**6):
        wide = [torch.nn.functional.pad(ids.where(~padding, junk), (0, 3), value=junk) for ids in (predicted, gold)]
        for ours, theirs in zip(segment_counts(*wide, lengths, labels), expected, strict=True):
            assert torch.equal(ours, theirs)


def test_batched_is_one_by_one_is_candidates(padded):
    labels, predicted, gold, lengths = random_batch(padded)
    together, single = SegmentF1(labels), SegmentF1(labels)
    together.update(predicted, gold, lengths)
    for b in range(len(gold)):
        single.update(predicted[b : b + 1], gold[b : b + 1], lengths[b : b + 1])
    assert together.compute() == single.compute()
    several = torch.stack([gold, predicted, predicted.roll(1, 1)], 1)
    counts = segment_counts(several, gold, lengths, labels)
    for k in range(3):
        alone = segment_counts(several[:, k], gold, lengths, labels)
        assert torch.equal(counts.correct[:, k], alone.correct)
        assert torch.equal(counts.found[:, k], alone.found)
        assert torch.equal(counts.improper[:, k], alone.improper)
        assert torch.equal(counts.gold[:, 0], alone.gold)


def test_length_zero_and_one(padded):
    scores = scored(padded, [[], ["B-P"], []], [[], ["I-P"], []])
    assert (scores.total, scores.tokens, scores.n_improper) == ((1, 1, 1), 1, 1)


def test_a_batch_of_nothing():
    labels, empty = LabelSet(("O", "B-P", "I-P")), torch.zeros(2, 0, dtype=torch.int64)
    counts = segment_counts(empty, empty, torch.tensor([0, 0]), labels)
    assert [count.tolist() for count in counts] == [[[0], [0]]] * 3 + [[0, 0]]


def test_labels_without_segments_are_refused():
    ids = torch.zeros(1, 2, dtype=torch.int64)
    with pytest.raises(InputError, match="scheme"):
        segment_counts(ids, ids, torch.tensor([2]), LabelSet(("DT", "NN"), "none"))


@pytest.mark.parametrize("wrong", [-1, -100, 3])
def test_ids_out_of_range(wrong):
    labels = LabelSet(("O", "B-P", "I-P"))
    ids, good = torch.tensor([[0, wrong]]), torch.tensor([[0, 1]])
    for pair in ((ids, good), (good, ids)):
        with pytest.raises(ValueError, match=r"0\.\.2"):
            segment_counts(*pair, torch.tensor([2]), labels)


def test_types_of_the_table(padded):
    labels = LabelSet(("O", "B-P", "I-P", "B-L", "I-L", "B-unseen"))
    metric = SegmentF1(labels)
    gold, lengths = padded(labels, cut("B-P I-P O|B-L O"))
    metric.update(padded(labels, cut("I-P I-P O|B-L I-L"))[0], gold, lengths)
    assert metric.table().splitlines() == [
        "processed 5 tokens with 2 phrases; found: 2 phrases; correct: 1.",
        "accuracy:  60.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00",
        "                L: precision:   0.00%; recall:   0.00%; FB1:   0.00  1",
        "                P: precision: 100.00%; recall: 100.00%; FB1: 100.00  1",
        "improper labels: 1",
    ]


def test_plot_has_a_bar_per_type_and_one_for_all(padded):
    labels, *batch = random_batch(padded)
    metric = SegmentF1(labels)
    metric.update(*batch)
    scores = metric.compute()
    axes = metric.plot()[1]
    heights = [bar.get_height() for bar in axes.patches]
    expected = [scores.f1, *(score.f1 for score in scores.types.values())]
    assert heights == pytest.approx([100 * share for share in expected])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["all", "A", "B"]
    assert len(metric.plot([scores, scores])[1].patches) == 6
    matplotlib.pyplot.close("all")


COUNTS = [(c, f, g) for f in range(4) for g in range(4) for c in range(min(f, g) + 1)]


@pytest.mark.parametrize("beta", [0.25, 1.0, 10.0])
def test_equation_13_in_fractions(beta):
    for correct, found, gold in COUNTS:
        tp, fn, fp, square = correct, gold - correct, found - correct, Fraction(beta) ** 2
        denominator = square * fn + fp + (square + 1) * tp
        wanted = (square + 1) * tp / denominator if denominator else 0
        assert f_measure(correct=correct, found=found, gold=gold, beta=beta) == pytest.approx(float(wanted), abs=1e-15)


def test_sums_over_types_come_before_the_division():
    scores = SegmentScores({"A": SegmentScore(1, 2, 3), "B": SegmentScore(2, 2, 4)}, 0, 20, 15)
    assert scores.f(2.0) == f_measure(correct=3, found=4, gold=7, beta=2.0)


def test_table_names_gamma():
    scores = SegmentScores({"A": SegmentScore(1, 2, 3)}, 0, 20, 15)
    assert "FB1:  40.00" in scores.table()
    assert scores.table(2.0).count(f"FB2: {100 * f_measure(correct=1, found=2, gold=3, beta=2.0):6.2f}") == 2


@pytest.mark.parametrize("beta", [0, -0.5, float("nan"), float("inf")])
def test_gamma_out_of_range(beta):
    with pytest.raises(InputError, match="beta"):
        f_measure(correct=1, found=1, gold=1, beta=beta)


LABELS = LabelSet(("O", "B-A", "I-A", "B-B", "I-B", "B-C", "I-C", "B-D", "I-D"))
KINDS = {"precision": SegmentPrecision, "recall": SegmentRecall, "f1-score": SegmentFScore}


def some(seed, n=12, T=9):
    """Predicted and gold; of C there is only gold, of D nothing at all."""
    draw = torch.Generator().manual_seed(seed)
    gold = torch.randint(0, 7, (n, T), generator=draw)
    other = torch.randint(0, 5, (n, T), generator=draw)
    return other.where((torch.rand(n, T, generator=draw) < 0.3) | (gold > 4), gold), gold


def names(rows, kept):
    return [LABELS.decode(row[own]) for row, own in zip(rows, kept, strict=True)]


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
def test_shares_of_seqeval(average):
    predicted, gold = some(1)
    kept = torch.rand(gold.shape, generator=torch.Generator().manual_seed(2)) < 0.8
    report = classification_report(names(gold, kept), names(predicted, kept), output_dict=True, zero_division=0)
    for name, kind in KINDS.items():
        metric = kind(LABELS, average)
        for rows in (slice(0, 5), slice(5, 12)):
            metric.update(predicted[rows], gold[rows].where(kept[rows], -100))
        assert metric.compute().item() == pytest.approx(report[f"{average} avg"][name], abs=1e-12)
    counted = SegmentF1(LABELS)
    counted.update(predicted, gold, torch.full((12,), 9))
    report = classification_report(
        names(gold, gold >= 0), names(predicted, gold >= 0), output_dict=True, zero_division=0
    )
    assert counted.compute().macro_f1 == pytest.approx(report["macro avg"]["f1-score"], abs=1e-12)


def test_lengths_and_sentences():
    predicted, gold = some(3)
    lengths, sentences = torch.arange(12) % 10, torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2]).expand(12, -1)
    whole = SegmentF1(LABELS)
    whole.update(predicted, gold, lengths, sentences)
    labelled = gold.where(torch.arange(9) < lengths[:, None], -100)
    for beta in (1.0, 2.0):
        for arguments in ((gold, lengths, sentences), (labelled, None, sentences)):
            metric = SegmentFScore(LABELS, beta=beta)
            metric.update(predicted, *arguments)
            assert metric.compute().item() == pytest.approx(whole.compute().f(beta), abs=1e-12)


def test_nothing_scores_zero():
    for average in ("micro", "macro", "weighted"):
        metric = SegmentFScore(LABELS, average)
        metric.update(torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, 3, dtype=torch.int64))
        assert metric.compute() == 0


def test_collections_trackers_and_plots_take_them():
    shares = MetricCollection(
        {name: kind(LABELS) for name, kind in KINDS.items()} | {"macro": SegmentFScore(LABELS, "macro")}
    )
    tracker = MetricTracker(shares, maximize=[True] * 4)
    single = MetricTracker(SegmentFScore(LABELS))
    expected = []
    for seed in range(3):
        predicted, gold = some(seed)
        alone = SegmentF1(LABELS)
        for metric in (tracker, single):
            metric.increment()
            metric.update(predicted[:6], gold[:6])
            metric(predicted[6:], gold[6:])
        alone.update(predicted, gold, torch.full((12,), 9))
        expected.append(alone.compute().f1)
    assert [round(float(f), 9) for f in tracker.compute_all()["f1-score"]] == [round(f, 9) for f in expected]
    best, step = single.best_metric(return_step=True)
    assert (best, step) == (pytest.approx(max(expected)), expected.index(max(expected)))
    _, axes = SegmentFScore(LABELS).plot(list(single.compute_all()))
    assert axes.lines[0].get_ydata().tolist() == pytest.approx(expected)


class Network(pl.LightningModule):
    """Predicts what it is given, and logs how good that is."""

    def __init__(self) -> None:
        super().__init__()
        self.f1, self.macro = SegmentFScore(LABELS), SegmentFScore(LABELS, "macro")

    def validation_step(self, batch, _):
        self.f1.update(*batch)
        self.macro(*batch)
        self.log("f1", self.f1)
        self.log("macro", self.macro)


def test_lightning_logs_them_over_batches():
    predicted, gold = some(4)
    trainer = pl.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, barebones=False
    )
    (logged,) = trainer.validate(
        Network(), DataLoader(list(zip(predicted, gold, strict=True)), batch_size=5), verbose=False
    )
    for name, average in (("f1", "micro"), ("macro", "macro")):
        whole = SegmentFScore(LABELS, average)
        whole.update(predicted, gold)
        assert logged[name] == pytest.approx(whole.compute().item())


@pytest.mark.parametrize(
    ("labels", "options", "complaint"),
    [(LabelSet(("a", "b"), "none"), {}, "use TokenAccuracy"), (LABELS, {"average": "most"}, "SegmentFScore: average ")],
)
def test_refusals(labels, options, complaint):
    with pytest.raises(InputError, match=complaint):
        SegmentFScore(labels, **options)
