"""`stepglass explain` as it is typed: text, JSON, four languages, pipes, wrong files."""

import json
import os
import re
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from fluent.runtime import FluentBundle, FluentResource
from fluent.syntax import FluentParser, ast, visitor
from nanogpt_excerpts import EVERY_OTHER, LAST_LINES, SLOW_ITERATIONS, STALLED, V100

from helpers import prepare_tiny, train_tiny
from nanogpt_run import Run
from stepglass.cli import main
from stepglass.explain.render.languages import COUNTED, LANGUAGES, Words, catalogue
from stepglass.explain.rules import all_rules
from stepglass.logs.formats import all_formats
from stepglass.logs.formats.nanogpt import NanoGPT
from stepglass.logs.reader import Reader

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "explain.schema.json").read_text())
LOGS = {
    "slow": SLOW_ITERATIONS,
    "last": LAST_LINES,
    "v100": V100,
    "every": EVERY_OTHER,
    "stalled": STALLED,
    "run": Run(num_iters=200, val_losses=[4, 3, 3.5, 2, 2.5, 2.6]).text,
    "torchtitan": (
        "[rank0]:[titan] 2025-06-16 22:30:50,322 - root - INFO - step: 200  loss:  6.1384  "
        "memory: 49.66GiB(52.28%)  tps: 5,856  tflops: 339.16  mfu: 34.29%\n"
        "[rank0]:[titan] 2025-06-16 22:31:04,970 - root - INFO - step: 210  loss:  6.0388  "
        "memory: 49.66GiB(52.28%)  tps: 5,593  tflops: 323.92  mfu: 32.75%\n"
    ),
    "hf": "{'loss': 2.1048, 'grad_norm': 2.13, 'learning_rate': 4.99e-05, 'epoch': 0.0}\n",
}


