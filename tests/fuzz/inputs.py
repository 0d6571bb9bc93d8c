"""Right inputs of every kind, tiny, and runs of three kinds of taggers trained on them."""

from contextlib import chdir
from pathlib import Path

from structperc.cli.main import main

TAGGERS = ("sparse", "crf", "guided")

TRAIN = """-DOCSTART- -X- O

Anna NNP B-PER
met VBD O
Bo NNP B-PER
Berg NNP I-PER
in IN O
Rome NNP B-LOC
. . O

Berg NNP B-PER
slept VBD O
. . O

-DOCSTART- -X- O

Paris NNP B-LOC
is VBZ O
near IN O
Rome NNP B-LOC
. . O

-DOCSTART- -X- O

Bo NNP B-PER
saw VBD O
Paris NNP B-LOC
. . O

"They PRP O
left VBD O
New NNP B-LOC
York NNP I-LOC
. . O

"""
DEV = """-DOCSTART- -X- O

Anna NNP B-PER
saw VBD O
Rome NNP B-LOC
. . O

-DOCSTART- -X- O

Bo NNP B-PER
left VBD O
Müller NNP B-PER
. . O

Müller NNP B-PER
slept VBD O

"""
BANK = """# newdoc id = one
# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t2\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t0\troot\t_\t_

# sent_id = 2
1\tAnna\tAnna\tPROPN\tNNP\t_\t2\tnsubj\t_\t_
2\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_
2.1\tit\tit\tPRON\tPRP\t_\t_\t_\t_\t_
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""
FILES = {
    "train.txt": TRAIN,
    "dev.txt": DEV,
    "bank.conllu": BANK,
    "places.txt": "Rome\nNew York\nParis\n",
    "paths.txt": "0110\tAnna\t4\n0111\tBo\t2\n10\tRome\t3\n11\tParis\t2\n1101\tleft\t1\n",
    "vectors.txt": "4 3\nAnna 0.5 -1 0.25\nRome 1e-1 0.5 1\nParis 0.1 0.4 1\nleft 0 0 -0.5\n",
    "crfpp.txt": "# words\nU00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[0,0]/%x[1,1]\nB\n",
    "a.conll": "Anna NNP B-PER B-PER\nmet VBD O O\nBo NNP B-PER O\n\nRome NNP B-LOC B-LOC\nslept VBD O O\n\n",
    "b.conll": "Anna NNP B-PER B-LOC\nmet VBD O O\nBo NNP B-PER B-PER\n\nRome NNP B-LOC B-LOC\nslept VBD O O\n\n",
    "gold.conll": "Anna NNP B-PER\nmet VBD O\nBo NNP B-PER\n\nRome NNP B-LOC\nslept VBD O\n\n",
    "out.txt": "what was written before\n",
    "canary_module.py": "open('CANARY', 'w').close()\nclass Part: pass\n",
    "study.yaml": """
baseline: sparse
split: dev
seeds: [1]
options: [--trainer.max_epochs=1]
rows:
  sparse: {configs: [sparse.yaml]}
  second:
    command: fit
    configs: [sparse.yaml]
    options: [--data.batch_size=2]
    seeds: [1]
    init_from: sparse
""",
}

TRAINER = """seed_everything: 1
trainer:
  max_epochs: 1
  max_time: "00:00:00:10"
  default_root_dir: runs/{name}
  enable_progress_bar: false
  enable_model_summary: false
  accelerator: cpu
data:
  class_path: structperc.data.Conll
  init_args:
    path: .
    files: {{train: train.txt, dev: dev.txt}}
    columns: [word, pos, label]
    unit: {unit}
    batch_size: 2
model:
"""
FEATURES = """  features:
    class_path: structperc.features.FeatureExtractor
    init_args:
      node: ["w[0]", {of: [pos], at: [-1, 0]}, bias]
      cutoff: 1
