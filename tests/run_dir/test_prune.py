"""`stepglass runs prune`: earlier runs go if told, and nothing else ever does."""

import json
import os
import shutil
from pathlib import Path

import pytest

from helpers import open_run, train_tiny
from stepglass.cli import main
from stepglass.errors import CheckpointError
from stepglass.run_dir import command, earlier

pytestmark = pytest.mark.finished_run(out_dir="work/first")

EARLIER = Path("work/first/earlier-1")


@pytest.fixture(autouse=True)
def run_moved_aside(finished_runs: None) -> None:
    """What a second run in the same folder leaves: the files of the first one, in a folder."""
    EARLIER.mkdir()
    for path in list(Path("work/first").iterdir()):
        if path.name not in ("LOCK", EARLIER.name):
            (shutil.copytree if path.is_dir() else shutil.copy)(path, EARLIER / path.name)


def files(folder: str = ".") -> set[str]:
    return {str(path) for path in Path(folder).rglob("*")}


def pruned(capsys, *args: str) -> tuple[int, list[str], str]:
    capsys.readouterr()
    code = main(["runs", "prune", *args])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def test_a_real_run_that_was_moved_aside_goes(capsys):
    shutil.rmtree(EARLIER)
    train_tiny(out_dir="work/first", seed=2, max_iters=1, log_to="")
    assert EARLIER.is_dir()
    left = files("work/first") - files(str(EARLIER)) - {str(EARLIER)}
    code, lines, _ = pruned(capsys, "work", "--yes")
    assert code == 0
    assert lines[-1] == "deleted work/first/earlier-1"
    assert files("work/first") == left


def test_without_yes_and_without_a_terminal_nothing_goes(capsys):
    before = files()
    code, lines, error = pruned(capsys, "work")
    assert (code, error) == (0, "")
    size = f"{earlier.folder_bytes(EARLIER) / 1000:.1f} kB"
    assert lines[0].startswith("work/first/earlier-1  ")
    assert lines[0].endswith(size)
    assert lines[1] == f"1 earlier run, {size}: nothing was deleted; add --yes to delete"
    assert files() == before


@pytest.mark.parametrize(("answer", "is_there"), [(True, False), (False, True)])
def test_on_a_terminal_it_asks(answer, is_there):
    said, asked = [], []

    def ask(question: str) -> bool:
        asked.append(question)
        return answer

    command.prune_earlier(Path("work"), False, said.append, ask)
    assert len(asked) == 1
    assert asked[0].startswith("delete 1 earlier run, ")
    assert EARLIER.exists() == is_there
    assert said[-1] == ("nothing was deleted" if is_there else "deleted work/first/earlier-1")


def test_no_answer_is_a_no(monkeypatch):
    def nobody(question: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    assert not command.ask_on_terminal("delete? ")
    monkeypatch.setattr("builtins.input", lambda question: " Y ")
    assert command.ask_on_terminal("delete? ")


def stays(capsys, reason: str) -> None:
    """The earlier run is listed with the reason, and is there as before after --yes."""
    before = files()
    code, lines, error = pruned(capsys, "work", "--yes")
    assert (code, error) == (0, "")
    assert reason in lines[0]
    assert lines[1] == "work: no earlier runs to delete"
    assert files() == before


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "ckpt/mine.txt",
        "ckpt/step-00000006-000002/more",
        "tensorboard/mine",
        ".x.tmp-1",
    ],
)
def test_a_file_that_no_run_wrote_keeps_the_folder(name, capsys):
    path = EARLIER / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    stays(capsys, f"stays: {name} in it was not written by a run")


@pytest.mark.parametrize("name", ["run.jsonl", "ckpt", "ckpt/step-00000006-000002", "tensorboard"])
def test_a_symlink_is_not_followed_and_keeps_the_folder(name, capsys):
    """In the place of one of the run's own files: what it leads to may be anybody's."""
    path, outside = EARLIER / name, Path("outside").absolute()
    if path.exists():
        os.rename(path, outside)
    else:
        outside.mkdir()
    path.symlink_to(outside)
    (Path("outside.txt")).write_text("here before")
    stays(capsys, f"stays: {name} in it was not written by a run")


def test_an_earlier_run_that_is_a_symlink_is_not_even_listed(capsys):
    os.rename(EARLIER, "elsewhere")
    EARLIER.symlink_to(Path("elsewhere").absolute())
    before = files()
    assert pruned(capsys, "work", "--yes")[1] == ["work: no earlier runs to delete"]
    assert files() == before


