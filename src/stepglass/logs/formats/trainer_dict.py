"""The dicts of Hugging Face's Trainer, whoever prints them: the Trainer, TRL, axolotl, ms-swift,
LLaMA-Factory, Unsloth, or trainer_state.json.

    {'loss': '14.88', 'learning_rate': '0.000156', 'epoch': '0.0075', 'train_runtime': '110.7'}
    {'eval_math_loss': 1.2, 'eval_math_runtime': 3.6, 'eval_math_accuracy': 0.61, 'epoch': 0.1}
    {"current_steps": 3200, "total_steps": 3235, "loss": 4.4, "elapsed_time": "5:13:22", ...}

A dict with a `loss` is of a running training, even if it has a `train_runtime`: that is the time so
far. `loss` is the mean since the previous dict.
"""

import re
from collections.abc import Mapping

from stepglass.logs.bars import clock_seconds
from stepglass.logs.reader import Record

Values = Mapping[str, object]

# A dict with `loss` but none of these keys was printed by another program.
TRAINER_KEYS = {
    "learning_rate",
    "epoch",
    "grad_norm",
    "global_step/max_steps",
    "current_steps",
}
NAMES = {
    "learning_rate": "lr",
    "lr": "lr",
    "grad_norm": "grad_norm",
    "epoch": "epoch",
    "num_tokens": "num_tokens",
    "num_input_tokens_seen": "num_tokens",
    "entropy": "entropy",
    "mean_token_accuracy": "mean_token_accuracy",
    "memory(GiB)": "memory_gib",
    "tokens_per_second": "tok_s",
}
END_NAMES = {
    "train_samples_per_second": "samples_per_s",
    "train_steps_per_second": "steps_per_s",
    "train_tokens_per_second": "tok_s",
    "train_loss": "train_loss",
    "epoch": "epoch",
}
# Only training by reward prints these. DPO prints `rewards/chosen`, but its loss is a likelihood.
POLICY_LOSS = "loss/policy_avg"  # what TRL's PPO prints for a loss
REWARD_KEYS = {"reward", "reward_std", "objective/kl", "objective/rlhf_reward", "kl"}
CLOCKS = ("elapsed_time", "train_runtime")  # running totals that a dict may have
EVAL_LOSS = re.compile(r"eval_(?:(.+)_)?loss$")
EVAL_RUNTIME = re.compile(r"eval_(?:(.+)_)?runtime$")
# What the Trainer adds to every evaluation, beside the metrics.
SPEEDS = re.compile(
    r"(?:.+_)?(?:runtime|samples_per_second|steps_per_second|tokens_per_second"
    r"|model_preparation_time|num_tokens|num_input_tokens_seen)$"
)
FRACTION = re.compile(r"(\d{1,12})/(\d{1,12})")
SPENT = re.compile(r"(?:(\d{1,9})d )?(?:(\d{1,9})h )?(?:(\d{1,9})m )?(\d{1,9})s")
CLOCK = re.compile(r"(?:\d+ days?, )?\d+:\d\d(?::\d\d(?:\.\d+)?)?")
MOST_METRICS = 50
DECIMALS = 0.0005  # a printed rate is off by at most this
LEAST_RATE = 0.05  # per second: three decimals are too coarse for less


def dict_step(values: Values) -> tuple[int | None, int | None]:
    """The step and the number of steps that a dict states itself."""
    if found := FRACTION.fullmatch(str(values.get("global_step/max_steps", ""))):
        return int(found[1]), int(found[2])
    step, total = as_real(values.get("current_steps")), as_real(values.get("total_steps"))
    if step is None or not 0 <= step < 1e15:
        return None, None
    return int(step), int(total) if total is not None and 0 < total < 1e15 else None


