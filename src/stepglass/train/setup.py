"""A training run, set up: everything is checked first, then built, warmed up and, if asked,
restored.

Called inside the clock's `warmup` phase. Nothing is allocated before settings, device, data and
memory have been held against each other, and nothing is written before they fit.
"""

import random
import re
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stepglass import json_files, process, units
from stepglass.checkpoint import tensors
from stepglass.checkpoint.schedule import SaveSchedule
from stepglass.checkpoint.writer import Saver
from stepglass.data import dataset, tokenizer
from stepglass.data.dataset import Dataset
from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import CheckpointError, ConfigError, DeviceError, os_reason
from stepglass.files import FileOps, replace_file
from stepglass.hardware import device
from stepglass.hardware.device import Device
from stepglass.loggers import packages, start
from stepglass.measure import clock
from stepglass.measure.clock import PhaseClock
from stepglass.measure.run_log import SCHEMA, RunLogWriter
from stepglass.models import registry
from stepglass.models.gpt2 import GPTConfig
from stepglass.models.registry import Shape
from stepglass.process import StopRequest
from stepglass.run_dir import checkpoints
from stepglass.run_dir.checkpoints import Retention
from stepglass.run_dir.folder import RunFolder
from stepglass.run_dir.opening import open_run_dir, remove_unused
from stepglass.settings import interval
from stepglass.settings.train import EXACT_KEYS, TrainConfig
from stepglass.train import saves
from stepglass.train.console import Console
from stepglass.train.engines.replicas import Replicas
from stepglass.train.eval_schedule import EvalSchedule
from stepglass.train.evaluate import choose_windows, rows_at_once
from stepglass.train.optimizer import leave_compiler_out, make_optimizer, odd_about_schedule
from stepglass.train.session import (
    RunState,
    Session,
    environment,
    is_out_of_memory,
    naming_memory_errors,
    out_of_memory,
)
from stepglass.train.warmup import warm_up

RUN_ID = re.compile(r"[0-9a-f]{1,64}")


def set_up(
    cfg: TrainConfig, argv: list[str], phases: PhaseClock, console: Console, stop: StopRequest
) -> Session:
    """Check everything the run will need, then build it. Called inside the `warmup` phase."""
    for name in cfg.logger_names:
        packages.load(name)
    chosen = device.pick(cfg)
    for reason in chosen.reasons:
        console.say(reason)
    data = dataset.load(cfg.dataset, cfg.block_size)
    console.say(f"found vocab_size = {data.vocab_size} (inside {data.origin})")
    for warning in data.warnings:
        console.say(f"warning: {warning}")
    for odd in odd_about_schedule(cfg):
        console.say(f"note: {odd}")
    shape = registry.shape_of(cfg, data.vocab_size)
    refuse_what_cannot_fit(cfg, shape, chosen)
    # Now, for it may have to be fetched.
    codec = tokenizer.from_json(data.tokenizer_json, data.origin) if cfg.sample_tokens else None
    is_new = not Path(cfg.out_dir).exists()
    run = open_run_dir(cfg, data.folder, console.say)
    run_dir = run.folder.path
    if chosen.type == "cpu":
        process.keep_freed_memory()
    try:
        resumed = None
        if cfg.init_from == "resume":
            resumed = tensors.newest(run_dir, console.say)
            hold_against(*resumed, cfg, shape, data)
            warn_of_lost_log(run_dir / "run.jsonl", resumed[1], console)
        run.belongs_to(run_id_of(resumed[1]) if resumed else None)
        began = resumed[1].state.get("environment") if resumed else None
        compiled = began.get("compile") if isinstance(began, dict) else None
        s = build(cfg, shape, chosen, compiled, data, codec, run, phases, console, stop)
    except BaseException as error:
        run.close()
        if is_new:
            remove_unused(run_dir)
        if is_out_of_memory(error):
            raise out_of_memory(chosen, cfg, "at the start") from error
        raise
    try:
        start_loggers(s)
        s.log.write(start_record(s, argv))
        with naming_memory_errors(s):
            warm_up(s)
        if resumed is not None:
            restore(s, *resumed)
        if not cfg.eval_only:
            s.saver.reserve(saves.live_tensors(s))  # while the first evaluation runs
        if not (resumed and cfg.eval_only):  # looking at a run does not change its settings
            replace_file(FileOps(), run.folder, "config.json", json_files.json_bytes(asdict(cfg)))
            replace_file(FileOps(), run.folder, "tokenizer.json", s.tokenizer)
        if chosen.is_async:
            phases.attach(device.CudaTimer())
    except OSError as error:
        s.close()
        if is_new:
            remove_unused(run_dir)
        raise ConfigError(
            f"--out_dir={cfg.out_dir}: cannot be written: {os_reason(error)}"
        ) from error
    except BaseException:
        s.close()
        raise
    return s


