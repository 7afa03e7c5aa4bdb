"""The table of `stepglass runs`: as wide as the terminal, with the columns that fit.

A name is never cut, because it is what you type next: if it leaves no room for the rest, it gets a
line of its own. The settings that differ are beside a run if there is room, else below it.
"""

import textwrap
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len

from stepglass import units
from stepglass.run_dir.run_facts import RunFacts

GAP = 2
SETTINGS_ROOM = 24  # the least width of the settings beside a run
SETTINGS_LINES = 3  # for each run
MOST_VALUE = 40  # characters of a setting's value, or of a data set's name
HEADINGS = {
    "run": "run",
    "dataset": "data",
    "parameters": "params",
    "started": "started",
    "iterations": "iters",
    "best_val_loss": "val loss",
    "bits_per_byte": "bits/byte",
    "state": "state",
}
TO_THE_RIGHT = ("parameters", "iterations", "best_val_loss", "bits_per_byte")
DROPPED = ("started", "dataset", "parameters", "iterations", "bits_per_byte")  # first to last


@dataclass(frozen=True)
class TableLayout:
    """What fits: the columns, whether a name has a line of its own, and the room for settings
    beside a run (0: they are below it)."""

    columns: list[str]
    has_name_lines: bool
    settings_room: int


def table_lines(runs: list[RunFacts], differing: list[str], width: int) -> list[str]:
    """The lines of the table, none of them wider than `width` unless a run's name is."""
    rows = [_cells(run) for run in runs]
    widths = {
        name: max(cell_len(text) for text in (heading, *(row[name] for row in rows)))
        for name, heading in HEADINGS.items()
    }
    layout = _layout(widths, width, bool(differing))
    lines = [_row(HEADINGS, widths, layout)]
    if layout.settings_room:
        lines[0] += " " * GAP + "settings that differ"
    for run, row in zip(runs, rows, strict=True):
        line = _row(row, widths, layout)
        settings = _settings_of(run, differing)
        if layout.has_name_lines:
            lines.append(row["run"])
        if layout.settings_room:
            beside = " " * (cell_len(line) + GAP)
            wrapped = _wrapped(settings, layout.settings_room) or [""]
            lines.append(line + " " * GAP + wrapped[0])
            lines += [beside + text for text in wrapped[1:]]
        else:
            lines.append(line)
            lines += ["    " + text for text in _wrapped(settings, width - 4)]
    left_out = [HEADINGS[name] for name in HEADINGS if name not in layout.columns]
    left_out = [name for name in left_out if name != "run"]
    if left_out:
        note = f"no room for: {', '.join(left_out)}; --json has them"
        lines += textwrap.wrap(note, width, subsequent_indent="  ")
    return [line.rstrip() for line in lines]


def _layout(widths: dict[str, int], width: int, has_settings: bool) -> TableLayout:
    def needed(columns: list[str]) -> int:
        return sum(widths[name] + GAP for name in columns) - GAP

    every = list(HEADINGS)
    room = width - needed(every) - GAP
    if has_settings and room >= SETTINGS_ROOM:
        return TableLayout(every, False, room)
    for drop in range(3):  # a name beside its figures is worth the first two columns
        columns = [name for name in every if name not in DROPPED[:drop]]
        if needed(columns) <= width:
            return TableLayout(columns, False, 0)
    columns = [name for name in every if name != "run"]
    for name in DROPPED:
        if needed(columns) + GAP > width:
            columns.remove(name)
    return TableLayout(columns, True, 0)


def _row(cells: dict[str, str], widths: dict[str, int], layout: TableLayout) -> str:
    parts = []
    for name in layout.columns:
        blank = " " * (widths[name] - cell_len(cells[name]))
        parts.append(blank + cells[name] if name in TO_THE_RIGHT else cells[name] + blank)
    return " " * (GAP if layout.has_name_lines else 0) + (" " * GAP).join(parts)


def _cells(run: RunFacts) -> dict[str, str]:
    done, planned = (_number(n) for n in (run.iterations, run.planned_iterations))
    return {
        "run": units.one_line(str(run.path)),
        "dataset": units.UNKNOWN if run.dataset is None else _short(run.dataset),
        "parameters": units.compact(run.parameters),
        "started": started_shown(run),
        "iterations": f"{done}/{planned}",
        "best_val_loss": units.loss(run.best_val_loss),
        "bits_per_byte": units.loss(run.bits_per_byte),
        "state": run.state_shown,
    }


def started_shown(run: RunFacts) -> str:
    """When the run began, in local time."""
    try:
        if run.started is not None:
            return f"{run.started.astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):  # a year that local time cannot show
        pass
    return units.UNKNOWN


def _number(value: int | None) -> str:
    return units.UNKNOWN if value is None else str(value)


def _settings_of(run: RunFacts, differing: list[str]) -> str:
    if not run.settings:
        return ""
    return " ".join(f"{key}={_value(run.settings.get(key))}" for key in differing)


def _value(value: Any) -> str:
    if value is None:
        return units.UNKNOWN
    return _short(value if isinstance(value, str) else units.shown(value))


def _short(text: str) -> str:
    text = units.one_line(text[: MOST_VALUE + 1])
    return text if len(text) <= MOST_VALUE else text[: MOST_VALUE - 3] + "..."


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        break_on_hyphens=False,
        max_lines=SETTINGS_LINES,
        placeholder=" ... (--json has all)",
    )
