"""Train on CoNLL-2003 with a share of the mentions dropped, and compare ways of learning from the rest.

    python -m benchmarks.incomplete_labels write FOLDER --share 0.5 --seed 1

writes FOLDER/as_o.train, where the tokens of dropped mentions are O, and FOLDER/unknown.train, where all tokens outside
of the remaining mentions are unknown. The development file stays complete. With --held-out 7, every seventh document
stays complete, too, and is written to FOLDER/held_out.conll instead.
"""

import argparse
import os
import random
from pathlib import Path

from structperc.data import Conll, Corpus, Span, spans

COLUMNS = ["word", "pos", "chunk", "label"]
PAGE = Path(__file__).parents[1] / "docs" / "results" / "incomplete_labels.md"


def draw(image: Path) -> None:
    """Draw F1 against the share of dropped mentions, from the table of the page."""
    import matplotlib.pyplot as plt

    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| dropped | 0 %"))
    rows = [[cell.strip(" `%") for cell in line.split("|")[1:-1]] for line in lines[first : first + 5]]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name, *scores in rows[2:]:
        axes.plot(
            list(map(float, rows[0][1:])),
            [float(score or "nan") for score in scores],
            marker="o",
            label=name.replace("`", ""),
        )
    axes.set(xlabel="dropped mentions (%)", ylabel="F1 on the development file", ylim=(0, 100))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(image, dpi=150)


def drop_mentions(labels: list[str], share: float, generator: random.Random) -> list[Span]:
    """Return the mentions of a sentence without a random share of them."""
    return [span for span in spans(labels, "IOB2") if generator.random() >= share]


def as_outside(kept: list[Span], length: int) -> list[str]:
    """Return labels of the remaining mentions, O elsewhere."""
    labels = ["O"] * length
    for span in kept:
        labels[span.start : span.end] = [f"B-{span.type}", *[f"I-{span.type}"] * (span.end - span.start - 1)]
    return labels


def as_unknown(kept: list[Span], length: int) -> list[str]:
    """Return labels of the remaining mentions, unknown elsewhere; a mention does not go on after its end."""
    labels = [label if label != "O" else "?" for label in as_outside(kept, length)]
    for span in kept:
        if span.end < length and labels[span.end] == "?":
            labels[span.end] = f"!I-{span.type}"
    return labels


def write(corpus: Corpus, labels: list[list[str]], file: Path, held_out: int = 0, chosen: bool = False) -> None:
    """Write documents of a corpus with other labels: one of `held_out` documents if chosen, else the others."""
    lines, document = [], -1
    starts = corpus.sentences.tolist()
    for number, own in enumerate(labels):
        if chosen != (held_out > 0 and corpus.documents[number] % held_out == held_out // 2):
            continue
        if corpus.documents[number] != document:
            document = corpus.documents[number]
            lines += ["-DOCSTART- -X- O O", ""]
        for t, label in enumerate(own, starts[number]):
            lines.append(" ".join([*(corpus.columns[role][t] for role in COLUMNS[:3]), label]))
        lines.append("")
    file.write_text("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "draw"])
    parser.add_argument("place", type=Path, help="folder of the files, or image")
    parser.add_argument("--share", type=float, default=0.5, help="share of the mentions to drop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held-out", type=int, default=0, metavar="N", help="hold out every Nth document")
    options = parser.parse_args()
    if options.command == "draw":
        draw(options.place)
        return
    options.place.mkdir(parents=True, exist_ok=True)
    folder = str(Path(os.environ["STRUCTPERC_DATA"]) / "conll2003")
    corpus = Conll(folder, {"train": "eng.train"}, COLUMNS, labels="IOB1").corpus("train")
    generator = random.Random(options.seed)
    sentences = corpus.sentences_of(corpus.columns["label"])
    kept = [drop_mentions(labels, options.share, generator) for labels in sentences]
    for name, labels_of in (("as_o", as_outside), ("unknown", as_unknown)):
        made = [labels_of(own, len(labels)) for own, labels in zip(kept, sentences, strict=True)]
        write(corpus, made, options.place / f"{name}.train", options.held_out)
    if options.held_out:
        made = [as_outside(spans(labels, "IOB2"), len(labels)) for labels in sentences]
        write(corpus, made, options.place / "held_out.conll", options.held_out, chosen=True)


if __name__ == "__main__":
    main()
