"""What the rules say about time: evaluations, stalls, start-up, slow stretches, repeated work."""

import io
import json
import random
from dataclasses import replace

import pytest

from nanogpt_run import Run
from stepglass.explain.finding import Finding
from stepglass.explain.render.languages import Words
from stepglass.explain.render.output import text as text_of
from stepglass.explain.render.output import title as title_of
from stepglass.explain.rules import all_rules
from stepglass.explain.study import Study, study
from stepglass.logs import detect


def studied(text: str) -> Study:
    return study(detect.read_log(io.BytesIO(text.encode()), "test.log"))


def named(rule: str, text: str) -> list[Finding]:
    return [finding for finding in all_rules.findings(studied(text)) if finding.rule == rule]


def rules(text: str) -> set[str]:
    return {finding.rule for finding in all_rules.findings(studied(text))}


def said(finding: Finding) -> str:
    words = Words("en")
    return title_of(finding, words) + " | " + text_of(finding, words)


def times(values: list[float], every: int = 1, first: int = 500) -> str:
    """Iterations of nanoGPT with these times, from the middle of a run."""
    return "".join(
        f"iter {first + n * every}: loss 2.5{n % 10}00, time {ms:.2f}ms, mfu 5.00%\n"
        for n, ms in enumerate(values)
    )


def noisy(count: int, ms: float, sigma: float = 0.01, seed: int = 4) -> list[float]:
    around = random.Random(seed)
    return [ms * around.gauss(1, sigma) for _ in range(count)]


# -- evaluations --------------------------------------------------------------------------------

COSTLY = Run(num_iters=601, eval_interval=100, step_ms=40, eval_ms=4000, save_ms=0.0, warmup_ms=900)


def test_title_and_table_show_one_percentage():
    [finding] = named("eval-inside-iteration", COSTLY.text)
    ledger = studied(COSTLY.text).parts[0].timing.ledger
    assert ledger is not None
    share = ledger.share("eval", "eval+checkpoint")
    assert finding.numbers["eval_share"] == share
    assert finding.level == "advice"
    assert f"{100 * share:.1f}%" in said(finding)
    assert named("eval-too-expensive", COSTLY.text) == [], "one fact is one finding"


def test_no_interval_is_proposed_that_leaves_the_run_hardly_an_evaluation():
    """Five percent would need an interval of 1,900 in a run of 600 iterations."""
    assert [f.change for f in named("eval-inside-iteration", COSTLY.text)] == [{}]
    [finding] = named("eval-inside-iteration", "Overriding: max_iters = 600\n" + COSTLY.text)
    assert finding.change == {"eval_interval": 150}
    assert finding.numbers["advice"] == "rarer"
    longer = "Overriding: max_iters = 20000\n" + COSTLY.text
    [finding] = named("eval-inside-iteration", longer)
    assert finding.change == {"eval_interval": 1900}


def test_fewer_batches_are_proposed_where_a_longer_interval_does_not_fit():
    header = "Overriding: max_iters = 600\nOverriding: eval_iters = 200\n"
    unsaved = replace(COSTLY, eval_ms=2000, val_losses=[3.0] * 9)
    [finding] = named("eval-inside-iteration", header + unsaved.text)
    assert set(finding.change) == {"eval_iters"}
    assert 18 <= finding.change["eval_iters"] <= 22


def test_one_evaluation_in_an_excerpt_is_explained_but_not_called_expensive():
    text = times([33.2, 33.3]) + "step 502: train loss 2.5, val loss 2.6\n" + times([4400], 1, 502)
    [finding] = named("eval-inside-iteration", text)
    assert (finding.level, finding.change) == ("note", {})
    assert "%" not in title_of(finding, Words("en"))


def test_a_last_line_with_an_evaluation_is_part_of_the_same_finding():
    ends_with_one = Run(num_iters=101, eval_interval=25)
    [finding] = named("eval-inside-iteration", ends_with_one.text)
    assert finding.numbers["last"] == "mfu"
    assert "The log ends with such a line" in said(finding)
    [finding] = named("eval-inside-iteration", Run(num_iters=110, eval_interval=25).text)
    assert finding.numbers["last"] == "no"


def test_no_mfu_is_called_right_unless_the_average_can_be_replayed():
    lines = Run(num_iters=101, eval_interval=25).lines
    [row] = [n for n, line in enumerate(lines) if line.startswith("iter 60:")]
    before, printed = lines[row].split("mfu ")
    lines[row] = f"{before}mfu {float(printed.rstrip('%')) + 0.2:.2f}%"
    [finding] = named("eval-inside-iteration", "\n".join(lines))
    assert finding.numbers["last"] == "time"
    assert finding.numbers["clean_mfu"] is None


