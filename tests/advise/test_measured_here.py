"""`stepglass advise --measure`: a trial run on this machine."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import prepare_tiny
from stepglass.advise import command
from stepglass.cli import main

SMALL = ["--recipe=none", "--dataset=tiny", "--n_layer=1", "--n_head=2", "--n_embd=16",
         "--block_size=8", "--max_iters=50"]  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_the_advice_has_the_times_and_the_batch_of_a_trial_run(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    prepare_tiny()
    before = sorted(Path().rglob("*"))
    capsys.readouterr()
    assert main(["advise", "--measure", "--json", "--lang=en", *SMALL]) == 0
    said = json.loads(capsys.readouterr().out)
    basis = {reason["setting"]: reason["basis"] for reason in said["reasons"]}
    assert said["expect"]["ms_per_iter"] > 0
    assert basis["batch_size"] == "measured"
    settings = said["settings"]
    assert settings["batch_size"] * settings["gradient_accumulation_steps"] == 480
    assert sorted(Path().rglob("*")) == before


def test_the_threads_of_the_trial_are_part_of_what_to_type(capsys, monkeypatch):
    """They were chosen and measured, and then left out."""

    def on_one_thread(subject):
        return replace(subject, cfg=replace(subject.cfg, threads=1))

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(command, "measured_here", on_one_thread)
    for device in (["--device=cpu"], []):  # the device of this machine may be named
        words = ["--measure", "--recipe=quick", *device, "-o", "advised.toml", "--lang=en"]
        assert main(["advise", *words]) == 0
        first = capsys.readouterr().out.split("\n\n")[0]
        assert first.count("--threads=1") == 1
        assert "\nthreads = 1\n" in Path("advised.toml").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--device=RTX 4090"], "only this machine can be measured; leave one out"),
        (["--for=nanogpt"], "--measure and --for=nanogpt do not go together"),
        (["some.log"], "--measure: some.log has been measured already; leave one out"),
    ],
)
def test_what_cannot_be_measured_is_one_line(words, message, capsys):
    assert main(["advise", "--measure", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
