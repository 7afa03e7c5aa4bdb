"""How long the run is that `advise` describes: updates, epochs, minutes; on one GPU or several."""

import re
import shlex
from pathlib import Path

import pytest
from advising import as_data, nanogpt_log, reason_of, refused, told

from stepglass.explain.render.languages import LANGUAGES
from stepglass.settings.command_line import read_command_line, resolve

GPT2 = ["--device=4090", "--recipe=gpt2"]


def read_back(name: str):
    """The settings in a file, as `train` reads it."""
    command = read_command_line([name])
    return resolve(command, command.value("recipe"), lambda _: {})


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--minutes=10"],
        ["--epochs=2"],
        ["--max_iters=700"],
        ["--max_iters=0"],
        ["--minutes=5", "--nproc=2"],
        ["--epochs=2", "--lr_schedule=trapezoid", "--cooldown_iters=60%"],
        ["long.toml", "--minutes=10"],
        ["timed.toml", "--epochs=2"],
        ["timed.toml", "--max_iters=50"],
    ],
)
def test_train_takes_the_file_of_every_length(capsys, words):
    """It had max_iters beside minutes or epochs, which train refuses."""
    Path("long.toml").write_text("max_iters = 900\n")
    Path("timed.toml").write_text("minutes = 3\n")
    for recipe in ("gpt2", "quick", "shakespeare_char"):
        told(capsys, *words, "--device=4090", f"--recipe={recipe}", "-o", "advised.toml")
        cfg = read_back("advised.toml")
        flags = dict(word.removeprefix("--").split("=") for word in words if "=" in word)
        for key in {"minutes", "epochs", "max_iters"} & set(flags):
            assert getattr(cfg, key) == float(flags[key])
        assert bool(cfg.minutes) + bool(cfg.epochs) == ("max_iters" not in flags)


def test_the_schedule_of_a_timed_file_is_a_share_of_the_run(capsys):
    """How many updates fit is known only when the run has begun."""
    told(capsys, *GPT2, "--minutes=10", "-o", "advised.toml")
    assert read_back("advised.toml").lr_decay_iters == "100%"


@pytest.mark.finished_run
@pytest.mark.parametrize(("words", "key"), [([], "minutes"), (["--epochs=3"], "epochs"),
                                            (["--max_iters=90"], "max_iters")])  # fmt: skip
def test_a_timed_run_keeps_its_minutes_or_gets_the_length_that_is_asked_for(capsys, words, key):
    """A timed run writes its updates into its log as well."""
    log = Path("out/run.jsonl")
    log.write_text(re.sub(r'("minutes": ?)0(\.0)?', r"\g<1>5.0", log.read_text()))
    told(capsys, "out", *words, "-o", "advised.toml")
    text = Path("advised.toml").read_text()
    lengths = [name for name in ("minutes", "epochs", "max_iters") if f"\n{name} = " in text]
    assert lengths == [key]
    assert read_back("advised.toml").in_iterations().lr_decay_iters > 0


def test_two_lengths_are_refused(capsys):
    assert "both set the length of the run" in refused(capsys, *GPT2, "--minutes=5", "--epochs=2")
    log = nanogpt_log(time_ms=4627, mfu=28.9, head="number of parameters: 123.59M")
    assert "both set the length" in refused(capsys, log, "--minutes=5", "--max_iters=20")


# -- expectations ---------------------------------------------------------------------------------


def test_minutes_are_the_time_and_say_how_many_updates_fit(capsys):
    """It said 600,000 updates and 882 hours for ten minutes."""
    answer = as_data(capsys, *GPT2, "--minutes=10")
    assert answer["expect"]["hours"] == pytest.approx(10 / 60, abs=0.001)
    fitting = reason_of(answer, "minutes")["text"]
    updates = int(fitting.split("About ")[1].split()[0])
    spent_ms = updates * answer["expect"]["ms_per_iter"]
    assert 0.7 * 600_000 < spent_ms < 600_000
    assert f"in {updates} updates" in reason_of(answer, "max_iters")["text"]
    assert answer["settings"]["eval_interval"] <= updates
    text = told(capsys, *GPT2, "--minutes=10")
    assert "--minutes=10 " in text
    assert f"updates  {updates}" in " ".join(text.split()).replace("updates ", "updates  ")
    assert "600000" not in text