def test_a_mean_over_several_iterations_is_compared_with_all_of_them():
    """Ten iterations of 100 ms and an evaluation of 2 s are printed as a mean of 300 ms."""
    text = "[eval] iter 0: train 9.8578 val 9.8535 lr 7.50e-07\n"
    for n in range(10, 1010, 10):
        ms = 300 if n % 200 == 0 else 100 + n // 10 % 2
        if n % 200 == 0:
            text += f"[eval] iter {n}: train 5.1 val 5.2 lr 7.50e-07\n"
        text += f"[train] iter {n}: loss 5.2 {ms} ms/iter\n"
    [finding] = named("eval-inside-iteration", text)
    assert finding.numbers["time_ms"] == pytest.approx(3000)
    assert finding.numbers["excess_ms"] == pytest.approx(2000, rel=0.02)


def test_checkpoints_of_worse_models_are_what_always_save_checkpoint_is_about():
    losses = [4.0, 3.0, 3.4, 2.9, 3.3]
    [finding] = named("eval-inside-iteration", Run(always_save=True, val_losses=losses).text)
    assert "always_save_checkpoint=False" in said(finding)
    [finding] = named("eval-inside-iteration", Run(always_save=False, val_losses=losses).text)
    assert "always_save_checkpoint" not in said(finding)


MLX = (
    "Iter {n}: Train loss 2.{n:03d}, Learning Rate 1.000e-05, It/sec {rate:.3f}, "
    "Tokens/sec {tok:.1f}, Trained Tokens {n}00, Peak mem 9.707 GB\n"
)
MLX_VAL = "Iter {n}: Val loss 2.{n:03d}, Val took {s:.3f}s\n"


def test_a_trainer_that_times_evaluations_apart_gets_its_share_from_the_table():
    text = "".join(
        MLX_VAL.format(n=n, s=30) + MLX.format(n=n, rate=2.0, tok=600.0) for n in range(10, 210, 10)
    )
    [finding] = named("eval-too-expensive", text)
    ledger = studied(text).parts[0].timing.ledger
    assert ledger is not None
    assert finding.numbers["eval_share"] == ledger.share("eval")
    assert finding.change == {}, "its settings have other names"


def test_evaluations_after_the_end_of_training_are_no_habit():
    """Three long evaluations of the final model, after 300 steps that were validated twice."""
    text = "".join(
        f"step:{n}/300 train_loss:3.2000 train_time:{100 * n}ms step_avg:100.00ms\n"
        + (
            f"step:{n}/300 val_loss:3.3000 train_time:{100 * n}ms step_avg:100.00ms\n"
            * (n % 100 == 0)
        )
        for n in range(1, 301)
    )
    text += "final_roundtrip val_loss:3.3100 val_bpb:1.2 eval_time:60000ms\n"
    text += "final_sliding val_loss:3.2900 val_bpb:1.1 eval_time:90000ms\n"
    assert named("eval-too-expensive", text) == []


def test_without_times_of_steps_evaluations_have_no_share():
    lines = [
        "{'loss': 2.1, 'learning_rate': 5e-05, 'epoch': 0.1}",
        "{'eval_loss': 2.0, 'eval_runtime': 30.0, 'epoch': 0.1}",
    ]
    text = "\n".join(line.replace("0.1}", f"0.{n}}}") for n in range(1, 9) for line in lines)
    assert named("eval-too-expensive", text + "\n") == []


def test_a_checkpoint_costs_no_share_of_a_partial_sum():
    steps = "".join(
        f"step {n:05d}/21400 (1.00%) | loss: 3.012123 | lrm: 1.00 | dt: 100.00ms | tok/sec: 5,000 "
        "| mfu: 13.44 | total time: 1.74m\n"
        + (f"Saved model parameters to: /x/model_{n:06d}.pt\n" if n % 5 == 0 else "")
        for n in range(1, 60)
    )
    assert named("checkpoint-interval", steps) == []


# -- stalls -------------------------------------------------------------------------------------


def test_neighbouring_slow_lines_are_one_stall():
    values = noisy(60, 100.0)
    values[30:33] = [900.0, 1200.0, 800.0]
    values[50] = 700.0
    [finding] = named("unexplained-stall", times(values))
    assert finding.numbers["count"] == 2
    assert finding.numbers["excess_ms"] == pytest.approx(2600, rel=0.02)
    assert finding.numbers["place"] == "several"


def periodic(excess: float, every: int = 40, header: str = "") -> Finding:
    values = noisy(400, 100.0)
    for n in range(17, 400, every):
        values[n] += excess
    [finding] = named("periodic-stall", header + times(values))
    return finding


@pytest.mark.parametrize(("excess", "has_collector"), [(300.0, True), (20_000.0, False)])
def test_the_garbage_collector_is_a_candidate_only_if_the_size_fits(excess, has_collector):
    assert ("garbage collector" in said(periodic(excess))) is has_collector


