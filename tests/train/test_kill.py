"""Real processes, killed at random moments. `make torture` does it 200 times."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from helpers import prepare_tiny, story, tiny_args
from processes import ForkServer, wait_until
from stepglass.checkpoint import tensors
from stepglass.run_dir import checkpoints

KILLS = int(os.environ.get("STEPGLASS_KILLS", "8"))
TERMS = int(os.environ.get("STEPGLASS_TERMS", "4"))
LAST = 20
SETTINGS = {
    "max_iters": LAST,
    "compile": False,
    "dropout": 0.1,
    "checkpoint_interval": 2,
    "eval_interval": 5,
    "eval_iters": 5,
    "always_save_checkpoint": True,
}
RESUME = ["train", "--out_dir=out", "--init_from=resume"]


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


def run_to_its_end(server: ForkServer, argv: list[str], folder: Path) -> float:
    """The seconds that it took."""
    began = time.perf_counter()
    with open(folder / "output.txt", "ab") as output:
        code = server.start(*argv, cwd=folder, stdout=output).wait()
    assert code == 0, (folder / "output.txt").read_text()
    return time.perf_counter() - began


def killed_after(server: ForkServer, argv: list[str], folder: Path, seconds: float) -> bool:
    """Whether it was still running when it was killed."""
    with open(folder / "output.txt", "ab") as output:
        process = server.start(*argv, cwd=folder, stdout=output)
        time.sleep(seconds)
        process.kill()
        return process.wait() == -signal.SIGKILL


def folder_with_data(name: str) -> Path:
    folder = Path(name).resolve()
    shutil.copytree("data", folder / "data")
    return folder


def final_hashes(folder: Path) -> dict[str, str]:
    newest = checkpoints.committed(folder / "out")[0]
    assert checkpoints.step_of(newest) == LAST
    return {
        name: hashlib.sha256((newest / name).read_bytes()).hexdigest()
        for name in checkpoints.FILES[:3]
    }


def test_a_run_killed_at_any_moment_ends_with_the_same_weights(fork_server):
    train = ["train", *tiny_args(**SETTINGS)]
    whole = folder_with_data("whole")
    took_s = [run_to_its_end(fork_server, train, whole) for _ in range(2)][-1]
    expected = final_hashes(whole)
    best_loss = json.loads((whole / "out" / "best.json").read_text())["val_loss"]
    trials = landed = resumed = 0
    while landed < KILLS and trials < 4 * KILLS:
        folder = folder_with_data(f"trial-{trials}")
        began = time.perf_counter()
        trials += 1
        if killed_after(fork_server, train, folder, random.uniform(0, took_s)):
            landed += 1
        else:  # the run ended first: the machine is faster now than when it was measured
            took_s = min(took_s, time.perf_counter() - began)
        saved = checkpoints.committed(folder / "out")
        for path in saved:
            checkpoints.verify(path)
        if saved and checkpoints.step_of(saved[0]) == LAST:
            assert final_hashes(folder) == expected
        else:
            run_to_its_end(fork_server, RESUME if saved else train, folder)
            assert final_hashes(folder) == expected, (folder / "output.txt").read_text()
            assert [r["iter"] for r in story("iter", str(folder / "out"))] == list(range(LAST))
            assert not [p.name for p in (folder / "out" / "ckpt").iterdir() if p.name[0] == "."]
            best = json.loads((folder / "out" / "best.json").read_text())
            assert best["val_loss"] == best_loss
            resumed += bool(saved)
        shutil.rmtree(folder)
    sys.stdout.write(f"{landed} of {trials} kills hit a running process, {trials} runs the same\n")
    assert landed == KILLS
    assert resumed > 0


def has_begun(folder: Path) -> bool:
    log = folder / "out" / "run.jsonl"
    return log.exists() and b'"kind":"iter"' in log.read_bytes()


def test_sigterm_at_any_moment_leaves_a_committed_checkpoint(fork_server):
    settings = SETTINGS | {"max_iters": 10**6, "lr_decay_iters": 10**6, "eval_interval": 2}
    settings["eval_iters"] = 40
    longest_s, during_evaluation = 0.0, 0
    for trial in range(TERMS):
        folder = folder_with_data(f"term-{trial}")
        process = fork_server.start("train", *tiny_args(**settings), cwd=folder)
        wait_until(partial(has_begun, folder))
        time.sleep(random.uniform(0, 0.7))
        sent = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        output, error = process.communicate()
        longest_s = max(longest_s, time.perf_counter() - sent)
        assert (process.returncode, error) == (0, "")
        step = int(re.search(r"stopped by SIGTERM after (\d+) updates", output)[1])
        assert tensors.load_snapshot(checkpoints.committed(folder / "out")[0]).step == step
        evaluated = story("eval", str(folder / "out"))[-1]["iter"]
        during_evaluation += step % settings["eval_interval"] == 0 and evaluated < step
    sys.stdout.write(
        f"{TERMS} of {TERMS} saved, {during_evaluation} of them while evaluating; the slowest "
        f"{longest_s:.2f} s after the signal\n"
    )
