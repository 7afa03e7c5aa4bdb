"""The contents of a log: segments with iterations, evaluations, checkpoints and settings.

A segment is the part of a log that one process wrote. A new segment begins where the iteration
number goes back or where the log says that a run was started. Every entry keeps its line number,
counted from 1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from stepglass.logs.bulk.boundaries import (
    add_boundaries,
    iterations_before,
    limit,
    note_evals,
    note_saves,
    share_room,
)
from stepglass.logs.bulk.nanogpt_lines import LineBlock
from stepglass.logs.bulk.run_log_lines import Stretch
from stepglass.logs.interleaved import nearest_run, run_that_goes_on
from stepglass.logs.log_format import LogFormat
from stepglass.logs.plausible import (
    ABSURD,
    ABSURD_LOSS,
    MOST_ITERS,
    is_absurd,
    sane,
    sane_phases,
)
from stepglass.logs.progress import mean_window, time_from_progress
from stepglass.logs.reader import Record
from stepglass.logs.repeats import Repeats
from stepglass.logs.segment import Eval, Event, Save, Segment
from stepglass.logs.table import COLUMNS, Table

# If the number goes back more often than this, it is probably not an iteration number.
MOST_SEGMENTS = 200
MOST_SETS = 16  # evaluation sets of one iteration
MOST_DOUBTFUL = 16


class Log:
    """Collects records, in the order of the log, into segments."""

    def __init__(self, new_table: Callable[[], Table] = Table) -> None:
        self._new_table = new_table
        self.format = LogFormat("")  # until it is known
        self.segments: list[Segment] = [Segment(table=new_table())]
        self.num_lines = 0
        self.num_understood = 0
        self._repeats = Repeats()
        # Evaluations as they were added: before the first step of a run, and equal to earlier ones.
        self._unplaced: list[tuple[Record, int, float | None]] = []
        self._doubtful: list[tuple[Record, int, float | None]] = []
        self._is_interleaved = False  # several runs write at the same time
        self.num_unseparated = 0  # runs that got no segment because there were too many already

    @property
    def current(self) -> Segment:
        return self.segments[-1]

    def add(self, record: Record, line: int, stamp: float | None) -> None:
        kind = record["kind"]
        if kind == "iter":
            self._add_iter(record, line, stamp)
        elif kind == "eval":
            self._add_eval(record, line, stamp)
        elif kind == "checkpoint":
            self._add_save(record, line, stamp)
        elif kind == "start":
            self._add_start(record, line)
        elif kind == "event":
            self._add_event(record, line)
        elif kind == "end":
            self.current.add_end({k: v for k, v in record.items() if k != "kind"})
            self.current.end_line = line
        if stamp is not None:
            self.current.first_stamp = self.current.first_stamp or stamp
            self.current.last_stamp = stamp

    def can_add_block(self, block: LineBlock) -> bool:
        """Do the block's iterations increase, starting after the last one added? If not, a run may
        have restarted or a line may be repeated, so the block must be added record by record."""
        segment, iters = self.current, block.iters
        if segment.last_iter is not None and iters[0] <= segment.last_iter:
            return False
        if not (iters[1:] > iters[:-1]).all():
            return False
        if not block.evals:
            return True
        evals = block.evals["iter"]
        if segment.eval_iters and evals[0] <= segment.eval_iters[-1]:
            return False
        passed, _ = iterations_before(block.evals["line"].astype(np.int64), segment, block)
        return bool((evals[1:] > evals[:-1]).all() and (evals >= passed).all())

    def add_block(self, block: LineBlock) -> None:
        """Add a block for which `can_add_block` is true, with its evaluations and checkpoints."""
        edges = block.take(np.array([0, len(block) - 1]))
        first, last = edges["iter"].astype(np.int64).tolist()
        segment = self._segment_for(first)
        if block.evals or block.saves or segment.evals:
            add_boundaries(segment, block)
            limit(segment)
        segment.table.add_block(block)
        self._repeats.passed(block.iters)
        segment.is_measured = True
        if segment.first_iter is None:
            segment.first_iter, segment.first_line = first, int(edges["line"][0])
        segment.last_iter, segment.last_line = last, int(edges["line"][1])
        if not segment.num_nan:
            segment.last_finite = (segment.last_line, last, float(edges["loss"][1]))

    def add_stretch(self, stretch: Stretch, first_line: int) -> None:
        """Add iterations of our own run log that increase and follow all earlier ones."""
        iters = stretch.iters
        stretch.columns["line"] = np.arange(first_line, first_line + len(iters), dtype=np.float64)
        segment = self._segment_for(int(iters[0]))
        if self._note_printed(segment, int(iters[0])):
            stretch.columns["explained"] = (np.arange(len(iters)) == 0).astype(np.float64)
        for phase, column in stretch.phases.items():
            segment.phases[phase] = segment.phases.get(phase, 0.0) + float(column.sum())
        segment.table.add_block(stretch)
        self._repeats.passed(iters)
        segment.is_measured |= bool(np.isfinite(stretch.columns["mfu"]).any())
        last_line = first_line + len(iters) - 1
        if segment.first_iter is None:
            segment.first_iter, segment.first_line = int(iters[0]), first_line
        segment.last_iter, segment.last_line = int(iters[-1]), last_line
        if not segment.num_nan:
            loss = float(stretch.columns["loss"][-1])
            segment.last_finite = (last_line, segment.last_iter, loss)

    def _segment_for(self, iteration: int, is_unmeasured: bool = False) -> Segment:
        """The segment of an iteration; a new one if the run has restarted.

        `is_unmeasured`: the process has not yet run long enough to know its MFU.
        """
        segment = self.current
        last = segment.last_iter
        if last is None and segment.eval_iters:
            last = segment.eval_iters[-1]  # a log may print evaluations alone
        goes_back = last is not None and iteration < last
        goes_back |= is_unmeasured and segment.is_measured
        doubtful, self._doubtful = self._doubtful, []
        if goes_back and not segment.is_empty() and self._has_room():
            following = Segment(table=self._new_table())
            following.config = dict(segment.config)  # likely unchanged: the log prints no others
            following.config_lines = dict(segment.config_lines)
            following.facts = dict(segment.facts)
            following.fact_lines = dict(segment.fact_lines)
            self._begin(following)
            for record, line, stamp in doubtful:  # they were of this run: it has the same seed
                if record["iter"] <= iteration:
                    self._add_eval(record, line, stamp)
        return self.current

    def _has_room(self) -> bool:
        has_room = len(self.segments) < MOST_SEGMENTS
        self.num_unseparated += not has_room
        return has_room

    def _begin(self, segment: Segment) -> None:
        share_room(self.segments)
        self.segments.append(segment)
        self._repeats = Repeats()

    def _add_iter(self, record: Record, line: int, stamp: float | None) -> None:
        record = {**record, **{k: sane(record.get(k), most) for k, most in ABSURD.items()}}
        if (other := run_that_goes_on(record, self.segments)) is not None:
            self._go_back_to(other)
        iteration = self._number_of(record)
        if iteration is None:
            return
        self._place_evals(iteration)
        segment = self._segment_for(iteration, bool(record.get("is_unmeasured")))
        segment.is_measured |= record.get("mfu") is not None
        window = mean_window(record, segment, iteration)
        if segment.first_iter is None:
            segment.first_iter, segment.first_line = iteration, line
        segment.last_iter, segment.last_line = iteration, line
        loss = record.get("loss")
        if loss is not None and abs(loss) > ABSURD_LOSS and np.isfinite(loss):
            loss = record["loss"] = None
        segment.note_loss(loss, iteration, line)
        segment.note_norm(record.get("grad_norm"), line)
        if record.get("is_policy"):
            segment.add_fact("objective", "reward", line)
        for name in ("train_ms", "val_ms", "wall_ms"):  # running totals of some trainers
            if record.get("train_ms") is not None and record.get(name) is not None:
                segment.facts[name] = record[name]
        phases = sane_phases(record, segment)
        for phase, ms in phases.items():
            segment.phases[phase] = segment.phases.get(phase, 0.0) + ms
        length = record.get("max_iters")
        if length is not None and not is_absurd(length):
            if not len(segment.table):
                segment.config.pop("max_iters", None)  # that of the run before
            segment.config.setdefault("max_iters", int(length))
            segment.config_lines["max_iters"] = segment.config_lines.get("max_iters", line)
        row = {name: record.get(name) for name in COLUMNS if name in record}
        row["explained"] = self._note_printed(segment, iteration)
        if record.get("time_ms") is None and not record.get("is_clock_only"):
            row["time_ms"], span = time_from_progress(record, segment, iteration)
            window = span or window
        row["window"] = window
        if segment.has_iter_numbers:  # without them, no clock gives the time of an iteration
            segment.note_elapsed(record.get("elapsed_s"), iteration, line)
        else:
            stamp = None
        if loss is not None and not np.isfinite(loss):
            row["loss"] = None
        segment.table.add({**row, "iter": iteration, "line": line, "stamp": stamp}, phases)

    def _number_of(self, record: Record) -> int | None:
        """The iteration's number: printed, or counted here. None if the record must be skipped: its
        number is absurd, or the line is another rank's copy."""
        iteration: int | None = record.get("global_iter", record.get("iter"))
        if iteration is None:
            if self._repeats.is_unnumbered_repeat(record):
                return None
            self.current.forget_numbers(self._new_table())
            return len(self.current.table)
        if not 0 <= iteration <= MOST_ITERS or self._repeats.is_iteration_repeat(iteration, record):
            return None
        return iteration

    def _go_back_to(self, segment: Segment) -> None:
        """Continue an earlier run."""
        self._is_interleaved = True
        self.segments.remove(segment)
        self.segments.append(segment)
        self._repeats = Repeats()
        self._repeats.passed(segment.table.column("iter"))

    def _note_printed(self, segment: Segment, iteration: int) -> float | None:
        """Update the segment for a printed iteration. Return 1 if the line before explains why it
        is slow."""
        if segment.eval_iters and iteration == segment.eval_iters[-1]:
            segment.num_printed_evals += 1
        was_explained, segment.is_explained = segment.is_explained, False
        return 1.0 if was_explained else None

    def _add_eval(self, record: Record, line: int, stamp: float | None) -> None:
        known: dict[str, Any] = {
            k: record.get(k) for k in ("train_loss", "val_loss", "val_se", "val_bpb", "time_ms")
        }
        known["set"] = record.get("set") or ""
        known["metrics"] = record.get("metrics")
        iteration = record.get("iter")
        known["has_number"] = iteration is not None and not record.get("is_placed")
        if iteration is None:
            if self.current.last_iter is None and not record.get("is_placed"):
                self._unplaced.append((record, line, stamp))
                return
            iteration = self.current.place_after_all(known["set"], known["val_loss"])
        elif self._is_interleaved:
            self._go_back_to(nearest_run(iteration, self.segments))
        if self._repeats.is_repeat(("eval", iteration, repr(known))):
            if self.current.last_iter is None or iteration < self.current.last_iter:
                self._doubtful = [*self._doubtful, (record, line, stamp)][-MOST_DOUBTFUL:]
            return
        segment = self.current
        if not segment.lacks_eval_of(iteration):
            segment = self._segment_for(iteration)
        segment.note_elapsed(record.get("elapsed_s"), iteration, line)
        same = [e for e in segment.evals[-MOST_SETS:] if e.iter == iteration]
        last = next((e for e in same if e.set == known["set"]), None)
        if last is not None:
            known["has_number"] |= last.has_number
            if known["time_ms"] is not None:
                segment.evals_ms += known["time_ms"] - (last.time_ms or 0.0)
            for name, value in known.items():
                if value is not None:
                    setattr(last, name, value)
            return
        if segment.first_line is None:
            segment.first_line = line
        segment.evals.append(Eval(line=line, iter=iteration, stamp=stamp, **known))
        segment.evals_ms += known["time_ms"] or 0.0
        if not same:
            note_evals(segment, [iteration])
        limit(segment)

    def _place_evals(self, iteration: int | None) -> None:
        """Add the evaluations before the first step of a run, whose own steps are unknown: with the
        number of that step, or counted if there is none."""
        unplaced, self._unplaced = self._unplaced, []
        for record, line, stamp in unplaced:
            self._add_eval({**record, "iter": iteration, "is_placed": True}, line, stamp)

    def _add_save(self, record: Record, line: int, stamp: float | None) -> None:
        segment = self.current
        iteration = record.get("iter")
        last = segment.evals[-1] if segment.evals else None
        if iteration is None:
            is_after = last is not None and (
                segment.last_iter is None
                or last.iter >= segment.last_iter
                or last.line > (segment.last_line or 0)
            )
            iteration = last.iter if last is not None and is_after else segment.last_iter
        if segment.saves and segment.saves[-1].iter == iteration is not None:
            return
        segment.saves.append(Save(line, iteration, record.get("time_ms"), stamp))
        segment.num_saves += 1
        segment.saves_ms += record.get("time_ms") or 0.0
        if iteration is not None:
            note_saves(segment, [iteration])
        if last is not None and last.iter == iteration:
            last.save_line = line
        limit(segment)

    def _add_start(self, record: Record, line: int) -> None:
        says_start = not {"init_from", "tokens_per_iter"}.isdisjoint(record) or record.get("config")
        if says_start and not self.current.is_empty() and self._has_room():
            self._begin(Segment(table=self._new_table()))
        segment = self.current
        for key, value in (record.get("config") or {}).items():
            if not is_absurd(value):
                segment.add_setting(key, value, line)
        for key, value in record.items():
            if key not in ("kind", "config") and value is not None and not is_absurd(value):
                segment.add_fact(key, value, line)

    def _add_event(self, record: Record, line: int) -> None:
        segment = self.current
        iteration = record.get("iter")
        if iteration is None:
            iteration = segment.last_iter
        segment.add_event(Event(line, record["name"], iteration, record))

    def finish(self) -> None:
        """Drop segments without training, such as the header of a run that never began."""
        self._place_evals(None)
        kept = [s for s in self.segments if s.is_worth_keeping]
        if kept and self.segments[-1] not in kept:  # what was said after the last iteration
            kept[-1].events += self.segments[-1].events
            kept[-1].num_events.update(self.segments[-1].num_events)
            kept[-1].end.update(self.segments[-1].end)
        if self._is_interleaved:
            kept.sort(key=lambda segment: segment.first_line or 0)
        self.segments = kept or self.segments[:1]
