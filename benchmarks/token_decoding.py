"""python -m benchmarks.token_decoding MODEL: F1 of `decode_tokens` on CoNLL-2003, for several poolings and transitions.

MODEL is a folder saved by configs/studies/fine_tuning_entities.yaml#softmax. Its encoder and its linear layer become a
token classifier of transformers, which labels eng.testa. Transitions are fitted on the first half of the file, or
estimated from the labels of eng.train; scores are those of the second half.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertForTokenClassification, PreTrainedTokenizerFast

from structperc import LabelSet, Tagger
from structperc.data import Conll, Span, spans
from structperc.metrics.f_measure import SegmentScore
from structperc.nn import decode_tokens, estimate_transitions, fit_transitions


def token_classifier(tagger: Tagger) -> tuple[BertForTokenClassification, PreTrainedTokenizerFast]:
    """Return the encoder and the linear layer of a tagger as a model of transformers, and its tokenizer."""
    encoder = tagger.scorer.encoder
    config = encoder.network.config
    config.id2label = dict(enumerate(tagger.labels.names))
    model = BertForTokenClassification(config).eval()
    model.bert.load_state_dict(encoder.network.state_dict(), strict=False)  # without the pooler
    model.classifier = tagger.scorer.head
    special = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    return model, PreTrainedTokenizerFast(tokenizer_object=encoder.tokenizer, **special)


@torch.no_grad()
def logits_of(model: BertForTokenClassification, tokenizer: PreTrainedTokenizerFast, words: Sequence[str]) -> Tensor:
    """Return the logits (P, L) of the pieces of a sentence."""
    return model(**tokenizer(words, is_split_into_words=True, return_tensors="pt")).logits[0]


def best_of_words(
    tokenizer: PreTrainedTokenizerFast, words: Sequence[str], logits: Tensor, labels: LabelSet
) -> list[str]:
    """Return the label of each word with the highest score at its first piece; they may be illegal."""
    pieces = tokenizer(words, is_split_into_words=True).word_ids()
    return [labels.names[int(logits[pieces.index(t)].argmax())] for t in range(len(words))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    tagger = Tagger.load(parser.parse_args().model)
    labels, scheme = tagger.labels, tagger.labels.scheme
    model, tokenizer = token_classifier(tagger)
    folder = str(Path(os.environ["STRUCTPERC_DATA"]) / "conll2003")
    files = {"train": "eng.train", "dev": "eng.testa"}
    data = Conll(folder, files, ["word", "pos", "chunk", "label"], labels="IOB1", scheme=scheme)
    dev = data.corpus("dev")
    words, gold = (dev.sentences_of(dev.columns[role]) for role in ("word", "label"))
    logits = [logits_of(model, tokenizer, one) for one in words]
    half = len(words) // 2
    first, second = slice(0, half), slice(half, None)

    def report(name: str, found: Sequence[Sequence[Span]]) -> None:
        right = {(n, *span) for n, own in enumerate(gold[second]) for span in spans(own, scheme)}
        predicted = {(n, *span) for n, own in enumerate(found) for span in own}
        score = SegmentScore(len(right & predicted), len(predicted), len(right))
        shares = (score.precision, score.recall, score.f1)
        print(f"| {name} |", " | ".join(f"{100 * one:.2f}" for one in shares), "|", flush=True)

    def decode(name: str, **options: object) -> None:
        found = decode_tokens(logits[second], tokenizer, words[second], labels, scheme=scheme, **options)
        report(name, [[Span(span.type, span.start, span.end) for span in one] for one in found])

    argmax = zip(words[second], logits[second], strict=True)
    report("best label of each word", [[*spans(best_of_words(tokenizer, *one, labels), scheme)] for one in argmax])
    for pool in ("first", "mean", "max"):
        decode(f'`pool="{pool}"`', pool=pool)
    train = data.corpus("train")
    for weight in (0.25, 1.0):
        estimated = estimate_transitions(
            train.sentences_of(train.columns["label"]), labels, scheme=scheme, weight=weight
        )
        decode(f"estimated transitions, weight {weight}", transitions=estimated)
    for variance in (1.0, 10.0):
        given = words[first], gold[first], labels
        fitted = fit_transitions(logits[first], tokenizer, *given, scheme=scheme, variance=variance)
        decode(f"fitted transitions, variance {variance}", transitions=fitted)


if __name__ == "__main__":
    main()
