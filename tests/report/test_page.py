"""The page in a real browser: reports of logs and runs, and what a reader does with them."""

import json
import re
from pathlib import Path

import pytest

from browser import (
    INK,
    SCREENSHOTS,
    drag,
    hover,
    ink,
    keep_screenshot,
    keep_screenshots,
    open_page,
    settle,
)
from helpers import prepare_tiny, train_tiny
from page_logs import nanogpt_log, own_run, report
from processes import wait_until
from stepglass.explain.render.languages import LANGUAGES
from stepglass.measure import run_log
from stepglass.report.chart_table import ChartTable


def test_a_nanogpt_log_becomes_a_page_that_explains_its_spikes(browser):
    run = nanogpt_log(header=["Overriding: max_iters = 20000"])
    with open_page(browser, report("train.log")) as page:
        assert "nanogpt log" in page.locator("#about").inner_text()
        said = hover(page, "time", 200)
        assert "iter 200" in said
        assert "slow because of: evaluations" in said
        assert "slow because of: unexplained stalls" in hover(page, "time", 60)
        assert "slow" not in hover(page, "time", 150)
        shares = page.locator("#ledger .sums tbody td:nth-child(3)").all_inner_texts()
        assert sum(float(share.rstrip("%")) for share in shares) == pytest.approx(100, abs=0.3)
        wall = page.locator("#ledger tfoot td").first.inner_text()
        assert float(wall.split()[0].replace(",", "")) == pytest.approx(
            run.wall_ms / 1000, rel=0.01
        )
        assert "iter 100 is slow because it includes both" in page.locator("#findings").inner_text()
        assert "--eval_interval=" in page.locator("#findings code").first.inner_text()
        keep_screenshot(page, "nanogpt")


def test_a_run_of_ours_becomes_a_page_with_every_curve_it_has(browser):
    own_run()
    with open_page(browser, report("out")) as page:
        for chart in ("loss", "shares", "time", "tokens", "mfu", "lr", "grad", "memory"):
            assert ink(page, chart) > 500, chart
        assert "healthy" in page.locator("#health").inner_text()
        assert "finished, 60 iterations" in page.locator("#health").inner_text()
        assert "100 GFLOP/s, measured here" in page.locator("#chart-mfu").inner_text()
        assert "replicas\t7" in page.locator("#settings").inner_text()
        said = hover(page, "time", 40)
        assert "slow because of: evaluations" in said
        assert "checkpoints 12.00" in said
        said = hover(page, "loss", 40)
        assert "validation loss 2.1353 (iter 40) ± 0.0200" in said
        assert "best 2.1353" not in page.content()  # that is drawn, not written
        assert page.evaluate("view.runs[0].story.parts[0].best.iter") == 40
        keep_screenshot(page, "run")


def test_charts_below_the_fold_are_drawn_before_anybody_scrolls_there(browser):
    own_run()
    with open_page(browser, report("out"), height=500) as page:
        # The page's policy forbids what Playwright's own waiting for an expression needs.
        wait_until(lambda: page.evaluate("view.charts.every((chart) => !chart.isDue)"))
        assert page.evaluate("[charts.loss.isSeen, charts.memory.isSeen]") == [True, False]
        assert page.evaluate(f"({INK})(charts.memory.canvas)") > 500
        assert "100 GFLOP/s, measured here" in page.locator("#chart-mfu").inner_text()


def test_a_real_training_becomes_a_page(browser):
    prepare_tiny()
    assert train_tiny(max_iters=40, eval_interval=10, log_interval=10) == 0
    with open_page(browser, report("out")) as page:
        assert page.evaluate("view.runs[0].segments[0].count") == 40
        assert ink(page, "loss") > 500
        assert page.locator("#settings").inner_text().count("torch") == 1


def test_what_a_log_does_not_have_is_not_drawn(browser):
    Path("x.log").write_text("".join(f"iter {i}: loss {3 - i / 50:.4f}\n" for i in range(50)))
    with open_page(browser, report("x.log")) as page:
        assert page.locator("#chart-loss").is_visible()
        for chart in ("time", "tokens", "mfu", "lr", "grad", "memory", "shares"):
            assert not page.locator(f"#chart-{chart}").is_visible(), chart
        assert not page.locator("#speed").is_visible()
        assert page.locator("#axis").is_disabled()


def test_evaluations_without_iterations_are_drawn(browser):
    lines = [f"step {n}: train loss {3 - n / 9}, val loss {3 - n / 10}\n" for n in range(9)]
    Path("x.log").write_text("".join(lines))
    with open_page(browser, report("x.log")) as page:
        assert ink(page, "loss") > 500


def test_shares_count_the_iterations_that_were_not_printed(browser):
    run = nanogpt_log(log_interval=10, num_iters=1000, stalls={})
    with open_page(browser, report("train.log")) as page:
        ink(page, "shares")
        steps = page.evaluate("charts.shares.books.sums.get('step').reduce((a, b) => a + b)")
        assert steps == pytest.approx(run.spent["step"], rel=0.05)


