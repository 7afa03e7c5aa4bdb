"""Sentences and numbers in several languages, with Fluent catalogues and Babel's number formats.

    words = Words("de")
    words.text("answer-step", normal_ms=33.24)   # "Ein Trainingsschritt dauert 33,24 ms."

The suffix of a value's name determines its format: `_ms` is a duration, `_share` a fraction shown
as percent, `_mfu` and `_percent` are percent, `_loss` has four decimals, `_bytes` is a size. Whole
numbers reach Fluent as numbers, so that plurals work. An unknown value becomes "n/a" in
the language, or `none` for the names in `ASKED_FOR`.
"""

import math
import os
import re
from pathlib import Path
from typing import Literal, get_args

from babel import Locale
from babel.numbers import format_compact_decimal, format_decimal
from fluent.syntax import FluentParser
from fluent.syntax import ast as fluent

Language = Literal["en", "de", "es", "fr"]  # each has a catalogue in `locale`
LANGUAGES: tuple[Language, ...] = get_args(Language)
NBSP = "\u00a0"
ASKED_FOR = ("fewer_iters", "last_iter", "save_iter", "faster_percent")  # `none` selects a variant


NUMBERED = re.compile(r"(\b(?:le|au|du) |\bd')?\b(?:iter|[Ss]teps?)(?= \d)")
FRENCH_VOWEL = {"le ": "l'", "au ": "à l'", "du ": "de l'"}
FRENCH_CONSONANT = {"d'": "de "}
COUNTED = ("count", "lines", "more", "replayed", "understood")


