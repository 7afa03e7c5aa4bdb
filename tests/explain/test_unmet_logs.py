"""Statements that were false on public logs of kinds that no other test has."""

# ruff: noqa: E501 (log lines are quoted whole)

import io
import math
import random

import pytest

from stepglass.explain.finding import Finding
from stepglass.explain.render import show
from stepglass.explain.render.languages import LANGUAGES, Words
from stepglass.explain.render.output import text as text_of
from stepglass.explain.render.output import title as title_of
from stepglass.explain.rules import all_rules
from stepglass.explain.study import Study, study
from stepglass.logs import detect

ENGLISH = Words("en")


def studied(text: str) -> Study:
    return study(detect.read_log(io.BytesIO(text.encode()), "test.log"))


def named(rule: str, text: str) -> list[Finding]:
    return [finding for finding in all_rules.findings(studied(text)) if finding.rule == rule]


def said(finding: Finding) -> str:
    return title_of(finding, ENGLISH) + " " + text_of(finding, ENGLISH)


def shown(text: str, language: str = "en") -> str:
    of = studied(text)
    lines = show.lines(of, all_rules.findings(of), Words(language), "test.log", shows_all=True)
    return "\n".join(lines)


# -- training by reward -------------------------------------------------------------------------


def policy(losses: list[float]) -> str:
    return "".join(
        f"{{'loss': {loss}, 'grad_norm': 0.0, 'learning_rate': 1e-06, 'reward': 0.61, 'reward_std': 0.2, 'kl': 0.01, 'epoch': {n / 100}}}\n"
        for n, loss in enumerate(losses)
    )


@pytest.mark.parametrize(
    "losses",
    [
        [-0.11, -0.16, -0.15, -0.14, -0.16, -0.15, *[0.2] * 40],  # from one side of 0 to the other
        [0.001] * 8 + [0.3] * 40,  # it grows with the distance from the first model
        [0.0] * 40,  # equal to 0 while the policy is the one that wrote the answers
        [0.001 * (n % 5) for n in range(70)] + [0.5] + [0.001 * (n % 5) for n in range(70)],
    ],
)
def test_the_loss_of_a_policy_is_about_0_by_design_and_shows_no_fault(losses: list[float]) -> None:
    assert not all_rules.findings(studied(policy(losses)))


def test_a_loss_of_both_signs_is_not_judged_by_its_level() -> None:
    text = "".join(
        f"step {10 * n} | loss {-0.16 if n < 9 else 0.2 + 0.001 * n:.4f} | lr 1e-5\n"
        for n in range(60)
    )
    assert not named("divergence", text)


def test_a_likelihood_that_rises_and_stays_up_is_still_reported() -> None:
    around = random.Random(1)
    losses = [2.0 + math.exp(-n / 10) + around.gauss(0, 0.02) for n in range(60)]
    losses += [6.0 + around.gauss(0, 0.02) for _ in range(40)]
    text = "".join(
        f"{{'loss': {loss:.4f}, 'learning_rate': 1e-05, 'epoch': {n / 100}}}\n"
        for n, loss in enumerate(losses)
    )
    assert named("divergence", text)


# -- parameter-golf -----------------------------------------------------------------------------


def golf(ms_of: dict[int, float], last: int, tokens: int = 500_000) -> str:
    """Lines of its second script. A step takes as long as the stage that it belongs to."""
    text, clock = f"  train_batch_tokens: {tokens}\nmodel_params:30000000\n", 0.0
    for step in range(1, last + 1):
        clock += next(ms for first, ms in reversed(ms_of.items()) if step >= first) / 1000
        if step <= 3 or step % 250 == 0:
            rate = round(step * tokens / clock)
            text += f"{step}/9000 train_loss: {9 - step / last:.4f} train_time: {clock / 60:.1f}m tok/s: {rate}\n"
    return text


