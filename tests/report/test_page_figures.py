"""What the page of a run says first, and what can be taken away: figures, axes, samples, CSV."""

import csv
import json
import math
from pathlib import Path

import pytest
from playwright.sync_api import Page

from browser import drag, ink, keep_screenshot, open_page, settle
from page_logs import own_run, report
from stepglass.measure import run_log


def figures(page: Page) -> dict[str, str]:
    """The headline: name and value with its note."""
    cards = page.locator(".figure").all()
    return {
        card.locator("dt").inner_text(): " ".join(card.locator("dd").inner_text().split())
        for card in cards
    }


def test_the_headline_has_the_figures_of_the_run(browser):
    own_run(bytes_per_token=2.0)
    with open_page(browser, report("out")) as page:
        best = 2 + math.exp(-2)
        assert figures(page) == {
            "loss now": f"{2 + math.exp(-59 / 20):.4f} iter 59",
            "best validation loss": f"{best:.4f} iter 40",
            "bits per byte": f"{best / math.log(2) / 2:.4f} iter 40",
            "tokens per second": "901",
            "time per step": "35.50 ms",
            "parameters": "1,000",
        }


def test_what_a_log_does_not_say_is_not_a_figure(browser):
    Path("x.log").write_text("".join(f"iter {i}: loss {3 - i / 50:.4f}\n" for i in range(50)))
    with open_page(browser, report("x.log")) as page:
        assert figures(page) == {"loss now": "2.0200 iter 49"}


def test_the_header_counts_the_rows_that_have_arrived_since_the_story(browser):
    own_run()
    with open_page(browser, report("out")) as page:
        now = page.evaluate("""(() => {
            const { state } = view.runs[0].story;
            Object.assign(state, { name: "running", step: 50, max_iters: 100, left_ms: 50_000 });
            headline();
            return stateNow(view.runs[0]);
        })()""")
        assert (now["step"], now["left_ms"]) == (60, 40_000)
        assert "running, 60 of 100 iterations" in page.locator("#health").inner_text()
        assert figures(page)["time left"] == "40.0 s"


def edited(change) -> None:
    """The run log of `own_run`, its records changed by a function."""
    log = Path("out/run.jsonl")
    records = [json.loads(line) for line in log.read_bytes().splitlines()]
    log.write_bytes(b"".join(map(run_log.encode, change(records))))


def test_the_first_loss_and_a_spike_do_not_squeeze_the_curve_and_zooming_shows_them(browser):
    own_run(num_iters=400)
    losses = {0: 11.0, 1: 9.0, 200: 50.0}
    edited(lambda records: [r | {"loss": losses.get(r["iter"], r["loss"])}
                            if r["kind"] == "iter" else r for r in records])  # fmt: skip
    with open_page(browser, report("out")) as page:
        assert ink(page, "loss") > 500
        assert page.evaluate("charts.loss.high") < 3.5
        assert "up to 50 are above the axis" in page.locator("#chart-loss .caption").inner_text()
        keep_screenshot(page, "robust")
        page.get_by_label("whole range").check()
        settle(page)
        assert page.evaluate("charts.loss.high") > 50
        assert "above the axis" not in page.locator("#chart-loss .caption").inner_text()
        page.get_by_label("whole range").uncheck()
        drag(page, "loss", 190, 210)
        assert page.evaluate("charts.loss.high") > 50


def test_a_rise_at_the_end_is_not_taken_for_a_spike(browser):
    own_run(num_iters=400)
    edited(lambda records: [r | {"loss": 9.0} if r["kind"] == "iter" and r["iter"] > 370 else r
                            for r in records])  # fmt: skip
    with open_page(browser, report("out")) as page:
        assert ink(page, "loss") > 500
        assert page.evaluate("charts.loss.high") > 9


def resumed(records):
    """The run stops after 50 iterations and goes on from 30 with twice the tokens."""
    iters = [r for r in records if r["kind"] == "iter"]
    start = records[0] | {"tokens_per_iter": 64}
    start["config"] = start["config"] | {"init_from": "resume"}
    early = [r for r in records[1:-1] if r["iter"] < 50]
    return [records[0], *early, start, *(r for r in iters if r["iter"] >= 30), records[-1]]


def test_a_resumed_run_is_one_curve_on_every_axis(browser):
    own_run()
    edited(resumed)
    with open_page(browser, report("out")) as page:
        assert "finished, 60 iterations" in page.locator("#health").inner_text()
        assert figures(page)["loss now"].endswith("iter 59")
        befores = page.evaluate("lossChart.lines(view).map((line) => line.before?.x ?? null)")
        assert befores.count(29) == 2  # the raw and the smoothed curve go on after iteration 29
        smooth = page.evaluate(
            "view.runs[0].segments.map((s) => s.smoothed(0.9)[s.number ? 0 : 29])"
        )
        assert smooth[0] == pytest.approx(smooth[1], rel=0.02)  # not begun anew
        assert page.evaluate("view.runs[0].best.iter") == 20
        ends = {}
        for axis in ("iter", "tokens", "time", "flops"):
            page.locator("#axis").select_option(axis)
            settle(page)
            ends[axis] = page.evaluate("view.range()")
        assert ends["iter"] == [0, 59]
        assert ends["tokens"] == [0, 30 * 32 + 29 * 64]
        assert ends["flops"] == [0, 6000 * (30 * 32 + 29 * 64)]
        assert page.locator("#range").inner_text() == "0\u00a0FLOP – 16.9\u00a0MFLOP"


def test_an_axis_that_the_log_does_not_have_is_not_offered(browser):
    Path("x.log").write_text("".join(f"iter {i}: loss 3, time 30ms\n" for i in range(50)))
    with open_page(browser, report("x.log")) as page:
        offered = "[...document.getElementById('axis').options].filter((o) => !o.disabled)"
        assert page.evaluate(f"{offered}.map((option) => option.value)") == ["iter", "time"]


def test_samples_stand_side_by_side_in_the_order_of_the_run(browser):
    own_run(num_iters=200)
    with open_page(browser, report("out")) as page:
        cards = page.locator("#samples > div > .samples figure")
        texts = cards.locator("pre").all_inner_texts()
        assert texts == [f"<b>sample {n}</b>" for n in (0, 60, 120, 180)]
        assert "validation loss 3.0000" in cards.first.inner_text()
        boxes = [box for card in cards.all() if (box := card.bounding_box())]
        assert len({box["y"] for box in boxes}) == 1
        page.get_by_text("all 10 samples").click()
        assert page.locator("#samples details pre").count() == 10


def test_the_visible_rows_can_be_downloaded_as_csv(browser):
    own_run(name="=a")
    with open_page(browser, report("=a")) as page:
        page.evaluate("view.show([10, 20])")
        with page.expect_download() as download:
            page.get_by_role("button", name="CSV").click()
        assert download.value.suggested_filename == "_a.csv"
        with open(download.value.path(), newline="") as file:
            rows = list(csv.DictReader(file))
    assert [row["iter"] for row in rows] == [str(n) for n in range(10, 21)]
    assert rows[0]["run"] == "'=a"  # a spreadsheet would compute it
    assert float(rows[0]["loss"]) == pytest.approx(2 + math.exp(-0.5), rel=1e-4)
    assert float(rows[-1]["val_loss"]) == pytest.approx(2 + math.exp(-1), rel=1e-4)
    assert float(rows[-1]["phase:eval"]) == 30
    assert rows[0]["val_loss"] == ""
