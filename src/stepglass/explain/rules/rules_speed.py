"""Rules about how well the machine is used: MFU, kernels, accumulation, slow paths, data, memory,
and numbers that contradict each other."""

import numpy as np

from stepglass.explain.finding import Change, Finding, Number
from stepglass.explain.study import Part
from stepglass.logs.table import median
from stepglass.measure import devices

SMALL_MODEL = 30e6
SMALL_MICRO_BATCH = 16_384  # tokens
LOW_MFU = 20.0
DATA_BUDGET = 0.05


def is_on_gpu(part: Part) -> bool:
    device = part.setting("device") or part.segment.facts.get("device_type") or "cuda"
    return isinstance(device, str) and device.startswith("cuda")


def mfu_wrong_peak(part: Part) -> list[Finding]:
    mfu = part.mfu
    if mfu.printed_last is None or mfu.assumed_tflops is None or part.log.format == "stepglass":
        return []
    printed = part.column("mfu")
    over = np.flatnonzero(printed > 100)
    device = str(part.setting("device") or "")
    is_other = mfu.peak_tflops is not None and abs(mfu.peak_tflops / mfu.assumed_tflops - 1) > 0.02
    has_no_peak = part.log.format == "nanogpt" and device.split(":")[0] in ("mps", "cpu")
    if is_other and mfu.corrected is None:
        return []
    if not is_other and not len(over) and not has_no_peak:
        return []
    rows = over if len(over) else np.flatnonzero(np.isfinite(printed))[-1:]
    return [
        Finding(
            "mfu-wrong-peak",
            "established",
            "note",
            {
                "printed_mfu": float(printed[rows[0]]) if len(over) else mfu.printed_last,
                "clean_mfu": mfu.clean,
                "corrected_mfu": mfu.corrected,
                "assumed_tflops": mfu.assumed_tflops,
                "peak_tflops": mfu.peak_tflops,
                "achieved_tflops": mfu.achieved_tflops,
                "device": mfu.device or device or None,
            },
            [int(part.column("line")[row]) for row in rows] + part.line_of_setting("device"),
            [int(part.column("iter")[row]) for row in rows],
            variant="other" if is_other else "over" if len(over) else "no-peak",
        )
    ]


def micro_batch_tokens(part: Part) -> float | None:
    batch, block = part.number_setting("batch_size"), part.number_setting("block_size")
    if batch and block:
        return batch * block
    return None


def small_kernels(part: Part) -> list[Finding]:
    real = part.mfu.corrected
    parameters, micro = part.fact("parameters"), micro_batch_tokens(part)
    if real is None or real >= LOW_MFU or not is_on_gpu(part) or part.log.format == "stepglass":
        return []
    is_small = (parameters is not None and parameters < SMALL_MODEL) or (
        micro is not None and micro < SMALL_MICRO_BATCH
    )
    if not is_small:
        return []
    change: Change = {}
    batch, block = part.number_setting("batch_size"), part.number_setting("block_size")
    accumulation = part.number_setting("gradient_accumulation_steps")
    needed = memory_bytes(part, batch * 4) if batch and block else None
    if batch and accumulation in (None, 1.0) and needed is not None and needed < 4e9:
        change["batch_size"] = int(batch * 4)
    if part.setting("compile") is False:
        change["compile"] = True
    return [
        Finding(
            "small-kernels",
            "supported",
            "advice",
            {
                "corrected_mfu": real,
                "parameters": parameters,
                "micro_tokens": micro,
                "device": part.mfu.device,
                "normal_ms": part.timing.normal_ms,
            },
            part.line_of_fact("parameters") + part.line_of_setting("batch_size"),
            [],
            change,
            cost_ms=part.phase_ms("step") * 0.5,
        )
    ]


