"""Replicas of the model do what one model would, and leave nothing behind."""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from helpers import prepare_tiny, records, tiny_args, train_tiny
from processes import GROUP, PARENT, Forked, status_of_all, wait_until
from runs import digest, evaluations, losses, resume, stop_after
from stepglass.hardware import choose, memory
from stepglass.run_dir import checkpoints
from stepglass.run_dir.saved_settings import saved_settings
from stepglass.settings.command_line import read_command_line, resolve
from stepglass.settings.train import TrainConfig
from stepglass.train import building, setup
from stepglass.train.engines import helper_process, replicas
from stepglass.train.engines.helper_process import Channel, NoAnswer, Patience
from stepglass.train.evaluate import rows_at_once
from stepglass.train.optimizer import MuonAdamW


@pytest.fixture(autouse=True)
def data():
    prepare_tiny()


@pytest.fixture
def no_child_is_left():
    """Not even one that has ended and was not waited for. A browser of other tests may be there."""
    before = status_of_all(PARENT, os.getpid())
    yield
    assert set(status_of_all(PARENT, os.getpid())) <= set(before)


def start(out_dir: str = "out") -> dict[str, object]:
    return records("start", out_dir)[0]


@pytest.mark.parametrize(
    ("number", "settings"),
    [
        (2, {"batch_size": 4}),
        (2, {"batch_size": 3, "optimizer": "adamw"}),  # two rows and one
        (2, {"batch_size": 2, "gradient_accumulation_steps": 3}),
        (4, {"batch_size": 4, "grad_clip": 0}),
        (3, {"batch_size": 8, "grad_clip": 1e-3}),
        (16, {"batch_size": 16, "n_layer": 1, "max_iters": 3}),  # some have no weights of their own
    ],
)
def test_replicas_learn_what_one_model_learns(number, settings, threads):
    assert train_tiny(**settings, out_dir="one") == 0
    threads(number)
    assert train_tiny(**settings, out_dir="several") == 0
    assert (start("one")["replicas"], start("several")["replicas"]) == (1, number)
    for kind, keys in {
        "iter": ("loss", "grad_norm", "lr", "tokens"),
        "eval": ("train_loss", "val_loss", "val_se", "windows"),
    }.items():
        pairs = list(zip(records(kind, "one"), records(kind, "several"), strict=True))
        assert len(pairs) >= 2
        for one, several in pairs:
            for key in keys:
                expected = one[key] if one[key] is None else pytest.approx(one[key], rel=1e-4)
                assert several[key] == expected, (kind, key)


# A run that is broken in `parts` is compared with one that never was.
BROKEN = {"dropout": 0.2, "max_iters": 6, "eval_interval": 2, "batch_size": 4}
beside_a_whole_run = pytest.mark.finished_run(**BROKEN, threads=2, out_dir="whole")


@pytest.mark.parametrize("step", [1, 3, 4])
@beside_a_whole_run
def test_stopping_and_resuming_replicas_changes_nothing(step, threads, monkeypatch):
    threads(2)
    with monkeypatch.context() as patch:
        stop_after(patch, step)
        assert train_tiny(**BROKEN, out_dir="parts") == 0
    assert resume("parts") == 0
    assert start("parts")["replicas"] == 2
    assert digest("parts") == digest("whole")
    assert losses("parts") == losses("whole")
    assert evaluations("parts") == evaluations("whole")


def test_every_replica_drops_other_activations_at_every_step(threads, monkeypatch):
    """The same rows for all, always, and weights that stay: only what is dropped can differ."""
    threads(3)
    rows, seen = [], []
    real = replicas.Replicas._all_do

    def with_the_same_rows(self, name, work):
        is_rehearsal = name == "backward" and len(work[0][0][0][0]) == 0
        if name != "backward" or is_rehearsal:
            return real(self, name, work)
        rows.append(work[0][0])
        seen.append(real(self, name, [(rows[0], *arguments[1:]) for arguments in work]))
        return seen[-1]

    monkeypatch.setattr(replicas.Replicas, "_all_do", with_the_same_rows)
    settings = {"model": "gpt2", "batch_size": 6, "learning_rate": 1e-30, "min_lr": 0}
    assert train_tiny(**settings, dropout=0.5, out_dir="dropped") == 0
    found = [loss for losses in seen for loss in losses]
    assert len(found) == 3 * 8  # the first batch, the one that is timed, and six updates
    # Both are seeded like iteration 0, which drops the same again.
    assert len(set(found)) == 3 * 6
    rows.clear()
    seen.clear()
    assert train_tiny(**settings, dropout=0.0, out_dir="whole") == 0
    assert len({loss for losses in seen for loss in losses}) == 1


