"""The advice as text: what to type, what to expect, and why."""

import shlex
from collections.abc import Iterator

from stepglass.advise.advice import Advice
from stepglass.advise.advice_files import nanogpt_words, value_text
from stepglass.advise.calibration import largest_time_error
from stepglass.advise.reason_text import long_time, reason_text
from stepglass.explain.render.languages import Words
from stepglass.explain.render.wrap import wrapped
from stepglass.units import printable


def text_lines(advice: Advice, words: Words, width: int) -> Iterator[str]:
    """The whole answer."""
    yield from _what_to_type(advice, words, width)
    yield ""
    yield from wrapped(_about(advice, words), "", "  ", width)
    yield ""
    yield words.text("advise-expect-title")
    yield from _table(advice, words)
    yield from wrapped(_how_sure(advice, words), "  ", "  ", width)
    yield ""
    yield words.text("advise-why-title")
    for reason in advice.reasons:
        if reason.is_unknown:
            continue  # said above
        basis = words.text(f"advise-basis-{reason.basis}")
        yield from wrapped(
            f"{_named(reason.setting, advice, words)} [{basis}]", "  ", "    ", width
        )
        yield from wrapped(printable(reason_text(reason, words)), "    ", "    ", width)


def _how_sure(advice: Advice, words: Words) -> str:
    """How good the estimates are, or how to get any."""
    if advice.expect.ms_per_iter is None:
        return words.text("advise-unknown-time")
    ran = advice.case.subject.measured
    if ran is not None and ran.step_ms is not None:
        return ""  # measured, or scaled from it
    return words.text("advise-note", error_percent=100 * largest_time_error())


def _named(setting: str, advice: Advice, words: Words) -> str:
    """A setting with its value, or what is expected in words."""
    if setting in advice.settings:
        return f"{setting} = {value_text(advice.settings[setting])}"
    key = f"advise-expect-{setting.replace('_', '-')}"
    if words.has(key):
        return words.text(key)
    return f"{setting} = {value_text(getattr(advice.case.subject.cfg, setting))}"


def _what_to_type(advice: Advice, words: Words, width: int) -> Iterator[str]:
    subject = advice.case.subject
    if subject.log_name is None and advice.case.trainer == "nanogpt":
        yield words.text("advise-type")
        count = advice.case.devices
        several = ["torchrun", "--standalone", f"--nproc_per_node={count}"]
        start = ["python"] if count == 1 else several
        yield from command_lines([*start, "train.py", *nanogpt_words(advice)], width)
    elif subject.log_name is None:
        yield words.text("advise-type")
        flags = [f"--{key}={value_text(value)}" for key, value in advice.settings.items()]
        if subject.cfg.threads:  # chosen by --measure, or given
            flags.append(f"--threads={subject.cfg.threads}")
        typed = [word for word in subject.words if word.partition("=")[0] not in _names(flags)]
        yield from command_lines(["stepglass", "train", *typed, *flags], width)
    else:
        changed = _changed(advice)
        yield words.text("advise-change" if changed else "advise-keep", name=subject.log_name)
        if changed:
            yield from command_lines(changed, width)


def _names(flags: list[str]) -> set[str]:
    return {flag.partition("=")[0] for flag in flags}


def _changed(advice: Advice) -> list[str]:
    """The flags that differ from what the run was started with."""
    ran = advice.case.subject.measured
    assert ran is not None
    return [
        f"--{key}={value_text(value)}"
        for key, value in advice.settings.items()
        if getattr(ran.cfg, key) not in (value, "auto")
        and not (advice.case.trainer == "nanogpt" and key == "checkpoint_interval")
    ]


def command_lines(words: list[str], width: int) -> list[str]:
    """A command that can be copied, over as many lines as it needs."""
    lines, line = [], " "
    for word in map(shlex.quote, words):
        if len(line) + 1 + len(word) > width - 2 and line.strip():
            lines.append(line + " \\")
            line = "   "
        line += " " + word
    return [*lines, line]


def _about(advice: Advice, words: Words) -> str:
    target, shape = advice.case.target, advice.case.subject.shape
    settings = advice.settings
    tokens = settings["batch_size"] * settings["gradient_accumulation_steps"] * shape.block_size
    return words.text(
        "advise-about",
        is_known="yes" if target.name else "no",
        has_memory="no" if target.memory_bytes is None else "yes",
        has_peak="no" if advice.peak_flops is None else "yes",
        device=printable(target.name or ""),
        device_bytes=target.memory_bytes,
        tflops=None if advice.peak_flops is None else advice.peak_flops / 1e12,
        dtype=settings["dtype"],
        model=shape.name,
        parameters=float(shape.num_params()),
        tokens=float(tokens),
    )


def _table(advice: Advice, words: Words) -> list[str]:
    expect = advice.expect
    mfu = None if expect.mfu is None else words.share(expect.mfu)
    if mfu is None and expect.tflops is not None:  # of an unknown device, the speed at least
        mfu = f"{words.text('page-unknown')}, {words.value('tflops', expect.tflops)} TFLOP/s"
    rate = None if expect.tokens_per_s is None else words.number(expect.tokens_per_s, 0)
    whole = None if expect.hours is None else long_time(3.6e6 * expect.hours, words)
    step = None if expect.ms_per_iter is None else words.duration(expect.ms_per_iter)
    rows = [
        ("ms-per-iter", step, expect.basis),
        ("tokens-per-s", rate, expect.basis),
        ("mfu", mfu, expect.basis),
        ("memory-gb", words.size(expect.memory.total), "calculated"),
        ("hours", whole, expect.basis),
    ]
    cfg = advice.case.subject.cfg
    if (cfg.minutes or cfg.epochs) and advice.case.has_length:
        rows.append(("updates", words.number(cfg.max_iters, 0), expect.basis))
    shown = [
        (words.text(f"advise-expect-{key}"), value or words.text("page-unknown"),
         words.text(f"advise-basis-{basis}") if value else "")
        for key, value, basis in rows
    ]  # fmt: skip
    first, second = (max(len(row[n]) for row in shown) for n in (0, 1))
    return [f"  {a:<{first}}  {b:>{second}}  {c}".rstrip() for a, b, c in shown]