def test_a_folder_without_a_manifest_that_looks_like_a_checkpoint_is_not_ours(capsys):
    (EARLIER / "ckpt/step-00000006-000002/MANIFEST.json").unlink()
    stays(capsys, "ckpt/step-00000006-000002 in it")


def test_what_a_killed_save_left_goes_with_the_run(capsys):
    name = "step-00000006-000002"
    os.rename(EARLIER / "ckpt" / name, EARLIER / "ckpt" / f".tmp-{name}")
    (EARLIER / "ckpt" / f".tmp-{name}" / "MANIFEST.json").unlink()
    (EARLIER / ".best.json.tmp-123").write_text("{")
    assert pruned(capsys, "work", "--yes")[1][-1] == "deleted work/first/earlier-1"


def test_a_log_of_somebody_else_keeps_the_folder(capsys):
    shutil.rmtree(EARLIER / "ckpt")
    (EARLIER / "run.jsonl").write_text(json.dumps({"step": 1, "loss": 2.0}) + "\n")
    stays(capsys, "stays: its log does not begin like a run's")


def test_an_earlier_run_that_was_resumed_and_is_running_stays(capsys):
    held = open_run(EARLIER)
    stays(capsys, "stays: running (process ")
    held.close()
    assert pruned(capsys, "work", "--yes")[1][-1] == "deleted work/first/earlier-1"


def test_a_run_that_begins_after_the_list_was_made_stays(capsys):
    [run] = earlier.earlier_runs(Path("work"))
    assert run.reason_to_stay is None
    held = open_run(EARLIER)
    with pytest.raises(CheckpointError, match="another run is using it"):
        command.delete_all(Path("work"), [run], lambda line: None)
    held.close()
    (EARLIER / "note").write_text("mine")
    with pytest.raises(CheckpointError, match="note in it was not written by a run"):
        command.delete_all(Path("work"), [run], lambda line: None)
    assert (EARLIER / "run.jsonl").exists()


def test_the_earlier_runs_of_a_run_in_progress_can_go(capsys):
    held = open_run(Path("work/first"))
    assert pruned(capsys, "work", "--yes")[0] == 0
    held.close()
    assert not EARLIER.exists()
    assert Path("work/first/run.jsonl").exists()


def test_a_run_whose_folder_a_person_has_named_so_stays(capsys):
    """It was not moved aside by another run: the folder above was never one."""
    Path("mine").mkdir()
    shutil.copytree(EARLIER, "mine/earlier-1")
    assert pruned(capsys, "mine", "--yes")[1] == ["mine: no earlier runs to delete"]
    assert pruned(capsys, str(EARLIER), "--yes")[1] == [f"{EARLIER}: no earlier runs to delete"]
    assert EARLIER.exists()


def test_a_folder_that_cannot_be_deleted_does_not_keep_the_others(capsys, monkeypatch):
    shutil.copytree(EARLIER, EARLIER.with_name("earlier-2"))
    real = earlier.remove_tree

    def fail(ops, parent, name):
        if name == "earlier-1":
            raise PermissionError(13, "Permission denied")
        real(ops, parent, name)

    monkeypatch.setattr(earlier, "remove_tree", fail)
    code, lines, error = pruned(capsys, "work", "--yes")
    assert code == 2
    assert lines[-1] == "deleted work/first/earlier-2"
    assert error == "error: work/first/earlier-1: cannot be deleted: permission denied\n"


def test_earlier_runs_inside_an_earlier_run_go_with_it_unless_one_is_running(capsys):
    shutil.copytree(EARLIER, EARLIER / "earlier-1")
    (EARLIER / "LOCK").touch()
    held = open_run(EARLIER / "earlier-1")
    stays(capsys, "earlier-1 in it: running")
    held.close()
    code, lines, _ = pruned(capsys, "work", "--yes")
    assert (code, len(lines)) == (0, 2)
    assert not EARLIER.exists()


@pytest.mark.parametrize("argv", [["nowhere"], ["data"], ["a", "b"]])
def test_a_folder_without_runs_is_refused_in_one_line(argv, capsys):
    code, lines, error = pruned(capsys, *argv)
    assert (code, lines, error.count("\n")) == (2, [], 1)
