"""The command as a process: signals, pipes, a kill without warning."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers import command, prepare_tiny, records, run_process, story, tiny_args
from processes import Forked, wait_until
from stepglass.checkpoint import tensors
from stepglass.cli import main
from stepglass.process import StopRequest, let_segments_grow
from stepglass.run_dir import checkpoints


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


@pytest.fixture
def start(fork_server):
    def start(**changes: object) -> Forked:
        settings = {"max_iters": 100_000, "eval_interval": 50, "eval_iters": 20} | changes
        settings["compile"] = False
        return fork_server.start("train", *tiny_args(**settings))

    return start


def wait_for(process: "Forked | subprocess.Popen[str]", pattern: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if re.match(pattern, line):
            return line
    raise AssertionError(f"{pattern} never came")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_after_the_step_with_a_checkpoint(number, start):
    process = start()
    wait_for(process, r"iter 60:")
    process.send_signal(number)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, "")
    step = int(re.search(rf"stopped by {number.name} after (\d+) updates", out)[1])
    assert tensors.load_snapshot(checkpoints.committed(Path("out"))[0]).step == step
    assert "go on with: stepglass resume out\n" in out
    assert "wall clock" in out
    assert records("end")[0]["reason"] == "signal"


def test_a_run_under_nohup_outlives_its_terminal():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopRequest() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_leaves_at_once_and_what_was_saved_stays(start):
    process = start(gradient_accumulation_steps=200_000, max_iters=3, batch_size=1)
    wait_for(process, r"eval 0:")
    time.sleep(1.0)  # the update has begun
    process.send_signal(signal.SIGINT)  # would wait for it, which takes minutes
    time.sleep(0.3)
    assert process.poll() is None
    wait_until(lambda: process.send_signal(signal.SIGINT) or process.poll() is not None, 20)
    assert process.returncode == -signal.SIGINT
    process.communicate()


# A thread of the parent starts the child and ends. The parent goes on, until it is killed.
PARENT = """
import subprocess, sys, threading, time

def start_and_rest():
    subprocess.Popen([sys.executable, "-c", sys.argv[1]])
    time.sleep(1.0)

threading.Thread(target=start_and_rest).start()
time.sleep(60)
"""
CHILD = """
import time
from stepglass.process import StopRequest, end_with_parent
with StopRequest() as stop:
    end_with_parent()
    while not stop.is_set():
        time.sleep(0.01)
    print("stopping", flush=True)
    time.sleep(1.0)
    print("saved", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of it")
def test_a_parent_that_dies_thread_by_thread_does_not_end_a_save():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, encoding="utf-8"
    )
    wait_for(parent, "stopping")
    parent.kill()
    wait_for(parent, "saved")
    parent.communicate()


def test_a_signal_during_an_evaluation_stops_it(start):
    process = start(eval_iters=10**6, eval_interval=10**6, batch_size=1, max_iters=10**6)
    wait_for(process, r"start-up:")
    time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "stopped by SIGTERM after" in out


@pytest.mark.long
def test_a_run_that_was_killed_goes_on_where_its_checkpoint_is(start):
    process = start()
    wait_for(process, r"checkpoint 100:")
    process.kill()
    process.communicate()
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=200"]) == 0
    assert [r["iter"] for r in story("iter")] == list(range(200))


@pytest.mark.finished_run
def test_a_signal_ends_sampling_after_the_token_with_exit_code_0(fork_server):
    process = fork_server.start("sample", "out", "--max_new_tokens=10000000")
    assert process.stdout.read(20)
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (0, "")
    assert out.endswith("\n")


@pytest.mark.parametrize(
    ("words", "redirection", "code"),
    [
        (["prepare", "t.txt"], "2>&-", 0),
        (["prepare", "t.txt"], ">&- 2>&-", 0),
        (["prepare", "nope.txt"], "2>/dev/full", 2),
        (["prepare", "nope.txt"], "2>&-", 2),
        pytest.param(
            ["sample", "out", "--max_new_tokens=3"],
            ">&-",
            0,
            marks=[pytest.mark.finished_run, pytest.mark.long],
        ),
        pytest.param(["train", *tiny_args(out_dir="other")], ">&- 2>&-", 0, marks=pytest.mark.long),
    ],
)
def test_output_that_is_closed_changes_no_exit_code(words, redirection, code):
    Path("t.txt").write_text("to be or not to be " * 100)
    line = f"{shlex.join(command(*words))} {redirection}"
    assert subprocess.run(line, shell=True, check=False).returncode == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_preparation_and_nothing_half_made_stays(number):
    with open("big.txt", "w") as file:
        for _ in range(60):
            file.write("to be or not to be " * 60_000)
    process = subprocess.Popen(
        command("prepare", "big.txt", "--name=big"), stderr=subprocess.PIPE, text=True
    )
    while not list(Path("data").glob("*big*/.*")) and not list(Path("data").glob(".*big*")):
        assert process.poll() is None, "it was over before it could be stopped"
        time.sleep(0.01)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "\nstopped\n")
    assert not [p for p in Path("data").rglob("*") if "big" in str(p) and p.is_file()]


@pytest.mark.long
def test_a_reader_that_leaves_is_no_error():
    process = subprocess.Popen(
        command("train", *tiny_args(max_iters=200, eval_interval=50)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(process, r"iter 5:")
    process.stdout.close()
    assert (process.wait(timeout=60), process.stderr.read()) == (0, "")
    assert records("end")[0]["reason"] == "finished"
    process.stderr.close()


@pytest.mark.long
def test_a_run_whose_output_is_closed_trains_in_silence():
    """It once hung: the log's thread was never told to end."""
    line = " ".join(command("train", *tiny_args()))
    done = subprocess.run(
        f"{line} >&-", shell=True, stderr=subprocess.PIPE, timeout=100, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert records("end")[0]["reason"] == "finished"


def test_a_terminal_that_knows_only_ascii_is_no_error(fork_server):
    done = fork_server.run("train", *tiny_args(max_iters=1), encoding="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "val loss" in done.stdout


def test_a_full_disk_behind_the_output_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("train", "--help"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert "Traceback" not in done.stderr


def test_an_error_is_one_line_on_stderr():
    done = run_process("train", "--n_layr=3", cwd=Path())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: unknown setting --n_layr; did you mean n_layer?\n"


def test_python_m_stepglass_is_the_command():
    assert run_process("--version", cwd=Path()).stdout.startswith("stepglass 0.")


def test_the_interpreter_looks_for_circles_rarely_and_never_when_it_ends():
    code = (
        "import atexit, gc, sys; from stepglass.__main__ import process; "
        "atexit.register(lambda: print(gc.get_freeze_count() > 1000, gc.get_threshold()[0])); "
        "sys.exit(process())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[1] == "True 200000"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, "expandable_segments:True"),
        ({"PYTORCH_ALLOC_CONF": "backend:native"}, "backend:native"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, None),
    ],
)
def test_gpu_memory_grows_in_place_unless_the_user_has_said_otherwise(before, after, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    environment = dict(before)
    let_segments_grow(environment)
    assert environment.get("PYTORCH_ALLOC_CONF") == after


def test_the_allocator_is_set_before_torch_is_imported():
    code = (
        "import os, sys, stepglass.__main__ as m; "
        "m.main = lambda: print(os.environ['PYTORCH_ALLOC_CONF'], 'torch' in sys.modules) or 0; "
        "m.process()"
    )
    clean = {key: value for key, value in os.environ.items() if "ALLOC_CONF" not in key}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("expandable_segments:True False\n", "")
