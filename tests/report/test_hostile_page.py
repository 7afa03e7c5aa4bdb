"""What a log, a name or a model wrote is text on the page, and never markup."""

import json
from pathlib import Path

from browser import keep_screenshot, open_page, settle
from page_logs import nanogpt_log, own_run, report
from stepglass.measure import run_log

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "<!--<script>",
    "-->",
    "]]><script>alert(1)</script>",
    "<style>*{display:none}</style>",
    "<base href=https://example.org/>",
    "<iframe src=https://example.org>",
    "<meta http-equiv=refresh content=0>",
    "{{7*7}}${7*7}",
    "javascript:alert(1)",
    "\u2028alert(1)\u2029",
    "\x1b[2J\x1b]0;owned\x07",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<a href=javascript:alert(1)>x</a>",
    "__proto__",
    "<form action=https://example.org><input autofocus onfocus=alert(1)>",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "\\u003cscript\\u003ealert(1)",
]  # fmt: skip


def test_hostile_names_settings_samples_and_log_lines_are_text(browser):
    own_run(**{text: text for text in HOSTILE})
    records = [json.loads(line) for line in Path("out/run.jsonl").read_text().splitlines()]
    for record in records:
        if record["kind"] == "start":
            record |= {"device": HOSTILE[1], "peak_source": HOSTILE[2], "argv": HOSTILE,
                       "versions": {text: text for text in HOSTILE}}  # fmt: skip
    for number, text in enumerate(HOSTILE):
        records.append(
            {"kind": "event", "name": "sample", "iter": number, "detail": {"text": text}}
        )
        records.append({"kind": "event", "name": text, "iter": number, "detail": {"message": text}})
    first = next(record for record in records if record["kind"] == "iter")
    first["phases"] |= {text: 1.0 for text in HOSTILE}
    folder = Path("<img src=x onerror=alert(1)>")
    folder.mkdir()
    (folder / "run.jsonl").write_bytes(b"".join(map(run_log.encode, records)))
    address = report(str(folder))
    with open_page(browser, address, may_be_used=False) as page:
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        for summary in page.locator("summary").all():
            summary.click()
        settle(page)
        samples = page.locator("#samples pre").all_text_contents()
        assert HOSTILE[0] in samples
        assert HOSTILE[16] in samples
        assert page.locator("main :is(script, img, iframe, svg, base, form, style)").count() == 0
        assert page.locator("h1").inner_text() == folder.name
        settings = page.locator("#settings").inner_text()
        assert "<script>alert(1)</script>" in settings
        assert "\x1b" not in settings
        assert dialogs == []
        keep_screenshot(page, "hostile")


def test_hostile_lines_of_a_foreign_log_are_text(browser):
    run = nanogpt_log()
    extra = [f"Overriding: {text} = {text}" for text in HOSTILE]
    extra += [f"{text} torch.OutOfMemoryError: CUDA out of memory. {text}" for text in HOSTILE]
    Path("train.log").write_text(run.text + "\n".join(extra) + "\n")
    with open_page(browser, report("train.log")) as page:
        assert page.locator("main :is(script, img, iframe, svg, base, form, style)").count() == 0
        assert "problem" in page.locator("#health").inner_text()
