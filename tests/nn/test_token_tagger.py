"""An encoder with a head in one module: rows, training by the Trainer of transformers, spans, saved folders."""

from math import isfinite

import pytest
import torch
from datasets import Dataset
from torch.optim import AdamW
from transformers import DataCollatorForTokenClassification, Trainer, TrainingArguments

from structperc.criteria import CRFLoss, HingeLoss, MCEFLoss, TokenCrossEntropyLoss
from structperc.data.tag_schemes import first_violation
from structperc.errors import InputError
from structperc.nn import TokenTagger
from structperc.optim import ParameterGroups
from tests.encoders.tiny_models import save_bert, save_modernbert, save_roberta

LABELS = ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]  # O is neither first nor last
SENTENCES = [["Anna", "met", "Bo", "in", "Rome"], ["Bo", "\u200b", "Anna"], ["no"]]
GOLD = [["B-PER", "O", "B-PER", "O", "B-LOC"], ["B-PER", "I-PER", "I-PER"], ["O"]]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("models") / "bert")


def made(folder, labels=LABELS, **options):
    torch.manual_seed(0)
    return TokenTagger.from_pretrained(folder, labels=labels, **options)


def collated(tagger, rows=None, side="right"):
    tagger.tokenizer.padding_side = side
    return DataCollatorForTokenClassification(tagger.tokenizer)(rows or tagger.encode(SENTENCES, GOLD))


def fit(tagger, steps, sentences=SENTENCES, gold=GOLD, encoder=3e-3, head=0.03):
    optimizer = AdamW(ParameterGroups({"": head, "encoder": encoder})(tagger.train()))
    batch = collated(tagger, tagger.encode(sentences, gold))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        losses.append(tagger(**batch).loss)
        losses[-1].backward()
        optimizer.step()
    return [loss.item() for loss in losses]


# -- rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [save_bert, save_roberta])
def test_labels_stand_at_first_subwords(save, tmp_path):
    tagger = made(save(tmp_path))
    rows = tagger.encode(SENTENCES, GOLD)
    assert tagger.names(row["labels"] for row in rows) == GOLD
    for row, words in zip(rows, SENTENCES, strict=True):
        assert row["labels"][0] == row["labels"][-1] == -100  # special tokens
        pieces = [tagger.tokenizer.convert_ids_to_tokens(place) for place in row["input_ids"]]
        starts = [piece for piece, label in zip(pieces, row["labels"], strict=True) if label != -100]
        assert len(starts) == len(words)
        assert not any(piece.startswith("##") for piece in starts)


def test_rows_are_those_of_the_tokenizer(bert):
    tagger = made(bert)
    found = tagger.tokenizer(SENTENCES[0], is_split_into_words=True)
    assert tagger.encode(SENTENCES[:1], GOLD[:1])[0]["input_ids"] == found["input_ids"]


def test_long_sentences_become_rows_without_cut_segments(bert):
    tagger = made(bert, window=6)  # four pieces of words
    words, gold = ["no", "an", "an", "an", "in", "no", "no"], ["O", "B-PER", "I-PER", "I-PER", "O", "O", "O"]
    rows = tagger.encode([words], [gold])
    assert tagger.names(row["labels"] for row in rows) == [gold[:4], gold[4:]]
    with pytest.raises(InputError, match="sentence 0 has a segment"):
        tagger.encode([["an"] * 5], [["B-PER", *["I-PER"] * 4]])


@pytest.mark.parametrize(
    ("labels", "named"),
    [([["O"]], "labels"), ([["O", "I-PER"]], "sentence 0, word 1"), ([["O", "B-ORG"]], "sentence 0")],
)
def test_wrong_labels(labels, named, bert):
    with pytest.raises(InputError, match=named):
        made(bert).encode([["Anna", "met"]], labels)


# -- training -------------------------------------------------------------------------------------------------


def test_padding_on_either_side(bert):
    tagger = made(bert).eval()
    right, left = (collated(tagger, side=side) for side in ("right", "left"))
    assert not torch.equal(right["labels"], left["labels"])
    torch.testing.assert_close(tagger(**left).loss, tagger(**right).loss)
    found = [tagger.decode(tagger(**batch).logits, batch["labels"]) for batch in (left, right)]
    assert tagger.names(found[0]) == tagger.names(found[1])


