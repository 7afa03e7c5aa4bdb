"""What the names in an unknown log mean. Only plain names are taken; other columns are left out.

role_of("train/loss")      "loss"
role_of("val_loss")        "val_loss"
role_of("loss_scale")      None
unit_of("iter time (s)")   "s"
"""

import re
from functools import lru_cache
from operator import itemgetter

from stepglass.logs.formats.general_rows import Row, Value

TRAIN = (
    r"(?:(?:tr|trn|train|training|batch|mini ?batch|step|iter|running|avg|average|mean"
    r"|cur|curr|current|reduced) )"
)
VAL = r"(?:val|valid|vali|validation|eval|evaluation|dev|held ?out)"
KIND = r"(?:(?:lm|nll|ce|xent|cross entropy|total|mle|avg|average|mean) )"
LOSS = rf"{KIND}*loss|{KIND}?(?:nll|ce|xent|cross entropy)"
STEP = r"step|steps|iter|iters|iteration|iterations|it|itr|update|updates|num updates"
PER = r"(?:per )?(?:it|iter|iters|iteration|step|batch|update)"
SECONDS = r"(?:ms|msec|milliseconds|s|sec|secs|seconds)"
METRIC = (
    r"acc|acc1|acc5|accuracy|top1|top5|ppl|perplexity|f1|auc|wer|cer|bleu|map|miou|iou|precision|recall"
    r"|psnr|ssim|mae|mse|rmse|score|r2"
)
# Roles in the order in which they are tried, and within a role the better name first.
ROLES = {
    "iter": (
        r"(?:trainer )?global ?step",
        rf"(?:train|training|optimizer|optim|current|cur) (?:{STEP})",
        rf"(?:{STEP})(?: num| number| idx| id| count)?|current steps?|n iter",
        r"batch|batches|batch (?:idx|id|num|number)|minibatch|n total",
    ),
    "epoch": (r"(?:current |cur |train |training )?(?:epoch|epochs|ep)(?: num| number| idx)?",),
    "val_loss": (
        rf"{VAL} (?:set )?(?:{LOSS})(?: (?:avg|mean|epoch|total))?",
        rf"loss {VAL}",
    ),
    "test_loss": (rf"test (?:set )?(?:{LOSS})(?: (?:avg|mean|epoch|total))?", r"loss test"),
    "loss": (
        r"loss",
        rf"(?:train|training) (?:{LOSS})",
        rf"{TRAIN}*(?:{LOSS})(?: (?:step|batch|total|train|training|avg|mean|epoch))?",
    ),
    "lr": (
        r"lr|learning rate|learningrate",
        r"(?:current|cur|optim|optimizer|train|training) (?:lr|learning rate)",
    ),
    "grad_norm": (r"(?:train |training |total |global |optim )?(?:grad|gradient) ?norm|gnorm",),
    "tok_s": (r"(?:train |training )?(?:tok|toks|token|tokens) (?:per )?(?:s|sec|second|seconds)",),
    "rate_per_s": (
        r"(?:train |training )?(?:it|its|iter|iters|iterations|step|steps|batch|batches|updates)"
        r" (?:per )?(?:s|sec|second)",
    ),
    "eval_time": (rf"{VAL} (?:time|duration)(?: {SECONDS})?",),
    "step_time": (
        rf"(?:train |training )?(?:step|iter|iteration|batch|update) (?:time|duration|dt)"
        rf"(?: {SECONDS})?",
        rf"(?:(?:elapsed )?time |{SECONDS} ){PER}(?: {SECONDS})?",
    ),
    "elapsed": (
        rf"(?:(?:total )?elapsed(?: time)?"
        r"|(?:total|wall|wall ?clock|cumulative)(?: train| training)? time"
        rf"|time (?:elapsed|total|since start)|walltime|runtime)(?: {SECONDS})?",
    ),
    "time": (rf"(?:dt|time|duration|took)(?: {SECONDS})?",),
}
PATTERNS = {
    role: tuple(re.compile(pattern) for pattern in patterns) for role, patterns in ROLES.items()
}
VAL_METRIC = re.compile(rf"{VAL} (?P<name>(?:\w+ )?(?:{METRIC}))")
CONTAINERS = re.compile(
    r"^(?:metrics?|logs?|stats|scalars|values|data|perf|performance|progress|timing|times?)[/.]"
)
BRACKETS = re.compile(r"\((ms|msec|s|sec|secs|seconds)\)")
UNIT_WORD = re.compile(r"(?:^| )(ms|msec|milliseconds|s|sec|secs|seconds)(?= |$)")
MOST_NAMES = 4096  # to remember
MS = {"ms": 1.0, "msec": 1.0, "msecs": 1.0, "millisecond": 1.0, "milliseconds": 1.0, "us": 0.001}
MS |= dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000.0)
NOT_STEPS = re.compile(r"(?:max|total|num|per|warm ?up|last|best|save|val|eval|test|every) ?$")


@lru_cache(MOST_NAMES)
def words_of(key: str) -> str:
    """
    >>> words_of("Train/Loss"), words_of("iter_time (s)"), words_of("_step"), words_of("ms/step")
    ('train loss', 'iter time s', 'step', 'ms step')
    """
    key = re.sub(r"([a-z])([A-Z])", r"\1 \2", key) if not key.isupper() else key
    return re.sub(r"[^a-z0-9]+", " ", CONTAINERS.sub("", key.lower())).strip()


@lru_cache(MOST_NAMES)
def role_of(key: str) -> tuple[str, int] | None:
    """The role of a name and how good a name for it this is (0 is best), or None."""
    words = words_of(key)
    for role, patterns in PATTERNS.items():
        for rank, pattern in enumerate(patterns):
            if pattern.fullmatch(words):
                return role, rank
    # `INFO root step 100`: what stands before `step` may be of the logger.
    before, _, last = words.rpartition(" ")
    if last in ("step", "iter", "iteration", "epoch") and not NOT_STEPS.search(before):
        return ("epoch" if last == "epoch" else "iter"), len(PATTERNS["iter"])
    return None


@lru_cache(MOST_NAMES)
def metric_of(key: str) -> str | None:
    """The name of a figure of an evaluation, such as `acc` of `val_acc`, or None."""
    found = VAL_METRIC.fullmatch(words_of(key))
    return found["name"].replace(" ", "_") if found else None


def duration_in_ms(key: str, value: Value) -> float | None:
    """A duration, or None if its unit is neither in the name nor after the number.

    >>> duration_in_ms("time", Value(0.5, "s")), duration_in_ms("dt_ms", Value(7.0))
    (500.0, 7.0)
    >>> duration_in_ms("time", Value(0.5)) is None
    True
    """
    if value.number is None:
        return None
    unit = value.unit.partition("/")[0]
    if unit not in MS:
        found = BRACKETS.search(key) or UNIT_WORD.search(words_of(key))
        unit = found[1] if found else ""
        if not unit and key == "_runtime":
            unit = "s"  # a name of wandb's, which means seconds
    return value.number * MS[unit] if unit in MS else None


def roles_in(row: Row) -> dict[str, list[str]]:
    """The names of a row by role, the best first."""
    found: dict[str, list[tuple[int, str]]] = {}
    for key, value in row.values.items():
        role = role_of(key)
        if role is None and value.unit.partition("/")[2]:
            role = role_of(value.unit)  # `speed: 1.13s/iter`, `12.5 it/s`
        if role is not None:
            found.setdefault(role[0], []).append((role[1], key))
    return {
        role: [key for _, key in sorted(keys, key=itemgetter(0))] for role, keys in found.items()
    }
