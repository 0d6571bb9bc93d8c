import pytest

from tests.encoders.tiny_models import save_bert


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """The folder of a BERT without dropout."""
    return save_bert(tmp_path_factory.mktemp("models") / "bert")
