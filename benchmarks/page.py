"""How long the page takes to be made and to be seen, and what looking costs the training.

    python benchmarks/page.py                 # everything: some ten minutes
    python benchmarks/page.py report paint    # parts: report, paint, live, delay, cost

`cost` is measured inside one training run: the server and the browser are stopped and let go on by
turns, and the iterations of both kinds of turns are compared. `--control` leaves them stopped in
both, which shows the noise of the method itself.
"""

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import FLAGS, executable
from stepglass.measure import run_log

WINDOW = {"width": 1280, "height": 900}
TURN_S = 3.0
SETTLE_S = 2.0  # whoever was stopped first catches up, which nobody does who was not
TURNS = 90  # of each kind


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=[])
    parser.add_argument("--control", action="store_true")
    args = parser.parse_args()
    parts = args.parts or ["report", "paint", "live", "delay", "cost"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        if "report" in parts:
            report(100_000)
        if "paint" in parts:
            paint(1_000_000)
        if "live" in parts:
            live(1_000_000)
        if {"delay", "cost"} & set(parts):
            beside_a_training(parts, args.control)


def write_run(num_iters: int, folder: str) -> None:
    """A run log with noise in every number, evaluations, stalls."""
    Path(folder).mkdir()
    noise = random.Random(0)
    total: dict[str, float] = {}
    with open(Path(folder, "run.jsonl"), "wb") as file:
        config = {"max_iters": num_iters, "eval_interval": num_iters // 50}
        start = {"kind": "start", "schema": 1, "time": 1.7e9, "argv": [], "config": config}
        file.write(run_log.encode(start | {"tokens_per_iter": 768, "peak_flops": 1e11}))
        for i in range(num_iters):
            phases = {
                "data": 0.2 + 0.1 * noise.random(),
                "forward_backward": 30 + noise.random(),
                "optimizer": 9 + noise.random(),
                "log": 0.1 + 0.1 * noise.random(),
                "other": 0.05 * noise.random(),
            }
            loss = 1.5 + 3 * math.exp(-8 * i / num_iters)
            if i % (num_iters // 50) == 0:
                phases |= {"eval": 550.0 + noise.random(), "checkpoint": 14.0}
                losses = {"train_loss": loss, "val_loss": loss + 0.1, "val_se": 0.01}
                done = {"kind": "eval", "iter": i, "wall_ms": 550.0, "windows": 9}
                file.write(run_log.encode(done | losses))
            if noise.random() < 2e-4:
                phases["forward_backward"] += 400
            for name, ms in phases.items():
                total[name] = total.get(name, 0.0) + ms
            record = {
                "kind": "iter",
                "iter": i,
                "loss": loss + noise.gauss(0, 0.05),
                "lr": 1e-3 * (1 - i / num_iters),
                "grad_norm": 0.5 + 0.1 * noise.random(),
                "tokens": 768,
                "wall_ms": sum(phases.values()),
                "phases": phases,
                "mfu": 20 / phases["forward_backward"],
            }
            file.write(run_log.encode(record))
        ledger = {"wall_ms": sum(total.values()), "phases": total}
        end = {"kind": "end", "reason": "finished", "iter": num_iters, "ledger": ledger}
        file.write(run_log.encode(end))


def stepglass(*args: str) -> list[str]:
    return [sys.executable, "-m", "stepglass", *args]


def quietly(*args: str) -> None:
    subprocess.run(stepglass(*args), check=True, stdout=subprocess.DEVNULL)


def report(num_iters: int) -> None:
    write_run(num_iters, "long")
    times = []
    for _ in range(5):
        start = time.perf_counter()
        quietly("report", "long", "-o", "long.html")
        times.append(time.perf_counter() - start)
    size = Path("long.html").stat().st_size
    print(f"report of {num_iters:,} iterations: {statistics.median(times):.2f} s "
          f"({min(times):.2f} to {max(times):.2f}), {size / 1e6:.1f} MB")  # fmt: skip


def paint(num_iters: int) -> None:
    write_run(num_iters, "huge")
    quietly("report", "huge", "-o", "huge.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        rounds = [look(browser.new_page(viewport=WINDOW)) for _ in range(5)]
        browser.close()
    size = Path("huge.html").stat().st_size / 1e6
    for name in rounds[0]:
        values = [seconds[name] for seconds in rounds]
        print(
            f"{num_iters:,} iterations, {size:.1f} MB: {name} {statistics.median(values):.2f} s "
            f"({min(values):.2f} to {max(values):.2f})"
        )


def look(page: Page) -> dict[str, float]:
    """Open the page anew; seconds."""
    page.add_init_script(WATCH_FOR_CURVES)
    page.goto(Path("huge.html").resolve().as_uri())
    page.wait_for_selector("body[data-ready]")
    first = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    found = {
        "first paint after": page.evaluate(first),
        "the loss is drawn after": page.evaluate("curvesAt"),
        "everything is read after": page.evaluate("performance.now()"),
        "drawing all charts takes": page.evaluate(DRAW_ALL),
    }
    page.close()
    return {name: ms / 1000 for name, ms in found.items()}


def live(num_iters: int) -> None:
    """What a server sends and keeps of a long run, and of one three times as long."""
    for count in (num_iters, 3 * num_iters):
        write_run(count, f"live{count}")
        done = subprocess.run(
            [sys.executable, "-c", FOLLOW, f"live{count}"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        print(f"{count:,} iterations, live: {done.stdout.strip()}")


FOLLOW = """
import sys, time
from pathlib import Path
from stepglass.report.live import LiveRun

run, seen, sent, start = LiveRun(Path(sys.argv[1])), None, 0, time.perf_counter()
while True:
    is_more = run.advance()
    events = run.events(seen)
    sent += sum(len(event.data) for event in events)
    seen = events[-1].id if events else seen
    if not is_more and not events:
        break
took = time.perf_counter() - start
opened = sum(len(event.data) for event in run.events(None))
closer = time.perf_counter()
detail = len(run.detail(0, 500_000, 500_100))
closer = time.perf_counter() - closer
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmHWM" in line)
print(f"{sent / 1e6:.1f} MB sent while it is read for the first time, in {took:.0f} s; "
      f"{opened / 1e6:.1f} MB to a page that opens later; a hundred iterations in "
      f"{closer:.2f} s; at most {peak / 1000:.0f} MB of memory")
"""


# When the loss chart first has all its rows on it.
WATCH_FOR_CURVES = """
globalThis.curvesAt = null;
const look = () => {
    try {
        const isThere = view.runs[0].segments[0]?.count > 1e5 && !charts.loss.isDue;
        if (isThere) { globalThis.curvesAt = performance.now(); return; }
    } catch { /* not there yet */ }
    requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
DRAW_ALL = """(() => {
    view.zoom = [1e5, 9e5];
    const start = performance.now();
    for (const chart of view.charts) chart.draw();
    return performance.now() - start;
})()"""


# -- beside a training ----------------------------------------------------------------------------


def beside_a_training(parts: list[str], is_control: bool) -> None:
    quietly("prepare", "pystdlib")
    settings = {
        "recipe": "quick",
        "max_iters": 1_000_000,
        "eval_interval": 1_000_000,
        "checkpoint_interval": 1_000_000,
        "log_interval": 1000,
        "compile": False,
        "watch": True,
        "out_dir": "run",
    }
    flags = [f"--{name}={value}" for name, value in settings.items()]
    trainer = subprocess.Popen(
        stepglass("train", "pystdlib", *flags), stdout=subprocess.PIPE, text=True
    )
    assert trainer.stdout is not None
    try:
        line = next(line for line in trainer.stdout if line.startswith("watch: "))
        address = line.removeprefix("watch: ").strip()
        log = Path("run/run.jsonl")
        while not log.exists() or log.read_bytes().count(b'"kind":"iter"') < 50:
            time.sleep(0.2)
        with sync_playwright() as playwright:
            before = set(descendants(os.getpid()))
            browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
            page = browser.new_page(viewport=WINDOW)
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            if "delay" in parts:
                delay(page, log)
            if "cost" in parts:
                looking = [pid for pid in descendants(os.getpid()) if pid not in before]
                looking += [pid for pid in descendants(trainer.pid) if is_the_page(pid)]
                cost(looking, log, is_control)
            browser.close()
    finally:
        trainer.send_signal(signal.SIGINT)
        trainer.wait()


def descendants(parent: int) -> list[int]:
    """Every process below one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                above = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(above, []).append(int(entry.name))
        except (OSError, ValueError):
            continue
    found, waiting = [], list(children.get(parent, []))
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found


def is_the_page(pid: int) -> bool:
    """The trainer has replicas of the model as well."""
    return b"stepglass.watch.beside" in Path(f"/proc/{pid}/cmdline").read_bytes()


def delay(page: Page, log: Path) -> None:
    """From a line in the file to its point on the page."""
    delays = []
    for _ in range(30):
        there = log.read_bytes().count(b'"kind":"iter"')
        start = time.perf_counter()
        while int(page.evaluate("view.numShown")) < there:
            time.sleep(0.02)
        delays.append(time.perf_counter() - start)
        time.sleep(random.random())
    print(f"a line in the file is a point on the page after {statistics.median(delays):.2f} s, "
          f"at most {max(delays):.2f} s of {len(delays)}")  # fmt: skip


def cost(looking: list[int], log: Path, is_control: bool) -> None:
    """Iterations while server and browser run, and while they are stopped."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(2 * TURNS):
        is_on = turn % 2 == (turn // 2) % 2  # on off off on: a drift cancels
        signal_all(looking, signal.SIGCONT if is_on and not is_control else signal.SIGSTOP)
        time.sleep(SETTLE_S)
        first = log.stat().st_size
        time.sleep(TURN_S)
        with open(log, "rb") as file:
            file.seek(first)
            lines = file.read().splitlines()[1:-1]
        walls = [json.loads(line)["wall_ms"] for line in lines if b'"kind":"iter"' in line]
        rates[is_on].append(1000 * len(walls) / sum(walls))
    signal_all(looking, signal.SIGCONT)
    ratios = [on / off for on, off in zip(rates[True], rates[False], strict=True)]
    whole = statistics.mean(rates[True]) / statistics.mean(rates[False])
    error = statistics.stdev(ratios) / math.sqrt(len(ratios))
    print(
        f"training with the page open runs at {100 * whole:.2f} % of its speed without (median of "
        f"{len(ratios)} pairs {100 * statistics.median(ratios):.2f} %, standard error "
        f"{100 * error:.2f}; {statistics.mean(rates[False]):.1f} iterations a second)"
    )


def signal_all(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    main()