def test_loss_is_that_of_the_head(bert):
    tagger = made(bert).eval()
    batch = collated(tagger)
    hidden = tagger.encoder.network(batch["input_ids"], batch["attention_mask"]).last_hidden_state
    torch.testing.assert_close(tagger(**batch).loss, tagger.head(tagger.scores(hidden), batch["labels"]))


def test_trainer_of_transformers(bert, tmp_path):
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs accelerate: pip install accelerate")
    tagger = made(bert)
    seen = []

    def metrics(result):
        seen.append((tagger.names(result.predictions), tagger.names(result.label_ids)))
        return {"sentences": len(seen[0][0])}

    steps = {"max_steps": 2, "eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    options = TrainingArguments(
        str(tmp_path), per_device_eval_batch_size=2, report_to="none", use_cpu=True, disable_tqdm=True, **steps
    )
    rows = tagger.encode(SENTENCES, GOLD)
    trainer = Trainer(
        tagger,
        options,
        DataCollatorForTokenClassification(tagger.tokenizer),
        rows,
        rows,
        compute_metrics=metrics,
        preprocess_logits_for_metrics=tagger.decode,
    )
    trainer.train()
    predicted, gold = seen[-1]
    assert gold == GOLD
    assert list(map(len, predicted)) == list(map(len, GOLD))
    assert all(first_violation(labels, "IOB2") is None for labels in predicted)
    trainer.save_model(tmp_path / "saved")
    assert (tmp_path / "saved" / "model.safetensors").is_file()


@pytest.mark.parametrize("criterion", [CRFLoss, lambda: HingeLoss(cost=1.0), TokenCrossEntropyLoss])
def test_criteria(criterion, bert, tmp_path):
    tagger = made(bert, criterion=criterion())
    losses = fit(tagger, 25)
    assert losses[-1] < losses[0] / 2
    assert tagger.tag(SENTENCES) == GOLD
    tagger.save_pretrained(tmp_path)
    loaded = TokenTagger.from_pretrained(tmp_path)
    assert loaded.predict(SENTENCES) == tagger.predict(SENTENCES)
    assert type(loaded.head.criterion) is type(tagger.head.criterion)


def test_gradient_checkpointing(bert):
    """It computes the same gradients; the encoder runs a second time for them."""
    gradients, calls = [], []
    for tagger in (made(bert, dropout=0), made(bert, dropout=0)):
        if gradients:
            tagger.gradient_checkpointing_enable()
        layer = tagger.encoder.network.encoder.layer[0].attention
        layer.register_forward_hook(lambda *_, known=gradients: calls.append(len(known)))
        tagger.train()(**collated(tagger)).loss.backward()
        gradients.append({name: p.grad for name, p in tagger.named_parameters()})
    assert calls == [0, 1, 1]
    torch.testing.assert_close(*gradients)


def test_frozen_encoder(bert):
    tagger = made(bert, frozen=True)
    before = {name: one.clone() for name, one in tagger.encoder.state_dict().items()}
    fit(tagger, 2)
    assert all(torch.equal(one, before[name]) for name, one in tagger.encoder.state_dict().items())


def test_rows_longer_than_the_encoder(bert):
    with pytest.raises(InputError, match="input_ids"):
        made(bert)(torch.ones(1, 65, dtype=torch.int64))


# -- prediction -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(bert):
    tagger = made(bert, window=16)
    fit(tagger, 30)
    return tagger


def test_spans_of_texts_and_words(trained):
    text = "Anna met Bo  in Rome"
    (found,) = trained.predict([text])
    assert [(text[one.start : one.end], one.type) for one in found] == [("Anna", "PER"), ("Bo", "PER"), ("Rome", "LOC")]
    assert all(0.5 < one.confidence <= 1 for one in found)
    words, empty = trained.predict([SENTENCES[0], []])
    assert [(one.start, one.end, one.type) for one in words] == [(0, 1, "PER"), (2, 3, "PER"), (4, 5, "LOC")]
    assert [one.confidence for one in words] == pytest.approx([one.confidence for one in found])
    assert empty == []


