"""The docs say what the program does."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import fuzz_files
import stepglass
from helpers import records
from stepglass.cli import main
from stepglass.explain.render.languages import Words
from stepglass.explain.rules import all_rules
from stepglass.hardware import host_copy
from stepglass.logs import lines, table
from stepglass.logs.formats import all_formats
from stepglass.logs.formats.nanogpt import NanoGPT
from stepglass.logs.formats.run_log_reader import RunLogReader
from stepglass.measure.clock import PHASE_MEANINGS, PHASES
from stepglass.report.page import scripts

ROOT = Path(__file__).parents[1]
PACKAGE = Path(stepglass.__file__).parent
README = (ROOT / "README.md").read_text()

SHORT = ["--max_iters=2", "--eval_iters=1"]  # the flags of a hurry


def hurried(words: list[str]) -> list[str]:
    """A README command, cut short; a resumed run goes a little further."""
    if words[1] == "sample":
        return [*words, "--max_new_tokens=20"]
    if words[1] not in ("train", "resume", "sweep"):
        return words
    words = [word for word in words if not word.startswith(("--max_iters", "--minutes"))]
    is_resumed = words[1] == "resume"
    return [*words, *(["--max_iters=4"] if is_resumed else SHORT)]


def commands(text: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line and not line.startswith("#")]


def test_the_readme_names_the_two_commands_that_set_everything_up():
    assert {"make train", "make test"} <= set(commands(README))


@pytest.mark.long
def test_every_stepglass_command_in_the_readme_runs(tmp_path, fork_server):
    """In order, in one empty folder, as a reader would type them."""
    (tmp_path / "my_notes.txt").write_text("a text of one's own, with words in it\n" * 200)
    typed = [shlex.split(line) for line in commands(README) if line.startswith("stepglass ")]
    assert {words[1] for words in typed} >= {"prepare", "train", "sample"}
    for words in typed:
        done = fork_server.run(*hurried(words)[1:], cwd=tmp_path)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.parametrize("target", ["train", "test", "check", "bench"])
def test_make_knows_the_targets_the_docs_name(target):
    done = subprocess.run(
        ["make", "--dry-run", "-C", str(ROOT), target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_make_train_prepares_trains_and_samples(tmp_path):
    """The README's first command, in another folder, with this environment and in a hurry."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    script = f'#!/bin/sh\nexec "{sys.executable}" -m stepglass "$@"\n'
    (venv / "bin" / "stepglass").write_text(script)
    (venv / "bin" / "stepglass").chmod(0o755)
    (venv / ".installed").touch()
    done = subprocess.run(
        ["make", "train", f"VENV={venv}", f"TRAIN_FLAGS={' '.join(SHORT)}"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "wall clock" in done.stdout
    assert "\nROMEO:" in done.stdout


@pytest.mark.parametrize("name", ["config", "findings", "hardware"])
def test_a_generated_page_is_what_its_script_writes(name):
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    made = subprocess.run(
        [sys.executable, str(ROOT / "docs" / f"{name}_page.py")],
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert page == made.stdout, f"run: python docs/{name}_page.py > docs/{name}.md"


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def test_links_between_pages_lead_somewhere():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#]*?)(?:#([^)]*))?\)", path.read_text()):
            if target.startswith("http"):
                continue
            page = path.parent / target if target else path
            assert page.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(page), f"{path.name}: {target}#{anchor}"


def test_phases_are_explained_everywhere():
    page = (ROOT / "docs" / "clock.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == list(PHASES) == list(PHASE_MEANINGS)


@pytest.mark.finished_run
def test_records_have_the_keys_that_the_run_log_page_documents():
    page = (ROOT / "docs" / "run-log.md").read_text()
    sections = {m[1]: m[2] for m in re.finditer(r"^### `(\w+)`(.*?)(?=^##)", page, re.M | re.S)}
    assert set(sections) == {"start", "iter", "eval", "checkpoint", "event", "end"}
    for kind, text in sections.items():
        documented = set(re.findall(r"`(\w+)`", text))
        for record in records(kind):
            assert set(record) - {"kind"} <= documented, kind


def test_version_is_in_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in changelog or f"## [{stepglass.__version__}]" in changelog


def test_constraints_pin_every_dependency():
    pins = (ROOT / "constraints.txt").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    for name in re.findall(r'^    "([\w-]+)>=', project, re.M):
        assert re.search(rf"^{name.replace('-', '[-_]')}==", pins, re.M | re.I), name
    assert "torch==2.13.0\n" in pins


def test_the_readme_shows_what_explain_says_today(capsys, monkeypatch):
    blocks = re.findall(r"^```\n(iter 4980.*?|Problem: .*?)^```", README, re.M | re.S)
    sample, answer, shown = blocks
    assert shown.startswith(answer)
    Path("train.log").write_text(sample)
    monkeypatch.setenv("COLUMNS", "96")
    assert main(["explain", "train.log", "--lang=en"]) == 0
    assert capsys.readouterr().out.replace("\u00a0", " ") == shown


def test_the_readme_shows_what_advise_says_today(capsys, monkeypatch):
    shown = re.search(r"^```\n(Type:.*?)^```", README, re.M | re.S)[1]
    monkeypatch.setenv("COLUMNS", "96")
    assert main(["advise", "--device=RTX 4070", "--recipe=gpt2", "--lang=en"]) == 0
    said = capsys.readouterr().out.replace("\u00a0", " ")
    assert said.startswith(shown.removesuffix("  ...\n"))


def test_every_rule_is_in_the_docs():
    text = (ROOT / "docs" / "explain.md").read_text()
    listed = re.findall(r"^\| `([\w-]+)` \|", text.split("## Findings")[1], re.M)
    assert listed == list(all_rules.RULES)


def test_every_log_format_is_in_the_docs():
    text = (ROOT / "docs" / "explain.md").read_text()
    rows = re.findall(r"^\| (`[^|]+) \|", text.split("## Findings")[0], re.M)
    listed = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    readers = [RunLogReader, NanoGPT, *map(all_formats.other_reader, all_formats.OTHERS)]
    assert {reader.format.name for reader in readers} <= listed


# -- figures ------------------------------------------------------------------------------------


def stated(page: str, pattern: str) -> int:
    """The one number that a page states in these words."""
    text = " ".join((ROOT / page).read_text().split())
    found = re.findall(pattern, text)
    assert len(found) == 1, f"{page} should say once: {pattern}"
    return int(found[0].replace(",", ""))


@pytest.mark.parametrize(
    ("page", "pattern", "number"),
    [
        ("docs/decisions.md", r"Blocks are (\d+) MB", lines.BLOCK >> 20),
        ("docs/decisions.md", r"Beyond ([\d,]+) iterations", table.CAPACITY),
        ("docs/decisions.md", r"A state under (\d+) MB", host_copy.WORTH_A_THREAD >> 20),
        ("CHANGELOG.md", r"reports (\d+) kinds of findings", len(all_rules.NAMES)),
    ],
)
def test_a_figure_in_the_docs_is_the_one_in_the_code(page, pattern, number):
    assert stated(page, pattern) == number


def test_the_number_of_messages_is_as_the_docs_say():
    at_least = stated("docs/decisions.md", r"catalogue of more than (\d+) messages")
    assert at_least < len(Words("en").sources()) <= at_least + 100


def test_the_size_of_the_pages_script_is_as_the_docs_say():
    about = stated("docs/decisions.md", r"a script of about (\d+) kB")
    assert len(scripts()) / 1000 == pytest.approx(about, rel=0.1)


def test_a_figure_that_the_docs_no_longer_state_is_noticed():
    with pytest.raises(AssertionError, match="should say once"):
        stated("docs/decisions.md", r"Blocks are (\d+) parsecs")


def test_the_number_of_files_that_fuzzing_tries_is_as_the_docs_say():
    tried = sum(kind.count for kind in fuzz_files.KINDS.values())
    for page in ("Makefile", "CONTRIBUTING.md", "docs/bad-input.md"):
        assert stated(page, r"([\d,]{3,}) (?:more )?files") == pytest.approx(tried, rel=0.02)


# -- what CONTRIBUTING says of the code ---------------------------------------------------------

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PLACES = (PACKAGE, ROOT, ROOT / "tests")
PATH = re.compile(r"`([\w./*]+/[\w.*]*|[\w*]+\.(?:py|js|ftl|md|toml))`")


def test_every_file_that_contributing_names_is_there():
    other = r"NAME|ROOM|CODE|^artifacts/"  # placeholders, and what the tests themselves write
    named = [path for path in PATH.findall(CONTRIBUTING) if not re.search(other, path)]
    assert len(named) > 40
    for path in named:
        assert any(list(place.glob(path)) for place in PLACES), path


def test_the_lists_that_the_recipes_name_are_in_their_files():
    steps = re.findall(r"^\d\. `([\w./]+)`: [^`]*? in `(\w+)`", CONTRIBUTING, re.M)
    assert len(steps) > 8
    for path, name in steps:
        files = [place / path for place in PLACES if (place / path).is_file()]
        assert re.search(rf"\b{name}\b.* = ", files[0].read_text()), (path, name)


def test_every_room_is_in_contributing():
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    listed = re.findall(r"^\| `(\w+)/` \|", CONTRIBUTING, re.M)
    assert set(listed) == rooms
