"""Computes the true MFU from the printed one: without the moving average, and for the real device.

nanoGPT prints `0.9 * old + 0.1 * new`, where `new` is FLOPs / (time * 312 TFLOP/s). FLOPs are the
same for every iteration, so the printed column is a linear function of two numbers: the average
before the first line, and `work` = MFU times time. Both are fitted. As a check, the moving average
is computed again from them; the fit is accepted only if it reproduces the printed column.
"""

from dataclasses import dataclass

import numpy as np

from stepglass.explain.iteration_times import log_interval
from stepglass.explain.remeasured_peak import last_peak_tflops, mfu_column, work_of
from stepglass.explain.timing import Timing
from stepglass.logs.log import Log
from stepglass.logs.segment import Segment
from stepglass.logs.table import Column, median
from stepglass.measure import devices

KEEP = 0.9
MOST_REPLAYED = 20_000
MOST_STRETCHES = 200
ROUNDING = 0.01 / 12**0.5  # the standard error of a number rounded to two decimals
TOLERANCE = 0.0105  # a little more than the last printed digit, 0.01


@dataclass
class Mfu:
    """MFU in percent. `clean` is the MFU of an ordinary iteration."""

    printed_last: float | None = None
    clean: float | None = None
    corrected: float | None = None
    device: str | None = None
    peak_tflops: float | None = None  # of the device
    assumed_tflops: float | None = None  # the peak that the printed MFU divides by
    achieved_tflops: float | None = None
    work: float | None = None  # MFU in percent times ms, for one iteration
    largest_error: float | None = None  # of the replay, in percentage points
    num_replayed: int = 0
    tolerance: float = TOLERANCE

    @property
    def is_replayed(self) -> bool:
        """Does the moving average reproduce the printed column to the last digit?"""
        return self.largest_error is not None and self.largest_error <= self.tolerance


def mfu_of(log: Log, number: int, timing: Timing, device: str | None) -> Mfu:
    """Analyse the MFU column of a segment."""
    mfu = Mfu()
    segment = log.segments[number]
    column = segment.table.column("mfu")
    name = device or segment.facts.get("device")
    found = devices.find_device(name) if isinstance(name, str) else None
    mfu.device = found.name if found else (name if isinstance(name, str) else None)
    mfu.peak_tflops = peak_of(segment, found)
    mfu.assumed_tflops = assumed_peak(log, segment)
    measured_last = last_peak_tflops(log, number) if found is None else None
    if measured_last is not None:
        mfu.work = work_of(segment, measured_last)
        if mfu.work is not None:
            mfu.peak_tflops = mfu.assumed_tflops = measured_last
            column = mfu_column(segment, mfu.work)
    known = np.isfinite(column)
    if not known.any():
        return Mfu(device=mfu.device, peak_tflops=mfu.peak_tflops)
    mfu.printed_last = float(column[known][-1])
    if log.format.averages_mfu:
        _remove_average(mfu, segment, timing)
    elif timing.normal_ms is not None and len(timing.ordinary) == len(column):
        chosen = column[known & timing.ordinary]
        mfu.clean = median(chosen) if len(chosen) else None
    if mfu.clean is None and not log.format.averages_mfu:
        mfu.clean = median(column[known])
    if mfu.clean is not None and mfu.assumed_tflops:
        mfu.achieved_tflops = mfu.clean / 100 * mfu.assumed_tflops
        if mfu.peak_tflops:
            mfu.corrected = mfu.clean * mfu.assumed_tflops / mfu.peak_tflops
    return mfu


def assumed_peak(log: Log, segment: Segment) -> float | None:
    """The peak that the printed MFU divides by, if it is known."""
    if log.format.assumed_peak_tflops is not None:
        return log.format.assumed_peak_tflops
    fallback = log.format.fallback_peak_tflops
    if fallback is not None and any(e.name == "unknown-peak" for e in segment.events):
        return fallback
    peak = segment.facts.get("peak_tflops")
    return float(peak) if isinstance(peak, int | float) and peak > 0 else None


