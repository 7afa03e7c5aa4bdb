"""What is said about several processes: who is slow, and what they wait for."""

import io
import json
import random

import pytest

from rank_logs import log_of_ranks, slow_rank
from stepglass.cli import main
from stepglass.explain import limits
from stepglass.explain.finding import Finding
from stepglass.explain.render.languages import LANGUAGES, Words
from stepglass.explain.render.output import text as text_of
from stepglass.explain.render.output import title as title_of
from stepglass.explain.rules import all_rules
from stepglass.explain.study import Part, study
from stepglass.explain.who_waits import straggler_of
from stepglass.logs import detect
from stepglass.logs.rank_times import read_rank_times


def part_of(text: str) -> Part:
    [part] = study(detect.read_log(io.BytesIO(text.encode()), "run.jsonl")).parts
    return part


def named(rule: str, text: str) -> list[Finding]:
    log = detect.read_log(io.BytesIO(text.encode()), "run.jsonl")
    return [finding for finding in all_rules.findings(study(log)) if finding.rule == rule]


# -- a straggler --------------------------------------------------------------------------------


def test_a_slow_rank_is_named_with_what_it_costs():
    [finding] = named("straggler", log_of_ranks(slow_rank(2, 1.4)))
    assert (finding.status, finding.level) == ("established", "advice")
    assert finding.numbers["rank"] == 2
    assert finding.numbers["slower_percent"] == pytest.approx(40, abs=3)
    # 12 records of 50 updates, in each of which all wait 40 ms for it
    assert finding.cost_ms == pytest.approx(12 * 50 * 40, rel=0.1)
    assert finding.numbers["cost_share"] == pytest.approx(40 / 155.5, rel=0.1)
    assert finding.iters[:2] == [50, 100]
    words = Words("en")
    assert title_of(finding, words) == "Rank 2 is slow: the other processes wait for it"
    assert "slower than the others in 12 of 12 measurements from iter 0 to 600" in text_of(
        finding, words
    )
    for language in LANGUAGES:
        assert "2" in title_of(finding, Words(language))


@pytest.mark.parametrize("processes", [2, 8, 64])
def test_a_slow_rank_is_found_among_few_and_many(processes):
    [finding] = named("straggler", log_of_ranks(slow_rank(0, 1.25), processes=processes))
    assert finding.numbers["rank"] == 0
    title = title_of(finding, Words("en"))
    assert title.endswith("process waits for it" if processes == 2 else "processes wait for it")


@pytest.mark.parametrize("processes", [2, 4, 64])
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.2])
def test_noise_is_no_straggler(processes, noise):
    found = [
        seed
        for seed in range(12)
        if straggler_of(
            part_of(log_of_ranks(processes=processes, noise=noise, seed=seed, updates=2)).ranks
        )
    ]
    assert found == []


def test_another_slow_rank_at_every_time_is_no_straggler():
    drawn = random.Random(5)
    slow = [drawn.randrange(4) for _ in range(40)]
    log = log_of_ranks(
        lambda rank, record: 1.5 if slow[record] == rank else 1.0, records=40, updates=2
    )
    assert named("straggler", log) == []


def test_a_rank_that_is_slow_once_is_no_straggler():
    log = log_of_ranks(lambda rank, record: 3.0 if (rank, record) == (1, 4) else 1.0)
    assert named("straggler", log) == []


def test_a_rank_that_became_slow_is_named_with_the_time_since():
    log = log_of_ranks(
        lambda rank, record: 1.5 if rank == 1 and record >= 10 else 1.0, records=20, updates=4
    )
    [finding] = named("straggler", log)
    assert finding.numbers["rank"] == 1
    assert (finding.numbers["first_iter"], finding.numbers["end_iter"]) == (40, 80)


def test_few_records_prove_nothing():
    assert named("straggler", log_of_ranks(slow_rank(1, 1.5), records=2)) == []
    assert named("straggler", log_of_ranks(slow_rank(1, 1.15), records=4)) == []
    [finding] = named("straggler", log_of_ranks(slow_rank(1, 1.5), records=4))
    assert finding.status == "hypothesis"


def test_a_small_difference_is_not_worth_a_word():
    assert named("straggler", log_of_ranks(slow_rank(1, 1.05), noise=0.001)) == []


# -- communication ------------------------------------------------------------------------------


