"""nanoGPT's own settings: the defaults in its train.py, and its recipe for a CPU.

Most of our defaults are the same as nanoGPT's, so each is written only once: in `train.py` of this
folder, or below if nanoGPT's value is different. A test compares the result with nanoGPT's list.
"""

from typing import Any

from stepglass.settings.train import TRAIN_SETTINGS

WHERE_OURS_DIFFER: dict[str, Any] = {
    "eval_interval": 2000,
    "always_save_checkpoint": True,
    "device": "cuda",
    "dtype": "bfloat16",  # float16 on a GPU without bfloat16 units
    "compile": True,
}
NANOGPT: dict[str, Any] = {
    name: TRAIN_SETTINGS.default(name) for name in TRAIN_SETTINGS.names()
} | WHERE_OURS_DIFFER

# nanoGPT's config/train_shakespeare_char.py, without the settings that CPU_FLAGS replaces.
SHAKESPEARE_CHAR: dict[str, Any] = {
    "eval_interval": 250,
    "gradient_accumulation_steps": 1,
    "learning_rate": 1e-3,
    "min_lr": 1e-4,
    "beta2": 0.99,
    "warmup_iters": 100,
    "always_save_checkpoint": False,
}

# The flags that nanoGPT's README gives with that file for a computer without a GPU.
CPU_FLAGS: dict[str, Any] = {
    "device": "cpu",
    "compile": False,
    "eval_iters": 20,
    "log_interval": 1,
    "block_size": 64,
    "batch_size": 12,
    "n_layer": 4,
    "n_head": 4,
    "n_embd": 128,
    "max_iters": 2000,
    "lr_decay_iters": 2000,
    "dropout": 0.0,
}