def peak_of(segment: Segment, found: devices.KnownDevice | None) -> float | None:
    """The device's peak for the run's number format, in TFLOP/s."""
    if found is None:
        peak = segment.facts.get("peak_tflops")
        return float(peak) if isinstance(peak, int | float) and peak > 0 else None
    dtype = str(segment.setting("dtype") or segment.facts.get("dtype") or "")
    wanted = {
        "float32": ("tf32", "fp32"),
        "float16": ("fp16",),
        "bfloat16": ("bf16",),
    }.get(dtype, ("bf16", "fp16", "fp32"))
    for number_format in wanted:
        if found.tflops.get(number_format):
            return found.tflops[number_format]
    return None


def _remove_average(mfu: Mfu, segment: Segment, timing: Timing) -> None:
    """Estimate `work` from all stretches, weighted by the inverse variance of each estimate."""
    weights = total = 0.0
    for printed, times, is_beginning in _stretches(segment):
        work, error, replayed = fit(printed, times, is_beginning)
        if error is None or work <= 0:
            continue
        weights += error**-2
        total += work * error**-2
        if len(printed) > 1:
            off = float(np.abs(replayed - printed).max())
            mfu.largest_error = max(off, mfu.largest_error or 0.0)
            mfu.num_replayed += len(printed)
            shortest = float(times.min())  # times are rounded to 0.01 ms, which matters if short
            mfu.tolerance = max(mfu.tolerance, TOLERANCE + work / shortest * 0.005 / shortest)
    if weights and timing.normal_ms and (mfu.largest_error or 0.0) < 0.5:
        mfu.work = total / weights
        mfu.clean = mfu.work / timing.normal_ms


def _stretches(segment: Segment) -> list[tuple[Column, Column, bool]]:
    """Stretches of consecutive printed lines with a measured MFU, without a missing line."""
    table = segment.table
    column, times = table.column("mfu"), table.column("time_ms")
    iters, n = table.column("iter"), table.column("n")
    usable = np.isfinite(column) & np.isfinite(times) & (times > 0)
    step = log_interval(iters)
    joined = usable[1:] & usable[:-1] & (np.diff(n) == 1)
    if step:
        joined &= np.diff(iters) == step
    ends = np.append(np.flatnonzero(~joined), len(column) - 1)
    starts = np.append(0, ends[:-1] + 1)
    # After a line with "-100 %", the first MFU is a single measurement, not an average.
    follows = np.append(False, ~usable[:-1] & (np.diff(n) == 1))[starts]
    worth_it = np.flatnonzero(usable[starts] & ((ends > starts) | follows))[:MOST_STRETCHES]
    result, num_rows = [], 0
    for stretch in worth_it.tolist():
        start, end = int(starts[stretch]), int(ends[stretch]) + 1
        end = min(end, start + MOST_REPLAYED)
        result.append((column[start:end], times[start:end], bool(follows[stretch])))
        num_rows += end - start
        if num_rows > MOST_REPLAYED:
            break
    return result


def fit(printed: Column, times: Column, is_beginning: bool) -> tuple[float, float | None, Column]:
    """The `work` that fits the printed column best, its standard error, and the fitted column."""
    if is_beginning:
        unit = replay(1.0, times, 1.0 / times[0])
        strength = float(unit @ unit)
        work = float(printed @ unit) / strength
        return work, ROUNDING / strength**0.5, unit * work
    decay = KEEP ** np.arange(len(times))
    unit = replay(1.0, times, 0.0)
    matrix = np.stack([unit, decay], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(matrix, printed, rcond=None)
    if rank < 2:
        return 0.0, None, printed
    variance = float(np.linalg.inv(matrix.T @ matrix)[0, 0])
    error = ROUNDING * variance**0.5 if variance > 0 else None
    return float(solution[0]), error, matrix @ solution


def replay(work: float, times: Column, start: float) -> Column:
    """nanoGPT's moving average over these times. `start` is the average at the first time."""
    values = np.empty(len(times))
    current = start
    for row, time_ms in enumerate(times.tolist()):
        if row:
            current = KEEP * current + (1 - KEEP) * work / time_ms
        values[row] = current
    return values