def explained(name: str, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    Path("x.log").write_text(LOGS[name])
    assert main(["explain", "x.log", *flags]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", LOGS)
def test_json_keeps_to_its_schema(name, capsys):
    result = json.loads(explained(name, capsys, "--json"))
    jsonschema.validate(result, SCHEMA)


def test_the_schema_can_fail(capsys):
    result = json.loads(explained("last", capsys, "--json"))
    result["findings"][0]["level"] = "made-up"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(result, SCHEMA)


@pytest.mark.parametrize("name", LOGS)
def test_rules_and_numbers_are_the_same_in_every_language(name, capsys):
    first, *others = (
        json.loads(explained(name, capsys, "--json", f"--lang={lang}")) for lang in LANGUAGES
    )
    for other in others:
        for mine, its in zip(first["findings"], other["findings"], strict=True):
            assert {**mine, "title": "", "text": ""} == {**its, "title": "", "text": ""}
        assert first["segments"] == other["segments"]
        if first["findings"]:
            assert first["findings"][0]["text"] != other["findings"][0]["text"]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", LOGS)
def test_every_log_can_be_walked_through_in_every_language(name, lang, capsys):
    text = explained(name, capsys, "--lines", f"--lang={lang}")
    assert "{" not in text
    assert Words(lang).text("lines-title") in text


class Variables(visitor.Visitor):
    """The variables and variants of one message."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.variants: set[str] = set()

    def visit_VariableReference(self, node: ast.VariableReference) -> None:
        self.names.add(node.id.name)

    def visit_Variant(self, node: ast.Variant) -> None:
        key = node.key
        self.variants.add(key.name if isinstance(key, ast.Identifier) else key.value)
        self.generic_visit(node)


@cache
def messages(lang: str) -> dict[str, tuple[set[str], set[str]]]:
    resource = FluentParser().parse(catalogue(lang))
    assert not [entry for entry in resource.body if isinstance(entry, ast.Junk)], lang
    found = {}
    for entry in resource.body:
        if isinstance(entry, ast.Message):
            variables = Variables()
            variables.visit(entry)
            found[entry.id.name] = (variables.names, variables.variants)
    return found


@pytest.mark.parametrize("lang", [lang for lang in LANGUAGES if lang != "en"])
def test_a_translation_has_the_messages_and_placeholders_of_english(lang):
    assert messages(lang) == messages("en")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_rule_has_its_words(lang):
    keys = set(messages(lang))
    assert {f"rule-{rule}-{part}" for rule in all_rules.RULES for part in ("title", "text")} <= keys


def all_readers() -> list[type[Reader]]:
    return [NanoGPT, *map(all_formats.other_reader, all_formats.OTHERS)]


@pytest.mark.parametrize("reader", all_readers())
def test_every_limit_of_a_format_has_its_words(reader):
    assert {f"cannot-{limit}" for limit in reader.format.limits} <= set(messages("en"))


@cache
def fluents_own(lang: str) -> FluentBundle:
    bundle = FluentBundle([lang], use_isolating=False)
    bundle.add_resource(FluentResource(catalogue(lang)))
    return bundle


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 5, 1_234_567])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_sentence_reads_as_fluents_own_runtime_has_it(lang, count):
    words, bundle = Words(lang), fluents_own(lang)
    for key, source in words.sources().items():
        variants = [*re.findall(r"\[([a-z][\w-]*)\]", source), "another"]
        for variant in variants:
            values: dict[str, object] = dict.fromkeys(re.findall(r"\$(\w+)", source), variant)
            values |= {name: count for name in COUNTED if name in values}
            expected, errors = bundle.format_pattern(bundle.get_message(key).value, values)
            assert not errors, key
            assert words.text(key, **values) == " ".join(
                line.strip() for line in str(expected).split("\n")
            )


def test_numbers_are_written_as_the_language_writes_them():
    shown = {lang: Words(lang).number(12345.678, 2) for lang in LANGUAGES}
    assert shown["en"] == "12,345.68"
    assert shown["de"] == "12.345,68"
    assert shown["es"] == "12.345,68"
    assert shown["fr"].replace("\u202f", " ") == "12 345,68"
    assert Words("de").percent(11.09) == "11,09\u00a0%"


def test_setting_names_are_not_translated(capsys):
    for lang in LANGUAGES:
        text = explained("last", capsys, f"--lang={lang}")
        assert "eval_interval" in text
        assert "eval_iters" in text


def test_the_language_is_the_terminals(capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert "Ein Trainingsschritt dauert" in explained("last", capsys)
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "A training step takes" in explained("last", capsys)


def test_the_answer_comes_first_and_then_findings_times_and_limits(capsys):
    text = explained("last", capsys, "--lang=en")
    titles = [
        "A training step takes",
        "understood (100.0%)",
        "\n1. ",
        "Where the time went",
        "What this log cannot show",
    ]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert places[0] < len("".join(text.splitlines(keepends=True)[:3]))
    shares = re.findall(r"(\d+\.\d)%$", text.split("Where the time went")[1], re.M)
    *phases, total = [float(share) for share in shares]
    assert total == 100.0
    assert sum(phases) == pytest.approx(100, abs=0.3)


def test_lines_work_the_mfu_formula_through(capsys):
    text = explained("last", capsys, "--lines", "--lang=en")
    assert "312 TFLOP/s" in text
    assert "33.23" in text


def test_a_pipe_is_read(monkeypatch):
    done = stepglass("explain", "-", "--json", input=LAST_LINES)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["format"] == "nanogpt"


def stepglass(*words: str, input: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "stepglass", *words],
        input=input,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain"], "expected one log file"),
        (["explain", "a", "b"], "expected one log file"),
        (["explain", "none.log"], "none.log: no such file"),
        (["explain", "empty.log"], "the file is empty"),
        (["explain", "words.log"], "no line of a format I know in its 2 lines"),
        (["explain", "folder"], "no log in this folder"),
        (["explain", "x.log", "--lang=xx"], "lang"),
        (["explain", "x.log", "--device=abacus"], "not in the table of known devices"),
        (["explain", "x.log", "--follow", "--json"], "do not go together"),
        (["explain", "x.log", "--jason"], "json"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_line(words, expected, capsys):
    Path("empty.log").touch()
    Path("words.log").write_text("hello\nworld\n")
    Path("folder").mkdir()
    Path("x.log").write_text(LAST_LINES)
    assert main(words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert expected in line


def test_a_hostile_name_or_line_cannot_move_the_cursor(capsys):
    name = "x\x1b[31m.log"
    Path(name).write_text("\x1b]0;title\x07" + LAST_LINES + "Error: \x1b[2J gone\n")
    assert main(["explain", name, "--lines"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_run_directory_is_explained_by_its_log(capsys):
    prepare_tiny()
    train_tiny(max_iters=30)
    capsys.readouterr()
    assert main(["explain", "out", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["format"] == "stepglass"
    [segment] = result["segments"]
    assert segment["ledger"]["basis"] == "run-log"
    assert sum(segment["ledger"]["phases"].values()) == pytest.approx(segment["ledger"]["wall_s"])
    jsonschema.validate(result, SCHEMA)


@pytest.mark.slow
@pytest.mark.slow
def test_training_ends_with_what_stands_out(capsys):
    prepare_tiny()
    train_tiny(max_iters=60, eval_interval=2, eval_iters=20)
    said = capsys.readouterr().out
    assert "What stands out (stepglass explain out says more):" in said
    assert "--eval_interval=" in said


def test_following_a_pipe_passes_lines_through_and_adds_findings_once():
    """The writer is slow; what it wrote is there before it ends, and so is the finding."""
    run = Run(num_iters=60, losses={n: "nan" for n in range(30, 60)})
    process = subprocess.Popen(
        [sys.executable, "-m", "stepglass", "explain", "--follow", "-", "--lang=en"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    seen = b""
    try:
        for line in run.lines:
            process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        deadline = time.monotonic() + 60
        os.set_blocking(process.stdout.fileno(), False)
        while b"is NaN" not in seen and time.monotonic() < deadline:
            seen += process.stdout.read() or b""
            process.stdin.write(b"waiting\n")
            process.stdin.flush()
            time.sleep(0.05)
        assert b"is NaN" in seen, "before the pipe ends"
        os.set_blocking(process.stdout.fileno(), True)
        process.stdin.close()
        seen += process.stdout.read()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.stdout.close()
    said = seen.decode()
    passed = [line for line in said.splitlines() if line in set(run.lines)]
    assert passed == run.lines
    added = [line for line in said.splitlines() if line.startswith("| ") and "is NaN" in line]
    assert len(added) == 1


def test_explain_runs_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None; from stepglass.cli import main; "
        "sys.exit(main(['explain', 'x.log']))"
    )
    Path("x.log").write_text(LAST_LINES)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