class Words:
    """One language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._locale = Locale(language)
        self._sources = messages(catalogue(language))  # parsed on demand, because parsing is slow
        self._patterns: dict[str, fluent.Pattern] = {}

    def has(self, key: str) -> bool:
        return key in self._sources

    def sources(self) -> dict[str, str]:
        """The source text of every message in the catalogue."""
        return self._sources

    def text(self, key: str, **values: object) -> str:
        """The sentence for a key, with its values."""
        if key not in self._patterns:
            message = FluentParser(with_spans=False).parse_entry(self._sources[key])
            assert isinstance(message, fluent.Message), f"{self.language}: {key}"
            assert message.value is not None, f"{self.language}: {key}"
            self._patterns[key] = message.value
        arguments = {name: self.value(name, value) for name, value in values.items()}
        lines = self._said(self._patterns[key], arguments).split("\n")
        return " ".join(line.strip() for line in lines) if len(lines) > 1 else lines[0]

    def _said(self, pattern: fluent.Pattern, arguments: dict[str, object]) -> str:
        """Evaluate Fluent's texts, variables and selections; the catalogues use nothing else. Its
        own runtime also loads dates and time zones, which would take a fifth of the start-up."""
        parts: list[str] = []
        for element in pattern.elements:
            if isinstance(element, fluent.TextElement):
                parts.append(element.value)
                continue
            expression = element.expression
            if isinstance(expression, fluent.SelectExpression):
                chosen = self._chosen(expression, arguments)
                parts.append(self._said(chosen, arguments))
            elif isinstance(expression, fluent.StringLiteral):
                parts.append(expression.parse()["value"])
            else:
                assert isinstance(expression, fluent.VariableReference), type(expression)
                value = arguments[expression.id.name]
                parts.append(self.number(value, 0) if isinstance(value, int) else str(value))
        return "".join(parts)

    def _chosen(
        self, choice: fluent.SelectExpression, arguments: dict[str, object]
    ) -> fluent.Pattern:
        """The variant that has the value as its name, or the plural category of the number."""
        assert isinstance(choice.selector, fluent.VariableReference), type(choice.selector)
        value = arguments[choice.selector.id.name]
        name = self._locale.plural_form(value) if isinstance(value, int) else str(value)
        for variant in choice.variants:
            if isinstance(variant.key, fluent.Identifier) and variant.key.name == name:
                return variant.value
        return next(variant.value for variant in choice.variants if variant.default)

    def counted(self, text: str, unit: str) -> str:
        """The text, with the unit of a log that counts no steps: `epoch 3` for `step 3`. These are
        words of the log, which no catalogue translates. In French, the article changes with it."""
        if unit == "step":
            return text
        word = self.text(f"unit-{unit}")
        articles = FRENCH_VOWEL if word[0] in "aeiou" else FRENCH_CONSONANT

        def put(found: re.Match[str]) -> str:
            article = found[1] or ""
            return (articles.get(article, article) if self.language == "fr" else article) + word

        return NUMBERED.sub(put, text)

    def value(self, name: str, value: object) -> object:
        """A value in the form that a sentence needs."""
        if value is None:
            return "none" if name in ASKED_FOR else self.text("page-unknown")
        if isinstance(value, bool | str):
            return str(value)
        if not isinstance(value, int | float):
            return str(value)
        for suffix, show in (
            ("_ms", self.duration),
            ("_share", self.share),
            ("_mfu", self.percent),
            ("_points", self.points),
            ("_percent", self.coarse_percent),
            ("loss", self.loss),
            ("_bytes", self.size),
            ("rate", self.rate),
            ("_lr", self.rate),
            ("tokens", self.count),
            ("tokens_per_iter", self.count),
            ("parameters", self.count),
            ("chance", self.chance),
        ):
            if name.endswith(suffix):
                return show(float(value))
        if isinstance(value, int):
            return value if name in COUNTED else str(value)  # iter 5000, not iter 5,000
        size = abs(value)
        return self.number(value, 0 if size >= 100 else 1 if size >= 1 else 2 if size >= 0.1 else 3)

    def number(self, value: float, digits: int) -> str:
        """A number with the decimal and thousands separators of the language."""
        pattern = "#,##0" + ("." + "0" * digits if digits else "")
        return str(format_decimal(value, pattern, locale=self.language))

    def duration(self, ms: float) -> str:
        if ms < 0.9995:
            return self.number(ms, 3) + NBSP + "ms"
        if ms < 999.5:
            return self.number(ms, 1 if ms >= 100 else 2) + NBSP + "ms"
        seconds = ms / 1000
        if seconds < 60:
            return self.number(seconds, 2 if seconds < 10 else 1) + NBSP + "s"
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return f"{minutes}{NBSP}min {rest}{NBSP}s"
        return f"{self.number(minutes // 60, 0)}{NBSP}h {minutes % 60}{NBSP}min"

    def seconds(self, ms: float) -> str:
        """Seconds with two decimals, for a column of numbers with a sum."""
        return self.number(ms / 1000, 2) + NBSP + "s"

    def share(self, fraction: float) -> str:
        return self.percent_sign(self.number(100 * fraction, 1))

    def chance(self, fraction: float) -> str:
        """A probability, with two significant digits if it is small."""
        small = -math.floor(math.log10(max(100 * fraction, 1e-9)))
        return self.percent_sign(self.number(100 * fraction, max(1, min(8, small + 1))))

    def percent(self, value: float) -> str:
        return self.percent_sign(self.number(value, 2))

    def coarse_percent(self, value: float) -> str:
        return self.percent_sign(self.number(value, 0 if abs(value) >= 10 else 1))

    def points(self, value: float) -> str:
        return self.number(value, 3)

    def percent_sign(self, number: str) -> str:
        return number + ("%" if self.language == "en" else NBSP + "%")

    def loss(self, value: float) -> str:
        digits = 4
        if 0 < abs(value) < 0.001:  # four decimals would show nothing of it
            digits = min(8, 1 - math.floor(math.log10(abs(value))))
        return self.number(value, digits)

    def rate(self, value: float) -> str:
        return (
            self.number(value, 0)
            if value >= 10
            else f"{value:.3g}".replace(".", self.number(0.1, 1)[1])
        )

    def count(self, value: float) -> str:
        """A count of tokens or parameters: 10.65M, 10,65 Mio., 1,2 Md."""
        if value < 1e6:
            return self.number(value, 0)
        if self.language == "es":  # Spanish counts in millions: 10.490 M, not 10,49 mil M
            return self.number(value / 1e6, 2 if value < 1e9 else 0) + NBSP + "M"
        short = format_compact_decimal(value, locale=self.language, fraction_digits=2)
        return str(short).replace(" ", NBSP)

    def size(self, num_bytes: float) -> str:
        byte = "o" if self.language == "fr" else "B"  # octets
        for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
            if num_bytes >= scale:
                return self.number(num_bytes / scale, 1) + NBSP + unit + byte
        return self.number(num_bytes, 0) + NBSP + byte


def catalogue(language: str) -> str:
    return (Path(__file__).parents[1] / "locale" / f"{language}.ftl").read_text("utf-8")


def messages(source: str) -> dict[str, str]:
    """The source text of each message. It ends where the next message begins."""
    found = re.split(r"^(?=[a-z][\w-]* =)", source, flags=re.MULTILINE)
    return {text.split(" =", 1)[0]: text for text in found[1:]}


def from_environment() -> str:
    """The language of the terminal, if there is a catalogue for it."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name, "")
        if value:
            return value[:2] if value[:2] in LANGUAGES else "en"
    return "en"
