"""What the advice is about: the settings, the model, the data, and what a run or log has measured.

The settings come from a recipe, config files and flags, as for `train`. A run or log goes before
them: its settings are the start, and its times replace those of the model of time.
"""

from dataclasses import dataclass, replace
from typing import Any

from stepglass import units
from stepglass.advise.asked_length import epochs_in_updates, with_one_length
from stepglass.advise.known_data import NEAREST_OF_NANOGPT, DataSize, data_size
from stepglass.advise.target import Target
from stepglass.errors import ConfigError, LogError, os_reason
from stepglass.explain.log_source import opened
from stepglass.explain.study import Part, study
from stepglass.logs import detect
from stepglass.measure.shapes import Shape, shape_of
from stepglass.settings.command_line import CommandLine, read_recipe, recipe_by_device, resolve
from stepglass.settings.nanogpt_defaults import NANOGPT
from stepglass.settings.schema import Given
from stepglass.settings.train import MODEL_KEYS, TRAIN_SETTINGS, TrainConfig

# Settings of one command, not of a model or its training.
OF_A_COMMAND = ("out_dir", "init_from", "eval_only", "watch", "device", "recipe", "log_to")
FACTORS = ("batch_size", "gradient_accumulation_steps")  # of the sequences in an update
# How far the speed of the tokens over that of the MFU may be from a whole number. Of more
# processes, every ratio is near to a whole number.
SURELY_WHOLE, MOST_PROCESSES = 0.04, 12
SAME_SIZE = 0.03  # how far a printed number of parameters may be off: it is rounded


@dataclass(frozen=True)
class Measured:
    """What a run or log shows. Times are milliseconds."""

    step_ms: float | None
    eval_ms: float | None
    mfu: float | None  # of the device's own peak, as a fraction
    cfg: TrainConfig  # the settings it was measured with


@dataclass(frozen=True)
class Subject:
    """What is to be trained."""

    cfg: TrainConfig
    shape: Shape
    data: DataSize
    fixed: frozenset[str]  # settings that flags give: the advice keeps them
    sequences: int  # in an update, before flags change one of its two factors
    words: tuple[str, ...]  # what to type after `stepglass train` for these settings
    measured: Measured | None = None
    was_tried: bool = False  # `--measure` has found the fastest batch
    log_name: str | None = None
    has_found_processes: bool = False  # nproc follows from the MFU that a log prints
    oom_batch: int | None = None  # the batch_size with which the run ran out of memory

    def on_another_device(self) -> "Subject":
        """Without the times and the memory: they are another device's."""
        if self.measured is None:
            return self
        unknown = replace(self.measured, step_ms=None, eval_ms=None, mfu=None)
        cfg = self.cfg if "nproc" in self.fixed else replace(self.cfg, nproc=1)
        return replace(self, cfg=cfg, measured=unknown, oom_batch=None)

    @property
    def wanted_sequences(self) -> int:
        """In an update, as flags want it."""
        return sequences_of(self.cfg) if self.fixed.issuperset(FACTORS) else self.sequences

    def flops_per_update(self, cfg: TrainConfig) -> float:
        """The floating-point operations that this model needs for an update of these settings."""
        return float(cfg.tokens_per_iter * self.shape.flops_per_token())


def read_part(name: str, device: str | None) -> Part:
    """The last run of a log that has times."""
    path, file = opened(name)
    with file:
        try:
            log = detect.read_log(file, path)
        except OSError as error:
            raise LogError(f"{path}: {os_reason(error)}") from error
    parts = study(log, device).parts
    timed = [part for part in parts if part.timing.normal_ms is not None]
    return (timed or parts)[-1]


def from_settings(command: CommandLine, target: Target, words: list[str]) -> Subject:
    """What a recipe, config files and flags describe."""
    recipe = command.value("recipe")
    if command.wants_recipe_by_device():
        recipe = recipe_by_device(target.kind, command.value("model"))
    recipe = "none" if recipe == "auto" else recipe
    cfg = resolve(command, recipe, _no_run)
    is_said = command.is_given("recipe") or recipe == "none"
    typed = tuple(words) if is_said else (f"--recipe={recipe}", *words)
    flags = {key: item for key, item in command.flags.items() if key not in FACTORS}
    before = resolve(replace(command, flags=flags), recipe, _no_run)
    return _subject(cfg, before, {}, frozenset(command.flags), typed)


