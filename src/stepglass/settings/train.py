"""The settings of `stepglass train`.

Names and defaults are nanoGPT's, except for the model, its optimizer, and when to evaluate and
save. If a name is misleading, its help says what it does here.
"""

from dataclasses import dataclass, replace
from typing import Literal

from stepglass.errors import ConfigError
from stepglass.settings import interval
from stepglass.settings.check_model import check_model
from stepglass.settings.check_rates import MAX_RATE, check_rates
from stepglass.settings.log_to import parse_log_to
from stepglass.settings.run_share import check_iters, iters_of
from stepglass.settings.schema import Config, Settings, setting

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
    "n_head_dim",
    "qk_norm",
    "norm_eps",
    "rope_theta",
    "gelu",
    "optimizer",
)
DEFAULT_OPTIMIZER = {"modern": "muon", "gpt2": "adamw"}  # of each model
# A run can be resumed with other values of these, but its results then differ from those of an
# uninterrupted run.
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
SCHEDULE_ITERS = ("warmup_iters", "cooldown_iters", "lr_decay_iters")
MAX_DECAY = 1e6
MAX_EPOCHS = 1e9
MAX_MINUTES = 1e7


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Config):
    """All settings of `stepglass train`."""

    out_dir: str = setting("out", "the run directory: log, checkpoints, settings", is_path=True)
    eval_interval: int | Literal["auto"] = setting(
        "auto",
        "iterations between evaluations, with one at the end; auto: as often as eval_budget allows",
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
    patience: int | Literal["auto"] = setting(
        "auto",
        "end the run after this many evaluations without a new best; 0: never; auto: on if the "
        "recipe is chosen automatically and the data is small for the run",
        minimum=0,
    )
    log_interval: int = setting(
        1, "iterations between printed lines; the run log has all of them", minimum=1
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
        "tokens of text to write into the run log at every evaluation, for its page; 0: none",
        minimum=0,
    )
    always_save_checkpoint: bool = setting(
        False,
        "True: save after every evaluation, as nanoGPT does; False: after one that is the best so "
        "far. Beside what checkpoint_interval says",
    )
    checkpoint_interval: int | str = setting(
        "auto",
        "iterations (500) or time (90s, 10m, 2h) between two saves; auto: at most 2 "
        "minutes of work at risk, stalls under 1 % of the time",
    )
    keep_last: int = setting(2, "checkpoints to keep beside the best one", minimum=2)
    keep_every: int = setting(
        0, "save at every multiple of this and never delete those; 0: none", minimum=0
    )
    checkpoint_shards: bool | Literal["auto"] = setting(
        "auto",
        "fsdp: each process writes its own part of a checkpoint; auto: if rank 0 has too little "
        "memory for all parts. out_dir must be on a disk that all processes see",
    )
    init_from: str = setting(
        "scratch",
        "scratch; resume: go on from the newest checkpoint in out_dir; or a model to train "
        "further: a run, anything that `stepglass import` reads, gpt2, gpt2-xl, hf:OWNER/NAME",
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
        "a folder in data/, made by `stepglass prepare` or by nanoGPT; or text in a file or a "
        "folder, which is prepared first",
        is_path=True,
    )
    gradient_accumulation_steps: int = setting(
        40, "micro-batches in one update, of all processes together", minimum=1, maximum=1_000_000
    )
    batch_size: int = setting(
        12,
        "sequences in a micro-batch; auto: the fastest one for the same number in an update, "
        "measured before the run",
        minimum=1,
    )
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
    gelu: Literal["exact", "tanh"] = setting(
        "exact", "gpt2: exact is nanoGPT's; tanh is the approximation in OpenAI's"
    )
    n_head_dim: int = setting(
        0, "modern: width of a head; 0: n_embd / n_head", minimum=0, maximum=1_000_000
    )
    qk_norm: bool = setting(True, "modern: norm queries and keys, as Qwen3; False: a Llama")
    norm_eps: float = setting(1e-6, "modern: epsilon of the norms", above=0, maximum=1)
    rope_theta: float = setting(10_000.0, "modern: base of the rotary positions", above=0)
    optimizer: Literal["auto", "muon", "adamw"] = setting(
        "auto",
        "muon: for the matrices inside the blocks, AdamW for the rest; auto: muon for modern, "
        "adamw for gpt2",
    )
    learning_rate: float = setting(
        6e-4, "AdamW's peak learning rate, reached after the warm-up", above=0, maximum=MAX_RATE
    )
    embedding_lr: float = setting(
        0.0,
        "AdamW's peak learning rate for a token table that is not the head as well; 0: "
        "learning_rate",
        minimum=0,
        maximum=MAX_RATE,
    )
    muon_lr: float = setting(
        0.02, "Muon's peak learning rate; follows the same schedule", above=0, maximum=MAX_RATE
    )
    muon_momentum: float = setting(0.95, "Muon's momentum", minimum=0, maximum=0.999)
    max_iters: int = setting(
        600_000, "the exact number of updates (nanoGPT does one more)", minimum=0
    )
    epochs: float = setting(
        0.0,
        "the length of the run in passes over the training data, instead of max_iters; 0: as "
        "max_iters says",
        minimum=0,
        maximum=MAX_EPOCHS,
    )
    minutes: float = setting(
        0.0,
        "the length of the run in minutes, from the command to its end, instead of max_iters; the "
        "size of the model is chosen to fit, unless it is given; 0: as max_iters says",
        minimum=0,
        maximum=MAX_MINUTES,
    )
    weight_decay: float = setting(
        0.1, "decay of matrices and embeddings", minimum=0, maximum=MAX_DECAY
    )
    beta1: float = setting(0.9, "AdamW's first beta", minimum=0, maximum=0.999999)
    beta2: float = setting(0.95, "AdamW's second beta", minimum=0, maximum=0.999999)
    grad_clip: float = setting(1.0, "clip the gradient's norm at this; 0: do not", minimum=0)
    decay_lr: bool = setting(True, "warm up and decay the learning rate; False: keep it constant")
    warmup_iters: int | str = setting(
        2000, "iterations of linear warm-up of the rate, or a share of the run (2%)", minimum=0
    )
    lr_schedule: Literal["cosine", "trapezoid"] = setting(
        "cosine", "after the warm-up: nanoGPT's cosine; or flat, then linear down"
    )
    cooldown_iters: int | str = setting(
        0,
        "trapezoid: iterations of the way down, which ends at lr_decay_iters, or a share of the "
        "run (60%)",
        minimum=0,
    )
    lr_decay_iters: int | str = setting(
        600_000,
        "iteration at which min_lr is reached, or a share of the run; usually max_iters (100%)",
        minimum=1,
    )
    min_lr: float = setting(
        6e-5, "learning rate at the end of the decay", minimum=0, maximum=MAX_RATE
    )
    nproc: int = setting(
        1,
        "processes on this machine that train together, one for each GPU; above 1, torchrun "
        "starts them",
        minimum=1,
        maximum=1024,
    )
    parallel: Literal["ddp", "fsdp"] = setting(
        "ddp",
        "several processes: ddp, each has the whole model; fsdp, each has a share of the weights "
        "and of the optimizer",
    )
    max_restarts: int = setting(
        0, "nproc: start all processes again after one was lost, at most this often", minimum=0
    )
    rank_timeout: float = setting(
        120.0, "several processes: seconds to wait for a process that does not answer", above=0
    )
    backend: str = setting(
        "nccl", "nanoGPT's process group backend; not used: NCCL on GPUs, gloo on CPUs"
    )
    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps")
    threads: int = setting(0, "threads on a CPU; 0: as many as PyTorch takes", minimum=0)
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
        "auto",
        "named settings to start from, before config files and flags; auto: by device, or none "
        "for a nanoGPT config file",
    )

    def used(self) -> list[str]:
        schedule = {"warmup_iters", "lr_decay_iters", "cooldown_iters", "min_lr"}
        unused = set() if self.decay_lr else schedule
        if not self.uses_muon:
            unused |= {"muon_lr", "muon_momentum"}
        return [name for name in super().used() if name not in unused]

    def check(self) -> None:
        check_model(self)
        if self.decay_lr and self.lr_schedule == "trapezoid" and not self.cooldown_iters:
            raise ConfigError(
                "lr_schedule=trapezoid expects cooldown_iters above 0, found 0; half of max_iters "
                "is usual"
            )
        for key in SCHEDULE_ITERS:
            check_iters(key, getattr(self, key))
        check_rates(self)
        interval.parse_interval(self.checkpoint_interval)
        parse_log_to(self.log_to)
        if not self.out_dir:
            raise ConfigError("out_dir expects a folder, found ''")

    def in_iterations(self) -> "TrainConfig":
        """The same settings, with every share of the run as a number of iterations."""
        return replace(
            self,
            warmup_iters=iters_of(self.warmup_iters, self.max_iters),
            cooldown_iters=iters_of(self.cooldown_iters, self.max_iters),
            lr_decay_iters=iters_of(self.lr_decay_iters, self.max_iters),
        )

    @property
    def starts_from_model(self) -> bool:
        """True for a new run with the weights of another model."""
        return self.init_from not in ("scratch", "resume")

    @property
    def uses_muon(self) -> bool:
        chosen = DEFAULT_OPTIMIZER[self.model] if self.optimizer == "auto" else self.optimizer
        return chosen == "muon"

    @property
    def logger_names(self) -> list[str]:
        names = parse_log_to(self.log_to)
        return [*names, "wandb"] if self.wandb_log and "wandb" not in names else names

    @property
    def tokens_per_iter(self) -> int:
        return self.gradient_accumulation_steps * self.batch_size * self.block_size


TRAIN_SETTINGS = Settings(TrainConfig)
