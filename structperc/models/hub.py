"""Sharing of models: the card of a saved model (README.md), and repositories of the Hugging Face hub.

A model can be loaded without its card. The card begins with the metadata of the hub; a part between two marks has the
location of the model.
"""

import math
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import yaml
from huggingface_hub import CommitOperationAdd, EvalResult, HfApi, ModelCard, ModelCardData, snapshot_download
from huggingface_hub.utils import HFValidationError, validate_repo_id

from structperc.constructors import CLASS
from structperc.errors import InputError
from structperc.models.model_format import (
    CONFIG,
    FEATURE_PREFIX,
    WEIGHTS,
    dequantize_tables,
    model_errors,
    read_arrays,
    read_configuration,
)
from structperc.version import __version__

CARD = "README.md"
LARGEST = 2**20  # bytes of a card that is kept
SHOWN = 200  # labels
PLACE, END = "<!-- place -->", "<!-- end of place -->"
LIBRARY = "structperc"
WORDS = ("Anna", "lives", "in", "Rome", ".")


def model_card(
    config: Mapping[str, Any],
    arrays: Mapping[str, Any],
    columns: Sequence[str],
    name: str | None = None,
    sections: Sequence[str] = (),
    results: Sequence[EvalResult] = (),
) -> str:
    """Return the text of a card.

    Args:
        config: Configuration of the model, see `Model.to_state`.
        arrays: Tensors or arrays of the tagger.
        columns: Roles of the columns that it reads, the word first.
        name: Name of the model and of its results; default: the class of the tagger.
        sections: Further parts as Markdown, each with its heading.
        results: Scores in the form of the hub.
    """
    kind = config["class"].rpartition(".")[2]
    weights = sum(math.prod(array.shape) for part, array in arrays.items() if not part.startswith(FEATURE_PREFIX))
    data = ModelCardData(
        library_name=LIBRARY,
        pipeline_tag="token-classification",
        tags=[LIBRARY, "sequence-labelling", "safetensors"],
        model_name=name or kind,
        eval_results=[*results] or None,
    )
    use = use_text(config["class"], columns, foreign_modules(config))
    parts = [f"# {code(name)}" if name else f"# {kind}", *_about(config, columns, weights), "## Use", use, *sections]
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n\n".join(parts) + "\n"


def _about(config: Mapping[str, Any], columns: Sequence[str], weights: int) -> Iterator[str]:
    labels = [code(label) for label in config["labels"]]
    more = f" and {len(labels) - SHOWN:,} more" if len(labels) > SHOWN else ""
    yield f"A tagger of {LIBRARY}, `{config['class']}`: it gives every token of a text one of {len(labels):,} labels."
    rows = {
        "labels": f"{' '.join(labels[:SHOWN])}{more}",
        "tag scheme": config["scheme"],
        "a sequence is": f"a {config['unit']}",
        "columns that are read": ", ".join(map(code, columns)),
        **{name: f"`{part[CLASS]}`" for name, part in config.items() if isinstance(part, dict) and CLASS in part},
        "weights": f"{weights:,}, in model.safetensors",
        "saved by": f"{LIBRARY} {__version__}, PyTorch {version('torch')}, Python {platform.python_version()}",
    }
    yield "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def use_text(path: str, columns: Sequence[str], trusted: Sequence[str] = ()) -> str:
    """Return instructions to use a model in a folder `model`, from Python and from the command line.

    Args:
        path: Dotted path of the tagger's class.
        columns: Roles of the columns that it reads.
        trusted: Other modules than this library that define classes of the model.
    """
    module, _, kind = path.rpartition(".")
    further = [role for role in columns if role != "word"]
    row = {"word": [*WORDS], **{role: ["_"] * len(WORDS) for role in further}}
    sentence = _written(row if further else [*WORDS])
    python = f'from {module} import {kind}\n\ntagger = {kind}.load("model"{_option(trusted)})\n'
    text = "\\n".join(" ".join([word, *["_"] * len(further)]) for word in WORDS)
    shell = (
        f"printf '{text}\\n' > new.txt\nstructperc tag model new.txt{''.join(f' --trust {name}' for name in trusted)}"
    )
    parts = [
        f"{PLACE}\n\nThe model is this folder, here called `model`.\n\n{END}",
        f"It runs code of {', '.join(map(code, trusted))}." if trusted else "",
        f"Replace `_` by the {', '.join(map(code, further))} of the words." if further else "",
        code_block(f"{python}print(tagger.tag([{sentence}]))", "python"),
        code_block(shell, "bash"),
    ]
    return "\n\n".join(filter(None, parts))


def _option(trusted: Sequence[str]) -> str:
    return f", trusted={_written([*trusted])}" if trusted else ""


def _written(given: Any) -> str:
    """A list or mapping of plain strings as Python code, with the quotes of the formatter."""
    return repr(given).replace("'", '"')


def foreign_modules(config: Any) -> list[str]:
    """Return the modules outside of this library whose classes a saved model contains."""
    modules: dict[str, None] = {}
    open_ = [{**config, CLASS: config["class"]}]
    while open_:
        value = open_.pop()
        if isinstance(value, dict) and isinstance(path := value.get(CLASS), str) and "." in path:
            modules[path.rpartition(".")[0]] = None
        open_ += value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return sorted(module for module in modules if module.partition(".")[0] != LIBRARY)


