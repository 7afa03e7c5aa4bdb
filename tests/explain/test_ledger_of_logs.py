"""Where the time went in logs of other trainers: what a total covers, and when there is none."""

import io
from dataclasses import replace

import pytest

from nanogpt_run import Run
from stepglass.explain.render import show
from stepglass.explain.render.languages import Words
from stepglass.explain.rules import all_rules
from stepglass.explain.study import Part, Study, study
from stepglass.logs import detect


def studied(text: str) -> Study:
    return study(detect.read_log(io.BytesIO(text.encode()), "test.log"))


def only_part(text: str) -> Part:
    [part] = studied(text).parts
    return part


def shown(text: str) -> str:
    result = studied(text)
    return "\n".join(show.lines(result, all_rules.findings(result), Words("en"), "test.log"))


def modded(steps: range, step_ms: float = 50.0, last: int = 1000, kind: str = "train_loss") -> str:
    return "".join(
        f"step:{n}/{last} {kind}:{9 - 5 * n / last:.4f} "
        f"train_time:{n * step_ms:.0f}ms step_avg:{step_ms:.2f}ms\n"
        for n in steps
    )


def mlx(rates: list[float], every: int = 10) -> str:
    return "".join(
        f"Iter {every * (n + 1)}: Train loss {3 - n / 10:.3f}, Learning Rate 1.000e-05, "
        f"It/sec {rate:.3f}, Tokens/sec {rate * 300:.3f}, Trained Tokens {3000 * (n + 1)}, "
        "Peak mem 9.7 GB\n"
        for n, rate in enumerate(rates)
    )


def test_a_mean_counts_for_every_iteration_of_its_window():
    ledger = only_part(mlx([2.0] * 8)).timing.ledger
    assert ledger.phases["step"] == pytest.approx(80 * 500, rel=0.001)


def test_the_window_of_the_first_line_of_an_excerpt_is_that_of_the_others():
    lines = mlx([2.0] * 8).splitlines(keepends=True)
    ledger = only_part("".join(lines[4:])).timing.ledger
    assert ledger.phases["step"] == pytest.approx(40 * 500, rel=0.001)


def test_steps_alone_are_not_called_wall_clock_and_have_no_share():
    text = shown(modded(range(0, 1000, 50)))
    assert "training steps 0 to 950 only" in text
    assert "wall clock" not in text
    assert "100.0%" not in text.split("Where the time went")[1]
    assert only_part(modded(range(0, 1000, 50))).timing.ledger.wall_ms is None


def test_a_log_of_evaluations_alone_has_a_step_time_from_its_clock():
    part = only_part(modded(range(0, 1001, 125), kind="val_loss"))
    assert part.timing.mean_ms == pytest.approx(50.0) or part.timing.normal_ms == pytest.approx(50)
    assert part.timing.ledger.total_ms == pytest.approx(50_000)


def test_runs_whose_evaluations_go_back_are_separate_runs():
    runs = [modded(range(0, 1001, 125), step_ms, kind="val_loss") for step_ms in (50, 51, 52)]
    assert len(studied("".join(runs)).parts) == 3


def test_there_is_no_ledger_of_evaluations_alone():
    text = "".join(
        f"{{'eval_loss': {2 - n / 10:.2f}, 'eval_runtime': 3.5, 'eval_steps_per_second': 1.4, "
        f"'epoch': {n}.0}}\n{{'loss': {1.9 - n / 10:.2f}, 'learning_rate': 1e-05, "
        f"'epoch': {n}.5}}\n"
        for n in range(4)
    )
    assert only_part(text).timing.ledger is None
    assert "total" not in shown(text)
    assert "of the time" not in shown(text)


def test_a_stated_total_without_step_times_is_split_into_evaluations_and_the_rest():
    text = "".join(
        f"{{'loss': {2 - n / 10:.2f}, 'learning_rate': 1e-05, 'epoch': {n}.5}}\n"
        f"{{'eval_loss': 2.1, 'eval_runtime': 10.0, 'epoch': {n}.0}}\n"
        for n in range(4)
    )
    text += "{'train_runtime': 400.0, 'train_steps_per_second': 0.5, 'train_loss': 1.7}\n"
    ledger = only_part(text).timing.ledger
    assert ledger.covers == "run"
    assert ledger.phases == pytest.approx({"eval": 40_000, "rest": 360_000})


def test_evaluation_sets_stay_apart():
    text = "".join(
        f"{{'loss': {2 - n / 10:.2f}, 'learning_rate': 1e-05, 'epoch': {n}.5}}\n"
        f"{{'eval_books_loss': {2 - n / 10:.2f}, 'eval_books_runtime': 10.0, 'epoch': {n}.5}}\n"
        f"{{'eval_code_loss': {5 + n}, 'eval_code_runtime': 10.0, 'epoch': {n}.5}}\n"
        for n in range(6)
    )
    part = only_part(text)
    assert len({evaluation.set for evaluation in part.segment.evals}) == 2
    assert {evaluation.set for evaluation in part.evals} == {part.evals[0].set}


def test_the_first_three_lines_answer():
    lines = shown(mlx([2.0] * 20)).splitlines()
    assert lines[0].startswith("No problem found")
    assert lines[1] == "A training step takes 500.0\u00a0ms."
    assert lines[2] == "This log shows nothing to change."


def test_the_text_is_as_wide_as_the_terminal():
    result = studied(mlx([2.0] * 20) + mlx([0.1]))
    found = all_rules.findings(result)
    lines = list(show.lines(result, found, Words("en"), "test.log", width=50))
    assert max(len(line) for line in lines) <= 50