def build(
    cfg: TrainConfig,
    shape: Shape,
    chosen: Device,
    compiled_before: bool | None,
    data: Dataset,
    codec: Tokenizer | None,
    run: RunFolder,
    phases: PhaseClock,
    console: Console,
    stop: StopRequest,
) -> Session:
    """Model, optimizer and log, freshly made."""
    console.say(f"tokens per iteration will be: {cfg.tokens_per_iter:,}")
    counted = shape.num_params()
    if isinstance(shape, GPTConfig):
        counted -= shape.block_size * shape.n_embd  # as nanoGPT counts: without the position table
    console.say(f"number of parameters: {counted / 1e6:.2f}M")
    if chosen.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as nanoGPT does
    torch.manual_seed(cfg.seed)
    random.seed(cfg.seed)
    np.random.seed(cfg.seed % 2**32)  # ours draws from neither; code of the user's may
    raw_model = registry.build(shape).to(chosen.torch_device)
    peak = device.peak(chosen)
    console.say(f"peak for MFU: {peak.source}")
    updates = 0 if cfg.eval_only else cfg.max_iters
    run_flops = float(shape.flops_per_token()) * cfg.tokens_per_iter * updates
    replicas, why_replicas = device.pick_replicas(chosen, cfg.batch_size, shape.num_params())
    does_compile, why_compile = device.pick_compile(
        chosen.type, cfg.compile, run_flops, peak.flops_per_s
    )
    if cfg.compile == "auto" and isinstance(compiled_before, bool):
        does_compile, why_compile = compiled_before, "as when the run was saved: the same bits"
    chosen = replace(chosen, compile=does_compile, replicas=replicas)
    console.say(f"replicas: {replicas}: {why_replicas}")
    console.say(f"compile: {does_compile}: {why_compile}")
    windows = choose_windows(data, cfg)
    if not chosen.compile:
        leave_compiler_out()
    optimizer = make_optimizer(raw_model, cfg, chosen.torch_device)
    keep = Retention(cfg.keep_last, cfg.keep_every)
    schedule = SaveSchedule(interval.parse(cfg.checkpoint_interval), cfg.keep_every)
    evals = EvalSchedule(
        interval=None if cfg.eval_interval == "auto" else cfg.eval_interval,
        budget=cfg.eval_budget,
        max_iters=cfg.max_iters,
        tokens=(len(windows.train) + len(windows.val)) * cfg.block_size,
        tokens_per_iter=cfg.tokens_per_iter,
    )
    if not cfg.eval_only:
        console.say(f"checkpoints: {schedule.bound(phases.elapsed_ms())}")
    with ExitStack() as opened:  # processes and threads, not to be left behind
        helpers = None
        if replicas > 1:
            try:
                helpers = Replicas(raw_model, optimizer, chosen)
                opened.callback(helpers.close)
            except OSError as error:  # a limit on processes or memory
                console.say(f"note: one model instead of {replicas} replicas: {os_reason(error)}")
                chosen = replace(chosen, replicas=1)
        log = RunLogWriter(run.folder, run.check)
        opened.callback(log.close)
        saver = Saver(run, chosen, log, keep)
        opened.callback(saver.close)
        s = Session(
            cfg=cfg,
            run=run,
            device=chosen,
            peak=peak,
            data=data,
            windows=windows,
            raw_model=raw_model,
            model=raw_model,
            optimizer=optimizer,
            replicas=helpers,
            scaler=chosen.grad_scaler(),
            state=RunState(),
            clock=phases,
            log=log,
            saver=saver,
            schedule=schedule,
            evals=evals,
            eval_rows=rows_at_once(windows, cfg, shape, chosen),
            codec=codec,
            tokenizer=json_files.json_bytes(data.tokenizer_json),
            shown_dir=run.folder.path,
            console=console,
            stop=stop,
        )
        opened.pop_all()  # the session's to close, from now on
    return s


