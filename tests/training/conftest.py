"""Commands of training that must fail."""

import pytest


@pytest.fixture
def complaint(runs, capsys):
    """Runs a fit on small data that must fail in one line, the last one; -> what it complains about."""

    def complaint(*options):
        capsys.readouterr()
        assert (options, runs("fit", *options)) == (options, 2)
        lines = capsys.readouterr().err.strip().splitlines()
        (line,) = (line for line in lines if line.startswith("structperc: "))
        assert line == lines[-1]
        return line.removeprefix("structperc: error: ")

    return complaint
