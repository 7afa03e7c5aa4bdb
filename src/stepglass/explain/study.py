"""The data that the rules use: the log, the reconstructed times, and values from its settings."""

import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from stepglass.explain import printed_mfu, spent
from stepglass.explain.iteration_times import SLOW
from stepglass.explain.ledger_error import errors_of
from stepglass.explain.printed_mfu import Mfu
from stepglass.explain.reconstruction import reconstruct
from stepglass.explain.timing import Timing
from stepglass.explain.who_waits import Ranks, Straggler, ranks_of, straggler_of
from stepglass.logs.log import Log
from stepglass.logs.log_format import LogFormat
from stepglass.logs.segment import Eval, Event, Segment
from stepglass.logs.table import Column, median
from stepglass.units import finite

# Training tokens of data sets that everybody prepares in the same way.
KNOWN_DATASETS = {
    "shakespeare_char": 1_003_854,
    "shakespeare": 301_966,
    "openwebtext": 9_035_582_198,
}


LITTLE_TEXT = 100  # lines


@dataclass
class Part:
    """A segment and its analysis."""

    log: Log
    segment: Segment
    timing: Timing
    mfu: Mfu
    number: int
    is_last: bool
    is_finished: bool = True  # False while a log is still being followed

    @property
    def format(self) -> LogFormat:
        return self.log.format

    @property
    def unit(self) -> str:
        """What the numbers of this log count: steps, epochs, or entries if it prints no numbers."""
        if not self.segment.has_iter_numbers:
            return "entry"
        return "epoch" if self.format.counts == "epochs" else "step"

    def setting(self, name: str) -> Any:
        return self.segment.setting(name)

    def number_setting(self, name: str) -> float | None:
        return finite(self.segment.setting(name))

    def fact(self, name: str) -> float | None:
        return finite(self.segment.facts.get(name))

    def column(self, name: str) -> Column:
        return self.segment.table.column(name)

    @cached_property
    def evals(self) -> list[Eval]:
        """Evaluations with a finite value, of the main set if the log has several."""
        known = [e for e in self.segment.evals if e.val is not None]
        sets = Counter(e.set for e in known)
        main = max(sets, key=lambda name: (sets[name], not name), default="")
        return [e for e in known if e.set == main and math.isfinite(e.val or 0.0)]

    @cached_property
    def best_eval(self) -> Eval | None:
        return min(self.evals, key=lambda e: e.val or 0.0) if self.evals else None

    @cached_property
    def losses(self) -> tuple[Column, Column, Column]:
        """Iterations, losses and line numbers of the rows with a finite loss."""
        loss = self.column("loss")
        known = np.isfinite(loss)
        return self.column("iter")[known], loss[known], self.column("line")[known]

    @cached_property
    def is_policy_loss(self) -> bool:
        """Is the loss that of reinforcement learning? It is an estimate of a gradient's direction:
        about 0 by design, of either sign, and neither its level nor a jump says how training goes.
        A loss of both signs is taken for one as well."""
        losses = self.losses[1]
        has_both_signs = bool((losses < 0).any() and (losses > 0).any())
        return self.segment.facts.get("objective") == "reward" or has_both_signs

    @cached_property
    def loss_sigma(self) -> float | None:
        """The standard deviation of a printed loss, from the differences of adjacent losses."""
        losses = self.losses[1]
        if len(losses) < 8:
            return None
        return median(np.abs(np.diff(losses))) / 0.954

    @cached_property
    def val_se(self) -> float | None:
        """The standard error of an evaluation: printed, or computed from the noise of a batch."""
        printed = [e.val_se for e in self.evals if e.val_se is not None]
        if printed:
            return median(printed)
        num = self.number_setting("eval_iters")
        if self.loss_sigma is None or not num or num < 1:
            return None
        if not self.format.evaluates_random_batches:
            return None
        return self.loss_sigma / math.sqrt(num)

    @cached_property
    def tokens_per_iter(self) -> float | None:
        stated = self.fact("tokens_per_iter")
        if stated:
            return stated
        sizes = [self.number_setting(k) for k in ("batch_size", "block_size")]
        accumulation = self.number_setting("gradient_accumulation_steps")
        if None in sizes or accumulation is None:
            return None
        return float(np.prod([s or 0.0 for s in sizes])) * accumulation

    @cached_property
    def max_iters(self) -> int | None:
        value = self.number_setting("max_iters")
        return int(value) if value and value > 0 else None

    @cached_property
    def error(self) -> Event | None:
        """The error that ended the process, if there was one."""
        after = self.segment.last_line or 0
        names = ("error", "oom", "interrupted", "traceback")
        events = [e for e in self.segment.events if e.name in names and e.line > after]
        events = [e for e in events if e.name != "error" or self._ends_with(e)]
        named = [e for e in events if e.name != "traceback"]
        return (named or events)[-1] if events else None

    def _ends_with(self, error: Event) -> bool:
        """Is the error the end, and not part of a sample or of other text? Then it has a traceback,
        or little comes after it."""
        is_raised = any(e.name == "traceback" and e.line < error.line for e in self.segment.events)
        return is_raised or self.log.num_lines - error.line <= LITTLE_TEXT

    @cached_property
    def has_ended(self) -> bool:
        """Did the run reach its planned end? A truncated log does not show that."""
        if not self.is_finished or self.error is not None:
            return False
        if self.segment.end.get("reason") in ("finished", "target", "patience"):
            return True
        last = self.segment.last_iter
        if self.max_iters is None or last is None:
            return False
        planned_last = self.max_iters - (not self.format.max_iters_is_last_iter)
        return last >= planned_last

    @cached_property
    def train_tokens(self) -> float | None:
        """Tokens in the training set."""
        stated = self.fact("train_tokens")
        if stated:
            return stated
        dataset = self.setting("dataset")
        if dataset == "shakespeare_char" and self.fact("vocab_size") not in (None, 65.0):
            return None  # the user's own text under a known name
        return KNOWN_DATASETS.get(dataset) if isinstance(dataset, str) else None

    @property
    def starts_from_scratch(self) -> bool:
        how = self.segment.facts.get("init_from") or self.setting("init_from") or "scratch"
        return how == "scratch"

    @cached_property
    def wall_ms(self) -> float | None:
        return self.timing.ledger.wall_ms if self.timing.ledger else None

    def time_share(self, *names: str) -> float | None:
        """The share of the ledger's total that these phases took. None if it is not known."""
        return self.timing.ledger.share(*names) if self.timing.ledger else None

    def phase_ms(self, *names: str) -> float:
        if self.timing.ledger is None:
            return 0.0
        return sum(self.timing.ledger.phases.get(name, 0.0) for name in names)

    @cached_property
    def ranks(self) -> Ranks | None:
        """The times of the processes that train together, if there are several."""
        return ranks_of(self.segment)

    @cached_property
    def straggler(self) -> Straggler | None:
        return straggler_of(self.ranks) if self.ranks else None

    @cached_property
    def within_backward(self) -> dict[str, float]:
        """What of the forward and backward passes was communication and waiting, if known."""
        if self.ranks is None or self.timing.ledger is None:
            return {}
        return self.ranks.within(self.timing.ledger, self.timing.num_iters or 0)

    def time_since_ms(self, iteration: int) -> float:
        """The time of the ordinary iterations after this one."""
        last, normal = self.segment.last_iter, self.timing.normal_ms
        return max(0, last - iteration) * normal if last is not None and normal else 0.0

    def line_of_setting(self, name: str) -> list[int]:
        line = self.segment.config_lines.get(name)
        return [line] if line else []

    def line_of_fact(self, name: str) -> list[int]:
        line = self.segment.fact_lines.get(name)
        return [line] if line else []

    def learning_rate_at(self, iteration: int) -> float | None:
        """The printed learning rate, or that of nanoGPT's schedule if the settings are known."""
        printed = self.column("lr")
        rows = np.flatnonzero(np.isfinite(printed) & (self.column("iter") <= iteration))
        if len(rows):
            return float(printed[rows[-1]])
        peak = self.number_setting("learning_rate")
        warmup, decay = self.number_setting("warmup_iters"), self.number_setting("lr_decay_iters")
        low = self.number_setting("min_lr")
        if peak is None:
            return None
        if self.setting("decay_lr") is False:
            return peak
        if warmup is None or decay is None or low is None:
            return None
        # Imported here because it loads all settings of `train`, and few logs need it.
        from stepglass.settings.lr_schedule import cosine_lr  # noqa: PLC0415

        return cosine_lr(iteration, peak=peak, low=low, warmup_iters=warmup, decay_iters=decay)