def dict_records(values: Values, step: int | None) -> list[Record]:
    """The records of a dict: one, or one for each evaluation set. `step` is the number of all steps
    in the dict at the end."""
    loss = as_real(values.get("loss", values.get(POLICY_LOSS)))
    is_trainers = not TRAINER_KEYS.isdisjoint(values) and "kind" not in values
    if loss is not None and is_trainers:
        record: Record = {"kind": "iter", "iter": step, "loss": loss}
        for key, name in NAMES.items():
            if key in values:
                record[name] = as_real(values[key])
        if not REWARD_KEYS.isdisjoint(values):
            record["is_policy"] = True
        if (seconds := elapsed_s(values)) is not None:
            record["elapsed_s"] = seconds
        if (rate := _rate(values)) is not None:
            record["rate_per_s"] = rate
        return [record]
    runtime = as_real(values.get("train_runtime"))
    if runtime is not None:
        rest = {name: as_real(values.get(key)) for key, name in END_NAMES.items() if key in values}
        if "steps_per_s" in rest:
            rest["steps_per_s"] = _exact_rate(rest["steps_per_s"], runtime, step)
        return [{"kind": "end", "wall_ms": 1000 * runtime, **rest}]
    return _evaluations(values, step)


def _exact_rate(rate: float | None, runtime: float, steps: int | None) -> float | None:
    """Steps per second, from the number of steps if that agrees with what is printed.

    >>> _exact_rate(0.003, 800_000.0, 2000), _exact_rate(0.003, 800_000.0, 9000)
    (0.0025, None)
    """
    if rate is not None and steps and runtime > 0 and abs(steps / runtime - rate) <= DECIMALS:
        return steps / runtime
    return rate if rate is not None and rate >= LEAST_RATE else None


def clock_records(values: Values, step: int) -> list[Record]:
    """A dict of LLaMA-Factory that tells only how far the run has come."""
    seconds = elapsed_s(values)
    if seconds is None or "current_steps" not in values:
        return []
    return [{"kind": "iter", "iter": step, "loss": None, "elapsed_s": seconds}]


def elapsed_s(values: Values) -> float | None:
    """The time since the start of training that a dict shows."""
    text = str(values.get("elapsed_time", ""))
    if found := SPENT.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return float(((24 * days + hours) * 60 + minutes) * 60 + seconds)
    if CLOCK.fullmatch(text):
        return clock_seconds(text)
    return as_real(values.get("train_runtime"))


def _rate(values: Values) -> float | None:
    rate, time = (as_real(values.get(f"train_speed({unit})")) for unit in ("iter/s", "s/it"))
    return rate if rate is not None or not time else 1 / time


def _evaluations(values: Values, step: int | None) -> list[Record]:
    """A set has a name if the Trainer was given several. TRL prints losses that are parts of the
    loss (`eval_nll_loss`): beside a plain `eval_loss`, every other value is a metric."""
    losses, times = _by_set(values, EVAL_LOSS), _by_set(values, EVAL_RUNTIME)
    if "" in losses or "" in times:
        names = [""]
    else:
        names = list(times) or list(losses)
    return [_evaluation(values, step, name, losses.get(name), times.get(name)) for name in names]


def _evaluation(
    values: Values, step: int | None, name: str, loss: float | None, time_s: float | None
) -> Record:
    prefix = f"eval_{name}_" if name else "eval_"
    metrics = {
        key[len(prefix) :]: number
        for key, value in values.items()
        if key.startswith(prefix)
        and key != prefix + "loss"
        and not SPEEDS.match(key[len(prefix) :])
        and (number := as_real(value)) is not None
    }
    record: Record = {
        "kind": "eval",
        "iter": step,
        "val_loss": loss,
        "time_ms": None if time_s is None else 1000 * time_s,
        "epoch": as_real(values.get("epoch")),
    }
    if name:
        record["set"] = name
    if metrics:
        record["metrics"] = dict(list(metrics.items())[:MOST_METRICS])
    return record


def _by_set(values: Values, pattern: re.Pattern[str]) -> dict[str, float]:
    return {
        found[1] or "": number
        for key, value in values.items()
        if (found := pattern.match(key)) and (number := as_real(value)) is not None
    }


def as_real(value: object) -> float | None:
    """A number, which version 5 of the Trainer prints as a text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
