"""The command as a person meets it: help, slips of the keyboard, going on, completion."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from helpers import prepare_tiny, records, story, train_tiny
from stepglass import cli
from stepglass.cli import COMMANDS, main
from stepglass.settings import other_names, train_help
from stepglass.settings.train import TRAIN_SETTINGS

# -- help ---------------------------------------------------------------------------------------


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("words", [(), *((name, "--help") for name in COMMANDS)])
def test_help_is_as_wide_as_the_terminal_and_not_wider(words, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = said(capsys, *words).splitlines()
    # A flag with its value is never broken, nor is a path.
    assert [line for line in lines if len(line) > width and " " in line.strip()] == []
    assert max(len(line) for line in lines) > 0.4 * min(width, 90)


def test_help_of_a_command_can_be_asked_for_in_two_ways(capsys):
    for name in COMMANDS:
        assert (
            said(capsys, "help", name) == said(capsys, name, "--help") == said(capsys, name, "-h")
        )
    assert said(capsys, "help") == said(capsys, "--help") == said(capsys)


def test_the_usage_names_every_command(capsys):
    named = re.findall(r"^  (\w+)", said(capsys, "--help"), re.M)
    assert named == list(COMMANDS)


def test_every_setting_of_train_is_in_one_group():
    grouped = [name for names in train_help.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(TRAIN_SETTINGS.names())


def test_help_of_train_shows_the_values_that_a_run_here_gets(monkeypatch, capsys):
    monkeypatch.setattr(train_help, "sees_gpu", lambda: False)
    on_cpu = said(capsys, "train", "--help")
    assert "recipe quick, which a run on a CPU gets; no GPU was seen here" in " ".join(
        on_cpu.split()
    )
    assert "--max_iters=800 " in on_cpu
    monkeypatch.setattr(train_help, "sees_gpu", lambda: True)
    on_gpu = said(capsys, "train", "--help")
    assert "recipe shakespeare_char, which a run on a GPU gets" in " ".join(on_gpu.split())
    assert "--max_iters=1800 " in on_gpu
    assert "--learning_rate=0.001 " in said(capsys, "train", "--model=gpt2", "--help")


def test_flags_beside_help_change_its_values(capsys):
    assert "--n_layer=12 " in said(capsys, "train", "--recipe=none", "--help")
    assert "--n_layer=7 " in said(capsys, "train", "--n_layer=7", "--help")
    assert "--n_layer=3 " in said(capsys, "train", "--device=cpu", "--n_layr=7", "--help")


@pytest.mark.finished_run
def test_help_about_going_on_shows_the_values_of_the_run(capsys):
    text = said(capsys, "train", "--init_from=resume", "--help")
    assert "--n_embd=16 " in text
    assert "those of the run in out" in " ".join(text.split())


# -- slips --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["trian"], "unknown command 'trian'; did you mean train?"),
        (["Sample"], "unknown command 'Sample'; did you mean sample?"),
        (["generate"], "unknown command 'generate'; did you mean sample?"),
        (["help", "trian"], "unknown command 'trian'; did you mean train?"),
        (["xyzzy"], "unknown command 'xyzzy'; expected one of prepare, train, "),
        (["train", "--lr=1"], "unknown setting --lr; did you mean learning_rate?"),
        (["train", "--context-length=8"], "--context-length; did you mean block_size?"),
        (["train", "--steps=8"], "did you mean max_iters?"),
        (["train", "--bs=8"], "did you mean batch_size?"),
        (["train", "--wd=8"], "did you mean weight_decay?"),
        (["train", "--resume"], "type stepglass resume RUN, or --init_from=resume"),
        (["train", "--config=a.py"], "type the name of the file alone"),
        (["sample", "--temp=1"], "did you mean temperature?"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(words, hint, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert hint in error
    assert error.count("\n") == 1


def test_the_names_of_other_programs_lead_to_names_of_ours():
    known = set(TRAIN_SETTINGS.names())
    for name in COMMANDS:
        settings = cli.usage_of(name)[1] if name != "train" else None
        known |= set(settings.names()) if settings else set()
    assert set(other_names.OTHER_SETTINGS.values()) <= known
    assert set(other_names.OTHER_COMMANDS.values()) <= set(COMMANDS)
    assert not set(other_names.OTHER_COMMANDS) & set(COMMANDS)


@pytest.mark.parametrize("flag", ["--version", "-V", "-v"])
def test_the_version_is_one_line(flag, capsys):
    assert re.fullmatch(r"stepglass \d+\.\d+\.\d+\n", said(capsys, flag))


# -- going on -----------------------------------------------------------------------------------


@pytest.mark.finished_run
def test_resume_goes_on_with_a_run():
    assert main(["resume", "out", "--max_iters=8"]) == 0
    assert [record["iter"] for record in story("iter")] == list(range(8))
    assert records("start")[-1]["argv"] == ["--out_dir=out", "--init_from=resume", "--max_iters=8"]
    assert main(["resume", "--max_iters=9"]) == 0  # `out`, as other commands assume


@pytest.mark.finished_run
def test_a_finished_run_says_how_to_train_it_for_longer(capsys):
    Path("out").rename("my run")
    assert main(["resume", "my run"]) == 2
    error = capsys.readouterr().err
    assert "has done 6 updates already; for more: stepglass resume 'my run' --max_iters=12" in error
    assert main(shlex.split(error.partition("for more: ")[2])[1:]) == 0


@pytest.mark.parametrize("name", ["nope", "a-file", "an-empty-folder"])
def test_where_there_is_no_run_resuming_is_one_line(name, capsys):
    Path("a-file").touch()
    Path("an-empty-folder").mkdir()
    assert main(["resume", name]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {name}: nothing to resume: expected a run directory")
    assert error.count("\n") == 1


def test_a_run_ends_with_commands_that_can_be_copied(capsys):
    prepare_tiny()
    assert train_tiny(out_dir="my run") == 0
    out = capsys.readouterr().out
    sample, report = re.findall(r"^(?:next:|     ) (stepglass .*)", out, re.M)
    assert shlex.split(sample, comments=True) == ["stepglass", "sample", "my run"]
    assert shlex.split(report, comments=True) == ["stepglass", "report", "my run"]
    assert "go on with" not in out
    assert main(["sample", "my run", "--max_new_tokens=2"]) == 0
    assert main(["report", "my run"]) == 0


# -- completion ---------------------------------------------------------------------------------

# What bash has in COMP_WORDS when a key is pressed at the end of a line: it breaks at `=` too.
ASK_BASH = """
source ./completion.bash
complete -p stepglass >&2
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
compopt() {{ :; }}
_stepglass
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(*words: str) -> list[str]:
    """What a real bash offers for a line; its last word is being typed."""
    script = ASK_BASH.format(words=shlex.join(words))
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == "complete -o bashdefault -o default -F _stepglass stepglass\n"
    return done.stdout.split()