def test_minutes_longer_than_the_data_is_worth_end_early(capsys):
    answer = as_data(capsys, "--device=h100", "--recipe=shakespeare_char_gpt2", "--minutes=6000")
    assert "The data is too small for so much time" in reason_of(answer, "minutes")["text"]
    assert answer["expect"]["hours"] < 50


def test_minutes_on_a_cpu_that_was_not_measured_leave_the_evaluations_to_train(capsys):
    answer = as_data(capsys, "--device=cpu", "--recipe=quick", "--minutes=5")
    assert answer["expect"]["hours"] == pytest.approx(5 / 60, abs=0.001)
    assert answer["settings"]["eval_interval"] == "auto"
    assert "max_iters" not in {reason["setting"] for reason in answer["reasons"]}


def test_epochs_become_updates_by_the_size_of_the_data(capsys):
    one, two = (as_data(capsys, *GPT2, f"--epochs={n}") for n in (1, 2))
    assert two["expect"]["hours"] == pytest.approx(2 * one["expect"]["hours"], rel=0.1)
    assert "that makes 18383 updates" in reason_of(one, "epochs")["text"]
    assert "1.0 passes over openwebtext" in reason_of(one, "max_iters")["text"]
    said = refused(capsys, *GPT2, "--epochs=1", "--dataset=elsewhere")
    assert "the number of tokens in elsewhere is not known" in said


def test_nanogpt_gets_minutes_and_epochs_as_updates(capsys):
    for words in (["--minutes=600"], ["--epochs=0.1"]):
        text = told(capsys, *GPT2, *words, "--for=nanogpt")
        typed = shlex.split(text.split("\n\n")[0].removeprefix("Type:").replace("\\\n", " "))
        flags = dict(word.removeprefix("--").split("=") for word in typed[2:])
        assert 0 < int(flags["max_iters"]) < 20_000
        assert flags["lr_decay_iters"] == flags["max_iters"]
        assert not {"minutes", "epochs"} & set(flags)
    assert "give --max_iters instead" in refused(
        capsys, "--device=cpu", "--recipe=quick_gpt2", "--minutes=5", "--for=nanogpt"
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("words", [["--minutes=9"], ["--epochs=2"], ["--nproc=4"]])
def test_lengths_and_processes_are_explained_in_every_language(capsys, language, words):
    text = told(capsys, *GPT2, *words, lang=language)
    assert words[0] in text
    assert "n/a" not in text


# -- several GPUs ---------------------------------------------------------------------------------


def test_several_gpus_share_an_update(capsys):
    one, four = (as_data(capsys, *GPT2, f"--nproc={n}") for n in (1, 4))
    assert four["expect"]["ms_per_iter"] == pytest.approx(one["expect"]["ms_per_iter"] / 4, rel=0.1)
    assert four["expect"]["mfu"] == pytest.approx(one["expect"]["mfu"], rel=0.1)
    assert four["settings"]["gradient_accumulation_steps"] % 4 == 0
    assert "4 GPUs share each update" in reason_of(four, "nproc")["text"]
    typed = told(capsys, *GPT2, "--nproc=4", "--for=nanogpt")
    assert "torchrun --standalone --nproc_per_node=4 train.py" in typed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device=m2", "--nproc=2"], "M2 is one device"),
        (["--device=4090", "--nproc=2", "--parallel=fsdp"], "leave --parallel out"),
        (["--device=4090", "--nproc=7", "--batch_size=4", "--gradient_accumulation_steps=5"],
         "7 processes cannot share the 20 sequences"),
    ],
)  # fmt: skip
def test_processes_that_cannot_share_are_refused(capsys, words, said):
    assert said in refused(capsys, *words)
