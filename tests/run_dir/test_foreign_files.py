"""Nothing that is not the run's own is ever written to or deleted: links at every level, folders
that are moved, replaced, emptied or taken over while a run goes on."""

import hashlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers import prepare_tiny, records, tiny_args, train_tiny
from stepglass.checkpoint import tensors
from stepglass.cli import main
from stepglass.data.dataset import Dataset
from stepglass.files import FileOps
from stepglass.run_dir import checkpoints

OUT, PRECIOUS = Path("out"), Path("precious")
LAST = 9  # the updates of a run: several saves come after what happens at the fifth


def everything_in(*folders: Path) -> dict[str, str]:
    """Every file, folder and link, and what is in it."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink():
                found[str(path)] = f"-> {os.readlink(path)}"
            elif path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[str(path)] = "folder"
    return found


@pytest.fixture(autouse=True)
def precious():
    prepare_tiny()
    (PRECIOUS / "sub").mkdir(parents=True)
    (PRECIOUS / "thesis.txt").write_text("years of work")
    (PRECIOUS / "sub" / "data.csv").write_text("1,2,3")


def link(place: str, target: Path) -> None:
    path = OUT / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target.resolve())


def archive_checkpoints() -> None:
    for path in checkpoints.committed(OUT):
        path.rename(PRECIOUS / path.name)
        path.symlink_to((PRECIOUS / path.name).resolve())


def link_files_of_a_checkpoint() -> None:
    oldest = checkpoints.committed(OUT)[-1]
    shutil.move(oldest / "model.safetensors", PRECIOUS / "weights")
    (oldest / "model.safetensors").symlink_to((PRECIOUS / "weights").resolve())
    (oldest / "more").symlink_to(PRECIOUS.resolve())


LINKS: dict[str, Callable[[], None]] = {
    "checkpoints moved to an archive": archive_checkpoints,
    "files of a checkpoint": link_files_of_a_checkpoint,
    "a name like a half-written one": lambda: link("ckpt/.tmp-link", PRECIOUS),
    "a half-written one": lambda: link("ckpt/.tmp-step-00000001-000009", PRECIOUS),
    "an old version's half-written one": lambda: link("ckpt/.tmp-step-00000001-4242", PRECIOUS),
    "one set aside": lambda: link("ckpt/.trash-step-00000001-000001", PRECIOUS),
    "inside one set aside": lambda: link("ckpt/.trash-step-00000001-000001/x", PRECIOUS),
    "deep inside a half-written one": lambda: link("ckpt/.tmp-step-00000001-000001/a/b", PRECIOUS),
    "a file in a half-written one": lambda: link(
        "ckpt/.tmp-step-00000001-000001/state.json", PRECIOUS / "thesis.txt"
    ),
    "a spoilt one": lambda: link("ckpt/nan-step-00000001-000001", PRECIOUS),
    "a checkpoint of a later step": lambda: link("ckpt/step-00000099-000077", PRECIOUS),
    "best.json's temporary name": lambda: link(
        f".best.json.tmp-{os.getpid()}", PRECIOUS / "thesis.txt"
    ),
    "config.json's temporary name": lambda: link(
        f".config.json.tmp-{os.getpid()}", PRECIOUS / "thesis.txt"
    ),
    "somebody else's file": lambda: link("notes", PRECIOUS),
}


@pytest.mark.finished_run(max_iters=4, checkpoint_interval=1)
@pytest.mark.parametrize("name", LINKS)
def test_no_link_is_followed_on_the_way_to_a_write_or_a_deletion(name):
    LINKS[name]()
    before = everything_in(PRECIOUS)
    resume = [
        "--out_dir=out",
        "--init_from=resume",
        f"--max_iters={LAST}",
        "--checkpoint_interval=1",
    ]
    assert main(["train", *resume]) == 0
    assert everything_in(PRECIOUS) == before
    assert checkpoints.step_of(newest_whole(OUT)) == LAST


def newest_whole(folder: Path) -> Path:
    found = tensors.newest_path(folder)
    assert found is not None
    return found


@pytest.mark.finished_run(max_iters=4)
@pytest.mark.parametrize(
    "name", ["ckpt", "run.jsonl", "best.json", "config.json", "tokenizer.json", "LOCK"]
)
@pytest.mark.parametrize("init_from", ["resume", "scratch"])
def test_a_link_in_the_place_of_what_a_run_writes_is_refused(name, init_from, capsys):
    shutil.move(OUT / name, PRECIOUS / name)
    link(name, PRECIOUS / name)
    before = everything_in(PRECIOUS, OUT)
    capsys.readouterr()
    flags = tiny_args(max_iters=LAST, init_from=init_from)
    assert main(["train", *[flag for flag in flags if "recipe" not in flag]]) == 2
    error = capsys.readouterr().err
    assert f"error: out/{name}: expected a" in error
    assert "found a symlink" in error
    assert error.count("\n") == 1
    assert everything_in(PRECIOUS, OUT) == before


@pytest.mark.finished_run(max_iters=4)
def test_a_new_run_moves_nothing_into_a_link_called_like_an_earlier_run():
    link("earlier-1", PRECIOUS)
    before = everything_in(PRECIOUS)
    assert train_tiny(max_iters=4) == 0
    assert everything_in(PRECIOUS) == before
    assert (OUT / "earlier-2" / "run.jsonl").is_file()


def test_a_run_directory_that_is_a_link_itself_is_what_somebody_chose():
    Path("disk").mkdir()
    OUT.symlink_to("disk")
    assert train_tiny(max_iters=4) == 0
    assert checkpoints.step_of(newest_whole(Path("disk"))) == 4


# -- folders that change while a run goes on ----------------------------------------------------


@pytest.fixture
def finished(kept_runs):
    """A run of somebody else's, to be put where the first one's folder was."""
    kept_runs.copy(out_dir="finished", max_iters=3, seed=7)


def another_run(out_dir: str = "out") -> None:
    """A second run, from its beginning to its end, while the first one waits."""
    shutil.copytree("finished", out_dir, dirs_exist_ok=True)


def move(target: str) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    OUT.rename(target)


def empty_it() -> None:
    for path in OUT.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def replace_by_a_copy() -> None:
    shutil.copytree(OUT, "copy")
    shutil.rmtree(OUT)
    Path("copy").rename(OUT)


def swap_with_another_run() -> None:
    another_run("other")
    move("mine")
    Path("other").rename(OUT)


def take_over() -> None:
    (OUT / "earlier-1").mkdir()
    (OUT / "LOCK").unlink()
    for path in list(OUT.iterdir()):
        if path.name != "earlier-1":
            path.rename(OUT / "earlier-1" / path.name)
    another_run()


def move_to_another_disk() -> None:
    target = Path("/dev/shm") / f"stepglass-{os.getpid()}"
    assert os.stat("/dev/shm").st_dev != os.stat(".").st_dev
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(OUT, target)  # what `mv` does between file systems
    shutil.rmtree(OUT)
    shutil.move(target, "moved")


# What happens, where the run is afterwards, and where another run or somebody's files are.
MOVED: dict[str, tuple[Callable[[], None], str, str | None]] = {
    "moved, and another begun": (lambda: (move("old"), another_run()), "old", "out"),
    "moved deeper": (lambda: move("a/b/old"), "a/b/old", None),
    "moved, an empty folder there": (lambda: (move("old"), OUT.mkdir()), "old", "out"),
    "moved, a link there": (lambda: (move("old"), OUT.symlink_to("old")), "old", None),
    "moved, a file there": (lambda: (move("old"), OUT.write_text("mine")), "old", None),
    "swapped with another run": (swap_with_another_run, "mine", "out"),
    "moved and a copy left": (lambda: (move("old"), shutil.copytree("old", OUT)), "old", "out"),
    "its LOCK deleted": (lambda: (OUT / "LOCK").unlink(), "out", None),
    "moved twice": (lambda: (move("old"), Path("old").rename("older")), "older", None),
    "moved away and back": (lambda: (move("old"), Path("old").rename("out")), "out", None),
}
LOST: dict[str, tuple[Callable[[], None], str, str | None]] = {
    "deleted": (lambda: shutil.rmtree(OUT), "out", None),
    "deleted, and another begun": (
        lambda: (shutil.rmtree(OUT), another_run()),
        "out-rescued-1",
        "out",
    ),
    "deleted, an empty folder there": (
        lambda: (shutil.rmtree(OUT), OUT.mkdir()),
        "out-rescued-1",
        "out",
    ),
    "emptied": (empty_it, "out-rescued-1", None),
    "emptied, and another begun": (lambda: (empty_it(), another_run()), "out-rescued-1", "out"),
    "taken over by another": (take_over, "out-rescued-1", "out"),
    "replaced by a copy of itself": (replace_by_a_copy, "out-rescued-1", "out"),
    "moved to another disk": (move_to_another_disk, "out", "moved"),
}


def do_at_step(monkeypatch, step: int, action: Callable[[], Any]) -> None:
    """Something happens while a run works on its n-th update."""
    real, done = Dataset.batch, []

    def batch(self, seed, number, *rest):
        if number == step and not done:
            done.append(number)
            while not is_settled(step):
                time.sleep(0.01)
            action()
        return real(self, seed, number, *rest)

    monkeypatch.setattr(Dataset, "batch", batch)


def is_settled(step: int) -> bool:
    """True once a checkpoint is written and nothing is left to tidy up."""
    names = os.listdir(OUT / "ckpt")
    is_saved = any(name.startswith(f"step-{step:08d}") for name in names)
    return is_saved and not any(name.startswith(".") for name in names)


def do_while_saving(monkeypatch, step: int, action: Callable[[], Any]) -> None:
    """Something happens in the middle of writing a checkpoint."""
    real, done = FileOps.create, []

    def create(self, folder, name):
        if name == "optim.safetensors" and f"step-{step:08d}" in str(folder.path) and not done:
            done.append(name)
            action()
        return real(self, folder, name)

    monkeypatch.setattr(FileOps, "create", create)


WHEN = {"between two saves": do_at_step, "while saving": do_while_saving}


def not_mine(theirs: str | None) -> dict[str, str]:
    """What belongs to others. What another run found in its folder, and moved aside, is mine."""
    found = everything_in(PRECIOUS, *([Path(theirs)] if theirs else []))
    return {name: what for name, what in found.items() if "/earlier-1/" not in name}


def run_with(monkeypatch, when: str, action: Callable[[], None], theirs: str | None) -> int:
    """Train, with something happening at step 5. What belongs to others stays as it was then."""
    seen: dict[str, str] = {}

    def act() -> None:
        action()
        seen.update(not_mine(theirs))

    with monkeypatch.context() as patch:
        WHEN[when](patch, 5, act)
        code = main(["train", *tiny_args(max_iters=LAST, checkpoint_interval=1)])
    assert seen, "nothing happened"
    assert not_mine(theirs) == seen
    return code


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", MOVED)
def test_a_run_follows_its_folder(name, when, finished, monkeypatch, capsys):
    action, mine, theirs = MOVED[name]
    assert run_with(monkeypatch, when, action, theirs) == 0
    assert checkpoints.step_of(newest_whole(Path(mine))) == LAST
    assert [r["iter"] for r in records("iter", mine)] == list(range(LAST))
    out = capsys.readouterr().out
    assert ("; the run goes on there\n" in out) == (mine != "out" and not OUT.is_symlink())


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", LOST)
def test_a_run_that_has_lost_its_folder_saves_elsewhere_and_stops(
    name, when, finished, monkeypatch, capsys
):
    action, rescued, theirs = LOST[name]
    assert run_with(monkeypatch, when, action, theirs) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    again = f"go on with: stepglass resume {rescued}"
    assert again in error
    step = checkpoints.step_of(newest_whole(Path(rescued)))
    assert 5 <= step <= 8
    assert main(["train", f"--out_dir={rescued}", "--init_from=resume"]) == 0
    assert checkpoints.step_of(newest_whole(Path(rescued))) == LAST


def wait_for(path: Path, text: str) -> None:
    while not path.exists() or text not in path.read_text():
        time.sleep(0.05)


def test_a_run_whose_folder_was_moved_leaves_the_run_that_is_there_now_alone(fork_server):
    """Once it took over the other's lock when that had ended, and its log and checkpoints."""
    first_args = tiny_args(
        compile=False, max_iters=1_000_000, checkpoint_interval="1s", log_interval=100
    )
    with Path("first.txt").open("w") as output:
        first = fork_server.start("train", *first_args, stdout=output)
    try:
        wait_for(Path("first.txt"), "iter 100:")
        OUT.rename("out-old")
        assert main(["train", *tiny_args(max_iters=3, seed=7)]) == 0
        before = everything_in(OUT)
        saved = Path("first.txt").read_text().count("\ncheckpoint ")
        while Path("first.txt").read_text().count("\ncheckpoint ") < saved + 2:
            time.sleep(0.05)
    finally:
        first.send_signal(signal.SIGTERM)
        assert first.wait() == 0
    assert everything_in(OUT) == before
    last = records("iter", "out-old")[-1]["iter"]
    assert checkpoints.step_of(newest_whole(Path("out-old"))) == last + 1
    shown = Path("first.txt").read_text()
    assert f"note: out was moved to {Path('out-old').resolve()}; the run goes on there" in shown
    assert f"stepglass resume {Path('out-old').resolve()}" in shown
