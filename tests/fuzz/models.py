"""Folders of saved models: their JSON by key path, their tensors, and attempts to make them run code."""

import json
from pathlib import Path
from random import Random
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.fuzz.bench import TAGGERS
from tests.fuzz.damage import CHANGES, TEXT_CHANGES, Attempt, damage
from tests.fuzz.trees import VALUES, changed, paths, put, spelled

CODE: dict[str, dict[str, Any]] = {
    "os.system": {"command": "touch KANARIE"},
    "os.popen": {"cmd": "touch KANARIE"},
    "os.remove": {"path": "kanarie_script.py"},
    "os.mkdir": {"path": "KANARIE"},
    "subprocess.Popen": {"args": "touch KANARIE", "shell": True},
    "subprocess.run": {"args": ["touch", "KANARIE"]},
    "shutil.rmtree": {"path": "place_of_the_kanarie"},
    "shutil.copy": {"src": "train.txt", "dst": "KANARIE"},
    "runpy.run_path": {"path_name": "kanarie_script.py"},
    "runpy.run_module": {"mod_name": "kanarie_module"},
    "importlib.import_module": {"name": "kanarie_module"},
    "kanarie_module.Part": {},
    "builtins.open": {"file": "KANARIE", "mode": "w"},
    "timeit.timeit": {"stmt": "open('KANARIE', 'w')", "number": 1},
    "logging.FileHandler": {"filename": "KANARIE"},
    "sqlite3.connect": {"database": "KANARIE"},
    "ctypes.CDLL": {"name": "./kanarie.so"},
    "torch.load": {"f": "kanarie.pt", "weights_only": False},
    "torch.save": {"obj": 1, "f": "KANARIE"},
    "torch.hub.load": {"repo_or_dir": "kanarie", "model": "m", "source": "local"},
    "numpy.load": {"file": "kanarie.npy", "allow_pickle": True},
    "pathlib.Path": {},
    "structperc.cli.main.main": {"arguments": ["tag", "runs/crf/1/model", "dev.txt", "-o", "KANARIE"]},
    "structperc.data.text_files.write_lines": {"path": "KANARIE", "lines": ["x"]},
    "structperc.models.saving.named": {"path": "kanarie_module.Part"},
    "structperc.models.Model.load": {"folder": "runs/crf/1/model"},
    "structperc.features.Gazetteer": {"phrases": "kanarie_script.py"},
    "structperc.encoders.Transformer": {"model": "kanarie"},
    "structperc.criteria.CRFLoss.__init__.__globals__": {},
    "torch.nn.Linear": {"in_features": 1, "out_features": 1},
}


def commands(draw: Random, tagger: str) -> list[str]:
    """One that loads the model of a tagger."""
    model = f"runs/{tagger}/1/model"
    known = [["tag", model, "dev.txt"], ["tag", model, "dev.txt", "-o", "out.txt"], ["evaluate", model, "dev.txt"]]
    if tagger == "guided":
        known += [["decisions", model, "dev.txt"], ["tag", model, "dev.txt", "--order"]]
    if tagger in ("crf", "neural"):
        known += [["reliability", model, "dev.txt"], ["tag", model, "dev.txt", "-k", "2"]]
        known += [["fit", "-c", f"{tagger}.yaml", f"--model.init_from={model}"]]
    if tagger in ("sparse", "crf"):
        known += [["weights", model]]
    if tagger in ("sparse", "reranker"):
        known += [["candidates", model, "dev.txt", "--n", "1", "3"], ["explain", model, "dev.txt"]]
    return draw.choice(known)


def models(draw: Random, folder: Path) -> Attempt:
    """The folder of a model spoiled, and a command that loads it; or what a re-ranker keeps of its first models."""
    if draw.random() < 0.1:
        kept = draw.choice(sorted(path for path in folder.glob("runs/candidates/**/*") if path.is_file()))
        return Attempt(f"kept: {damage(draw, kept, CHANGES)}", ["rerank", "-c", "reranker.yaml"])
    tagger = draw.choice(TAGGERS)
    model = folder / f"runs/{tagger}/1/model"
    if draw.random() < 0.7:
        unsigned(model / "model.json")
    how = draw.choice((described, described, described, coded, tensors, tensors, damaged))
    return Attempt(how(draw, model), commands(draw, tagger), ("out.txt",))


def unsigned(file: Path) -> None:
    """As the format that had no checksums, so that nobody sees by these that something was changed."""
    tree = json.loads(file.read_text())
    del tree["checksums"]
    file.write_text(json.dumps({**tree, "format": 2}))


def described(draw: Random, model: Path) -> str:
    """A change by key path."""
    file = model / "model.json"
    tree, done = changed(draw, json.loads(file.read_text()))
    file.write_text(json.dumps(tree))
    return done


