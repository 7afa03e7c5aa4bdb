"""Several processes that train one model, over gloo. They are real processes."""

import re
import signal
import socket
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from chats import BLOCK, prepare_chats
from helpers import prepare_tiny, records, story, tiny_args, train_tiny
from processes import Forked, pid_of_rank, wait_until
from rank_processes import TWO, start_ranks, train_ranks
from runs import are_same, digest, stop_after, stored_tensors
from stepglass.cli import main
from stepglass.data.dataset import load_dataset
from stepglass.run_dir import checkpoints
from stepglass.settings.train import TrainConfig
from stepglass.train.batches import micro_batches
from stepglass.train.engines.helper_process import state_of
from stepglass.train.other_processes import Together, reasons

BOTH = pytest.mark.parametrize("parallel", ["ddp", "fsdp"])


@pytest.fixture(autouse=True)
def data(threads) -> None:
    threads(1)
    prepare_tiny()


def weights(out_dir: str) -> dict[str, Tensor]:
    newest = checkpoints.committed(Path(out_dir))[0]
    return safetensors.torch.load_file(newest / "model.safetensors")


def wait_for_line(process: Forked, start: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(start):
            return
    raise AssertionError(f"no line starts with {start}: {process.stderr.read()}")


# -- the same weights ----------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("model", "optimizer"),
    [
        ("modern", "muon"),
        pytest.param("gpt2", "adamw", marks=pytest.mark.long),
        pytest.param("modern", "adamw", marks=pytest.mark.long),
        pytest.param("gpt2", "muon", marks=pytest.mark.long),
    ],
)
def test_two_processes_learn_what_one_learns(fork_server, model, optimizer, parallel):
    chosen = {"model": model, "optimizer": optimizer, "grad_clip": 0}
    printed = train_ranks(fork_server, out_dir="two", parallel=parallel, **chosen)
    assert train_tiny(**TWO, **chosen, out_dir="one") == 0
    assert digest("two") == digest("one")
    assert [r["val_loss"] for r in records("eval", "two")] == pytest.approx(
        [r["val_loss"] for r in records("eval", "one")], rel=1e-6
    )
    assert [r["loss"] for r in records("iter", "two")] == pytest.approx(
        [r["loss"] for r in records("iter", "one")], rel=1e-6
    )
    told = [r["detail"] for r in records("event", "two") if r["name"] == "ranks"]
    assert [len(detail["compute_ms"]) for detail in told] == ([2, 2] if parallel == "ddp" else [])
    assert all(ms > 0 for detail in told for ms in detail["compute_ms"] + detail["wait_ms"])
    assert f"processes: 2, {parallel}: 4 sequences of an update each" in printed[0]
    assert printed[1] == ""


@BOTH
@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
@pytest.mark.parametrize("model", ["modern", "gpt2"])
@pytest.mark.long
def test_clipped_gradients_have_the_norm_of_one_process(fork_server, model, optimizer, parallel):
    chosen = {"model": model, "optimizer": optimizer, "grad_clip": 0.01}
    train_ranks(fork_server, out_dir="two", parallel=parallel, **chosen)
    assert train_tiny(**TWO, out_dir="one", **chosen) == 0
    if parallel == "ddp":
        assert digest("two") == digest("one")
    one, two = weights("one"), weights("two")
    far = sum((one[name] - two[name]).square().sum() for name in one)
    size = sum(weight.square().sum() for weight in one.values())
    assert (far / size) ** 0.5 < 1e-6  # FSDP adds the squares up in another order
    assert all(r["grad_norm"] > 0.01 for r in records("iter", "two"))


def test_processes_share_the_rows_that_one_would_read(monkeypatch):
    cfg = TrainConfig(dataset="tiny", batch_size=4, gradient_accumulation_steps=3, block_size=8)
    data = load_dataset("tiny", 8)
    whole = torch.cat([x for x, _ in micro_batches(data, cfg, 7)])
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    shares = []
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        shares.append([x for x, _ in micro_batches(data, cfg, 7)])
    assert [[len(x) for x in share] for share in shares] == [[4, 2], [4, 2]]
    assert torch.equal(torch.cat([x for share in shares for x in share]), whole)


# -- stopped, saved and resumed ------------------------------------------------------------------


@pytest.mark.long
def test_a_run_goes_on_with_another_number_of_processes(fork_server):
    """From DDP to FSDP and to one process, each stopped by a signal: all ranks at one step."""
    chosen = TWO | {"max_iters": 40, "lr_decay_iters": 40, "grad_clip": 0, "eval_interval": 40}
    assert train_tiny(**chosen, out_dir="whole") == 0
    for number, (init_from, parallel) in enumerate([("scratch", "ddp"), ("resume", "fsdp")], 1):
        leader, follower = start_ranks(
            fork_server, rest_s=0.05, **chosen, init_from=init_from, parallel=parallel
        )
        wait_for_line(leader, f"iter {10 * number}")
        leader.send_signal(signal.SIGTERM)
        assert (leader.wait(), follower.wait()) == (0, 0)
        end = records("end")[-1]
        newest = checkpoints.committed(Path("out"))[0]
        assert (end["reason"], end["iter"]) == ("signal", checkpoints.step_of(newest))
    assert main(["resume", "out"]) == 0
    assert digest("out") == digest("whole")
    assert [r["iter"] for r in story("iter")] == list(range(40))


