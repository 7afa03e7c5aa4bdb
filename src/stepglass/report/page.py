"""The HTML page, either as one file with all its data or for a server.

Text from a log, a name or a model is never used as markup. It is embedded as JSON with `<`, `>` and
`&` escaped, and the script inserts it as text. The content security policy of the file allows only
its own script and style, by hash, and no requests.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from fluent.syntax import FluentParser
from fluent.syntax import ast as fluent

import stepglass
from stepglass.explain.render.languages import LANGUAGES, Words
from stepglass.report.phases import phases_of_page

PAGE = resources.files("stepglass.report") / "page"
# In the order of their dependencies. The files of charts/ come between these two lists.
SCRIPTS = (
    *("words.js", "numbers.js", "elements.js", "phases.js"),
    *("columns.js", "packed.js", "segment.js", "run.js"),
    *("axis.js", "view.js", "scale.js", "plot.js", "chart.js", "curves.js"),
)
LAST_SCRIPTS = (
    *("charts.js", "headline.js", "sections.js", "ranks.js", "compare.js", "findings.js"),
    *("samples.js", "csv.js", "toolbar.js", "page.js", "print.js", "language.js"),
    *("file.js", "refine.js", "live.js", "run_list.js", "main.js"),
)
# Messages of the catalogues that the script says: those of the page, and some of `explain`.
SPOKEN = re.compile(
    r"(page-(?!health-)|phase-|within-).*|where-title|total|findings-title|no-findings|cannot-title"
)
Sentence = str | list[Any]  # what words.js evaluates
INLINE_LIMIT = 64  # a longer column gets its own element

HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{policy}<title>{title}</title>
{style}
</head>
<body data-mode="{mode}" data-language="{language}">
<header>
<h1 id="title">Stepglass</h1>
<p id="about"></p>
<p id="connection" role="status"></p>
<select id="language" aria-label="language"></select>
</header>
<main><noscript>This page needs JavaScript to draw. It asks nobody for anything: all it shows is in
this file. In words: <code>stepglass explain</code>.</noscript></main>
<footer>Stepglass {version}</footer>
"""


def report_pieces(runs: list[dict[str, Any]], title: str, language: str) -> Iterator[str]:
    """The pieces of a report file. Each of `runs` has a story and messages. This function removes
    the long columns from the messages."""
    script, style = scripts(), page_file("page.css")
    policy = (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        f"img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    yield _head("report", title, language, meta, f"<style>{style}</style>")
    texts = list(_extract_columns(runs))
    yield f'<script type="application/json" id="story">{inert_json({"runs": runs})}</script>\n'
    yield f"<script>{script}</script>\n"
    for number, text in enumerate(texts):
        yield f'<script type="text/plain" id="c{number}">{text}</script>\n'
    yield "</body>\n</html>\n"


def _extract_columns(runs: list[dict[str, Any]]) -> Iterator[str]:
    """Remove the long columns from the messages, in order, and put the id of an element in place of
    each. The columns are base64, so they contain no HTML markup."""
    number = 0
    for run in runs:
        for message in run["messages"]:
            for name, packed in message["columns"].items():
                kind, text = next(iter(packed.items()))
                if len(text) > INLINE_LIMIT:
                    message["columns"][name] = {"at": f"c{number}", "kind": kind}
                    number += 1
                    yield text


@cache
def live_page() -> bytes:
    """The page that a server sends, for any run."""
    links = '<link rel="stylesheet" href="/page.css">\n<script src="/page.js" defer></script>'
    page = _head("live", "Stepglass", "auto", "", links) + "</body>\n</html>\n"
    return page.encode()


@cache
def assets() -> dict[str, tuple[str, bytes]]:
    """The files that the live page links to: media type and content, by path."""
    return {
        "/page.css": ("text/css; charset=utf-8", page_file("page.css").encode()),
        "/page.js": ("text/javascript; charset=utf-8", scripts().encode()),
    }


def _head(mode: str, title: str, language: str, policy: str, style: str) -> str:
    return HEAD.format(
        mode=mode,
        title=html.escape(title),
        language=language,
        policy=policy,
        style=style,
        version=stepglass.__version__,
    )


@cache
def scripts() -> str:
    """The whole script of the page. The data from Python comes first."""
    words = inert_json({code: spoken(code) for code in LANGUAGES})
    phases = inert_json(phases_of_page())
    constants = [f"const WORDS = {words};", f"const PHASES = {phases};"]
    return "\n".join(['"use strict";', *constants, *map(page_file, script_names())])


def script_names() -> list[str]:
    """The script files, in order. All files in charts/ are included, so a chart is just a file."""
    charts = sorted(file.name for file in (PAGE / "charts").iterdir() if file.name.endswith(".js"))
    return [*SCRIPTS, *(f"charts/{name}" for name in charts), *LAST_SCRIPTS]


def spoken(language: str) -> dict[str, Sentence]:
    """Sentences of the catalogue for the script, which inserts the values and chooses plurals."""
    found = {}
    for key, source in Words(language).sources().items():
        if SPOKEN.fullmatch(key):
            message = FluentParser(with_spans=False).parse_entry(source)
            assert isinstance(message, fluent.Message), f"{language}: {key}"
            assert message.value is not None, f"{language}: {key}"
            found[key] = sentence(message.value)
    return found


def sentence(pattern: fluent.Pattern) -> Sentence:
    """A text with the {names} of its values. A sentence with choices is a list: texts and
    `{"by": name of the value, "texts": by variant, "default": a variant}`."""
    parts: list[Any] = [""]
    for element in pattern.elements:
        if isinstance(element, fluent.TextElement):
            text = re.sub(r"\s*\n\s*", " ", element.value)
        elif isinstance(element.expression, fluent.SelectExpression):
            parts += [choice(element.expression), ""]
            continue
        elif isinstance(element.expression, fluent.StringLiteral):
            text = element.expression.parse()["value"]
        else:
            assert isinstance(element.expression, fluent.VariableReference), element.expression
            text = f"{{{element.expression.id.name}}}"
        parts[-1] += text
    return parts[0] if len(parts) == 1 else [part for part in parts if part != ""]


def choice(select: fluent.SelectExpression) -> dict[str, Any]:
    assert isinstance(select.selector, fluent.VariableReference), select.selector
    texts: dict[str, Sentence] = {}
    for variant in select.variants:
        assert isinstance(variant.key, fluent.Identifier), variant.key
        texts[variant.key.name] = sentence(variant.value)
        if variant.default:
            default = variant.key.name
    return {"by": select.selector.id.name, "texts": texts, "default": default}


def page_file(name: str) -> str:
    return (PAGE / name).read_text("utf-8")


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def inert_json(value: object) -> str:
    """JSON that is safe inside a script element, because all HTML characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
