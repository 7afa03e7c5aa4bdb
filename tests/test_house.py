"""The rules of the house: few rooms, small modules, small functions, and one name for one thing.

Every rule is a function from sources to a list of breaches. The package is checked by it, and a
made-up source shows that it can fail.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import stepglass
from helpers import trouble_with_tmpdir

PACKAGE = Path(stepglass.__file__).parent
TESTS = Path(__file__).parent

ROOT_MODULES = 8  # with __init__ and __main__
MODULE_LINES = 350
LOOP_LINES = 149
FUNCTION_LINES = 60
PARAMETERS = 7  # self and cls are not counted

# Modules of several rooms may have these names, because they play the same part in each room.
SAME_MODULE = {
    "__init__",
    "command",  # a room's subcommand of the command line
}
# Functions that a caller finds by name in more than one module: one verb with one meaning.
SAME_FUNCTION = {
    "run",  # in every command.py: carries out the subcommand and returns the exit code
    "start",  # in every logger's module: opens the logger for a run
    # The commands of the command line, which programs call by the same names.
    "explain",
    "prepare",
    "train",
}

Sources = dict[str, str]  # a path, relative to its root, and the text
Function = ast.FunctionDef | ast.AsyncFunctionDef


def read(root: Path, *patterns: str) -> Sources:
    return {
        str(path.relative_to(root)): path.read_text()
        for pattern in patterns
        for path in sorted(root.rglob(pattern))
    }


@cache
def parsed(text: str) -> ast.Module:
    return ast.parse(text)


def python(sources: Sources) -> Iterator[tuple[str, ast.Module]]:
    for path, text in sources.items():
        if path.endswith(".py"):
            yield path, parsed(text)


def functions(sources: Sources) -> Iterator[tuple[str, Function]]:
    """All functions, also methods and those inside of others."""
    for path, tree in python(sources):
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield f"{path} {node.name}", node


def num_lines(node: Function) -> int:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return (node.end_lineno or node.lineno) - first + 1


def num_parameters(node: Function) -> int:
    found = node.args
    named = [p.arg for p in (*found.posonlyargs, *found.args, *found.kwonlyargs)]
    if named[:1] in (["self"], ["cls"]):
        named = named[1:]
    return len(named) + (found.vararg is not None) + (found.kwarg is not None)


def shared(names: dict[str, list[str]]) -> list[str]:
    """The names that stand in more than one place, with their places."""
    return [
        f"{name}: {', '.join(places)}" for name, places in sorted(names.items()) if len(places) > 1
    ]


# -- the rules ----------------------------------------------------------------------------------


def modules_in_the_root(sources: Sources) -> list[str]:
    found = [path for path in sources if "/" not in path]
    return found if len(found) > ROOT_MODULES else []


def long_modules(sources: Sources) -> list[str]:
    return [
        f"{path}: {len(text.splitlines())} lines"
        for path, text in sources.items()
        if len(text.splitlines()) > (LOOP_LINES if path == "train/loop.py" else MODULE_LINES)
    ]


def long_functions(sources: Sources) -> list[str]:
    return [
        f"{name}: {num_lines(node)} lines"
        for name, node in functions(sources)
        if num_lines(node) > FUNCTION_LINES
    ]


def many_parameters(sources: Sources) -> list[str]:
    return [
        f"{name}: {num_parameters(node)} parameters"
        for name, node in functions(sources)
        if num_parameters(node) > PARAMETERS
    ]


def modules_of_one_name(sources: Sources) -> list[str]:
    """A script of the page may have the name of the Python module that makes what it shows."""
    names = defaultdict(list)
    for path in sources:
        if Path(path).stem not in SAME_MODULE:
            names[Path(path).name].append(path)
    return shared(names)


def classes_of_one_name(sources: Sources) -> list[str]:
    names = defaultdict(list)
    for path, tree in python(sources):
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names[node.name].append(path)
    return shared(names)


def functions_of_one_name(sources: Sources) -> list[str]:
    names = defaultdict(list)
    for path, tree in python(sources):
        for node in tree.body:
            is_public = isinstance(node, Function) and not node.name.startswith("_")
            if is_public and node.name not in SAME_FUNCTION:
                names[node.name].append(path)
    return shared(names)


def imports_of_tests(sources: Sources) -> list[str]:
    found = []
    for path, tree in python(sources):
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            tests = [name for name in names if name.rpartition(".")[2].startswith("test_")]
            found += [f"{path} imports {name}" for name in tests]
    return found


# -- the house ----------------------------------------------------------------------------------

LONG = "// a line\n" * 351
PACKAGE_RULES: dict[Callable[[Sources], list[str]], Sources] = {
    modules_in_the_root: {f"module_{number}.py": "" for number in range(9)},
    long_modules: {"report/page/chart.js": LONG},
    long_functions: {"measure/clock.py": "def lap():\n" + "    x = 1\n" * 60},
    many_parameters: {"train/run.py": "class A:\n def f(self, a, b, c, d, *e, f=1, g=2, **h): ..."},
    modules_of_one_name: {"train/console.py": "", "logs/console.py": ""},
    classes_of_one_name: {"logs/log.py": "class Rows: ...", "report/rows.py": "class Rows: ..."},
    functions_of_one_name: {"units.py": "def shown(): ...", "explain/mfu.py": "def shown(): ..."},
}


def package() -> Sources:
    return read(PACKAGE, "*.py", "*.js")


@pytest.mark.parametrize("rule", PACKAGE_RULES)
def test_the_package_keeps_the_rule(rule):
    breaches = rule(package())
    assert not breaches, "\n".join(breaches)


@pytest.mark.parametrize("rule", PACKAGE_RULES)
def test_a_breach_of_the_rule_is_found(rule):
    assert rule(PACKAGE_RULES[rule]) != []


def test_the_loop_has_a_smaller_limit_of_its_own():
    assert long_modules({"train/loop.py": "x = 1\n" * 150}) == ["train/loop.py: 150 lines"]
    assert long_modules({"train/loop.py": "x = 1\n" * 149, "train/run.py": "x = 1\n" * 350}) == []
    assert "train/loop.py" in package()


def test_what_is_at_a_limit_keeps_the_rule():
    seven = "def f(a, b, c, d, e, *f, **g): ..."
    sixty = "def lap():\n" + "    x = 1\n" * 59
    assert many_parameters({"a.py": seven}) == long_functions({"a.py": sixty}) == []


def test_no_test_imports_another():
    breaches = imports_of_tests(read(TESTS, "*.py"))
    assert not breaches, "\n".join(breaches)


def test_a_temporary_folder_that_cannot_be_used_is_one_line(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    for folder in ("/proc", str(tmp_path / "file"), str(tmp_path / "nothing")):
        monkeypatch.setenv("TMPDIR", folder)
        trouble = trouble_with_tmpdir()
        assert trouble.startswith(f"error: TMPDIR={folder}: cannot be written to: ")
        assert "\n" not in trouble
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert trouble_with_tmpdir() is None


@pytest.mark.parametrize("line", ["from test_resume import losses", "import train.test_resume"])
def test_a_test_that_imports_another_is_found(line):
    assert len(imports_of_tests({"train/test_replicas.py": line})) == 1
