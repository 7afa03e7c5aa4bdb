"""docs/findings.md: every finding in the four languages, written from the catalogues.

python docs/findings_page.py > docs/findings.md

The values are samples. Each variant of a sentence appears at least once.
"""

import sys
from collections.abc import Iterator

from fluent.syntax import FluentParser
from fluent.syntax import ast as fluent

from stepglass.explain.render.languages import LANGUAGES, Words
from stepglass.explain.rules.all_rules import NAMES

# A sample for each kind of value, by the end of its name.
SAMPLES: dict[str, object] = {
    "normal_ms": 168.0,
    "total_ms": 143_000.0,
    "eval_ms": 5100.0,
    "save_ms": 458.0,
    "wanted_ms": 1_260_000.0,
    "clean_mfu": 11.27,
    "corrected_mfu": 20.9,
    "best_iter": 1750,
    "last_iter": 5000,
    "first_iter": 2250,
    "iter": 1000,
    "each_iters": 34,
    "interval": 250,
    "wanted": 2500,
    "every": 500,
    "max_iters": 5000,
    "decay_iters": 600_000,
    "warmup_iters": 2000,
    "vocab": 65,
    "rank": 3,
    "processes": 8,
    "window": 10,
    "_ms": 5726.0,
    "_share": 0.514,
    "_mfu": 9.99,
    "_percent": 23.0,
    "loss": 1.7044,
    "_bytes": 2.0e9,
    "_lr": 6e-5,
    "rate": 6e-4,
    "tokens": 491_520.0,
    "tokens_per_iter": 491_520.0,
    "parameters": 124e6,
    "tflops": 165.2,
    "ratio": 2.4,
    "epochs": 9.8,
    "times": 3.2,
    "z": 7.1,
    "device": "RTX 4090",
    "dtype": "bfloat16",
    "metric": "wer",
    "setting": "grad_clip",
    "norm": 3.2,
    "clip": "1.0",
    "dropout": 0.2,
    "choices": 65.0,
}

INTRODUCTION = """\
# Every finding, in four languages

This page is generated from the catalogues by `docs/findings_page.py`, with sample values. It is
there to be read: a sentence that a native engineer would not say is a bug.

Two readers went through each language. The glossary at the top of each catalogue records what they
agreed on. What changed in the last reading:

- English: "normal" for "ordinary", "includes" for "holds", "start-up" for the process and
  "learning-rate warm-up" for the schedule, NaN named in every title about it, "per iteration", and
  "takes N % longer" where a time is meant.
- German: "normale Iteration", "wahrscheinlich" for supported, "Anlaufzeit" for the start-up, no
  "Intervallgrenze" and no "schreibt aus"; the words of the log stay as printed.
- Spanish: "trainer" and "log" as engineers say them, "arranque" for the start-up and "warmup" for
  the learning rate, "pausa" for a stall.
- French: no "échéance", "run" everywhere, "démarrage" for the start-up, and French spaces before
  double punctuation.
"""


def selectors(pattern: fluent.Pattern) -> dict[str, list[str]]:
    """The values that each selector of a sentence distinguishes."""
    found: dict[str, list[str]] = {}
    for element in pattern.elements:
        if not isinstance(element, fluent.Placeable):
            continue
        choice = element.expression
        if not isinstance(choice, fluent.SelectExpression):
            continue
        assert isinstance(choice.selector, fluent.VariableReference)
        values = found.setdefault(choice.selector.id.name, [])
        # The default comes first.
        for variant in sorted(choice.variants, key=lambda each: not each.default):
            assert isinstance(variant.key, fluent.Identifier)
            if variant.key.name not in values:
                values.append(variant.key.name)
            for name, inner in selectors(variant.value).items():
                known = found.setdefault(name, [])
                known += [value for value in inner if value not in known]
    return found


def variables(source: str) -> set[str]:
    """The names of all values in a message."""
    parts = source.split("$")[1:]
    return {part.split()[0].rstrip("},") for part in parts}


def cases(source: str) -> Iterator[dict[str, object]]:
    """Values with which every variant of a message appears."""
    message = FluentParser(with_spans=False).parse_entry(source)
    assert isinstance(message, fluent.Message)
    assert message.value is not None
    chosen = selectors(message.value)
    base = {name: sample(name) for name in variables(source)}
    defaults = {name: value_for(values[0], name) for name, values in chosen.items()}
    variants = chosen.get("variant", ["plain"])
    for variant in variants:
        whole = {**base, **defaults, "variant": variant}
        yield whole
        for name, values in chosen.items():
            if name != "variant":
                for value in values[1:]:
                    yield {**whole, name: value_for(value, name)}


def value_for(variant: str, name: str) -> object:
    """A value that selects this variant: a number for a plural, else its own name."""
    if variant in ("one", "other") and isinstance(sample(name), int):
        return 1 if variant == "one" else sample(name)
    return None if variant == "none" else variant if variant != "other" else sample(name)


def sample(name: str) -> object:
    for ending, value in SAMPLES.items():
        if name.endswith(ending):
            return value
    return 12


def rule_section(rule: str, words: dict[str, Words]) -> Iterator[str]:
    yield f"\n## `{rule}`\n"
    seen = set()
    for part in ("title", "text"):
        key = f"rule-{rule}-{part}"
        for values in cases(words["en"].sources()[key]):
            said = {code: w.text(key, **values) for code, w in words.items()}
            if said["en"] in seen:
                continue
            seen.add(said["en"])
            for code, sentence in said.items():
                shown = f"**{sentence}**" if part == "title" else sentence
                yield f"- {code}: {shown}"
            yield ""


def page() -> str:
    words = {language: Words(language) for language in LANGUAGES}
    lines = [INTRODUCTION]
    for rule in NAMES:
        lines += rule_section(rule, words)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
