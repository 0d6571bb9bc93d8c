"""Command lines: values, options and names spoiled."""

from pathlib import Path
from random import Random

from tests.fuzz.damage import Attempt

GOOD: tuple[tuple[str, ...], ...] = (
    ("tag", "runs/crf/1/model", "dev.txt", "-k", "2"),
    ("tag", "runs/sparse/1/model", "dev.txt", "-o", "out.txt"),
    ("tag", "runs/neural/1/model", "dev.txt", "--columns", "word", "pos", "label", "--unit", "sentence"),
    ("tag", "runs/guided/1/model", "dev.txt", "--order"),
    ("evaluate", "runs/crf/1/model", "dev.txt"),
    ("check", "train.txt", "dev.txt"),
    ("init", "train.txt"),
    ("compare", "a.conll", "b.conll", "--gold", "gold.conll", "--scheme", "IOB2", "--beta", "1"),
    ("compare", "runs/crf/1", "runs/neural/1", "--split", "dev"),
    ("weights", "runs/crf/1/model", "--top", "3", "--csv", "out.txt"),
    ("weights", "runs/sparse/1/model", "--plot", "figure.png"),
    ("candidates", "runs/sparse/1/model", "dev.txt", "--n", "1", "3", "--csv", "out.txt"),
    ("explain", "runs/sparse/1/model", "dev.txt", "--document", "1", "--n", "4", "--html", "out.txt"),
    ("decisions", "runs/guided/1/model", "dev.txt", "--n", "2", "--html", "out.txt"),
    ("decisions", "runs/guided/1/model", "dev.txt", "--sentence", "1", "2"),
    ("reliability", "runs/crf/1/model", "dev.txt", "--bins", "3", "--csv", "out.txt", "--labels", "IOB2"),
    ("fit", "-c", "crf.yaml", "--trainer.max_epochs", "1", "--data.batch_size", "2", "--model.beta", "1"),
    ("fit", "-c", "sparse.yaml", "--seed_everything", "2", "--model.search.init_args.k", "2"),
    ("validate", "-c", "crf.yaml", "--ckpt_path", "best"),
    ("predict", "-c", "guided.yaml", "--ckpt_path", "last", "--data.predict", "dev"),
    ("sweep", "-c", "sparse.yaml", "--grid", "data.batch_size=1,2", "--root", "runs/sweep", "--holdout", "0"),
    ("study", "study.yaml", "--root", "runs/study"),
    ("rerank", "-c", "reranker.yaml", "--model.jackknife.folds", "2"),
)
VALUES = (
    "", " ", "-", "--", "-1", "0", "1.5", "99999999", "1000000000000", "1" + "0" * 40, "-" + "9" * 30, "1e400", "nan",
    "-inf", "null", "true", "[]", "{}", "[1, 2", "{a: ", "x", "such", "word", "ü", "\U0001f600", "\udcff", "a\nb",
    "x" * 5000, "/dev/null/x", "../nowhere", "place", "full", "$NO_SUCH_PLACE", "~nobody/x", "*", "%s", "{0}", "last",
    "IOB1", "document", "train.txt", "runs/crf/1/model", "no/such/folder/out.txt", "out.txt/inside", ".hidden", "x.png",
    "x.such",
)  # fmt: skip
COMMANDS = ("", "tags", "Tag", "fitt", "evalute", "--tag", "help", "--version", "-h", "x" * 300, "\udcff", "../tag")


def command_lines(draw: Random, folder: Path) -> Attempt:
    """A command line with one thing wrong."""
    line = list(draw.choice(GOOD))
    done = draw.choice((value, value, value, value, name, gone, twice, swapped, further, glued))(draw, line)
    return Attempt(f"{line[0][:20]}: {done}", line, ("out.txt", "figure.png", "x.png", ".hidden"))


def value(draw: Random, line: list[str]) -> str:
    """Another value in place of an argument or of an option's value."""
    number = draw.choice([i for i in range(1, len(line)) if not line[i].startswith("-")])
    known = draw.choice(VALUES)
    before = line[number - 1] if line[number - 1].startswith("-") else f"argument {number}"
    line[number] = known
    return f"{before} := {known[:30]!r}"


def name(draw: Random, line: list[str]) -> str:
    """A wrong name of the command or of an option."""
    options = [i for i, word in enumerate(line) if word.startswith("-")]
    if not options or draw.random() < 0.3:
        line[0] = draw.choice(COMMANDS)
        return "another command"
    number = draw.choice(options)
    old = line[number]
    line[number] = draw.choice((old[:-1], f"{old}s", old.upper(), old.lstrip("-"), "--such", f"-{old}"))
    return f"{old} misspelled"


def gone(draw: Random, line: list[str]) -> str:
    """An argument less."""
    return f"without {line.pop(draw.randrange(1, len(line)))!r}"


def twice(draw: Random, line: list[str]) -> str:
    """An argument twice."""
    number = draw.randrange(1, len(line))
    line.insert(number, line[number])
    return f"{line[number]!r} twice"


def swapped(draw: Random, line: list[str]) -> str:
    """Two arguments in each other's place."""
    a, b = draw.sample(range(1, len(line)), 2) if len(line) > 2 else (1, 1)
    line[a], line[b] = line[b], line[a]
    return f"{line[a]!r} and {line[b]!r} swapped"


def further(draw: Random, line: list[str]) -> str:
    """An option more."""
    known = ("--such", "--such=1", "-x", "--lr_scheduler=torch.optim.lr_scheduler.StepLR", "--trainer.such=1",
             "--model.such=1", "--data=null", "--model=null", "--trainer=null", "--optimizer=torch.optim.SGD",
             "--debug", "--encoding=latin-1", "--encoding=such", "--trust=such", "--config=no.yaml", "-o=",
             "--output=place", "--html=place", "--csv=full", "--plot=full", "--plot=x.such", "--print_config",
             "--trainer.logger=such")  # fmt: skip
    line.append(draw.choice(known))
    return f"with {line[-1]}"


def glued(draw: Random, line: list[str]) -> str:
    """An option and its value in one word."""
    options = [i for i, word in enumerate(line[:-1]) if word.startswith("-")]
    if not options:
        return gone(draw, line)
    number = draw.choice(options)
    done = line[number]
    line[number : number + 2] = [draw.choice((f"{done}=", f"{done}=such", f"{done}{line[number + 1]}", f"{done}=1,2"))]
    return f"{done} and its value in one"
