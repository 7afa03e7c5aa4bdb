"""Loggers beside the run log: what they are sent, and that nothing they do reaches the run."""

import inspect
import math
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from helpers import prepare_tiny, records, train_tiny
from stepglass import loggers
from stepglass.cli import main
from stepglass.errors import ConfigError, LogError
from stepglass.files import Folder
from stepglass.loggers import feed as feeding
from stepglass.loggers import start
from stepglass.loggers.feed import LoggerFeed
from stepglass.loggers.tags import ShownRows, scalars
from stepglass.loggers.tensorboard import TensorBoard
from stepglass.loggers.wandb import Wandb
from stepglass.measure import run_log
from stepglass.measure.event_details import WarmUpEvent, event_record
from stepglass.measure.records import (
    CheckpointRecord,
    EndRecord,
    EvalRecord,
    EventRecord,
    IterRecord,
    RunRecord,
    StartRecord,
)
from stepglass.measure.run_log import RunLogWriter
from stepglass.report.to_tensorboard import to_tensorboard
from stepglass.run_dir.saved_settings import saved_settings
from stepglass.settings.command_line import read_command_line, resolve
from stepglass.settings.log_to import LOGGERS

ROOT = Path(__file__).parents[2]


class Notebook:
    """A logger that keeps what it is given."""

    def __init__(self) -> None:
        self.records: list[RunRecord] = []
        self.is_closed = False

    def write(self, records: list[RunRecord]) -> None:
        self.records += records

    def close(self) -> None:
        self.is_closed = True


class Stuck(Notebook):
    """A logger that hangs until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.let_go = threading.Event(), threading.Event()

    def write(self, records: list[RunRecord]) -> None:
        self.entered.set()
        self.let_go.wait(20)
        super().write(records)


class Broken(Notebook):
    """A logger whose network is gone."""

    def write(self, records: list[RunRecord]) -> None:
        raise ConnectionResetError(104, "Connection reset by peer")


class FakeRun:
    """What `init` of wandb and trackio returns."""

    def __init__(self, service: str, asked: dict[str, Any]) -> None:
        self.service = service
        self.asked = asked
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.finished: list[Any] = []

    def log(self, values: dict[str, float], step: int) -> None:
        goes_back = bool(self.rows) and step < self.rows[-1][0]
        assert not (goes_back and self.service == "wandb"), "wandb drops a step that goes back"
        self.rows.append((step, values))

    def finish(self, exit_code: int | None = None) -> None:
        self.finished.append(exit_code)


class FakeService(ModuleType):
    """A module with `init`, as wandb and trackio have it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.runs: list[FakeRun] = []

    def init(self, **asked: Any) -> FakeRun:
        self.runs.append(FakeRun(self.__name__, asked))
        return self.runs[-1]


@pytest.fixture
def wandb(monkeypatch):
    return installed(monkeypatch, "wandb")


@pytest.fixture
def trackio(monkeypatch):
    return installed(monkeypatch, "trackio")


def installed(monkeypatch: pytest.MonkeyPatch, name: str) -> FakeService:
    service = FakeService(name)
    monkeypatch.setitem(sys.modules, name, service)
    return service


def iteration(number: int, **changes: Any) -> IterRecord:
    figures = {
        "iter": number,
        "loss": 2.0,
        "lr": 0.25,
        "grad_norm": 1.5,
        "tokens": 100,
        "wall_ms": 500.0,
        "phases": {"data": 50.0, "forward_backward": 150.0, "eval": 300.0},
        "mfu": 0.125,
    }
    return IterRecord(**(figures | changes))


def evaluation(number: int, **changes: Any) -> EvalRecord:
    figures = {
        "iter": number,
        "train_loss": 2.0,
        "val_loss": 2.5,
        "val_se": 0.01,
        "windows": 8,
        "wall_ms": 300.0,
    }
    return EvalRecord(**(figures | changes))