def accumulation_waste(part: Part) -> list[Finding]:
    accumulation = part.number_setting("gradient_accumulation_steps")
    batch, block = part.number_setting("batch_size"), part.number_setting("block_size")
    parameters = part.fact("parameters")
    if not accumulation or accumulation < 8 or not batch or not block or not parameters:
        return []
    if not is_on_gpu(part) or batch * block >= SMALL_MICRO_BATCH:
        return []
    factor = max(k for k in (2, 4, 5, 8, 10) if accumulation % k == 0 or k == 2)
    if accumulation % factor:
        return []
    needed = memory_bytes(part, batch * factor)
    if needed is None:
        return []
    known = devices.find(part.mfu.device) if part.mfu.device else None
    room = known.memory_bytes if known else None
    if needed > (0.8 * room if room else 4e9):
        return []
    return [
        Finding(
            "accumulation-waste",
            "supported" if room else "hypothesis",
            "advice",
            {
                "accumulation": int(accumulation),
                "batch": int(batch),
                "micro_tokens": batch * block,
                "memory_bytes": needed,
                "tokens_per_iter": part.tokens_per_iter,
            },
            part.line_of_setting("gradient_accumulation_steps")
            + part.line_of_setting("batch_size"),
            [],
            {
                "batch_size": int(batch * factor),
                "gradient_accumulation_steps": int(accumulation // factor),
            },
            cost_ms=part.phase_ms("step") * 0.3,
        )
    ]


def memory_bytes(part: Part, batch: float) -> float | None:
    """What training needs with such a batch: weights, gradients, AdamW, activations, logits."""
    names = ("block_size", "n_layer", "n_embd")
    block, layers, width = (part.number_setting(name) for name in names)
    parameters, vocab = part.fact("parameters"), part.fact("vocab_size")
    if not (block and layers and width and parameters and vocab):
        return None
    tokens = batch * block
    return 18 * parameters + 34 * layers * tokens * width + 10 * tokens * vocab + 0.5e9


def better_dtype(part: Part, wanted: str) -> str | None:
    """The number format if the device has it, as far as is known."""
    known = devices.find(part.mfu.device) if part.mfu.device else None
    short = {"bfloat16": "bf16", "float16": "fp16"}[wanted]
    return wanted if known is None or known.tflops.get(short) else None


def slow_path(part: Part) -> list[Finding]:
    found = []
    for name, variant in (("slow-attention", "attention"), ("compile-fallback", "compile")):
        events = [e for e in part.segment.events if e.name == name]
        if events:
            found.append(
                Finding(
                    "slow-path",
                    "established",
                    "advice",
                    {"count": part.segment.num_events[name]},
                    [e.line for e in events],
                    variant=variant,
                    cost_ms=part.phase_ms("step") * 0.3,
                )
            )
    device = str(part.setting("device") or "")
    if part.setting("dtype") == "float32" and device.startswith("cuda"):
        found.append(
            Finding(
                "slow-path",
                "established",
                "advice",
                {},
                part.line_of_setting("dtype"),
                change={"dtype": better_dtype(part, "bfloat16") or "float16"},
                variant="float32",
                cost_ms=part.phase_ms("step") * 0.4,
            )
        )
    if part.log.format == "nanogpt" and device.startswith("mps"):
        found.append(
            Finding(
                "slow-path",
                "established",
                "note",
                {},
                part.line_of_setting("device"),
                variant="mps",
            )
        )
    return found


def data_bound(part: Part) -> list[Finding]:
    stated = part.fact("data_share")  # lightly-train prints it
    if stated is not None and stated > 100 * DATA_BUDGET:
        lines = [part.segment.last_line or 1]
        numbers: dict[str, Number] = {"data_share": stated / 100, "total_ms": None}
        return [Finding("data-bound", "established", "advice", numbers, lines, variant="stated")]
    if part.timing.ledger is None:
        return []
    data = part.phase_ms("data")
    shares = part.column("data_ms")
    if part.log.format == "lingua" and np.isfinite(shares).any():
        later = part.column("iter") > (part.segment.first_iter or 0)  # the first one opens files
        waits, times = shares[later], part.timing.times[later]
        if not len(waits):
            return []
        data = float(np.nansum(waits))
        work = data + float(np.nansum(times))
    else:
        work = part.phase_ms("data", "forward_backward", "optimizer", "step")
    if not work or data / work <= DATA_BUDGET:
        return []
    known = shares[np.isfinite(shares)]
    return [
        Finding(
            "data-bound",
            "established",
            "advice",
            {
                "data_share": data / work,
                "total_ms": data,
                "median_ms": median(known) if len(known) else None,
                "worst_ms": float(np.max(known)) if len(known) else None,
            },
            [part.segment.first_line or 1, part.segment.last_line or 1],
            variant="plain" if len(known) else "phases",
            cost_ms=data,
        )
    ]


def out_of_memory(part: Part) -> list[Finding]:
    events = [e for e in part.segment.events if e.name == "oom"]
    if not events:
        return []
    first = events[0]
    change: Change = {}
    batch = part.number_setting("batch_size")
    accumulation = part.number_setting("gradient_accumulation_steps")
    if batch and batch % 2 == 0:
        change["batch_size"] = int(batch // 2)
        if accumulation:
            change["gradient_accumulation_steps"] = int(accumulation * 2)
    return [
        Finding(
            "out-of-memory",
            "established",
            "problem",
            {
                "tried_bytes": first.record.get("tried_bytes"),
                "free_bytes": first.record.get("free_bytes"),
                "total_bytes": first.record.get("total_bytes"),
                "iter": first.iter,
            },
            [first.line],  # what follows it is a consequence
            [first.iter] if first.iter is not None else [],
            change,
            variant="sizes" if first.record.get("tried_bytes") else "plain",
            cost_ms=part.wall_ms or 0.0,
        )
    ]


def contradiction(part: Part) -> list[Finding]:
    return [
        *_tokens_disagree(part),
        *_clock_disagrees(part),
        *_stated_rate_is_wrong(part),
        *_hidden_nan(part),
    ]


def _tokens_disagree(part: Part) -> list[Finding]:
    """Tokens a second times the time of a step must be the tokens of a step."""
    stated = part.fact("tokens_per_iter")
    rates, times = part.column("tok_s"), part.column("time_ms")
    known = np.flatnonzero(np.isfinite(rates) & np.isfinite(times) & (times > 0))
    if not stated or not len(known) or part.log.format == "litgpt":
        return []
    implied = median(rates[known] * times[known] / 1000)
    if implied <= 0 or 0.8 < implied / stated < 1.25:
        return []
    row = known[-1]
    return [
        Finding(
            "contradiction",
            "established",
            "note",
            {
                "stated_tokens": stated,
                "implied_tokens": implied,
                "times": max(stated / implied, implied / stated),
                "printed_rate": float(rates[row]),
                "real_rate": stated / (float(times[row]) / 1000),
            },
            [int(part.column("line")[row]), *part.line_of_fact("tokens_per_iter")],
            [int(part.column("iter")[row])],
            variant="tokens",
        )
    ]


def _clock_disagrees(part: Part) -> list[Finding]:
    stamped, normal = part.timing.stamped_ms, part.timing.normal_ms
    if not stamped or not normal or 0.7 < stamped / normal < 1.4:
        return []
    return [
        Finding(
            "contradiction",
            "supported",
            "note",
            {"normal_ms": normal, "stamped_ms": stamped, "times": stamped / normal},
            [part.segment.first_line or 1, part.segment.last_line or 1],
            [part.segment.first_iter or 0, part.segment.last_iter or 0],
            variant="clock",
        )
    ]


def _stated_rate_is_wrong(part: Part) -> list[Finding]:
    end = part.segment.end
    rate, tokens, ms = end.get("stated_tok_s"), end.get("tokens"), end.get("train_ms")
    if not (rate and tokens and ms) or 0.8 < rate / (tokens / ms * 1000) < 1.25:
        return []
    return [
        Finding(
            "contradiction",
            "established",
            "note",
            {"printed_rate": rate, "real_rate": tokens / ms * 1000},
            [part.segment.end_line] if part.segment.end_line else [],
            variant="rate",
        )
    ]


def _hidden_nan(part: Part) -> list[Finding]:
    """Hugging Face's log replaces a loss that is no number by the average; the norm tells."""
    if part.log.format != "hf-trainer" or part.segment.bad_norm_line is None:
        return []
    if part.segment.nan_line is not None:
        return []
    return [
        Finding(
            "contradiction",
            "established",
            "problem",
            {"count": part.segment.num_bad_norms},
            [part.segment.bad_norm_line],
            variant="hidden-nan",
        )
    ]
