"""The process in which chat templates run: `confined_template.py` starts it, and asks it.

A template is a program that came with somebody's model. Jinja's sandbox keeps it away from files
and from Python's insides, but not from filling the memory or from running for ever. So this process
limits its memory, and the one that asks it ends it when it takes too long.

It reads a JSON object from each line of its standard input, and writes one to its standard output:
the text, or why there is none.
"""

import contextlib
import json
import os
import signal
import sys
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

LONGEST = 1 << 22  # characters that a template may write
MEMORY = 1 << 29  # bytes, beside those of the interpreter


class RefusedError(Exception):
    """The template wrote too much, or does not want this conversation."""


def limit_memory() -> None:
    """From now on this process may take so much memory."""
    if resource is None:
        return
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@lru_cache(maxsize=4)
def program(template: str) -> Any:
    """The template, compiled."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    def refuse(reason: Any) -> None:
        raise RefusedError(f"the chat template refuses this conversation: {reason}")

    # These options and names are what templates of the transformers library are written for.
    world = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    world.globals["raise_exception"] = refuse
    world.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return world.from_string(template)


def text_of(asked: dict[str, Any]) -> str:
    """The text of a conversation. Raises anything: the template is not ours."""
    parts, length = [], 0
    for part in program(asked["template"]).generate(**asked["names"]):
        parts.append(part)
        length += len(part)
        if length > LONGEST:
            raise RefusedError(f"the chat template writes more than {LONGEST:,} characters")
    return "".join(parts)


def reply(line: str) -> dict[str, str]:
    """The text, or what is wrong with the template."""
    try:
        return {"text": text_of(json.loads(line))}
    except RefusedError as error:
        return {"error": str(error)[:300]}
    except MemoryError:
        reason = "it takes more than 512 MB of memory"
    except RecursionError:
        reason = "it is nested too deeply, or calls itself for ever"
    except Exception as error:  # noqa: BLE001 - it is somebody's program
        reason = str(error)[:200] or type(error).__name__
    return {"error": f"the model's chat template cannot be used: {reason}"}


def serve_lines() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that asks
    import jinja2.sandbox  # noqa: PLC0415

    del jinja2
    limit_memory()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(reply(line)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve_lines()
