"""The processes of a run on its page: what each does in an update, and which one is slow."""

import json
from pathlib import Path

import pytest

from browser import keep_screenshots, open_page
from page_logs import own_run, report
from rank_logs import log_of_ranks, slow_rank
from stepglass.report.live import LiveRun


def write_run(text: str, name: str = "out") -> None:
    Path(name).mkdir()
    Path(name, "run.jsonl").write_text(text)


def test_the_page_shows_the_processes_and_names_the_slow_one(browser):
    write_run(log_of_ranks(slow_rank(2, 1.5), processes=4, noise=0.0))
    with open_page(browser, report("out")) as page:
        section = page.locator("#ranks")
        assert section.locator("h2").inner_text() == "Processes"
        assert section.locator(".straggler").inner_text() == (
            "Rank 2 is slow: the other processes wait for it"
        )
        assert section.locator("h3").all_inner_texts() == [
            "Whole run",
            "Newest measurement, iter 600",
        ]
        table = section.locator("table").first
        rows = [row.inner_text().split("\t") for row in table.locator("tbody tr").all()]
        fast, slow = ["100.0 ms", "50.00 ms", "70.00 ms"], ["150.0 ms", "0.000 ms", "105.0 ms"]
        assert [row[0].strip() for row in rows] == ["rank 0", "rank 1", "rank 2", "rank 3"]
        times = [[cell.replace("\xa0", " ") for cell in row[-3:]] for row in rows]
        assert times == [fast, fast, slow, fast]
        assert "communication 10.00" in section.locator(".legend").first.inner_text()
        assert table.locator("tr.slow th").inner_text() == "rank 2"
        bars = [box["width"] for bar in table.locator("tbody .bar span:first-child").all()
                if (box := bar.bounding_box())]  # fmt: skip
        assert bars[2] / bars[0] == pytest.approx(1.5, rel=0.02)
        assert "1.33 times as long as the average process" in section.inner_text()
        ledger = page.locator("#ledger .sums tr.within").all_inner_texts()
        assert [" ".join(row.split()) for row in ledger] == [
            "of this, communication 6.00 s 6.0%",
            "of this, waiting for the slowest 22.50 s 22.5%",
        ]
        keep_screenshots(page, "ranks")
        page.locator("#language").select_option("de")
        assert "Rank 2 ist langsam" in section.inner_text()
        assert "davon Kommunikation" in page.locator("#ledger").inner_text()


def test_no_process_is_named_where_none_is_slow_and_of_many_the_slowest_are_shown(browser):
    write_run(log_of_ranks(processes=40, updates=4), name="many")
    own_run(name="one")
    with open_page(browser, report("many")) as page:
        assert page.locator("#ranks .straggler, #ranks tr.slow").count() == 0
        assert page.locator("#ranks table").first.locator("tbody tr").count() == 16
        assert "Of 40 processes, the 16 slowest are shown." in page.locator("#ranks").inner_text()
    with open_page(browser, report("one")) as page:
        assert not page.locator("#ranks").is_visible()
        assert page.locator("#ledger tr.within").count() == 0
    with open_page(browser, report("many", "one")) as page:
        assert page.locator("#ranks h3").all_inner_texts() == ["many"]


def test_a_live_page_gets_the_newest_times_of_the_processes():
    lines = log_of_ranks(slow_rank(1, 1.5), noise=0.0, is_ended=False).splitlines(keepends=True)
    records = [n for n, line in enumerate(lines, 1) if '"name":"ranks"' in line]
    write_run("".join(lines[: records[1]]))
    moments = iter(range(0, 1_000_000, 1000))
    run = LiveRun(Path("out"), now=lambda: float(next(moments)))

    def told() -> dict:
        while run.advance():
            pass
        [story] = [json.loads(e.data) for e in run.events(None) if e.name == "story"]
        return story["parts"][0]["ranks"]

    before = told()
    assert (before["newest"]["iter"], before["straggler"]) == (100, None)  # two records are few
    assert before["newest"]["compute"] == [100.0, 150.0, 100.0, 100.0]
    with open("out/run.jsonl", "a") as file:
        file.writelines(lines[records[1] :])
    after = told()
    assert (after["newest"]["iter"], after["straggler"]) == (600, 1)
