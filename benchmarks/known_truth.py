"""How often `explain` is wrong, on logs of which the truth is known.

python benchmarks/known_truth.py [--logs=6000] [--seed=0]

Makes up runs, prints what six trainers would have printed of them, and lets `explain` read that.
Half of the runs have nothing wrong; the others have a fault of the loss, of the time, or both. For
every rule: the share of logs without the fault in which it is called established (wanted: under
1 %) or said with reserve, and the share of logs with the fault in which it is found (wanted: over
95 %), and called established.
"""

import argparse
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from made_up_logs import text_of
from made_up_runs import FORMATS, LOSS_FAULTS, TIME_FAULTS, MadeUpRun, made_up_run
from stepglass.explain.finding import Finding
from stepglass.explain.rules import all_rules
from stepglass.explain.study import study
from stepglass.logs import detect
from stepglass.logs.log import Log

HAS_STEP_TIMES = ("nanogpt", "megatron", "llm.c", "litgpt")
# What a run with this fault may be called as well, because it is true of it too.
ALSO_TRUE = {
    "divergence": {"divergence", "overfitting:hypothesis"},
    "recovered": {"divergence", "loss-spike"},
    "nan-loss": {"nan-loss", "divergence", "broken-gradient", "constant-loss", "contradiction"},
    "loss-spike": {"loss-spike"},
    "constant-loss": {"constant-loss", "plateau"},
}
# Rules that hold a number of the log against a threshold, or quote a setting: not judged here.
NOT_JUDGED = {
    "data-budget",
    "schedule-mismatch",
    "initial-loss",
    "eval-noise",
    "mfu-echo",
    "eval-inside-iteration",
    "last-line-is-eval",
    "warm-up",
}


@dataclass
class Score:
    """How often a rule was right about logs with and without its fault."""

    num_without: int = 0
    false: list[str] = field(default_factory=list)  # established, in a log without the fault
    num_hedged: int = 0  # supported or a hypothesis, in a log without the fault
    num_with: int = 0
    found: int = 0
    established: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def false_share(self) -> float:
        return len(self.false) / max(self.num_without, 1)

    @property
    def found_share(self) -> float:
        return self.found / max(self.num_with, 1)


def made_up_runs(count: int, seed: int) -> Iterator[MadeUpRun]:
    around = np.random.default_rng(seed)
    for number in range(count):
        log_format = FORMATS[number % len(FORMATS)]
        loss_fault = str(around.choice(LOSS_FAULTS)) if around.random() < 0.35 else ""
        time_fault = str(around.choice(TIME_FAULTS)) if around.random() < 0.25 else ""
        yield made_up_run(seed * 1_000_000 + number, log_format, loss_fault, time_fault)


def read(run: MadeUpRun) -> Log:
    return detect.read_log(io.BytesIO(text_of(run).encode()), "made-up.log")


def findings_of(run: MadeUpRun) -> list[Finding]:
    return all_rules.findings(study(read(run)))


def has_fault(rule: str, run: MadeUpRun) -> bool | None:
    """Does the run have what the rule looks for? None if it is too close to say."""
    truths = run.truths
    if rule == "overfitting":
        if run.loss_fault != rule:
            return False
        least = max(6 * truths["eval_sigma"], 0.05 * truths["best_val"])
        return True if truths["rise"] > least and truths["num_after"] >= 4 else None
    if rule == "best-checkpoint-lost":
        if run.format != "nanogpt" or not run.saves_always:
            return False if run.loss_fault != "overfitting" else None
        is_worse = truths.get("rise", 0.0) > 0.01 * truths.get("best_val", 0.0)
        return has_fault("overfitting", run) or (None if is_worse or run.loss_fault else False)
    if rule in ("eval-too-expensive", "checkpoint-interval"):
        share, budget = truths["eval_share"], 0.05
        if rule == "checkpoint-interval":
            share, budget = truths["save_share"], 0.01
        if run.format not in ("nanogpt", "litgpt") or run.restart or run.time_fault:
            return None
        if run.format == "nanogpt" and run.eval_interval < 3 * run.log_interval:
            return None  # nearly every printed time includes an evaluation
        if run.format == "nanogpt" and share < 0.7 * budget:
            share = truths["eval_share"] + truths["save_share"]  # one row, if not told apart
        has_found_out = rule == "eval-too-expensive" or None  # saves are not always told apart
        return has_found_out if share > 1.4 * budget else False if share < 0.7 * budget else None
    if rule == "repeated-work":
        return None if run.restart else False
    if rule in TIME_FAULTS:
        if run.time_fault != rule:
            return None if run.time_fault else False
        return True if _shows(rule, run) else None
    if rule == "loss-spike" and run.loss_fault == rule:
        return True if len(run.printed) >= 64 else None
    for fault, rules in ALSO_TRUE.items():
        if run.loss_fault == fault and rule in rules:
            return True if rule == fault or (fault, rule) == ("recovered", "divergence") else None
    return False


def _shows(rule: str, run: MadeUpRun) -> bool:
    """Can the log show a fault of the time?"""
    if run.format not in HAS_STEP_TIMES or run.loss_fault == "nan-loss":
        return False
    if rule == "periodic-stall" and run.format == "megatron" and run.log_interval > 1:
        return False
    return len(run.printed) >= 100


def judge(runs: Iterator[MadeUpRun]) -> tuple[dict[str, Score], Counter[str]]:
    scores = {name: Score() for name in all_rules.NAMES if name not in NOT_JUDGED}
    totals: Counter[str] = Counter()
    for run in runs:
        found: dict[str, str] = {}  # status by rule
        for finding in findings_of(run):
            rule = finding.rule
            if rule == "eval-inside-iteration" and finding.numbers.get("cost") == "share":
                rule = "eval-too-expensive"  # one finding says both
            if finding.status == "established" or rule not in found:
                found[rule] = finding.status
        name = f"{run.format}:{run.seed}:{run.loss_fault or '-'}:{run.time_fault or '-'}"
        was_false = False
        for rule, score in scores.items():
            truth, status = has_fault(rule, run), found.get(rule, "")
            if truth is False:
                score.num_without += 1
                score.num_hedged += status in ("supported", "hypothesis")
                if status == "established":
                    score.false.append(name)
                    was_false = True
            elif truth:
                score.num_with += 1
                score.found += bool(status)
                score.established += status == "established"
                if not status:
                    score.missed.append(name)
        totals["logs"] += 1
        totals["false"] += was_false
    return scores, totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="how many wrong answers to name")
    args = parser.parse_args()
    scores, totals = judge(made_up_runs(args.logs, args.seed))
    print(
        f"{'rule':22}  {'without':>7}  {'false':>7}  {'hedged':>7}  {'with':>5}  {'found':>7}  "
        "established"
    )
    for rule, score in scores.items():
        hedged = score.num_hedged / max(score.num_without, 1)
        row = f"{rule:22}  {score.num_without:7}  {score.false_share:7.2%}  {hedged:7.2%}"
        row += f"  {score.num_with:5}"
        if score.num_with:
            established = score.established / score.num_with
            row += f"  {score.found_share:7.2%}  {established:11.2%}"
        print(row)
        for wrong in score.false[: args.show]:
            print(f"    false: {wrong}")
        for wrong in score.missed[: args.show]:
            print(f"    missed: {wrong}")
    share = totals["false"] / max(totals["logs"], 1)
    print(f"logs with any false established finding: {share:.2%} of {totals['logs']}")


if __name__ == "__main__":
    main()