@BOTH
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.long
def test_a_run_of_one_process_goes_on_in_two(fork_server, parallel, replicas, threads, monkeypatch):
    """One replica, and each update has two micro-batches: the same bits."""
    threads(replicas)
    chosen = TWO | {"grad_clip": 0}
    assert train_tiny(**chosen, out_dir="whole") == 0
    with monkeypatch.context() as patch:
        stop_after(patch, 10)
        assert train_tiny(**chosen, out_dir="out") == 0
    train_ranks(fork_server, grad_clip=0, parallel=parallel, init_from="resume")
    assert records("start")[0].get("replicas") == replicas
    assert [r["iter"] for r in story("iter")] == list(range(20))
    if replicas == 1:
        assert digest("out") == digest("whole")
    losses = [[r["loss"] for r in story("iter", out_dir)] for out_dir in ("out", "whole")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize(
    ("before", "now", "settings", "why"),
    [
        ((2, "ddp"), (1, "ddp"), {}, ""),
        ((1, "fsdp"), (2, "ddp"), {}, ""),
        ((2, "ddp"), (2, "fsdp"), {}, ""),
        ((2, "ddp"), (2, "ddp"), {"dropout": 0.1, "gradient_accumulation_steps": 8}, ""),
        ((1, "ddp"), (1, "fsdp"), {"dropout": 0.1, "grad_clip": 1.0}, ""),
        ((2, "ddp"), (1, "ddp"), {"grad_clip": 1.0}, ""),
        ((2, "ddp"), (1, "ddp"), {"gradient_accumulation_steps": 4}, "another order"),
        ((2, "ddp"), (1, "ddp"), {"gradient_accumulation_steps": 1}, "another order"),
        ((2, "ddp"), (4, "ddp"), {}, "another order"),
        ((2, "ddp"), (1, "ddp"), {"dropout": 0.1}, "dropout"),
        ((2, "ddp"), (2, "fsdp"), {"grad_clip": 1.0}, "clipping"),
        ((2, "fsdp"), (1, "fsdp"), {"n_embd": 8}, "multiple of 8 numbers"),
    ],
)
def test_other_processes_are_named_if_they_change_the_weights(before, now, settings, why):
    chosen = {"batch_size": 4, "gradient_accumulation_steps": 2, "n_embd": 32, "grad_clip": 0.0}
    cfg = TrainConfig(**chosen | settings)
    shapes = [(cfg.n_embd,), (65, cfg.n_embd)]
    found = reasons(Together(*before), Together(*now), cfg, shapes)
    assert len(found) == bool(why)
    assert why in "".join(found)


def test_a_run_of_two_processes_that_goes_on_in_one_says_that_its_weights_differ(
    fork_server, capsys
):
    train_ranks(fork_server, dropout=0.1, max_iters=3, out_dir="out")
    assert main(["resume", "out", "--nproc=1", "--max_iters=6"]) == 0
    said = "processes was 2 (ddp), is 1 (each process draws its own dropout)"
    assert f"note: not the same bits as an unbroken run: {said}" in capsys.readouterr().out
    [resumed] = [r["detail"] for r in records("event") if r["name"] == "resume"]
    assert resumed["changed"] == [said]


# -- what goes wrong -----------------------------------------------------------------------------


def test_the_error_of_another_process_is_the_one_shown(fork_server):
    Path("elsewhere").mkdir()
    leader, follower = start_ranks(fork_server, folders=(".", "elsewhere"))
    assert leader.wait() == 1
    assert follower.wait() == 1
    error = leader.communicate()[1]
    assert error.startswith("error: step 0: rank 1: data/tiny: no such data set")
    assert error.count("\n") == 1
    assert follower.communicate() == ("", "")


@BOTH
@pytest.mark.long
def test_a_lost_process_ends_the_run_and_is_named(fork_server, parallel):
    """DDP has all weights in rank 0 and saves them. FSDP has lost some, and names the newest
    checkpoint."""
    leader, follower = start_ranks(
        fork_server, parallel=parallel, checkpoint_interval=5, eval_interval=1000, max_iters=100_000
    )
    wait_for_line(leader, "checkpoint 5")
    follower.kill()
    _, error = leader.communicate()
    assert leader.wait() == 1
    assert f"rank 1 (process {follower.pid}) ended without a word" in error
    assert error.count("\n") == 1
    [end] = records("end")
    newest = checkpoints.step_of(checkpoints.committed(Path("out"))[0])
    assert end["reason"] == "failed"
    if parallel == "ddp":
        assert newest == end["iter"]
    else:
        assert "were spread over all processes and are not saved" in error
        assert end["iter"] - 10 <= newest <= end["iter"]


@BOTH
@pytest.mark.long
def test_a_process_that_hangs_is_named_with_the_step(fork_server, parallel):
    leader, follower = start_ranks(
        fork_server, parallel=parallel, rank_timeout=3, eval_interval=1000, max_iters=100_000
    )
    wait_for_line(leader, "iter 9")
    follower.send_signal(signal.SIGSTOP)
    error = leader.communicate()[1]
    assert leader.wait() == 1
    step = records("end")[0]["iter"]
    assert error.startswith(f"error: step {step}: rank 1 did not answer within 3.0s")
    assert follower.wait() == -signal.SIGKILL


@BOTH
@pytest.mark.long
def test_rank_0_that_hangs_is_named_by_the_others(fork_server, parallel):
    """The store may answer all the same: it is torchrun's."""
    leader, follower = start_ranks(
        fork_server, parallel=parallel, rank_timeout=3, eval_interval=1000, max_iters=100_000
    )
    wait_for_line(leader, "iter 9")
    leader.send_signal(signal.SIGSTOP)
    assert (follower.wait(), leader.wait()) == (1, -signal.SIGKILL)
    error = follower.stderr.read()
    assert re.fullmatch(
        r"error: step \d+: rank 1 has heard nothing from rank 0 for 3\.0s \(--rank_timeout\)\n",
        error,
    )


@pytest.mark.long
def test_processes_without_a_launcher_leave_by_themselves(fork_server):
    args = tiny_args(**TWO | {"max_iters": 100_000, "eval_interval": 100_000}, nproc=2)
    launcher = fork_server.start("train", *args, env={"OMP_NUM_THREADS": "1"})
    wait_for_line(launcher, "iter 9")
    pids = [pid_of_rank(launcher, rank) for rank in (0, 1)]
    launcher.kill()
    wait_until(lambda: all(state_of(pid) == "gone" for pid in pids), 100)
    [saved] = checkpoints.committed(Path("out"))
    [end] = records("end")
    assert (end["reason"], end["iter"]) == ("signal", checkpoints.step_of(saved))


def test_a_process_that_waits_for_rank_0_ends_at_a_signal(fork_server):
    """Rank 0 may have been killed before it could connect. Others would wait for it in vain."""
    with socket.create_server(("127.0.0.1", 0)) as rank_0:
        world = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(rank_0.getsockname()[1])}
        follower = fork_server.start("train", *tiny_args(), env=world | place)
        rank_0.accept()[0].close()
        follower.send_signal(signal.SIGTERM)
        assert follower.wait() == -signal.SIGTERM


