"""Sampling for real use: prompts from a file, stop strings, several at once, conversations."""

import io
import json
import sys
from pathlib import Path

import pytest
import torch

from stepglass.cli import main
from stepglass.data import confined_template
from stepglass.data.chat_template import rendered
from stepglass.data.marked_text import encode_text
from stepglass.data.tokenizer import CharTokenizer
from stepglass.errors import DataError
from stepglass.models.decoding import Draw, generate
from stepglass.sample.chat import chat_ids
from stepglass.sample.completions import StopStrings
from stepglass.sample.load import load_run


def written(prompt: str, num_tokens: int) -> str:
    loaded = load_run(Path("out"), torch.device("cpu"), on_skip=print)
    ids = encode_text(prompt, loaded.tokenizer)
    return loaded.tokenizer.decode(
        list(generate(loaded.model, ids, max_new_tokens=num_tokens, draw=Draw(0)))
    )


def said(capsys, *words: str) -> str:
    capsys.readouterr()
    assert main(["sample", "out", "--temperature=0", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.finished_run
def test_a_text_ends_before_the_first_of_its_stop_strings(capsys):
    whole = written("To be", 40)
    late, early = whole[20:23], whole[8:11]
    cut = "To be" + whole[: min(whole.index(late), whole.index(early))] + "\n"
    stop = json.dumps([late, early, "never"])
    assert said(capsys, "--prompt=To be", "--max_new_tokens=40", f"--stop={stop}") == cut
    both = said(
        capsys, "--prompt=To be", "--max_new_tokens=40", f"--stop={stop}", "--num_samples=2"
    )
    assert both == f"{cut}---------------\n{cut}"
    assert main(["sample", "out", "--stop=[1]"]) == 2
    assert "--stop expects a text or a JSON list of texts" in capsys.readouterr().err


def test_what_may_become_a_stop_string_is_held_back_and_lost_by_none():
    stop = StopStrings(("abc", "bcd"))
    assert [stop.pass_on(piece) for piece in ("xa", "b", "abx", "ab")] == ["x", "", "ababx", ""]
    assert (stop.rest(), stop.is_reached) == ("ab", False)
    stop = StopStrings(("abc",))
    assert [stop.pass_on(piece) for piece in ("za", "b", "c and more")] == ["z", "", ""]
    assert (stop.rest(), stop.is_reached) == ("", True)


@pytest.mark.finished_run
def test_several_samples_are_each_what_their_seed_alone_gives(capsys):
    capsys.readouterr()
    flags = ["sample", "out", "--prompt=To be", "--max_new_tokens=30"]
    assert main([*flags, "--num_samples=20", "--seed=5"]) == 0
    together = capsys.readouterr().out.split("---------------\n")
    for number in (0, 7, 19):
        assert main([*flags, f"--seed={5 + number}"]) == 0
        assert capsys.readouterr().out == together[number]


@pytest.mark.finished_run
def test_prompts_from_a_file_become_json_lines_in_their_order(capsys):
    prompts = ["To be", "that is", "the question"] * 7
    Path("p.txt").write_text("\n".join(prompts) + "\n\n")
    out = said(capsys, "--prompts=p.txt", "--max_new_tokens=12")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"prompt": prompt, "text": written(prompt, 12)} for prompt in prompts
    ]
    Path("p.jsonl").write_text('{"prompt": "To\\nbe", "id": 7}\n"that is"\n')
    assert said(capsys, "--prompts=p.jsonl", "--out=a.jsonl", "--num_samples=2") == ""
    found = [json.loads(line)["prompt"] for line in Path("a.jsonl").read_text().splitlines()]
    assert found == ["To\nbe", "To\nbe", "that is", "that is"]


