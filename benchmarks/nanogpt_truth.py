"""Compares explain's ledger of real nanoGPT runs with times recorded beside them.

    NANOGPT_DIR=../nanoGPT python benchmarks/nanogpt_truth.py

nanoGPT's train.py runs unchanged, but its evaluation, its torch.save and its calls of time.time are
timed from outside. `explain` sees only what train.py prints. A row of the ledger is right if it is
within 5 % of the truth, or if explain says how far it may be off (`±`) and that holds. A row that
explain reports together with another, such as evaluations and checkpoints, is compared with their
sum.
"""

import ast
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

TOLERANCE = 0.05
NEGLIGIBLE = 0.01  # of the run: a row this small may be off by as much
DATA = "data/shakespeare_char"
SMALL = {
    "device": "cpu",
    "compile": False,
    "eval_iters": 20,
    "block_size": 64,
    "batch_size": 8,
    "n_layer": 3,
    "n_head": 4,
    "n_embd": 96,
    "dropout": 0.0,
    "max_iters": 200,
    "lr_decay_iters": 200,
    "dataset": "shakespeare_char",
    "gradient_accumulation_steps": 1,
    "eval_interval": 50,
    "log_interval": 1,
    "always_save_checkpoint": False,
    "warmup_iters": 10,
}
SETTINGS: dict[str, dict[str, object]] = {
    "every line, saves when better": {},
    "every tenth line": {"log_interval": 10},
    "always saves": {"always_save_checkpoint": True},
    "always saves, every tenth line": {"always_save_checkpoint": True, "log_interval": 10},
    "many evaluations": {"eval_interval": 10, "eval_iters": 5},
    "long evaluations": {"eval_interval": 100, "eval_iters": 200},
    "evaluations off the log's grid": {"eval_interval": 25, "log_interval": 10},
    "large model": {"n_layer": 6, "n_embd": 192, "max_iters": 60, "eval_interval": 20},
    "small steps": {"n_layer": 1, "n_embd": 32, "max_iters": 1000, "eval_interval": 100},
    "overfits, so few saves": {"max_iters": 400, "learning_rate": 0.01, "eval_interval": 20},
}


def record(truth_file: str, script: str, flags: list[str]) -> None:
    """Run train.py in this process and write what each part of it took."""
    import torch  # noqa: PLC0415

    spent: dict[str, list[tuple[float, float]]] = {"eval": [], "checkpoint": []}
    laps: list[float] = []

    def timed(name, function):
        def call(*args, **kwargs):
            begin = time.perf_counter()
            result = function(*args, **kwargs)
            spent[name].append((begin, time.perf_counter()))
            return result

        return call

    torch.save = timed("checkpoint", torch.save)
    source = ast.parse(Path(script).read_text())
    for node in ast.walk(source):
        if isinstance(node, ast.FunctionDef) and node.name == "estimate_loss":
            node.decorator_list.insert(0, ast.Name("timed_evaluation", ast.Load()))
    ast.fix_missing_locations(source)
    real_time = time.time

    def noting_time() -> float:
        if sys._getframe(1).f_code.co_filename == script:
            laps.append(time.perf_counter())
        return real_time()

    time.time = noting_time
    sys.argv = [script, *flags]
    sys.path.insert(0, str(Path(script).parent))
    names = {"__name__": "__main__", "timed_evaluation": lambda f: timed("eval", f)}
    exec(compile(source, script, "exec"), names)
    Path(truth_file).write_text(json.dumps({"spent": spent, "laps": laps}))


def true_phases(truth: dict) -> dict[str, float]:
    """Milliseconds by phase, from the first iteration to the last."""
    laps = truth["laps"]
    total = {name: 0.0 for name in ("step", "eval", "checkpoint", "warmup")}
    steps = []
    for begin, end in itertools.pairwise(laps):
        step = end - begin
        for name, spans in truth["spent"].items():
            inside = sum(b - a for a, b in spans if begin <= a < end)
            total[name] += inside
            step -= inside
        steps.append(step)
    usual = median(steps[1:])
    total["warmup"] = max(0.0, steps[0] - usual)
    total["step"] = sum(steps) - total["warmup"]
    return {name: 1000 * seconds for name, seconds in total.items()}