@pytest.fixture
def bash(capsys):
    Path("completion.bash").write_text(said(capsys, "completion", "bash"))


def test_bash_completes_commands(bash):
    assert completed("stepglass", "re") == ["resume", "report"]
    assert set(completed("stepglass", "")) >= {*COMMANDS, "help", "--version"}
    assert completed("stepglass", "help", "expl") == ["explain"]
    assert completed("stepglass", "completion", "") == ["bash", "zsh", "fish"]


def test_bash_completes_flags_and_their_values(bash):
    assert completed("stepglass", "train", "--ba") == ["--batch_size=", "--backend="]
    assert completed("stepglass", "resume", "--max_i") == ["--max_iters="]
    assert completed("stepglass", "train", "--wat") == ["--watch"]
    assert completed("stepglass", "explain", "--l") == ["--lang=", "--lines"]
    assert completed("stepglass", "train", "--model", "=") == ["modern", "gpt2"]
    assert completed("stepglass", "train", "--model", "=", "g") == ["gpt2"]
    assert completed("stepglass", "train", "--model", "g") == ["gpt2"]
    assert completed("stepglass", "train", "--compile", "=", "") == ["True", "False", "auto"]
    assert "quick" in completed("stepglass", "train", "--recipe", "=")
    assert completed("stepglass", "train", "--out_dir", "=", "o") == []  # the shell completes files


def test_bash_completes_files_and_folders(bash):
    for folder in ("out-a", "data/set"):
        Path(folder).mkdir(parents=True)
    Path("out.log").touch()
    Path("story.txt").touch()
    assert completed("stepglass", "resume", "out") == ["out-a"]
    assert completed("stepglass", "explain", "out") == ["out-a", "out.log"]
    assert completed("stepglass", "train", "s") == ["shakespeare", "set", "story.txt"]
    assert completed("stepglass", "explain", "--lines", "out.") == ["out.log"]


def test_a_shell_that_is_not_known_is_one_line(capsys):
    for words in (["powershell"], [], ["bash", "zsh"]):
        assert main(["completion", *words]) == 2
        assert "completion expects bash or zsh or fish, found" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_every_flag_is_in_the_script_of_other_shells(shell, capsys):
    text = said(capsys, "completion", shell)
    dashes = "--" if shell == "zsh" else "-l "
    for name in (*TRAIN_SETTINGS.names(), "prompt", "verify", "lang"):
        assert f"{dashes}{name}" in text
