"""`load` and `sample` for programs: text from a trained run."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from stepglass.api.log_columns import ColumnLog, Explanation, Language, read
from stepglass.errors import naming_missing_packages
from stepglass.settings.sample import SAMPLE_SETTINGS

if TYPE_CHECKING:
    from stepglass.sample.completions import Wanted
    from stepglass.sample.load import Sampler


class SampleOptions(TypedDict, total=False):
    """The settings of `stepglass sample` that shape a text, with its defaults."""

    max_new_tokens: int
    temperature: float
    top_k: int
    top_p: float
    seed: int
    stop: str | Sequence[str]


class TrainedRun:
    """The folder of a run. Its best model is loaded when it is first used."""

    def __init__(self, path: str | Path = "out", device: str = "auto") -> None:
        self.path = Path(path)
        self.device = device

    def __repr__(self) -> str:
        return f"TrainedRun({str(self.path)!r})"

    def read(self) -> ColumnLog:
        """Its run log as columns."""
        return read(self.path)

    def explain(self, lang: Language = "en") -> Explanation:
        """What its run log means."""
        return self.read().explain(lang)

    def sample(self, prompt: str = "\n", **options: Unpack[SampleOptions]) -> str:
        """Text that goes on from a prompt, without the prompt."""
        return "".join(self.stream(prompt, **options))

    def samples(self, prompts: Sequence[str], **options: Unpack[SampleOptions]) -> list[str]:
        """Text for each prompt. They are generated together, which is faster. The seed of each is
        one more than that of the one before."""
        loaded = self.loaded  # before the imports: it says what is missing
        from stepglass.sample.many import complete_all  # noqa: PLC0415

        wanted = [self._wanted(prompt, number, options) for number, prompt in enumerate(prompts)]
        return list(complete_all(loaded, wanted))

    def stream(self, prompt: str = "\n", **options: Unpack[SampleOptions]) -> Iterator[str]:
        """The same text as `sample`, piece by piece."""
        loaded = self.loaded
        from stepglass.sample.completions import Completions  # noqa: PLC0415

        texts = Completions(loaded.model, loaded.tokenizer)
        texts.start(self._wanted(prompt, 0, options))
        while len(texts):
            for _, text in texts.step():
                yield text

    @cached_property
    def loaded(self) -> "Sampler":
        """The model and its tokenizer."""
        with naming_missing_packages():
            import torch  # noqa: PLC0415

            from stepglass.hardware import choose  # noqa: PLC0415
            from stepglass.sample.load import load_run  # noqa: PLC0415

            kind, _ = choose.pick_type(self.device)
            return load_run(self.path, torch.device(kind), on_skip=print)

    def _wanted(self, prompt: str, number: int, options: SampleOptions) -> "Wanted":
        loaded = self.loaded
        from stepglass.sample.many import wanted_text  # noqa: PLC0415

        given = {
            name: SAMPLE_SETTINGS.given(name, value, name)
            for name, value in options.items()
            if name != "stop"
        }
        stop = options.get("stop", ())
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        return wanted_text(loaded, prompt, SAMPLE_SETTINGS.build(given), stops, number)


def load(run: str | Path = "out", device: str = "auto") -> TrainedRun:
    """A run, whose model is loaded when it is first used."""
    return TrainedRun(run, device)


def sample(run: str | Path, prompt: str = "\n", **options: Unpack[SampleOptions]) -> str:
    """Text that the best model of a run writes after a prompt."""
    return load(run).sample(prompt, **options)
