"""The `watch` command: finds the runs, opens a port, and serves the page until Ctrl-C."""

import asyncio
import os
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stepglass.errors import ConfigError, LogError
from stepglass.process import StopRequest
from stepglass.run_dir import checkpoints
from stepglass.run_dir.imported_model import imported_model
from stepglass.settings.schema import Settings, setting
from stepglass.units import printable
from stepglass.web import address
from stepglass.web.access import ListenConfig, needs_token, warn_of_network

NICENESS = 10  # training comes first

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class WatchConfig(ListenConfig):
    """Settings of `watch`."""

    open: bool = setting(False, "open the page in a browser")


USAGE = "usage: stepglass watch [RUN|DIR] [--key=value ...]\n"
SETTINGS = Settings(WatchConfig)


def run(argv: list[str], say: Say) -> None:
    """Serve the page that a command line asks for."""
    words, given = SETTINGS.parse(argv)
    if len(words) > 1:
        raise ConfigError(f"expected one run or folder, found {words}")
    watch(words[0] if words else ".", SETTINGS.build(given), say)


def watch(target: str, cfg: WatchConfig, say: Say) -> None:
    """Serve the page until a signal such as Ctrl-C."""
    folder, is_run = find_runs(target)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with StopRequest() as stop:

        def tell(url: str) -> None:
            name = " ".join(printable(str(folder)).splitlines())
            say(f"watching {name}: {url}  (Ctrl-C ends)")

        serve_page(folder, is_run, cfg, tell, say, stop.is_set)


def find_runs(target: str) -> tuple[Path, bool]:
    """The folder to show, and whether it is a single run (not a folder of runs)."""
    path = Path(target)
    if path.is_dir():
        is_run = any((path / name).exists() for name in ("run.jsonl", "LOCK"))
        imported = None if is_run else imported_model(path)
        if imported is not None:
            raise LogError(imported.why_no_log())
        return path, is_run or bool(checkpoints.committed(path))
    if not path.exists():
        raise LogError(f"{path}: no such file or directory; expected a run or a folder of runs")
    if path.name == "run.jsonl":
        return path.parent, True
    raise LogError(
        f"{path}: expected a run, its run.jsonl or a folder of runs, found another file; "
        f"for the page of a log: stepglass report {path}"
    )


def serve_page(
    folder: Path,
    is_run: bool,
    cfg: WatchConfig,
    tell: Say,
    say: Say,
    should_stop: Callable[[], bool],
) -> None:
    """Open the sockets, report the address, and serve until `should_stop` returns true."""
    from stepglass.report import page  # noqa: PLC0415 - not needed for --help or errors
    from stepglass.report.live import LiveRun  # noqa: PLC0415
    from stepglass.watch.numbered_runs import NumberedRuns  # noqa: PLC0415
    from stepglass.watch.page_app import PageApp  # noqa: PLC0415
    from stepglass.web import server  # noqa: PLC0415
    from stepglass.web.guard import AccessRules, Key  # noqa: PLC0415

    sockets = address.listen(cfg.host, cfg.port)
    try:
        port = sockets[0].getsockname()[1]
        key = Key(port) if needs_token(cfg) else None
        rules = AccessRules(address.names_of(cfg.host), address.is_wildcard(cfg.host), key)
        stopping = asyncio.Event()
        runs = NumberedRuns(folder, is_run)
        app = PageApp(runs, page.live_page(), page.assets(), LiveRun, stopping).starlette()
        warn_of_network(cfg.host, port, say)
        tell(address.url(cfg.host, port, key.token if key else None))
        if cfg.open:
            open_browser(address.url(cfg.host, port, key.once() if key else None), say)
        server.answer_calls(app, rules, sockets, stopping, should_stop)
    finally:
        for sock in sockets:
            sock.close()


def open_browser(url: str, say: Say) -> None:
    """Open a browser in a thread, because some browsers return only when they are closed."""

    def run() -> None:
        if not webbrowser.open(url):
            say("note: no browser was found; open the address above")

    threading.Thread(target=run, daemon=True).start()
