"""The ledger: a table of the time per phase that adds up to the wall-clock time."""

import re
from dataclasses import dataclass

from stepglass import units
from stepglass.measure.clock import PHASE_MEANINGS, PHASES, STEP_PHASES, Lap
from stepglass.measure.pace_maker import PaceMaker, pace_maker
from stepglass.measure.records import Background, LedgerTotals


@dataclass(frozen=True)
class LedgerRow:
    """One phase of the ledger."""

    phase: str
    ms: float
    share: float


def ledger_rows(total: Lap) -> list[LedgerRow]:
    """Every phase in a fixed order, including those that took no time."""
    wall_ns = max(total.wall_ns, 1)
    spent = [(name, total.phases.get(name, 0)) for name in PHASES]
    return [LedgerRow(name, ns / 1e6, ns / wall_ns) for name, ns in spent]


def ledger_totals(total: Lap) -> LedgerTotals:
    """The ledger as it is written to the run log."""
    phases = {row.phase: row.ms for row in ledger_rows(total)}
    return LedgerTotals(
        wall_ms=total.wall_ms,
        phases=phases,
        device_phases=total.device_phases,
        device_behind=total.behind,
    )


# -- as text, and the patterns that read it back -------------------------------------------------

HEADING = "where the time went:"
WALL_CLOCK = "wall clock"
DIFFERS = 0.01  # of the wall clock
PACE_TEXTS: dict[PaceMaker, str] = {
    "gpu": "the GPU sets the pace: it had work queued most of the time",
    "python": "Python sets the pace: the GPU waits for kernels to be started",
    "data": "the data sets the pace: the GPU waits for batches",
}
# The phases whose names are shown in other words: a warm-up is something that learning rates have.
SHOWN_AS = {"warmup": "start-up"}
CALLED = {shown: phase for phase, shown in SHOWN_AS.items()}
ROW = re.compile(
    rf"(?P<phase>{'|'.join((*CALLED, *PHASES))}|{WALL_CLOCK})\s+"
    rf"(?P<s>[\d,]{{1,20}}\.\d\d)s\s+[\d.]+%(?:\s|$)"
)


def shown_phase(phase: str) -> str:
    """The name of a phase for a person to read; the run log keeps its own.

    >>> shown_phase("warmup"), shown_phase("eval")
    ('start-up', 'eval')
    """
    return SHOWN_AS.get(phase, phase)


def phase_called(shown: str) -> str:
    """The phase of a row of the table. The first versions showed the run log's names.

    >>> phase_called("start-up"), phase_called("warmup")
    ('warmup', 'warmup')
    """
    return CALLED.get(shown, shown)


def ledger_lines(total: Lap, background: Background) -> list[str]:
    """A heading, the phases, the wall-clock time that they add up to, and the background work."""
    rows = [row for row in ledger_rows(total) if row.ms > 0 or row.phase == "other"]
    return [
        HEADING,
        *(
            f"{_row_text(shown_phase(row.phase), row.ms, row.share)}   {PHASE_MEANINGS[row.phase]}"
            for row in rows
        ),
        "  " + "-" * 37,
        _row_text(WALL_CLOCK, total.wall_ms, 1),
        *_device_lines(total),
        *_background_lines(background),
    ]


def _row_text(name: str, ms: float, share: float) -> str:
    return f"  {name:<17}{units.seconds(ms):>12}{units.percent(share, 1):>8}"


def _device_lines(total: Lap) -> list[str]:
    """The device's own times of the step, where they differ from the host's, and what sets the
    pace. The host's times say when it queued work, and where it waited for a full queue."""
    on_device = total.device_phases or {}
    differing = {
        name: ms
        for name in STEP_PHASES
        if (ms := on_device.get(name, 0.0))
        and abs(ms - total.phases.get(name, 0) / 1e6) > DIFFERS * total.wall_ms
    }
    lines = []
    if differing:
        parts = ", ".join(f"{name} {units.seconds(ms)}" for name, ms in differing.items())
        lines.append(f"  on the device's own clock: {parts}")
    if on_device and total.behind is not None:
        lines.append(f"  {PACE_TEXTS[pace_maker(on_device, total.behind)]}")
    return lines


def _background_lines(background: Background) -> list[str]:
    failed = f", {background.failed_saves} failed" if background.failed_saves else ""
    if not background.saves and not failed:
        return []
    return [
        f"  beside it, in the background: {units.duration(background.checkpoint_writer_ms)} of "
        f"writing checkpoints ({background.saves} saved{failed})"
    ]