def hub_card(
    text: str, config: Mapping[str, Any], repository: str, licence: str | None, languages: Sequence[str]
) -> str:
    """Return a card for a repository of the hub, with instructions how to download the model.

    Replaces licence and languages if they are given, and the text between the marks of the place. Raises ValueError or
    yaml.YAMLError for invalid metadata.
    """
    card = ModelCard(text)
    data = cast(ModelCardData, card.data)
    if licence is not None:
        data.license = licence
    if languages:
        data.language = [*languages]
    if data.eval_results:
        data.model_name = repository.rpartition("/")[2]
    kind = config["class"].rpartition(".")[2]
    call = f'{kind}.from_pretrained("{repository}"{_option(foreign_modules(config))})'
    fetch = code_block(f"hf download {repository} --local-dir model", "bash")
    place = f"{PLACE}\n\n{fetch}\n\nFrom Python, `{call}` fetches and loads it.\n\n{END}"
    marked = re.compile(f"{re.escape(PLACE)}.*?{re.escape(END)}", re.DOTALL)
    return marked.sub(lambda _: place, str(card), count=1)


def read_card(folder: Path) -> str | None:
    """Return the text of a folder's card; None for a missing card, a binary file or a very large one."""
    path = folder / CARD
    try:
        small = path.is_file() and path.stat().st_size <= LARGEST
        return path.read_bytes().decode("utf-8") if small else None
    except (OSError, UnicodeDecodeError):
        return None


def code(text: str) -> str:
    """Return a text as Markdown code that is also valid in a table."""
    plain = " ".join(text.split()).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall("`+", plain)), default=0) + 1)
    gap = " " if plain[:1] == "`" or plain[-1:] == "`" else ""
    return f"{ticks}{gap}{plain}{gap}{ticks}"


def code_block(text: str, language: str) -> str:
    """Return any text as a Markdown block of code."""
    ticks = "`" * max(3, max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


LOGIN = "log in with `hf auth login`, or give a token with write access"
DENIED = (401, 403, 404)  # status codes without permission


def push_folder(
    folder: str | Path,
    repo_id: str,
    *,
    private: bool | None = None,
    token: str | bool | None = None,
    licence: str | None = None,
    language: str | Sequence[str] = (),
    branch: str | None = None,
    commit_message: str = "A saved model",
    create_pr: bool = False,
) -> str:
    """Upload the folder of a saved model to the hub.

    The repository is created if it does not exist. One commit has all three files; README.md is copied from the folder.

    Args:
        folder: Folder of a saved model; its files are checked first.
        repo_id: Repository, such as "me/tagger".
        private: Make a new repository private. None: the default of the account.
        token: Token of the hub; default: that of `hf auth login`, or of HF_TOKEN.
        licence: Licence for the card, an identifier of the hub such as "apache-2.0"; default: that of the card.
        language: Language for the card, a code such as "en", or several.
        branch: Branch of the repository; default: main.
        commit_message: First line of the commit.
        create_pr: Open a pull request.

    Returns:
        The address of the commit.

    Raises:
        InputError: The model is incomplete, the card has no valid metadata, the id is invalid, or the hub reports an
            error.

    Example:
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> SequenceTagger("averaged_perceptron", random_state=1).fit(X, y).tagger_.save("model")
        >>> push_folder("model", "me/tagger", private=True)  # doctest: +SKIP
        'https://huggingface.co/me/tagger/commit/...'
    """
    path = Path(folder)
    text = _card(path, repo_id, licence, [language] if isinstance(language, str) else language)
    files: dict[str, Any] = {CONFIG: path / CONFIG, WEIGHTS: path / WEIGHTS, CARD: text.encode()}
    api = HfApi(token=token)
    try:
        repository = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        operations = [CommitOperationAdd(name, file) for name, file in files.items()]
        commit = api.create_commit(
            repository, operations, commit_message=commit_message, revision=branch, create_pr=create_pr
        )
        return commit.commit_url
    except Exception as error:  # errors of the hub library or of its network library
        denied = getattr(getattr(error, "response", None), "status_code", None) in DENIED
        raise InputError(f"hub {repo_id}: cannot push ({_reason(error)}){f'; {LOGIN}' if denied else ''}") from error


def download(model: str, revision: str | None = None, **options: Any) -> Path:
    """Download a model of the hub, its two files and its card; return their folder.

    options: those of `huggingface_hub.snapshot_download`. Raises InputError if the model cannot be downloaded.
    """
    try:
        return Path(snapshot_download(model, revision=revision, allow_patterns=[CONFIG, WEIGHTS, CARD], **options))
    except Exception as error:  # errors of the hub library or of its network library
        raise InputError(f"hub {model}: cannot download the model ({_reason(error)})") from error


def _card(folder: Path, repo_id: str, licence: str | None, languages: Sequence[str]) -> str:
    """Return the card for the hub. Raises InputError for errors that can be detected without the hub."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise InputError(f"hub {repo_id}: invalid id of a repository ({_reason(error)})") from None
    with model_errors(folder):
        config = read_configuration(folder).entries
        dequantize_tables(config, read_arrays(folder))
    text = read_card(folder)
    if text is None:
        raise InputError(f"{folder}: {CARD}, the card of the model, is missing; save the model again, or write a card")
    try:
        return hub_card(text, config, repo_id, licence, languages)
    except (ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
        raise InputError(f"{folder / CARD}: its metadata cannot be read ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
