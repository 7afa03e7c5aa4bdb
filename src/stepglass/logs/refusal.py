"""The sentence for a file in which nothing was found: what it looks like, and how its run ended.

A log that ends before the first step is a common reason to ask: then the sentence quotes the error.
"""

import re
from collections.abc import Iterable

from stepglass.logs.log import Log

# Words that only the logs of one trainer contain, also before the first step.
SIGNATURES = (
    (re.compile(r"\bdetectron2\b|\bd2\.(?:engine|utils|data|evaluation)\b"), "detectron2"),
    (re.compile(r"- mm(?:engine|det|seg|cv|cls|pose|action)\w* - |\bmmengine\b"), "OpenMMLab"),
    (re.compile(r"\bUltralytics\b|\bYOLOv\d+\b.{0,40}\btorch-"), "Ultralytics"),
    (re.compile(r"\bkeras\b|━━━━ \d+s \d+ms/step"), "Keras"),
    (
        re.compile(r"INFO:tensorflow:|\btensorflow/(?:core|compiler|stream_executor)\b"),
        "TensorFlow",
    ),
    (
        re.compile(r"\[INFO\|trainer\.py:|\btransformers\.trainer\b|TrainingArguments\("),
        "Hugging Face",
    ),
    (re.compile(r"\b(?:pytorch_)?lightning\b|LOCAL_RANK: \d+ - CUDA_VISIBLE_DEVICES"), "Lightning"),
    (
        re.compile(r"\bfairseq(?:_cli|\.tasks|\.trainer)?\b|valid on '\w+' subset"),
        "fairseq",
    ),
    (re.compile(r"\bkaldi\b|\bsteps/nnet\d?/|\(nnet\d?-[\w-]+[:\[]"), "Kaldi"),
    (re.compile(r"\bsolver\.cpp:\d+\]"), "Caffe"),
    (re.compile(r"\bNeMo (?:[IWE]|Experiment)|\bnemo_logging\b"), "NeMo"),
    (re.compile(r"\bmegatron\b|> building train, validation"), "Megatron"),
    (re.compile(r"\[deepspeed\b|\bDeepSpeed\b|\bdeepspeed\.runtime\b"), "DeepSpeed"),
    (re.compile(r"\btorchtitan\b"), "torchtitan"),
    (re.compile(r"\bnanotron\b"), "nanotron"),
    (re.compile(r"\blitgpt\b|\blit_gpt\b"), "litgpt"),
    (
        re.compile(
            r"\bllm-?foundry\b|\bcomposer\.(?:trainer|utils|cli)\b"
            r"|\bTrain (?:loss|time|metrics|memory|throughput)/\w"
        ),
        "Composer",
    ),
    (re.compile(r"\bespnet\d?\b|\d+epoch(?::train:| results: )"), "ESPnet"),
    (re.compile(r"\bMaxText\b"), "MaxText"),
    (re.compile(r"\btimm\b"), "timm"),
    (re.compile(r"tokens per iteration will be|number of parameters: \d[\d.]*M\b"), "nanoGPT"),
)
LAUNCHER = re.compile(
    r"(?:[\w.]+\.)?(?:CalledProcessError|ChildFailedError|ProcessRaisedException"
    r"|ProcessExitedException)\b"
)
FEWEST = 2  # lines with a signature: one may be a path or a word of the text
KNOWN = "nanoGPT, llm.c, Hugging Face, Lightning, Megatron, Keras, timm, detectron2 and others"
LONGEST_QUOTE = 300


def likely_trainer(texts: Iterable[str]) -> str | None:
    """The trainer whose words are in these lines most often, or None."""
    counts: dict[str, int] = {}
    for text in texts:
        for pattern, name in SIGNATURES:
            if pattern.search(text[:1000]):
                counts[name] = counts.get(name, 0) + 1
    likely = max(counts.items(), key=lambda item: item[1], default=("", 0))
    return likely[0] if likely[1] >= FEWEST else None


def nothing_found(log: Log, name: str) -> str:
    """The error message for a file in which no line could be read."""
    if not log.num_lines:
        return f"{name}: the file is empty; expected a training log"
    lines = f"{log.num_lines:,} line{'s' * (log.num_lines != 1)}"
    parts = [f"{name}: no line of a format I know in its {lines}"]
    trainer = next((s.facts["looks_like"] for s in log.segments if "looks_like" in s.facts), None)
    events = [event for segment in log.segments for event in segment.events]
    failures = [event for event in events if event.name in ("error", "oom", "interrupted")]
    if trainer:
        parts.append(f"it looks like a log of {trainer}, but has no line of a training step")
    if failures:
        # A launcher reports the failure of the process that it has started, after its own error.
        own = [e for e in failures if not LAUNCHER.match(str(e.record.get("detail", "")))]
        last = (own or failures)[-1]
        quote = str(last.record.get("detail", ""))[:LONGEST_QUOTE]
        parts.append(f"before any such line it ends with an error (line {last.line:,}): {quote}")
        parts.append("correct that first, then explain the log of the next run")
    else:
        parts.append(
            "expected steps with a loss or a time (step 100: loss 2.1, time 33ms), "
            f"as {KNOWN} print them, or a table with such columns"
        )
        parts.append(
            "next: stepglass explain FILE with the file that has these lines; if this one has, "
            "open an issue with twenty of them"
        )
    return "; ".join(parts)
