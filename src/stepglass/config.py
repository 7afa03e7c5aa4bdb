"""What a training run can be told, and how the answer is put together.

Order: defaults < recipe (or, when resuming, the run's own settings) < config files < flags. Names
and defaults are nanoGPT's, but for the model, its optimizer and when to evaluate; where a meaning
is a trap, the help says what we do. Nothing here allocates, imports torch or touches a device: a
wrong setting ends the run before it has begun.
"""

import dataclasses
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from stepglass import atomic, interval, loggers, nanogpt_config
from stepglass.errors import CheckpointError, ConfigError, os_reason
from stepglass.settings import Given, Settings, setting

MODEL_KEYS = (
    "model",
    "n_layer",
    "n_head",
    "n_kv_head",
    "n_embd",
    "n_inner",
    "block_size",
    "bias",
    "tie_weights",
    "optimizer",
)
# Change one of these in mid-run and it goes on, but not as the unbroken run would have.
EXACT_KEYS = (
    "gradient_accumulation_steps",
    "batch_size",
    "dropout",
    "learning_rate",
    "embedding_lr",
    "muon_lr",
    "muon_momentum",
    "weight_decay",
    "beta1",
    "beta2",
    "grad_clip",
    "decay_lr",
    "warmup_iters",
    "lr_schedule",
    "lr_decay_iters",
    "cooldown_iters",
    "min_lr",
    "seed",
)
MAX_CONFIG_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything `stepglass train` can be told."""

    out_dir: str = setting("out", "the run directory: log, checkpoints, settings", is_path=True)
    eval_interval: int | Literal["auto"] = setting(
        "auto",
        "evaluate every so many iterations, and at the end; auto: as often as eval_budget allows",
        minimum=1,
    )
    eval_budget: float = setting(
        0.05, "the share of the run that eval_interval=auto may take", above=0, maximum=0.9
    )
    target_val_loss: float = setting(
        0.0,
        "stop, with a checkpoint, at the first evaluation at or below this, over the whole "
        "validation split; 0: none",
        minimum=0,
    )
    log_interval: int = setting(
        1, "print every so many iterations; the run log has all of them", minimum=1
    )
    eval_iters: int = setting(
        200,
        "batches in an evaluation of each split, always the same ones; the whole split if it has "
        "fewer",
        minimum=1,
    )
    eval_only: bool = setting(False, "evaluate once and stop")
    sample_tokens: int = setting(
        0,
        "at every evaluation, write so many tokens of text into the run log, for its page; 0: none",
        minimum=0,
    )
    always_save_checkpoint: bool = setting(
        False,
        "True: save after every evaluation, as nanoGPT does; False: after one that is the best so "
        "far. Beside what checkpoint_interval says",
    )
    checkpoint_interval: int | str = setting(
        "auto",
        "save every so many iterations (500) or every so often (90s, 10m, 2h); auto: at most 2 "
        "minutes of work at risk, stalls under 1 % of the time",
    )
    keep_last: int = setting(2, "checkpoints to keep beside the best one", minimum=2)
    keep_every: int = setting(
        0, "save at every so many iterations and never delete those; 0: none", minimum=0
    )
    init_from: str = setting(
        "scratch", "scratch, or resume: go on from the newest checkpoint in out_dir"
    )
    log_to: str = setting(
        "",
        "where numbers go beside run.jsonl: tensorboard, wandb, trackio, or several of them with "
        "commas",
    )
    watch: bool = setting(False, "serve the live page beside the run, on 127.0.0.1")
    wandb_log: bool = setting(False, "nanoGPT's switch for wandb: the same as wandb in log_to")
    wandb_project: str = setting("owt", "project in wandb and trackio")
    wandb_run_name: str = setting("gpt2", "name of the run in wandb and trackio")
    dataset: str = setting(
        "openwebtext",
        "a folder in data/, made by `stepglass prepare` or by nanoGPT",
        is_path=True,
    )
    gradient_accumulation_steps: int = setting(
        40, "micro-batches in one update", minimum=1, maximum=1_000_000
    )
    batch_size: int = setting(12, "sequences in a micro-batch", minimum=1)
    block_size: int = setting(
        1024, "tokens in a sequence: the longest context the model sees", minimum=1
    )
    model: Literal["modern", "gpt2"] = setting(
        "modern",
        "architecture: modern is Qwen3's; gpt2 is nanoGPT's and OpenAI's, and what a nanoGPT "
        "config file means",
    )
    n_layer: int = setting(12, "transformer blocks", minimum=1, maximum=10_000)
    n_head: int = setting(12, "attention heads; must divide n_embd", minimum=1)
    n_kv_head: int = setting(
        0, "modern: heads of keys and values, shared by the others; 0: n_head", minimum=0
    )
    n_embd: int = setting(768, "width of the model", minimum=1, maximum=1_000_000)
    n_inner: int = setting(
        0, "modern: width of the MLP; 0: 8/3 of n_embd", minimum=0, maximum=10_000_000
    )
    tie_weights: bool = setting(False, "modern: one matrix for embeddings and head; gpt2 always")
    dropout: float = setting(
        0.0, "share of activations dropped in training", minimum=0, maximum=0.99
    )
    bias: bool = setting(False, "gpt2: biases in Linear and LayerNorm")
    optimizer: Literal["auto", "muon", "adamw"] = setting(
        "auto",
        "muon: for the matrices inside the blocks, AdamW for the rest; auto: muon for modern, "
        "adamw for gpt2",
    )
    learning_rate: float = setting(
        6e-4, "AdamW's peak learning rate, reached after the warm-up", above=0
    )
    embedding_lr: float = setting(
        0.0,
        "AdamW's peak learning rate for a token table that is not the head as well; 0: "
        "learning_rate",
        minimum=0,
    )
    muon_lr: float = setting(0.02, "Muon's peak learning rate; follows the same schedule", above=0)
    muon_momentum: float = setting(0.95, "Muon's momentum", minimum=0, maximum=0.999)
    max_iters: int = setting(600_000, "exactly so many updates (nanoGPT does one more)", minimum=0)
    weight_decay: float = setting(0.1, "decay of matrices and embeddings", minimum=0)
    beta1: float = setting(0.9, "AdamW's first beta", minimum=0, maximum=0.999999)
    beta2: float = setting(0.95, "AdamW's second beta", minimum=0, maximum=0.999999)
    grad_clip: float = setting(1.0, "clip the gradient's norm at this; 0: do not", minimum=0)
    decay_lr: bool = setting(True, "warm up and decay the learning rate; False: keep it constant")
    warmup_iters: int = setting(2000, "iterations of linear warm-up", minimum=0)
    lr_schedule: Literal["cosine", "trapezoid"] = setting(
        "cosine", "after the warm-up: nanoGPT's cosine; or flat, then linear down"
    )
    cooldown_iters: int = setting(
        0, "trapezoid: iterations of the way down, which ends at lr_decay_iters", minimum=0
    )
    lr_decay_iters: int = setting(
        600_000, "iteration at which min_lr is reached; usually max_iters", minimum=1
    )
    min_lr: float = setting(6e-5, "learning rate at the end of the decay", minimum=0)
    backend: str = setting("nccl", "nanoGPT's process group backend; one process needs none")
    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "auto", "number format of matrix work"
    )
    compile: bool | Literal["auto"] = setting(
        "auto", "torch.compile the model; auto: where it pays"
    )
    seed: int = setting(
        1337,
        "batches, initial weights and dropout all follow from it",
        minimum=0,
        maximum=2**63 - 1,
    )
    recipe: str = setting(
        "auto", "named settings to start from; auto: by device when no config file is given"
    )

    def used(self) -> list[str]:
        """The settings this run will use: only these are held to their ranges."""
        schedule = {"warmup_iters", "lr_decay_iters", "cooldown_iters", "min_lr"}
        unused = set() if self.decay_lr else schedule
        if not self.uses_muon:
            unused |= {"muon_lr", "muon_momentum"}
        return [field.name for field in dataclasses.fields(self) if field.name not in unused]

    def check(self) -> None:
        """Hold settings against each other."""
        if self.n_embd % self.n_head:
            raise ConfigError(
                f"n_head={self.n_head} must divide n_embd={self.n_embd}; change one of them"
            )
        if self.model == "modern" and self.n_embd // self.n_head % 2:
            raise ConfigError(
                f"model=modern turns pairs: n_embd={self.n_embd} over n_head={self.n_head} must be "
                f"even; change one of them"
            )
        if self.model == "modern" and self.n_head % (self.n_kv_head or self.n_head):
            raise ConfigError(
                f"n_kv_head={self.n_kv_head} must divide n_head={self.n_head}; change one of them"
            )
        if self.decay_lr and self.lr_schedule == "trapezoid" and not self.cooldown_iters:
            raise ConfigError(
                "lr_schedule=trapezoid expects cooldown_iters above 0, found 0; half of max_iters "
                "is usual"
            )
        if self.model == "modern" and self.bias:
            raise ConfigError("bias=True: the modern model has none; leave it out, or --model=gpt2")
        for key in ("n_kv_head", "n_inner"):
            if self.model == "gpt2" and getattr(self, key):
                raise ConfigError(f"{key} is for --model=modern; leave it out")
        interval.parse(self.checkpoint_interval)
        loggers.parse(self.log_to)
        if not self.out_dir:
            raise ConfigError("out_dir expects a folder, found ''")

    @property
    def uses_muon(self) -> bool:
        return self.optimizer == "muon" or (self.optimizer == "auto" and self.model == "modern")

    @property
    def logger_names(self) -> list[str]:
        names = loggers.parse(self.log_to)
        return [*names, "wandb"] if self.wandb_log and "wandb" not in names else names

    @property
    def tokens_per_iter(self) -> int:
        return self.gradient_accumulation_steps * self.batch_size * self.block_size


TRAIN_SETTINGS = Settings(TrainConfig)


@dataclass(frozen=True)
class CommandLine:
    """A `stepglass train` command line, read but not yet joined with a recipe."""

    files: dict[str, Given]
    flags: dict[str, Given]
    has_files: bool

    def value(self, key: str) -> Any:
        """A setting as the user gave it, else its default."""
        item = self.flags.get(key) or self.files.get(key)
        return item.value if item else TRAIN_SETTINGS.default(key)

    def is_given(self, key: str) -> bool:
        return key in self.flags or key in self.files

    def wants_recipe_by_device(self) -> bool:
        return (
            self.value("recipe") == "auto"
            and not self.has_files
            and self.value("init_from") != "resume"
        )


def read_command_line(argv: list[str]) -> CommandLine:
    """Words are config files (.toml, .py) or the name of a data set; the rest is `--key=value`."""
    words, flags = TRAIN_SETTINGS.parse(argv)
    files: dict[str, Given] = {}
    has_files = False
    for word in words:
        if word.endswith((".toml", ".py")):
            has_files = True
            files |= read_config_file(Path(word), {key: item.value for key, item in files.items()})
        elif "dataset" in flags:
            raise ConfigError(f"two data sets: {flags['dataset'].value!r} and {word!r}; keep one")
        else:
            flags["dataset"] = Given(word, "data set")
    command = CommandLine(files, flags, has_files)
    is_nanogpts = any(word.endswith(".py") for word in words)
    if is_nanogpts and command.value("init_from") != "resume":
        # nanoGPT has one model, and no name for it
        files.setdefault("model", Given("gpt2", "nanoGPT's config file"))
    return CommandLine(files, flags, has_files)


def read_config_file(path: Path, known: dict[str, Any]) -> dict[str, Given]:
    """The settings in a TOML file or in one of nanoGPT's `.py` files, which is read, never run."""
    try:
        if not path.is_file():
            raise ConfigError(
                f"{path}: expected a config file, found "
                f"{'a folder' if path.is_dir() else 'nothing'}"
            )
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(
                f"{path}: expected a config file under 1 MB, found {path.stat().st_size} bytes"
            )
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {os_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: expected UTF-8 text, found byte 0x{error.object[error.start]:02x}"
        ) from error
    if path.suffix == ".py":
        defaults = {name: TRAIN_SETTINGS.default(name) for name in TRAIN_SETTINGS.names()}
        names = defaults | nanogpt_config.DEFAULTS | known
        values = nanogpt_config.read(text, str(path), names, TRAIN_SETTINGS)
    else:
        values = read_toml(text, str(path))
    return {key: TRAIN_SETTINGS.given(key, value, place) for key, (value, place) in values.items()}


