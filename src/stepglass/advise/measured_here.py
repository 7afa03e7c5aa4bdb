"""Measures what is to be advised on, by a trial run of a few updates on this machine (`--measure`).

    subject = measured_here(subject)

The trial is `stepglass train` in a process of its own, in a temporary folder, on random tokens if
the data set is not prepared. It finds the fastest micro-batch, and its log is read like any other.
Nothing of it is left.
"""

import json
import pickle
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from stepglass.advise.known_data import prepared_folder
from stepglass.advise.subject import OF_A_COMMAND, Measured, Subject, read_part
from stepglass.errors import ConfigError
from stepglass.settings.train import TRAIN_SETTINGS, TrainConfig

UPDATES = 12
TOKENS = 1 << 18  # in a made-up data set; more for a long context
LEFT_OUT = (*OF_A_COMMAND, "epochs", "minutes")
# What the trial run does not do.
QUIET = {
    "max_iters": UPDATES,
    "eval_interval": 10**6,
    "eval_iters": 1,
    "log_interval": 10**6,
    "checkpoint_interval": 10**6,
    "gradient_accumulation_steps": 1,
    "patience": 0,
    "log_to": "",
    "wandb_log": False,
    "compile": False,
}


def measured_here(subject: Subject) -> Subject:
    """The subject with the fastest micro-batch and the times that were measured with it."""
    with tempfile.TemporaryDirectory(prefix="stepglass-measure-") as folder:
        run_dir = trial_run(subject, Path(folder))
        part = read_part(str(run_dir), None)
        ran = TRAIN_SETTINGS.build(
            {
                key: TRAIN_SETTINGS.given(key, value, "the trial run")
                for key, value in json.loads((run_dir / "config.json").read_text()).items()
            }
        )
    batch = ran.batch_size
    accumulation = max(1, subject.sequences // batch)
    cfg = replace(
        subject.cfg,
        batch_size=batch,
        gradient_accumulation_steps=accumulation,
        threads=ran.threads,
    )
    mfu = part.mfu.corrected
    measured = Measured(
        part.timing.normal_ms, None, None if mfu is None else mfu / 100, in_trial(cfg, ran)
    )
    was_tried = "batch_size" not in subject.fixed
    return replace(subject, cfg=cfg, measured=measured, was_tried=was_tried)


def in_trial(cfg: TrainConfig, ran: TrainConfig) -> TrainConfig:
    """The settings that the times belong to."""
    steps = ran.gradient_accumulation_steps
    return replace(cfg, gradient_accumulation_steps=steps, compile=False)


def trial_run(subject: Subject, folder: Path) -> Path:
    """Train for a few updates in a process of its own. Returns the folder of the run."""
    settings = {key: value for key, value in asdict(subject.cfg).items() if key not in LEFT_OUT}
    settings |= QUIET | {"dataset": str(data_for(subject, folder))}
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in settings.items()]
    (folder / "trial.toml").write_text("".join(lines))
    keeps_batch = "batch_size" in subject.fixed
    words = ["train", "trial.toml", "--recipe=none", "--out_dir=trial"]
    words += [] if keeps_batch else ["--batch_size=auto"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stepglass", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        reason = said[-1].removeprefix("error: ") if said else f"exit code {done.returncode}"
        raise ConfigError(f"--measure: the trial run failed: {reason}")
    return folder / "trial"


def data_for(subject: Subject, folder: Path) -> Path:
    """The data set itself if it is prepared, otherwise random tokens: the time is the same."""
    prepared = prepared_folder(subject.cfg.dataset)
    if (prepared / "train.bin").is_file():
        return prepared.resolve()
    made_up = folder / "tokens"
    made_up.mkdir()
    vocab_size = subject.shape.vocab_size
    count = max(TOKENS, 8 * subject.cfg.block_size)
    tokens = np.random.default_rng(0).integers(min(vocab_size, 2**16), size=count)
    for split in ("train", "val"):
        tokens.astype(np.uint16).tofile(made_up / f"{split}.bin")
    (made_up / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": vocab_size}))  # as nanoGPT does
    return made_up
