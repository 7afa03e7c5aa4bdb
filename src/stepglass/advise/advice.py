"""The advice: settings, what to expect of them, and a reason for each.

    advice = advise(Case(subject, target))
    advice.settings["batch_size"], advice.expect.ms_per_iter, advice.reasons

A figure is `measured` (by the run or log), `calculated` (it follows from the settings and a table)
or `estimated` (by a model that may be off: docs/hardware.md shows by how much).
"""

from dataclasses import dataclass
from typing import Any

from stepglass.advise.batch import choose_batch, memory_need
from stepglass.advise.case import Basis, Case, Reason
from stepglass.advise.length import fills_minutes, run_ms, with_length
from stepglass.advise.pauses import choose_evaluations, choose_saves
from stepglass.advise.several import check_processes, process_reasons
from stepglass.advise.subject import sequences_of
from stepglass.advise.update_time import expected_time, predicted
from stepglass.errors import ConfigError
from stepglass.measure.compile_gain import COMPILE_S, SAVED_SHARE, compiling_pays
from stepglass.measure.memory_model import MemoryNeed
from stepglass.measure.mfu import share_of_peak

ENOUGH_TOKENS = 20  # per parameter: the most for a fixed amount of compute (arXiv 2203.15556)
FEW_TOKENS, MANY_TOKENS = 5.0, 100.0  # per parameter
MANY_EPOCHS = 4.0  # passes over the data, after which repeating helps less and less (2305.16264)

Settings = dict[str, Any]


@dataclass(frozen=True)
class Expectation:
    """What a run with these settings does. Unknown is None."""

    ms_per_iter: float | None
    tokens_per_s: float | None
    mfu: float | None
    memory: MemoryNeed
    hours: float | None
    basis: Basis = "estimated"  # of the times
    tflops: float | None = None  # of a device: MFU times its peak, if that is known


@dataclass(frozen=True)
class Advice:
    """Settings with reasons, and what to expect."""

    case: Case
    peak_flops: float | None
    settings: Settings
    expect: Expectation
    reasons: tuple[Reason, ...]


def advise(case: Case) -> Advice:
    """Choose all settings for a case."""
    check_processes(case)
    dtype, dtype_reason = choose_dtype(case)
    does_compile, compile_reason = choose_compile(case, dtype)
    batch, accumulation, batch_reasons = choose_batch(case, dtype, does_compile)
    chosen = {
        "batch_size": batch,
        "gradient_accumulation_steps": accumulation,
        "dtype": dtype,
        "compile": does_compile,
    }
    ms, time_reason, basis = expected_time(case, chosen)
    case, length_reasons = with_length(case, ms, does_compile)
    evaluations = choose_evaluations(case, batch, accumulation, ms)
    saves = choose_saves(case, ms, evaluations)
    chosen |= evaluations.settings | saves.settings
    chip = case.target.chip(dtype)
    peak = None if chip is None else chip.peak_flops
    tokens = batch * accumulation * case.subject.shape.block_size
    need = memory_need(case, batch, dtype, does_compile)
    hours = whole_hours(case, ms, evaluations.total_ms + saves.total_ms, does_compile)
    flops = tokens * case.subject.shape.flops_per_token() / case.devices
    mfu = None if ms is None else share_of_peak(flops, ms, peak)
    if mfu is None and basis == "measured" and case.subject.measured is not None:
        mfu = case.subject.measured.mfu  # of the peak that the run has measured
    expect = Expectation(
        ms,
        None if ms is None else 1000 * tokens / ms,
        mfu,
        need,
        hours,
        basis,
        None if ms is None else flops / (ms / 1000) / 1e12,
    )
    reasons = [
        *case.notes,
        *size_reasons(case),
        *process_reasons(case),
        *length_reasons,
        *data_reasons(case, tokens, ms),
        *batch_reasons,
        dtype_reason,
        compile_reason,
        *evaluations.reasons,
        *saves.reasons,
        time_reason,
        memory_reason(case, need),
        *hours_reasons(case, hours, evaluations.share, basis),
    ]
    return Advice(case, peak, chosen, expect, tuple(reasons))


def whole_hours(case: Case, ms: float | None, pauses_ms: float, does_compile: bool) -> float | None:
    """The hours from the beginning to the end."""
    updates_ms = run_ms(case, ms)
    if updates_ms is None or fills_minutes(case):
        return None if updates_ms is None else updates_ms / 3.6e6
    start_ms = 1000 * COMPILE_S.get(case.target.kind, 0.0) if does_compile else 0.0
    return (updates_ms + pauses_ms + start_ms) / 3.6e6