def test_the_step_without_a_name_and_the_mean_rate_of_parameter_golf_are_read() -> None:
    text = golf({1: 80.0}, 2000) + "2000/9000 val_loss: 3.1 val_bpb: 1.2\n"
    text += "stopping_early: wallclock_cap train_time: 160000ms step: 2000/9000\n"
    [part] = studied(text).parts
    assert part.log.format.name == "parameter-golf"
    assert part.timing.normal_ms == pytest.approx(80.0, rel=0.001)
    assert part.timing.ledger is not None
    assert part.timing.ledger.total_ms == pytest.approx(160_000, rel=0.001)
    assert [e.val_loss for e in part.evals] == [3.1]


def test_a_rate_that_does_not_fit_the_printed_minutes_gives_no_time() -> None:
    lines = "".join(
        f"{step}/9000 train_loss: 3.1 train_time: {step / 500:.1f}m tok/s: 4000000\n"
        for step in range(500, 5000, 500)
    )
    [part] = studied("  train_batch_tokens: 500000\n" + lines).parts
    assert part.timing.normal_ms is None


def test_a_slower_stage_that_was_planned_is_no_stall() -> None:
    text = golf({1: 80.0, 3001: 125.0, 3751: 80.0}, 6000)
    assert not named("unexplained-stall", text)


def test_a_mean_of_many_steps_counts_for_more_than_a_single_step() -> None:
    [part] = studied(golf({1: 40.0, 4: 90.0}, 1000)).parts
    assert part.timing.normal_ms == pytest.approx(90.0, rel=0.02)


def test_tokens_per_parameter_are_of_the_steps_that_a_stopped_run_took() -> None:
    text = golf({1: 80.0}, 7000)
    stop = "stopping_early: wallclock_cap train_time: 560000ms step: 7000/9000\n"
    [finding] = named("data-budget", text + stop)
    assert finding.numbers["tokens"] == 7000 * 500_000
    assert "planned" not in said(finding)


def test_the_short_names_of_a_fork_of_modded_nanogpt_are_read() -> None:
    text = "".join(
        f"step:{n}/9000 loss:{4 - n / 9000:.4f} aux:0.01 t:{90 * n}ms step_avg:90.0ms\n"
        for n in range(500, 6000, 500)
    )
    [part] = studied(text).parts
    assert part.losses[1][0] == pytest.approx(3.9444)
    assert part.timing.normal_ms == pytest.approx(90.0)


# -- tables of a notebook, and logs that count no steps --------------------------------------------

TABLE = "Step\tTraining Loss\tValidation Loss\tWer\n"


def test_the_table_of_a_notebook_is_the_trainers() -> None:
    rows = "".join(f"{100 * n}\t{2 / n:.6f}\t{2.2 / n:.6f}\t{80 - n:.4f}\n" for n in range(1, 9))
    [part] = studied("***** Running training *****\n" + TABLE + rows).parts
    assert part.log.format.name == "hf-trainer"
    assert [e.iter for e in part.evals] == [100 * n for n in range(1, 9)]
    assert part.evals[0].metrics == {"wer": 79.0}
    assert part.losses[1][0] == 2.0


def test_a_table_in_markdown_and_a_first_row_without_a_loss_are_read() -> None:
    text = "| Epoch | Training Loss | Validation Loss |\n|---|---|---|\n| 1 | No log | 0.7 |\n| 2 | 0.61 | 0.6 |\n"
    [part] = studied(text).parts
    assert [e.val_loss for e in part.evals] == [0.7, 0.6]
    assert part.losses[1].tolist() == [0.61]


def test_a_policys_table_has_columns_of_rewards_and_its_loss_of_0_is_no_fault() -> None:
    text = "Step\tTraining Loss\treward\treward_std\tkl\n" + "".join(
        f"{n}\t0.000000\t0.5\t0.1\t0.0\n" for n in range(1, 30)
    )
    assert not all_rules.findings(studied(text))


def test_a_table_of_epochs_says_epoch_and_not_step() -> None:
    text = "Epoch\tTraining Loss\tValidation Loss\n" + "".join(
        f"{n}\t{1 / n:.4f}\t{0.5 + 0.1 * abs(n - 3):.4f}\n" for n in range(1, 10)
    )
    answer = shown(text)
    assert "epoch 3" in answer
    assert "step 3" not in answer
    assert "one line for each epoch" in answer


