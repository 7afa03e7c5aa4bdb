"""Reads nanoGPT's config files, which consist of Python assignments, without executing them.

nanoGPT runs its config files with `exec`. The files that people share need much less: literals,
arithmetic, comparisons, names assigned earlier, and `str(time.time())` for a run name. This reader
accepts these and raises an error with the line number for anything else. A file may also assign
helper variables that are not settings. If such a variable is never used, it is treated as a
misspelt setting, and the error says so.
"""

import ast
import operator
import re
import time
import warnings
from collections.abc import Callable
from typing import Any

from stepglass.errors import ConfigError
from stepglass.settings.schema import Settings
from stepglass.units import shown

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLS: dict[str, Callable[..., Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "min": min,
    "max": max,
    "round": lambda number, *digits: round(number, *(max(-99, min(99, d)) for d in digits)),
    "time.time": time.time,
}
_MAX_MAGNITUDE = 2**63  # so that `9**9**9` cannot use up all memory
_MAX_TEXT = 10_000
_CONVERSIONS: dict[int, Callable[[Any], Any]] = {
    -1: lambda value: value,
    ord("s"): str,
    ord("r"): repr,
    ord("a"): ascii,
}


class _Refused(Exception):
    """An expression that this reader does not evaluate."""


def read_nanogpt_file(
    text: str, path: str, known: dict[str, Any], settings: Settings
) -> dict[str, tuple[Any, str]]:
    """The settings that a file assigns, each with the place of its assignment."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings would print raw lines of the file
            tree = ast.parse(text, filename=path)
    except (RecursionError, MemoryError) as error:  # raised for code that is nested too deeply
        raise ConfigError(f"{path} line 1: not valid Python: nested too deeply") from error
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ConfigError(f"{path} line {line}: not valid Python: {error}") from error
    names = dict(known)
    assigned: dict[str, tuple[Any, str]] = {}
    used: set[str] = set()
    for statement in tree.body:
        place = f"{path} line {statement.lineno}"
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue  # nothing is imported; using an imported name is an error
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue  # a docstring
        targets, expression = _assignment(statement, place)
        try:
            value = _evaluate(expression, names, used)
        except _Refused as error:
            raise ConfigError(
                f"{place}: {error}; config files are read, not run: use plain values"
            ) from None
        except (ArithmeticError, ValueError, TypeError, RecursionError) as error:
            raise ConfigError(f"{place}: {targets[0][:80]} cannot be computed: {error}") from error
        for target in targets:
            names[target] = value
            assigned[target] = (value, place)
    for name, (_, place) in assigned.items():
        if name not in settings and name not in used:
            raise ConfigError(f"{place}: unknown setting {shown(name)}; {settings.hint(name)}")
    return {name: item for name, item in assigned.items() if name in settings}


def _assignment(statement: ast.stmt, place: str) -> tuple[list[str], ast.expr]:
    """The names that a statement assigns to, and the assigned expression."""
    match statement:
        case ast.Assign(targets=targets, value=expression):
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as expression):
            targets = [target]
        case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):  # a *= 2
            targets, expression = [target], ast.BinOp(ast.Name(name), op, value)
        case _:
            raise ConfigError(
                f"{place}: expected `setting = value`, found other Python code, which is never run"
            )
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if len(names) < len(targets):
        raise ConfigError(f"{place}: expected `setting = value`, found another kind of assignment")
    return names, expression


def _evaluate(node: ast.expr, names: dict[str, Any], used: set[str]) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.Constant(value=None):
            return None
        case ast.Name(id=name):
            if name not in names:
                raise _Refused(f"{shown(name)} is not assigned before it is used")
            used.add(name)
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, names, used)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return +_evaluate(operand, names, used)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluate(operand, names, used)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _arithmetic(op, _evaluate(left, names, used), _evaluate(right, names, used))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            return _COMPARED[type(op)](_evaluate(left, names, used), _evaluate(right, names, used))
        case ast.BoolOp(op=op, values=values):
            for operand in values:  # like Python: the first operand that decides, else the last
                value = _evaluate(operand, names, used)
                if bool(value) == isinstance(op, ast.Or):
                    break
            return value
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _evaluate(body if _evaluate(test, names, used) else orelse, names, used)
        case ast.JoinedStr(values=parts):
            text = ""
            for part in parts:  # check the length after each part: together they may be gigabytes
                text = _bounded(text + _evaluate(part, names, used))
            return text
        case ast.FormattedValue(value=inner, conversion=conversion, format_spec=spec):
            layout = "" if spec is None else _evaluate(spec, names, used)
            if re.search(r"\d{4}", layout):
                raise _Refused("a text this long")
            return format(_CONVERSIONS[conversion](_evaluate(inner, names, used)), layout)
        case ast.Call(func=func, args=args, keywords=[]) if ast.unparse(func) in _CALLS:
            return _bounded(
                _CALLS[ast.unparse(func)](*[_evaluate(arg, names, used) for arg in args])
            )
    raise _Refused(f"found {ast.unparse(node)[:60]!r}")


def _arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    is_text = isinstance(left, str) or isinstance(right, str)
    if is_text and not isinstance(op, ast.Add):
        raise _Refused("text can only be joined with +")
    if isinstance(op, ast.Pow) and (abs(right) > 64 or abs(left) > 1e6):
        raise _Refused("a power this large")
    return _bounded(_BINARY[type(op)](left, right))


def _bounded(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        raise _Refused("a text this long")
    if isinstance(value, int) and abs(value) > _MAX_MAGNITUDE:
        raise _Refused("a number this large")
    return value
