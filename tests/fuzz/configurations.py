"""Configurations, changed by key path, and as files."""

import os
from pathlib import Path
from random import Random
from typing import Any

import yaml

from tests.fuzz.bench import TAGGERS
from tests.fuzz.damage import CHANGES, TEXT_CHANGES, Attempt, Change, damage
from tests.fuzz.trees import changed, paths, put, spelled

CODE = (
    {"class_path": "os.system", "init_args": {"command": "touch KANARIE"}},
    {"class_path": "subprocess.Popen", "init_args": {"args": "touch KANARIE", "shell": True}},
    {"class_path": "shutil.rmtree", "init_args": {"path": "place_of_the_kanarie"}},
    {"class_path": "runpy.run_path", "init_args": {"path_name": "kanarie_script.py"}},
    {"class_path": "builtins.open", "init_args": {"file": "KANARIE", "mode": "w"}},
)
TAGS = (
    "!!python/object/apply:os.system ['touch KANARIE']",
    "!!python/object/new:subprocess.Popen [['touch', 'KANARIE']]",
    "!!python/name:os.system",
    "!!python/module:kanarie_module",
    "!unknown tag",
    "!!binary KANARIE",
    "!!set {a, b}",
    "!!timestamp 2001-01-01",
)
FURTHER = {  # options that the right configurations leave out; not those that make this test run itself in processes
    "trainer": {
        "max_steps": 1, "val_check_interval": 1, "accumulate_grad_batches": 1,
        "strategy": "auto", "precision": "32-true", "deterministic": False, "gradient_clip_val": None,
        "limit_train_batches": 1.0, "overfit_batches": 0.0, "num_sanity_val_steps": 2, "fast_dev_run": False,
        "check_val_every_n_epoch": 1, "log_every_n_steps": 1, "logger": False, "callbacks": [], "profiler": None,
        "min_epochs": 1, "detect_anomaly": False, "barebones": False, "plugins": None, "inference_mode": True,
    },
    "checkpoint": {"monitor": "dev/score", "mode": "max", "every_n_epochs": 1, "save_top_k": 1, "filename": "best"},
    "data": {"strict": False, "eval_batch_size": 16, "shuffle": True, "seed": 1, "predict": "dev", "holdout": 0,
             "holdout_seed": 1, "comments": False, "separator": "whitespace", "labels": "IOB2", "scheme": "IOB2",
             "types": {"PER": "NAME"}, "encoding": "utf-8", "docstart": "-DOCSTART-"},
    "model": {"beta": 1.0, "init_from": None},
}  # fmt: skip


def doubled(draw: Random, data: bytes) -> bytes:
    """A key twice, the second time with another value."""
    lines = data.split(b"\n")
    keys = [i for i, line in enumerate(lines) if b": " in line and not line.strip().startswith(b"-")]
    number = draw.choice(keys)
    return b"\n".join([*lines[: number + 1], lines[number].partition(b":")[0] + b": 3", *lines[number + 1 :]])


def tagged(draw: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    number = draw.choice([i for i, line in enumerate(lines) if b": " in line])
    lines[number] = lines[number].partition(b":")[0] + b": " + draw.choice(TAGS).encode()
    return b"\n".join(lines)


TEXTS: dict[str, Change] = {
    "key twice": doubled,
    "tag of YAML": tagged,
    "tabs": lambda draw, data: data.replace(b"  ", b"\t"),
    "one space more": lambda draw, data: data.replace(b"\n  ", b"\n   ", 1),
    "two documents": lambda draw, data: data + b"---\n" + data,
    "anchors": lambda draw, data: b"a: &a [1]\nb: *a\n" + data,
    "anchor of itself": lambda draw, data: data.replace(b"data:\n", b"data: &a\n  more: *a\n"),
    "many anchors": lambda draw, data: b"a0: &a0 [x, x]\n"
    + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (i, i, i - 1, i - 1) for i in range(1, 30)) + data,
    "unknown anchor": lambda draw, data: data.replace(b"data:", b"data: *nothing", 1),
    "a list": lambda draw, data: b"- 1\n- 2\n",
    "a number": lambda draw, data: b"5\n",
    "a text": lambda draw, data: b"just some text\n",
    "colons missing": lambda draw, data: data.replace(b":", b""),
    "merge key": lambda draw, data: data + b"<<: {seed_everything: 2}\n",
}  # fmt: skip


def with_further(tree: Any, draw: Random) -> Any:
    """The configuration with one more option, at its default."""
    section = draw.choice(list(FURTHER))
    name, value = draw.choice(list(FURTHER[section].items()))
    nested = section == "data" or "class_path" in tree.get(section, {})
    path = (section, "init_args") if nested else (section,)
    if section not in tree:
        tree = {**tree, section: {}}
    return put(tree, (*path, name), value), (*path, name)


def arguments(draw: Random, tagger: str) -> list[str]:
    """A command with the configuration of a tagger."""
    rerank = tagger == "reranker"
    if draw.random() < 0.75:
        return ["rerank" if rerank else "fit", "-c", f"{tagger}.yaml"]
    command = ["rerank"] * rerank + [draw.choice(("validate", "predict"))]
    return [*command, "-c", f"{tagger}.yaml", f"--ckpt_path=runs/{tagger}/1/checkpoints/best.ckpt"]


OVERLAYS = (["below.yaml"], ["below.yaml", "below.yaml"], ["none.yaml"], "below.yaml", [3], {"a": "below.yaml"}, None)


def configurations(draw: Random, folder: Path) -> Attempt:
    """A configuration spoiled, in the file or by an option; sometimes that file is an overlay of the one of -c."""
    tagger = draw.choice(TAGGERS)
    file, command = folder / f"{tagger}.yaml", arguments(draw, tagger)
    done = spoiled(draw, file)
    if draw.random() < 0.15 and os.path.lexists(file):
        file.rename(folder / "below.yaml")
        named = draw.choice([*OVERLAYS, [file.name]])
        file.write_text(yaml.dump({"overlays": named}))
        done = done if named in OVERLAYS[:2] else f"overlays := {named}"
    return Attempt(done, command)


def spoiled(draw: Random, file: Path) -> str:
    """Changes a configuration; -> what was done."""
    if draw.random() < 0.2:
        return damage(draw, file, CHANGES, TEXT_CHANGES, TEXTS)
    tree, path = yaml.safe_load(file.read_text()), None
    if draw.random() < 0.35:
        tree, path = with_further(tree, draw)
    if draw.random() < 0.08:
        path = draw.choice([path for path in paths(tree) if path[-1] not in ("class_path", "init_args")])
        code = draw.choice(CODE)
        tree, done = put(tree, path, code), f"{spelled(path)} := {code['class_path']}"
    else:
        tree, done = changed(draw, tree, path)
    file.write_text(yaml.dump(tree, sort_keys=False, allow_unicode=False))
    return done


def studies(draw: Random, folder: Path) -> Attempt:
    """A study spoiled, in a key or as a file, or a record of its root."""
    file, command = folder / "study.yaml", ["study", "study.yaml", "--root", "runs/study"]
    if draw.random() < 0.25:
        return Attempt(damage(draw, file, CHANGES, TEXT_CHANGES, TEXTS), command)
    tree, done = changed(draw, yaml.safe_load(file.read_text()))
    file.write_text(yaml.dump(tree, sort_keys=False, allow_unicode=False))
    return Attempt(done, command)
