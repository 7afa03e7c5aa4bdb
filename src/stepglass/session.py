"""A training run, set up: everything is checked first, then built, warmed up and, if asked,
restored.

Called inside the clock's `warmup` phase. Nothing is allocated before settings, device, data and
memory have been held against each other, and nothing is written before they fit.
"""

import os
import platform
import shutil
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import stepglass
from stepglass import atomic, checkpoint, clock, device, units
from stepglass.clock import Lap, PhaseClock
from stepglass.config import TrainConfig
from stepglass.console import Console
from stepglass.data import dataset
from stepglass.data.dataset import Dataset
from stepglass.device import Device, Peak
from stepglass.errors import CheckpointError, ConfigError, DeviceError, os_reason
from stepglass.models.gpt2 import GPT, GPTConfig
from stepglass.optim import make_optimizer
from stepglass.runlog import SCHEMA, RunLogWriter
from stepglass.stop import StopRequest

RUN_FILES = ("run.jsonl", "config.json", "tokenizer.json", "best.json", "ckpt")


@dataclass
class RunState:
    """What changes as a run goes on, beside weights and optimizer. A checkpoint stores it."""

    step: int = 0  # updates done
    tokens: int = 0
    evaluated_at: int = -1  # the step of the last evaluation
    best_val_loss: float | None = None
    best_step: int | None = None


@dataclass
class PendingIteration:
    """An iteration that has been queued on the device and not yet read back."""

    step: int
    lr: float
    loss_and_norm: Tensor
    lap: Lap


@dataclass
class Session:
    """All that the loop works with."""

    cfg: TrainConfig
    run_dir: Path
    device: Device
    peak: Peak
    data: Dataset
    raw_model: GPT
    model: nn.Module  # raw_model, or its compiled form
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    state: RunState
    clock: PhaseClock
    log: RunLogWriter
    console: Console
    stop: StopRequest
    pending: deque[PendingIteration] = field(default_factory=deque)
    last_saved_step: int = -1
    fastest_mfu: float = 0.0
    warned: set[str] = field(default_factory=set)

    def batch(self, step: int, micro_step: int) -> tuple[Tensor, Tensor]:
        """A micro-batch on the device: rows of the update's batch, which (seed, step) determine."""
        cfg = self.cfg
        rows = slice(micro_step * cfg.batch_size, (micro_step + 1) * cfg.batch_size)
        total_rows = cfg.gradient_accumulation_steps * cfg.batch_size
        x, y = self.data.batch(cfg.seed, step, rows, total_rows, cfg.block_size)
        return self.device.send(x), self.device.send(y)

    def event(self, name: str, detail: dict[str, Any]) -> None:
        """Something that happens now and then, for the run log."""
        self.log.write({"kind": "event", "name": name, "iter": self.state.step, "detail": detail})


def set_up(
    cfg: TrainConfig, argv: list[str], phases: PhaseClock, console: Console, stop: StopRequest
) -> Session:
    """Check everything the run will need, then build it. Called inside the `warmup` phase."""
    chosen = device.pick(cfg)
    for reason in chosen.reasons:
        console.say(reason)
    data = dataset.load(cfg.dataset, cfg.block_size)
    console.say(f"found vocab_size = {data.vocab_size} (inside {data.origin})")
    for warning in data.warnings:
        console.say(f"warning: {warning}")
    shape = GPTConfig(
        vocab_size=data.vocab_size,
        block_size=cfg.block_size,
        n_layer=cfg.n_layer,
        n_head=cfg.n_head,
        n_embd=cfg.n_embd,
        dropout=cfg.dropout,
        bias=cfg.bias,
    )
    refuse_what_cannot_fit(cfg, shape, chosen)
    run_dir = open_run_dir(cfg, data, console)
    resumed = checkpoint.newest(run_dir, console.say) if cfg.init_from == "resume" else None
    if resumed is not None:
        hold_against(resumed[1], cfg, shape, data, resumed[0])

    console.say(f"tokens per iteration will be: {cfg.tokens_per_iter:,}")
    params = shape.num_params() - shape.block_size * shape.n_embd
    console.say(
        f"number of parameters: {params / 1e6:.2f}M"
    )  # as nanoGPT counts: without the position table
    if chosen.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as nanoGPT does
    torch.manual_seed(cfg.seed)
    raw_model = GPT(shape).to(chosen.torch_device)
    optimizer = make_optimizer(raw_model, cfg, chosen.torch_device)
    peak = device.peak(chosen)
    console.say(f"peak for MFU: {peak.source}")
    if cfg.wandb_log:
        console.say(
            "note: wandb_log is read but nothing is sent to wandb; every number is in run.jsonl"
        )

    if not (resumed and cfg.eval_only):  # looking at a run does not change its settings
        atomic.write_json(run_dir / "config.json", asdict(cfg))
        atomic.write_json(run_dir / "tokenizer.json", data.tokenizer_json)
    s = Session(
        cfg=cfg,
        run_dir=run_dir,
        device=chosen,
        peak=peak,
        data=data,
        raw_model=raw_model,
        model=raw_model,
        optimizer=optimizer,
        scaler=chosen.grad_scaler(),
        state=RunState(),
        clock=phases,
        log=RunLogWriter(run_dir / "run.jsonl"),
        console=console,
        stop=stop,
    )
    try:
        s.log.write(start_record(s, argv))
        warm_up(s)
        if resumed is not None:
            restore(s, *resumed)
        if chosen.is_async:
            phases.attach(device.CudaTimer())
    except BaseException:
        s.log.close()
        raise
    return s