def test_a_preconditioner_comes_first_where_the_log_mentions_one():
    assert periodic(300.0, header="Overriding: optimizer = soap\n").variant == "optimizer"


def test_a_period_of_one_data_file_is_called_a_shard():
    header = "tokens per iteration will be: 2,500,000\n"
    assert periodic(300.0, every=40, header=header).variant == "shard"
    assert periodic(300.0, every=50, header=header).variant == "short"


def test_a_slow_line_after_every_evaluation_is_synchronisation():
    text = ""
    for n in range(400):
        if n % 40 == 0 and n:
            text += f"step {n}: train loss 2.5, val loss 2.6\n"
        ms = 5000.0 if n % 40 == 0 else 700.0 if n % 40 == 1 and n > 1 else 100.0 + n % 3
        text += f"iter {n}: loss 2.5{n % 10}00, time {ms:.2f}ms, mfu 5.00%\n"
    [finding] = named("periodic-stall", text)
    assert (finding.variant, finding.status) == ("sync", "supported")


def test_an_iteration_with_more_tokens_is_not_a_stall():
    """At iteration 150 the batch is four times as long; the tokens per second stay the same."""
    text = "".join(
        MLX.format(n=n, rate=0.5 if n == 150 else 2.0, tok=600 + n % 7) for n in range(1, 300)
    )
    assert not {"unexplained-stall", "periodic-stall"} & rules(text)
    stalled = "".join(
        MLX.format(n=n, rate=0.1 if n == 150 else 2.0, tok=30 if n == 150 else 600 + n % 7)
        for n in range(1, 300)
    )
    assert "unexplained-stall" in rules(stalled)


def test_sparse_lines_are_told_to_be_printed_more_often():
    values = noisy(60, 100.0)
    values[30] = 30_000.0
    [finding] = named("unexplained-stall", times(values, every=10))
    assert "log_interval=1" in said(finding)
    [finding] = named("unexplained-stall", times(values, every=1))
    assert "log_interval" not in said(finding)


def stamped(gap_s: float) -> str:
    text, now = "", 36_000.0
    for n in range(40):
        now += 10.0 + (gap_s if n == 25 else 0.0)
        clock = f"{int(now) // 3600:02d}:{int(now) // 60 % 60:02d}:{int(now) % 60:02d}"
        text += f"2026-01-01 {clock} iter {n * 10}: loss 2.5, time {1000 + n % 3}.00ms, mfu 5.00%\n"
    return text


def test_time_lost_between_printed_lines_is_found_by_their_timestamps():
    [finding] = named("hidden-stall", stamped(90.0))
    assert (finding.numbers["first_iter"], finding.numbers["end_iter"]) == (240, 250)
    assert finding.numbers["total_ms"] == pytest.approx(90_000, abs=1500)
    assert finding.change == {"log_interval": 1}
    assert named("hidden-stall", stamped(0.0)) == []


# -- start-up -----------------------------------------------------------------------------------


def test_a_start_up_of_under_a_second_is_not_called_compilation():
    quick = Run(num_iters=60, eval_ms=0.0, save_ms=0.0, warmup_ms=700, eval_interval=1000)
    [finding] = named("warm-up", quick.text)
    assert finding.numbers["work"] == "first-use"
    assert "compil" not in said(finding)
    [finding] = named("warm-up", replace(quick, warmup_ms=70_000).text)
    assert "compil" in said(finding)


def test_a_first_line_that_is_hardly_slower_is_no_finding():
    assert named("warm-up", times([140.0, *noisy(30, 90.0)], first=1)) == []


def test_the_mean_of_the_first_iterations_includes_the_start_up_and_is_no_stall():
    rates = [0.4, 14.0, 24.0, 25.0, 24.5, 24.8, 25.1]
    text = "".join(
        MLX.format(n=10 * (n + 1), rate=rate, tok=300 * rate) for n, rate in enumerate(rates)
    )
    assert "unexplained-stall" not in rules(text)
    assert "warm-up" in rules(text)


# -- slower and faster --------------------------------------------------------------------------


def test_a_slow_stretch_in_the_middle_is_one_finding_and_no_stalls():
    values = noisy(60, 100.0) + noisy(25, 190.0, seed=5) + noisy(60, 100.0, seed=6)
    [finding] = named("slow-stretch", times(values))
    assert (finding.numbers["first_iter"], finding.numbers["end_iter"]) == (560, 584)
    assert finding.numbers["rise_percent"] == pytest.approx(90, abs=5)
    assert not {"unexplained-stall", "periodic-stall", "slowdown"} & rules(times(values))


