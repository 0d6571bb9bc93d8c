"""SpanMarker with the options of its training script for CoNLL-2003, at the usual rate of encoders of this size."""

import argparse

import torch
from datasets import Dataset
from span_marker import SpanMarkerModel, Trainer
from transformers import TrainingArguments, set_seed

from benchmarks.taggers.system_run import Sentences, Tag, Task, labels_of_spans, run


def train(task: Task) -> Tag:
    set_seed(task.seed)
    torch.set_num_threads(1)
    ids = {label: i for i, label in enumerate(sorted(task.labels, key=lambda label: label != "O"))}
    columns = {
        "tokens": [sentence.words for sentence in task.train],
        "ner_tags": [[ids[label] for label in sentence.labels] for sentence in task.train],
    }
    lengths = {"model_max_length": 128, "marker_max_length": 64, "entity_max_length": 6}
    model = SpanMarkerModel.from_pretrained(task.options.encoder, labels=[*ids], **lengths)
    options = TrainingArguments(
        str(task.model.parent / "training"),
        learning_rate=5e-5,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_train_epochs=3,
        weight_decay=0.01,
        warmup_ratio=0.1,
        seed=task.seed,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    Trainer(model=model, args=options, train_dataset=Dataset.from_dict(columns)).train()
    model.save_pretrained(task.model)

    def tag(text: Sentences) -> list[list[str]]:
        found = model.predict([sentence.words for sentence in text], batch_size=32)
        return [
            labels_of_spans([(e["word_start_index"], e["word_end_index"], e["label"]) for e in own], len(s.words))
            for own, s in zip(found, text, strict=True)
        ]

    return tag


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--encoder", required=True, help="folder of the pretrained encoder")


if __name__ == "__main__":
    run(["span_marker", "transformers", "torch"], train, add_options)