"""
LISTS = """  features:
    class_path: structperc.features.FeatureExtractor
    init_args:
      node: ["w[0]", "places[0]", "c4[0]", "pos[-1]|pos[0]", bias]
      edge: [bias]
      cutoff: 1
      gazetteers:
        places: {class_path: structperc.features.Gazetteer, init_args: {phrases: places.txt}}
      clusters: {class_path: structperc.features.Clusters, init_args: {paths: paths.txt}}
"""
PERCEPTRON = """  scorer: {class_path: structperc.scorers.SparseLinear, init_args: {transitions: false}}
  criterion: {class_path: structperc.criteria.MarginLoss, init_args: {C: 10}}
  search: {class_path: structperc.chain.KBest, init_args: {k: 2}}
  optimizer: {class_path: structperc.optim.Perceptron, init_args: {average: true}}
"""
NONLOCAL = """  nonlocal_features:
    - class_path: structperc.nonlocal_features.PhraseConsistency
    - class_path: structperc.nonlocal_features.MajorityPhrase
  decoder: {class_path: structperc.chain.KBest, init_args: {k: 10}}
"""
CRF = """  scorer: {class_path: structperc.scorers.SparseLinear, init_args: {sparse_grad: false}}
  criterion: {class_path: structperc.criteria.CRFLoss}
  prior: {C: 1}
  search: {class_path: structperc.chain.KBest, init_args: {k: 1}}
  optimizer: {class_path: structperc.optim.LBFGS}
"""
NEURAL = """  scorer:
    class_path: structperc.scorers.Neural
    init_args:
      encoder:
        class_path: structperc.encoders.BiLSTM
        init_args:
          inputs:
            - class_path: structperc.encoders.WordEmbedding
              init_args: {width: 3, cutoff: 1, path: vectors.txt}
            - {class_path: structperc.encoders.CharCNN, init_args: {width: 3}}
          hidden: 4
  criterion: {class_path: structperc.criteria.CRFLoss}
  search: {class_path: structperc.chain.KBest, init_args: {k: 1}}
  optimizer: {class_path: torch.optim.Adam, init_args: {lr: 0.01}}
"""
GUIDED = """  class_path: structperc.taggers.GuidedTagger
  init_args:
    features:
      class_path: structperc.features.FeatureExtractor
      init_args: {node: ["w[0]", "pos[0]"], cutoff: 1}
    context: {class_path: structperc.guided.ContextFeatures, init_args: {templates: [shen2007_c], size: 64}}
    beam: 2
"""
MODELS = {"sparse": LISTS + PERCEPTRON + NONLOCAL, "crf": FEATURES + CRF, "neural": NEURAL, "guided": GUIDED}
TREEBANK = """  class_path: structperc.data.Conllu
  init_args:
    path: .
    files: {train: bank.conllu}
"""
TREES = "  features: {class_path: structperc.features.FeatureExtractor, init_args: {node: ['w[0]'], cutoff: 1}}\n"
CRFPP = """  features:
    class_path: structperc.features.FeatureExtractor.from_crfpp
    init_args: {path: crfpp.txt, columns: [word, pos]}
"""


def configurations() -> dict[str, str]:
    """File -> text."""
    unit = {"sparse": "document"}
    made = {
        f"{name}.yaml": TRAINER.format(name=name, unit=unit.get(name, "sentence")) + MODELS[name] for name in MODELS
    }
    trainer = TRAINER.format(name="treebank", unit="sentence").partition("data:")[0]
    made["treebank.yaml"] = f"{trainer}data:\n{TREEBANK}model:\n{TREES}{PERCEPTRON}"
    made["crfpp.yaml"] = TRAINER.format(name="crfpp", unit="sentence") + CRFPP + PERCEPTRON
    return made


def lay_out(folder: Path) -> None:
    """Write all inputs and train all taggers in a folder."""
    for name, text in {**FILES, **configurations()}.items():
        (folder / name).write_text(text, encoding="utf-8")
    with chdir(folder):
        for name in TAGGERS:
            assert main(["fit", "-c", f"{name}.yaml"]) == 0
