"""What the tests of `advise` share: to ask it, and logs to ask it about."""

import json
from pathlib import Path

from stepglass.advise.advice import advise
from stepglass.advise.case import Case
from stepglass.advise.subject import from_settings
from stepglass.advise.target import of_known
from stepglass.cli import main
from stepglass.measure.devices import device_named
from stepglass.settings.command_line import read_command_line


def told(capsys, *words: str, lang: str = "en") -> str:
    assert main(["advise", *words, f"--lang={lang}"]) == 0, capsys.readouterr().err
    return capsys.readouterr().out.replace("\u00a0", " ")


def as_data(capsys, *words: str) -> dict:
    return json.loads(told(capsys, *words, "--json"))


def refused(capsys, *words: str) -> str:
    assert main(["advise", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert len(err) < 400
    return err


def reason_of(answer: dict, setting: str) -> dict:
    return next(each for each in answer["reasons"] if each["setting"] == setting)


def advice_for(name: str, *words: str):
    where = of_known(device_named(name))
    return advise(Case(from_settings(read_command_line(list(words)), where, []), where))


def nanogpt_log(*settings: str, time_ms: float, mfu: float, head: str = "") -> str:
    lines = [f"Overriding: {setting}" for setting in settings]
    lines += [line for line in head.split("\n") if line]
    lines += [
        f"iter {n}: loss {9 - n / 100:.4f}, time {time_ms + n % 7 / 10:.2f}ms, mfu {mfu:.2f}%"
        for n in range(0, 600, 10)
    ]
    Path("train.log").write_text("\n".join(lines) + "\n")
    return "train.log"


GPT2_HEAD = "tokens per iteration will be: 491,520\nnumber of parameters: 123.59M"
