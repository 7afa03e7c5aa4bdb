"""The `serve` command: loads a run's best model and answers requests for text until Ctrl-C."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from stepglass.errors import ConfigError
from stepglass.hardware import choose
from stepglass.process import StopRequest
from stepglass.sample.load import Sampler, load_run
from stepglass.serve.openai_app import OpenAIApp
from stepglass.serve.serve_config import SERVE_SETTINGS, ServeConfig
from stepglass.serve.serve_config import USAGE as USAGE
from stepglass.serve.worker import TextWorker
from stepglass.units import one_line, printable
from stepglass.web import address, server
from stepglass.web.access import needs_token, warn_of_network
from stepglass.web.guard import AccessRules, Key

SETTINGS = SERVE_SETTINGS
METHODS = ("GET", "HEAD", "POST")

Say = Callable[[str], None]


def run(argv: list[str], say: Say) -> None:
    """Serve the run that a command line names."""
    words, given = SETTINGS.parse(argv)
    if len(words) > 1:
        raise ConfigError(f"expected one run directory, found {words}")
    cfg: ServeConfig = SETTINGS.build(given)
    kind, _ = choose.pick_type(cfg.device)
    run_dir = Path(words[0] if words else "out")
    loaded = load_run(run_dir, torch.device(kind), on_skip=_note)
    with StopRequest() as stop:
        serve_model(loaded, run_dir.resolve().name, cfg, say, stop.is_set)


def serve_model(
    loaded: Sampler, name: str, cfg: ServeConfig, say: Say, should_stop: Callable[[], bool]
) -> None:
    """Open the sockets, report the address, and serve until `should_stop` returns true."""
    sockets = address.listen(cfg.host, cfg.port)
    worker = TextWorker(loaded)
    try:
        port = sockets[0].getsockname()[1]
        key = Key(port) if needs_token(cfg) else None
        hosts, is_wildcard = address.names_of(cfg.host), address.is_wildcard(cfg.host)
        stopping = asyncio.Event()
        app = OpenAIApp(name, loaded, worker, stopping).starlette()
        warn_of_network(cfg.host, port, say)
        secret = f"  api_key={key.token}" if key else "  (any api_key)"
        url = f"{address.url(cfg.host, port, None)}v1"
        say(f"serving {printable(name)}: base_url={url}{secret}  (Ctrl-C ends)")
        rules = AccessRules(hosts, is_wildcard, key, METHODS)
        server.answer_calls(app, rules, sockets, stopping, should_stop)
    finally:
        for sock in sockets:
            sock.close()
        worker.close()


def _note(line: str) -> None:
    sys.stderr.write(one_line(line) + "\n")