def from_log(command: CommandLine, name: str, part: Part) -> Subject:
    """What a log shows, changed by a recipe, config files and flags."""
    said = _settings_of(part)
    recipe = command.value("recipe")
    base = {} if recipe == "auto" else read_recipe(recipe)
    if part.format.has_nanogpt_settings and not part.format.is_run_log:
        # A recipe describes the model; what it leaves open has nanoGPT's defaults.
        defaults = {key: Given(NANOGPT[key], "nanoGPT's defaults") for key in NANOGPT}
        defaults |= {"model": Given("gpt2", "nanoGPT's model")} | base
        base = {key: item for key, item in defaults.items() if key not in OF_A_COMMAND}
    flags = {key: item for key, item in command.flags.items() if key not in OF_A_COMMAND}
    files = {key: item for key, item in command.files.items() if key not in OF_A_COMMAND}
    kept = with_one_length(said, command)
    cfg: TrainConfig = TRAIN_SETTINGS.build(base | kept | files | flags)
    ran: TrainConfig = TRAIN_SETTINGS.build(base | flags | files | said)
    others = {key: item for key, item in flags.items() if key not in FACTORS}
    before: TrainConfig = TRAIN_SETTINGS.build(base | kept | files | others)
    is_described = bool(files) or recipe != "auto" or command.is_given("n_layer")
    is_nanogpts = part.format.name == "nanogpt" and names_nanogpts_data(command, recipe)
    subject = _subject(cfg, before, part.segment.facts, frozenset(flags), (), is_nanogpts)
    _check_model(subject, part, name, is_described)
    _check_tokens(ran, part, name)
    timing = part.timing
    found = processes_of(part, subject.flops_per_update(ran))
    ran = replace(ran, nproc=found or ran.nproc)
    if found and "nproc" not in subject.fixed:
        subject = replace(subject, cfg=replace(subject.cfg, nproc=found))
    mfu = part.mfu.corrected
    has_same_model = all(getattr(cfg, key) == getattr(ran, key) for key in MODEL_KEYS)
    measured = Measured(
        (timing.normal_ms or None) if has_same_model else None,
        timing.eval_ms if has_same_model else None,
        None if mfu is None else mfu / 100,
        ran,
    )
    is_oom = part.error is not None and part.error.name == "oom"
    return replace(
        subject,
        measured=measured,
        log_name=units.printable(name),
        has_found_processes=found is not None and not part.format.is_run_log,
        oom_batch=ran.batch_size if is_oom else None,
    )


def sequences_of(cfg: TrainConfig) -> int:
    return cfg.batch_size * cfg.gradient_accumulation_steps


def processes_of(part: Part, flops: float) -> int | None:
    """The number of processes of a log. nanoGPT does not print it, but the MFU of one process and
    the tokens of all. `flops` are those of an update."""
    said = part.fact("processes")
    if part.format.is_run_log:
        return int(said) if said else None
    each, ms = part.mfu.achieved_tflops, part.timing.normal_ms
    if not part.format.has_nanogpt_settings or not each or not ms:
        return None
    ratio = flops / (ms / 1000) / (each * 1e12)
    count = round(ratio)
    is_whole = count >= 1 and abs(ratio / count - 1) <= SURELY_WHOLE
    return count if is_whole and count <= MOST_PROCESSES else None


def _subject(
    cfg: TrainConfig,
    before: TrainConfig,
    facts: dict[str, Any],
    fixed: frozenset[str],
    words: tuple[str, ...],
    is_nanogpts: bool = False,
) -> Subject:
    data = data_size(cfg.dataset, facts, is_nanogpts)
    cfg = epochs_in_updates(cfg, data.train_tokens)
    try:
        shape = shape_of(cfg, data.vocab_size)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return Subject(cfg, shape, data, fixed, sequences_of(before), words)


def names_nanogpts_data(command: CommandLine, recipe: str) -> bool:
    """Does the data set's name come from nanoGPT: from its log, its defaults or its config file?"""
    if command.is_given("dataset"):
        is_file = "dataset" in command.files and "dataset" not in command.flags
        return is_file and ".py" in command.files["dataset"].place
    return command.has_nanogpt_file or recipe in ("auto", "none")


def for_nanogpt(subject: Subject, facts: dict[str, Any], is_nanogpts: bool) -> Subject:
    """The subject with the data set that nanoGPT has. `is_nanogpts`: it is named as there."""
    name = subject.cfg.dataset
    name = name if is_nanogpts else NEAREST_OF_NANOGPT.get(name, name)
    data = data_size(name, facts, is_nanogpts=True)
    cfg = replace(subject.cfg, dataset=name)
    return replace(subject, cfg=cfg, data=data, shape=shape_of(cfg, data.vocab_size))


def _settings_of(part: Part) -> dict[str, Given]:
    """The settings that a log prints, without those that `train` would not take."""
    found = {}
    for key, value in part.segment.config.items():
        if key in TRAIN_SETTINGS and key not in OF_A_COMMAND:
            try:
                found[key] = TRAIN_SETTINGS.given(key, value, "the log")
            except ConfigError:
                continue
    return found


def _check_model(subject: Subject, part: Part, name: str, is_described: bool) -> None:
    """Raise ConfigError unless the log or the command line says what the model is."""
    how = "describe it: --recipe=gpt2, a config file, or --n_layer, --n_head and --n_embd"
    printed, assumed = part.fact("parameters"), subject.shape.num_params_shown()
    if printed and abs(printed - assumed) > SAME_SIZE * printed:
        raise ConfigError(
            f"{name}: expected a model of {printed / 1e6:.2f}M parameters as in the log, found "
            f"settings for {assumed / 1e6:.2f}M; {how}"
        )
    is_known = printed is not None or "n_layer" in part.segment.config
    if not is_known and not is_described:
        raise ConfigError(f"{name}: the log does not say what the model is; {how}")


def _check_tokens(ran: TrainConfig, part: Part, name: str) -> None:
    """Raise ConfigError if the log contradicts the settings that it was made with."""
    printed = part.fact("tokens_per_iter")
    if printed and round(printed) != ran.tokens_per_iter:
        raise ConfigError(
            f"{name}: the log says {printed:,.0f} tokens per iteration, and batch_size="
            f"{ran.batch_size}, block_size={ran.block_size}, gradient_accumulation_steps="
            f"{ran.gradient_accumulation_steps} make {ran.tokens_per_iter:,}; add those of the run"
        )


def _no_run(_: object) -> dict[str, Given]:
    raise ConfigError(
        "--init_from=resume: advise reads a run itself; name its folder: stepglass advise RUN"
    )
