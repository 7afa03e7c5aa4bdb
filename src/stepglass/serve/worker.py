"""Generates the texts of all requests together, in a thread of its own.

    worker = TextWorker(loaded)
    ticket = worker.ask(wanted, tell)    # calls `tell` from its thread, for each piece of text
    worker.give_up(ticket)               # nobody is waiting any more
    worker.close()

Requests that come while others are being answered join them at the next token. If there are too
many, they wait; if too many wait, they are refused.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from stepglass.errors import StepglassError
from stepglass.sample.completions import Completion, Completions, Reason, Wanted
from stepglass.sample.load import Sampler

MOST_TOGETHER = 16
MOST_WAITING = 64


class TooBusy(Exception):
    """Too many requests are waiting already."""


@dataclass(frozen=True)
class News:
    """More of a text. With the last of it, the reason why it ends, or an error."""

    text: str
    reason: Reason | None
    num_tokens: int
    error: str | None = None


Tell = Callable[[News], None]


@dataclass(eq=False)
class Ticket:
    """A request in the worker's hands."""

    wanted: Wanted
    tell: Tell
    completion: Completion | None = None  # None while it waits
    is_given_up: bool = False


class TextWorker:
    """The thread that uses the model. Nothing else may."""

    def __init__(self, loaded: Sampler) -> None:
        self._loaded = loaded
        self._changed = threading.Condition()
        self._waiting: deque[Ticket] = deque()
        self._answered: list[Ticket] = []
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="serve", daemon=True)
        self._thread.start()

    def ask(self, wanted: list[Wanted], tell: Callable[[int, News], None]) -> list[Ticket]:
        """Ask for texts. `tell` gets the number of the text, and must return at once."""
        tickets = [
            Ticket(one, lambda news, number=number: tell(number, news))  # type: ignore[misc]
            for number, one in enumerate(wanted)
        ]
        with self._changed:
            if len(self._waiting) + len(tickets) > MOST_WAITING:
                raise TooBusy
            self._waiting.extend(tickets)
            self._changed.notify()
        return tickets

    def give_up(self, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            ticket.is_given_up = True

    def close(self) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        texts = Completions(self._loaded.model, self._loaded.tokenizer)
        while not self._is_closing:
            try:
                self._take_new(texts)
                self._tell_all(texts.step())
            except Exception as error:  # noqa: BLE001 - the next requests may be all right
                self._fail(error)
                texts = Completions(self._loaded.model, self._loaded.tokenizer)

    def _take_new(self, texts: Completions) -> None:
        """Let waiting requests join, and those that were given up leave. Waits for a request if
        there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._answered or self._is_closing)
            new: list[Ticket] = []
            while self._waiting and len(self._answered) + len(new) < MOST_TOGETHER:
                new.append(self._waiting.popleft())
        for ticket in self._answered:
            if ticket.is_given_up and ticket.completion is not None:
                texts.give_up(ticket.completion)
        self._answered = [ticket for ticket in self._answered + new if not ticket.is_given_up]
        for ticket in self._answered:
            ticket.completion = ticket.completion or texts.start(ticket.wanted)

    def _tell_all(self, news: list[tuple[Completion, str]]) -> None:
        by_completion = {ticket.completion: ticket for ticket in self._answered}
        for completion, text in news:
            if text or completion.reason:
                said = News(text, completion.reason, completion.num_tokens)
                by_completion[completion].tell(said)
        self._answered = [t for t in self._answered if t.completion and not t.completion.reason]

    def _fail(self, error: Exception) -> None:
        is_known = isinstance(error, StepglassError)
        what = str(error) if is_known else f"the model failed: {type(error).__name__}: {error}"
        tickets, self._answered = self._answered, []
        for ticket in tickets:
            ticket.tell(News("", None, 0, what))