def start_loggers(s: Session) -> None:
    """Have the services of `log_to` follow the run log."""
    cfg = s.cfg
    s.feeds = start.start(
        cfg.logger_names,
        s.run_dir,
        project=cfg.wandb_project,
        run_name=cfg.wandb_run_name,
        config=asdict(cfg),
        log_interval=cfg.log_interval,
    )
    for feed in s.feeds:
        s.log.follow(feed.put)


def refuse_what_cannot_fit(cfg: TrainConfig, shape: Shape, chosen: Device) -> None:
    """A floor on the memory a run needs, held against what there is, before anything is
    allocated.
    """
    per_weight = 12 if cfg.uses_muon else 16  # itself, its gradient, and one or two moments
    weights = per_weight * shape.num_params()
    tokens = cfg.batch_size * cfg.block_size
    activations = (
        tokens * (shape.vocab_size + 8 * shape.n_layer * shape.n_embd) * chosen.dtype.itemsize
    )
    available = chosen.available_bytes()
    batch = 16 * cfg.tokens_per_iter  # inputs and targets of an update, on the host
    if available is not None and weights + activations + batch > available:
        raise DeviceError(
            f"a model of {shape.num_params():,} parameters with batch_size={cfg.batch_size} and "
            f"block_size={cfg.block_size} needs at least "
            f"{units.size(weights + activations + batch)}, "
            f"found {units.size(available)}; lower --n_layer, --n_embd, --batch_size or "
            "--block_size"
        )


def hold_against(
    path: Path, loaded: tensors.Snapshot, cfg: TrainConfig, shape: Shape, data: Dataset
) -> None:
    """A checkpoint fits this run: same shape, same data, and something left to do."""
    stored = loaded.state.get("model_config")
    stored = {"model": "gpt2", **stored, "dropout": cfg.dropout} if isinstance(stored, dict) else {}
    expected = registry.as_record(shape)
    if stored != expected:
        different = next(
            (key for key, value in expected.items() if stored.get(key) != value), "vocab_size"
        )
        raise CheckpointError(
            f"{path}: expected a model with {different}={expected[different]}, found "
            f"{stored.get(different)}"
        )
    data.resume(str(path), loaded.state.get("data"))
    is_complete = loaded.step > cfg.max_iters or loaded.state.get("evaluated_at") == loaded.step
    if loaded.step >= cfg.max_iters and is_complete and not cfg.eval_only:
        raise ConfigError(
            f"--max_iters={cfg.max_iters}: the run in {cfg.out_dir} has done {loaded.step} "
            "updates already; raise it"
        )


def restore(s: Session, path: Path, loaded: tensors.Snapshot) -> None:
    """Put a checkpoint's state back. Generators come last: building and warming up have drawn
    from them.
    """
    try:
        tensors.load_model(s.raw_model, loaded.model, str(path))
        tensors.load_optimizer(s.raw_model, s.optimizer, loaded.optim, str(path))
        s.state = read_state(loaded.state)
        if loaded.state["scaler"]:
            s.scaler.load_state_dict(loaded.state["scaler"])
        tensors.load_rng(loaded.rng)
    except (
        KeyError,
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
        OverflowError,
    ) as error:
        raise CheckpointError(f"{path}: its state does not fit this run: {error}") from error
    s.last_saved_step = s.first_step = s.state.step
    s.saver.trust(path.name)
    if not s.cfg.eval_only:
        mend_best(s, path)
    if s.cfg.eval_only:
        s.state.evaluated_at = -1  # asked for: evaluate again, with this command's settings
    s.console.say(
        f"Resuming training from {s.cfg.out_dir}: {path.name}, {s.state.step} updates done"
    )
    different = changed(loaded.state.get("environment"), environment(s.device))
    stored = loaded.state.get("config")
    known = set(stored) if isinstance(stored, dict) else set(EXACT_KEYS)  # newer settings: defaults
    different += changed(stored, {k: getattr(s.cfg, k) for k in EXACT_KEYS if k in known})
    if different:
        s.console.say(f"note: not the same bits as an unbroken run: {', '.join(different)}")
    s.event("resume", {"path": str(path.relative_to(s.run_dir)), "changed": different})


