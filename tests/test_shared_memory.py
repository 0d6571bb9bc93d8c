"""Things that are sent: what arrives is what was sent, and large arrays of it lie in files."""

import numpy as np
import pytest

from structperc.process_pool import LARGE, pack

LONG = np.arange(LARGE // 4, dtype=np.int32)


@pytest.fixture
def sent():
    return {
        "twice": (LONG, LONG),
        "just too short": LONG[:-1],
        "rows": LONG.reshape(4, -1).T,
        "gaps": np.concatenate([LONG, LONG])[::2],
        "none": np.empty(0, np.int64),
        "text": "ä\udc80",
    }


def test_pack_and_load(sent, tmp_path):
    for folder, files in ((tmp_path, 2), (None, 0)):
        packed = pack(sent, folder)
        assert len(packed.files) == len(list(tmp_path.iterdir())) == files
        for found in (packed.load(), packed.take()):
            assert found.keys() == sent.keys()
            assert found["text"] == sent["text"]
            assert found["twice"][0] is found["twice"][1]
            for name in ("just too short", "rows", "gaps", "none"):
                assert found[name].dtype == sent[name].dtype
                np.testing.assert_array_equal(found[name], sent[name])
            np.testing.assert_array_equal(found["twice"][0], LONG)
        assert not list(tmp_path.iterdir())


def test_private_copies_of_arrays(tmp_path):
    packed = pack(LONG, tmp_path)
    one, other = packed.load(), packed.take()
    one[:] = 0
    np.testing.assert_array_equal(other, LONG)


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        pack(LONG, tmp_path / "none")
