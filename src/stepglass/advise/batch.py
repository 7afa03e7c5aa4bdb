"""How many sequences go through the device at once, and how many times before an update."""

import math
from collections.abc import Iterator
from dataclasses import replace

from stepglass.advise.case import Case, Reason
from stepglass.advise.several import check_equal_shares
from stepglass.advise.target import MARGIN
from stepglass.advise.update_time import WORTH_SAYING, predicted
from stepglass.errors import ConfigError
from stepglass.measure.devices import known_devices
from stepglass.measure.memory_model import (
    MemoryNeed,
    Way,
    kept_scores,
    largest_batch,
    memory_of,
    memory_of_nanogpt,
    same_rows,
)
from stepglass.measure.shapes import GPTConfig
from stepglass.units import size


def memory_need(case: Case, batch_size: int, dtype: str, does_compile: bool) -> MemoryNeed:
    """The memory of an update with this micro-batch."""
    subject = case.subject
    if case.trainer == "nanogpt" and isinstance(subject.shape, GPTConfig):
        need = memory_of_nanogpt(subject.shape, batch_size=batch_size)
        if case.target.kind == "cuda":
            return need
        plain = Way(4, "mps", does_compile=False)
        scores = subject.shape.n_layer * kept_scores(subject.shape, batch_size, plain)
        # All is float32 there, and attention keeps its scores.
        return replace(need, activations=2 * need.activations + scores, context=0)
    return memory_of(
        subject.shape,
        batch_size=batch_size,
        dtype=dtype,
        device_type=case.target.kind,
        uses_muon=subject.cfg.uses_muon,
        does_compile=does_compile,
        accumulates=batch_size * case.devices < subject.sequences,
    )


