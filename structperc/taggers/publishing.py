"""Saved models as repositories of the hub: a folder's three files, in one commit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.utils import HFValidationError, validate_repo_id

from structperc.errors import InputError
from structperc.taggers.model_card import CARD, kept_card, published
from structperc.taggers.model_files import CONFIG, WEIGHTS, readable
from structperc.taggers.model_folder import read_folder

LOGIN = "log in with `hf auth login`, or give a token that may write there"
REFUSED = (401, 403, 404)  # the hub's answers to those who may not


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
    """Put the folder of a saved model on the hub, and return the address of the commit.

    The repository is made if there is none. All three files, README.md as it stands in the folder, appear in one
    commit or not at all.

    Args:
        folder: of a saved model; its files are checked first.
        repo_id: of the repository, such as "me/tagger".
        private: whether a new repository is private. None: as the account has it.
        token: of the hub; default: that of `hf auth login`, or of HF_TOKEN.
        licence: for the card, an identifier of the hub such as "apache-2.0"; default: what the card says, if it does.
        language: for the card, a code such as "en", or several.
        branch: of the repository; default: main.
        commit_message: first line of the commit.
        create_pr: ask for the change by a pull request.

    Raises:
        InputError: a folder without a whole model or with a card that has no proper metadata, an id that is none, and
            whatever the hub refuses.
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
    except Exception as error:  # of the hub's library, or of whichever one it uses for the network
        raise InputError(f"hub {repo_id}: cannot push ({_reason(error)}){_advice(error)}") from error


def _card(folder: Path, repo_id: str, licence: str | None, languages: Sequence[str]) -> str:
    """The card that is pushed. Raises InputError for what can be seen to be wrong before the hub is asked."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise InputError(f"hub {repo_id}: this is no id of a repository ({_reason(error)})") from None
    with readable(folder):
        config, _ = read_folder(folder)
    text = kept_card(folder)
    if text is None:
        raise InputError(f"{folder}: there is no {CARD}, the card of the model; save the model again, or write one")
    try:
        return published(text, config, repo_id, licence, languages)
    except (ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError) as error:
        raise InputError(f"{folder / CARD}: its metadata cannot be read ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _advice(error: Exception) -> str:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"; {LOGIN}" if status in REFUSED else ""