def test_much_communication_is_said_with_what_makes_it_less():
    [finding] = named("communication", log_of_ranks(communication_ms=50.0))
    share = 50 / (0.5 + 100 * 1.02 + 50 + 5)
    assert finding.numbers["communication_share"] == pytest.approx(share, rel=0.03)
    assert finding.cost_ms == pytest.approx(12 * 50 * 50)
    text = text_of(finding, Words("en"))
    assert "raise gradient_accumulation_steps (now 4) or batch_size" in text


def test_waiting_for_a_slow_rank_is_not_taken_for_communication():
    log = log_of_ranks(slow_rank(1, 2.0), processes=2)
    assert named("communication", log) == []
    assert named("straggler", log) != []
    assert named("communication", log_of_ranks(communication_ms=10.0)) == []


def test_the_table_says_what_the_passes_include_and_still_adds_up(capsys):
    log = log_of_ranks(slow_rank(0, 1.5), processes=2, noise=0.0)
    part = part_of(log)
    assert part.timing.ledger is not None
    assert part.within_backward == pytest.approx(
        {"communication": 600 * 10.0, "waiting": 600 * 25.0}  # one waits 50 ms, the other not
    )
    assert sum(part.timing.ledger.phases.values()) == pytest.approx(part.wall_ms)
    with open("run.jsonl", "w") as file:
        file.write(log)
    assert main(["explain", "run.jsonl"]) == 0
    out = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in out.splitlines() if "of this, " in line]
    assert rows == [
        "of this, communication 6.00 s 6.0%",
        "of this, waiting for the slowest 15.00 s 15.0%",
    ]
    assert main(["explain", "--json", "run.jsonl"]) == 0
    [segment] = json.loads(capsys.readouterr().out)["segments"]
    assert segment["ranks"] == {
        "compute_ms": [150.0, 100.0],
        "wait_ms": [10.0, 60.0],
        "communication_ms": 10.0,
        "imbalance": 1.2,
        "straggler": 0,
        "within_forward_backward": {"communication": 6.0, "waiting": 15.0},
    }


def test_a_run_of_one_process_has_no_such_rows(capsys):
    lines = log_of_ranks().splitlines(keepends=True)
    log = "".join(line for line in lines if '"ranks"' not in line)
    part = part_of(log)
    assert part.ranks is None
    assert part.within_backward == {}
    assert named("straggler", log) == named("communication", log) == []


# -- reading ------------------------------------------------------------------------------------


def test_without_the_shortest_wait_of_each_update_the_shortest_mean_is_used():
    times = read_rank_times({"compute_ms": [40.0, 60], "wait_ms": [22.0, 2.0]})
    assert times is not None
    assert (times.communication_ms, times.updates) == (2.0, 1)


@pytest.mark.parametrize(
    "detail",
    [
        {},
        {"compute_ms": [1.0, 2.0]},
        {"compute_ms": [1.0], "wait_ms": [1.0]},
        {"compute_ms": [1.0, 2.0], "wait_ms": [1.0]},
        {"compute_ms": [1.0, -2.0], "wait_ms": [1.0, 1.0]},
        {"compute_ms": [1.0, True], "wait_ms": [1.0, 1.0]},
        {"compute_ms": [1.0, "2"], "wait_ms": [1.0, 1.0]},
        {"compute_ms": [1.0, float("nan")], "wait_ms": [1.0, 1.0]},
        {"compute_ms": 2, "wait_ms": {"a": 1}},
        {"compute_ms": [1.0] * 5000, "wait_ms": [1.0] * 5000},
    ],
)
def test_what_is_not_one_time_for_each_process_is_left_out(detail):
    assert read_rank_times(detail) is None
    broken = json.dumps({"kind": "event", "name": "ranks", "iter": 50, "detail": detail})
    ranks = part_of(log_of_ranks(slow_rank(1, 1.5), is_ended=False) + broken + "\n").ranks
    assert ranks is not None
    assert len(ranks.lines) == 12


def test_the_times_of_many_processes_are_kept_whole():
    log = log_of_ranks(slow_rank(999, 1.5), processes=1000, updates=2)
    [finding] = named("straggler", log)
    assert finding.numbers["rank"] == 999


def test_a_log_that_cannot_time_each_process_says_so():
    plain = "".join(x for x in log_of_ranks().splitlines(keepends=True) if '"ranks"' not in x)
    on_gpu = plain.replace('"device_type":"cpu"', '"device_type":"cuda"')
    cases = {plain: False, on_gpu: True, plain.replace('"ddp"', '"fsdp"'): True}
    assert {
        text: "ranks"
        in limits.cannot_show(study(detect.read_log(io.BytesIO(text.encode()), "run.jsonl")))
        for text in cases
    } == cases