def test_a_time_that_no_calendar_has_leaves_the_page_whole(browser):
    own_run()
    text = Path("out/run.jsonl").read_text().replace("1700000000.0", "1e15")
    Path("out/run.jsonl").write_text(text)
    with open_page(browser, report("out")) as page:
        assert ink(page, "loss") > 500


def test_dragging_zooms_all_charts_and_a_double_click_shows_all_again(browser):
    nanogpt_log()
    with open_page(browser, report("train.log")) as page:
        assert page.locator("#range").inner_text() == "0 – 399"
        drag(page, "loss", 100, 200)
        low, high = page.evaluate("view.range()")
        assert low == pytest.approx(100, abs=3)
        assert high == pytest.approx(200, abs=3)
        said = hover(page, "time", 150)
        assert "iter 150 " in said
        keep_screenshot(page, "zoomed")
        page.locator("#chart-time canvas").dblclick()
        assert page.evaluate("view.range()") == [0, 399]


@pytest.mark.long
def test_zooming_in_shows_the_rows_that_stood_behind_one_pixel(browser):
    log = "".join(f"iter {i}: loss {2 + i % 7:.4f}, time 30.00ms\n" for i in range(50_000))
    Path("long.log").write_text(log)
    with open_page(browser, report("long.log")) as page:
        drag(page, "loss", 25_000, 25_400)
        for _ in range(8):
            page.get_by_role("button", name="zoom in").click()
        low, high = page.evaluate("view.range()")
        assert high - low < 20
        middle = round((low + high) / 2)
        assert f"training loss {2 + middle % 7:.4f}" in hover(page, "loss", middle)


def test_a_page_that_does_not_hold_every_iteration_says_so_in_every_language(browser, monkeypatch):
    monkeypatch.setattr(ChartTable, "most_rows", 4000)
    monkeypatch.setattr("stepglass.report.command.MOST_ROWS", 2000)
    run = nanogpt_log(num_iters=20_000, eval_interval=500, stalls={12_345: 400.0})
    with open_page(browser, report("train.log")) as page:
        assert page.evaluate("view.runs[0].numRows") <= 2000
        said = set()
        for language in LANGUAGES:
            page.locator("#language").select_option(language)
            settle(page)
            said.add(page.locator("#thinned").inner_text())
            assert re.search(r"20\D?000", page.locator("#thinned").inner_text())
        assert len(said) == len(LANGUAGES)
        page.locator("#language").select_option("en")
        assert "unexplained stalls" in hover(page, "time", 12_345)
        total = page.evaluate("view.runs[0].segments[0].total")
        assert total == pytest.approx(run.wall_ms / 1000, rel=0.01)
        ink(page, "shares")
        sums = page.evaluate("Object.fromEntries(charts.shares.books.sums.entries().map("
                             "([name, ms]) => [name, ms.reduce((a, b) => a + b)]))")  # fmt: skip
        assert sum(sums.values()) == pytest.approx(run.wall_ms, rel=0.01)
        assert sums["step"] == pytest.approx(run.spent["step"], rel=0.02)
        keep_screenshot(page, "thinned")


def test_a_page_that_holds_every_iteration_does_not_speak_of_it(browser):
    nanogpt_log()
    with open_page(browser, report("train.log")) as page:
        assert page.locator("#thinned").inner_text() == ""


def test_the_lowest_and_highest_row_behind_every_pixel_is_drawn(browser):
    own_run()
    with open_page(browser, report("out")) as page:
        wrong = page.evaluate(
            """(() => {
            const count = 1e6, width = 777;
            const x = Float64Array.from({length: count}, (_, i) => i);
            let state = 1;
            const y = Float32Array.from(x, (_, i) => {
                state = (state * 1103515245 + 12345) % 2147483648;
                return i % 9973 === 0 ? 1e6 : i % 7919 === 0 ? NaN : state / 2147483648;
            });
            const found = extremes(x, y, count, 0, count - 1, width, false);
            const low = new Float64Array(width).fill(Infinity);
            const high = new Float64Array(width).fill(-Infinity);
            for (let i = 0; i < count; i += 1) {
                const at = Math.min(width - 1, Math.floor(i * width / (count - 1)));
                if (y[i] < low[at]) low[at] = y[i];
                if (y[i] > high[at]) high[at] = y[i];
            }
            let wrong = 0;
            for (let at = 0; at < width; at += 1) {
                wrong += found[4 * at + 1] !== low[at] || found[4 * at + 2] !== high[at];
            }
            return wrong;
        })()"""
        )
        assert wrong == 0


