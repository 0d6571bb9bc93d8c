"""Malformed input of every kind: accepted, or one line; never a traceback, a call of what a file names, a lost file.

Case n is the same on every machine. `pytest -m fuzz` runs all of them, which takes half an hour.
"""

import copy
import gzip
import io
import json
import os
import pickle
import re
import shutil
import signal
import sys
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random

import pytest
import torch
import yaml

from structperc.cli.main import main
from structperc.experiments import experiment
from tests.fuzz.inputs import TAGGERS, lay_out

CASES, BLOCK, QUICK = 2000, 100, 2  # in all, of one test, of each kind
SECONDS = 20  # of processor time
CANARY = "canary"  # stands in what must not be executed, imported or written
UNFINISHED = re.compile(r"(\.(part|tmp|unfinished|incomplete)|~)$|^\.(?!.*lock)|^tmp")

# -- changes of a file --------------------------------------------------------------------------------------------


def at(draw, data):
    return int(draw.random() * len(data))


def flipped(draw, data):
    place = at(draw, data)
    return data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]


def line_changed(draw, data):
    """A field more or less in one line, or a line more."""
    lines = data.split(b"\n")
    place = draw.randrange(len(lines))
    fields = re.split(rb"([ \t,:])", lines[place])
    lines[place] = draw.choice(
        (
            b"".join(fields[2:]),
            b"".join(fields[:-2]),
            lines[place] + b" x",
            lines[place] + b"\tx\n\t",
            b"\xc2\xa0",
            b"#",
        )
    )
    return b"\n".join(lines)


CHANGES = {
    "truncated": lambda draw, data: data[: at(draw, data)],
    "bit flipped": flipped,
    "bytes dropped": lambda draw, data: data[: (place := at(draw, data))] + data[place + draw.randint(1, 8) :],
    "NUL": lambda draw, data: data[: (place := at(draw, data))] + b"\0" + data[place:],
    "no UTF-8": lambda draw, data: data[: (place := at(draw, data))] + b"\xed\xa0\x80" + data[place:],
    "line changed": line_changed,
    "empty": lambda draw, data: b"",
    "random": lambda draw, data: draw.randbytes(draw.randint(1, 3000)),
    "gzip": lambda draw, data: gzip.compress(data, mtime=0),
    "JSON": lambda draw, data: b'{"word": ["Anna", "met"], "label": ["B-PER", "O"]}\n',
    "text": lambda draw, data: b"Angela Merkel visited Stromberg .\nThen she left for Rome and Paris .\n",
    "one long line": lambda draw, data: b"x" * 300_000,
    "nested": lambda draw, data: b"[" * 5000,
    "CR": lambda draw, data: data.replace(b"\n", b"\r"),
    "UTF-16": lambda draw, data: data.decode("latin-1").encode("utf-16"),
    "twice": lambda draw, data: data + data,
}


def damage(draw, path):
    """Change a file, remove it, or put something else in its place."""
    data = path.read_bytes()
    path.unlink()  # it may be a hard link
    if (how := draw.random()) < 0.05:
        return
    if how < 0.1:
        path.mkdir()
    elif how < 0.15:
        path.symlink_to(draw.choice((path.name, "nowhere", "/dev/null")))
    else:
        path.write_bytes(CHANGES[draw.choice(list(CHANGES))](draw, data))


# -- changes of a tree of mappings and lists -----------------------------------------------------------------------

VALUES = [
    *(None, -1, 0, 1.5, float("inf"), float("nan"), 10**12, 10**30, True, "", "such", "a\0b", "x" * 5000),
    *("\ud800", "/dev/null/at/all", "$NO_SUCH_PLACE/x", "structperc.training", "structperc.criteria.Criterion"),
    *("structperc.optim.Perceptron", "structperc.chain.kbest", [], [None], {}, {"a": "b"}),
]
CODE = [
    {"class_path": "os.system", "init_args": {"command": "touch CANARY"}},
    {"class_path": "subprocess.Popen", "init_args": {"args": "touch CANARY", "shell": True}},
    {"class_path": "builtins.open", "init_args": {"file": "CANARY", "mode": "w"}},
    {"class_path": "importlib.import_module", "init_args": {"name": "canary_module"}},
    {"class_path": "canary_module.Part", "init_args": {}},
    {"class_path": "torch.save", "init_args": {"obj": 1, "f": "CANARY"}},
]