def test_a_helper_is_forked_while_no_other_thread_is_at_work(threads, monkeypatch):
    """It might hold a lock that nobody in the helper would ever open."""
    data = bytes(200_000_000)
    real = os.fork
    alive = []

    def fork():
        alive.append(other.is_alive())
        return real()

    def start_another(*args):
        other.start()
        return pick(*args)

    pick = building.choose_replicas
    other = threading.Thread(target=hashlib.sha256, args=(data,))  # without Python's lock
    monkeypatch.setattr(os, "fork", fork)
    monkeypatch.setattr(building, "choose_replicas", start_another)
    monkeypatch.setattr(helper_process, "SLEEP_WITHIN_S", 60)
    threads(2)
    assert train_tiny(max_iters=1) == 0
    assert alive == [False]


@pytest.mark.usefixtures("no_child_is_left")
def test_a_run_leaves_no_process_and_no_setting_behind(threads):
    threads(2)
    assert train_tiny() == 0
    assert torch.get_num_threads() == 2


def fail_in_helper(monkeypatch, name: str, failure) -> None:
    real = getattr(replicas.Replica, name)

    def fail(self, *arguments):
        if self.number == 1:
            failure()
        return real(self, *arguments)

    monkeypatch.setattr(replicas.Replica, name, fail)


def run_out_of_memory():
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate much")


@pytest.mark.parametrize("name", ["backward", "add_up", "update", "score"])
@pytest.mark.usefixtures("no_child_is_left")
def test_memory_that_runs_out_in_a_helper_is_named(name, threads, monkeypatch, capsys):
    threads(2)
    fail_in_helper(monkeypatch, name, run_out_of_memory)
    assert train_tiny() == 2
    assert "ran out of memory" in capsys.readouterr().err


@pytest.mark.usefixtures("no_child_is_left")
def test_where_a_helper_cannot_be_started_one_model_is_trained(threads, monkeypatch, capsys):
    threads(3)
    real, forks = os.fork, []

    def one_and_no_more() -> int:
        if forks:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        forks.append(real())
        return forks[-1]

    monkeypatch.setattr(os, "fork", one_and_no_more)
    assert train_tiny(batch_size=6) == 0
    assert "note: one model instead of 3 replicas: resource temporarily unavailable" in (
        capsys.readouterr().out
    )
    assert start()["replicas"] == 1
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("no_child_is_left")
def test_a_log_that_cannot_be_opened_ends_the_helpers(threads, monkeypatch):
    threads(2)

    def refuse(*where: object) -> None:
        raise PermissionError(13, "Permission denied", "run.jsonl")

    monkeypatch.setattr(setup, "RunLogWriter", refuse)
    assert train_tiny() == 2
    assert torch.get_num_threads() == 2


def test_helpers_that_somebody_else_has_waited_for_do_not_hold_up_the_end(threads):
    threads(2)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert train_tiny() == 0
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_every_replica_has_a_window_to_score():
    """Long windows leave room for one row at a time; the other cores would wait for it."""
    cpu = replace(choose.pick_device(TrainConfig(device="cpu")), replicas=8)
    assert rows_at_once(100, 8192, cpu) == 8


def test_replicas_that_cannot_be_compiled_go_on_without(threads, monkeypatch, capsys):
    threads(2)

    def broken(model, **options):
        raise RuntimeError("no C compiler")

    monkeypatch.setattr(torch, "compile", broken)
    assert train_tiny(compile=True) == 0
    assert "compile failed: no C compiler; going on without it" in capsys.readouterr().out
    assert train_tiny(compile=False, out_dir="plain") == 0
    assert losses("out") == losses("plain")


