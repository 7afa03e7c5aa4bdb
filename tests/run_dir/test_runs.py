"""`stepglass runs`: what there is, how it ended, whether it is whole."""

import re
import threading
from pathlib import Path

import pytest

from helpers import open_run, train_tiny
from stepglass.cli import main
from stepglass.run_dir import checkpoints, lock

pytestmark = pytest.mark.finished_run(out_dir="work/first")


def listed(capsys, *args: str) -> tuple[int, list[str], str]:
    capsys.readouterr()
    code = main(["runs", *args])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def test_runs_and_their_checkpoints_are_listed(capsys):
    train_tiny(out_dir="work/first", seed=2)  # moves the first one aside
    code, lines, _ = listed(capsys, "work")
    assert code == 0
    assert re.fullmatch(r"work/first: finished, step 6 of 6, best val loss \d\.\d{4}", lines[0])
    assert re.fullmatch(r"  step-00000006-000002 +[\d.]+ kB  newest, best", lines[1])
    assert re.fullmatch(r"  step-00000003-000001 +[\d.]+ kB", lines[2])
    assert lines[3].startswith("work/first/earlier-1: finished")


def test_damage_is_found_by_size_at_once_and_by_hash_with_verify(capsys):
    newest, older = checkpoints.committed(Path("work/first"))
    data = bytearray((newest / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (newest / "model.safetensors").write_bytes(data)
    assert listed(capsys, "work")[0] == 0
    code, lines, error = listed(capsys, "work", "--verify")
    assert code == 2
    assert "damaged" in lines[1]
    assert lines[2].endswith("verified")
    assert error == (
        "error: 1 of 2 checkpoints in work are damaged; a run that is resumed passes over them\n"
    )
    (older / "state.json").write_bytes(b"")
    code, lines, _ = listed(capsys, "work")
    assert code == 2
    assert "expected" in lines[2]


def test_a_run_going_on_is_told_from_one_that_was_killed(capsys):
    held = open_run(Path("work/first"))
    assert re.match(r"work/first: running \(process \d+ on .+\)", listed(capsys, "work")[1][0])
    held.close()
    log = Path("work/first/run.jsonl")
    log.write_bytes(log.read_bytes().rsplit(b"\n", 2)[0] + b"\n")  # no `end`
    assert listed(capsys, "work")[1][0].startswith("work/first: killed, step 6 of 6")


def test_looking_does_not_keep_a_run_from_beginning():
    """A reader holds the lock for a moment; a trainer that met it was refused."""
    done = threading.Event()

    def look_all_the_time():
        while not done.is_set():
            lock.owner_of(Path("work/first"))

    readers = [threading.Thread(target=look_all_the_time) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(100):
            open_run(Path("work/first")).close()
    finally:
        done.set()
        for reader in readers:
            reader.join()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere"], "error: nowhere: expected a folder, found nothing\n"),
        (["data"], "error: data: no runs here; train one with `stepglass train`\n"),
        (["a", "b"], "error: expected one folder, found ['a', 'b']\n"),
        (["--verfy"], "error: unknown setting --verfy; did you mean verify?\n"),
    ],
)
def test_what_cannot_be_listed_is_one_line(args, message, capsys):
    code, lines, error = listed(capsys, *args)
    assert (code, lines, error) == (2, [], message)


def test_a_hostile_run_directory_is_listed_without_harm(capsys):
    bad = Path("work/\x1b[31mred")
    bad.mkdir()
    (bad / "run.jsonl").write_bytes(b'\xff\xfe{"kind":3}\n[[[[' + b"[" * 100_000 + b"\nnull\n{}")
    (bad / "best.json").write_text('{"val_loss": "x", "dir": "../.."}')
    (bad / "config.json").write_text("[1]")
    code, lines, _ = listed(capsys, "work")
    assert code == 0
    assert "work/?[31mred: no log, best.json is damaged" in lines