def coded(draw: Random, model: Path) -> str:
    """A call or an import in place of a part."""
    file = model / "model.json"
    tree = json.loads(file.read_text())
    classes = [path for path in paths(tree) if path[-1] in ("class_path", "class")]
    path, (name, options) = draw.choice(classes), draw.choice(list(CODE.items()))
    tree = put(tree, path, name)
    if path[-1] == "class_path":
        tree = put(tree, (*path[:-1], "init_args"), options)
    (model / "kanarie_module.py").write_text("open('KANARIE', 'w').close()\n")
    file.write_text(json.dumps(tree))
    return f"{spelled(path)} := {name}"


def damaged(draw: Random, model: Path) -> str:
    """A file of the folder as any file may be damaged."""
    if draw.random() < 0.5:
        return damage(draw, model / "model.json", CHANGES, TEXT_CHANGES)
    return f"tensors: {damage(draw, model / 'model.safetensors', CHANGES)}"


def tensors(draw: Random, model: Path) -> str:
    """A tensor changed, or what the file says about it."""
    file = model / "model.safetensors"
    if draw.random() < 0.4:
        return header_changed(draw, file)
    with safe_open(file, "pt") as held:
        metadata, known = held.metadata(), {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
    made = known
    while _same(made, known):
        name, done = draw.choice(sorted(known)), draw.choice(list(TENSORS))
        made = {**known, name: TENSORS[done](draw, known[name])}
    save_file({name: tensor.contiguous() for name, tensor in made.items() if tensor is not None}, file, metadata)
    return f"{name}: {done}"


def _same(made: dict[str, Any], known: dict[str, torch.Tensor]) -> bool:
    return all(
        made[name] is not None and made[name].dtype == tensor.dtype and torch.equal(made[name], tensor)
        for name, tensor in known.items()
    )


def _spot(value: float):
    def changed(draw: Random, tensor: torch.Tensor) -> torch.Tensor:
        made = tensor.clone().flatten()
        if len(made):
            made[int(draw.random() * len(made))] = value if made.is_floating_point() else 2**40 if value > 0 else -7
        return made.view(tensor.shape)

    return changed


TENSORS = {
    "one NaN": _spot(float("nan")),
    "one infinite": _spot(float("inf")),
    "one huge": _spot(3e38),
    "one negative": _spot(-1.0),
    "all zero": lambda draw, tensor: torch.zeros_like(tensor),
    "shuffled": lambda draw, tensor: tensor.flatten().flip(0).view(tensor.shape),
    "row less": lambda draw, tensor: tensor[:-1] if tensor.ndim else tensor.new_zeros(2),
    "row more": lambda draw, tensor: torch.cat([tensor, tensor[:1]]) if tensor.ndim else tensor.new_zeros(2),
    "no rows": lambda draw, tensor: tensor[:0] if tensor.ndim else None,
    "transposed": lambda draw, tensor: tensor.mT if tensor.ndim > 1 else tensor[None],
    "float64": lambda draw, tensor: tensor.double(),
    "float16": lambda draw, tensor: tensor.half(),
    "integers": lambda draw, tensor: tensor.to(torch.int16),
    "truth values": lambda draw, tensor: tensor.bool(),
    "missing": lambda draw, tensor: None,
}


# -- headers of tensors ----------------------------------------------------------------------------------------

HEAD = 8  # bytes of the header's length


def header_changed(draw: Random, file: Path) -> str:
    """Change what the header of a safetensors file says of one tensor; -> what was done."""
    data = file.read_bytes()
    size = int.from_bytes(data[:HEAD], "little")
    header, body = json.loads(data[HEAD : HEAD + size]), data[HEAD + size :]
    name = draw.choice([name for name in header if name != "__metadata__"])
    done = draw.choice(list(HEADERS))
    HEADERS[done](draw, header, name)
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(HEAD, "little") + text + body)
    return f"header: {done}"


def _shape(draw: Random, header: dict[str, Any], name: str) -> None:
    header[name]["shape"] = draw.choice(
        ([], [0], [-1], [2**62, 4], [1, *header[name]["shape"]], header[name]["shape"][::-1])
    )


def _dtype(draw: Random, header: dict[str, Any], name: str) -> None:
    header[name]["dtype"] = draw.choice(("F64", "F16", "I32", "U8", "BOOL", "F99", ""))


def _offsets(draw: Random, header: dict[str, Any], name: str) -> None:
    start, end = header[name]["data_offsets"]
    header[name]["data_offsets"] = draw.choice(
        ([0, end - start], [start, end + 8], [end, start], [start, 2**63], [-8, end])
    )


def _name(draw: Random, header: dict[str, Any], name: str) -> None:
    header[draw.choice((name + "x", "", "criterion.such", name.upper()))] = header.pop(name)


def _entry(draw: Random, header: dict[str, Any], name: str) -> None:
    header[name] = draw.choice(VALUES[:12]).value


def _gone(draw: Random, header: dict[str, Any], name: str) -> None:
    del header[name]


def _metadata(draw: Random, header: dict[str, Any], name: str) -> None:
    header["__metadata__"] = draw.choice((None, {}, {"words": 1}, {"format": "tf"}, []))


HEADERS = {
    "shape": _shape,
    "dtype": _dtype,
    "offsets": _offsets,
    "name": _name,
    "entry": _entry,
    "entry gone": _gone,
    "metadata": _metadata,
}