def test_everything_can_be_reached_with_the_keyboard(browser):
    own_run()
    with open_page(browser, report("out")) as page:
        page.locator("#chart-time canvas").focus()
        page.keyboard.press("End")
        assert "iter 59" in page.locator("#chart-time .tip").inner_text()
        page.keyboard.press("Home")
        assert "evaluations" in page.locator("#chart-time .tip").inner_text()
        page.keyboard.press("+")
        assert page.evaluate("view.zoom") is not None
        page.keyboard.press("0")
        assert page.evaluate("view.zoom") is None
        reached = set()
        page.locator("body").focus()
        for _ in range(40):
            page.keyboard.press("Tab")
            reached.add(
                page.evaluate("document.activeElement.id || document.activeElement.tagName")
            )
        assert {"language", "axis", "smoothing", "CANVAS", "SUMMARY", "BUTTON"} <= reached


def test_smoothing_keeps_the_raw_curve(browser):
    own_run()
    with open_page(browser, report("out")) as page:
        raw = "(line) => line.y === view.runs[0].segments[0].column('loss')"
        count = f"charts.loss.spec.lines(view).filter({raw}).length"
        for value in (0, 50, 99):
            page.locator("#smoothing").fill(str(value))
            assert page.evaluate("view.smoothing") == value / 100
            assert page.evaluate(count) == 1


def test_the_axis_can_be_time(browser):
    own_run()
    with open_page(browser, report("out")) as page:
        page.locator("#axis").select_option("time")
        wall_s = page.evaluate("view.range()")[1]
        assert wall_s == pytest.approx(60 * 35.6e-3 + 3 * 42e-3, rel=0.01)
        assert page.locator("#range").inner_text().endswith("\u00a0s")


def test_the_page_speaks_every_language(browser):
    nanogpt_log()
    texts = {}
    with open_page(browser, report("train.log")) as page:
        for language in LANGUAGES:
            page.locator("#language").select_option(language)
            settle(page)
            texts[language] = page.locator("body").inner_text()
            assert page.evaluate("document.documentElement.lang") == language
            assert "page-" not in texts[language]
            assert "{" not in page.locator("main").inner_text()
            keep_screenshot(page, f"nanogpt-{language}")
    assert "Wo die Zeit geblieben ist" in texts["de"]
    assert "En qué se fue el tiempo" in texts["es"]
    assert "Où est passé le temps" in texts["fr"]
    numbers = {language: text.count("eval_interval") for language, text in texts.items()}
    assert len(set(numbers.values())) == 1


def test_the_page_opens_in_the_readers_language_unless_told_otherwise(browser):
    nanogpt_log()
    with open_page(browser, report("train.log"), locale="fr-FR") as page:
        assert page.evaluate("language") == "fr"
    with open_page(browser, report("train.log", lang="de"), locale="fr-FR") as page:
        assert page.evaluate("language") == "de"
        assert "32,97\u00a0ms" in page.locator("#chart-time .caption").inner_text()


def test_the_page_fits_a_phone_and_a_wide_screen_in_light_and_dark(browser):
    own_run()
    with open_page(browser, report("out"), may_be_used=False) as page:
        keep_screenshots(page, "run")
        page.set_viewport_size({"width": 2400, "height": 900})
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 2400


def test_paper_gets_all_charts_in_light_colours_and_not_the_buttons(browser):
    own_run()
    with open_page(browser, report("out"), scheme="dark", height=500) as page:
        page.evaluate("""(() => {
            globalThis.seen = [];
            addEventListener("beforeprint", () => {
                const paper = getComputedStyle(document.body);
                seen.push(charts.loss.width, charts.memory.canvas.width, paper.colorScheme);
            });
        })()""")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        assert page.pdf(path=SCREENSHOTS / "run.pdf")[:5] == b"%PDF-"
        width, pixels, scheme = page.evaluate("seen")
        assert 600 < width < 720  # as wide as paper, not as the window
        assert pixels == 2 * width  # sharp enough for paper
        assert scheme == "light"
        page.emulate_media(media="print")
        assert not page.locator("#axis").is_visible()
        style = "getComputedStyle(document.documentElement).printColorAdjust"
        assert page.evaluate(style) == "exact"


def test_a_resumed_run_shows_what_stands_and_not_what_was_undone(browser):
    own_run(num_iters=50)
    lines = Path("out/run.jsonl").read_bytes().splitlines(keepends=True)
    again = [line for line in lines if b'"kind":"iter"' in line and json.loads(line)["iter"] >= 30]
    event = run_log.encode({"kind": "event", "name": "resume", "iter": 30, "detail": {}})
    start = json.loads(lines[0])
    start["config"]["init_from"] = "resume"
    Path("out/run.jsonl").write_bytes(b"".join([*lines[:-1], run_log.encode(start), event, *again]))
    with open_page(browser, report("out")) as page:
        assert page.evaluate("view.runs[0].segments.map((s) => [s.count, s.shown])") == [
            [50, 30],
            [20, 20],
        ]
        assert page.evaluate("view.range()") == [0, 49]
        assert "killed" in page.locator("#health").inner_text()