def test_nothing_to_predict(trained):
    assert trained.predict([]) == trained.tag([]) == []
    assert trained.predict(["", " \n"]) == trained.tag([[], []]) == [[], []]


def test_predictions_do_not_depend_on_batches(trained):
    long = [word for _ in range(12) for word in SENTENCES[0]]  # several windows
    given = [long, *SENTENCES, ["Anna"] * 40]
    together, alone = trained.tag(given), [trained.tag([one])[0] for one in given]
    assert together == alone == trained.tag(given, batch_size=2)
    assert all(first_violation(labels, "IOB2") is None for labels in together)


def test_predictions_during_training_have_no_dropout(bert):
    tagger, modes = made(bert).train(), []
    tagger.encoder.network.register_forward_pre_hook(lambda network, _: modes.append(network.training))
    tagger.predict(["Anna met Bo in Rome"])
    assert modes == [False]
    assert tagger.training


def test_predictions_are_those_of_rows(trained):
    batch = collated(trained)
    with torch.no_grad():
        logits = trained.eval()(**batch).logits
    assert trained.names(trained.decode(logits, batch["labels"])) == trained.tag(SENTENCES)


def test_confidence_is_the_probability_of_the_segment(trained):
    """The sum over all label sequences with this segment, by the k best of a short sentence."""
    rows = trained.encode([["Anna", "met"]], [["O", "O"]])
    batch = collated(trained, rows)
    with torch.no_grad():
        logits = trained.eval()(**batch).logits
    every = trained.head.kbest(logits, len(LABELS) ** 2, batch["labels"] != -100)
    shares = every.scores[0].softmax(0)
    (span,) = trained.predict([["Anna", "met"]])[0]
    labels = every.labels[0][:, batch["labels"][0] != -100]
    same = (labels[:, 0] == LABELS.index("B-PER")) & (labels[:, 1] != LABELS.index("I-PER"))
    assert (span.start, span.end, span.type) == (0, 1, "PER")
    assert span.confidence == pytest.approx(shares[same].sum().item(), rel=1e-4)


def test_parts_of_speech(bert):
    tagger = made(bert, ["NOUN", "VERB"], scheme="none")
    assert [len(spans) for spans in tagger.predict(SENTENCES)] == [5, 3, 1]


def test_one_text_in_place_of_a_list(trained):
    text = "Anna met Bo"
    assert trained.predict(text) == trained.predict([text])[0] != []
    assert trained.predict("") == []
    with pytest.raises(InputError, match=text):
        trained.tag(text)


# -- saved taggers --------------------------------------------------------------------------------------------


def test_training_goes_on_with_another_criterion(trained, tmp_path):
    trained.save_pretrained(tmp_path)
    loaded = TokenTagger.from_pretrained(tmp_path, criterion=MCEFLoss())
    assert loaded.tag(SENTENCES) == trained.tag(SENTENCES)
    other = [[label.replace("PER", "LOC") for label in own] for own in GOLD]
    assert all(map(isfinite, fit(loaded, 2, gold=other)))
    loaded.save_pretrained(tmp_path)
    again = TokenTagger.from_pretrained(tmp_path)
    assert again.predict(SENTENCES) == loaded.predict(SENTENCES)  # without probabilities
    assert again.predict(SENTENCES)[0][0].confidence is None


@pytest.mark.parametrize("file", ["model.safetensors", "token_tagger.json"])
def test_damaged_folders(file, trained, tmp_path):
    trained.save_pretrained(tmp_path)
    (tmp_path / file).write_bytes(b"{}")
    with pytest.raises(InputError, match=tmp_path.name):
        TokenTagger.from_pretrained(tmp_path)


def test_labels_of_new_and_saved_taggers(bert, trained, tmp_path):
    with pytest.raises(InputError, match="labels"):
        TokenTagger.from_pretrained(bert)
    trained.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="labels"):
        TokenTagger.from_pretrained(tmp_path, labels=LABELS)


