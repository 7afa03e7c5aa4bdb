"""Conversations that tests share: small sums, asked and answered."""

import json
from pathlib import Path
from typing import Any

from stepglass.cli import main

# Characters that fit in a small window, with long questions and short answers.
BLOCK = 16


def conversation(number: int) -> dict[str, Any]:
    said = [
        {"role": "user", "content": f"What is {number % 10} and {number % 7}?"},
        {"role": "assistant", "content": f"It is {number % 10 + number % 7}."},
    ]
    if number % 3 == 0:
        said.insert(0, {"role": "system", "content": "Be brief and kind, and never be late."})
    if number % 4 == 0:
        said += [
            {"role": "user", "content": "Thanks!"},
            {"role": "assistant", "content": "You are welcome."},
        ]
    return {"messages": said}


def write_chats(path: str = "chats.jsonl", count: int = 60) -> Path:
    lines = (json.dumps(conversation(number)) for number in range(count))
    Path(path).write_text("\n".join(lines) + "\n")
    return Path(path)


def prepare_chats(*flags: str, name: str = "chats") -> Path:
    assert main(["prepare", str(write_chats()), f"--name={name}", *flags]) == 0
    return Path("data") / name
