"""Sets up a training run: check everything, build it, warm up and, if asked, restore a checkpoint.

    train_to_the_end(set_up(cfg, argv, Surroundings(clock, console, stop)))

Call `set_up` inside the clock's `warmup` phase. Settings, device, data and memory are checked
first. Nothing is allocated or written before these checks have passed.
"""

import random
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from stepglass import json_files
from stepglass.checkpoint.schedule import SaveSchedule
from stepglass.checkpoint.writer import CheckpointWriter
from stepglass.data import dataset, tokenizer
from stepglass.data.dataset import Dataset
from stepglass.data.tokenizer import Tokenizer
from stepglass.errors import ConfigError, os_reason
from stepglass.files import FileOps, replace_file
from stepglass.hardware import choose
from stepglass.hardware.device import CudaTimer, Device
from stepglass.hardware.peak import Peak, find_peak
from stepglass.loggers import start
from stepglass.measure import console_lines, mfu
from stepglass.measure.clock import PhaseClock, cost_per_switch_ns
from stepglass.measure.records import SCHEMA, StartRecord
from stepglass.measure.run_log import RunLogWriter
from stepglass.measure.shapes import Shape, shape_of, shape_record
from stepglass.models import registry
from stepglass.models.model import Model
from stepglass.process import StopRequest, keep_freed_memory
from stepglass.run_dir.commit import Retention
from stepglass.run_dir.folder import RunFolder
from stepglass.run_dir.opening import open_run_dir, remove_unused
from stepglass.settings import interval
from stepglass.settings.lr_schedule import schedule_warnings
from stepglass.settings.train import TrainConfig
from stepglass.train.console import Console
from stepglass.train.engines.making import make_engine
from stepglass.train.environment import environment
from stepglass.train.eval_schedule import EvalSchedule
from stepglass.train.evaluate import Evaluations, Windows, choose_windows
from stepglass.train.fitted import fitted
from stepglass.train.iterations import Iterations
from stepglass.train.memory_check import refuse_what_cannot_fit
from stepglass.train.memory_errors import is_out_of_memory, memory_error, naming_memory_errors
from stepglass.train.optimizer import leave_compiler_out, make_optimizer
from stepglass.train.resume import Found, newest_resumable, restore, run_id_of, was_compiled
from stepglass.train.run import Run
from stepglass.train.saves import Saves
from stepglass.train.starting_model import StartingModel, model_vocabulary, starting_model
from stepglass.train.training import Training
from stepglass.train.warmup import Rehearsal, rehearse, undisturbed, warm_up


@dataclass(frozen=True)
class Surroundings:
    """What a run gets from its caller: a clock, a console, the request to stop, and the names of
    the settings that nobody chose, which may be fitted to the data."""

    clock: PhaseClock
    console: Console
    stop: StopRequest
    free: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plan:
    """The parts of a run that has been checked but not built yet."""

    cfg: TrainConfig
    device: Device
    data: Dataset
    shape: Shape
    tokenizer: Tokenizer | None  # set if a sample of text is kept with each evaluation
    start_from: StartingModel | None = None


def set_up(cfg: TrainConfig, argv: list[str], around: Surroundings) -> Training:
    """Check everything that the run needs, then build it. Call it inside the `warmup` phase."""
    plan = make_plan(cfg, around.console, around.free)
    cfg = plan.cfg
    is_new = not Path(cfg.out_dir).exists()
    folder = open_run_dir(cfg, plan.data.folder, around.console.say)
    run_dir = folder.folder.path
    if plan.device.type == "cpu":
        keep_freed_memory()
    try:
        resumed = None
        if cfg.init_from == "resume":
            resumed = newest_resumable(run_dir, cfg, plan.shape, plan.data, around.console)
        folder.belongs_to(run_id_of(resumed[1]) if resumed else None)
        t = build_training(plan, folder, around)
    except BaseException as error:
        folder.close()
        if is_new:
            remove_unused(run_dir)
        if is_out_of_memory(error):
            raise memory_error(plan.device, cfg, "at the start") from error
        raise
    try:
        begin(t, argv, resumed)
    except OSError as error:
        t.close()
        if is_new:
            remove_unused(run_dir)
        raise ConfigError(
            f"--out_dir={cfg.out_dir}: cannot be written: {os_reason(error)}"
        ) from error
    except BaseException:
        t.close()
        raise
    return t


# -- check --------------------------------------------------------------------------------------


def make_plan(cfg: TrainConfig, console: Console, free: frozenset[str]) -> Plan:
    """Choose a device, open the data, fit the settings to it, and raise an error for settings that
    cannot work."""
    start.check_packages(cfg.logger_names)
    device = choose.pick_device(cfg)
    for reason in device.reasons:
        console.say(reason)
    cfg, start_from = starting_model(cfg, console)
    data = dataset.load_dataset(cfg.dataset, cfg.block_size)
    vocab_size = model_vocabulary(cfg, data, start_from)
    console.say(console_lines.vocab_size_line(data.vocab_size, data.origin))
    for warning in data.warnings:
        console.say(f"warning: {warning}")
    cfg = fitted(cfg, data, free, console)
    for warning in schedule_warnings(cfg):
        console.say(f"warning: {warning}")
    shape = shape_of(cfg, vocab_size)
    refuse_what_cannot_fit(cfg, shape, device)
    # Load the tokenizer now, because it may have to be downloaded.
    codec = tokenizer.from_json(data.tokenizer_json, data.origin) if cfg.sample_tokens else None
    return Plan(cfg, device, data, shape, codec, start_from)


# -- build --------------------------------------------------------------------------------------


