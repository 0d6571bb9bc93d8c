"""Data sets of the Hugging Face hub, by id and revision, with labels as names."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import huggingface_hub
import numpy as np
import pyarrow as pa
from datasets import Dataset
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

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
    """Return a split of the data set `hub` ("owner/name") as rows of sentences; the hub has no documents.

    `columns` maps each role to a column of the data set. Columns of class labels become the names that the
    data set gives them; a column of bare numbers needs its names, in their order, in `label_names[role]`.

    Raises InputError at once when the hub does not answer. With HF_HUB_OFFLINE=1 the copy loaded last is read,
    whatever its revision. InputError is also raised for unknown ids, revisions, splits and columns, and numbers without
    names.
    """
    data = _load(hub, config, split, revision)
    if missing := [column for column in columns.values() if column not in data.column_names]:
        raise InputError(f"hub {hub}: no columns {missing} among {data.column_names}; change `columns`")
    table = data.with_format("arrow")[:]
    found = {"sentence": pa.array(np.arange(len(data)), pa.int64())}
    for role, column in columns.items():
        place = f"hub {hub}: column {column!r}"
        names = _names(data.features[column], (label_names or {}).get(role), place, role)
        values = table.column(column).combine_chunks()
        found[role] = values if names is None else _named(values, names, place)
    return Dataset(pa.table(found))


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
    except RuntimeError as error:  # what used to be run to make the data
        raise InputError(
            f"hub {hub}: this data set is a program, which is not run; set `revision: refs/convert/parquet`, if it has "
            "that, or load it yourself for InMemory"
        ) from error
    except (ValueError, OSError) as error:
        advice = "; unset HF_HUB_OFFLINE to download" if datasets.config.HF_HUB_OFFLINE else ""
        raise InputError(f"hub {hub}: {' '.join(str(error).split())}{advice}") from error


def _commit(hub: str, revision: str | None) -> str | None:
    """Commit of the revision: one request without retries, so that a missing network is known at once."""
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


def _names(feature: Any, given: Sequence[str] | None, place: str, role: str) -> Sequence[str] | None:
    """Names for the numbers of a list column; None when it holds strings."""
    item = getattr(feature, "feature", None)
    kind = getattr(item, "dtype", "")
    if kind in ("string", "large_string"):
        return None
    if "int" not in kind:
        raise InputError(f"{place} holds no lists of words or labels; change `columns`")
    names = given or getattr(item, "names", None)
    if not names:
        raise InputError(f"{place} holds numbers without names; set label_names: {{{role}: [O, B-..., ...]}}")
    return names


def _named(values: Any, names: Sequence[str], place: str) -> Any:
    """Lists of class numbers -> lists of names."""
    numbers = values.flatten().to_numpy()
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(names):
        raise InputError(f"{place} holds {numbers.min()}..{numbers.max()}, but there are {len(names)} names")
    boundaries = np.append(0, np.cumsum(values.value_lengths().to_numpy()))
    texts = pa.array(names, pa.string()).take(pa.array(numbers))
    return pa.ListArray.from_arrays(pa.array(boundaries, pa.int32()), texts)