def paths(tree, start=()):
    """Of all values below the top."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*start, key)
        yield from paths(value, (*start, key))


def changed(draw, tree):
    """A copy with another value, a key less, a key more or code at one place."""
    tree = copy.deepcopy(tree)
    *above, key = draw.choice(list(paths(tree)))
    holder = tree
    for one in above:
        holder = holder[one]
    how = draw.random()
    if how < 0.7:
        holder[key] = copy.deepcopy(draw.choice(VALUES))
    elif how < 0.8:
        holder[key] = copy.deepcopy(draw.choice(CODE))
    elif how < 0.9 or isinstance(holder, list):
        del holder[key]
    else:
        holder["no_such_key"] = 1
    return tree


class Call:
    """Pickles as a call, which is made when it is read."""

    def __reduce__(self):
        return exec, ("import canary_module",)


# -- kinds: each changes something in the folder of right inputs, and gives a command -------------------------------


def file_of(name, *commands):
    def kind(draw):
        damage(draw, Path(name))
        return list(draw.choice(commands))

    return kind


def configuration(draw):
    name = draw.choice((*TAGGERS, "neural"))
    path = Path(f"{name}.yaml")
    path.write_text(yaml.dump(changed(draw, yaml.safe_load(path.read_text())), sort_keys=False))
    return ["fit", "-c", path.name]


def study(draw):
    tree = changed(draw, yaml.safe_load(Path("study.yaml").read_text()))
    Path("study.yaml").write_text(yaml.dump(tree, sort_keys=False))
    return ["study", "study.yaml", "--root", "runs/study"]


def model(draw):
    folder = Path(f"runs/{draw.choice(TAGGERS)}/1/model")
    if draw.random() < 0.3:
        damage(draw, folder / draw.choice(("model.json", "model.safetensors")))
    else:
        tree = json.loads((folder / "model.json").read_text())
        tree |= {"format": 2}  # without checksums, by which any change would be noticed
        del tree["checksums"]
        (folder / "model.json").write_text(json.dumps(changed(draw, tree)))
    return [draw.choice(("tag", "evaluate")), str(folder), "dev.txt"]


def checkpoint(draw):
    name = draw.choice(TAGGERS)
    path = Path(f"runs/{name}/1/checkpoints/last.ckpt")
    if (how := draw.random()) < 0.3:
        damage(draw, path)
    else:
        tree = torch.load(path, weights_only=False)
        path.unlink()
        if how < 0.7:
            torch.save(changed(draw, tree), path)
        elif how < 0.9:
            torch.save({**tree, draw.choice(sorted(tree)): Call()}, path)
        else:
            path.write_bytes(pickle.dumps(Call()))
    return [draw.choice(("fit", "validate", "predict")), "-c", f"{name}.yaml", f"--ckpt_path={path}"]


LINES = [
    "tag runs/crf/1/model dev.txt -k 2",
    "tag runs/sparse/1/model dev.txt -o out.txt",
    "evaluate runs/crf/1/model dev.txt",
    "check train.txt dev.txt",
    "init train.txt",
    "compare a.conll b.conll --gold gold.conll --scheme IOB2 --beta 1",
    "weights runs/crf/1/model --top 3 --csv out.txt",
    "explain runs/sparse/1/model dev.txt --document 1 --n 4 --html out.txt",
    "decisions runs/guided/1/model dev.txt --sentence 1 2",
    "fit -c crf.yaml --trainer.max_epochs 1 --data.batch_size 2 --model.beta 1",
    "validate -c crf.yaml --ckpt_path best",
    "sweep -c sparse.yaml --grid data.batch_size=1,2 --root runs/sweep --holdout 0",
]
WORDS = [
    *(
        "",
        " ",
        "-",
        "--",
        "-1",
        "0",
        "1.5",
        "99999999",
        "1" + "0" * 40,
        "1e400",
        "nan",
        "null",
        "[]",
        "{a: ",
        "such",
        "ü",
    ),
    *("\udcff", "a\nb", "x" * 5000, "/dev/null/x", "place", "$NO_SUCH_PLACE", "%s", "--such=1", "-o=", "--data=null"),
]


def command_line(draw):
    """Another word in place of one, one more, or one less."""
    words = draw.choice(LINES).split()
    place, how = draw.randrange(len(words)), draw.random()
    words[place : place + (how < 0.8)] = [draw.choice(WORDS)] if how > 0.1 else []
    return words


KINDS = [
    file_of("dev.txt", *(line.split() for line in LINES[:4])),
    file_of("train.txt", ["fit", "-c", "crf.yaml"], ["init", "train.txt"]),
    file_of("bank.conllu", ["fit", "-c", "treebank.yaml"]),
    file_of("a.conll", LINES[5].split()),
    file_of("places.txt", ["fit", "-c", "sparse.yaml"]),
    file_of("paths.txt", ["fit", "-c", "sparse.yaml"]),
    file_of("vectors.txt", ["fit", "-c", "neural.yaml"]),
    file_of("crfpp.txt", ["fit", "-c", "crfpp.yaml"]),
    file_of("crf.yaml", ["fit", "-c", "crf.yaml"]),
    configuration,
    study,
    model,
    checkpoint,
    command_line,
]

# -- what becomes of a case ----------------------------------------------------------------------------------------

_executed = None


def _audit(event, arguments):
    reads = event == "open" and arguments[1] in ("r", "rb")
    if _executed is not None and event.startswith(("import", "exec", "open", "os.", "subprocess.", "shutil.")):
        named = arguments[0] if event == "import" else arguments
        if not reads and CANARY in repr(named).lower():
            _executed.append(f"{event} {named!r}"[:200])


sys.addaudithook(_audit)  # it cannot be removed; without a list to fill it does nothing


@contextmanager
def watched():
    """A list of what is done to what has the canary in its name; too much processor time is a TimeoutError."""
    global _executed

    def ring(number, frame):
        raise TimeoutError

    _executed, before = [], signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield _executed
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        _executed = None


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file()}


def fit_here(command, folder):
    """As studies and sweeps train, but in this process."""
    status = main([*command, *experiment.resume_options(folder)])
    return None if status == 0 else f"exit status {status}"


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    """The folder of right inputs, and a place for copies: models were trained there, and hold no other path."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "here").mkdir()
    lay_out(folder / "here")
    (folder / "here").rename(folder / "bench")
    return folder / "bench", folder / "here"


