"""The page's script says what the catalogues say, with the plurals and numbers of each language."""

import math
import re
from pathlib import Path

import pytest

from browser import hover, open_page, settle
from page_data import read_drawn
from page_logs import nanogpt_log, own_run, report
from stepglass.explain.render.languages import COUNTED, LANGUAGES, Words
from stepglass.explain.study import study
from stepglass.report import page as page_module
from stepglass.report import story

STEPS_ONLY = "".join(
    f"step {n:05d}/00200 (0.50%) | loss: {4 - n / 100:.6f} | lrm: 1.00 | "
    f"dt: {9000 if n == 0 else 250 + n % 3:.2f}ms | tok/sec: 2,000,000 | mfu: 31.00\n"
    for n in range(60)
)


def told(text: str) -> dict:
    return story.story_of(study(read_drawn(text.encode())), "x", None, story.all_words())


# -- sentences ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_script_says_every_sentence_as_python_does(browser, language):
    own_run()
    words = Words(language)
    asked, expected = [], []
    for key in page_module.spoken(language):
        names = set(re.findall(r"\$(\w+)", words.sources()[key]))
        for count in (0, 1, 2, 5, 1234, 1_000_000) if names else (0,):
            values = {name: count if name in COUNTED else f"<{name}>" for name in names}
            asked.append([key, values])
            expected.append(words.text(key, **values))
    with open_page(browser, report("out", lang=language)) as page:
        said = page.evaluate("(asked) => asked.map(([key, values]) => say(key, values))", asked)
    assert said == expected


def test_one_iteration_is_not_called_iterations(browser):
    own_run(num_iters=1)
    with open_page(browser, report("out")) as page:
        assert "finished, one iteration" in page.locator("#health").inner_text()
        written = [
            page.evaluate(
                f"stateText({{ name: 'running', step: {step}, max_iters: {most}, left_ms: null }})"
            )
            for step, most in ((1, 1), (1, 2000), (1999, 2000))
        ]
        assert written == ["running, one iteration", "running, 1 of 2,000 iterations",
                           "running, 1,999 of 2,000 iterations"]  # fmt: skip
        french = "setLanguage('fr'), [0, 1, 2].map((count) => say('page-done', { count }))"
        none, one, two = page.evaluate(french)
        assert (none[1:], two[1:]) == (one[1:], one[1:] + "s")  # French has no plural for 0


def test_what_is_not_known_is_said_in_the_language(browser):
    own_run(name="a")
    Path("b.log").write_text(STEPS_ONLY)
    with open_page(browser, report("a", "b.log")) as page:
        for language in LANGUAGES:
            page.locator("#language").select_option(language)
            settle(page)
            unknown = Words(language).text("page-unknown")
            assert unknown in page.locator("#compare").inner_text()
            assert language == "en" or "n/a" not in page.locator("#compare").inner_text()


# -- numbers ------------------------------------------------------------------------------------


def test_the_number_of_an_iteration_has_no_separator_and_a_count_has(browser):
    nanogpt_log(num_iters=2400, eval_interval=1200)
    with open_page(browser, report("train.log")) as page:
        assert "iter 1200 " in hover(page, "time", 1200)
        assert "(iter 1200)" in hover(page, "loss", 1200)
        assert page.locator("#range").inner_text() == "0 – 2399"
        assert "up to iter 2399" in page.locator("#health").inner_text()
        assert re.search(r"log, 2,40\d lines", page.locator("#about").inner_text())


def test_billions_are_written_as_each_language_says_them(browser):
    own_run()
    counts = [0, 999, 12_345, 999_999, 1_000_000, 10_650_000, 1_200_000_000, 98_765_432_100, 3e12]
    with open_page(browser, report("out")) as page:
        for language in LANGUAGES:
            script = "([code, counts]) => { setLanguage(code); return counts.map(large); }"
            words = Words(language)
            assert page.evaluate(script, [language, counts]) == list(map(words.count, counts))
        assert page.evaluate("setLanguage('en'), large(1.2e9)") == "1.2B"


# -- how far a run came ---------------------------------------------------------------------------


