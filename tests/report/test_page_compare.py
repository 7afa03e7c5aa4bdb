"""Several runs on one page: the best first, what differs, and what they have in common."""

from browser import SCREENSHOTS, hover, keep_screenshots, open_page, settle
from page_logs import own_run, report


def five_runs() -> str:
    for place, name in enumerate("abcde"):
        own_run(name=name, shift=(place - 2) ** 2 / 10, learning_rate=(place + 1) / 1000,
                num_iters=60 - 5 * place)  # fmt: skip
    return report(*"abcde")


def names(page) -> list[str]:
    return page.locator("#compare tbody th").all_inner_texts()


def test_a_comparison_leads_with_the_winner_and_lists_what_differs(browser):
    with open_page(browser, five_runs()) as page:
        said = page.locator(".winner").inner_text()
        assert said == "c is the best run: validation loss 2.1353. The next is b, worse by 0.1000."
        assert names(page) == ["c", "b", "d", "a", "e"]
        assert page.locator("#compare tr.best th").all_inner_texts() == ["c"]
        table = page.locator("#compare").inner_text()
        assert "learning_rate" in table
        assert "0.004" in table
        assert "batch_size" not in table
        page.get_by_role("button", name="learning_rate").click()
        assert names(page) == [*"abcde"]
        page.get_by_role("button", name="learning_rate").click()
        assert names(page) == [*"edcba"]
        assert page.locator("#legend").inner_text().split("\n") == [*"abcde"]
        entries = page.locator("figure .legend span").all_inner_texts()
        assert not set(entries) & {*"abcde"}  # one legend for all
        said = hover(page, "loss", 20)
        assert "a · iter 20" in said
        assert "b · iter 20" in said
        assert page.locator("#ledger .bar").count() == 5
        assert page.locator("#ledger .caption").all_inner_texts().count("") <= 1
        samples = page.locator("#samples pre").all_inner_texts()
        assert samples == [f"<b>sample {40 if name != 'e' else 20}</b>" for name in "abcde"]


def test_what_is_found_in_all_runs_is_said_once(browser):
    with open_page(browser, five_runs()) as page:
        found = page.evaluate("view.runs.map((run) => run.story.findings.map((f) => f.rule))")
        rules = {rule for rules in found for rule in rules}
        assert rules
        assert page.locator("#findings li").count() == len(rules)
        common = [rule for rule in rules if all(rule in rules_ for rules_ in found)]
        assert page.locator("#findings .runs", has_text="in all 5 runs").count() == len(common)


def test_a_comparison_fits_a_screen_and_scrolls_sideways_on_a_phone(browser):
    wide = "[...document.querySelectorAll('.scroll')].some((e) => e.scrollWidth > e.clientWidth)"
    with open_page(browser, five_runs(), may_be_used=False) as page:
        page.locator("#axis").select_option("tokens")
        settle(page)
        assert page.evaluate("view.range()[1]") == 59 * 32
        assert not page.evaluate(wide)
        page.pdf(path=SCREENSHOTS / "compared.pdf")
        keep_screenshots(page, "compared")  # the last one is a phone's
        assert page.evaluate(wide)


def test_many_settings_that_differ_have_a_table_of_their_own(browser):
    for place, name in enumerate("ab"):
        own_run(name=name, shift=place, **{f"setting_{n}": place for n in range(9)})
    with open_page(browser, report("b", "a")) as page:
        page.get_by_text("9 settings differ").click()
        table = page.locator(".differences")
        assert table.locator("thead th").all_inner_texts() == ["", "a", "b"]  # the best first
        assert table.locator("tbody tr").first.inner_text().split() == ["setting_0", "0", "1"]


def test_losses_of_different_data_have_no_winner_unless_they_are_in_bits_per_byte(browser):
    own_run(name="a", dataset="x", bytes_per_token=4.0, shift=1.0)
    own_run(name="b", dataset="y", bytes_per_token=1.0)
    with open_page(browser, report("a", "b")) as page:
        assert "a is the best run: 1.1308 bits per byte" in page.locator(".winner").inner_text()
    own_run(name="b", dataset="y")
    with open_page(browser, report("a", "b")) as page:
        assert (
            "not certain that the runs have the same data" in page.locator(".winner").inner_text()
        )
        assert page.locator("#compare .best").count() == 0
