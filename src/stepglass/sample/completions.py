"""Texts that are generated together, each until its own end.

    texts = Completions(model, tokenizer)
    one = texts.start(Wanted(ids, max_new_tokens=100, draw=Draw(), stop=("\\n\\n",)))
    while len(texts):
        for completion, text in texts.step(): ...     # completion.reason says why one has ended

A text ends after `max_new_tokens` tokens, before the first of its stop strings, or at a token of
`ends`. A stop string may begin in one token and end in another: what could be its beginning is
held back until that is clear.
"""

from dataclasses import dataclass
from typing import Literal

from stepglass.data.tokenizer import Tokenizer
from stepglass.models.batch_decoding import DecodingBatch, Sequence
from stepglass.models.decoding import Draw
from stepglass.models.model import Model
from stepglass.sample.text import TextStream

Reason = Literal["stop", "length"]


@dataclass(frozen=True)
class Wanted:
    """A text that is asked for: what it goes on from, and when it ends."""

    ids: list[int]
    max_new_tokens: int
    draw: Draw
    stop: tuple[str, ...] = ()
    ends: frozenset[int] = frozenset()  # tokens that end the text


class StopStrings:
    """Passes text on up to the first stop string."""

    def __init__(self, stop: tuple[str, ...]) -> None:
        self._stop = tuple(filter(None, stop))
        self._held = ""
        self.is_reached = False

    def pass_on(self, text: str) -> str:
        """The text that certainly comes before a stop string.

        >>> stop = StopStrings(("END", "\\n\\n"))
        >>> stop.pass_on("the E"), stop.pass_on("N"), stop.pass_on("emy\\n"), stop.pass_on("END of")
        ('the ', '', 'ENemy', '\\n')
        >>> stop.is_reached
        True
        """
        text = self._held + text
        found = [place for place in map(text.find, self._stop) if place >= 0]
        if found:
            self.is_reached, self._held = True, ""
            return text[: min(found)]
        num_held = max((self._overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - num_held :]
        return text[: len(text) - num_held]

    def rest(self) -> str:
        """What was held back, at the end of the text."""
        return self._held

    @staticmethod
    def _overlap(text: str, stop: str) -> int:
        """How much of the end of the text is the beginning of a stop string."""
        most = min(len(text), len(stop) - 1)
        return next((n for n in range(most, 0, -1) if text.endswith(stop[:n])), 0)


class Completion:
    """A text in the making."""

    def __init__(self, wanted: Wanted, tokenizer: Tokenizer) -> None:
        self.wanted = wanted
        self.num_tokens = 0
        self.reason: Reason | None = None  # why it has ended
        self._stream = TextStream(tokenizer)
        self._stop = StopStrings(wanted.stop)

    def add(self, token: int) -> str:
        """The text that is certain after this token. Sets `reason` if the text ends."""
        self.num_tokens += 1
        if token in self.wanted.ends:
            self.reason = "stop"
            return self.rest()
        text = self._stop.pass_on(self._stream.text(token))
        if not self._stop.is_reached and self.num_tokens >= self.wanted.max_new_tokens:
            self.reason = "length"
            text += self.rest()
        if self._stop.is_reached:
            self.reason = "stop"
        return text

    def rest(self) -> str:
        """The text that was not certain yet, if no more tokens come."""
        text = self._stop.pass_on(self._stream.rest())
        return text + self._stop.rest()


class Completions:
    """Texts that one model generates at the same time. New ones may start at any step."""

    def __init__(self, model: Model, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._batch = DecodingBatch(model, tokenizer.vocab_size)
        self._going_on: dict[Sequence, Completion] = {}

    def __len__(self) -> int:
        return len(self._going_on)

    def start(self, wanted: Wanted) -> Completion:
        completion = Completion(wanted, self._tokenizer)
        self._going_on[self._batch.add(wanted.ids, wanted.draw)] = completion
        return completion

    def step(self) -> list[tuple[Completion, str]]:
        """One more token of each text. Texts that have ended leave."""
        news = []
        for sequence, token in self._batch.step():
            completion = self._going_on[sequence]
            news.append((completion, completion.add(token)))
            if completion.reason is not None:
                self._leave(sequence)
        return news

    def give_up(self, completion: Completion) -> None:
        """Nobody waits for this text any more."""
        for sequence, other in list(self._going_on.items()):
            if other is completion:
                self._leave(sequence)

    def _leave(self, sequence: Sequence) -> None:
        del self._going_on[sequence]
        self._batch.remove(sequence)
