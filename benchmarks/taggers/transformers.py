"""Token classification with transformers' Trainer, with one of three heads on the same encoder.

The recipe is that of the example `run_ner.py`: three epochs, mini-batches of eight, AdamW at 5e-5 falling to zero; the
first subword of a word has its label. Heads that learn from nothing have a rate of their own:

softmax     AutoModelForTokenClassification, each word by itself; all weights at the rate of the encoder
crf         the same scores under a CRF of pytorch-crf, whose transitions learn a hundred times as fast
structperc  TokenTagger of structperc; the rate of its head is that of the page "A CRF head for your own model"
"""

import argparse
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from benchmarks.taggers.system_run import Sentences, Tag, Task, labels_of_spans, run

IGNORED = -100


def encode(tokenizer: Any, text: Sentences, ids: dict[str, int]) -> list[dict[str, Any]]:
    """Return rows with a label at the first subword of each word, IGNORED elsewhere."""
    rows = []
    for sentence in text:
        row = tokenizer(sentence.words, is_split_into_words=True, truncation=True, max_length=512)
        labels = [
            IGNORED if word is None or word == before else ids.get(sentence.labels[word], 0)
            for before, word in pairwise([None, *row.word_ids()])
        ]
        rows.append({**row, "labels": labels})
    return rows


class Crf(nn.Module):
    """A token classifier whose scores at first subwords go into a CRF of pytorch-crf."""

    def __init__(self, classifier: nn.Module, labels: int) -> None:
        from torchcrf import CRF

        super().__init__()
        self.classifier, self.crf = classifier, CRF(labels, batch_first=True)

    def forward(self, labels: Tensor, **inputs: Tensor) -> dict[str, Tensor]:
        scores, gold, mask = self.words(labels, inputs)
        return {"loss": -self.crf(scores, gold, mask, reduction="mean")}

    def words(self, labels: Tensor, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores (B, W, L), gold (B, W) and mask (B, W) of words, moved to the left."""
        logits = self.classifier(**inputs).logits
        first = labels != IGNORED
        order = torch.argsort(~first, dim=1, stable=True)[:, : first.sum(1).max()]
        mask, gold = first.gather(1, order), labels.gather(1, order).clamp(min=0)
        return logits.gather(1, order.unsqueeze(2).expand(-1, -1, logits.shape[2])), gold, mask

    def decode(self, labels: Tensor, **inputs: Tensor) -> list[list[int]]:
        scores, _, mask = self.words(labels, inputs)
        return self.crf.decode(scores, mask)


class Softmax(nn.Module):
    """A token classifier as it is."""

    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, labels: Tensor, **inputs: Tensor) -> dict[str, Tensor]:
        return {"loss": self.classifier(labels=labels, **inputs).loss}

    def decode(self, labels: Tensor, **inputs: Tensor) -> list[list[int]]:
        best = self.classifier(**inputs).logits.argmax(2)
        return [row[first].tolist() for row, first in zip(best, labels != IGNORED, strict=True)]


def train_classifier(task: Task) -> Tag:
    tokenizer = AutoTokenizer.from_pretrained(task.options.encoder)
    ids = {label: i for i, label in enumerate(task.labels)}
    classifier = AutoModelForTokenClassification.from_pretrained(task.options.encoder, num_labels=len(ids))
    model = Softmax(classifier) if task.options.head == "softmax" else Crf(classifier, len(ids))
    rates = {model.classifier: task.options.rate, getattr(model, "crf", None): 100 * task.options.rate}
    groups = [{"params": part.parameters(), "lr": rate} for part, rate in rates.items() if part is not None]
    collate = DataCollatorForTokenClassification(tokenizer)
    fit(task, model, encode(tokenizer, task.train, ids), collate, groups)
    torch.save(model.state_dict(), task.model / "weights.pt")
    tokenizer.save_pretrained(task.model)

    @torch.inference_mode()
    def tag(text: Sentences) -> list[list[str]]:
        rows = encode(tokenizer, text, ids)
        by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]["labels"]))
        found: dict[int, list[str]] = {}
        for start in range(0, len(rows), 32):
            some = by_length[start : start + 32]
            paths = model.decode(**collate([rows[i] for i in some]))
            found |= {i: [task.labels[label] for label in path] for i, path in zip(some, paths, strict=True)}
        return [found[i] + ["O"] * (len(s.words) - len(found[i])) for i, s in enumerate(text)]

    return tag


def train_structperc(task: Task) -> Tag:
    from structperc.nn import TokenTagger
    from structperc.optim import ParameterGroups

    scheme = "IOB2" if task.has_segments else "none"
    tagger = TokenTagger.from_pretrained(task.options.encoder, labels=task.labels, scheme=scheme)
    rows = tagger.encode([s.words for s in task.train], [s.labels for s in task.train])
    groups = ParameterGroups({"": 20 * task.options.rate, "encoder": task.options.rate})(tagger)
    fit(task, tagger, rows, DataCollatorForTokenClassification(tagger.tokenizer), groups)
    tagger.save_pretrained(task.model)

    def tag(text: Sentences) -> list[list[str]]:
        found = tagger.predict([s.words for s in text])
        if not task.has_segments:
            return [[span.type for span in spans] for spans in found]
        return [
            labels_of_spans([(span.start, span.end, span.type) for span in spans], len(s.words))
            for spans, s in zip(found, text, strict=True)
        ]

    return tag


def fit(task: Task, model: nn.Module, rows: list[dict[str, Any]], collate: Any, groups: list[dict[str, Any]]) -> None:
    """Train as `run_ner.py` does, with AdamW of these groups of parameters."""
    options = TrainingArguments(
        str(task.model.parent / "training"),
        num_train_epochs=3,
        per_device_train_batch_size=8,
        seed=task.seed,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        remove_unused_columns=False,
        disable_tqdm=True,
    )
    Trainer(model, options, collate, rows, optimizers=(AdamW(groups, weight_decay=0.0), None)).train()
    model.eval()


def train(task: Task) -> Tag:
    set_seed(task.seed)
    torch.set_num_threads(1)
    return train_structperc(task) if task.options.head == "structperc" else train_classifier(task)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--encoder", required=True, help="folder of the pretrained encoder")
    parser.add_argument("--head", choices=("softmax", "crf", "structperc"), default="softmax")
    parser.add_argument("--rate", type=float, default=5e-5, help="of the encoder (default 5e-5)")


if __name__ == "__main__":
    run(["transformers", "torch"], train, add_options)