def open_run_dir(cfg: TrainConfig, data: Dataset, console: Console) -> Path:
    """Make the run directory; an earlier run in it is moved aside, never mixed with or
    overwritten.
    """
    run_dir = Path(cfg.out_dir)
    if run_dir.exists() and not run_dir.is_dir():
        raise ConfigError(
            f"--out_dir={cfg.out_dir}: expected a folder, found a file; choose another"
        )
    if data.folder.resolve() in (run_dir.resolve(), *run_dir.resolve().parents):
        raise ConfigError(
            f"--out_dir={cfg.out_dir}: lies inside the data set {data.folder}; choose another"
        )
    if cfg.init_from == "resume":
        return run_dir
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        if not os.access(run_dir, os.W_OK):
            raise PermissionError(13, "permission denied")
        earlier = [name for name in RUN_FILES if (run_dir / name).exists()]
        if earlier:
            aside = next(
                p for n in range(1, 10_000) if not (p := run_dir / f"earlier-{n}").exists()
            )
            aside.mkdir()
            for name in earlier:
                shutil.move(run_dir / name, aside / name)
            console.say(f"note: {run_dir} held a run already; it is in {aside} now")
    except OSError as error:
        raise ConfigError(
            f"--out_dir={cfg.out_dir}: cannot be written: {os_reason(error)}"
        ) from error
    return run_dir


def refuse_what_cannot_fit(cfg: TrainConfig, shape: GPTConfig, chosen: Device) -> None:
    """A floor on the memory a run needs, held against what there is, before anything is
    allocated.
    """
    weights = 16 * shape.num_params()  # weights, gradients and two moments, float32
    tokens = cfg.batch_size * cfg.block_size
    activations = (
        tokens * (shape.vocab_size + 8 * shape.n_layer * shape.n_embd) * chosen.dtype.itemsize
    )
    available = chosen.available_bytes()
    if available is not None and weights + activations > available:
        raise DeviceError(
            f"a model of {shape.num_params():,} parameters with batch_size={cfg.batch_size} and "
            f"block_size={cfg.block_size} needs at least {units.size(weights + activations)}, "
            f"found {units.size(available)}; lower --n_layer, --n_embd, --batch_size or "
            "--block_size"
        )


def hold_against(
    loaded: checkpoint.Snapshot, cfg: TrainConfig, shape: GPTConfig, data: Dataset, path: Path
) -> None:
    """A checkpoint fits this run: same shape, same data, and something left to do."""
    stored = {**loaded.state.get("model_config", {}), "dropout": cfg.dropout}
    if stored != asdict(shape):
        different = next(key for key, value in asdict(shape).items() if stored.get(key) != value)
        raise CheckpointError(
            f"{path}: expected a model with {different}={getattr(shape, different)}, found "
            f"{stored.get(different)}"
        )
    if loaded.state.get("data") != data.fingerprint:
        raise CheckpointError(
            f"{path}: was trained on other data than {data.folder} holds now; restore it, or "
            "start from scratch"
        )
    if loaded.step >= cfg.max_iters and not cfg.eval_only:
        raise ConfigError(
            f"--max_iters={cfg.max_iters}: the run in {cfg.out_dir} has done {loaded.step} "
            "updates already; raise it"
        )


