"""From the shell to the first label: processor time and peak memory of a process that labels one sentence.

Ours is `structperc.load`, or `structperc tag`, whose file is one sentence; the peer is `Tagger.load` in the same place.
What is compiled lies on disk already. A process counts from its start to its end, the fastest of several times, and is
started by one that is small itself: a process is given the peak memory of the one that it was forked from.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.epoch import _data
from benchmarks.tagging import _trained, _with_lists
from structperc.data import Synthetic
from structperc.features import FeatureExtractor
from structperc.taggers import Tagger

TIMES = 6  # with the first, which is not counted
TARGETS = "≤ 1.5 s", "≤ 300 MB"  # for the small model
SENTENCE = ["Nothing", "was", "heard", "from", "Lindal", "."]
LIGHT = "import sys, structperc; print(structperc.load(sys.argv[1]).tag([{}]))"
WHOLE = "import sys; from structperc import Tagger; print(Tagger.load(sys.argv[1]).tag([{}]))"
STARTER = """
import json, os, sys
process = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ)
_, status, used = os.wait4(process, 0)
print(json.dumps([status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def run(smoke: bool) -> list[dict]:
    """Return seconds and MB from Python and of the command, for the model of the quickstart and for a larger one."""
    small = Synthetic(unit="document")
    rows = _rows(_trained(FeatureExtractor(["kazama2007"], progress=False), small), "the quickstart", smoke, TARGETS)
    data, name = (small, "") if smoke else _data(smoke)
    if name != "CoNLL-2003":
        return rows
    larger = "Table 1 and gazetteers on nodes and edges, CoNLL-2003"
    return [*rows, *_rows(_trained(_with_lists(), data), larger, smoke, (None, None))]


def _rows(tagger: Tagger, what: str, smoke: bool, targets: tuple[str | None, str | None]) -> list[dict]:
    columns = tagger.columns
    sentence = {role: SENTENCE if role == "word" else ["O"] * len(SENTENCE) for role in columns}
    size = f"the model of {what}: {tagger.features.n_node_features} node features"
    with tempfile.TemporaryDirectory() as folder:
        model, file = str(Path(folder) / "model"), Path(folder) / "text"
        tagger.save(model)
        file.write_text("".join(" ".join(row) + "\n" for row in zip(*sentence.values(), strict=True)))
        times = 1 if smoke else TIMES
        whole = _used(times, "-c", WHOLE.format(sentence), model)
        python = _used(times, "-c", LIGHT.format(sentence), model)
        command = _used(times, "-m", "structperc", "tag", model, str(file))
    named = {"structperc.load and one sentence": python, "structperc tag of one sentence": command}
    return [row for name, ours in named.items() for row in _pair(name, size, ours, whole, targets)]


def _used(times: int, *arguments: str) -> tuple[float, float]:
    """Seconds of user and system, and MB, of a Python process; the least of several times, but for the first."""
    found = []
    for _ in range(times):
        starter = [sys.executable, "-c", STARTER, *arguments]
        said = subprocess.run(starter, capture_output=True, text=True, check=True).stdout
        status, seconds, memory = json.loads(said.splitlines()[-1])
        assert status == 0, said
        found.append((seconds, memory))
    seconds, memory = zip(*(found[1:] or found), strict=True)
    return min(seconds), min(memory)


def _pair(name: str, size: str, ours: tuple, peer: tuple, targets: tuple) -> list[dict]:
    figures = zip(("processor time", "peak memory"), ours, peer, ("s", "MB"), targets, strict=True)
    return [
        {
            "what": f"{name}, {what}, against Tagger.load",
            "size": size,
            "ours": own,
            "peer": other,
            "ratio": own / other,
            "unit": unit,
            "target": target,
        }
        for what, own, other, unit, target in figures
    ]