def compare(
    phases: dict[str, float], truth: dict[str, float], at_evals_ms: float = 0.0
) -> list[tuple[str, float, float]]:
    """Each row of the ledger: its name, its milliseconds and the true ones. Rows that share a part,
    such as start-up with the first evaluation, are compared as one, named `a & b`. `at_evals_ms` is
    what the ledger calls a stall in an iteration that evaluates."""
    phases = dict(phases)
    stall = phases.pop("stall", 0.0)  # a slow step is a step, a slow evaluation an evaluation
    phases["step"] = phases.get("step", 0.0) + stall - at_evals_ms
    if at_evals_ms:
        row = "eval+checkpoint" if "eval+checkpoint" in phases else "eval"
        phases[row] = phases.get(row, 0.0) + at_evals_ms
    shared = [name for name in phases if "+" in name]
    parts = {part for name in shared for part in name.split("+")}
    shared += [name for name in phases if name in parts]
    rows = [(name, ms, truth.get(name, 0.0)) for name, ms in phases.items() if name not in shared]
    if shared:
        together = sum(phases[name] for name in shared)
        rows.append((" & ".join(shared), together, sum(truth[part] for part in parts)))
    return rows


def run(nanogpt: Path, name: str, changed: dict[str, object]) -> bool:
    """Train with these settings, explain the log, and print both side by side."""
    from stepglass.explain.study import study  # noqa: PLC0415
    from stepglass.logs.detect import read_log  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        truth_file, log_file = Path(folder, "truth.json"), Path(folder, "log.txt")
        flags = [f"--{key}={value}" for key, value in {**SMALL, **changed}.items()]
        command = [sys.executable, __file__, "--record", str(truth_file), "train.py"]
        with log_file.open("wb") as out:
            subprocess.run(
                [*command, *flags, f"--out_dir={folder}/out"],
                cwd=nanogpt,
                stdout=out,
                stderr=subprocess.DEVNULL,
                check=True,
            )
        truth = true_phases(json.loads(truth_file.read_text()))
        with log_file.open("rb") as file:
            [part] = study(read_log(file, name)).parts
    ledger = part.timing.ledger
    print(f"\n{name}: {sum(truth.values()) / 1000:.2f} s in the loop")
    print("  truth  " + "  ".join(f"{k} {v / 1000:.2f}" for k, v in truth.items()))
    if ledger is None:
        print("  no ledger: the log does not say enough")
        return True
    is_right = True
    whole = sum(truth.values())
    at_evals_ms = sum(spike.stall_ms for spike in part.timing.spikes if "eval" in spike.cause)
    for phase, ms, true_ms in compare(ledger.phases, truth, at_evals_ms):
        error = ms - true_ms
        stated = sum(ledger.errors.get(name, 0.0) for name in phase.split(" & "))
        fits = abs(error) <= max(TOLERANCE * true_ms, NEGLIGIBLE * whole)
        is_right &= fits or abs(error) <= stated
        off = 100 * error / true_ms if true_ms else float("nan")
        print(
            f"  {phase:31} {ms / 1000:8.2f} s ± {stated / 1000:5.2f}  truth {true_ms / 1000:8.2f} s"
            f"  {off:+6.1f}%",
            end="",
        )
        print("" if fits else "  within its ±" if abs(error) <= stated else "  WRONG")
    return is_right


def main() -> None:
    if sys.argv[1:2] == ["--record"]:
        record(sys.argv[2], str(Path(sys.argv[3]).resolve()), sys.argv[4:])
        return
    nanogpt = Path(os.environ["NANOGPT_DIR"]).resolve()
    if not (nanogpt / DATA / "train.bin").exists():
        sys.exit(f"error: {nanogpt / DATA} has no train.bin; run: python {DATA}/prepare.py there")
    right = [run(nanogpt, name, changed) for name, changed in SETTINGS.items()]
    print(f"\n{sum(right)} of {len(right)} settings have every row within 5 % or within its ±")


if __name__ == "__main__":
    main()