def stamped(seconds: list[int], every: int) -> str:
    return "".join(
        f"[2026-01-01 18:{s // 60:02d}:{s % 60:02d}] iter={n * every} loss={7 - n / 10:.2f}\n"
        for n, s in enumerate(seconds, 1)
    )


def test_whole_seconds_are_not_taken_for_stalls_of_single_lines():
    spread = [0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 7, 8, 8, 9, 10, 10, 11, 12, 13]
    result = studied(stamped(spread, every=20))
    assert not [f for f in all_rules.findings(result) if "stall" in f.rule]
    assert result.parts[0].timing.normal_ms == pytest.approx(13_000 / (19 * 20))


def test_a_gap_between_two_timestamps_is_never_the_start_of_the_process():
    result = studied(stamped([0, 1800, 1860, 1920, 1980, 2040, 2100, 2160], every=1))
    assert not [f for f in all_rules.findings(result) if f.rule == "warm-up"]


def test_zero_norms_beside_a_loss_that_falls_are_not_believed():
    def lines(loss_of):
        return "".join(
            f"{{'loss': {loss_of(n):.4f}, 'grad_norm': 0.0, 'learning_rate': 5e-05, "
            f"'epoch': {n / 100}}}\n"
            for n in range(1, 21)
        )

    falling, flat = lines(lambda n: 3 - n / 10), lines(lambda n: 3 + n % 3 / 100)
    assert not [f for f in all_rules.findings(studied(falling)) if f.rule == "broken-gradient"]
    assert [f for f in all_rules.findings(studied(flat)) if f.rule == "broken-gradient"]


def scattered(seed: int, noise: float = 0.1) -> Run:
    return Run(num_iters=401, log_interval=10, eval_interval=50, noise=noise, seed=seed)


def test_the_true_time_is_nearly_always_within_the_stated_error():
    within = 0
    for seed in range(40):
        run = scattered(seed)
        ledger = only_part(run.text).timing.ledger
        within += abs(ledger.phases["step"] - run.spent["step"]) <= ledger.errors["step"]
    assert within >= 34  # 38 are expected


def test_a_row_that_may_be_far_off_says_so():
    table = shown(scattered(seed=1, noise=0.3).text).split("Where the time went")[1]
    [steps] = [line for line in table.splitlines() if "training steps" in line]
    assert "±" in steps
    assert "±" not in shown(scattered(seed=1, noise=0.0).text)


def test_the_fewer_iterations_are_printed_the_larger_the_error():
    few = only_part(scattered(seed=1).text).timing.ledger
    all_lines = Run(num_iters=401, log_interval=1, eval_interval=50, noise=0.1, seed=1)
    assert few.errors["step"] > 5 * only_part(all_lines.text).timing.ledger.errors["step"]


def test_evaluations_that_do_not_stand_out_of_the_noise_are_still_counted():
    """Each takes as long as two steps, and the steps of this machine vary by half."""
    spent_ms, ledger_ms = 0.0, 0.0
    for seed in range(8):
        run = Run(num_iters=401, eval_interval=10, eval_ms=60, noise=0.5, seed=seed)
        run = replace(run, save_ms=0.0, warmup_ms=0.0)
        part = only_part(run.text)
        assert part.timing.num_faint > 0
        spent_ms += run.spent["eval"]
        ledger_ms += part.phase_ms("eval", "eval+checkpoint", "warmup+eval")
    assert ledger_ms == pytest.approx(spent_ms, rel=0.25)


def sparse_lines(slow: set[int], slow_ms: float = 300.0, last: int = 600) -> str:
    """Every tenth of many iterations of 100 ms, some of which are slow."""
    return "".join(
        f"iter {n}: loss {4 - n / last:.4f}, time {slow_ms if n in slow else 100.0:.2f}ms, "
        "mfu 1.00%\n"
        for n in range(10, last + 1, 10)
    )


def test_what_interrupts_the_printed_iterations_interrupts_the_others_too():
    irregular = {30, 90, 110, 180, 290, 310, 420, 530, 550}  # 9 of 60 lines take 200 ms longer
    ledger = only_part(sparse_lines(irregular)).timing.ledger
    steps_ms = ledger.phases["step"] + ledger.phases["stall"]
    assert steps_ms == pytest.approx(591 * (100 + 200 * 9 / 60), rel=0.001)


def test_stalls_at_a_fixed_distance_are_not_multiplied():
    """They may be checkpoints, at every hundredth iteration and nowhere else."""
    ledger = only_part(sparse_lines(set(range(100, 601, 100)))).timing.ledger
    assert ledger.phases["step"] == pytest.approx(591 * 100, rel=0.001)
    assert ledger.total_ms == pytest.approx(591 * 100 + 6 * 200, rel=0.001)
    assert ledger.errors["step"] < 0.01 * ledger.phases["step"]


def test_a_single_long_stall_is_an_event_of_its_own():
    ledger = only_part(sparse_lines({300}, slow_ms=60_000)).timing.ledger
    assert ledger.phases["step"] == pytest.approx(591 * 100, rel=0.001)
    assert ledger.errors["step"] < 0.01 * ledger.phases["step"]


def test_one_short_stall_leaves_a_doubt_about_the_iterations_between():
    ledger = only_part(sparse_lines({300})).timing.ledger
    assert ledger.phases["step"] == pytest.approx(591 * 100, rel=0.001)
    assert ledger.errors["step"] > 200 * 540 / 60  # as many more as the printed lines suggest