@pytest.mark.long
@pytest.mark.parametrize(("parallel", "shards"), [("ddp", False), ("fsdp", False), ("fsdp", True)])
def test_a_save_at_every_step_does_not_disturb_the_processes(fork_server, parallel, shards):
    """Each is written while the next gradients are computed and added up."""
    length = {"max_iters": 100, "lr_decay_iters": 100, "eval_interval": 1000, "grad_clip": 0}
    way = {"parallel": parallel, "checkpoint_shards": shards}
    train_ranks(fork_server, **way, **length, checkpoint_interval=1)
    saved = records("checkpoint")
    assert [r["iter"] for r in saved] == list(range(1, 101))
    assert all(r["background_ms"] > 0 for r in saved)
    assert train_tiny(**TWO | length, out_dir="one") == 0
    assert are_same(stored_tensors("out"), stored_tensors("one"))


def test_batches_that_cannot_be_shared_are_refused(fork_server):
    leader, follower = start_ranks(fork_server, batch_size=3, gradient_accumulation_steps=3)
    _, error = leader.communicate()
    assert leader.wait() == 2
    assert "2 processes cannot share the 9 sequences of an update" in error
    assert follower.wait() == 1
    assert not Path("out").exists()


# -- torchrun ------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("parallel", "shards"), [("ddp", False), ("fsdp", False), ("fsdp", True)])
def test_nproc_stops_at_a_signal_with_one_checkpoint(fork_server, parallel, shards):
    way = {"parallel": parallel, "checkpoint_shards": shards}
    args = tiny_args(**TWO | {"max_iters": 100_000, "eval_interval": 100_000}, **way, nproc=2)
    launcher = fork_server.start("train", *args, env={"OMP_NUM_THREADS": "1"})
    wait_for_line(launcher, "iter 9")
    launcher.send_signal(signal.SIGTERM)
    _, error = launcher.communicate()
    assert (launcher.wait(), error) == (0, "")
    [saved] = checkpoints.committed(Path("out"))
    [end] = records("end")
    assert (end["reason"], end["iter"]) == ("signal", checkpoints.step_of(saved))


@BOTH
@pytest.mark.long
def test_processes_count_what_the_assistant_says_in_all_of_them(fork_server, parallel):
    prepare_chats()
    settings = TWO | {"dataset": "chats", "block_size": BLOCK, "max_iters": 4, "eval_interval": 4}
    train_ranks(fork_server, out_dir="two", parallel=parallel, **settings)
    assert train_tiny(**settings, out_dir="one") == 0
    for kind, key in (("iter", "loss"), ("iter", "grad_norm"), ("eval", "val_loss")):
        found = [[r[key] for r in records(kind, out_dir)] for out_dir in ("one", "two")]
        assert found[1] == pytest.approx(found[0], rel=1e-4)
