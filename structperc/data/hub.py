"""Data sets of the Hugging Face hub, by id and revision."""

import os
import re
from collections.abc import Mapping, Sequence

import datasets
import huggingface_hub
from datasets import Dataset
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

from structperc.data.corpus import Corpus
from structperc.data.tables import TableOptions, dataset_corpus
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
    """Read a data set as rows of sentences, see `hub_corpus` and `Corpus.to_dataset`."""
    return hub_corpus(hub, columns, split, revision, config, label_names).to_dataset()


def hub_corpus(
    hub: str,
    columns: Mapping[str, str],
    split: str = "train",
    revision: str | None = None,
    config: str | None = None,
    label_names: Mapping[str, Sequence[str]] | None = None,
    unit: str = "sentence",
) -> Corpus:
    """Read a split of the data set `hub` ("owner/name") whose rows are sentences.

    `columns` maps each role to a column of the data set. Class labels are named by the data set, bare numbers by
    `label_names[role]`. With HF_HUB_OFFLINE=1 the copy loaded last is read, whatever its revision.

    Raises InputError if the hub does not answer within seconds, for unknown ids, revisions, splits and columns, and for
    numbers without names.
    """
    data = _load(hub, config, split, revision)
    return dataset_corpus(data, TableOptions(columns, label_names or {}), f"hub {hub}", unit)


def _load(hub: str, config: str | None, split: str, revision: str | None) -> Dataset:
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", hub):
        raise InputError(f"hub must be the id OWNER/NAME of a data set, not {hub!r}; name files in `path`")
    if os.path.exists(hub):
        raise InputError(f"hub {hub} is also a file or folder here; name files in `path`, or work elsewhere")
    if not datasets.config.HF_HUB_OFFLINE:
        revision = _commit(hub, revision)
    try:
        on = not datasets.are_progress_bars_disabled()
        with library_bars(on, datasets.disable_progress_bars, datasets.enable_progress_bars):
            return datasets.load_dataset(hub, config, split=split, revision=revision)
    except RuntimeError as error:  # a loading script
        raise InputError(
            f"hub {hub}: this data set is a program, which is not run; set `revision: refs/convert/parquet`, if it has "
            "that, or load it yourself for InMemory"
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
        raise InputError(f"hub {hub}: no revision {revision!r}; change `revision`") from None
    except RepositoryNotFoundError:
        raise InputError(f"hub {hub}: no such data set, or not open to you; change `hub`") from None
    except Exception as error:  # whichever HTTP library huggingface_hub uses
        raise InputError(
            f"hub {hub}: no answer from {datasets.config.HF_ENDPOINT} ({type(error).__name__}); set "
            "HF_HUB_OFFLINE=1 to use a copy loaded before, or name local files in `path`"
        ) from error