# -- replicas that are lost ---------------------------------------------------------------------

LOST_AT = 3  # the update under way; evaluations are at 2 and 4


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def hang() -> None:
    while True:
        time.sleep(1)


def ask_to_stop_and_stop() -> None:
    os.kill(os.getppid(), signal.SIGTERM)
    stop()


def lose_helper(monkeypatch, name: str, failure, step: int = LOST_AT) -> None:
    """Replica 1 fails on its way into a method, in the update of a step or in what follows it. The
    middle of an update is `step`."""
    owner = MuonAdamW if name == "step" else replicas.Replica
    real, real_backward = getattr(owner, name), replicas.Replica.backward
    trainer, seen = os.getpid(), []

    def note_step(self, rows, number, seed):
        seen.append((self.number, *seed[1:]))  # the warm-up is seeded like step 0
        return real_backward(self, rows, number, seed)

    def fail(self, *arguments):
        if name == "backward":
            seen.append((self.number, *arguments[2][1:]))
        if os.getpid() != trainer and (1, step) in seen:
            failure()
        return real(self, *arguments)

    monkeypatch.setattr(replicas.Replica, "backward", note_step)
    monkeypatch.setattr(owner, name, fail)


@pytest.fixture
def short_patience(monkeypatch):
    monkeypatch.setattr(replicas, "WITHIN_S", 2.0)
    monkeypatch.setattr(replicas, "WITHIN_TIMES", 0)
    monkeypatch.setattr(helper_process, "END_WITHIN_S", 0.5)


def saved_step(out_dir: str = "parts") -> int:
    return checkpoints.step_of(checkpoints.committed(Path(out_dir))[0])


def assert_going_on_changes_nothing() -> None:
    """After a loss in `parts`: the run ends in the bits of one that was never broken."""
    assert start("whole")["replicas"] == 2
    assert resume("parts") == 0
    assert digest("parts") == digest("whole")
    assert losses("parts") == losses("whole")
    assert evaluations("parts") == evaluations("whole")


ENDED = r"\) ended, exit code -9; if there was too little memory, lower --batch_size"
STOPPED = r"\), stopped, gave no answer within 2\.0s and was killed; something has stopped it"
HUNG = r"\), asleep, gave no answer within 2\.0s and was killed; if memory is short, lower .*"
GO_ON = r"newest checkpoint: \S+; go on with: stepglass resume parts\n"


@beside_a_whole_run
@pytest.mark.parametrize(
    ("failure", "words"),
    [(die, ENDED), (stop, STOPPED), (hang, HUNG)],
    ids=["dies", "stopped", "hangs"],
)
@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("backward", LOST_AT),
        ("add_up", LOST_AT),
        ("update", LOST_AT + 1),  # it had not begun: its part was done in its place
        ("score", LOST_AT + 1),
    ],
)
@pytest.mark.usefixtures("no_child_is_left", "short_patience")
def test_a_lost_replica_ends_the_run_with_its_last_whole_update(
    name, saved, failure, words, threads, monkeypatch, capsys
):
    threads(2)
    with monkeypatch.context() as patch:
        lose_helper(patch, name, failure)
        assert train_tiny(**BROKEN, out_dir="parts") == 1
    error = capsys.readouterr().err
    assert re.fullmatch(rf"error: replica 1 of the model \(process \d+{words}; {GO_ON}", error)
    assert saved_step() == saved
    newest = checkpoints.committed(Path("parts"))[0]
    last_lr = json.loads((newest / "state.json").read_bytes())["last_lr"]
    assert last_lr == records("iter", "parts")[-1]["lr"]  # of the last update that was done
    assert records("end", "parts")[-1]["reason"] == "failed"
    [lost] = [r["detail"] for r in records("event", "parts") if r["name"] == "process_lost"]
    assert lost["why"] in error
    assert_going_on_changes_nothing()