def checkpoint(number: int, **changes: Any) -> CheckpointRecord:
    figures = {"stall_ms": 4.0, "background_ms": 80.0, "bytes": 9, "path": "ckpt/x"}
    return CheckpointRecord(iter=number, is_best=False, **(figures | changes))


def events(folder: Path | str) -> list[Any]:
    """Every event in a folder, read by TensorBoard itself."""
    return [
        event
        for path in sorted(Path(folder).glob("events.out.tfevents.*"))
        for event in EventFileLoader(str(path)).Load()
    ]


def points(folder: Path | str, tag: str) -> list[tuple[int, float]]:
    """Step and value of every point of a curve."""
    return [
        (event.step, value.tensor.float_val[0])
        for event in events(folder)
        for value in event.summary.value
        if value.tag == tag
    ]


def logger_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("log-to-")]


# -- numbers and tags ---------------------------------------------------------------------------


def test_an_evaluation_has_nanogpts_wandb_keys():
    found = scalars(evaluation(10), iteration(9))
    assert found == {"iter": 10, "train/loss": 2.0, "val/loss": 2.5, "lr": 0.25, "mfu": 12.5}


def test_an_iteration_has_its_loss_its_speed_and_its_phases():
    assert scalars(iteration(3)) == {
        "loss": 2.0,
        "lr": 0.25,
        "grad_norm": 1.5,
        "mfu": 12.5,
        "tokens_per_s": 500.0,
        "time/wall_ms": 500.0,
        "time/step_ms": 200.0,
        "time/data_ms": 50.0,
        "time/forward_backward_ms": 150.0,
        "time/eval_ms": 300.0,
    }


def test_a_step_is_timed_by_the_devices_own_clock_where_there_is_one():
    found = scalars(iteration(3, device_phases={"forward_backward": 400.0}))
    assert (found["time/step_ms"], found["tokens_per_s"]) == (400.0, 250.0)


def test_a_checkpoint_has_what_training_waited_and_what_the_writer_took():
    assert scalars(checkpoint(5)) == {
        "checkpoint/stall_ms": 4.0,
        "checkpoint/background_ms": 80.0,
    }


@pytest.mark.parametrize("unknown", [None, math.nan, math.inf, "2.0", True, 10**400])
def test_what_is_not_a_number_is_left_out(unknown):
    found = scalars(iteration(3, loss=unknown, mfu=unknown, phases=unknown))
    assert found == {"lr": 0.25, "grad_norm": 1.5, "time/wall_ms": 500.0}


@pytest.mark.parametrize("kind", [StartRecord, EventRecord, EndRecord])
def test_other_records_have_no_numbers(kind):
    assert scalars(kind.from_dict({"iter": 1})) == {}


def test_wandb_and_trackio_get_the_printed_iterations_and_ten_a_second_at_most():
    every_third = ShownRows(log_interval=3).of([iteration(n) for n in range(7)])
    assert [step for step, _ in every_third] == [0, 3, 6]
    fast = ShownRows(log_interval=1).of([iteration(n, wall_ms=25.0) for n in range(10)])
    assert [step for step, _ in fast] == [0, 4, 8]


def test_an_evaluations_learning_rate_is_that_of_the_iteration_before_it_sent_or_not():
    rows = ShownRows(log_interval=10).of([iteration(0), iteration(1, lr=0.5), evaluation(2)])
    assert [(step, values["lr"]) for step, values in rows] == [(0, 0.25), (2, 0.5)]


# -- TensorBoard --------------------------------------------------------------------------------


def test_tensorboard_reads_every_iteration_of_a_run(tmp_path):
    prepare_tiny()
    assert train_tiny(log_to="tensorboard", log_interval=4) == 0
    losses = [(r["iter"], pytest.approx(r["loss"])) for r in records("iter")]
    assert points("out/tensorboard", "loss") == losses
    evals = [(r["iter"], pytest.approx(r["val_loss"])) for r in records("eval")]
    assert points("out/tensorboard", "val/loss") == evals
    assert [step for step, _ in points("out/tensorboard", "lr")] == list(range(6))  # one a step
    assert points("out/tensorboard", "iter") == []
    saved = [r["iter"] for r in records("checkpoint")]
    assert [step for step, _ in points("out/tensorboard", "checkpoint/stall_ms")] == saved
    assert logger_threads() == []


