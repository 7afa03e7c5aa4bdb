"""Fixtures of the tests of `watch`."""

from collections.abc import Iterator

import pytest

from live_server import Live
from stepglass.watch import event_stream


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(event_stream, "POLL_S", 0.01)
    monkeypatch.setattr(event_stream, "GLANCE_S", 0.01)
    monkeypatch.setattr("stepglass.web.server.TICK_S", 0.02)
    monkeypatch.setattr("stepglass.watch.numbered_runs.LEAST_PAUSE_S", 0.0)
    monkeypatch.setattr("stepglass.watch.numbered_runs.PAUSE_SHARE", 0)


@pytest.fixture
def live() -> Iterator[Live]:
    with Live() as running:
        yield running
