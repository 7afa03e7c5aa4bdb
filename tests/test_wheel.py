"""What pip installs: the readers alone, or with all that training needs."""

import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from stepglass.errors import TRAINING_PACKAGES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()

# A finder before all others: these packages are not there, as after `pip install stepglass`.
WITHOUT = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {TRAINING_PACKAGES}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from stepglass.cli import main
sys.exit(main(sys.argv[1:]))
"""


def built(source: Path, folder: Path) -> zipfile.ZipFile:
    build = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", build, str(folder)],
        cwd=source, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return zipfile.ZipFile(folder / done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def readers(tmp_path_factory) -> zipfile.ZipFile:
    return built(ROOT / "readers", tmp_path_factory.mktemp("readers"))


def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def installed_with(wheel: zipfile.ZipFile) -> set[str]:
    wanted = map(Requirement, metadata(wheel).get_all("Requires-Dist", []))
    return {r.name for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})}


def test_the_readers_are_installed_without_torch(readers):
    assert installed_with(readers) == {
        "babel", "fluent-syntax", "numpy", "rich", "starlette", "uvicorn"
    }  # fmt: skip


def test_both_have_the_same_files_and_the_same_version(wheel, readers):
    assert modules(wheel) == modules(readers)
    assert metadata(wheel)["Version"] == metadata(readers)["Version"]


def modules(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info" not in name and "pycache" not in name}


def test_training_adds_torch_and_what_goes_with_it(wheel, readers):
    assert installed_with(wheel) - installed_with(readers) == set(TRAINING_PACKAGES)
    assert "pandas" in metadata(wheel).get_all("Provides-Extra", [])


def test_the_wheel_has_the_page_the_languages_and_the_types(wheel):
    names = set(wheel.namelist())
    for name in ("py.typed", "explain/locale/de.ftl", "report/page/charts.js", "api/__init__.py"):
        assert f"stepglass/{name}" in names


def test_the_readme_says_both_lines():
    assert "pip install stepglass " in README
    assert "pip install stepglass-readers " in README


def without_packages(*argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *argv], capture_output=True, text=True, check=False
    )


def test_a_log_is_explained_without_the_packages_for_training():
    Path("train.log").write_text(
        "".join(f"iter {n}: loss {3 - n / 100:.4f}, time 33.00ms, mfu 11.00%\n" for n in range(50))
    )
    done = without_packages("explain", "train.log")
    assert done.returncode == 0, done.stderr
    assert "A training step takes 33.00" in done.stdout.replace("\u00a0", " ")


@pytest.mark.parametrize("name", ["prepare", "train", "sample", "serve", "bench"])
def test_help_needs_none_of_them(name):
    done = without_packages(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("argv", [["train", "tiny"], ["sample", "out"], ["serve", "out"]])
def test_a_missing_package_is_one_line_that_says_what_to_type(argv):
    Path("tiny.txt").write_text("to be or not to be\n" * 200)
    done = without_packages(*argv)
    assert done.returncode == 2
    assert done.stderr == (
        "error: this needs torch, which is not installed; type: pip install stepglass\n"
    )