def read_toml(text: str, place: str) -> dict[str, tuple[Any, str]]:
    """The keys of a TOML file, flat."""
    try:
        return {key: (value, place) for key, value in tomllib.loads(text).items()}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: not valid TOML: {error}") from error


def recipe_names() -> list[str]:
    folder = resources.files("stepglass") / "recipes"
    return sorted(Path(file.name).stem for file in folder.iterdir() if file.name.endswith(".toml"))


def read_recipe(name: str) -> dict[str, Given]:
    """The settings of a recipe that ships with the package; `none` has no settings."""
    if name == "none":
        return {}
    if name not in recipe_names():
        raise ConfigError(
            f"--recipe expects one of {', '.join([*recipe_names(), 'none'])}, found {name!r}"
        )
    text = (resources.files("stepglass") / "recipes" / f"{name}.toml").read_text()
    values = read_toml(text, f"recipe {name}")
    return {key: TRAIN_SETTINGS.given(key, value, place) for key, (value, place) in values.items()}


def resolve(command: CommandLine, recipe: str) -> TrainConfig:
    """Join a command line with a recipe or, when resuming, with the run's own settings."""
    base: dict[str, Given] = {}
    if command.value("init_from") == "resume":
        base = saved_settings(Path(command.value("out_dir")))
        _refuse_another_model(command, base)
    else:
        base = read_recipe(recipe) | {"recipe": Given(recipe, "recipe")}
        if command.is_given("n_embd") or command.is_given("model"):
            base.pop("n_inner", None)  # it was chosen for the recipe's own width and model
    flags = {key: item for key, item in command.flags.items() if key != "recipe"}
    # A config file may be older than the run: as in nanoGPT, the model is the run's own.
    of_run = {"recipe", *(MODEL_KEYS if command.value("init_from") == "resume" else ())}
    files = {key: item for key, item in command.files.items() if key not in of_run}
    config: TrainConfig = TRAIN_SETTINGS.build(base | files | flags)
    if config.init_from not in ("scratch", "resume"):
        raise ConfigError(
            f"init_from expects scratch or resume, found {config.init_from!r}; "
            f"OpenAI's GPT-2 weights cannot be loaded yet"
        )
    return config