def test_events_have_the_time_of_day_at_which_they_happened():
    writer = TensorBoard(Path("tb"))
    writer.write(
        [
            StartRecord.from_dict({"time": 1_000_004.0}),
            event_record(0, WarmUpEvent(startup_ms=4000.0, compile_ms=None, first_batch_ms=1.0)),
            iteration(0, wall_ms=5000.0),
            evaluation(1, wall_ms=300.0),
            iteration(1, wall_ms=500.0),
            checkpoint(1),
        ]
    )
    writer.close()
    times = [(event.step, event.wall_time) for event in events("tb")[1:]]
    assert times == [(0, 1_000_005.0), (1, 1_000_005.3), (1, 1_000_005.5), (1, 1_000_005.5)]


def test_a_live_runs_events_are_of_now():
    before = time.time()
    prepare_tiny()
    train_tiny(log_to="tensorboard")
    times = [event.wall_time for event in events("out/tensorboard") if event.summary.value]
    assert times == sorted(times)
    assert before - 1 < times[0] < times[-1] < time.time() + 1


def test_a_resumed_run_writes_beside_the_first_and_goes_on_by_itself():
    prepare_tiny()
    train_tiny(log_to="tensorboard")
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=9"]) == 0
    assert len(list(Path("out/tensorboard").iterdir())) == 2
    assert [step for step, _ in points("out/tensorboard", "loss")] == list(range(9))


