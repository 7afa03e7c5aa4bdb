"""Imports go one way between rooms, and the readers' side needs no torch."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import stepglass

ROOT = Path(stepglass.__file__).parent

# A room may import from those before it. The two braces never meet.
ORDER = (
    "errors units files process < json_files < settings < measure < run_dir < loggers web "
    "< {logs < explain < advise < report < watch} "
    "| {data < models < hardware < checkpoint < foreign < sample < export < serve train} "
    "< api bench sweep < cli < __main__"
)
READERS, TRAINER = (re.findall(r"\w+", brace) for brace in re.findall(r"{(.*?)}", ORDER))
LEVEL = {
    room: level
    for level, rooms in enumerate(ORDER.split("<"))
    for room in re.findall(r"\w+", rooms)
}
NEED_TORCH = {"data.dataset"}  # among the modules that can be had without the trainer


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not name.endswith("__init__"):
            found[name] = path
    return found


@cache
def import_statements(path: Path) -> list[ast.ImportFrom]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.ImportFrom)]


def imported(path: Path, known: set[str]) -> set[str]:
    names: set[str] = set()
    for node in import_statements(path):
        if node.module and node.module.startswith("stepglass"):
            base = node.module.removeprefix("stepglass").removeprefix(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".removeprefix(".")
                names.add(full if full in known else base)
    return {name for name in names if name in known}


def room_of(name: str) -> str:
    return name.partition(".")[0]


def is_allowed(importer: str, imported_room: str) -> bool:
    braces = [readers in READERS for readers in (importer, imported_room)]
    are_apart = {importer, imported_room} <= {*READERS, *TRAINER} and len(set(braces)) == 2
    return not are_apart and LEVEL[imported_room] < LEVEL[importer]


def breaches(sources: dict[str, Path]) -> list[str]:
    return [
        f"{name} imports {other}"
        for name, path in sources.items()
        for other in sorted(imported(path, set(sources)))
        if room_of(name) != room_of(other) and not is_allowed(room_of(name), room_of(other))
    ]


def cycles(sources: dict[str, Path]) -> list[str]:
    """Modules that import each other, within a room too."""
    left = {name: imported(path, set(sources)) - {name} for name, path in sources.items()}
    while free := [name for name, others in left.items() if not others & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def test_every_room_is_in_the_order():
    assert {room_of(name) for name in modules()} <= set(LEVEL)


def test_a_lower_room_may_be_imported_and_the_other_side_may_not():
    assert is_allowed("train", "measure")
    assert not is_allowed("measure", "train")
    assert not is_allowed("train", "logs")


def test_contributing_shows_the_same_order():
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    assert ORDER in " ".join(text.split())


def test_imports_go_one_way_between_rooms():
    assert breaches(modules()) == []


def test_no_modules_import_each_other():
    assert cycles(modules()) == []


@pytest.mark.parametrize(
    ("module", "imports"),
    [
        ("measure.clock", "train.loop"),
        ("explain.study", "data.dataset"),
        ("train.loop", "explain.study"),
    ],
)
def test_an_import_that_goes_the_wrong_way_is_found(module, imports, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(f"from stepglass.{imports} import x\n")
    assert breaches({**modules(), module: wrong}) == [f"{module} imports {imports}"]


def test_a_cycle_is_found(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from stepglass.measure.ledger import x\n")  # which imports the clock
    assert {"measure.clock", "measure.ledger"} <= set(cycles({**modules(), "measure.clock": wrong}))


def without_torch() -> list[str]:
    """All modules up to the readers', those that prepare data, sweeps, what a notebook calls, and
    the command line."""
    rooms = {room for room, level in LEVEL.items() if level <= LEVEL["loggers"]}
    rooms |= {*READERS, "data", "sweep", "api", "cli"}
    names = [name for name in modules() if room_of(name) in rooms]
    return sorted(set(names) - NEED_TORCH)


BLOCK_TORCH = "import sys; sys.modules['torch'] = None; "


def import_without_torch(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", BLOCK_TORCH + code], capture_output=True, text=True, check=False
    )


def test_the_readers_side_runs_without_torch():
    done = import_without_torch("; ".join(f"import stepglass.{name}" for name in without_torch()))
    assert done.returncode == 0, done.stderr


def test_the_check_above_can_fail():
    assert import_without_torch("import stepglass.hardware.device").returncode != 0


@pytest.mark.parametrize(
    "argv", ["['--help']", "['train', '--help']", "['--version']", "['train', '--x=1']"]
)
def test_help_and_usage_errors_import_nothing_heavy(argv):
    code = f"from stepglass.cli import main; main({argv}); "
    code += "heavy = {'torch', 'numpy', 'tokenizers', 'rich'} & set(sys.modules); print(heavy)"
    done = subprocess.run(
        [sys.executable, "-c", "import sys; " + code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"


# The process that reads nanoGPT's checkpoints, with limits of its own.
MAY_UNPICKLE = {"foreign.confined_reader": "torch.load"}


def test_nothing_executes_code_from_a_file():
    """No eval, exec, pickle.load or torch.load anywhere, but torch.load of weights alone in a
    process of its own: the one unpickler is barred by hand."""
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("eval", "exec", "compile", "__import__"), name
                if called in ("pickle.load", "pickle.loads", "torch.load", "marshal.loads"):
                    assert MAY_UNPICKLE.get(name) == called, name
                    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                    assert given.get("weights_only") == "True", name
