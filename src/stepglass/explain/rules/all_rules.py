"""Applies all rules to a log.

The rule `warm-up` is the function `find_warm_up` in the module `warm_up` of this folder, and an
entry in `NAMES`.
"""

from collections.abc import Callable
from importlib import import_module

from stepglass.explain.finding import LEVELS, Finding
from stepglass.explain.study import Part, Study

Rule = Callable[[Part], list[Finding]]

# Notes, and findings with equal cost, are sorted in this order.
NAMES = (
    "eval-inside-iteration",
    "mfu-echo",
    "warm-up",
    "mfu-wrong-peak",
    "small-kernels",
    "accumulation-waste",
    "slow-path",
    "data-bound",
    "straggler",
    "communication",
    "pace-setter",
    "periodic-stall",
    "slowdown",
    "slow-stretch",
    "eval-too-expensive",
    "eval-noise",
    "checkpoint-interval",
    "overfitting",
    "best-checkpoint-lost",
    "stopped-early",
    "schedule-mismatch",
    "nan-loss",
    "broken-gradient",
    "constant-loss",
    "skipped-updates",
    "divergence",
    "loss-spike",
    "initial-loss",
    "plateau",
    "data-budget",
    "eval-below-batch",
    "expected-loss",
    "gradient-clipping",
    "out-of-memory",
    "contradiction",
    "unexplained-stall",
    "hidden-stall",
    "repeated-work",
)


def rule_named(name: str) -> Rule:
    """
    >>> rule_named("warm-up").__name__
    'find_warm_up'
    """
    module = name.replace("-", "_")
    rule: Rule = getattr(import_module(f"stepglass.explain.rules.{module}"), f"find_{module}")
    return rule


RULES = {name: rule_named(name) for name in NAMES}


def findings(study: Study) -> list[Finding]:
    """The findings of all rules, the costliest first. A finding is not repeated after a restart."""
    found: dict[tuple[str, str], Finding] = {}
    for part in study.parts:
        for name, rule in RULES.items():
            for finding in rule(part):
                assert finding.rule == name
                finding.part, finding.unit = part.number, part.unit
                if part.format.is_general and finding.status == "established":
                    finding.status = "supported"  # what each column means was guessed
                if not part.format.has_nanogpt_settings:
                    finding.change = {}  # this trainer uses other names for its settings
                key = (finding.rule, finding.variant)
                before = found.get(key)
                if before is None or finding.cost_ms > before.cost_ms:
                    found[key] = finding
    return sorted(found.values(), key=_importance)


def _importance(finding: Finding) -> tuple[int, float]:
    """Problems and advice by what they cost. Notes cost nothing, so they come in the order of
    `NAMES`, which begins with what people ask most often."""
    is_note = finding.level == "note"
    return LEVELS[finding.level], NAMES.index(finding.rule) if is_note else -finding.cost_ms
