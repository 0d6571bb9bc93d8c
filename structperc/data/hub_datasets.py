"""Data sets of the Hugging Face hub, by id and revision."""

import os
import re
from collections.abc import Mapping, Sequence

import datasets
import huggingface_hub
from datasets import Dataset
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

from structperc.data.table_files import TableOptions, dataset_corpus
from structperc.errors import InputError
from structperc.progress import library_bars

_ANSWER_SECONDS = 10.0


def read_hub(
    hub: str,
    columns: Mapping[str, str],
    *,
    split: str = "train",
    revision: str | None = None,
    config: str | None = None,
    label_names: Mapping[str, Sequence[str]] | None = None,
) -> Dataset:
    """Read a split of the data set `hub` ("owner/name") as rows of sentences, see `Corpus.to_dataset`.

    Args:
        hub: id of the data set, "owner/name".
        columns: column of the data set for each role.
        revision: commit, branch or tag; by default the newest.
        config: name of a configuration of the data set.
        label_names: names of labels stored as numbers, by role; class labels have names in the data set.

    Raises:
        InputError: an unknown id, revision, split or column, numbers without names, or no answer within seconds.

    Example:
        >>> read_hub("conll2003", {"word": "tokens"})
        Traceback (most recent call last):
        structperc.errors.InputError: hub must be the id OWNER/NAME of a data set, not 'conll2003'; ...
        >>> read_hub("eriktks/conll2003", {"word": "tokens", "label": "ner_tags"})  # doctest: +SKIP
    """
    data = load_split(hub, config, split, revision)
    return dataset_corpus(data, TableOptions(columns, label_names or {}), f"hub {hub}").to_dataset()


def load_split(hub: str, config: str | None, split: str, revision: str | None) -> Dataset:
    """Load a split of a data set. With HF_HUB_OFFLINE=1 the copy loaded last is read, of any revision.

    Raises InputError if the hub does not answer within seconds, and for unknown ids, revisions and splits.
    """
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", hub):
        raise InputError(f"hub must be the id OWNER/NAME of a data set, not {hub!r}; set `path` for files")
    if os.path.exists(hub):
        raise InputError(
            f"hub {hub}: a local file or folder has this name; set `path` for files, or change the working directory"
        )
    if not datasets.config.HF_HUB_OFFLINE:
        revision = _commit(hub, revision)
    try:
        on = not datasets.are_progress_bars_disabled()
        with library_bars(on, datasets.disable_progress_bars, datasets.enable_progress_bars):
            return datasets.load_dataset(hub, config, split=split, revision=revision)
    except RuntimeError as error:  # a loading script
        raise InputError(
            f"hub {hub}: loading scripts are not run; set `revision: refs/convert/parquet` if the data set has it, or "
            "load it yourself for InMemory"
        ) from error
    except (ValueError, OSError) as error:
        advice = "; unset HF_HUB_OFFLINE to download" if datasets.config.HF_HUB_OFFLINE else ""
        raise InputError(f"hub {hub}: {' '.join(str(error).split())}{advice}") from error


def _commit(hub: str, revision: str | None) -> str | None:
    """Return the commit of the revision, by one request without retries."""
    api = huggingface_hub.HfApi(endpoint=datasets.config.HF_ENDPOINT)
    try:
        return api.dataset_info(hub, revision=revision, timeout=_ANSWER_SECONDS).sha
    except RevisionNotFoundError:
        raise InputError(f"hub {hub}: unknown revision {revision!r}; change `revision`") from None
    except RepositoryNotFoundError:
        raise InputError(f"hub {hub}: data set not found, or access denied; change `hub`") from None
    except Exception as error:  # the class depends on the HTTP library that huggingface_hub uses
        raise InputError(
            f"hub {hub}: no answer from {datasets.config.HF_ENDPOINT} ({type(error).__name__}); set "
            "HF_HUB_OFFLINE=1 to use an earlier copy, or name local files in `path`"
        ) from error
