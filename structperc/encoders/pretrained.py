"""Transformers of the Hugging Face library: from a folder, from the hub, or without weights from a configuration."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from structperc.data.text_files import expand_path, expand_variables
from structperc.errors import InputError
from structperc.progress import library_bars

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

OUTSIDE = re.compile(  # options that refer to code or files
    "auto_map|backbone|custom_pipelines|_implementation|kernel_config|use_kernels|name_or_path|quantization_config"
)
HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def check_installed() -> None:
    """Raise InputError, with the command that installs it, if the library is missing."""
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise InputError("Transformer needs the extra `neural`: pip install structperc[neural]") from None


def load_pretrained(model: str, revision: str | None = None) -> "tuple[nn.Module, PreTrainedTokenizerFast]":
    """Return a network in float32 and its tokenizer. `model` is a local folder or an id of the hub.

    Raises InputError: a path that is not a folder, a model or revision that cannot be downloaded, or a model with a
    decoder, without a fast tokenizer, or with code.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer
    from transformers.utils import logging

    place = encoder_place(model)
    options = {"revision": revision or "main", "local_files_only": Path(place).is_dir(), "trust_remote_code": False}
    try:
        config = AutoConfig.from_pretrained(place, **options)
        if not config.is_encoder_decoder:
            tokenizer = AutoTokenizer.from_pretrained(place, **options)
            on, off = logging.enable_progress_bar, logging.disable_progress_bar
            with library_bars(logging.is_progress_bar_enabled(), off, on):
                network = AutoModel.from_pretrained(place, dtype=torch.float32, **options)
    except Exception as error:  # any error of a damaged folder or of the hub
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"Transformer: model {place} cannot be loaded; change model ({reason})") from None
    if config.is_encoder_decoder:
        raise InputError(f"Transformer: model {place} has an encoder and a decoder; choose an encoder")
    if not tokenizer.is_fast:
        raise InputError(f"Transformer: model {place} has no fast tokenizer; save it with one, or take another model")
    return network, tokenizer


def encoder_place(model: str) -> str:
    """Return the expanded path of a folder, or the expanded hub id.

    Raises InputError: A path that is not a folder.
    """
    name, folder = expand_variables(model), expand_path(model)
    if folder.is_dir():
        return str(folder)
    there = folder.exists() or ("/" in name and folder.parent.is_dir())
    if there or str(folder) != name or not HUB_ID.fullmatch(name):
        raise InputError(f"Transformer: model {folder} is not a folder; give a folder with a saved model, or a hub id")
    return name


def config_of(network: Any) -> dict[str, Any]:
    """Return the configuration of a network as plain JSON types, without its path."""
    config = json.loads(network.config.to_json_string(use_diff=False))
    return {option: value for option, value in config.items() if option != "_name_or_path"}


def untrained_network(config: dict[str, Any]) -> nn.Module:
    """Return a network with this configuration and random weights, in float32.

    Raises InputError: a configuration that would download files or run code of the model.
    """
    from transformers import AutoConfig, AutoModel

    if names := [option for option in _set(config) if OUTSIDE.search(option)]:
        raise InputError(
            f"Transformer: the configuration sets {names[0]}, which refers to files outside the model folder"
        )
    made = AutoModel.from_config(AutoConfig.for_model(**config), dtype=torch.float32, trust_remote_code=False)
    return made.eval()


def _set(config: Any) -> Iterator[str]:
    """Yield the names of the options that are set in a configuration, including nested ones."""
    if isinstance(config, list):
        for item in config:
            yield from _set(item)
    if isinstance(config, dict):
        for option, value in config.items():
            if value:
                yield str(option)
            yield from _set(value)


def network_parts(network: nn.Module) -> list[tuple[nn.Module, int]]:
    """Return the parts of a network with their depths: 0 for embeddings, i for layer i = 1, ..., n.

    Layer i is the i-th entry of the longest list of modules that is not part of another one, or of all lists of that
    length. Modules before the first layer count as embeddings, those after it have depth n, unless they are tables.
    """
    outer = list(_outer_lists(network))
    n = max(map(len, outer), default=0)
    layers = [modules for modules in outer if len(modules) == n]
    parts: list[tuple[nn.Module, int]] = []

    def visit(module: nn.Module) -> None:
        for child in module.children():
            if any(child is layer_list for layer_list in layers):
                parts.extend((layer, i) for i, layer in enumerate(child.children(), 1))
            elif any(inner is layer_list for layer_list in layers for inner in child.modules()):
                visit(child)
            else:
                below = not any(depth for _, depth in parts) or isinstance(child, nn.Embedding)
                parts.append((child, 0 if below else n))

    visit(network)
    return parts


def _outer_lists(module: nn.Module) -> Iterator[nn.ModuleList]:
    """Yield the lists of modules in a module, without those within another list."""
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield child
        else:
            yield from _outer_lists(child)


def reads_spaces(tokenizer: Any) -> bool:
    """Return True if a tokenizer splits the words of a text as if the space before a word were part of it.

    So do byte-level tokenizers (GPT-2, RoBERTa, ModernBERT), unless they put a space before each word themselves.
    `tokenizer`: one of the library tokenizers, or a fast tokenizer of transformers.
    """
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "encode"):
        return False
    text = backend.encode("a a").ids
    plain, spaced = (backend.encode(words, is_pretokenized=True).ids for words in (["a", "a"], ["a", " a"]))
    return plain != text == spaced


def positions(network: Any) -> int | None:
    """Return the maximal number of pieces of an input; None if there is no limit.

    Positions of the RoBERTa family start after the number of the padding.
    """
    for name, part in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, nn.Embedding):
            return part.num_embeddings - (0 if part.padding_idx is None else part.padding_idx + 1)
    limit = getattr(network.config, "max_position_embeddings", None) or 0
    return limit if limit > 0 else None  # XLNet has -1