@pytest.mark.parametrize(
    "values",
    [
        noisy(150, 100.0, 0.1),
        noisy(60, 100.0) + noisy(90, 190.0),  # it stays slow
        noisy(60, 190.0) + noisy(90, 100.0),  # it becomes faster
        [*noisy(60, 100.0), 900.0, *noisy(60, 100.0)],  # one line
    ],
    ids=["noise", "slowdown", "faster", "stall"],
)
def test_what_is_not_a_slow_stretch_is_not_called_one(values):
    assert named("slow-stretch", times(values)) == []


def test_a_slowdown_is_seen_on_a_dozen_lines_if_it_is_clear():
    clear = noisy(7, 100.0) + noisy(7, 130.0, seed=5)
    [finding] = named("slowdown", times(clear, every=100))
    assert finding.numbers["rise_percent"] == pytest.approx(30, abs=3)
    assert (finding.variant, finding.numbers["iter"]) == ("step", 1200)
    assert named("slowdown", times(clear[::-1], every=100)) == [], "it became faster"
    assert named("slowdown", times(noisy(14, 100.0, 0.15), every=100)) == []


def test_noise_is_not_taken_for_a_slowdown():
    for seed in range(30):
        for count, sigma in ((12, 0.1), (30, 0.2), (100, 0.3)):
            text = times(noisy(count, 100.0, sigma, seed=seed))
            assert not {"slowdown", "slow-stretch"} & rules(text), (seed, count)


# -- work done twice ----------------------------------------------------------------------------


def resumed(first: str, start: int, stop: int) -> str:
    lines = [f"iter {n}: loss 2.{stop}, time 500.00ms, mfu 5.00%" for n in range(start, stop)]
    return first + "\n".join(lines) + "\n"


SAVED = "step 100: train loss 2.5, val loss 2.6\nsaving checkpoint to out\n"
AGAIN = (
    "Overriding: init_from = resume\ntokens per iteration will be: 16,384\n"
    "Resuming training from out\n"
)


def test_iterations_done_twice_after_a_resume_are_counted():
    first = resumed("", 0, 100) + resumed(SAVED, 100, 181)
    [finding] = named("repeated-work", first + resumed(AGAIN, 100, 220))
    assert finding.numbers["count"] == 81
    assert finding.numbers["time_ms"] == pytest.approx(40_500)
    assert finding.status == "established"


def test_a_second_run_in_the_same_file_repeats_nothing():
    first = resumed("", 0, 100) + resumed(SAVED, 100, 181)
    assert named("repeated-work", first + resumed("", 0, 120)) == []
    assert named("repeated-work", first + resumed("", 50, 120)) == [], "no checkpoint is there"
    assert named("repeated-work", first + resumed(AGAIN, 181, 220)) == []


# -- the device ---------------------------------------------------------------------------------

SMALL = "number of parameters: 10.65M\n"


def on_a100(text: str) -> set[str]:
    log = detect.read_log(io.BytesIO(text.encode()), "test.log")
    return {f.rule for f in all_rules.findings(study(log, "A100"))}


def test_seconds_per_iteration_are_not_spent_on_starting_kernels():
    assert "small-kernels" in on_a100(SMALL + times([20.0, 20.1]))
    assert "small-kernels" not in on_a100(SMALL + times([33_000.0, 33_100.0]))


def test_sdpa_is_not_said_to_write_out_the_attention_matrix():
    note = "WARNING: Flash Attention 3 not available, using PyTorch SDPA fallback. Slower.\n"
    step = (
        "step {n:05d} (0.00%) | loss: 5.4 | lrm: 1.00 | dt: 5.71ms | tok/sec: 22,429 | mfu: 0.00\n"
    )
    text = note + "".join(step.format(n=n) for n in range(1, 20))
    [finding] = named("slow-path", text)
    assert (finding.variant, finding.level) == ("sdpa", "note")
    assert "matrix" not in said(finding)


def test_waits_for_data_are_compared_with_the_steps_of_the_same_lines():
    phases = {"data": 30.0, "forward_backward": 60.0, "optimizer": 10.0}
    records: list[dict[str, object]] = [{"kind": "start", "schema": 1, "config": {}}]
    records += [
        {"kind": "iter", "iter": n, "loss": 3.0, "wall_ms": 100.0, "phases": phases}
        for n in range(40)
    ]
    [finding] = named("data-bound", "".join(json.dumps(r) + "\n" for r in records))
    assert finding.numbers["data_share"] == pytest.approx(0.3)


def test_memory_of_the_computer_is_told_from_memory_of_the_gpu():
    killed = "Out of memory: Killed process 4242 (python) total-vm:81234567kB\n"
    [finding] = named("out-of-memory", "Overriding: batch_size = 32\n" + times([20.0]) + killed)
    assert (finding.variant, finding.change) == ("host", {})