def complaints(bench, number):
    """What is wrong with what becomes of a case."""
    right, here = bench
    shutil.rmtree(here, ignore_errors=True)
    shutil.copytree(right, here)
    draw, out, err = Random(number), io.StringIO(), io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    with chdir(here):
        command = KINDS[number % len(KINDS)](draw)
        before, status, error = files(here), None, None
        with watched() as executed, redirect_stdout(out), redirect_stderr(err):
            try:
                status = main(command)
            except BaseException as left:
                error = left
    err.seek(0)
    lines = [line for line in err.read().splitlines() if line.startswith("structperc: error: ")]
    after = files(here)
    wrong = [f"executed {one}" for one in executed] + [f"raised {error!r}"] * (error is not None)
    if status == 70 or (status == 2 and (len(lines) != 1 or len(lines[0]) > 800)):
        wrong.append(f"status {status}: {lines}")
    wrong += [f"lost {name}" for name in before - after if not name.startswith("runs/")]
    left = [name for name in after - before if any(UNFINISHED.search(part) for part in name.split("/"))]
    return [f"case {number}, {' '.join(command)[:200]}: {one}" for one in [*wrong, *(f"left {name}" for name in left)]]


@pytest.fixture
def in_one_process(monkeypatch):
    monkeypatch.setattr(experiment, "fit", fit_here)


def hang():
    with watched():
        while True:
            pass


def test_executed_code_and_hanging_commands_are_noticed(monkeypatch):
    with watched() as executed:
        os.system("true canary")
        with pytest.raises(ImportError):
            __import__("canary_module")
    assert {one.split()[0] for one in executed} == {"os.system", "import"}
    monkeypatch.setattr(sys.modules[__name__], "SECONDS", 0.05)
    with pytest.raises(TimeoutError):
        hang()


@pytest.mark.usefixtures("in_one_process")
def test_some_of_each_kind(bench):
    assert not [line for number in range(QUICK * len(KINDS)) for line in complaints(bench, number)]


@pytest.mark.fuzz
@pytest.mark.usefixtures("in_one_process")
@pytest.mark.parametrize("start", range(0, CASES, BLOCK))
def test_all(bench, start):
    assert not [line for number in range(start, start + BLOCK) for line in complaints(bench, number)]
