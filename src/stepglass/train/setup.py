"""Sets up a training run: check everything, build it, warm up and, if asked, restore a checkpoint.

    train_to_the_end(set_up(cfg, argv, Surroundings(clock, console, stop)))

Call `set_up` inside the clock's `warmup` phase. Settings, device, data and memory are checked
first. Nothing is allocated or written before these checks have passed.
"""

import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from stepglass import json_files
from stepglass.checkpoint.schedule import SaveSchedule
from stepglass.checkpoint.writer import CheckpointWriter
from stepglass.data import dataset, tokenizer
from stepglass.errors import ConfigError, os_reason
from stepglass.files import FileOps, replace_file
from stepglass.hardware import choose
from stepglass.hardware.device_queue import timer_of
from stepglass.hardware.peak import Peak, find_peak
from stepglass.hardware.ranks import this_rank
from stepglass.loggers import start
from stepglass.measure import console_lines, mfu
from stepglass.measure.clock import cost_per_switch_ns
from stepglass.measure.event_details import RestartEvent
from stepglass.measure.records import SCHEMA, StartRecord
from stepglass.measure.run_log import RunLogWriter
from stepglass.measure.shapes import shape_of, shape_record
from stepglass.process import keep_freed_memory
from stepglass.run_dir.commit import Retention
from stepglass.run_dir.folder import RunFolder
from stepglass.run_dir.opening import open_run_dir, remove_unused
from stepglass.settings import interval
from stepglass.settings.lr_schedule import schedule_warnings
from stepglass.settings.train import TrainConfig
from stepglass.train.batch_probe import Probe, with_fastest_batch
from stepglass.train.batches import check_shares
from stepglass.train.building import Plan, Surroundings, new_engine
from stepglass.train.by_the_clock import plan_by_clock, sized_for_time
from stepglass.train.environment import environment
from stepglass.train.eval_schedule import EvalSchedule
from stepglass.train.evaluate import Evaluations, Windows, choose_windows
from stepglass.train.fitted import fitted
from stepglass.train.iterations import Iterations
from stepglass.train.memory_check import rows_before_compiling
from stepglass.train.memory_errors import is_out_of_memory, memory_error, naming_memory_errors
from stepglass.train.resume import Found, newest_resumable, restore, run_id_of, was_compiled
from stepglass.train.run import Run
from stepglass.train.saves import Saves
from stepglass.train.starting_model import model_vocabulary, starting_model
from stepglass.train.training import Training
from stepglass.train.warmup import Rehearsal, rehearse, undisturbed, warm_up


def set_up(cfg: TrainConfig, argv: list[str], around: Surroundings) -> Training:
    """Check everything that the run needs, then build it. Call it inside the `warmup` phase."""
    plan = make_plan(cfg, around)
    cfg = plan.cfg
    is_new = not Path(cfg.out_dir).exists()
    folder = open_run_dir(cfg, plan.data.folder, around.console.say)
    run_dir = folder.folder.path
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


def make_plan(cfg: TrainConfig, around: Surroundings) -> Plan:
    """Choose a device, open the data, fit the settings to the time and the data, and raise an error
    for settings that cannot work."""
    console = around.console
    start.check_packages(cfg.logger_names)
    device = choose.pick_device(cfg)
    for reason in device.reasons:
        console.say(reason)
    if device.type == "cpu":
        keep_freed_memory()  # before anything is timed
    cfg, start_from = starting_model(cfg, console)
    data = dataset.load_dataset(cfg.dataset, cfg.block_size)
    vocab_size = model_vocabulary(cfg, data, start_from)
    console.say(console_lines.vocab_size_line(data.vocab_size, data.origin))
    for warning in data.warnings:
        console.say(f"warning: {warning}")
    peak = find_peak(device)
    cfg = sized_for_time(cfg, data, (device, peak), around)
    cfg = fitted(cfg, data, around.free, console)
    for warning in schedule_warnings(cfg):
        console.say(f"warning: {warning}")
    shape = shape_of(cfg, vocab_size)
    if around.measures_batch and cfg.init_from != "resume" and around.group is None:
        probe = Probe(cfg, device, data, shape, around.clock, console, around.stop.is_set)
        cfg = with_fastest_batch(probe)
        if cfg.threads:
            choose.use_threads(cfg.threads)
            device = replace(device, threads=cfg.threads)
    check_shares(cfg, device)
    rows = rows_before_compiling(cfg, shape, device)
    # Load the tokenizer now, because it may have to be downloaded.
    codec = tokenizer.from_json(data.tokenizer_json, data.origin) if cfg.sample_tokens else None
    return Plan(cfg, device, data, shape, peak, rows, codec, start_from)


