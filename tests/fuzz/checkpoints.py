"""Checkpoints: damaged, of other programs, with other content, and with code in their pickles."""

import io
import os
import pickle
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import torch

from tests.fuzz.bench import TAGGERS
from tests.fuzz.damage import CHANGES, Attempt, damage
from tests.fuzz.trees import Spelled, changed, paths, put, spelled


class Call:
    """Pickles as a call, which is made when it is read."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.arguments


CALLS = {
    "os.system": Call(os.system, "touch KANARIE"),
    "eval": Call(eval, "open('KANARIE', 'w')"),
    "exec": Call(exec, "import kanarie_module"),
    "__import__": Call(__import__, "kanarie_module"),
    "open": Call(open, "KANARIE", "w"),
    "os.remove": Call(os.remove, "kanarie_script.py"),
}
FOREIGN: dict[str, Any] = {
    "a list": [1, 2, 3],
    "a number": 7,
    "None": None,
    "an empty mapping": {},
    "a tensor": torch.ones(3),
    "weights alone": {"layer.weight": torch.ones(2, 2)},
    "another program": {"epoch": 3, "model": {"w": torch.ones(2)}, "optimizer": {}},
    "another Lightning program": {
        "epoch": 1,
        "global_step": 5,
        "pytorch-lightning_version": "2.6.0",
        "state_dict": {"net.weight": torch.ones(2, 2)},
        "loops": {},
        "callbacks": {},
        "optimizer_states": [],
        "lr_schedulers": [],
    },
    "a module": torch.nn.Linear(2, 2),
    "hyper-parameters with a class": {"hyper_parameters": {"_class_path": "kanarie_module.Part"}, "state_dict": {}},
    "an instantiator": {"hyper_parameters": {"_instantiator": "kanarie_module.Part"}, "state_dict": {}},
}
WRONG = (
    Spelled("a tensor", torch.ones(2)),
    Spelled("NaN tensor", torch.full((3, 3), torch.nan)),
    Spelled("a huge tensor", torch.ones(1).expand(4000, 4000)),
)


def arguments(draw: Random, tagger: str, name: str) -> list[str]:
    """A command that reads a checkpoint."""
    file = f"runs/{tagger}/1/checkpoints/{name}.ckpt"
    command = ["rerank"] if tagger == "reranker" else []
    verb = draw.choice(("fit", "validate", "test", "predict"))
    place = draw.choice((file, name))
    more = ["--trainer.max_epochs=2"] if verb == "fit" else []
    more += ["--data.files={train: train.txt, dev: dev.txt, test: dev.txt}"] if verb == "test" else []
    return [*command, verb, "-c", f"{tagger}.yaml", f"--ckpt_path={place}", *more]


def checkpoints(draw: Random, folder: Path) -> Attempt:
    """A checkpoint spoiled, and a command that reads it."""
    tagger, name = draw.choice(TAGGERS), draw.choice(("best", "last"))
    file = folder / f"runs/{tagger}/1/checkpoints/{name}.ckpt"
    done = draw.choice((lambda d, f: damage(d, f, CHANGES), content, content, user_objects, executed, exchanged))(
        draw, file
    )
    command = arguments(draw, tagger, name)
    return Attempt(f"{'training' if 'fit' in command else 'labelling'}: {done}", command)


def content(draw: Random, file: Path) -> str:
    """Something else at one key path."""
    tree = torch.load(file, weights_only=False)
    file.unlink()
    if draw.random() < 0.3:
        path, wrong = draw.choice(list(paths(tree))), draw.choice(WRONG)
        tree, done = put(tree, path, wrong.value), f"{spelled(path)} := {wrong.name}"
    else:
        tree, done = changed(draw, tree)
    torch.save(tree, file)
    return done


def user_objects(draw: Random, file: Path) -> str:
    """Something else that torch has saved."""
    file.unlink()
    name = draw.choice(list(FOREIGN))
    torch.save(FOREIGN[name], file)
    return name


def executed(draw: Random, file: Path) -> str:
    """A pickle that calls something, bare or in what torch saves."""
    name = draw.choice(list(CALLS))
    how = draw.choice(("bare", "old format", "zip", "within"))
    tree = torch.load(file, weights_only=False)
    file.unlink()
    if how == "bare":
        file.write_bytes(pickle.dumps(CALLS[name]))
    elif how == "within":
        top = draw.choice(sorted(tree))
        torch.save({**tree, top: CALLS[name]}, file)
    else:
        torch.save(CALLS[name], file, _use_new_zipfile_serialization=how == "zip")
    return f"a call of {name}, {how}"


def exchanged(draw: Random, file: Path) -> str:
    """The checkpoint of another tagger, or an archive with an entry too few."""
    if draw.random() < 0.5:
        data = draw.choice(sorted(file.parents[3].glob("*/1/checkpoints/last.ckpt"))).read_bytes()
        file.unlink()
        file.write_bytes(data)
        return "that of another tagger"
    held = zipfile.ZipFile(io.BytesIO(file.read_bytes()))
    names = held.namelist()
    gone = draw.choice(names)
    file.unlink()
    with zipfile.ZipFile(file, "w") as made:
        for name in names:
            if name != gone:
                made.writestr(name, held.read(name))
    return "an entry of the archive missing"
