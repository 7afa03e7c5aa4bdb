"""`stepglass sweep`: all combinations, in real processes, resumed, compared."""

import json
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from helpers import TEXT, TINY, edit_json, open_run, prepare_tiny
from processes import ForkServer, wait_until
from stepglass.cli import main
from stepglass.errors import TrainingFailed
from stepglass.run_dir import checkpoints
from stepglass.sweep import command
from stepglass.sweep.jobs import Process

NAMES = [
    f"learning_rate={rate},n_layer={layers}" for rate in ("0.001", "0.01") for layers in (1, 2)
]
SWEPT = {"learning_rate": "1e-3,1e-2", "n_layer": "1,2"}


def flags(**changes: Any) -> list[str]:
    """A sweep of tiny runs. A setting that is None is left out."""
    fixed = {key: value for key, value in TINY.items() if key not in SWEPT}
    settings = fixed | {"out_dir": "sweep", "min_lr": 1e-4} | SWEPT | changes
    return [f"--{key}={value}" for key, value in settings.items() if value is not None]


class FailsAtOnce:
    """A process that has ended before it did anything."""

    def poll(self) -> int:
        return 1

    def send_signal(self, number: int) -> None:
        raise AssertionError("it has ended")


class Sweeps:
    """Runs sweeps whose processes come from the fork server."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self.started: list[list[str]] = []
        self.threads: list[int | None] = []
        self.lines: list[str] = []

    def start(self, argv: list[str], log: Path, threads: int | None) -> Process:
        self.started.append(argv)
        self.threads.append(threads)
        with open(log, "ab") as file:
            return self._server.start("train", *argv, stdout=file)

    def sweep(self, *argv: str) -> list[str]:
        """The lines that the sweep prints."""
        self.started, self.threads, self.lines = [], [], []
        command.train_sweep(list(argv), self.lines.append, self.start)
        return self.lines

    def start_only(self, *argv: str) -> list[str]:
        """The lines of a sweep whose processes do nothing, for tests of how they are started."""

        def start(argv: list[str], log: Path, threads: int | None) -> Process:
            self.started.append(argv)
            self.threads.append(threads)
            return FailsAtOnce()

        self.lines = []
        with pytest.raises(TrainingFailed, match="none of the 2 runs has trained"):
            command.train_sweep(list(argv), self.lines.append, start)
        return self.lines

    def said(self, beginning: str) -> str:
        [line] = [line for line in self.lines if line.startswith(beginning)]
        return line


@pytest.fixture
def sweeps_with_page(fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> Sweeps:
    monkeypatch.setenv("COLUMNS", "160")
    prepare_tiny()
    return Sweeps(fork_server)


@pytest.fixture
def sweeps(sweeps_with_page: Sweeps, monkeypatch: pytest.MonkeyPatch) -> Sweeps:
    """Most tests do not look at the page, which takes as long to write as a run to train."""
    monkeypatch.setattr(command, "write_page", lambda out_dir, say: None)
    return sweeps_with_page


def best_losses() -> dict[str, float]:
    found = {}
    for name in NAMES:
        best = checkpoints.best(Path("sweep", name))
        assert best is not None
        found[name] = best.val_loss
    return found


@pytest.mark.long
def test_all_combinations_are_trained_and_compared_and_a_second_start_passes_over_them(
    sweeps_with_page,
):
    sweeps = sweeps_with_page
    lines = sweeps.sweep(*flags())
    assert lines[0] == "sweep: 4 runs in sweep: learning_rate=0.001,0.01 n_layer=1,2"
    assert lines[1:5] == [f"  {name}: to be trained" for name in NAMES]
    began = [line for line in lines if line.endswith(": started")]
    assert began == [f"{n} of 4: {name}: started" for n, name in enumerate(NAMES, 1)]
    losses = best_losses()
    assert len(set(losses.values())) == 4
    table = [line.split()[0] for line in lines if line.startswith("sweep/learning_rate")]
    assert table == [f"sweep/{name}" for name in sorted(NAMES, key=losses.__getitem__)]
    assert Path("sweep/report.html").stat().st_size > 10_000
    best = min(losses, key=losses.__getitem__)
    assert (
        sweeps.said("best: ")
        == f"best: {best}, val loss {losses[best]:.4f}; to train it by itself:"
    )
    assert not any(line.startswith("not finished") for line in lines)

    winner = shlex.split(lines[-1])
    assert winner[:2] == ["stepglass", "train"]
    assert main([*winner[1:], "--out_dir=again"]) == 0
    again = checkpoints.best(Path("again"))
    assert again is not None
    assert again.val_loss == losses[best]

    again_lines = sweeps.sweep(*flags())
    assert sweeps.started == []
    assert again_lines[1:5] == [f"  {name}: finished already" for name in NAMES]
    assert again_lines[-1] == lines[-1]
    assert best_losses() == losses


def test_an_interrupted_run_is_resumed_and_more_values_are_more_runs(sweeps):
    sweeps.sweep(*flags(n_layer=1))
    cut, empty = Path("sweep/learning_rate=0.001"), Path("sweep/learning_rate=0.01")
    before = [checkpoints.best(run) for run in (cut, empty)]
    newest, _ = checkpoints.committed(cut)
    newest.rename("away")
    for run in (cut, empty):
        log = run / "run.jsonl"
        log.write_bytes(log.read_bytes().rsplit(b"\n", 2)[0] + b"\n")  # as if it had been killed
    (empty / "ckpt").rename("away-too")
    lines = sweeps.sweep(*flags(n_layer=1, learning_rate="1e-3,1e-2,2e-2"))
    assert lines[1:4] == [
        "  learning_rate=0.001: to be resumed",
        "  learning_rate=0.01: to be trained",
        "  learning_rate=0.02: to be trained",
    ]
    assert sweeps.started[0] == [f"--out_dir={cut}", "--init_from=resume"]
    assert "--learning_rate=0.02" in sweeps.started[2]
    after = [checkpoints.best(run) for run in (cut, empty)]
    assert [best and best.val_loss for best in after] == [best and best.val_loss for best in before]


def test_a_run_that_fails_does_not_end_the_sweep(sweeps):
    lines = sweeps.sweep(*flags(learning_rate="1e19,1e-2", n_layer=1, optimizer="adamw"))
    failed = sweeps.said("  learning_rate=1e+19: failed")
    assert re.match(r"  learning_rate=1e\+19: failed with exit code 1: error: iter \d: ", failed)
    assert sweeps.said("best: ").startswith("best: learning_rate=0.01, val loss ")
    assert sweeps.said("not finished: ") == (
        "not finished: learning_rate=1e+19 (failed); to go on, type:"
    )
    typed = shlex.split(lines[lines.index(sweeps.said("not finished: ")) + 1])
    assert typed == ["stepglass", "sweep", *flags(learning_rate="1e19,1e-2", n_layer=1,
                                                 optimizer="adamw")]  # fmt: skip


def test_if_no_run_can_train_the_sweep_has_failed(sweeps):
    with pytest.raises(TrainingFailed, match=r"none of the 2 runs has trained; see sweep/.*log"):
        sweeps.sweep(*flags(n_layer="1,2", learning_rate=0.01, device="cuda:77"))
    assert "exit code 2: error: " in sweeps.said("  n_layer=1: failed")


def test_jobs_at_a_time_share_the_cores(sweeps, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("stepglass.sweep.jobs.num_cores", lambda: 5)
    monkeypatch.setattr("stepglass.sweep.command.num_cores", lambda: 5)
    lines = sweeps.start_only(*flags(learning_rate=0.01), "--jobs=2")
    assert sweeps.threads == [2, 2]
    assert "2 at a time with 2 threads each, on 5 cores" in lines


def test_text_is_prepared_once_and_before_the_first_run(sweeps):
    Path("my notes.txt").write_text(TEXT)
    lines = sweeps.start_only("my notes.txt", *flags(learning_rate=0.01, dataset=None))
    prepared = [n for n, line in enumerate(lines) if line.startswith("data/my_notes: ")]
    assert len(prepared) == 1
    assert prepared[0] < lines.index("sweep: 2 runs in sweep: n_layer=1,2")
    assert all("--dataset=my_notes" in argv for argv in sweeps.started)


def test_several_data_sets_are_compared_by_bits_per_byte(sweeps):
    prepare_tiny(TEXT.upper(), name="upper")
    sweeps.sweep(*flags(dataset="tiny,upper", learning_rate=0.01, n_layer=1))
    assert sweeps.said("best: ").startswith("best: dataset=")
    log = Path("sweep/dataset=tiny/run.jsonl")
    start, rest = log.read_text().split("\n", 1)
    record = json.loads(start)
    del record["data"]["val_bytes_per_token"]
    log.write_text(json.dumps(record) + "\n" + rest)
    sweeps.sweep(*flags(dataset="tiny,upper", learning_rate=0.01, n_layer=1))
    assert sweeps.said("best: ").startswith("best: n/a: losses on different data")


def test_a_config_file_is_given_to_every_run(sweeps):
    Path("tiny.toml").write_text("max_iters = 3\n")
    sweeps.start_only("tiny.toml", *flags(learning_rate=0.01, max_iters=None))
    assert [argv[0] for argv in sweeps.started] == ["tiny.toml"] * 2
    assert not any("max_iters" in word for argv in sweeps.started for word in argv)


def test_when_the_minutes_are_over_what_was_left_out_is_named(sweeps):
    lines = sweeps.sweep(*flags(learning_rate=0.01), "--minutes=1e-9")
    assert sweeps.started == []
    assert lines[-2] == (
        "not finished: n_layer=1 (not started), n_layer=2 (not started); to go on, type:"
    )
    assert lines[-1].endswith(" --minutes=1e-9")


def test_a_run_that_goes_on_elsewhere_is_passed_over(sweeps):
    Path("sweep").mkdir()
    held = open_run(Path("sweep/n_layer=1"))
    lines = sweeps.start_only(*flags(learning_rate=0.01))
    held.close()
    assert lines[1:3] == ["  n_layer=1: running already", "  n_layer=2: to be trained"]
    assert len(sweeps.started) == 1


# -- settings of an earlier sweep ---------------------------------------------------------------


def refused(capsys, *argv: str) -> str:
    """Run a sweep that must be refused before anything is started; returns its one line."""
    before = {str(path) for path in Path().rglob("*")}
    capsys.readouterr()
    assert main(["sweep", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert {str(path) for path in Path().rglob("*")} - before <= {"sweep", "sweep/LOCK"}
    return captured.err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_iters": 7}, "max_iters=6, not 7"),
        ({"max_iters": None}, "max_iters=6, not 600000"),
        ({"dataset": "other"}, "dataset='tiny', not 'other'"),
    ],
)
def test_a_finished_run_of_other_settings_is_never_taken_for_one_of_this_sweep(
    changes, said, sweeps, capsys
):
    prepare_tiny(name="other")
    run = Path("sweep/n_layer=1")
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps(TINY | {"n_layer": 1, "min_lr": 1e-4}))
    error = refused(capsys, *flags(learning_rate=0.01, **changes))
    assert error.startswith(f"error: sweep/n_layer=1: was trained with {said}; ")


def test_settings_of_a_run_that_make_no_sense_are_refused_in_one_line(sweeps, capsys):
    run = Path("sweep/n_layer=1")
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps(TINY | {"recipe": [1], "n_layer": "\x1b[2J"}))
    assert "\x1b" not in refused(capsys, *flags(learning_rate=0.01))
    edit_json(run / "config.json", recipe="nowhere")
    refused(capsys, *flags(learning_rate=0.01, recipe=None))


def test_two_sweeps_in_one_folder_are_refused(sweeps, capsys):
    Path("sweep").mkdir()
    held = open_run(Path("sweep"))
    assert "another run is using it" in refused(capsys, *flags())
    held.close()


@pytest.mark.finished_run
def test_the_folder_of_a_run_is_no_folder_for_a_sweep(capsys):
    assert "holds a run" in refused(capsys, *flags(out_dir="out"))
    Path("file").write_text("")
    assert "expected a folder, found a file" in refused(capsys, *flags(out_dir="file"))


# -- a real sweep -------------------------------------------------------------------------------


def test_ctrl_c_stops_the_run_with_a_checkpoint_and_says_how_to_go_on(fork_server, tmp_path):
    """Signals reach all processes of the terminal's foreground group, as Ctrl-C does. A second
    signal to the run would end it without a checkpoint."""
    prepare_tiny()
    argv = flags(learning_rate=0.01, max_iters=10**6, eval_interval=10**6, lr_decay_iters=10**6,
                 checkpoint_interval=10**6, compile=False)  # fmt: skip
    sweep = fork_server.start("sweep", *argv, new_session=True)
    log = Path("sweep/n_layer=1/run.jsonl")
    wait_until(lambda: log.is_file() and b'"kind":"iter"' in log.read_bytes())
    os.killpg(sweep.pid, signal.SIGINT)
    out, error = sweep.communicate()
    assert (sweep.returncode, error) == (0, "")
    assert "SIGINT: stopping; the runs that are going on save a checkpoint" in out
    assert "  n_layer=1: stopped, val loss " in out
    assert "not finished: n_layer=1 (stopped), n_layer=2 (not started); to go on, type:" in out
    assert f"  {shlex.join(['stepglass', 'sweep', *argv])}\n" in out
    assert checkpoints.committed(Path("sweep/n_layer=1"))
    assert not Path("sweep/n_layer=2").exists()
