"""Fine-tuning of a transformer and templates by the program: resumed runs, clipped sparse gradients, half precision."""

import json
import shutil

import pytest
import torch
from torch import nn

from structperc.cli.main import main
from structperc.taggers.learning import clip_sparse_gradients
from tests.checkpoints import assert_same_training, checkpoint
from tests.encoders.tiny_models import save_bert

CONFIGURATION = """
data: {{class_path: structperc.datamodules.Synthetic, init_args: {{train: 2, dev: 1, test: 0, batch_size: 4}}}}
trainer:
  max_epochs: 2
  gradient_clip_val: 0.5
  accumulate_grad_batches: 2
  val_check_interval: 3
  precision: bf16-mixed
  enable_progress_bar: false
  default_root_dir: {root}
  callbacks:
    - {{class_path: structperc.training.GradualUnfreezing, init_args: {{first: 1}}}}
    - class_path: pytorch_lightning.callbacks.EarlyStopping
      init_args: {{monitor: dev/score, mode: max, patience: 3}}
model:
  features: {{class_path: structperc.features.FeatureExtractor, init_args: {{node: [kazama2007]}}}}
  scorer:
    class_path: structperc.scorers.Sum
    init_args:
      scorers:
        - {{class_path: structperc.scorers.SparseLinear, init_args: {{transitions: false}}}}
        - class_path: structperc.scorers.Neural
          init_args:
            encoder: {{class_path: structperc.encoders.Transformer, init_args: {{model: {model}}}}}
  criterion: {{class_path: structperc.criteria.CRFLoss}}
  search: {{class_path: structperc.chain.KBest, init_args: {{k: 1}}}}
  optimizer: {{class_path: {optimizer}, init_args: {{lr: 1.0e-3, weight_decay: 0.01}}}}
  lr_scheduler: {{class_path: structperc.optim.WarmupDecay}}
  parameter_groups:
    class_path: structperc.optim.ParameterGroups
    init_args:
      rates: {{scorer.scorers.1.encoder: 1e-4, scorer.scorers.1.head: 2.0e-3}}
      layer_decay: 0.9
"""


@pytest.fixture
def fit(tmp_path):
    save_bert(tmp_path / "bert", hidden_dropout_prob=0.1)

    def run(*options, optimizer="structperc.optim.LazyAdamW"):
        path = tmp_path / "own.yaml"
        path.write_text(CONFIGURATION.format(root=tmp_path / "runs", model=tmp_path / "bert", optimizer=optimizer))
        return main(["fit", "-c", str(path), "--trainer.accelerator=cpu", *options])

    run.root = tmp_path / "runs"
    return run


def best_epoch(run):
    return json.loads((run / "results.json").read_text())["best_epoch"]


def test_resumed_run(fit, tmp_path):
    """Interrupted after the last step of the first epoch, and after the last evaluation of all.

    Each epoch trains more layers than the one before. It has five mini-batches, and an evaluation after three of them.
    """
    saves = ["--trainer.callbacks+=pytorch_lightning.callbacks.ModelCheckpoint", "--trainer.callbacks.save_top_k=-1"]
    saves += [f"--trainer.callbacks.dirpath={tmp_path}", "--trainer.callbacks.filename={step}"]
    assert fit(*saves, "--trainer.callbacks.every_n_train_steps=1") == 0
    assert fit() == 0
    steps = checkpoint(fit.root / "1")["global_step"] // 2
    assert steps > 1
    whole = fit.root / "2"
    for number, step in enumerate((steps, 2 * steps - 1), 3):
        assert fit(f"--ckpt_path={tmp_path}/step={step}.ckpt") == 0
        assert_same_training(fit.root / str(number), whole)
        assert best_epoch(fit.root / str(number)) == best_epoch(whole)
    shutil.rmtree(fit.root / "1")  # which has the best weights until then
    assert fit(f"--ckpt_path={tmp_path}/step={2 * steps - 1}.ckpt") == 0


def test_optimizers_without_sparse_gradients(fit, capsys):
    assert fit(optimizer="torch.optim.AdamW") == 2
    message = capsys.readouterr().err
    assert "model.optimizer" in message
    assert "LazyAdamW" in message


@pytest.mark.parametrize("by_value", [False, True])
def test_clipped_sparse_gradients(by_value):
    index, values = torch.tensor([[0, 2, 2], [1, 0, 0]]), torch.tensor([3.0, -2.0, -2.0])  # one weight twice
    sparse, dense, expected = (nn.Parameter(torch.zeros(size)) for size in ((3, 2), (2,), (3, 2)))
    sparse.grad = torch.sparse_coo_tensor(index, values, (3, 2), check_invariants=True)
    other = nn.Parameter(torch.zeros(2))
    dense.grad, other.grad = torch.tensor([12.0, 0.0]), torch.tensor([12.0, 0.0])
    expected.grad = sparse.grad.to_dense()
    clip_sparse_gradients([sparse, dense], 6.5, by_value)
    (nn.utils.clip_grad_value_ if by_value else nn.utils.clip_grad_norm_)([expected, other], 6.5)
    torch.testing.assert_close(sparse.grad.to_dense(), expected.grad)
    torch.testing.assert_close(dense.grad, other.grad)
