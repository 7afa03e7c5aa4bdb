"""The live page in a real browser, beside real trainings and servers that come and go."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page

from browser import drag, hover, ink, keep_screenshot, keep_screenshots, open_page, settle
from helpers import command, prepare_tiny, tiny_args
from processes import Forked

ITERATIONS = """(() => {
    const segment = view.runs[0].segments[0];
    return Array.from(segment.column("iter").slice(0, segment.count));
})()"""
PATIENCE_S = 60.0  # for something that takes a second or two on an idle machine


@contextmanager
def process(*args: str) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        command(*args),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.fixture
def training(fork_server) -> Callable[..., Forked]:
    """Starts a training that lasts. Its iterations take about ten milliseconds, most of which it
    rests; evaluations stand out."""

    def start(**changes) -> Forked:
        settings = {"max_iters": 1_000_000, "eval_interval": 100, "eval_iters": 50,
                    "block_size": 32, "n_embd": 64, "log_interval": 1000,
                    "compile": False}  # fmt: skip
        return fork_server.start("train", *tiny_args(**settings | changes), rest_s=0.01)

    return start


def address_of(server: "subprocess.Popen[str]") -> str:
    assert server.stdout is not None
    found = re.search(r"http://\S+", server.stdout.readline())
    assert found
    return found[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def rows(page: Page) -> int:
    return int(page.evaluate("view.numShown"))


def logged(folder: str = "out") -> int:
    return Path(folder, "run.jsonl").read_bytes().count(b'"kind":"iter"')


def health(page: Page) -> str:
    return page.locator("#health").inner_text()


def connection(page: Page) -> str:
    return page.locator("#connection").inner_text()


def catches_up(page: Page) -> None:
    """What is in the file now is on the page soon."""
    there = logged()
    until(lambda: rows(page) >= there, f"{there} rows")


def test_points_arrive_while_training_goes_on_and_after_the_server_was_killed(browser, training):
    prepare_tiny()
    port = free_port()
    trainer = training()
    until(lambda: Path("out/run.jsonl").exists() and logged() > 150, "a training")
    with (
        process("watch", "out", f"--port={port}") as server,
        open_page(browser, address_of(server), may_lose_server=True) as page,
    ):
        catches_up(page)
        assert ink(page, "loss") > 500
        before = rows(page)
        until(lambda: rows(page) > before, "more rows")
        until(lambda: "running" in health(page), "the state")
        drag(page, "time", 98, 102)  # a stall nearby would be shown instead
        assert "slow because of: evaluations" in hover(page, "time", 100)
        page.evaluate("follower.lost(follower.source)")  # a hiccup
        assert connection(page) == "live"
        assert page.evaluate("follower.found(), follower.lostTimer") is None
        server.kill()
        server.wait()
        until(lambda: connection(page).startswith("no connection"), "a loss")
        before = rows(page)
        with process("watch", "out", f"--port={port}") as second:
            address_of(second)
            catches_up(page)
            assert rows(page) > before
            until(lambda: connection(page) == "live", "a connection")
            known = page.evaluate(ITERATIONS)
            assert known == list(range(len(known)))  # nothing twice, nothing missing
            trainer.send_signal(signal.SIGINT)
            trainer.communicate()
            catches_up(page)
            until(lambda: "stopped by a signal" in health(page), "the end")
            keep_screenshot(page, "live")


def test_a_training_that_is_killed_is_seen_to_be(browser, training):
    prepare_tiny()
    trainer = training()
    until(lambda: Path("out/run.jsonl").exists() and logged() > 50, "a training")
    with process("watch", "out") as server, open_page(browser, address_of(server)) as page:
        until(lambda: "running" in health(page), "the state")
        trainer.kill()
        trainer.wait()
        until(lambda: "killed, " in health(page), "the end")
        catches_up(page)


def test_a_folder_of_runs_is_listed_and_a_new_run_appears(browser):
    for name in ("a", "<b>"):
        Path("runs", name).mkdir(parents=True)
        record = {"kind": "iter", "iter": 3, "loss": 2.0, "lr": 0.1, "grad_norm": 1.0, "tokens": 4,
                  "wall_ms": 5.0, "phases": {"data": 5.0}, "mfu": None}  # fmt: skip
        Path("runs", name, "run.jsonl").write_text(json.dumps(record) + "\n")
    with process("watch", "runs") as server, open_page(browser, address_of(server)) as page:
        names = page.locator("tbody th")
        assert names.all_inner_texts() == ["<b>", "a"]
        assert page.locator("tbody tr").first.inner_text().split("\t")[2] == "killed"
        page.get_by_role("checkbox", name="a", exact=True).check()
        Path("runs/c").mkdir()
        Path("runs/c/run.jsonl").write_text("")
        until(lambda: names.count() == 3, "the new run")
        page.get_by_role("button", name="run", exact=True).dblclick()
        assert names.all_inner_texts() == ["c", "a", "<b>"]
        page.get_by_role("button", name="loss now").click()
        assert names.all_inner_texts() == ["<b>", "a", "c"]  # what is not known comes last
        assert page.get_by_role("link", name="compare").count() == 0
        page.get_by_role("checkbox", name="<b>").check()
        keep_screenshots(page, "folder")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.get_by_role("link", name="compare 2 runs").click()
        page.wait_for_selector("body[data-ready]")
        until(lambda: rows(page) == 2, "the rows of both")
        until(lambda: "is the best run" in page.locator("#compare").inner_text(), "the winner")
        assert page.locator("#legend").inner_text().split("\n") == ["<b>", "a"]
        assert "iter 3" in hover(page, "loss", 3)
        page.get_by_role("link", name="Runs").click()
        page.wait_for_selector("tbody th")
        page.get_by_role("link", name="<b>").click()
        page.wait_for_url("**/run/*")
        page.wait_for_selector("body[data-ready]")
        until(lambda: rows(page) == 1, "its row")
        assert page.locator("h1").inner_text() == "<b>"
        assert page.locator("#axis").is_enabled()


def test_train_watch_prints_an_address_that_shows_the_run(browser, training):
    prepare_tiny()
    trainer = training(watch=True)
    assert trainer.stdout is not None
    line = next(line for line in trainer.stdout if "live page" in line or "watch: " in line)
    assert line.startswith("watch: "), line
    with open_page(browser, line.removeprefix("watch: ").strip(), may_lose_server=True) as page:
        until(lambda: rows(page) > 20, "rows")
        trainer.send_signal(signal.SIGINT)
        rest, _ = trainer.communicate()
        assert trainer.returncode == 0
        assert "stepglass watch out" in rest
        until(lambda: connection(page).startswith("ended"), "the end")
        until(lambda: "stopped by a signal" in health(page), "how it ended")


LONG = 60_000  # iterations: about twice as many as a page gets at first
SPIKE = 43_210


def loss_of(n: int) -> float:
    """Told from its neighbours': the last digits are the iteration's."""
    return 9.5 if n == SPIKE else 2 + n % 997 / 10_000 + (n % 10) / 10


def write_long_run(folder: Path) -> None:
    folder.mkdir()
    with open(folder / "run.jsonl", "w") as file:
        file.write('{"kind":"start","schema":1,"config":{"max_iters":1000000}}\n')
        for n in range(LONG):
            file.write(
                f'{{"kind":"iter","iter":{n},"loss":{loss_of(n):.4f},"lr":0.001,"grad_norm":1.5,'
                f'"tokens":32,"wall_ms":{20 + n % 7}.25,"phases":{{"data":1.0,'
                f'"forward_backward":{15 + n % 7}.25,"optimizer":4.0}},"mfu":0.5}}\n'
            )


def test_zooming_into_a_long_run_fetches_every_iteration_of_that_part(browser):
    write_long_run(Path("out"))
    with process("watch", "out") as server, open_page(browser, address_of(server)) as page:
        until(lambda: page.evaluate("view.runs[0].numPrinted") == LONG, "the whole run")
        assert rows(page) < 40_000
        thinned = page.locator("#thinned")
        until(lambda: "Zoom in to see each" in thinned.inner_text(), "the note")
        wall_s = page.evaluate("view.runs[0].segments[0].total")
        assert wall_s == pytest.approx(sum(20.25 + n % 7 for n in range(LONG)) / 1000, rel=1e-4)
        assert "9.5000" in hover(page, "loss", SPIKE)  # a single iteration in sixty thousand
        keep_screenshot(page, "live-long")
        drag(page, "loss", 20_000, 21_000)
        for _ in range(5):
            page.get_by_role("button", name="zoom in").click()
        settle(page)
        low, high = page.evaluate("view.range()")
        assert 20_000 < low < high < 21_000
        inside = range(round(low) + 1, round(high))
        known = f"""(() => {{
            const segment = view.runs[0].segments[0];
            const iters = new Set(segment.column("iter").slice(0, segment.count));
            return {list(inside)}.every((n) => iters.has(n));
        }})()"""
        until(lambda: page.evaluate(known), "every iteration")
        for n in (inside[1], inside[len(inside) // 2], inside[-2]):
            said = hover(page, "loss", n)
            assert f"iter {n} " in said
            assert f"training loss {loss_of(n):.4f}" in said
        # Fetched rows take the place of those that stood for them: the run is as long as before.
        assert page.evaluate("view.runs[0].numPrinted") == LONG
        assert page.evaluate("view.runs[0].segments[0].total") == pytest.approx(wall_s, rel=1e-4)
        keep_screenshot(page, "live-long-zoomed")
        with open("out/run.jsonl", "a") as file:
            line = Path("out/run.jsonl").read_text().splitlines()[-1]
            file.write(line.replace(f'"iter":{LONG - 1}', f'"iter":{LONG}') + "\n")
        until(lambda: page.evaluate("view.runs[0].numPrinted") == LONG + 1, "a new iteration")
        # A page that holds too much asks for the run anew, and stays where it is.
        page.evaluate("view.runs[0].isOld = true; follower.again()")
        until(lambda: page.evaluate("!view.runs[0].isOld"), "a new beginning")
        until(lambda: page.evaluate("view.runs[0].numPrinted") == LONG + 1, "the whole run again")
        assert page.evaluate("view.range()") == [low, high]
        until(lambda: page.evaluate(known), "every iteration again")
