"""Real processes, killed at random moments. `make torture` does it 200 times."""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers import prepare_tiny, story, tiny_args
from stepglass.checkpoint import tensors
from stepglass.run_dir import checkpoints

KILLS = int(os.environ.get("STEPGLASS_KILLS", "12"))
TERMS = int(os.environ.get("STEPGLASS_TERMS", "6"))
LAST = 40
SETTINGS = {
    "max_iters": LAST,
    "dropout": 0.1,
    "checkpoint_interval": 2,
    "eval_interval": 10,
    "eval_iters": 5,
    "always_save_checkpoint": True,
}
RESUME = ["train", "--out_dir=out", "--init_from=resume"]


class ForkServer:
    """Talks to fork_server.py."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parents[1] / "fork_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, argv: list[str], cwd: Path, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"argv": argv, "cwd": str(cwd), **order}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def fork_server():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def server(fork_server):
    prepare_tiny()
    return fork_server


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


def test_a_run_killed_at_any_moment_ends_with_the_same_weights(server):
    train = ["train", *tiny_args(**SETTINGS)]
    whole = folder_with_data("whole")
    took = [server.run(train, whole)["took_s"] for _ in range(2)][-1]
    expected = final_hashes(whole)
    best_loss = json.loads((whole / "out" / "best.json").read_text())["val_loss"]
    trials = landed = resumed = 0
    while landed < KILLS and trials < 4 * KILLS:
        folder = folder_with_data(f"trial-{trials}")
        killed = server.run(train, folder, signal=signal.SIGKILL, after_s=random.uniform(0, took))
        trials += 1
        if killed["after_signal_s"] is not None:
            landed += 1
        else:  # the run ended first: the machine is faster now than when it was measured
            took = killed["took_s"]
        saved = checkpoints.committed(folder / "out")
        for path in saved:
            checkpoints.verify(path)
        if saved and checkpoints.step_of(saved[0]) == LAST:
            assert final_hashes(folder) == expected
        else:
            again = server.run(RESUME if saved else train, folder)
            output = (folder / "output.txt").read_text()
            assert again["code"] == 0, output
            assert final_hashes(folder) == expected, output
            assert [r["iter"] for r in story("iter", str(folder / "out"))] == list(range(LAST))
            assert not [p.name for p in (folder / "out" / "ckpt").iterdir() if p.name[0] == "."]
            best = json.loads((folder / "out" / "best.json").read_text())
            assert best["val_loss"] == best_loss
            resumed += bool(saved)
        shutil.rmtree(folder)
    sys.stdout.write(f"{landed} of {trials} kills hit a running process, {trials} runs the same\n")
    assert landed == KILLS
    assert resumed > 0


def test_sigterm_at_any_moment_leaves_a_committed_checkpoint(server):
    settings = SETTINGS | {"max_iters": 10**6, "lr_decay_iters": 10**6, "eval_interval": 2}
    settings["eval_iters"] = 40
    longest, during_evaluation = 0.0, 0
    for trial in range(TERMS):
        folder = folder_with_data(f"term-{trial}")
        ended = server.run(
            ["train", *tiny_args(**settings)],
            folder,
            signal=signal.SIGTERM,
            after_iter_s=random.uniform(0, 0.7),
        )
        output = (folder / "output.txt").read_text()
        assert ended["code"] == 0, output
        step = int(re.search(r"stopped by SIGTERM after (\d+) updates", output)[1])
        assert tensors.load(checkpoints.committed(folder / "out")[0]).step == step
        evaluated = story("eval", str(folder / "out"))[-1]["iter"]
        during_evaluation += step % settings["eval_interval"] == 0 and evaluated < step
        longest = max(longest, ended["after_signal_s"])
    sys.stdout.write(
        f"{TERMS} of {TERMS} saved, {during_evaluation} of them while evaluating; the slowest "
        f"{longest:.2f} s after the signal\n"
    )
