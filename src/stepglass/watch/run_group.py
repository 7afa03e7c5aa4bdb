"""Several runs as one stream of events, for a page that compares them.

    EventStream(RunGroup([shared, other]), after=None, stopping=stopping)

A browser allows few connections to one server, so a page must not open one for each run. The names
of the events end with the run's place in the group (`rows-1`), and the id of an event has the ids
of all runs, so that a page can continue where it stopped.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from stepglass.report.live import LiveEvent
from stepglass.watch.event_stream import SharedRun

SEPARATOR = ","  # no id of a run contains it


class RunGroup:
    """Runs that are read by turns."""

    def __init__(self, shared: Sequence[SharedRun]) -> None:
        self._shared = shared

    @contextmanager
    def viewed(self) -> Iterator[None]:
        with ExitStack() as stack:
            for run in self._shared:
                stack.enter_context(run.viewed())
            yield

    async def missing(self, after: str | None, is_last: bool) -> list[LiveEvent]:
        """The events of all runs after `after`."""
        seen = self._ids(after)
        events = []
        for place, run in enumerate(self._shared):
            for event in await run.missing(seen[place], is_last):
                seen[place] = event.id
                all_ids = SEPARATOR.join(id_ or "" for id_ in seen)
                events.append(LiveEvent(all_ids, f"{event.name}-{place}", event.data))
        return events

    def has_news(self, after: str | None) -> bool:
        return any(
            run.has_news(id_) for run, id_ in zip(self._shared, self._ids(after), strict=True)
        )

    def is_behind(self) -> bool:
        return any(run.is_behind() for run in self._shared)

    def _ids(self, after: str | None) -> list[str | None]:
        """The last event seen of each run."""
        ids = (after or "").split(SEPARATOR)
        if len(ids) != len(self._shared):
            return [None] * len(self._shared)
        return [id_ or None for id_ in ids]
