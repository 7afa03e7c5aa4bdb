"""Writes an imported model as a run directory: a checkpoint, its settings and its tokenizer."""

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from stepglass import json_files, units
from stepglass.checkpoint import tensors
from stepglass.errors import ConfigError, os_reason
from stepglass.files import FileOps, Folder, remove_tree, replace_file
from stepglass.foreign.foreign_model import ForeignModel
from stepglass.measure.shapes import Shape, shape_record
from stepglass.run_dir import commit
from stepglass.run_dir.commit import Contents
from stepglass.run_dir.opening import make_durably
from stepglass.settings.train import TRAIN_SETTINGS, TrainConfig

NOT_SETTINGS = ("vocab_size",)


def settings_of_shape(shape: Shape) -> dict[str, Any]:
    """The settings of a run that describe a model of this shape."""
    named = {f.name: getattr(shape, f.name) for f in fields(shape) if f.name not in NOT_SETTINGS}
    return {"model": shape.name, **named}


def write_run(found: ForeignModel, out_dir: Path) -> Iterator[str]:
    """Write the run directory, or nothing. Yields lines to print."""
    is_new = not out_dir.exists()
    try:
        make_durably(out_dir)
        with Folder.open(out_dir) as folder:
            try:
                name = _write(found, folder, out_dir)
            except BaseException:
                for entry in ("ckpt", "best.json", "config.json", "tokenizer.json"):
                    if folder.is_folder(entry):
                        remove_tree(FileOps(), folder, entry)
                    elif folder.status(entry) is not None:
                        FileOps().unlink(folder, entry)
                if is_new:
                    out_dir.rmdir()
                raise
    except OSError as error:
        raise ConfigError(f"--out_dir={out_dir}: cannot be written: {os_reason(error)}") from error
    shape = found.shape
    yield (
        f"{out_dir}: a {shape.name} model of {units.compact(shape.num_params())} parameters, "
        f"{shape.n_layer} layers, context {shape.block_size}, vocabulary {shape.vocab_size}; {name}"
    )
    yield f"next: stepglass sample {out_dir}"
    if found.optim:
        yield f"      stepglass resume {out_dir} --max_iters=N   # after update {found.step}"
    else:
        yield f"      stepglass train DATASET --init_from={out_dir} --out_dir=out-tuned"


def _write(found: ForeignModel, folder: Folder, out_dir: Path) -> str:
    cfg = _settings(found, out_dir)
    tokenizer = json_files.json_bytes(found.tokenizer)
    state = {
        "step": found.step,
        "tokens": found.step * cfg.tokens_per_iter,
        "evaluated_at": -1,
        "best_val_loss": found.best_val_loss,
        "best_step": found.step if found.best_val_loss is not None else None,
        "evals_since_best": 0,
        "eval_every": None,
        "rewarm": None,
        "config": asdict(cfg),
        "model_config": shape_record(found.shape),
        "scaler": {},
        "imported_from": found.path.name,
        "environment": {},
    }
    files = tensors.contents_of(
        {
            "model.safetensors": found.weights,
            "optim.safetensors": found.optim,
            "rank-00000.safetensors": tensors.rng_tensors(),
        }
    )
    files["state.json"] = Contents.of(json_files.json_bytes(state))
    files["tokenizer.json"] = Contents.of(tokenizer)
    name = commit.write_checkpoint(FileOps(), folder, found.step, files).name
    if found.best_val_loss is not None:
        commit.mark_best(FileOps(), folder, name, found.best_val_loss)
    replace_file(FileOps(), folder, "config.json", json_files.json_bytes(asdict(cfg)))
    replace_file(FileOps(), folder, "tokenizer.json", tokenizer)
    return name


def _settings(found: ForeignModel, out_dir: Path) -> TrainConfig:
    """The settings of nanoGPT's run, if it is one, and those of the model."""
    place = str(found.path)
    given = {key: TRAIN_SETTINGS.given(key, v, place) for key, v in found.settings.items()}
    shape = settings_of_shape(found.shape)
    given |= {key: TRAIN_SETTINGS.given(key, value, place) for key, value in shape.items()}
    cfg: TrainConfig = TRAIN_SETTINGS.build(given)
    return replace(cfg, out_dir=str(out_dir), recipe="none", optimizer="adamw")