def unused_in_files(command: CommandLine, config: TrainConfig) -> list[str]:
    """What config files say of the model of a run that is resumed, and that is not so."""
    return [
        f"{item.place}: {key}={item.value!r} is not used: the run has {getattr(config, key)!r}"
        for key, item in command.files.items()
        if config.init_from == "resume" and key in MODEL_KEYS and key not in command.flags
        if item.value != getattr(config, key)
    ]


def _refuse_another_model(command: CommandLine, saved: dict[str, Given]) -> None:
    """A flag cannot turn the model of a run that is resumed into another."""
    stored = {
        key: saved[key].value if key in saved else TRAIN_SETTINGS.default(key)
        for key in (*MODEL_KEYS, "recipe")
    }
    by_itself = {"recipe": stored["recipe"]}  # what `auto` stands for
    by_itself["optimizer"] = "muon" if stored["model"] == "modern" else "adamw"
    for key, found in stored.items():
        asked = command.flags[key].value if key in command.flags else found
        if asked != found and {asked, found} != {"auto", by_itself.get(key)}:
            raise ConfigError(
                f"{key}={asked!r}: the run in {command.value('out_dir')!r} has {found!r}; leave it "
                "out, or start over with --init_from=scratch"
            )


def saved_settings(out_dir: Path) -> dict[str, Given]:
    """The settings in a run directory's config.json."""
    path = out_dir / "config.json"
    try:
        saved = atomic.read_json(path)
    except FileNotFoundError as error:
        is_nanogpts = (out_dir / "ckpt.pt").exists()
        found = "nanoGPT's ckpt.pt, which stepglass cannot read" if is_nanogpts else "none"
        raise CheckpointError(
            f"{out_dir}: nothing to resume: expected a run directory with config.json, found "
            f"{found}; start one with --init_from=scratch"
        ) from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read: {error}") from error
    if not isinstance(saved, dict):
        raise CheckpointError(
            f"{path}: expected a JSON object of settings, found {type(saved).__name__}"
        )
    # What the earlier command was asked to do once is not part of the run.
    once = ("init_from", "eval_only", "watch", "out_dir")  # a folder may have been moved or copied
    saved = {key: value for key, value in saved.items() if key not in once}
    return {key: TRAIN_SETTINGS.given(key, value, str(path)) for key, value in saved.items()}