def test_neither_torch_nor_tensorflow_is_imported_even_if_it_is_there():
    for name in ("torch", "tensorflow"):
        Path(f"{name}.py").write_text("raise SystemExit('imported')\n")
    code = (
        "from pathlib import Path; from stepglass.loggers.tensorboard import TensorBoard; "
        "from stepglass.measure.records import CheckpointRecord; b = TensorBoard(Path('tb')); "
        "b.write([CheckpointRecord.from_dict({'iter': 7, 'stall_ms': 2.0})]); b.close()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert points("tb", "checkpoint/stall_ms") == [(7, 2.0)]


# -- a finished run, converted ------------------------------------------------------------------


def write_log(*story: RunRecord | dict[str, Any]) -> Path:
    lines = [record if isinstance(record, dict) else record.as_dict() for record in story]
    Path("run").mkdir()
    Path("run/run.jsonl").write_bytes(b"".join(map(run_log.encode, lines)))
    return Path("run")


def test_a_finished_run_is_converted_as_one_story():
    run = write_log(
        {"kind": "start", "time": 1000.0},
        *(iteration(n, loss=1.0) for n in range(4)),
        {"kind": "start", "time": 2000.0},
        {"kind": "event", "name": "resume", "iter": 2},
        *(iteration(n, loss=3.0, grad_norm=None) for n in (2, 3)),
    )
    number = to_tensorboard(run, Path("tb/run"))
    assert points("tb/run", "loss") == [(0, 1.0), (1, 1.0), (2, 3.0), (3, 3.0)]
    assert [event.wall_time for event in events("tb/run")[1:]] == [1000.5, 1001.0, 2000.5, 2001.0]
    assert number == sum(len(event.summary.value) for event in events("tb/run"))


def test_a_run_logged_live_and_converted_later_has_the_same_points():
    prepare_tiny()
    train_tiny(log_to="tensorboard")
    to_tensorboard(Path("out/run.jsonl"), Path("tb"))

    def told(folder: str) -> list[Any]:
        return [(e.step, e.wall_time, str(e.summary)) for e in events(folder) if e.summary.value]

    assert told("tb") == told("out/tensorboard")


def test_a_folder_that_has_events_is_not_mixed_with():
    run = write_log(iteration(0))
    to_tensorboard(run, Path("tb"))
    with pytest.raises(ConfigError, match="tb: has TensorBoard's events already; choose another"):
        to_tensorboard(run, Path("tb"))


@pytest.mark.parametrize(
    "story",
    [
        [],
        [{"kind": "end"}],
        [{"kind": "iter", "iter": "x"}, {"kind": "eval", "iter": 2**70}],
        [{"kind": "iter"}, {"kind": "event", "name": "resume", "iter": 3}],
    ],
)
def test_a_log_without_training_is_refused(story):
    with pytest.raises(LogError, match=r"run/run\.jsonl: expected a run log, found "):
        to_tensorboard(write_log(*story), Path("tb"))
    assert not Path("tb").exists()


def test_a_run_that_is_not_there_is_refused():
    with pytest.raises(LogError, match="nowhere: cannot be read: no such file or directory"):
        to_tensorboard(Path("nowhere"), Path("tb"))


# -- wandb and trackio --------------------------------------------------------------------------


def test_nanogpts_switch_sends_the_run_to_wandb(wandb):
    prepare_tiny()
    flags = {"wandb_log": True, "wandb_project": "plays", "wandb_run_name": "first"}
    assert train_tiny(**flags) == 0
    (run,) = wandb.runs
    assert (run.asked["project"], run.asked["name"]) == ("plays", "first")
    assert run.asked["config"]["n_layer"] == 2
    evals = [(step, values) for step, values in run.rows if "val/loss" in values]
    assert [step for step, _ in evals] == [values["iter"] for _, values in evals] == [0, 3, 6]
    assert set(evals[-1][1]) - {"mfu"} == {"iter", "train/loss", "val/loss", "lr"}
    assert run.finished == [0]
    assert logger_threads() == []


def test_a_checkpoint_that_is_written_late_does_not_take_wandb_back(wandb):
    logger = Wandb("p", "n", {}, log_interval=1)
    logger.write([iteration(4), iteration(5), checkpoint(3)])
    assert [step for step, _ in wandb.runs[0].rows] == [4, 5, 5]


@pytest.mark.parametrize(("reason", "exit_code"), [("finished", 0), ("signal", 0), ("oom", 1)])
def test_wandb_is_told_how_the_run_ended(wandb, reason, exit_code):
    logger = Wandb("p", "n", {}, log_interval=1)
    logger.write([EndRecord(reason=reason, iter=6, ledger={}, background={})])
    logger.close()
    assert wandb.runs[0].finished == [exit_code]


def test_wandb_named_twice_is_one_run(wandb):
    prepare_tiny()
    train_tiny(log_to="wandb,wandb", wandb_log=True)
    assert len(wandb.runs) == 1


def test_trackio_gets_the_same_rows_as_wandb(wandb, trackio):
    prepare_tiny()
    assert train_tiny(log_to="trackio,wandb") == 0
    values = [[values for _, values in service.runs[0].rows] for service in (wandb, trackio)]
    assert values[0] == values[1]
    assert trackio.runs[0].asked["project"] == "owt"
    assert len(trackio.runs[0].finished) == 1


def test_a_resumed_run_is_a_new_one_of_the_same_name_that_goes_on_where_it_stood(wandb):
    prepare_tiny()
    train_tiny(wandb_log=True, wandb_run_name="first")
    assert main(["train", "--out_dir=out", "--init_from=resume", "--max_iters=9"]) == 0
    before, after = wandb.runs
    assert before.asked["name"] == after.asked["name"] == "first"
    assert after.rows[0][0] == 6


# -- one logger, one module ---------------------------------------------------------------------


def test_every_logger_that_the_setting_names_is_a_module_and_the_other_way_round():
    folder = Path(loggers.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "\nPACKAGE = " in path.read_text()}
    assert modules == set(LOGGERS)


@pytest.mark.parametrize("name", LOGGERS)
def test_every_logger_has_what_a_logger_needs(name):
    module = start.logger_module(name)
    assert module.PACKAGE.name == name
    assert module.HINT
    assert list(inspect.signature(module.start).parameters) == ["run"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert name in extras["optional-dependencies"]  # what the error says to install


# -- what cannot be had -------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOGGERS)
def test_a_missing_package_is_one_line_with_what_to_type(name, monkeypatch, capsys):
    for module in [name, start.logger_module(name).PACKAGE.module]:
        monkeypatch.setitem(sys.modules, module, None)
    prepare_tiny()
    assert train_tiny(log_to=name) == 2
    assert capsys.readouterr().err == (
        f"error: logging to {name}: its package is not installed; type: "
        f"pip install 'stepglass[{name}]'\n"
    )
    assert not Path("out").exists()


def test_the_folder_that_wandb_leaves_behind_is_not_the_package(monkeypatch):
    """Python takes ./wandb, with no code in it, for a package."""
    monkeypatch.setitem(sys.modules, "wandb", ModuleType("wandb"))
    with pytest.raises(ConfigError, match=r"type: pip install 'stepglass\[wandb\]'"):
        start.check_packages(["wandb"])


def test_a_package_that_breaks_when_it_is_imported_is_named(monkeypatch):
    Path("trackio.py").write_text("import nothing_of_that_name\n")
    monkeypatch.delitem(sys.modules, "trackio", raising=False)
    monkeypatch.syspath_prepend(".")
    with pytest.raises(ConfigError, match="cannot be imported: ModuleNotFoundError: No module"):
        start.check_packages(["trackio"])


@pytest.mark.parametrize(
    ("log_to", "answer"),
    [
        ("tensorbord", "found 'tensorbord'; did you mean tensorboard?"),
        ("wandb,WandB", "found 'WandB'; did you mean wandb?"),
        ("mlflow", "found 'mlflow'"),
    ],
)
def test_an_unknown_logger_is_refused(log_to, answer, capsys):
    assert main(["train", f"--log_to={log_to}", "--recipe=none"]) == 2
    expected = "error: log_to expects tensorboard, wandb, trackio, "
    assert capsys.readouterr().err == expected + answer + "\n"


def test_a_service_that_cannot_be_started_ends_the_run_before_it_has_begun(wandb, capsys):
    def init(**asked: Any) -> FakeRun:
        raise RuntimeError("No API key configured.\nUse `wandb login`.")

    wandb.init = init
    prepare_tiny()
    assert train_tiny(log_to="tensorboard,wandb") == 2
    assert capsys.readouterr().err == (
        "error: logging to wandb: cannot be started: RuntimeError: No API key configured.; type "
        "`wandb login`, or set WANDB_MODE=offline to keep it on this machine\n"
    )
    assert logger_threads() == []


def test_watching_is_asked_for_each_time_and_loggers_stay():
    Path("out").mkdir()
    Path("out/config.json").write_text('{"watch": true, "log_to": "tensorboard"}')
    cfg = resolve(
        read_command_line(["--out_dir=out", "--init_from=resume"]), "none", saved_settings
    )
    assert (cfg.watch, cfg.log_to) == (False, "tensorboard")


# -- what goes wrong meanwhile ------------------------------------------------------------------


def test_a_logger_that_fails_is_dropped_and_the_run_goes_on(wandb, capsys):
    def log(values: dict[str, float], step: int) -> None:
        raise ConnectionResetError(104, "Connection reset by peer")

    start = wandb.init

    def init(**asked: Any) -> FakeRun:
        run = start(**asked)
        run.log = log  # type: ignore[method-assign]
        return run

    wandb.init = init
    prepare_tiny()
    assert train_tiny(log_to="wandb,tensorboard") == 0
    out = capsys.readouterr().out
    warning = (
        "warning: wandb gets no more numbers: connection reset by peer; run.jsonl has them all\n"
    )
    assert out.count(warning) == 1
    assert len(points("out/tensorboard", "loss")) == len(records("iter")) == 6


def test_a_failure_is_said_while_training_goes_on(capsys, monkeypatch):
    monkeypatch.setattr(start, "start", lambda *_, **__: [failed])
    failed = LoggerFeed("wandb", Broken())
    failed.put([iteration(0)])
    assert failed.wait(10)
    prepare_tiny()
    assert train_tiny() == 0
    out = capsys.readouterr().out
    assert out.index("warning: wandb gets no more numbers") < out.index("iter 1:")


def test_a_dropped_logger_is_closed_and_gets_nothing_more():
    logger = Broken()
    feed = LoggerFeed("broken", logger)
    feed.put([iteration(0)])
    assert feed.wait(10)
    feed.put([iteration(1)])
    assert logger.is_closed
    assert feed.failure == "connection reset by peer"


def test_a_logger_that_hangs_holds_up_neither_the_run_log_nor_a_checkpoints_flush():
    stuck, notebook = Stuck(), Notebook()
    feeds = [LoggerFeed("stuck", stuck), LoggerFeed("notebook", notebook)]
    log = RunLogWriter(Folder.open(Path()))
    for feed in feeds:
        log.follow(feed.put)
    log.write(iteration(0))
    log.flush()
    assert stuck.entered.wait(10)
    log.write(iteration(1))
    log.mark()
    log.flush()
    assert [r["iter"] for r in run_log.read_records(Path("run.jsonl"))] == [0, 1]
    stuck.let_go.set()
    log.close()
    feeding.close_feeds(feeds, lambda line: None)
    assert [r.iter for r in stuck.records] == [r.iter for r in notebook.records] == [0, 1]


def test_the_end_of_a_run_waits_for_a_slow_logger_but_not_for_ever():
    stuck = Stuck()
    feed = LoggerFeed("stuck", stuck)
    feed.put([iteration(0)])
    said: list[str] = []
    feeding.close_feeds([feed], said.append, timeout_s=0.05)
    assert said == ["waiting for stuck to take what is left: 0.05 s at most"]
    assert feed.failure == "it was not done 0.05 s after the run"
    stuck.let_go.set()
    assert feed.wait(10)


def test_a_logger_too_far_behind_is_dropped(monkeypatch):
    monkeypatch.setattr(feeding, "MAX_BEHIND", 10)
    stuck = Stuck()
    feed = LoggerFeed("stuck", stuck)
    feed.put([iteration(0)])
    assert stuck.entered.wait(10)
    for _ in range(4):
        feed.put([iteration(1)] * 6)
    assert feed.failure == "it is 12 records behind"
    stuck.let_go.set()
    assert feed.wait(10)
    assert stuck.is_closed


def test_loggers_get_the_records_that_a_full_disk_refuses():
    log, notebook = RunLogWriter(Folder.open(Path())), Notebook()
    feed = LoggerFeed("notebook", notebook)
    log.follow(feed.put)
    Path("run.jsonl").mkdir()
    log.write(iteration(0))
    log.close()
    feeding.close_feeds([feed], lambda line: None)
    assert log.failure == "run.jsonl: is a directory"
    assert [r.iter for r in notebook.records] == [0]


def test_a_second_run_in_the_same_folder_does_not_mix_its_curves_with_the_first():
    prepare_tiny()
    train_tiny(log_to="tensorboard")
    train_tiny(log_to="tensorboard")
    assert [step for step, _ in points("out/tensorboard", "loss")] == list(range(6))
    assert len(points("out/earlier-1/tensorboard", "loss")) == 6


@pytest.mark.finished_run
def test_report_writes_a_run_for_tensorboard(capsys):
    assert main(["report", "--to=tensorboard", "out"]) == 0
    assert "tensorboard --logdir=out/tensorboard" in capsys.readouterr().out
    assert [step for step, _ in points("out/tensorboard", "loss")] == list(range(6))
    assert main(["report", "--to=tensorboard", "out"]) == 2
    assert "has TensorBoard's events already" in capsys.readouterr().err
