"""The time of an update: measured, the model's, or the model's scaled by what was measured."""

import math
from typing import Any

from stepglass.advise.case import Basis, Case, Reason
from stepglass.advise.subject import sequences_of
from stepglass.measure.mfu import share_of_peak
from stepglass.measure.time_model import UpdateTime, predict_update
from stepglass.settings.train import TrainConfig

WORTH_SAYING = 0.03  # a change of speed


def predicted(case: Case, cfg: TrainConfig, dtype: str, *, does_compile: bool) -> UpdateTime | None:
    """What the model of time says of these settings on this device."""
    chip = case.target.chip(dtype)
    if chip is None:
        return None
    return predict_update(
        case.subject.shape,
        chip,
        batch_size=cfg.batch_size,
        accumulation=math.ceil(cfg.gradient_accumulation_steps / case.devices_of(cfg)),
        does_compile=does_compile,
        uses_muon=cfg.uses_muon,
    )


def expected_time(case: Case, chosen: dict[str, Any]) -> tuple[float | None, Reason, Basis]:
    """The time of an update with these settings, the reason, and how it is known."""
    cfg, does_compile = case.with_settings(chosen), chosen["compile"]
    new = predicted(case, cfg, chosen["dtype"], does_compile=does_compile)
    ran = case.subject.measured
    if ran is None or ran.step_ms is None:
        if new is None:
            return None, Reason("ms_per_iter", "estimated", variant="unknown"), "estimated"
        variant = "launch" if new.is_launch_bound else "model"
        return new.total_ms, _why_time(new, variant), "estimated"
    same_ms = ran.step_ms * sequences_of(cfg) / sequences_of(ran.cfg)
    old_dtype = chosen["dtype"] if ran.cfg.dtype == "auto" else ran.cfg.dtype
    keys = ("batch_size", "gradient_accumulation_steps", "nproc")
    is_same = all(getattr(ran.cfg, key) == getattr(cfg, key) for key in keys)
    is_same &= ran.cfg.compile in ("auto", chosen["compile"]) and old_dtype == chosen["dtype"]
    old = predicted(case, ran.cfg, old_dtype, does_compile=ran.cfg.compile is True)
    numbers = measured_speed(case, old_dtype)
    numbers |= {"measured_ms": ran.step_ms, "batch": ran.cfg.batch_size}
    if is_same:
        return ran.step_ms, Reason("ms_per_iter", "measured", variant="same", **numbers), "measured"
    if new is None or old is None:  # an unknown device: only the number of sequences is known
        reason = Reason("ms_per_iter", "estimated", variant="sequences", **numbers)
        return same_ms, reason, "estimated"
    scaled_ms = ran.step_ms * new.total_ms / old.total_ms
    if scaled_ms < _least_ms(case, cfg, chosen["dtype"]):  # then the log is not this device's
        scaled_ms = new.total_ms
    gain = same_ms / scaled_ms - 1
    reason = Reason(
        "ms_per_iter",
        "estimated",
        variant="faster" if gain > WORTH_SAYING else "scaled",
        gain_percent=100 * max(0.0, gain),
        changes=_changes(ran.cfg, cfg),
        **numbers,
    )
    return scaled_ms, reason, "estimated"


def _least_ms(case: Case, cfg: TrainConfig, dtype: str) -> float:
    """An update at the device's peak."""
    chip = case.target.chip(dtype)
    flops = case.subject.flops_per_update(cfg) / case.devices_of(cfg)
    return 0.0 if chip is None else 1000 * flops / chip.peak_flops


def _changes(ran: TrainConfig, new: TrainConfig) -> str:
    """The settings that the new time comes from, as they are typed."""
    keys = ("batch_size", "gradient_accumulation_steps", "dtype", "compile", "nproc")
    return " ".join(
        f"--{key}={getattr(new, key)}"
        for key in keys
        if getattr(ran, key) not in ("auto", getattr(new, key))
    )


def measured_speed(case: Case, dtype: str) -> dict[str, float | None]:
    """The MFU of what was measured, and the speed of a device, which needs no peak."""
    ran = case.subject.measured
    if ran is None or ran.step_ms is None:
        return {"mfu_share": None, "tflops": None}
    flops = case.subject.flops_per_update(ran.cfg) / case.devices_of(ran.cfg)
    chip = case.target.chip(dtype)
    mfu = ran.mfu if chip is None else share_of_peak(flops, ran.step_ms, chip.peak_flops)
    return {"mfu_share": mfu, "tflops": flops / (ran.step_ms / 1000) / 1e12}


def _why_time(step: UpdateTime, variant: str) -> Reason:
    return Reason(
        "ms_per_iter",
        "estimated",
        variant=variant,
        matrix_ms=step.matrix_ms,
        memory_ms=step.memory_ms,
        launch_ms=step.launch_ms,
        optimizer_ms=step.optimizer_ms,
    )
