"""A configuration of structperc, measured as the other systems are.

Its data files must have the columns of the configuration; further files need words and labels only.
"""

import argparse
import shutil

from benchmarks.taggers.system_run import Sentences, Tag, Task, run
from structperc import load
from structperc.data import Corpus
from structperc.data.tag_schemes import to_iob2
from structperc.training.program import Program


def train(task: Task) -> Tag:
    program = Program(
        [
            "fit",
            *(f"--config={file}" for file in task.options.configs),
            f"--data.files={{train: {task.options.train}, dev: {task.options.dev}}}",
            f"--seed_everything={task.seed}",
            f"--data.seed={task.seed}",
            f"--trainer.default_root_dir={task.model.parent / 'training'}",
            "--trainer.enable_progress_bar=false",
            *task.options.set,
        ]
    )
    program.run()
    shutil.copytree(program.folder / "model", task.model, dirs_exist_ok=True)
    tagger = load(str(task.model))

    def tag(text: Sentences) -> list[list[str]]:
        corpus = Corpus.from_sentences([{"word": s.words} for s in text], [s.document for s in text])
        labels = corpus.sentences_of(tagger.predict(corpus).labels)
        return [to_iob2(sentence) for sentence in labels] if task.has_segments else labels

    return tag


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--configs", nargs="+", required=True, help="configuration files, as after -c of fit")
    parser.add_argument("--set", nargs="*", default=[], help="further options of fit, --set=--KEY=VALUE")


if __name__ == "__main__":
    run(["structperc", "torch"], train, add_options)