def test_a_summary_after_a_table_makes_no_table_of_one_step() -> None:
    end = "TrainOutput(global_step=1000, training_loss=0.5, metrics={'train_runtime': 3458.7, 'train_steps_per_second': 0.289, 'train_loss': 0.5, 'epoch': 3.0})\n"
    [part] = studied(TABLE + "1000\t0.0012\t0.42\t74.4\n" + end).parts
    assert part.timing.ledger is not None
    assert part.timing.ledger.phases == {"all": 3_458_700.0}


def unnumbered(count: int = 40) -> str:
    """Dicts without a step, and an evaluation after every tenth, which rises from the middle on."""
    text = ""
    for n in range(count):
        text += f"{{'loss': {1 - n / count:.4f}, 'learning_rate': 1e-05, 'epoch': {n / 10:.2f}}}\n"
        if n % 5 == 4:
            val = 0.5 + 0.02 * abs(n - count // 3)
            text += f"{{'eval_loss': {val:.4f}, 'eval_runtime': 60.0, 'epoch': {n / 10:.2f}}}\n"
    return text + "{'train_runtime': 2000.0, 'train_steps_per_second': 0.2, 'epoch': 4.0}\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_log_without_steps_names_none(language: str) -> None:
    answer = shown(unnumbered(), language)
    assert "iter 14" not in answer
    assert "step 14" not in answer
    entry = Words(language).text("unit-entry")
    assert f"{entry} 14" in answer.replace("\n", " ")
    [cost] = named("eval-too-expensive", unnumbered())
    assert "iterations" not in said(cost)


def test_one_line_is_one_iteration_and_no_range() -> None:
    text = "iter 12001: loss 3.1000, time 50.00ms, mfu 10.00%\n" * 2
    assert "12001 to 12001" not in shown(text)
    assert "iteration 12001" in shown(text)


def test_of_several_runs_the_longest_tells_the_time_of_a_step() -> None:
    runs = [(300, 50.0), (20, 70.0)]
    text = "".join(
        f"iter {n}: loss {3 - n / 900:.4f}, time {ms:.2f}ms, mfu 10.00%\n"
        for count, ms in runs
        for n in range(count)
    )
    assert "A training step takes 50.00" in shown(text)


# -- losses -------------------------------------------------------------------------------------


def nanochat(losses: list[float]) -> str:
    return "".join(
        f"step {n:05d}/21400 (0.02%) | loss: {loss:.6f} | lrm: 1.00 | dt: 480.00ms | tok/sec: 529,882 | mfu: 48.13 | total time: {n * 0.008:.2f}m\n"
        for n, loss in enumerate(losses)
    )


def test_a_bad_batch_in_a_moving_average_lasts_and_is_no_fault_of_the_learning_rate() -> None:
    around, mean, losses = random.Random(3), 3.0, []
    for n in range(900):
        raw = 14.0 if n in (400, 600, 800) else 3.0 + around.gauss(0, 0.01)
        mean = 0.9 * mean + 0.1 * raw
        losses.append(mean)
    [finding] = named("loss-spike", nanochat(losses))
    assert finding.level == "note"
    assert "learning rate" not in said(finding)
    assert "moving average" in said(finding)


def test_a_stretch_of_easier_data_that_ends_is_no_rise_of_the_loss() -> None:
    around = random.Random(5)
    levels = [3.25] * 1500 + [2.95] * 240 + [3.24] * 15 + [3.2] * 1000
    text = "".join(
        f"step {n:5d} | loss: {level + around.gauss(0, 0.03):.6f} | lr 5.2074e-04 | norm: 0.2201 | dt: 712.60ms | tok/sec: 735735.61\n"
        for n, level in enumerate(levels)
    )
    assert not named("divergence", text)


def dicts(losses: list[float]) -> str:
    return "".join(
        f"{{'loss': {loss}, 'learning_rate': 1e-05, 'epoch': {n / 100:.2f}}}\n"
        for n, loss in enumerate(losses)
    )


def test_a_loss_that_falls_to_0_at_once_is_a_fault_after_three_lines() -> None:
    [finding] = named("constant-loss", dicts([1.06, 1.15, 1.19, 0.0, 0.0, 0.0]))
    assert (finding.status, finding.variant) == ("supported", "zero")


def test_a_loss_that_was_learned_down_to_0_is_no_fault() -> None:
    assert not named("constant-loss", dicts([1.06, 0.4, 0.1, 0.01, 0.0001, 0.0, 0.0, 0.0]))


# -- times --------------------------------------------------------------------------------------


def lines_around_an_evaluation(after_ms: float) -> str:
    """nanoGPT's lines. Its mfu is a moving average, which a slow line pulls down."""
    text, mfu = "", None
    for n in range(300, 700, 10):
        if n == 500:
            text += "step 500: train loss 3.0000, val loss 3.1000\nsaving checkpoint to out\n"
        ms = 20_000.0 if n == 500 else 100.0 if n < 500 else after_ms
        now = 20.0 * 100.0 / ms
        mfu = now if mfu is None else 0.9 * mfu + 0.1 * now
        text += f"iter {n}: loss 3.0000, time {ms:.2f}ms, mfu {mfu:.2f}%\n"
    return text


def test_an_echo_in_the_mfu_does_not_hide_that_the_speed_changed() -> None:
    [same] = named("mfu-echo", lines_around_an_evaluation(100.0))
    assert "did not change" in said(same)
    [slower] = named("mfu-echo", lines_around_an_evaluation(120.0))
    assert "did not change" not in said(slower)
    assert "not a slowdown" not in said(slower)


def test_a_clock_that_runs_since_the_start_covers_the_steps_before_the_first_line() -> None:
    text = "".join(
        f'{{"current_steps": {20 * n}, "total_steps": 400, "loss": 1.4, "lr": 4e-06, "epoch": 0.2, "percentage": 22.2, "elapsed_time": "0:{n // 2:02d}:{30 * (n % 2):02d}", "remaining_time": "0:01:35"}}\n'
        for n in range(1, 15)
    )
    [part] = studied(text).parts
    assert part.timing.ledger is not None
    assert part.timing.ledger.phases == {"step": 420_000.0}
    assert "iterations 1 to 280" in shown(text)


def finished(losses: list[float], mean: float) -> str:
    end = f"{{'train_runtime': 1000.0, 'train_steps_per_second': 0.4, 'train_loss': {mean}, 'epoch': 3.0}}\n"
    return dicts(losses) + end


def test_the_time_at_the_end_of_a_resumed_run_is_not_that_of_the_whole_run() -> None:
    losses = [0.5 + 1 / (n + 1) for n in range(40)]
    mean = sum(losses) / len(losses)
    assert "the whole run" in shown(finished(losses, mean))
    # The Trainer divides the loss of the last tenth of the steps by all of them.
    answer = shown(finished(losses, mean / 10))
    assert "the whole run" not in answer
    assert "on average" not in answer


def test_evaluations_that_took_longer_than_the_stated_time_show_that_it_is_not_the_whole() -> None:
    losses = [0.5 + 1 / (n + 1) for n in range(40)]
    evaluation = "{'eval_loss': 0.6, 'eval_runtime': 5000.0, 'epoch': 0.3}\n"
    answer = shown(evaluation + finished(losses, sum(losses) / 40))
    assert "on average" not in answer


def test_who_interrupts_a_run_is_still_told_what_could_be_better() -> None:
    text = ""
    for n in range(60):
        if n % 5 == 0:
            text += f"step {n}: train loss {3 - n / 60:.4f}, val loss {3.1 - n / 60:.4f}\n"
        ms = 9000.0 if n % 5 == 0 else 100.0
        text += f"iter {n}: loss {3 - n / 60:.4f}, time {ms:.2f}ms, mfu 10.00%\n"
    assert shown(text + "KeyboardInterrupt\n").startswith("Worth changing: Evaluations take")


def test_the_dicts_of_ppo_are_read_as_training_by_reward() -> None:
    text = "".join(
        f"{{'eps': 1, 'objective/kl': 10.9, 'objective/rlhf_reward': 1.4, 'loss/policy_avg': {0.004 - 0.001 * (n % 7)}, 'loss/value_avg': 0.2, 'lr': 7e-06, 'episode': {16 * n}, 'epoch': {n / 100}}}\n"
        for n in range(12)
    )
    [part] = studied(text).parts
    assert part.log.format.name == "hf-trainer"
    assert len(part.losses[1]) == 12
    assert part.is_policy_loss


# -- what is not of the run, and which run it is of ---------------------------------------------


def test_an_error_in_a_text_that_the_run_prints_is_not_its_end() -> None:
    rows = "".join(f"{100 * n}\t{2 / n:.6f}\t{2.2 / n:.6f}\t{80 - n:.4f}\n" for n in range(1, 9))
    quoted = "[EN] It stopped and said this: MemoryError: Unable to allocate array.\n"
    samples = "[EN] Another sentence of the test set.\n" * 300
    [part] = studied(TABLE + rows + samples + quoted + samples).parts
    assert part.error is None
    [part] = studied(TABLE + rows + samples + "MemoryError: Unable to allocate array.\n").parts
    assert part.error is not None


def test_a_finding_in_a_log_of_several_runs_names_its_run() -> None:
    calm = "".join(
        f"iter {n}: loss {3 - n / 900:.4f}, time 50.00ms, mfu 10.00%\n" for n in range(100)
    )
    text = calm + calm.replace("iter 70: loss 2.9222", "iter 70: loss nan")
    assert "[run 2, problem, established" in shown(text)
    assert "[problem" in shown(calm.replace("iter 70: loss 2.9222", "iter 70: loss nan"))


def test_a_log_that_shows_the_start_up_is_not_said_to_hide_it() -> None:
    def lines(first_ms: float) -> str:
        return "".join(
            f"step:{n}/900 train_loss:{9 - n / 90:.4f} train_time:{first_ms + 100 * n:.0f}ms step_avg:{(first_ms + 100 * n) / max(n, 1):.2f}ms\n"
            for n in range(1, 60)
        )

    start = "step:0/900 val_loss:10.8258 train_time:0ms step_avg:0.00ms\n"
    assert "What validation and start-up cost" in shown(start + lines(0))
    answer = shown(start + lines(20_000))
    assert "includes the start-up" in answer
    assert "What validation and start-up cost" not in answer
    assert "What validation costs" in answer


def test_a_french_article_fits_the_unit() -> None:
    french = Words("fr")
    assert french.counted("depuis le step 3, au step 4, d'iter 5", "epoch") == (
        "depuis l'epoch 3, à l'epoch 4, d'epoch 5"
    )
    assert french.counted("au step 4, d'iter 5", "entry") == "au relevé 4, de relevé 5"
    assert french.counted("au step 4", "step") == "au step 4"


def test_a_slowdown_is_not_dated_to_the_last_line() -> None:
    around = random.Random(8)
    times = [100.0] * 8 + [112.0] * 3 + [114.0] * 4 + [150.0]
    text = "".join(
        f"iter {10 * n}: loss {3 - n / 90:.4f}, time {ms + around.gauss(0, 0.2):.2f}ms\n"
        for n, ms in enumerate(times)
    )
    for finding in named("slowdown", text):
        assert finding.iters[0] < 150
        assert "iter 150" not in said(finding)


def test_a_first_mean_that_includes_the_start_up_is_not_counted_as_steps() -> None:
    text = "".join(
        f"step:{n}/3225 val_loss:{5 - n / 3225:.5f} train_time:{56 + 0.158 * n:.3f}s step_avg:{(56_000 + 158 * n) / n:.2f}ms\n"
        for n in range(125, 3226, 125)
    )
    [part] = studied(text).parts
    assert part.timing.ledger is not None
    assert part.timing.ledger.phases["warmup"] == pytest.approx(56_000, rel=0.01)
    assert "leaves out: evaluations, start-up" not in shown(text)
