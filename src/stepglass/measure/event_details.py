"""The details of each event: the key `detail` of an event record in run.jsonl.

log.write(event_record(400, SampleEvent(text="...")))
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, get_args

from stepglass.measure.records import EventRecord, Keyed


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUpEvent(Keyed):
    """The first batch has been run, and its result thrown away."""

    event_name: ClassVar[str] = "warmup"
    startup_ms: Annotated[float, "imports, checks and building"]
    compile_ms: Annotated[float | None, "null where nothing was compiled"]
    first_batch_ms: Annotated[float, "the first batch, compiled or not"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileFailedEvent(Keyed):
    """The model could not be compiled, and the run goes on without."""

    event_name: ClassVar[str] = "compile_failed"
    reason: Annotated[str, "the first line of the compiler's message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeEvent(Keyed):
    """The run goes on from a checkpoint."""

    event_name: ClassVar[str] = "resume"
    path: Annotated[str, "the checkpoint, relative to the run directory"]
    changed: Annotated[list[str], "what differs from the machine it was written on"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakEvent(Keyed):
    """The device's peak was measured again: a step had been faster than the first measurement."""

    event_name: ClassVar[str] = "peak"
    peak_flops: Annotated[float | None, "as in `start`"]
    peak_source: Annotated[str, "as in `start`"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFailedEvent(Keyed):
    """A checkpoint could not be written."""

    event_name: ClassVar[str] = "checkpoint_failed"
    step: Annotated[int, "updates done when it was begun"]
    reason: Annotated[str, "why"]
    failed: Annotated[int, "how many have failed so far"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWaitEvent(Keyed):
    """Training had to wait for the writer."""

    event_name: ClassVar[str] = "checkpoint_wait"
    step: Annotated[int, "of the checkpoint that was being written"]
    wait_ms: Annotated[float, "how long"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEvent(Keyed):
    """Text from the model, with the setting `sample_tokens`."""

    event_name: ClassVar[str] = "sample"
    text: Annotated[str, "what the model wrote"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalEvent(Keyed):
    """A signal ended the run."""

    event_name: ClassVar[str] = "signal"
    name: Annotated[str, "the signal's name, such as `SIGINT`"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFiniteEvent(Keyed):
    """A loss, a norm or a weight is no longer a number."""

    event_name: ClassVar[str] = "nan"
    what: Annotated[str, "which, and where"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemoryEvent(Keyed):
    """Memory has run out."""

    event_name: ClassVar[str] = "oom"
    message: Annotated[str, "the beginning of torch's message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedEvent(Keyed):
    """The run directory was moved, and the run has followed it."""

    event_name: ClassVar[str] = "moved"
    from_: Annotated[str, "where it was"]
    to: Annotated[str, "where it is"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderLostEvent(Keyed):
    """The run directory was deleted, or another run has begun in it."""

    event_name: ClassVar[str] = "folder_lost"
    why: Annotated[str | None, "which of the two"]
    saved_in: Annotated[str, "where the run saves instead"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartEvent(Keyed):
    """A process of the run was lost, and torchrun has started all of them again."""

    event_name: ClassVar[str] = "restart"
    restarts: Annotated[int, "how often so far"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksEvent(Keyed):
    """How long each of several processes has computed and waited, since the evaluation before."""

    event_name: ClassVar[str] = "ranks"
    compute_ms: Annotated[list[float], "by rank: computing its gradients, mean of an update"]
    wait_ms: Annotated[list[float], "by rank: then waiting for those of the others, and their sum"]
    communication_ms: Annotated[
        float | None, "the shortest wait of any process in an update, mean of these"
    ] = None
    eval_ms: Annotated[
        list[float] | None, "by rank: scoring its part of this evaluation, without waiting"
    ] = None
    updates: Annotated[
        int | None, "how many updates the means are of: the newest, at most 1000"
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceEvent(Keyed):
    """One of several processes gave no sign of life for a while, and the run went on."""

    event_name: ClassVar[str] = "silence"
    rank: Annotated[int, "which process"]
    silent_ms: Annotated[float, "for how long; a process gives a sign of life every second"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLostEvent(Keyed):
    """A process of the run has ended or does not answer, so the run ends."""

    event_name: ClassVar[str] = "process_lost"
    why: Annotated[str, "which process, and what is known about it"]


EventDetail = (
    WarmUpEvent
    | CompileFailedEvent
    | ResumeEvent
    | PeakEvent
    | CheckpointFailedEvent
    | CheckpointWaitEvent
    | SampleEvent
    | SignalEvent
    | NotFiniteEvent
    | OutOfMemoryEvent
    | MovedEvent
    | FolderLostEvent
    | RestartEvent
    | RanksEvent
    | SilenceEvent
    | ProcessLostEvent
)
EVENTS: dict[str, type[EventDetail]] = {cls.event_name: cls for cls in get_args(EventDetail)}


def event_record(iteration: int, detail: EventDetail) -> EventRecord:
    """The record of an event that happened after `iteration` updates."""
    return EventRecord(name=detail.event_name, iter=iteration, detail=detail.as_dict())