@beside_a_whole_run
@pytest.mark.parametrize("failure", [die, hang])
@pytest.mark.usefixtures("no_child_is_left", "short_patience")
def test_an_update_that_is_torn_is_not_saved(failure, threads, monkeypatch, capsys):
    threads(2)
    with monkeypatch.context() as patch:
        lose_helper(patch, "step", failure)
        assert train_tiny(**BROKEN, out_dir="parts") == 1
    error = capsys.readouterr().err
    torn = "the weights after 3 updates were half changed and are not saved"
    assert re.search(rf"; {torn}; {GO_ON}", error)
    assert saved_step() < LOST_AT
    assert_going_on_changes_nothing()


@pytest.mark.usefixtures("no_child_is_left", "short_patience")
def test_an_update_that_is_torn_before_anything_was_saved_says_so(threads, monkeypatch, capsys):
    threads(2)
    lose_helper(monkeypatch, "step", die, step=1)
    assert train_tiny() == 1
    assert capsys.readouterr().err.endswith("not saved; no checkpoint had been saved yet\n")
    assert checkpoints.committed(Path("out")) == []


@beside_a_whole_run
@pytest.mark.usefixtures("no_child_is_left", "short_patience")
def test_a_replica_stopped_halfway_through_an_update_may_finish_it(threads, monkeypatch, capsys):
    threads(2)
    with monkeypatch.context() as patch:
        lose_helper(patch, "step", stop)
        assert train_tiny(**BROKEN, out_dir="parts") == 1
    assert re.search(STOPPED, capsys.readouterr().err)
    assert saved_step() == LOST_AT + 1
    assert_going_on_changes_nothing()


@beside_a_whole_run
@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("backward", LOST_AT),
        ("add_up", LOST_AT),
        ("update", LOST_AT + 1),
        ("step", LOST_AT + 1),
        ("score", LOST_AT + 1),
    ],
)
@pytest.mark.usefixtures("no_child_is_left")
def test_a_signal_is_heard_while_a_replica_is_waited_for(name, saved, threads, monkeypatch, capsys):
    threads(2)
    monkeypatch.setattr(replicas, "GRACE_S", 0.5)
    with monkeypatch.context() as patch:
        lose_helper(patch, name, ask_to_stop_and_stop)
        assert train_tiny(**BROKEN, out_dir="parts") == 0
    assert f"stopped by SIGTERM after {saved} updates" in capsys.readouterr().out
    assert saved_step() == saved
    assert records("end", "parts")[-1]["reason"] == "signal"
    assert_going_on_changes_nothing()


@pytest.mark.usefixtures("no_child_is_left")
def test_a_signal_is_heard_while_a_replica_is_waited_for_in_the_warm_up(
    threads, monkeypatch, capsys
):
    threads(2)
    monkeypatch.setattr(replicas, "GRACE_S", 0.5)
    fail_in_helper(monkeypatch, "backward", ask_to_stop_and_stop)
    assert train_tiny() == 0
    said = capsys.readouterr().out
    assert "stopped, gave no answer after the run was asked to stop and was killed" in said
    assert "stopped by SIGTERM after 0 updates" in said


@pytest.mark.usefixtures("no_child_is_left", "short_patience")
def test_a_replica_that_hangs_from_the_start_ends_the_run(threads, monkeypatch, capsys):
    threads(3)
    fail_in_helper(monkeypatch, "backward", hang)
    assert train_tiny(batch_size=6) == 1
    assert re.search(HUNG, capsys.readouterr().err)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.usefixtures("no_child_is_left", "short_patience")
def test_the_end_of_a_run_waits_for_no_replica(number, threads, monkeypatch):
    threads(2)
    real = replicas.Replicas.close

    def close(self):
        for pid in status_of_all(PARENT, os.getpid()):
            if pid not in before:
                os.kill(pid, number)
        real(self)

    before = status_of_all(PARENT, os.getpid())
    monkeypatch.setattr(replicas.Replicas, "close", close)
    assert train_tiny() == 0


