import pytest


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder of candidate lists."""
    return tmp_path_factory.mktemp("candidates")