@pytest.mark.finished_run
def test_a_wrong_prompt_is_named_before_anything_is_written(capsys):
    Path("p.txt").write_text("To be\nnaïve\n")
    Path("p.jsonl").write_text('{"prompt": "To"}\n{"text": "x"}\n')
    Path("empty.txt").write_text("\n\n")
    cases = {
        ("--prompts=p.txt", "--out=x.jsonl"): "p.txt: prompt 'naïve': characters the model has",
        ("--prompts=p.jsonl",): 'p.jsonl: line 2: expected {"prompt": "..."}, found',
        ("--prompts=empty.txt",): "empty.txt: expected a prompt in each line, found none",
        ("--prompts=nothing",): "nothing: cannot be read: no such file or directory",
        ("--prompts=p.txt", "--interactive"): "--interactive and --prompts do not go together",
    }
    capsys.readouterr()
    for words, message in cases.items():
        assert main(["sample", "out", *words]) == 2
        found = capsys.readouterr()
        assert message in found.err
        assert (found.out, found.err.count("\n")) == ("", 1)
    assert not Path("x.jsonl").exists()
    Path("same.txt").write_text("To be\n")
    assert main(["sample", "out", "--prompts=same.txt", "--out=same.txt"]) == 2
    assert Path("same.txt").read_text() == "To be\n"


@pytest.mark.finished_run
def test_a_model_without_a_template_goes_on_from_all_that_was_said(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("To be\nnaïve\nthat\n/new\nthat\n"))
    out = said(capsys, "--interactive", "--max_new_tokens=9")
    first = written("To be\n", 9)
    second = written(f"To be\n{first}that\n", 9)
    assert out == f"{first}\n{second}\n{written('that' + chr(10), 9)}\n"


TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "user", "content": "again"}]


def test_a_conversation_is_written_by_the_models_template():
    assert rendered(TEMPLATE, MESSAGES, {}) == "<user>Hi\n<user>again\n<assistant>"
    codec = CharTokenizer({chr(code): code for code in range(128)})
    assert codec.decode(chat_ids(MESSAGES, codec)) == "Hi\nagain"
    codec.chat_template = TEMPLATE
    assert codec.decode(chat_ids(MESSAGES, codec)) == "<user>Hi\n<user>again\n<assistant>"


HOSTILE = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.append(1) }}",
    "{{ cycler.__init__.__globals__.os.system('touch owned') }}",
    "{% for a in range(10**9) %}x{% endfor %}",
    "{% for a in range(99999) %}{% for b in range(99999) %}xxxxxxxx{% endfor %}{% endfor %}",
    "{{ 1 / 0 }}",
    "{% if %}",
    "{{ raise_exception('no system role') }}",
    "{{ 'a' * 30000000000 }}",
    "{% set all = namespace(x='aaaaaaaa') %}"
    "{% for a in range(40) %}{% set all.x = all.x ~ all.x %}{% endfor %}",
    "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "{{ messages[0].content.encode('no such code') }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
]


@pytest.mark.parametrize("template", HOSTILE)
def test_a_template_that_means_harm_is_one_line(template, monkeypatch):
    monkeypatch.setattr(confined_template, "SECONDS", 3)
    with pytest.raises(DataError) as refused:
        rendered(template, list(MESSAGES), {})
    assert "\n" not in str(refused.value)
    assert not Path("owned").exists()
    monkeypatch.setattr(confined_template, "SECONDS", 60)
    assert rendered("{{ messages[1].content }}", MESSAGES, {}) == "again"  # as if nothing was


def test_a_template_has_the_memory_of_a_process_of_its_own():
    """Without its limit this one would take 8 GB, and this process with it."""
    template = "{% set a = 'x' * 8000000000 %}{{ a|length }}"
    with pytest.raises(DataError, match="more than 512 MB of memory"):
        rendered(template, MESSAGES, {})


@pytest.mark.finished_run
def test_a_model_with_a_template_answers_and_remembers(capsys, monkeypatch):
    loaded = load_run(Path("out"), torch.device("cpu"), on_skip=print)
    loaded.tokenizer.chat_template = "{% for m in messages %}{{ m.content }}, {% endfor %}"
    monkeypatch.setattr("stepglass.sample.command.load_run", lambda *_, **__: loaded)
    monkeypatch.setattr(sys, "stdin", io.StringIO("To be\nthat\n"))
    out = said(capsys, "--interactive", "--max_new_tokens=9")
    first = written("To be, ", 9)
    assert out == f"{first}\n{written(f'To be, {first}, that, ', 9)}\n"
