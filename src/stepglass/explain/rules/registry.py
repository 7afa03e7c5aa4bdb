"""All rules, in the order of their names' list, and what they find in a log."""

from collections.abc import Callable

from stepglass.explain.finding import Finding
from stepglass.explain.rules import rules_loss as loss
from stepglass.explain.rules import rules_run as run
from stepglass.explain.rules import rules_speed as speed
from stepglass.explain.rules import rules_time as time
from stepglass.explain.study import Part, Study
from stepglass.logs.segment import MOST_NAMES

RULES: dict[str, Callable[[Part], list[Finding]]] = {
    "eval-inside-iteration": time.eval_inside_iteration,
    "mfu-echo": time.mfu_echo,
    "warm-up": time.warm_up,
    "mfu-wrong-peak": speed.mfu_wrong_peak,
    "small-kernels": speed.small_kernels,
    "accumulation-waste": speed.accumulation_waste,
    "slow-path": speed.slow_path,
    "data-bound": speed.data_bound,
    "periodic-stall": time.periodic_stall,
    "slowdown": time.slowdown,
    "eval-too-expensive": time.eval_too_expensive,
    "eval-noise": loss.eval_noise,
    "checkpoint-interval": time.checkpoint_interval,
    "overfitting": loss.overfitting,
    "best-checkpoint-lost": loss.best_checkpoint_lost,
    "stopped-early": run.stopped_early,
    "schedule-mismatch": run.schedule_mismatch,
    "nan-loss": loss.nan_loss,
    "divergence": loss.divergence,
    "loss-spike": loss.loss_spike,
    "initial-loss": run.initial_loss,
    "plateau": loss.plateau,
    "data-budget": run.data_budget,
    "out-of-memory": speed.out_of_memory,
    "contradiction": speed.contradiction,
    "unexplained-stall": time.unexplained_stall,
    "last-line-is-eval": time.last_line_is_eval,
}


def findings(study: Study) -> list[Finding]:
    """What every rule says, the costliest first. A restart does not repeat a finding."""
    found: dict[tuple[str, str], Finding] = {}
    has_our_names = study.log.format in ("nanogpt", "stepglass")
    for part in study.parts:
        for name, rule in RULES.items():
            for finding in rule(part):
                assert finding.rule == name
                finding.part = part.number
                if not has_our_names:
                    finding.change = {}  # the settings would have other names there
                key = (finding.rule, finding.variant)
                before = found.get(key)
                if before is None or finding.cost_ms > before.cost_ms:
                    found[key] = finding
    return sorted(found.values(), key=Finding.sort_key)


def cannot_show(study: Study) -> list[str]:
    """What a log like this one cannot tell: keys of the catalogues."""
    log, parts = study.log, study.parts
    keys = []
    if log.format == "nanogpt":
        keys.append("data-wait")
        if any((p.timing.num_iters or 0) > len(p.segment.table) for p in parts):
            keys.append("unprinted")
        unnamed = [p for p in parts if p.mfu.printed_last is not None and p.mfu.device is None]
        if any(p.setting("device") not in ("cpu", "mps") for p in unnamed):
            keys.append("device")
        if any(p.timing.spikes_of("checkpoint") and p.timing.save_ms is None for p in parts):
            keys.append("split")
        keys.append("last-micro-batch")
    elif f"format-{log.format}" in FORMAT_LIMITS:
        keys.append(f"format-{log.format}")
    if all(p.timing.ledger is None for p in parts):
        has_times = any(len(p.timing.times) and p.timing.normal_ms is not None for p in parts)
        keys.append("evals-unprinted" if has_times else "no-times")
    elif all(
        p.timing.ledger is None or p.timing.ledger.basis in ("printed", "estimated") for p in parts
    ):
        keys.append("wall-clock")
    if not any(p.segment.evals for p in parts):
        keys.append("no-evals")
    return keys


def left_out(study: Study) -> dict[str, dict[str, int]]:
    """What a log has more of than is kept, by keys of the catalogues, with how many. Figures are of
    all; what is missing is a name, a message or a point of a curve."""
    segments = [part.segment for part in study.parts]
    settings = sum(segment.num_left_out for segment in segments)
    events = sum(sum(s.num_events.values()) - len(s.events) for s in segments)
    evals, kept = sum(s.num_evals for s in segments), sum(len(s.evals) for s in segments)
    runs = study.log.num_unparted
    found: dict[str, dict[str, int]] = {}
    if settings:
        found["settings"] = {"count": settings, "most": MOST_NAMES}
    if events > 0:
        found["events"] = {"count": events}
    if kept < evals:
        found["evals"] = {"count": evals, "kept": kept}
    if runs:
        found["runs"] = {"count": runs, "most": len(study.log.segments)}
    return found


FORMAT_LIMITS = {
    "format-nanochat",
    "format-modded-nanogpt",
    "format-llm.c",
    "format-litgpt",
    "format-torchtitan",
    "format-hf-trainer",
    "format-lightning",
    "format-composer",
    "format-lingua",
    "format-mingpt",
    "format-char-rnn",
    "format-megatron",
}
