"""Starts training processes in a moment: imports once, then forks for each command.

Reads one JSON object a line: `argv`, `cwd`, and optionally `signal` with `after_s`, or with
`after_iter_s` (so long after the first iteration has been logged). Answers with how it ended.
Nothing is computed before the fork, so no thread is lost in it.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch._dynamo  # noqa: F401 - torch loads it with the first optimizer, which takes seconds

import stepglass.train.loop  # noqa: F401
from stepglass.cli import main


def child(order: dict) -> None:
    os.chdir(order["cwd"])
    out = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(out, 1)
    os.dup2(out, 2)
    code = 70
    try:
        code = main(order["argv"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def has_begun(log: Path) -> bool:
    return log.exists() and b'"kind":"iter"' in log.read_bytes()


def serve(order: dict) -> dict:
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        child(order)
    status = None
    if "signal" in order:
        if "after_iter_s" in order:
            while not has_begun(Path(order["cwd"], "out", "run.jsonl")):
                time.sleep(0.01)
        time.sleep(order.get("after_iter_s", order.get("after_s")))
        done, status = os.waitpid(pid, os.WNOHANG)
        if done == 0:
            sent = time.perf_counter()
            os.kill(pid, order["signal"])
            _, status = os.waitpid(pid, 0)
            return answer(status, start, time.perf_counter() - sent)
    else:
        _, status = os.waitpid(pid, 0)
    return answer(status, start, None)


def answer(status: int, start: float, after_signal_s: float | None) -> dict:
    return {
        "code": os.waitstatus_to_exitcode(status),
        "took_s": time.perf_counter() - start,
        "after_signal_s": after_signal_s,
    }


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(serve(json.loads(line))) + "\n")
        sys.stdout.flush()
