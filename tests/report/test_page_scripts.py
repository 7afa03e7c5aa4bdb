"""What the page's script and Python have to agree on: numbers, phases, charts and their columns."""

import json
import re
from pathlib import Path

import pytest

from browser import open_page, settle
from nanogpt_run import Run
from stepglass import units
from stepglass.cli import main
from stepglass.explain.render.languages import LANGUAGES, Words
from stepglass.measure import clock
from stepglass.report import page as page_module
from stepglass.report import phases
from stepglass.report.columns import DRAWN, is_phase, is_sum


@pytest.fixture
def page(browser):
    Path("train.log").write_text(Run(num_iters=60, eval_interval=20).text)
    assert main(["report", "train.log", "-o", "page.html"]) == 0
    with open_page(browser, Path("page.html").resolve().as_uri()) as page:
        yield page


# -- numbers ------------------------------------------------------------------------------------

DURATIONS_MS = [
    *(0, 0.0123, 0.4, 0.9994, 0.9996, 1, 3.14159, 33.238, 99.994, 100, 414.51, 999.4, 999.6),
    *(1000, 1234.5, 9_999, 10_000, 59_900, 59_960, 60_000, 75_300, 119_700, 3_599_600),
    *(3_600_000, 3_725_000, 86_400_000, 4_000_000_000),
]
SHARES = [0, 0.05, 1.25, 3.35, 12.345, 55.5, 99.94, 99.96, 100, 1234.5]
LOSSES = [0, 0.00004, 0.125, 1.90123, 2.5, 10.98767, 1234.56789]
SIZES = [0, 1, 512, 999, 1000, 1_115_394, 3_200_000_000, 999_949_999, 999_951_000]


def as_written(page, language: str, call: str, values: list[float]) -> list[str]:
    """What a function of the page writes for each value, in a language."""
    script = f"([code, values]) => {{ setLanguage(code); return values.map((value) => {call}); }}"
    return page.evaluate(script, [language, values])


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_on_the_page_are_written_as_in_the_sentences_of_explain(page, language):
    words = Words(language)
    for call, values, expected in (
        ("duration(value)", DURATIONS_MS, words.duration),
        ("secondsOf(value)", DURATIONS_MS, words.seconds),
        ("percent(value)", SHARES, lambda value: words.share(value / 100)),
        ("percent(value, 2)", SHARES, words.percent),
        ("loss(value)", LOSSES, words.loss),
        ("bytes(value)", SIZES, words.size),
        ("whole(value)", [0, 999, 1000, 1234, 12_345, 1e9], lambda value: words.number(value, 0)),
    ):
        written = as_written(page, language, call, values)
        assert written == [expected(value) for value in values], call


def test_percents_losses_and_sizes_are_written_as_in_the_terminal(page):
    """But for thousands, which the terminal does not group, for losses below 0.001, which it prints
    as nanoGPT does, and for ties, where it looks at the binary number."""
    shares = [value for value in SHARES if value < 1000 and value not in (0.05, 1.25, 3.35)]
    for call, values, expected in (
        ("percent(value)", shares, lambda value: units.percent(value / 100, 1)),
        (
            "loss(value)",
            [value for value in LOSSES if value < 1000 and value != 0.00004],
            units.loss,
        ),
        ("bytes(value)", [*SIZES[:-1], 2.5e12], units.size),
        ("loss(value)", [None], units.loss),
    ):
        written = as_written(page, "en", call, values)
        assert [text.replace("\u00a0", " ") for text in written] == list(map(expected, values))


# -- phases -------------------------------------------------------------------------------------


def test_every_phase_has_a_name_in_every_language_and_a_colour_of_its_own():
    css = page_module.page_file("page.css")
    known = phases.phases_of_page()
    assert set(clock.PHASES) <= {phase["name"] for phase in known}
    for number, phase in enumerate(known):
        assert f"--phase-{number}: " in css, phase
        for language in LANGUAGES:
            assert Words(language).has(f"phase-{phase['name'].replace('+', '-')}"), phase
    colours = len(re.findall(r"--phase-\d+: ", css))
    assert f"const NUM_COLORS = {colours};" in page_module.page_file("phases.js")


def test_a_new_phase_of_the_clock_reaches_the_page_without_a_line_of_its_own(monkeypatch):
    monkeypatch.setattr(phases, "PHASES", ("network", *clock.PHASES))
    before = phases.phases_of_page()
    assert before[-1] == {"name": "network", "isStep": False, "isMinor": False}
    assert len(before) == len(phases.STACKED) + 1


# -- charts -------------------------------------------------------------------------------------


def test_every_chart_is_registered_and_stands_in_a_section_with_its_title(page):
    script = "\n".join(map(page_module.page_file, page_module.script_names()))
    written = set(re.findall(r"^const (\w+)Chart = ", script, re.MULTILINE))
    charts = page.evaluate("CHARTS.map(({ id, section }) => [id, section])")
    assert {name for name, _ in charts} == written
    sections = page.evaluate("SECTIONS.map(([name]) => name)")
    for name, section in charts:
        assert section in sections
        assert page.locator(f"#{section} #chart-{name}").count() == 1
        for language in LANGUAGES:
            assert f"page-chart-{name}" in page_module.spoken(language)


def test_every_column_that_a_chart_asks_for_is_sent(page):
    settle(page)
    asked = page.evaluate(
        """(() => {
        const asked = new Set();
        const { column, has } = Segment.prototype;
        for (const [name, act] of Object.entries({ column, has })) {
            Segment.prototype[name] = function (wanted) {
                asked.add(wanted);
                return act.call(this, wanted);
            };
        }
        view.runs[0].told += 1; // what was computed before is computed again
        for (const chart of view.charts) {
            chart.draw();
            chart.spec.describe(view, 20, 1, chart);
        }
        Object.assign(Segment.prototype, { column, has });
        return [...asked];
    })()"""
    )
    assert {"loss", "time_ms", "lr", "grad_norm", "memory_bytes", "tok_s"} <= set(asked)
    assert [name for name in asked if not (name in DRAWN or is_phase(name) or is_sum(name))] == []


def test_no_script_of_the_page_is_long_or_left_out():
    folder = Path(page_module.__file__).parent / "page"
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*.js")}
    assert sorted(files) == sorted(page_module.script_names())
    lengths = {name: len(file.read_text().splitlines()) for name, file in files.items()}
    assert {name: length for name, length in lengths.items() if length > 350} == {}


def test_the_script_holds_no_list_of_phases_or_languages():
    script = "\n".join(map(page_module.page_file, page_module.script_names()))
    assert json.dumps(list(LANGUAGES), separators=(", ", ": ")) not in script
    assert "forward_backward" not in script + page_module.page_file("page.css")
