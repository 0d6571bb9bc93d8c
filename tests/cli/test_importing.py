"""What is imported stays as it is, and other objects are looked through for garbage as before."""

import gc
import sys
import weakref

import pytest

from structperc.cli.train import frozen_imports


class Cycle:
    def __init__(self) -> None:
        self.own = self


@pytest.mark.parametrize("new", [True, False])
def test_frozen_objects(new, monkeypatch, tmp_path):
    (tmp_path / "module_with_a_cycle.py").write_text("made = []\nmade.append(made)\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = gc.get_freeze_count()  # by tests/conftest.py
    cycle = weakref.ref(Cycle())
    with frozen_imports():
        assert not gc.isenabled()
        if new:
            import module_with_a_cycle  # noqa: F401
    sys.modules.pop("module_with_a_cycle", None)
    assert gc.isenabled()
    assert (gc.get_freeze_count() > before) == new
    gc.collect(1)  # the young objects: frozen ones are not looked at
    assert (cycle() is None) != new


def test_garbage_collection_after_failed_import():
    before = gc.get_freeze_count()
    with pytest.raises(ModuleNotFoundError), frozen_imports():
        import no_such_module  # noqa: F401
    assert gc.isenabled()
    assert gc.get_freeze_count() <= before  # some may have been deleted
