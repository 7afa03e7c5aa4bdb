"""The examples in docstrings. Only modules that have one are imported."""

import doctest
import importlib
from pathlib import Path

import pytest

import stepglass

EXAMPLE = ">>> "
PACKAGE = Path(stepglass.__file__).parent
WITH_EXAMPLES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if EXAMPLE in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_hold(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert (failed, tried > 0) == (0, True)