def mend_best(s: Session, path: Path) -> None:
    """The process may have been killed after it had saved its best and before best.json said so, or
    best.json may be damaged; the checkpoint knows which was the best."""
    state = s.state
    if state.best_step is None or state.best_val_loss is None:
        return
    try:
        said = checkpoints.best_path(s.run_dir)
    except CheckpointError as error:
        s.console.say(f"warning: {error}")
        said = None
    of_best_step = (
        p for p in checkpoints.committed(s.run_dir) if checkpoints.step_of(p) == state.best_step
    )
    best = path if state.best_step == state.step else next(of_best_step, None)
    if best is not None and (said is None or (best == path and said != path)):
        checkpoints.mark_best(FileOps(), s.run.folder, best.name, state.best_val_loss)


def run_id_of(loaded: tensors.Snapshot) -> str | None:
    """The name a run was given when it began; checkpoints of the first versions have none."""
    stored = loaded.state.get("run_id")
    return stored if isinstance(stored, str) and RUN_ID.fullmatch(stored) else None


def warn_of_lost_log(path: Path, loaded: tensors.Snapshot, console: Console) -> None:
    """The log on disk reaches at least to where the checkpoint was taken, or somebody cut it."""
    expected = loaded.state.get("log_bytes")
    found = path.stat().st_size if path.is_file() else 0
    if isinstance(expected, int) and found < expected:
        console.say(
            f"warning: {path}: expected at least {expected} bytes, found {found}: iterations "
            f"before step {loaded.step} are missing from the log"
        )


def read_state(stored: dict[str, Any]) -> RunState:
    """The counters of a checkpoint, held to their types and to each other."""
    state = RunState(**{key: stored[key] for key in asdict(RunState())})
    for name in ("step", "tokens", "evaluated_at"):
        if type(getattr(state, name)) is not int:
            raise ValueError(f"{name} is {units.shown(getattr(state, name))}")
    if state.step < 0 or state.tokens < 0 or not -1 <= state.evaluated_at <= state.step:
        raise ValueError(f"step {state.step}, {state.tokens} tokens, {state.evaluated_at=}")
    best = state.best_val_loss, state.best_step
    is_best = units.finite(best[0]) is not None and type(best[1]) is int
    if best != (None, None) and not (is_best and 0 <= (best[1] or 0) <= state.step):
        raise ValueError(f"the best is {units.shown(best[0])} at {units.shown(best[1])}")
    if not isinstance(stored["scaler"], dict):
        raise ValueError(f"scaler is {units.shown(stored['scaler'])}")
    return state


def changed(before: Any, now: dict[str, Any]) -> list[str]:
    """What differs between the machine a checkpoint was written on and this one."""
    if not isinstance(before, dict):
        return ["its environment is unknown"]
    return [
        f"{key} was {before.get(key, 'unknown')}, is {value}"
        for key, value in now.items()
        if before.get(key) != value
    ]


def start_record(s: Session, argv: list[str]) -> dict[str, Any]:
    shape = s.raw_model.config
    return {
        "kind": "start",
        "schema": SCHEMA,
        "time": time.time(),
        "run_id": s.run.run_id,
        "argv": argv,
        "config": asdict(s.cfg),
        "model": {
            **registry.as_record(shape),
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
