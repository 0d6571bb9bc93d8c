"""NLTK's averaged perceptron: from left to right, one decision at a time, five iterations as by default."""

import json

from nltk.tag.perceptron import PerceptronTagger

from benchmarks.taggers.system_run import Tag, Task, run


def train(task: Task) -> Tag:
    tagger = PerceptronTagger(load=False)
    tagger.train([[*zip(s.words, s.labels, strict=True)] for s in task.train])
    (task.model / "model.json").write_text(json.dumps(tagger.encode_json_obj()), encoding="utf-8")
    return lambda text: [[label for _, label in tagger.tag(sentence.words)] for sentence in text]


if __name__ == "__main__":
    run(["nltk"], train)
