"""Examples of docstrings run in a folder of their own and leave no files here: pytest --doctest-modules structperc."""

import pytest


@pytest.fixture(autouse=True)
def folder_of_examples(request: pytest.FixtureRequest) -> None:
    """Change into a temporary folder for an example."""
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