# -- build --------------------------------------------------------------------------------------


def build_training(plan: Plan, folder: RunFolder, around: Surroundings) -> Training:
    """Make the model, the optimizer, the engine, the log and the checkpoint writer."""
    cfg, console = plan.cfg, around.console
    save_schedule = SaveSchedule(interval.parse_interval(cfg.checkpoint_interval), cfg.keep_every)
    with ExitStack() as opened:  # ends the processes and threads if a later part fails
        engine = new_engine(plan, around)
        opened.callback(engine.close)
        if not cfg.eval_only:
            engine.check_folder(folder)
            console.say(f"checkpoints: {save_schedule.bound(around.clock.elapsed_ms())}")
        log = RunLogWriter(folder.folder, folder.check)
        opened.callback(log.close)
        keep = Retention(cfg.keep_last, cfg.keep_every)
        sharers = this_rank().local_of if engine.saves_shards else 1
        writer = CheckpointWriter(folder, engine.device, log, keep, sharers=sharers)
        opened.callback(writer.close)
        run = Run(cfg, folder, plan.data, engine, around.clock, log, console, around.stop)
        run.rows_before_compiling = plan.rows_before_compiling
        windows = choose_windows(plan.data, cfg, engine.device)
        t = Training(
            run,
            Evaluations(run, windows, eval_schedule(cfg, windows), plan.tokenizer),
            Saves(run, writer, save_schedule, json_files.json_bytes(plan.data.tokenizer_json)),
            Iterations(run, plan.peak),
            last_step=cfg.max_iters,
        )
        opened.pop_all()  # from now on, `Training.close` closes them
    return t


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
    run = t.run
    start_loggers(run)
    rehearsal = Rehearsal()
    if resumed is not None:
        run.first_step = resumed[1].step
    with naming_memory_errors(run):
        with undisturbed(run):
            compiled_before = was_compiled(resumed[1]) if resumed else None
            rehearsal = rehearse(run, t.evals.windows, compiled_before)
        t.evals.schedule.eval_ms = rehearsal.eval_ms
        plan_by_clock(t, rehearsal.update_ms, resumed[1] if resumed else None)
        run.log.write(start_record(run, t.iterations.peak, argv, rehearsal.does_compile))
        if this_rank().restarts:
            run.event(RestartEvent(restarts=this_rank().restarts))
            run.log.flush()  # whatever ended the last start may end this one just as soon
        with undisturbed(run):
            warm_up(run, t.evals.windows, rehearsal)
    if resumed is not None:
        restore(t, *resumed)
    cfg = run.cfg
    if not cfg.eval_only:
        t.saves.reserve()  # in the background, while the first evaluation runs
    if not (resumed and cfg.eval_only):  # evaluating a run must not change its settings
        folder = run.folder.folder
        replace_file(FileOps(), folder, "config.json", json_files.json_bytes(asdict(cfg)))
        replace_file(FileOps(), folder, "tokenizer.json", t.saves.tokenizer)
    if run.device.is_async:
        run.clock.attach(timer_of(run.device.torch_device))
    if run.budget is not None:
        run.budget.begin()


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
        **processes(run),
        **environment(replace(run.device, compile=does_compile)),
    )


def processes(run: Run) -> dict[str, Any]:
    """How several processes train together."""
    here = this_rank()
    return {"processes": here.of, "parallel": run.cfg.parallel} if here.is_one_of_several else {}
