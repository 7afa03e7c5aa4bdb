"""The advice for programs: as JSON, as a TOML file that `train` takes, and as nanoGPT's flags."""

import json
from typing import Any

from stepglass.advise.advice import Advice
from stepglass.advise.reason_text import reason_text
from stepglass.errors import ConfigError
from stepglass.explain.render.languages import Words
from stepglass.explain.render.output import rounded
from stepglass.settings.nanogpt_defaults import NANOGPT
from stepglass.settings.train import TRAIN_SETTINGS, TrainConfig

# The settings that nanoGPT's train.py has and that say what is trained.
NANOGPT_KEYS = (
    "dataset", "n_layer", "n_head", "n_embd", "block_size", "dropout", "bias", "batch_size",
    "gradient_accumulation_steps", "learning_rate", "max_iters", "weight_decay", "beta1", "beta2",
    "grad_clip", "decay_lr", "warmup_iters", "lr_decay_iters", "min_lr", "eval_interval",
    "eval_iters", "dtype", "compile",
)  # fmt: skip
ALWAYS_SAID = ("batch_size", "gradient_accumulation_steps", "dtype", "compile", "eval_interval",
               "eval_iters")  # fmt: skip
LEFT_OUT = ("recipe", "device", "out_dir", "init_from", "eval_only", "watch")


def value_text(value: Any) -> str:
    """A value as it is typed after `--key=`."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def json_of(advice: Advice, words: Words) -> str:
    """The keys are a contract: docs/advise.md."""
    expect, target = advice.expect, advice.case.target
    answer = {
        "device": target.name,
        "peak_tflops": _scaled(advice.peak_flops, 1e12),
        "device_memory_gb": _scaled(target.memory_bytes, 1e9),
        "settings": advice.settings,
        "expect": {
            "ms_per_iter": rounded(expect.ms_per_iter, 3),
            "tokens_per_s": rounded(expect.tokens_per_s, 1),
            "mfu": rounded(expect.mfu, 4),
            "memory_gb": _scaled(expect.memory.total, 1e9),
            "hours": rounded(expect.hours, 3),
        },
        "reasons": [
            {
                "setting": reason.setting,
                "basis": reason.basis,
                "text": reason_text(reason, words),
            }
            for reason in advice.reasons
        ],
    }
    return json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False)


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else rounded(value / unit, 3)


def toml_of(advice: Advice, words: Words) -> str:
    """A whole config file: every setting that differs from its default, and those advised."""
    cfg = advice.case.with_settings(advice.settings)
    has_other_length = bool(cfg.minutes or cfg.epochs)  # then `train` refuses max_iters beside it
    lines = [
        f"# stepglass advise: {advice.case.target.name or 'unknown device'}",
        'recipe = "none"',
    ]
    for key in TRAIN_SETTINGS.names():
        value = getattr(cfg, key)
        is_said = key in advice.settings or value != TRAIN_SETTINGS.default(key)
        is_said &= key not in LEFT_OUT and not (key == "max_iters" and has_other_length)
        if is_said:
            lines.append(f"{key} = {_toml(value)}")
    lines.append("")
    for reason in advice.reasons:
        text = reason_text(reason, words).replace("\u00a0", " ")
        basis = words.text(f"advise-basis-{reason.basis}")
        lines.append(f"# {reason.setting} ({basis}): {' '.join(text.split())}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else repr(value)


def nanogpt_words(advice: Advice) -> list[str]:
    """The flags of nanoGPT's train.py, where they differ from its defaults."""
    cfg: TrainConfig = advice.case.with_settings(advice.settings).in_iterations()
    words = []
    for key in NANOGPT_KEYS:
        value = getattr(cfg, key)
        if value != NANOGPT[key] or key in ALWAYS_SAID:
            words.append(f"--{key}={value_text(value)}")
    return [*words, f"--device={advice.case.target.kind}"]


def check_nanogpt_can(cfg: TrainConfig) -> None:
    """Raise ConfigError for a model or schedule that nanoGPT does not have."""
    if cfg.model != "gpt2":
        raise ConfigError(
            f"--for=nanogpt: nanoGPT has the gpt2 model only, found model={cfg.model}; add "
            "--model=gpt2 or --recipe=gpt2"
        )
    if cfg.uses_muon or cfg.lr_schedule != "cosine":
        raise ConfigError(
            "--for=nanogpt: nanoGPT has AdamW and the cosine schedule only, found "
            f"optimizer={cfg.optimizer} and lr_schedule={cfg.lr_schedule}; leave them out"
        )