def restore(s: Session, path: Path, loaded: checkpoint.Snapshot) -> None:
    """Put a checkpoint's state back. Generators come last: building and warming up have drawn
    from them.
    """
    try:
        checkpoint.load_model(s.raw_model, loaded.model, str(path))
        checkpoint.load_optimizer(s.raw_model, s.optimizer, loaded.optim, str(path))
        s.state = RunState(**{key: loaded.state[key] for key in asdict(RunState())})
        if loaded.state["scaler"]:
            s.scaler.load_state_dict(loaded.state["scaler"])
        checkpoint.load_rng(loaded.rng)
    except (KeyError, TypeError, RuntimeError) as error:
        raise CheckpointError(f"{path}: its state does not fit this run: {error}") from error
    s.last_saved_step = s.state.step
    if s.cfg.eval_only:
        s.state.evaluated_at = -1  # asked for: evaluate again, with this command's settings
    s.console.say(
        f"Resuming training from {s.cfg.out_dir}: {path.name}, {s.state.step} updates done"
    )
    s.event("resume", {"path": str(path.relative_to(s.run_dir))})


def warm_up(s: Session) -> None:
    """Run the first batch once and throw the result away, so that iteration 0 is a step like any
    other.

    Compiling, kernel selection and memory growth all happen here. Nothing is learned and the
    generators are put back: a run with warm-up is the run without it.
    """
    before = checkpoint.rng_tensors()
    compile_ms = None
    startup_ms = s.clock.total().wall_ms
    if s.device.compile:
        compile_ms = try_compile(s)
    start = time.perf_counter_ns()
    first_pass(s)
    first_batch_ms = (time.perf_counter_ns() - start) / 1e6
    checkpoint.load_rng(before)
    compiled = f"compile {units.duration(compile_ms)}, " if compile_ms is not None else ""
    s.console.say(
        f"warm-up: start-up {units.duration(startup_ms)}, {compiled}first batch "
        f"{units.duration(first_batch_ms)}"
    )
    s.event(
        "warmup",
        {"startup_ms": startup_ms, "compile_ms": compile_ms, "first_batch_ms": first_batch_ms},
    )


def first_pass(s: Session) -> None:
    x, y = s.batch(0, 0)
    with s.device.autocast():
        _, loss = s.model(x, y)
    s.scaler.scale(loss).backward()
    s.optimizer.zero_grad(set_to_none=True)
    s.model.eval()
    with torch.inference_mode(), s.device.autocast():
        s.model(x, y, reduction="none")[1].sum().item()  # waits for the device
    s.model.train()


def try_compile(s: Session) -> float | None:
    """Compile the model, or say why not and go on without."""
    start = time.perf_counter_ns()
    s.model = torch.compile(s.raw_model)  # type: ignore[assignment]
    try:
        first_pass(s)
    except Exception as error:  # noqa: BLE001  # compilers fail in every way there is
        s.model = s.raw_model
        s.optimizer.zero_grad(set_to_none=True)
        s.raw_model.train()
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        s.console.say(f"compile failed: {reason}; going on without it")
        s.event("compile_failed", {"reason": reason})
        return None
    return (time.perf_counter_ns() - start) / 1e6


def start_record(s: Session, argv: list[str]) -> dict[str, Any]:
    shape = s.raw_model.config
    return {
        "kind": "start",
        "schema": SCHEMA,
        "time": time.time(),
        "argv": argv,
        "config": asdict(s.cfg),
        "model": {
            **asdict(shape),
            "parameters": shape.num_params(),
            "flops_per_token": shape.flops_per_token(),
        },
        "mfu_formula": "6N + 12*L*H*Q*T per token (PaLM), over the step's time",
        "peak_flops": s.peak.flops_per_s,
        "peak_source": s.peak.source,
        "tokens_per_iter": s.cfg.tokens_per_iter,
        "data": s.data.fingerprint,
        "clock_ns_per_switch": clock.cost_per_switch_ns(),
        **environment(s.device),
    }


def environment(chosen: Device) -> dict[str, Any]:
    """What has to be the same for a resumed run to be the same to the last bit."""
    return {
        "device": chosen.name,
        "device_type": chosen.type,
        "dtype": str(chosen.dtype).removeprefix("torch."),
        "compile": chosen.compile,
        "threads": torch.get_num_threads(),
        "versions": {
            "stepglass": stepglass.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
