"""Every test works in an empty folder of its own; slow tests are marked here."""

import asyncio
import gc
import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
import torch
from playwright.sync_api import Browser

from browser import chromium
from helpers import trouble_with_tmpdir
from kept_runs import KeptRuns
from processes import ForkServer

# On a busy machine, making up examples is slow now and then, which says nothing about the tests.
hypothesis.settings.register_profile(
    "busy", suppress_health_check=[hypothesis.HealthCheck.too_slow], deadline=None
)
hypothesis.settings.load_profile("busy")

# What `make test FAST=1` leaves out: tests with a browser, tests with processes of their own, and
# files that try a great many cases.
SLOW_FIXTURES = {"fork_server", "browser", "no_child_is_left"}
TESTS = Path(__file__).parent
# Where there is no GPU, torch.manual_seed keeps the whole stack as text in case there will be one,
# which takes more time than many a test.
SEED = torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed
SLOW_FILES = {
    "checkpoint/test_checkpoint.py",
    "data/test_prepare.py",
    "explain/test_explain_nanogpt.py",
    "export/test_export.py",
    "files/test_hostile_files.py",
    "foreign/test_hostile_models.py",
    "foreign/test_import.py",
    "loggers/test_loggers.py",
    "models/test_chunked_loss.py",
    "models/test_modern.py",
    "report/test_live.py",
    "api/test_api.py",
    "sample/test_batch_decoding.py",
    "sample/test_sample.py",
    "sample/test_sample_in_use.py",
    "serve/test_serve.py",
    "test_docs.py",
    "test_house.py",
    "test_layers.py",
    "test_process.py",
    "test_wheel.py",
    "train/test_console.py",
    "train/test_extended_run.py",
    "train/test_learning_answers.py",
    "train/test_minutes.py",
    "train/test_no_waits.py",
    "train/test_patience.py",
    "train/test_replicas.py",
    "train/test_resume.py",
    "train/test_small_data.py",
    "train/test_terminal.py",
    "watch/test_beside.py",
    "watch/test_bounded_protocol.py",
    "watch/test_event_stream.py",
    "watch/test_guard.py",
    "watch/test_numbered_runs.py",
    "watch/test_watch_command.py",
}
# What `make test` leaves to `make test-long`: crashes at every call, kills at random moments, logs
# of a great many lines or of known truth, pages beside trainings, torch's memory tracker, its
# compiler, models in transformers, and benchmarks.
LONG_FIXTURES = {"short_patience", "transformers"}  # processes that hang; imports of seconds
LONG_FILES = {
    "bench/test_bench.py",
    "checkpoint/test_crash.py",
    "explain/test_known_truth.py",
    "logs/test_fast_reading.py",
    "logs/test_long_logs.py",
    "measure/test_memory_tracker.py",
    "run_dir/test_foreign_files.py",
    "train/test_compiled_graphs.py",
    "train/test_kill.py",
    "watch/test_live_page.py",
}


def pytest_configure() -> None:
    trouble = trouble_with_tmpdir()
    if trouble:
        pytest.exit(trouble, returncode=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.path.relative_to(TESTS) if item.path.is_relative_to(TESTS) else item.path
        fixtures = set(getattr(item, "fixturenames", ()))
        if str(place) in LONG_FILES or LONG_FIXTURES & fixtures:
            item.add_marker(pytest.mark.long)
        elif str(place) in SLOW_FILES or SLOW_FIXTURES & fixtures:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """What is imported by now stays. The garbage collector looked through it again and again, ten
    times at the end alone."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SEED(0)
    return tmp_path


@pytest.fixture(autouse=True)
def no_careful_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the MFUs of these runs, or at how the writer slows their iterations."""
    monkeypatch.setattr("stepglass.hardware.peak.measure_cpu_peak", lambda threads, dtype: 1e11)
    monkeypatch.setattr("stepglass.train.pace.LEAST_S", 0.0)
    monkeypatch.setattr("stepglass.train.pace.LEAST_TRIES", 1)
    monkeypatch.setattr("stepglass.checkpoint.background.SPREAD_S", 0.0)
    monkeypatch.setattr("stepglass.checkpoint.background.REST", 0)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test cuts the power but on a simulated disk, so a real sync would prove nothing; it takes
    milliseconds, many times in a run. A file that is not open is an error as before."""
    monkeypatch.setattr(os, "fsync", lambda file: os.fstat(file) and None)


@pytest.fixture(scope="session")
def transformers() -> ModuleType:
    module = importlib.import_module("transformers")
    module.utils.logging.disable_progress_bar()
    return module


@pytest.fixture(scope="session")
def kept_runs(tmp_path_factory: pytest.TempPathFactory) -> KeptRuns:
    return KeptRuns(tmp_path_factory.mktemp("kept"))


@pytest.fixture(autouse=True)
def finished_runs(
    request: pytest.FixtureRequest,
    kept_runs: KeptRuns,
    empty_folder: Path,
    no_careful_measuring: None,
    no_waiting_for_the_disk: None,
) -> None:
    """What a test marked with `finished_run` begins with. It is here before the test's own fixtures
    and patches, so that what one test changes cannot be in the run that another one gets."""
    for marker in request.node.iter_markers("finished_run"):
        kept_runs.copy(**marker.kwargs)
        SEED(0)


@pytest.fixture(autouse=True)
def threads_are_as_before() -> Iterator[None]:
    """A number of threads that a test leaves behind would be the next one's number of replicas."""
    before = torch.get_num_threads()
    yield
    assert torch.get_num_threads() == before


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Has torch use a number of threads, and with them replicas; as before in the end."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def one_fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def fork_server(one_fork_server: ForkServer) -> Iterator[ForkServer]:
    """Starts `stepglass` as a real process, in a moment."""
    yield one_fork_server
    one_fork_server.end_all()


@pytest.fixture(scope="session")
def one_browser() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """It takes seconds to start. Its event loop is put away while no test uses it: Python allows
    no other in this thread as long as it is there."""
    with chromium() as browser:
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)


@pytest.fixture
def browser(one_browser: tuple[Browser, asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    """A real Chromium. Every page that is opened has a context of its own: no test finds what
    another one has left."""
    browser, loop = one_browser
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)
