"""A peak that was measured again is the one that all readers divide by."""

import json
from pathlib import Path
from typing import Any

import pytest

from page_data import read_drawn
from stepglass.cli import main
from stepglass.explain.study import study
from stepglass.measure import run_log
from stepglass.report import story

FLOPS = 6000 * 32  # of an iteration
STEP_MS = 35.0
FIRST, LAST = 4e6, 8e6  # peaks in FLOP/s


def start(**changes: Any) -> dict[str, Any]:
    return {"kind": "start", "schema": 1, "config": {"max_iters": 40}, "tokens_per_iter": 32,
            "model": {"flops_per_token": 6000}, "peak_flops": FIRST, "device": "cpu of ours",
            "peak_source": "the first"} | changes  # fmt: skip


def iterations(numbers: range, peak: float | None) -> list[dict[str, Any]]:
    mfu = None if peak is None else FLOPS / STEP_MS * 1000 / peak
    return [
        {"kind": "iter", "iter": n, "loss": 2.0, "lr": 1e-3, "grad_norm": 1.0, "tokens": 32,
         "wall_ms": 35.0, "phases": {"data": 1.0, "forward_backward": 30.0, "optimizer": 4.0},
         "mfu": mfu}
        for n in numbers
    ]  # fmt: skip


def again(iteration: int, peak: float = LAST) -> dict[str, Any]:
    return {"kind": "event", "name": "peak", "iter": iteration,
            "detail": {"peak_flops": peak, "peak_source": "measured again"}}  # fmt: skip


def read(*records: dict[str, Any]) -> Any:
    return study(read_drawn(b"".join(map(run_log.encode, records))))


MEASURED_AGAIN = [start(), *iterations(range(20), FIRST), again(20),
                  *iterations(range(20, 40), LAST)]  # fmt: skip
TRUE_MFU = 100 * FLOPS / STEP_MS * 1000 / LAST


def test_explain_divides_the_whole_run_by_the_last_peak():
    (part,) = read(*MEASURED_AGAIN).parts
    assert part.mfu.clean == pytest.approx(TRUE_MFU)
    assert part.mfu.printed_last == pytest.approx(TRUE_MFU)
    assert part.mfu.peak_tflops == part.mfu.assumed_tflops == LAST / 1e12


def test_the_command_and_its_lines_and_json_say_the_last_peak(capsys):
    Path("out").mkdir()
    Path("out/run.jsonl").write_bytes(b"".join(map(run_log.encode, MEASURED_AGAIN)))
    assert main(["explain", "out", "--lines"]) == 0
    said = capsys.readouterr().out
    assert f"{TRUE_MFU:.2f}%" in said
    assert f"{2 * TRUE_MFU:.2f}%" not in said
    assert main(["explain", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["segments"][0]["mfu"]["peak_tflops"] == LAST / 1e12


def test_the_page_is_told_the_last_peak_and_where_it_comes_from():
    told = story.story_of(read(*MEASURED_AGAIN), "x", None, story.all_words())
    figures = told["parts"][0]["mfu"]
    assert figures["work"] / STEP_MS == pytest.approx(TRUE_MFU)  # what the chart divides
    assert figures["peak_tflops"] == figures["assumed_tflops"] == LAST / 1e12
    assert ["peak_source", "measured again"] in told["environment"]


def test_iterations_before_any_peak_was_known_get_their_mfu():
    (part,) = read(start(peak_flops=None), *iterations(range(20), None), again(20),
                   *iterations(range(20, 22), LAST)).parts  # fmt: skip
    assert part.mfu.clean == pytest.approx(TRUE_MFU)


def test_a_resumed_run_has_one_peak_if_the_machine_is_the_same():
    resumed = start(config={"max_iters": 40, "init_from": "resume"}, peak_flops=LAST)
    earlier, later = read(start(), *iterations(range(20), FIRST), resumed,
                          *iterations(range(20, 40), LAST)).parts  # fmt: skip
    assert earlier.mfu.clean == later.mfu.clean == pytest.approx(TRUE_MFU)
    other = resumed | {"device": "another"}
    earlier, _ = read(start(), *iterations(range(20), FIRST), other,
                      *iterations(range(20, 40), LAST)).parts  # fmt: skip
    assert earlier.mfu.clean == pytest.approx(2 * TRUE_MFU)


def test_a_peak_event_without_a_number_changes_nothing():
    for detail in ({"peak_flops": None}, {"peak_flops": "x"}, {}, None):
        event = again(20) | {"detail": detail}
        (part,) = read(start(), *iterations(range(20), FIRST), event).parts
        assert part.mfu.clean == pytest.approx(2 * TRUE_MFU)
