"""Runs of several processes that save in shards. They are real processes."""

import shutil
import signal
from pathlib import Path

import pytest

from helpers import prepare_tiny, records, train_tiny
from processes import wait_until
from rank_processes import TWO, start_ranks, train_ranks
from runs import are_same, stop_after, stored_tensors
from stepglass.checkpoint import tensors
from stepglass.cli import main
from stepglass.run_dir import checkpoints

SHARDS = {"parallel": "fsdp", "checkpoint_shards": True, "grad_clip": 0}


@pytest.fixture(autouse=True)
def data(threads) -> None:
    threads(1)
    prepare_tiny()


def newest_files() -> set[str]:
    return {file.name for file in checkpoints.committed(Path("out"))[0].iterdir()}


def test_two_processes_save_their_shards_and_none_gathers_a_whole_tensor(fork_server, capsys):
    """Everything that opens a checkpoint opens this one."""
    said = train_ranks(fork_server, **SHARDS, may_gather=False)
    assert train_tiny(**TWO, grad_clip=0, out_dir="one") == 0
    assert are_same(stored_tensors("out"), stored_tensors("one"))
    assert "checkpoints: each process writes its own part: as asked for\n" in said[0]
    shards = {checkpoints.shard_name(k, n, 2) for k in ("model", "optim") for n in (0, 1)}
    others = {"rank-00000.safetensors", "state.json", "tokenizer.json", "MANIFEST.json"}
    assert newest_files() == shards | others
    bytes_said = [r["bytes"] for r in records("checkpoint")]
    assert checkpoints.verify(checkpoints.committed(Path("out"))[0]) == bytes_said[-1]
    for command in (
        ["sample", "out", "--max_new_tokens=5"],
        ["runs", "out", "--verify"],
        ["export", "out", "--to=hf", "--out=there"],
        ["resume", "out", "--nproc=1", "--max_iters=22"],
    ):
        assert main(command) == 0, (command, capsys.readouterr())


@pytest.mark.long
def test_gathering_is_what_a_run_without_shards_does(fork_server):
    """The check above can fail."""
    leader, _ = start_ranks(fork_server, **SHARDS | {"checkpoint_shards": False}, may_gather=False)
    _, error = leader.communicate()
    assert leader.wait() == 1
    assert "a whole tensor was gathered" in error


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_run_goes_on_from_shards_in_any_way(fork_server, monkeypatch):
    """Two processes with shards, again, DDP, one process; and from one process to shards. All reach
    the weights of a run that nothing has stopped."""
    length = {"max_iters": 40, "lr_decay_iters": 40, "eval_interval": 40}
    chosen = TWO | {"grad_clip": 0} | length
    assert train_tiny(**chosen, out_dir="whole") == 0
    ways = [{}, {"init_from": "resume"}, {"init_from": "resume", "parallel": "ddp"}]
    for number, way in enumerate(ways, 1):
        settings = SHARDS | length | way
        leader, follower = start_ranks(fork_server, rest_s=0.05, **settings)
        assert leader.stdout is not None
        assert any(line.startswith(f"iter {10 * number}") for line in leader.stdout)
        leader.send_signal(signal.SIGTERM)
        assert (leader.wait(), follower.wait()) == (0, 0), leader.stderr.read()
        is_sharded = settings["parallel"] == "fsdp"
        assert ("model-00001-of-00002.safetensors" in newest_files()) == is_sharded
        if number == 2:
            shutil.copytree("out", "shards")
    for out_dir in ("out", "shards"):
        assert main(["resume", out_dir, "--nproc=1"]) == 0
        assert are_same(stored_tensors(out_dir), stored_tensors("whole"))
    with monkeypatch.context() as patch:
        stop_after(patch, 10)
        assert train_tiny(**chosen, out_dir="from-one") == 0
    train_ranks(fork_server, **SHARDS | length, init_from="resume", out_dir="from-one")
    assert are_same(stored_tensors("from-one"), stored_tensors("whole"))
    assert (
        checkpoints.committed(Path("from-one"))[0] / "model-00001-of-00002.safetensors"
    ).exists()


@pytest.mark.long
@pytest.mark.parametrize("rank", [0, 1])
def test_a_process_killed_while_it_writes_its_shard_leaves_the_older_checkpoint(fork_server, rank):
    processes = start_ranks(
        fork_server, **SHARDS, checkpoint_interval=5, eval_interval=1000, max_iters=100_000
    )
    half = f".tmp-*/model-0000{rank}-of-00002.safetensors"
    wait_until(lambda: checkpoints.committed(Path("out")), 100)
    wait_until(lambda: list(Path("out/ckpt").glob(half)), 100, every_s=0.0)
    processes[rank].kill()
    _, error = processes[0].communicate()
    assert processes[1].wait() != 0
    if rank == 1:
        assert processes[0].wait() == 1
        assert f"rank 1 (process {processes[1].pid}) ended without a word" in error
        assert error.count("\n") == 1
    skipped: list[str] = []
    path, _ = tensors.newest(Path("out"), skipped.append)
    assert skipped == []  # what has its final name is whole
    assert main(["resume", "out", "--nproc=1", f"--max_iters={checkpoints.step_of(path) + 1}"]) == 0
    assert not list(Path("out/ckpt").glob(".tmp-*"))


@pytest.mark.long
def test_a_process_that_was_started_in_another_folder_writes_where_rank_0_does(fork_server):
    shutil.copytree("data", "elsewhere/data")
    leader, follower = start_ranks(fork_server, folders=(".", "elsewhere"), **SHARDS)
    _, error = leader.communicate()
    assert (leader.wait(), follower.wait()) == (0, 0), error
    assert checkpoints.shard_name("model", 1, 2) in newest_files()
    assert not Path("elsewhere/out").exists()