def build_training(plan: Plan, folder: RunFolder, around: Surroundings) -> Training:
    """Make the model, the optimizer, the engine, the log and the checkpoint writer."""
    cfg, console = plan.cfg, around.console
    model = new_model(plan, console)
    peak = find_peak(plan.device)
    console.say(console_lines.peak_line(peak.source))
    device = choose_replicas(plan, console)
    leave_compiler_out()
    optimizer = make_optimizer(model, cfg, device.torch_device)
    save_schedule = SaveSchedule(interval.parse_interval(cfg.checkpoint_interval), cfg.keep_every)
    if not cfg.eval_only:
        console.say(f"checkpoints: {save_schedule.bound(around.clock.elapsed_ms())}")
    with ExitStack() as opened:  # ends the processes and threads if a later part fails
        engine = make_engine(
            model,
            optimizer,
            device,
            seed=cfg.seed,
            clock=around.clock,
            console=console,
            is_stopping=around.stop.is_set,
        )
        opened.callback(engine.close)
        log = RunLogWriter(folder.folder, folder.check)
        opened.callback(log.close)
        keep = Retention(cfg.keep_last, cfg.keep_every)
        writer = CheckpointWriter(folder, engine.device, log, keep)
        opened.callback(writer.close)
        run = Run(cfg, folder, plan.data, engine, around.clock, log, console, around.stop)
        windows = choose_windows(plan.data, cfg, plan.shape, engine.device)
        t = Training(
            run,
            Evaluations(run, windows, eval_schedule(cfg, windows), plan.tokenizer),
            Saves(run, writer, save_schedule, json_files.json_bytes(plan.data.tokenizer_json)),
            Iterations(run, peak),
            last_step=cfg.max_iters,
        )
        opened.pop_all()  # from now on, `Training.close` closes them
    return t


def new_model(plan: Plan, console: Console) -> Model:
    cfg, shape, device = plan.cfg, plan.shape, plan.device
    console.say(console_lines.tokens_per_iter_line(cfg.tokens_per_iter))
    console.say(console_lines.parameters_line(shape.num_params_shown()))
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")  # TF32, as nanoGPT does
    torch.manual_seed(cfg.seed)
    random.seed(cfg.seed)
    np.random.seed(cfg.seed % 2**32)  # Stepglass uses neither of the two; user code may
    model = registry.model_of(shape)
    if plan.start_from is not None:
        plan.start_from.fill(model)
    return model.to(device.torch_device)


def choose_replicas(plan: Plan, console: Console) -> Device:
    """Decide how many replicas to use. Whether to compile is decided later, when an update has been
    timed."""
    device = plan.device
    replicas, why = choose.pick_replicas(device, plan.cfg.batch_size, plan.shape.num_params())
    console.say(f"replicas: {replicas}: {why}")
    return replace(device, replicas=replicas)


def eval_schedule(cfg: TrainConfig, windows: Windows) -> EvalSchedule:
    return EvalSchedule(
        interval=None if cfg.eval_interval == "auto" else cfg.eval_interval,
        budget=cfg.eval_budget,
        max_iters=cfg.max_iters,
        tokens=(len(windows.train) + len(windows.val)) * cfg.block_size,
        tokens_per_iter=cfg.tokens_per_iter,
    )


# -- begin --------------------------------------------------------------------------------------


def begin(t: Training, argv: list[str], resumed: Found | None) -> None:
    """Start the logs, warm up, restore the checkpoint, and write config.json and tokenizer.json."""
    run, cfg = t.run, t.run.cfg
    start_loggers(run)
    rehearsal = Rehearsal()
    if resumed is not None:
        run.first_step = resumed[1].step
    with naming_memory_errors(run):
        with undisturbed(run):
            compiled_before = was_compiled(resumed[1]) if resumed else None
            rehearsal = rehearse(run, t.evals.windows, compiled_before)
        t.evals.schedule.eval_ms = rehearsal.eval_ms
        run.log.write(start_record(run, t.iterations.peak, argv, rehearsal.does_compile))
        with undisturbed(run):
            warm_up(run, t.evals.windows, rehearsal)
    if resumed is not None:
        restore(t, *resumed)
    if not cfg.eval_only:
        t.saves.reserve()  # in the background, while the first evaluation runs
    if not (resumed and cfg.eval_only):  # evaluating a run must not change its settings
        folder = run.folder.folder
        replace_file(FileOps(), folder, "config.json", json_files.json_bytes(asdict(cfg)))
        replace_file(FileOps(), folder, "tokenizer.json", t.saves.tokenizer)
    if run.device.is_async:
        run.clock.attach(CudaTimer())


def start_loggers(run: Run) -> None:
    """Start the loggers of `log_to` and send them every record of the run log."""
    cfg = run.cfg
    run.feeds = start.start(
        cfg.logger_names,
        run.run_dir,
        project=cfg.wandb_project,
        run_name=cfg.wandb_run_name,
        config=asdict(cfg.in_iterations()),
        log_interval=cfg.log_interval,
    )
    for feed in run.feeds:
        run.log.follow(feed.put)


def start_record(run: Run, peak: Peak, argv: list[str], does_compile: bool) -> StartRecord:
    shape = run.engine.model.config
    return StartRecord(
        schema=SCHEMA,
        time=time.time(),
        run_id=run.folder.run_id,
        argv=argv,
        config=asdict(run.cfg.in_iterations()),
        model={
            **shape_record(shape),
            "parameters": shape.num_params(),
            "flops_per_token": shape.flops_per_token(),
        },
        mfu_formula=mfu.FORMULA,
        peak_flops=peak.flops_per_s,
        peak_source=peak.source,
        tokens_per_iter=run.cfg.tokens_per_iter,
        data=run.data.fingerprint,
        clock_ns_per_switch=cost_per_switch_ns(),
        **environment(replace(run.device, compile=does_compile)),
    )