def choose_batch(case: Case, dtype: str, does_compile: bool) -> tuple[int, int, list[Reason]]:
    """`batch_size` and `gradient_accumulation_steps` for the wanted tokens in an update."""

    def need_of(batch_size: int) -> MemoryNeed:
        return memory_need(case, batch_size, dtype, does_compile)

    def need(batch_size: int) -> int:
        return need_of(batch_size).total

    cfg, fixed = case.subject.cfg, case.subject.fixed
    room = case.target.available_bytes
    wanted = case.subject.sequences
    fits = cfg.batch_size if room is None else largest_batch(need_of, int(room)) or 0
    oom = case.subject.oom_batch
    if oom is not None:
        fits = min(fits, oom // 2)
    if fits < 1:
        raise ConfigError(_too_large(case, need(1)))
    variant = "largest"
    if "batch_size" in fixed or ("gradient_accumulation_steps" in fixed and room is not None):
        batch, accumulation = _as_asked(case, wanted)
        variant = "asked" if room is not None else "asked-unknown"
        if room is not None and batch > fits:
            raise ConfigError(
                f"batch_size={batch} needs {size(need(batch))}, and {case.target.name} has "
                f"{size(case.target.memory_bytes)}, of which {MARGIN:.0%} stay free; expected "
                f"batch_size={fits} or less; leave --batch_size and "
                "--gradient_accumulation_steps out to keep the tokens in an update"
            )
    elif case.subject.was_tried:
        batch, accumulation, variant = cfg.batch_size, cfg.gradient_accumulation_steps, "tried"
    elif room is None or case.target.kind == "cpu":
        batch = min(cfg.batch_size, fits)
        accumulation = -(-wanted // batch)
        variant = "kept" if case.target.kind == "cpu" else "unknown"
    else:
        batch, steps = _divided(-(-wanted // case.devices), fits)
        accumulation = steps * case.devices  # each of several GPUs has an equal share
        variant = "whole" if steps == 1 else "largest"
        if _is_busy_already(case, (batch, accumulation), fits, dtype, does_compile):
            batch, accumulation, variant = cfg.batch_size, wanted // cfg.batch_size, "busy"
    check_equal_shares(case, batch * accumulation)
    why = Reason(
        "batch_size",
        "calculated" if oom is None and variant != "tried" else "measured",
        variant=variant if oom is None else "oom",
        batch=batch,
        ran=oom,
        wanted=wanted,
        fits=fits,
        need_bytes=need(batch),
        device_bytes=case.target.memory_bytes,
        margin_percent=100 * MARGIN,
    )
    return batch, accumulation, [why, _why_accumulation(case, batch, accumulation)]


def _why_accumulation(case: Case, batch: int, accumulation: int) -> Reason:
    block_size, wanted = case.subject.cfg.block_size, case.subject.sequences
    return Reason(
        "gradient_accumulation_steps",
        "calculated",
        variant="same" if batch * accumulation == wanted else "other",
        batch=batch,
        accumulation=accumulation,
        block_size=block_size,
        tokens=float(batch * accumulation * block_size),
        wanted_tokens=float(wanted * block_size),
    )


def _as_asked(case: Case, wanted: int) -> tuple[int, int]:
    """Obey the flags. If one of the two is given, the other keeps the tokens in an update."""
    cfg, fixed, devices = case.subject.cfg, case.subject.fixed, case.devices
    batch, steps = cfg.batch_size, cfg.gradient_accumulation_steps
    if "batch_size" not in fixed:
        return max(1, round(wanted / steps)), steps
    if "gradient_accumulation_steps" not in fixed:
        return batch, devices * max(1, round(wanted / batch / devices))
    return batch, steps


def _is_busy_already(
    case: Case, larger: tuple[int, int], fits: int, dtype: str, does_compile: bool
) -> bool:
    """Does the batch of a run keep the device as busy as the larger one would?"""
    subject = case.subject
    if subject.measured is None or subject.cfg.batch_size > fits:
        return False
    if subject.sequences != subject.cfg.batch_size * subject.cfg.gradient_accumulation_steps:
        return False
    new = replace(subject.cfg, batch_size=larger[0], gradient_accumulation_steps=larger[1])
    now, then = (
        predicted(case, cfg, dtype, does_compile=does_compile) for cfg in (subject.cfg, new)
    )
    return (
        now is not None and then is not None and (now.total_ms < (1 + WORTH_SAYING) * then.total_ms)
    )


def _divided(wanted: int, fits: int) -> tuple[int, int]:
    """The largest micro-batch that fits and divides the update. If the divisors are far below what
    fits, the update may grow a little.

    >>> _divided(480, 9), _divided(480, 1000), _divided(97, 50)
    ((8, 60), (480, 1), (49, 2))
    """
    batch, steps = same_rows(wanted, fits)
    if 2 * batch >= min(wanted, fits):
        return batch, steps
    steps = -(-wanted // fits)
    return -(-wanted // steps), steps


def _too_large(case: Case, need_bytes: float) -> str:
    """What would hold a model that this device cannot."""
    names = list(_that_hold(need_bytes))
    if names:
        would = f"{' or '.join(names[:2])} would hold it"
    else:
        largest = max(each.memory_bytes for each in known_devices())
        cards = math.ceil(need_bytes / ((1 - MARGIN) * largest))
        would = f"it takes {cards} cards of {size(largest)} that share it"
    target = case.target
    if case.subject.oom_batch is not None:
        return (
            f"{case.subject.log_name}: the run ran out of memory with batch_size=1; {would}; or "
            "lower --n_layer, --n_embd or --block_size"
        )
    return (
        f"the model needs {size(need_bytes)} with batch_size=1, and {target.name} has "
        f"{size(target.memory_bytes)}, of which {MARGIN:.0%} stay free; {would}; or lower "
        "--n_layer, --n_embd or --block_size"
    )


def _that_hold(need_bytes: float) -> Iterator[str]:
    """Devices with enough memory, the smallest first."""
    sizes = {(gb, each.name) for each in known_devices() for gb in each.memory_gb
             if not each.is_apple and "Laptop" not in each.name}  # fmt: skip
    for gb, name in sorted(sizes):
        if (1 - MARGIN) * gb * 1e9 >= need_bytes:
            yield f"{name.removeprefix('GeForce ')} ({gb:g} GB)"