def choose_dtype(case: Case) -> tuple[str, Reason]:
    asked, target = case.subject.cfg.dtype, case.target
    if "dtype" in case.subject.fixed and asked != "auto":
        if target.lacks(asked):
            raise ConfigError(
                f"--dtype={asked}: {target.name} has no {asked} units; expected float16; leave "
                "--dtype out"
            )
        return asked, Reason("dtype", "calculated", variant="asked")
    if target.kind != "cuda":
        return "float32", Reason("dtype", "calculated", variant=target.kind)
    if target.lacks("bfloat16"):
        return "float16", Reason("dtype", "calculated", variant="float16", device=target.name)
    basis: Basis = "calculated" if target.known else "estimated"
    return "bfloat16", Reason("dtype", basis, variant="bfloat16", device=target.name)


def choose_compile(case: Case, dtype: str) -> tuple[bool, Reason]:
    cfg, kind = case.subject.cfg, case.target.kind
    if "compile" in case.subject.fixed and cfg.compile != "auto":
        return bool(cfg.compile), Reason("compile", "calculated", variant="asked")
    if kind == "mps":
        return False, Reason("compile", "estimated", variant="mps")
    eager = predicted(case, cfg, dtype, does_compile=False)
    eager_ms = None if eager is None else eager.total_ms
    whole_ms = run_ms(case, _measured_eager_ms(case) or eager_ms)
    if whole_ms is None:
        is_long = kind == "cuda"
        return is_long, Reason("compile", "estimated", variant="unknown", device=kind)
    pays = compiling_pays(kind, whole_ms / 1000)
    return pays, Reason(
        "compile",
        "estimated",
        variant="pays" if pays else "short",
        compile_ms=1000 * COMPILE_S[kind],
        saved_ms=SAVED_SHARE[kind] * whole_ms,
        run_ms=whole_ms,
    )


def _measured_eager_ms(case: Case) -> float | None:
    """The time of an update without compiling, by the run or log."""
    ran = case.subject.measured
    if ran is None or ran.step_ms is None:
        return None
    ms = ran.step_ms * case.subject.wanted_sequences / sequences_of(ran.cfg)
    return ms / (1 - SAVED_SHARE[case.target.kind]) if ran.cfg.compile is True else ms


def size_reasons(case: Case) -> list[Reason]:
    """What to type for a card with another memory, if the name did not say which it has."""
    known = case.target.known
    if known is None or not known.other_sizes_gb:
        return []
    others, name = [f"{size:g}" for size in known.other_sizes_gb], case.target.name
    return [
        Reason(
            "device",
            "calculated",
            variant="sizes",
            name=name,
            sizes=", ".join(others),
            device_bytes=case.target.memory_bytes,
            other=f"--device='{name} {others[0]}GB'",
        )
    ]


def data_reasons(case: Case, tokens_per_iter: int, ms: float | None) -> list[Reason]:
    """How many tokens the run reads, per parameter and per token of its data."""
    subject = case.subject
    if not case.has_length:
        return []
    tokens, parameters = tokens_per_iter * subject.cfg.max_iters, subject.shape.num_params()
    ratio = tokens / parameters
    known = subject.data.train_tokens
    epochs = tokens / known if known else None
    enough = max(1, round(ENOUGH_TOKENS * parameters / tokens_per_iter))
    four = max(1, round(MANY_EPOCHS * (known or 0) / tokens_per_iter))
    verdict = "few" if ratio < FEW_TOKENS else "many" if ratio > MANY_TOKENS else "fine"
    if epochs is not None and epochs > MANY_EPOCHS:
        verdict = "epochs" if enough <= four else "little-data"
    return [
        Reason(
            "max_iters",
            "calculated",
            variant=verdict,
            has_epochs="no" if epochs is None else "yes",
            tokens=float(tokens),
            parameters=float(parameters),
            ratio=ratio,
            epochs=epochs,
            max_iters=subject.cfg.max_iters,
            enough=enough,
            four=four,
            enough_ms=None if ms is None else enough * ms,
            has_time="no" if ms is None else "yes",
            dataset=subject.cfg.dataset,
            is_sure="yes" if subject.data.is_sure else "no",
            vocab=subject.shape.vocab_size,
        )
    ]


def memory_reason(case: Case, need: MemoryNeed) -> Reason:
    total = case.target.memory_bytes
    return Reason(
        "memory_gb",
        "calculated",
        variant="unknown" if total is None else "known",
        total_bytes=need.total,
        device_bytes=total,
        weights_bytes=need.weights,
        gradients_bytes=need.gradients,
        optimizer_bytes=need.optimizer,
        activations_bytes=need.activations,
        logits_bytes=need.logits,
        context_bytes=need.context,
    )


def hours_reasons(
    case: Case, hours: float | None, eval_share: float | None, basis: Basis
) -> list[Reason]:
    if hours is None or not case.has_length:
        return []
    return [
        Reason(
            "hours",
            basis,
            max_iters=case.subject.cfg.max_iters,
            eval_share=eval_share,
        )
    ]