@pytest.mark.usefixtures("no_child_is_left", "short_patience")
def test_a_batch_that_nobody_takes_is_not_waited_for(threads, monkeypatch, capsys):
    """It is larger than what a pipe holds."""
    threads(2)
    real = replicas.Replicas.backward

    def backward(self, batches, step, counted=1.0):
        if step == 1:
            os.kill(self._helpers[0]._pid, signal.SIGSTOP)
        return real(self, batches, step, counted)

    settings = {"batch_size": 16, "gradient_accumulation_steps": 16, "block_size": 256}
    with monkeypatch.context() as patch:
        patch.setattr(replicas.Replicas, "backward", backward)
        assert train_tiny(**settings, max_iters=2, eval_iters=1, out_dir="parts") == 1
    assert re.search(STOPPED, capsys.readouterr().err)
    assert saved_step() == 1


def test_half_a_message_is_not_waited_for():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours)
        theirs.send(helper_process.LENGTH.pack(10) + b"half")
        with pytest.raises(NoAnswer):
            channel.receive(Patience(0.2, 0.2, lambda: False))


@pytest.mark.parametrize(
    ("own_s", "name", "is_stopping", "expected_s"),
    [
        (0.02, "backward", False, 60),
        (10.0, "backward", False, 200),  # twenty times replica 0's
        (10.0, "compile", False, 1800),
        (200.0, "compile", False, 4000),
        (0.02, "backward", True, 5),
        (10.0, "backward", True, 10),
        (3600.0, "backward", True, 30),  # replica 0 itself was stopped for an hour
    ],
)
def test_patience_is_measured_by_what_replica_0_took(own_s, name, is_stopping, expected_s):
    few = replicas.Replicas.__new__(replicas.Replicas)
    few._to_compile, few._is_stopping = {"compile"}, lambda: is_stopping
    patience = few._patience(name, own_s)
    for _ in range(expected_s):
        patience.spend(1.0)
    with pytest.raises(NoAnswer):
        patience.spend(1.0)


# -- signals, in real processes -----------------------------------------------------------------


SETTINGS = {"max_iters": 10**6, "eval_interval": 10**6, "compile": False}


class Run:
    """A run with two replicas, in a process group of its own."""

    def __init__(self, process: "Forked | subprocess.Popen[str]") -> None:
        self.process = process
        self.wait_for("iter 5")

    def wait_for(self, beginning: str) -> None:
        assert self.process.stdout is not None
        assert any(line.startswith(beginning) for line in self.process.stdout)

    def group(self) -> list[int]:
        """Processes of the run that are still there."""
        there = status_of_all(GROUP, self.process.pid)
        return [pid for pid, state in there.items() if state != "Z"]

    def rest(self) -> str:
        out, _ = self.process.communicate()
        return out


@pytest.fixture
def run(fork_server):
    argv = ["train", *tiny_args(**SETTINGS)]
    run = Run(fork_server.start(*argv, threads=2, new_session=True))
    yield run
    for pid in run.group():
        os.kill(pid, signal.SIGKILL)


def test_a_signal_for_the_whole_group_stops_after_a_step(run):
    [helper] = set(run.group()) - {run.process.pid}
    for number in (signal.SIGINT, signal.SIGTERM):  # the second would end a run that heeds them
        os.kill(helper, number)
        assert run.process.stdout.readline()
    assert len(run.group()) == 2
    os.killpg(run.process.pid, signal.SIGINT)
    said = run.rest()
    assert run.process.returncode == 0
    assert "stopped by SIGINT" in said
    assert checkpoints.committed(Path("out"))
    assert run.group() == []


def test_nothing_survives_a_run_that_is_killed(run):
    os.kill(run.process.pid, signal.SIGKILL)
    run.rest()  # until nobody holds its output
    wait_until(lambda: run.group() == [])
    assert train_tiny() == 0  # the directory is not locked


def test_a_helper_holds_none_of_the_files_of_the_run(run):
    [helper] = set(run.group()) - {run.process.pid}
    held = [os.readlink(path) for path in Path(f"/proc/{helper}/fd").iterdir()]
    os.killpg(run.process.pid, signal.SIGKILL)
    run.rest()
    assert not [path for path in held if str(Path("out").resolve()) in path]
    assert len(held) == 4  # standard input, output and errors, and the pipe


