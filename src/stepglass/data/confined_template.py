"""Chat templates in a process of their own, which is kept for the next one."""

import atexit
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from stepglass.errors import DataError
from stepglass.units import one_line

SECONDS = 20  # for a text that takes milliseconds


class TemplateProcess:
    """A process that writes conversations as text, one at a time. It ends with this one, or when a
    template takes too long; then the next text starts another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0  # a process that was forked must not ask its parent's

    def text_of(self, template: str, names: dict[str, Any]) -> str:
        """What the template writes. Raises DataError with the reason if it does not."""
        with self._lock:
            if self._process is None or self._process.poll() is not None or self._is_another():
                self._process = _start()
                self._owner = os.getpid()
            process = self._process
            answer = _ask(process, json.dumps({"template": template, "names": names}))
        if answer is None:
            raise DataError(
                "the model's chat template cannot be used: it takes more than "
                f"{SECONDS} seconds, or too much memory"
            )
        if "error" in answer:
            raise DataError(one_line(answer["error"]))
        return answer["text"]

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            if self._process is not None and not self._is_another():
                self._process.kill()
                with self._process:  # waits, and closes the pipes
                    self._process = None

    def _is_another(self) -> bool:
        return self._owner != os.getpid()


def _start() -> "subprocess.Popen[str]":
    own = str(Path(__file__).parents[2])  # of this Stepglass, if another is installed as well
    search = os.pathsep.join([own, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "stepglass.data.template_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": search},
    )


def _ask(process: "subprocess.Popen[str]", line: str) -> dict[str, str] | None:
    """The answer to a line; None if the process ended before it gave one."""
    assert process.stdin is not None
    assert process.stdout is not None
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
        found = process.stdout.readline()
        answer: dict[str, str] | None = json.loads(found) if found.endswith("\n") else None
    except (OSError, ValueError):
        answer = None
    finally:
        timer.cancel()
        if sys.exc_info()[0] is not None:  # as after Ctrl-C: its answer would be the next one's
            process.kill()
    if answer is None:
        process.kill()
        with process:  # waits, and closes the pipes
            pass
    return answer


PROCESS = TemplateProcess()
atexit.register(PROCESS.close)
