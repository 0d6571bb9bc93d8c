import pytest

from structperc.errors import InputError
from structperc.training.run_callbacks import StopWhenConverged


def stops_at(errors, **options):
    rule = StopWhenConverged(**options)
    return next((i for i, error in enumerate(errors) if rule.observe(error)), None)


def test_three_small_changes_in_a_row():
    errors = [0.5, 0.1, 0.100001, 0.100002, 0.2, 0.200001, 0.200002, 0.200003, 0.3]
    assert stops_at(errors) == 7


def test_never_settles():
    assert stops_at([1 / 2**i for i in range(50)]) is None


def test_zero_error_settles():
    assert stops_at([0.1, 0.0, 0.0, 0.0, 0.0]) == 4


def test_state_survives_a_resume():
    errors = [0.5, 0.1, 0.1, 0.1, 0.1]
    first = StopWhenConverged()
    for error in errors[:3]:
        assert not first.observe(error)
    resumed = StopWhenConverged()
    resumed.load_state_dict(first.state_dict())
    assert [resumed.observe(error) for error in errors[3:]] == [False, True]


def test_bad_options():
    with pytest.raises(InputError, match="patience"):
        StopWhenConverged(patience=0)