def test_a_signal_ends_a_run_whose_replica_is_stopped(run):
    [helper] = set(run.group()) - {run.process.pid}
    os.kill(helper, signal.SIGSTOP)
    time.sleep(1.0)  # the run waits for it by now
    os.kill(run.process.pid, signal.SIGTERM)
    said = run.rest()
    assert run.process.returncode == 0
    updates = int(re.search(r"stopped by SIGTERM after (\d+) updates", said)[1])
    assert [checkpoints.step_of(p) for p in checkpoints.committed(Path("out"))] == [updates]
    assert run.group() == []


def test_a_stopped_replica_does_not_survive_a_run_that_is_killed(run):
    [helper] = set(run.group()) - {run.process.pid}
    os.kill(helper, signal.SIGSTOP)
    os.kill(run.process.pid, signal.SIGKILL)
    wait_until(lambda: run.group() == [])
    run.rest()


STOP_ALL_IN_ITERATION_7 = """
import os, signal, sys, time
from stepglass import cli
from stepglass.train.engines import replicas

replicas.WITHIN_S, replicas.WITHIN_TIMES = 1.5, 0
real = replicas.Replica.backward

def backward(self, rows, number, seed):
    if self.number == 1 and seed[1:] == (7,):
        time.sleep(0.2)  # replica 0 waits by now
        os.killpg(0, signal.SIGSTOP)
        time.sleep(0.2)  # and looks at the time before there is an answer
    return real(self, rows, number, seed)

replicas.Replica.backward = backward
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.long
def test_a_run_that_is_stopped_as_a_whole_goes_on_however_long_that_was():
    argv = ["train", *tiny_args(**SETTINGS)]
    process = subprocess.Popen(
        [sys.executable, "-c", STOP_ALL_IN_ITERATION_7, *argv],
        env=os.environ | {"OMP_NUM_THREADS": "2"},
        start_new_session=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    run = Run(process)
    wait_until(lambda: set(status_of_all(GROUP, process.pid).values()) == {"T"})
    time.sleep(2.5)  # longer than a helper is waited for
    os.killpg(process.pid, signal.SIGCONT)
    run.wait_for("iter 9")
    os.kill(process.pid, signal.SIGTERM)
    assert "stopped by SIGTERM" in run.rest()
    assert process.returncode == 0


# -- how many -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "batch_size", "number", "reason"),
    [
        ({"threads": 2}, 12, 2, "one per core, 6 of 12 sequences each"),
        ({"threads": 8}, 12, 6, "one per core, 2 of 12 sequences each"),
        ({"threads": 8}, 64, 8, "one per core, 8 of 64 sequences each"),
        ({"threads": 2}, 1, 1, "2 threads would share 1 sequences unevenly"),
        ({"threads": 10}, 12, 1, "10 threads would share 12 sequences unevenly"),
        ({"threads": 1}, 12, 1, "one thread"),
        ({"threads": 2, "dtype": torch.bfloat16}, 12, 1, "not tried with bfloat16"),
        ({"torch_device": torch.device("cuda")}, 12, 1, "one device"),
    ],
)
def test_cores_share_a_batch_that_keeps_them_busy(changes, batch_size, number, reason):
    cpu = choose.pick_device(resolve(read_command_line(tiny_args()), "none", saved_settings))
    chosen = replace(cpu, **changes)
    assert choose.pick_replicas(chosen, batch_size, 10**6) == (number, reason)


def test_large_gradients_are_not_copied(monkeypatch):
    cpu = replace(
        choose.pick_device(resolve(read_command_line(tiny_args()), "none", saved_settings)),
        threads=2,
    )
    assert choose.pick_replicas(cpu, 12, 10**9) == (1, "their gradients would take 8.0 GB")
    with monkeypatch.context() as patch:
        patch.setattr(memory, "available_host_bytes", lambda: 20_000_000)
        assert choose.pick_replicas(cpu, 12, 10**6) == (1, "their gradients would take 8.0 MB")
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: True)
        assert choose.pick_replicas(cpu, 12, 10**6)[0] == 1
    monkeypatch.setattr(sys, "platform", "darwin")
    assert choose.pick_replicas(cpu, 12, 10**6)[0] == 1
