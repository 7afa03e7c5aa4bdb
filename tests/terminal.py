"""A real terminal for tests: a window of tmux that can be resized, typed into, and read."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CAPTURES = Path(__file__).parents[1] / "artifacts" / "terminal"
HEIGHT = 24


class TerminalWindow:
    """One window of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def tmux(self, *words: str) -> str:
        """Give tmux a command, and return what it prints."""
        line = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        environment = {name: text for name, text in os.environ.items() if name != "TMUX"}
        done = subprocess.run(
            line,
            capture_output=True,
            env=environment | {"LC_ALL": "C.UTF-8"},
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, command: list[str], width: int) -> None:
        """Run a command in a new window, which stays when the command has ended, by Ctrl-C too."""
        line = f"trap : INT; {shlex.join(command)}; echo exit code: $?; exec sleep 600"
        size = ["-x", str(width), "-y", str(HEIGHT)]
        self.tmux("new-session", "-d", *size, "-c", str(Path.cwd()), f"sh -c {shlex.quote(line)}")

    def resize(self, width: int) -> None:
        self.tmux("resize-window", "-x", str(width), "-y", str(HEIGHT))

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    def screen(self) -> list[str]:
        """The rows that are visible, without empty ones at the end."""
        return self.tmux("capture-pane", "-p").rstrip("\n").split("\n")

    def history(self) -> list[str]:
        """Every line since the start; a line that the terminal wrapped is one line again."""
        text = self.tmux("capture-pane", "-p", "-J", "-S", "-")
        return [line.rstrip() for line in text.rstrip("\n").split("\n")]


@contextmanager
def terminal_window() -> Iterator[TerminalWindow]:
    assert shutil.which("tmux"), "these tests need tmux: apt-get install tmux"
    folder = Path(tempfile.mkdtemp(prefix="sg-"))  # the path of a socket must be short
    window = TerminalWindow(folder / "tmux")
    try:
        yield window
    finally:
        window.tmux("kill-server")
        shutil.rmtree(folder)


def keep(name: str, lines: list[str]) -> None:
    """Save what a terminal showed, for a person to look at."""
    CAPTURES.mkdir(parents=True, exist_ok=True)
    (CAPTURES / f"{name}.txt").write_text("\n".join([*lines, ""]))