@dataclass
class Study:
    """A log and the analysis of its segments."""

    log: Log
    device: str | None
    parts: list[Part] = field(default_factory=list)


def study(log: Log, device: str | None = None, is_finished: bool = True) -> Study:
    """Reconstruct every segment."""
    result = Study(log, device)
    segments = list(enumerate(log.segments))
    times = [reconstruct(log, segment, is_first=not n) for n, segment in segments]
    surest = max(times, key=lambda time: int(time.ordinary.sum()), default=None)
    for number, segment in segments:
        time = times[number]
        if surest is not None and _is_unsure(time, surest):
            time = reconstruct(log, segment, is_first=not number, normal_ms=surest.normal_ms)
        time.ledger = spent.ledger_of(log, segment, time)
        if time.ledger is not None and time.ledger.basis in ("printed", "estimated"):
            time.ledger.errors = errors_of(segment, time)
        is_last = number == len(log.segments) - 1
        result.parts.append(
            Part(
                log,
                segment,
                time,
                printed_mfu.mfu_of(log, number, time, device),
                number,
                is_last=is_last,
                is_finished=is_finished or not is_last,
            )
        )
    return result


def _is_unsure(time: Timing, surest: Timing) -> bool:
    """Are the iterations so few and slow that all may include an evaluation? Then the ordinary
    iteration of another segment is used."""
    if surest.normal_ms is None or time is surest:
        return False
    if time.normal_ms is None:
        return True
    return int(time.ordinary.sum()) < 3 and time.normal_ms > SLOW * surest.normal_ms
