"""The help of `stepglass train`: its settings by theme, with the values that a run here gets."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from stepglass.errors import StepglassError
from stepglass.settings import command_line, help_text
from stepglass.settings.command_line import CommandLine, SavedSettings
from stepglass.settings.train import TRAIN_SETTINGS, TrainConfig

USAGE = "usage: stepglass train [DATASET] [CONFIG.toml|CONFIG.py ...] [--key=value ...]"
WHAT = (
    "DATASET is your own text (a file or a folder), a data set in data/ that `stepglass prepare` "
    "has made, or the name of one that it can make: shakespeare, tinyshakespeare, pystdlib. "
    "Without it, a run takes the data set of its recipe."
)
# Every setting is in one group.
GROUPS = {
    "what most people set": (
        "out_dir",
        "max_iters",
        "epochs",
        "minutes",
        "batch_size",
        "block_size",
        "n_layer",
        "n_head",
        "n_embd",
        "dropout",
        "learning_rate",
        "device",
        "watch",
        "recipe",
    ),
    "the run": (
        "dataset",
        "init_from",
        "eval_only",
        "target_val_loss",
        "seed",
    ),
    "evaluations and the log": (
        "eval_interval",
        "eval_budget",
        "eval_iters",
        "patience",
        "sample_tokens",
        "log_interval",
        "log_to",
        "wandb_log",
        "wandb_project",
        "wandb_run_name",
    ),
    "checkpoints": (
        "checkpoint_interval",
        "always_save_checkpoint",
        "keep_last",
        "keep_every",
        "checkpoint_shards",
    ),
    "the model": (
        "model",
        "n_kv_head",
        "n_head_dim",
        "n_inner",
        "tie_weights",
        "qk_norm",
        "norm_eps",
        "rope_theta",
        "bias",
        "gelu",
    ),
    "the optimizer": (
        "optimizer",
        "gradient_accumulation_steps",
        "embedding_lr",
        "muon_lr",
        "muon_momentum",
        "weight_decay",
        "beta1",
        "beta2",
        "grad_clip",
    ),
    "the learning rate over time": (
        "decay_lr",
        "lr_schedule",
        "warmup_iters",
        "cooldown_iters",
        "lr_decay_iters",
        "min_lr",
    ),
    "the machine": ("threads", "dtype", "compile"),
    "several processes": ("nproc", "parallel", "max_restarts", "rank_timeout", "backend"),
}


def train_help(argv: list[str], saved_settings: SavedSettings) -> Iterator[str]:
    """The lines of the help. Flags and config files beside `--help` change the values in it."""
    width = help_text.help_width()
    values, origin = _values(argv, saved_settings)
    recipes = ", ".join(command_line.recipe_names())
    yield from help_text.paragraph(USAGE, width)
    for text in (
        WHAT,
        f"{origin} --recipe=NAME starts from another: {recipes}, or none (nanoGPT's defaults). "
        "Config files and flags change what they name. A nanoGPT config file (.py) starts from "
        "none.",
    ):
        yield ""
        yield from help_text.paragraph(text, width)
    for title, names in GROUPS.items():
        yield ""
        yield f"{title}:"
        pairs = help_text.setting_pairs(TRAIN_SETTINGS, asdict(values), names)
        yield from help_text.two_columns(pairs, width)


def _values(argv: list[str], saved_settings: SavedSettings) -> tuple[TrainConfig, str]:
    """The settings that a run would have, and where they are from."""
    command = CommandLine({}, {})
    with suppress(StepglassError):  # somebody who needs help may have made a mistake
        command = command_line.read_command_line(argv)
        return _resolved(command, saved_settings)
    return _resolved(CommandLine({}, {}), saved_settings)


def _resolved(command: CommandLine, saved_settings: SavedSettings) -> tuple[TrainConfig, str]:
    recipe = command.value("recipe")
    if command.value("init_from") == "resume":
        origin = f"The values below are those of the run in {command.value('out_dir')}."
    elif not command.wants_recipe_by_device():
        recipe = command.recipe_by_itself()
        origin = f"The values below are those of the recipe {recipe}."
    else:
        asked = command.value("device").partition(":")[0]
        kind = asked if asked != "auto" else ("gpu" if sees_gpu() else "cpu")
        recipe = command_line.recipe_by_device(kind, command.value("model"))
        device = "a CPU" if kind == "cpu" else "a GPU"
        seen = {
            "cpu": "; no GPU was seen here",
            "gpu": "; one was seen here, and torch decides when the run starts",
        }
        origin = (
            f"The values below are those of the recipe {recipe}, which a run on {device} "
            f"gets{seen[kind] if asked == 'auto' else ''}."
        )
    return command_line.resolve(command, recipe, saved_settings), origin


def sees_gpu() -> bool:
    """Whether there seems to be a GPU that torch can use. Only torch knows for certain, and
    importing it takes a second."""
    if sys.platform == "darwin":
        return os.uname().machine == "arm64"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return False
    drivers = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA's, WSL's, AMD's
    if not any(Path(path).exists() for path in drivers):
        return False
    from importlib import metadata  # noqa: PLC0415

    try:
        return not metadata.version("torch").endswith("+cpu")
    except metadata.PackageNotFoundError:
        return False