def test_the_iterations_of_another_trainer_are_named_and_not_counted():
    state = told("".join(f"iter {n}: loss 2.0, time 30.00ms\n" for n in range(5000, 5100, 10)))[
        "state"
    ]
    assert (state["name"], state["step"], state["iter"]) == ("log", None, 5090)
    unnumbered = "".join(
        f"{{'loss': {3 - n / 10}, 'learning_rate': 1e-4, 'epoch': {n / 10}}}\n" for n in range(1, 9)
    )
    told_of = told(unnumbered)
    assert (told_of["state"]["step"], told_of["state"]["iter"]) == (None, None)
    assert told_of["parts"][0]["last_iter"] is None


def test_a_loss_that_became_nan_is_not_drawn_on_and_has_no_last_value(browser):
    losses = {n: "nan" for n in range(300, 400)}
    nanogpt_log(losses=losses, stalls={})
    assert told(Path("train.log").read_text())["parts"][0]["last_loss"] is None
    with open_page(browser, report("train.log")) as page:
        smooth = page.evaluate("[...view.runs[0].segments[0].smoothed(0.6).slice(299, 400)]"
                               ".map((value) => Number.isFinite(value))")  # fmt: skip
        assert smooth == [True] + [False] * 100
    back = told(
        "".join(f"iter {n}: loss {'nan' if n == 5 else 2.5}, time 30ms\n" for n in range(20))
    )
    assert math.isclose(back["parts"][0]["last_loss"], 2.5)


# -- where the time went --------------------------------------------------------------------------


def test_no_share_is_taken_of_steps_alone(browser):
    Path("x.log").write_text(STEPS_ONLY)
    ledger = told(STEPS_ONLY)["parts"][0]["ledger"]
    assert (ledger["covers"], set(ledger["phases"])) == ("steps", {"step", "warmup"})
    with open_page(browser, report("x.log")) as page:
        said = page.locator("#ledger").inner_text()
        assert "total" in said
        assert "evaluations and checkpoints are not included" in said
        assert "%" not in said
        assert page.locator("#ledger .bar").count() == 0
        assert not page.locator("#chart-shares").is_visible()


def test_steps_alone_are_left_out_of_the_shares_and_the_total_times_of_several_runs(browser):
    own_run(name="a")
    Path("b.log").write_text(STEPS_ONLY)
    with open_page(browser, report("a", "b.log")) as page:
        assert page.locator("#ledger .bar").count() == 1
        assert not page.locator("#chart-shares").is_visible()
        names = page.locator("#compare thead").first.inner_text().split("\t")
        place = [name.strip() for name in names].index("total time")
        rows = page.locator("#compare tbody tr").all()
        total = {
            row.locator("th").inner_text(): row.locator("td").nth(place - 1).inner_text()
            for row in rows
        }
        assert total == {"a": "2.26\u00a0s", "b.log": "n/a"}


def test_a_log_without_times_has_no_section_about_them(browser):
    Path("x.log").write_text("".join(f"iter {i}: loss {3 - i / 50:.4f}\n" for i in range(50)))
    for width in (700, 1280):
        with open_page(browser, report("x.log"), width=width) as page:
            assert page.locator("#loss").is_visible()
            assert not page.locator("#ledger").is_visible()


def test_the_ledger_of_several_runs_in_one_log_says_what_each_covers(browser):
    first = "".join(f"iter {n}: loss 2.0, time {8000 if n == 0 else 30}.00ms\n" for n in range(60))
    second = "".join(
        f"iter {n}: loss 1.9, time {7000 if n == 50 else 30}.00ms\n" for n in range(50, 120)
    )
    Path("x.log").write_text(first + second)
    with open_page(browser, report("x.log")) as page:
        said = page.locator("#ledger .caption > div").all_inner_texts()
        assert [re.match(r"iterations \d+ to \d+", line)[0] for line in said] == [
            "iterations 0 to 59",
            "iterations 50 to 119",
        ]
        tops = {box["y"] for line in page.locator("#ledger .caption > div").all()
                if (box := line.bounding_box())}  # fmt: skip
        assert len(tops) == 2  # one below the other
