"""Several texts at the same time, and in the order in which they were asked for."""

from collections import deque
from collections.abc import Iterable, Iterator

from stepglass.models.decoding import Draw
from stepglass.sample.completions import Completion, Completions, Wanted
from stepglass.sample.load import Sampler
from stepglass.sample.text import encode_prompt
from stepglass.settings.sample import SampleConfig

TOGETHER = 16  # texts that are generated at the same time

Piece = tuple[str, bool]  # of a text, and whether it is the last one


def draw_of(cfg: SampleConfig, number: int) -> Draw:
    """How the tokens of a text are chosen. `number` is added to the seed."""
    return Draw(cfg.temperature, cfg.top_k, cfg.top_p, (cfg.seed + number) % 2**63)


def wanted_text(
    loaded: Sampler, prompt: str, cfg: SampleConfig, stop: tuple[str, ...], number: int
) -> Wanted:
    """The text that goes on from a prompt."""
    ids = encode_prompt(prompt, loaded.tokenizer)
    return Wanted(ids, cfg.max_new_tokens, draw_of(cfg, number), stop)


def in_order(loaded: Sampler, wanted: Iterable[Wanted], together: int) -> Iterator[Piece]:
    """The pieces of all texts, one text after the other, though up to `together` are generated at
    the same time. A new text starts as soon as another one has ended."""
    texts = Completions(loaded.model, loaded.tokenizer)
    left = iter(wanted)
    pieces: dict[Completion, list[str]] = {}
    waiting: deque[Completion] = deque()
    while True:
        while len(texts) < together and (one := next(left, None)) is not None:
            waiting.append(texts.start(one))
            pieces[waiting[-1]] = []
        if not waiting:
            return
        for completion, text in texts.step():
            pieces[completion].append(text)
        while waiting:
            first = waiting[0]
            yield "".join(pieces[first]), first.reason is not None
            pieces[first].clear()
            if first.reason is None:
                break
            waiting.popleft()


def complete_all(
    loaded: Sampler, wanted: Iterable[Wanted], together: int = TOGETHER
) -> Iterator[str]:
    """The texts."""
    parts: list[str] = []
    for text, is_end in in_order(loaded, wanted, together):
        parts.append(text)
        if is_end:
            yield "".join(parts)
            parts.clear()
