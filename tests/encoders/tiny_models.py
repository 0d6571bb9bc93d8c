"""Folders with transformers of random weights, and their tokenizers, for a few words and all English letters."""

import string
from functools import partial
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertModel,
    ModernBertConfig,
    ModernBertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

SPECIAL = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
LETTERS = string.ascii_lowercase + string.digits


def word_pieces() -> Tokenizer:
    """WordPiece, lower-cased: [CLS] ... [SEP] around words; whatever has no letters but [UNK] or nothing."""
    pieces = [*SPECIAL.values(), "met", "an", "##na", "in", "no", *LETTERS, *(f"##{letter}" for letter in LETTERS), "."]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", ends)
    return made


def byte_pieces(prefix: bool = False) -> Tokenizer:
    """Byte-level pairs, with a space before every word if `prefix`: <s> ... </s> around words."""
    made = Tokenizer(models.BPE(unk_token=None))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(["Anna met Bo in Rome and Anna met Rome in Bo " * 3], trainer)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=prefix)
    return made


def sentence_pieces(scheme: str = "always") -> Tokenizer:
    """SentencePiece: [CLS] ... [SEP] around words, spaces are part of the pieces after them."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    trainer = trainers.UnigramTrainer(
        vocab_size=80, special_tokens=list(SPECIAL.values()), unk_token="[UNK]", show_progress=False,
        initial_alphabet=list(LETTERS),
    )  # fmt: skip
    made.train_from_iterator(["Anna met Bo in Rome and Anna met Rome in Bo " * 3], trainer)
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return made


def pieces_with_spaces() -> Tokenizer:
    """Byte pairs of characters; the normalizer makes a space part of the piece after it, as in Gemma."""
    made = Tokenizer(models.BPE(unk_token="[UNK]"))
    made.normalizer = normalizers.Replace(" ", "\u2581")
    made.pre_tokenizer = pre_tokenizers.Split("\u2581", "merged_with_next")
    trainer = trainers.BpeTrainer(vocab_size=80, special_tokens=list(SPECIAL.values()), show_progress=False)
    made.train_from_iterator(["Anna met Bo in Rome and Anna met Rome in Bo " * 3], trainer)
    return made


TOKENIZERS = {
    "WordPiece": word_pieces,
    "bytes": byte_pieces,
    "bytes after a space": partial(byte_pieces, prefix=True),
    "SentencePiece": sentence_pieces,
    "SentencePiece without a first space": partial(sentence_pieces, "never"),
    "normalizer": pieces_with_spaces,
}


def save_bert(folder: Path, tokenizer: Tokenizer | None = None, special: dict = SPECIAL, **options) -> Path:
    """A BERT of 64 positions without dropout, unless `options` say so."""
    torch.manual_seed(1)
    quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 64}
    config = BertConfig(vocab_size=100, initializer_range=0.3, **{**SIZES, **quiet, **options})
    BertModel(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer or word_pieces(), **special).save_pretrained(folder)
    return folder


def save_modernbert(folder: Path) -> Path:
    """A ModernBERT of 64 positions, with bytes as pieces and no space before the first word."""
    torch.manual_seed(3)
    ids = {"pad_token_id": 1, "cls_token_id": 0, "sep_token_id": 2, "bos_token_id": 0, "eos_token_id": 2}
    ModernBertModel(
        ModernBertConfig(vocab_size=300, max_position_embeddings=64, initializer_range=0.3, **ids, **SIZES)
    ).save_pretrained(folder)
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=byte_pieces(), **special).save_pretrained(folder)
    return folder


def save_roberta(folder: Path) -> Path:
    """A RoBERTa of 34 rows of positions: 32 pieces can be told apart."""
    torch.manual_seed(2)
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    config = RobertaConfig(vocab_size=300, max_position_embeddings=34, initializer_range=0.3, **ids, **SIZES)
    RobertaModel(config).save_pretrained(folder)
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=byte_pieces(), **special).save_pretrained(folder)
    return folder