def test_labels_of_a_token_classifier(tmp_path):
    save_bert(tmp_path, id2label=dict(enumerate(LABELS)))
    assert TokenTagger.from_pretrained(tmp_path).labels.names == tuple(LABELS)


# -- adapters -------------------------------------------------------------------------------------------------


@pytest.fixture
def peft():
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs accelerate: pip install accelerate")
    return pytest.importorskip("peft", reason="adapters need peft: pip install peft")


def adapted(peft, tagger, **options):
    return peft.get_peft_model(tagger, peft.LoraConfig(modules_to_save=["head", "scores"], **options))


def trained_by_trainer(model, folder, steps, **options):
    torch.manual_seed(0)
    rows = Dataset.from_list(model.encode(SENTENCES, GOLD)).add_column("tokens", SENTENCES)
    arguments = TrainingArguments(
        str(folder), max_steps=steps, learning_rate=0.02, report_to="none", use_cpu=True, disable_tqdm=True, **options
    )
    trainer = Trainer(model, arguments, DataCollatorForTokenClassification(model.tokenizer), rows, rows)
    trainer.train()
    return trainer


@pytest.mark.parametrize(
    ("save", "options"),
    [(save_bert, {"task_type": "TOKEN_CLS"}), (save_modernbert, {"target_modules": ["Wqkv"]})],
)
def test_adapters_are_trained_saved_merged_and_loaded(save, options, peft, tmp_path):
    folder = save(tmp_path / "encoder")
    model = adapted(peft, made(folder), **options)
    before = {name: one.clone() for name, one in model.state_dict().items() if isinstance(one, torch.Tensor)}
    trained_by_trainer(model, tmp_path / "trained", 60)
    changed = {name for name, one in model.state_dict().items() if not torch.equal(one, before[name])}
    assert all("modules_to_save" in name or "lora" in name for name in changed)
    assert any("transitions" in name for name in changed)
    assert model.tag(SENTENCES) == GOLD
    spans = model.predict(SENTENCES)
    loaded = peft.PeftModel.from_pretrained(made(folder), tmp_path / "trained" / "checkpoint-60")
    assert loaded.predict(SENTENCES) == spans
    loaded.merge_and_unload().save_pretrained(tmp_path / "merged")
    merged = TokenTagger.from_pretrained(tmp_path / "merged")
    assert merged.tag(SENTENCES) == GOLD
    for one, other in zip(merged.predict(SENTENCES)[0], spans[0], strict=True):
        assert one.confidence == pytest.approx(other.confidence, abs=1e-3)
    assert all(one.requires_grad for one in merged.head.parameters())


def test_tagger_with_adapters_is_not_saved_as_a_whole(bert, peft, tmp_path):
    tagger = made(bert)
    adapted(peft, tagger)
    with pytest.raises(InputError, match="merge_and_unload"):
        tagger.save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())


def test_gradient_checkpointing_of_adapters(bert, peft, tmp_path):
    models = [adapted(peft, made(bert)) for _ in range(2)]
    for model, checkpointing in zip(models, (True, False), strict=True):
        trained_by_trainer(model, tmp_path, 2, save_strategy="no", gradient_checkpointing=checkpointing)
    torch.testing.assert_close(*(dict(model.named_parameters()) for model in models))


def test_accumulated_batches_have_the_mean_loss(bert, tmp_path):
    """The Trainer divides the loss by the number of batches, although `forward` takes further options."""
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs accelerate: pip install accelerate")
    parts = [{"per_device_train_batch_size": 3}, {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 3}]
    once = {"save_strategy": "no", "logging_steps": 1}
    trainers = [trained_by_trainer(made(bert, dropout=0), tmp_path, 1, **once, **part) for part in parts]
    one, other = (trainer.state.log_history[0]["grad_norm"] for trainer in trainers)
    assert one == pytest.approx(other)


def test_other_inputs(bert):
    batch = collated(made(bert))
    found = made(bert)(**batch, return_dict=True, output_attentions=None, num_items_in_batch=torch.tensor(9))
    torch.testing.assert_close(found.loss, made(bert)(**batch).loss)
    with pytest.raises(InputError, match="position_ids"):
        made(bert)(**batch, position_ids=torch.zeros_like(batch["input_ids"]))
