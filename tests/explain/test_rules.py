"""Every rule speaks on a log made for it, and is silent on one that nearly is."""

import io
import json
import math
import random
from pathlib import Path

import pytest

from nanogpt_run import Run
from stepglass.explain.finding import Finding
from stepglass.explain.rules import all_rules
from stepglass.explain.study import study
from stepglass.logs import detect

HEADER = [
    "tokens per iteration will be: 16,384",
    "found vocab_size = 65 (inside data/shakespeare_char/meta.pkl)",
    "Initializing a new model from scratch",
    "number of parameters: 10.65M",
]
SHAPE = ["Overriding: n_layer = 6", "Overriding: n_embd = 384", "Overriding: block_size = 256"]


def findings(text: str, device: str | None = None) -> list[Finding]:
    return all_rules.findings(study(detect.read_log(io.BytesIO(text.encode()), "test.log"), device))


def named(rule: str, text: str, device: str | None = None) -> list[Finding]:
    return [finding for finding in findings(text, device) if finding.rule == rule]


def curve(losses: list[float], step_ms: float = 100.0, every: int = 1) -> str:
    """Iterations with these losses."""
    return "".join(
        f"iter {n * every}: loss {loss:.4f}, time {step_ms:.2f}ms, mfu 10.00%\n"
        for n, loss in enumerate(losses)
    )


def evals(pairs: list[tuple[float, float]], saved: bool = False, every: int = 250) -> str:
    """Evaluations with these train and val losses, and an iteration before and after each."""
    text = ""
    for n, (train, val) in enumerate(pairs):
        i = n * every
        text += f"step {i}: train loss {train:.4f}, val loss {val:.4f}\n"
        if saved and n:
            text += "saving checkpoint to out\n"
        text += f"iter {i}: loss {train:.4f}, time 5000.00ms, mfu 10.00%\n"
        text += f"iter {i + 10}: loss {train:.4f}, time 50.00ms, mfu 10.00%\n"
    return text


def falling(count: int, start: float = 4.0, to: float = 2.0, noise: float = 0.02) -> list[float]:
    around = random.Random(1)
    return [
        to + (start - to) * math.exp(-4 * n / count) + around.gauss(0, noise) for n in range(count)
    ]


def test_every_rule_of_the_folder_is_in_the_list():
    folder = Path(all_rules.__file__).parent
    rules = {
        path.stem.replace("_", "-")
        for path in folder.glob("*.py")
        if f"def find_{path.stem}(" in path.read_text()
    }
    assert len(rules) > 20
    assert rules == set(all_rules.NAMES)


def healthy() -> Run:
    return Run(
        num_iters=2001,
        eval_interval=500,
        log_interval=10,
        eval_ms=600,
        save_ms=50,
        warmup_ms=500,
        val_losses=[4.18, 2.6, 2.2, 2.05, 2.0],
        losses={0: "4.1800"},
        noise=0.01,
    )


def test_a_clean_log_has_nothing_above_a_note():
    assert [f.rule for f in findings(healthy().text) if f.level != "note"] == []


def test_findings_come_with_the_worst_and_costliest_first():
    run = Run(num_iters=101, losses={70: "nan"}, stalls={33: 90_000})
    found = findings(run.text)
    assert found[0].rule == "nan-loss"
    assert [f.rule for f in found].index("unexplained-stall") < [f.rule for f in found].index(
        "eval-inside-iteration"
    )


def test_warm_up_is_told_from_the_evaluation_in_the_same_line():
    losses = [4, 3, 3.5, 2.9, 3.4, 2.8, 3.3]
    [finding] = named("warm-up", Run(num_iters=200, val_losses=losses).text)
    assert finding.numbers["warmup_ms"] == pytest.approx(8000, abs=1)
    assert named("warm-up", LATE) == []


LATE = (
    "iter 500: loss 2.0, time 33.00ms, mfu 11.00%\niter 510: loss 2.0, time 33.10ms, mfu 11.00%\n"
)


def test_a_paste_from_the_middle_has_no_warm_up_and_no_findings():
    assert findings(LATE) == []


@pytest.mark.parametrize(
    ("device", "is_wrong"), [("RTX 4090", True), ("A100", False), (None, False)]
)
def test_an_a100s_peak_is_wrong_for_everything_else(device, is_wrong):
    assert bool(named("mfu-wrong-peak", LATE, device)) is is_wrong


def test_more_than_all_of_the_peak_is_impossible():
    text = LATE.replace("11.00%", "104.00%")
    [finding] = named("mfu-wrong-peak", text)
    assert finding.variant == "over"


def test_a_small_model_on_a_large_gpu_waits_for_its_kernels():
    text = "\n".join(HEADER) + "\n" + LATE.replace("11.00%", "3.00%").replace("33.", "13.")
    [finding] = named("small-kernels", text, "A100")
    assert finding.status == "supported"
    assert named("small-kernels", text.replace("10.65M", "774.00M"), "A100") == []
    assert named("small-kernels", text) == [], "nobody knows the device"


def accumulating(steps: int, batch: int) -> str:
    settings = [
        *HEADER,
        *SHAPE,
        f"Overriding: gradient_accumulation_steps = {steps}",
        f"Overriding: batch_size = {batch}",
    ]
    return "\n".join(settings) + "\n" + LATE


def test_many_small_micro_batches_should_be_fewer_larger_ones():
    [finding] = named("accumulation-waste", accumulating(40, 12))
    change = finding.change
    assert change["batch_size"] * change["gradient_accumulation_steps"] == 40 * 12
    assert change["batch_size"] > 12
    assert named("accumulation-waste", accumulating(4, 12)) == []
    assert named("accumulation-waste", accumulating(40, 64)) == [], "large enough as it is"


def test_slow_paths_are_taken_from_what_the_log_says():
    warning = "WARNING: using slow attention. Flash Attention requires PyTorch >= 2.0\n"
    assert named("slow-path", warning + LATE)[0].variant == "attention"
    cuda = "Overriding: device = cuda\nOverriding: dtype = float32\n"
    assert named("slow-path", cuda + LATE)[0].change == {"dtype": "bfloat16"}
    assert named("slow-path", "Overriding: dtype = bfloat16\n" + LATE) == []


LINGUA = (
    "1: INFO    24-10-19 18:47:{s:02d}.910772 - 0:00:50 - step: {n}  acc: 0  loss: 9.1832  "
    "grad: 1.08e+01  flops: 1.97e+14  wps: 1.84e+04  iter:  0.8908  data: {data}  "
    "lr: 6.00e-07  mem: 59%  pow: 392.956 W\n"
)


def test_waiting_for_data_is_seen_where_the_log_times_it():
    slow = "".join(LINGUA.format(n=n, s=n, data=0.4) for n in range(1, 20))
    quick = "".join(LINGUA.format(n=n, s=n, data=0.001) for n in range(1, 20))
    assert named("data-bound", slow)[0].numbers["data_share"] == pytest.approx(0.31, abs=0.01)
    assert named("data-bound", quick) == []
    first = LINGUA.format(n=1, s=1, data=33.1) + "".join(
        LINGUA.format(n=n, s=n, data=0.001) for n in range(2, 20)
    )
    assert named("data-bound", first) == [], "the first batch opens files"


def test_stalls_at_regular_distance_are_periodic_and_others_are_not():
    regular = Run(num_iters=400, eval_interval=1000, stalls=dict.fromkeys(range(37, 400, 40), 700))
    [finding] = named("periodic-stall", regular.text)
    assert finding.numbers["every"] == 40
    assert finding.status == "hypothesis"
    irregular = Run(
        num_iters=400, eval_interval=1000, stalls=dict.fromkeys((20, 31, 150, 390), 700)
    )
    assert named("periodic-stall", irregular.text) == []
    [stall] = named("unexplained-stall", irregular.text)
    assert stall.iters == [20, 31, 150, 390]


def test_a_run_that_gets_slower_and_stays_so_is_noticed():
    slower = Run(num_iters=400, eval_interval=1000, slowdown=0.2, noise=0.01)
    [finding] = named("slowdown", slower.text)
    assert finding.numbers["rise_percent"] == pytest.approx(20, abs=2)
    steady = Run(num_iters=400, eval_interval=1000, noise=0.05)
    assert named("slowdown", steady.text) == []


def test_an_expensive_evaluation_gets_an_interval_that_fits():
    run = Run(num_iters=200, val_losses=[4, 3, 3.5, 2], header=["Overriding: max_iters = 20000"])
    [finding] = named("eval-inside-iteration", run.text)
    wanted = finding.change["eval_interval"]
    share = 4400 / (4400 + wanted * 33)
    assert wanted > 25
    assert share <= 0.055
    assert [f.change for f in named("eval-inside-iteration", healthy().text)] == [{}]


def noisy_evals(sigma: float, every: int = 100) -> str:
    around = random.Random(3)
    header = "Overriding: eval_iters = 20\n"
    losses = [2.0 + around.gauss(0, 0.2) for _ in range(60)]
    text = header
    for n, loss in enumerate(losses):
        if n % 10 == 0:
            val = 2.0 + sigma * (1 if n % 20 else -1)
            text += f"step {n * every}: train loss 2.0000, val loss {val:.4f}\n"
        text += f"iter {n * every}: loss {loss:.4f}, time 33.00ms, mfu 11.00%\n"
    return text


def test_differences_smaller_than_their_noise_are_called_noise():
    [finding] = named("eval-noise", noisy_evals(0.01))
    assert 20 < finding.change["eval_iters"] < 1000
    assert named("eval-noise", noisy_evals(0.3)) == []


def test_an_evaluation_is_not_made_longer_than_the_training_between_two():
    [finding] = named("eval-noise", noisy_evals(0.01, every=1))
    assert finding.change == {}


def test_checkpoints_that_cost_more_than_a_percent_are_named():
    often = Run(num_iters=401, save_ms=6000, val_losses=[4, 3, 3.5, 2, 2.5, 1.9, 2.2, 1.8])
    [finding] = named("checkpoint-interval", often.text)
    assert finding.numbers["save_ms"] == pytest.approx(6000, abs=1)
    assert named("checkpoint-interval", healthy().text) == []


def test_what_a_checkpoint_of_ours_cost_counts_the_wait_for_the_writer_in():
    """Two stalls of 2 ms, and 76 ms of waiting at the end: 40 ms each, not 2."""
    lines = [{"kind": "start", "schema": 1, "config": {}}]
    for step in range(40):
        phases = {"forward_backward": 30.0, "checkpoint": {20: 2.0, 39: 78.0}.get(step, 0.0)}
        wall_ms = sum(phases.values())
        lines.append(
            {"kind": "iter", "iter": step, "loss": 3.0, "wall_ms": wall_ms, "phases": phases}
        )
        if step in (20, 39):
            lines.append({"kind": "checkpoint", "iter": step, "stall_ms": 2.0})
    [finding] = named("checkpoint-interval", "".join(json.dumps(line) + "\n" for line in lines))
    assert finding.numbers["total_ms"] == pytest.approx(80)
    assert finding.numbers["save_ms"] == pytest.approx(40)


def test_hours_without_a_checkpoint_are_at_risk():
    evaluated = "step 100: train loss 3.0000, val loss 3.0000\n"
    first, rest = curve(falling(200), step_ms=60_000).split("iter 100:")
    [finding] = named("checkpoint-interval", first + evaluated + "iter 100:" + rest)
    assert finding.variant == "none"
    assert named("checkpoint-interval", "iter 100:" + rest) == [], "an excerpt proves nothing"


OVERFIT = [(2.5, 2.6), (1.8, 2.0), (1.4, 1.7), (1.1, 1.75), (0.9, 1.9), (0.7, 2.1)]


def test_overfitting_is_dated_to_the_best_step():
    [finding] = named("overfitting", evals(OVERFIT))
    assert finding.status == "established"
    assert finding.numbers["best_iter"] == 500
    assert finding.change["max_iters"] == 500


@pytest.mark.parametrize(
    "pairs",
    [
        [(2.5, 2.6), (1.8, 2.0), (1.4, 1.7), (1.1, 1.6)],  # still getting better
        [(2.5, 2.6), (1.8, 2.0), (1.4, 1.70), (1.39, 1.71)],  # within the noise
        [(1.5, 1.7)],  # a gap, but not a wide one
        [(2.5, 2.6), (1.8, 2.0), (1.9, 2.3)],  # the training loss rises as well
    ],
)
def test_what_is_not_overfitting_is_not_called_so(pairs):
    assert named("overfitting", evals(pairs)) == []


def test_a_best_checkpoint_that_was_overwritten_is_lost():
    [finding] = named("best-checkpoint-lost", evals(OVERFIT, saved=True))
    assert finding.change == {"always_save_checkpoint": False}
    assert finding.numbers["kept_iter"] == 1250
    assert named("best-checkpoint-lost", evals(OVERFIT, saved=False)) == []


def ended(pairs: list[tuple[float, float]]) -> str:
    last = 250 * (len(pairs) - 1)
    settings = f"Overriding: max_iters = {last}\nOverriding: lr_decay_iters = {last}\n"
    return settings + "Overriding: warmup_iters = 10\n" + evals(pairs)


STEADY = [(4 - 0.3 * n, 4.01 - 0.3 * n) for n in range(8)]


def test_a_run_that_ends_while_it_learns_was_stopped_early():
    [finding] = named("stopped-early", ended(STEADY))
    assert finding.change["max_iters"] == finding.change["lr_decay_iters"] > 1750
    assert named("stopped-early", evals(STEADY)) == [], "a log that was cut ends nowhere"
    flat = [(2.0, 2.01)] * 8
    assert named("stopped-early", ended(flat)) == []


@pytest.mark.parametrize(
    ("settings", "change"),
    [
        ({"max_iters": 2000, "lr_decay_iters": 600_000}, {"lr_decay_iters": 2000}),
        ({"max_iters": 5000, "lr_decay_iters": 1000}, {"lr_decay_iters": 5000}),
        ({"max_iters": 1000, "lr_decay_iters": 1000, "warmup_iters": 500}, {"warmup_iters": 20}),
        ({"max_iters": 1000, "lr_decay_iters": 1000, "warmup_iters": 20}, None),
        ({"max_iters": 2000, "lr_decay_iters": 600_000, "decay_lr": False}, None),
    ],
)
def test_a_schedule_that_does_not_fit_the_run_gets_one_that_does(settings, change):
    header = "".join(f"Overriding: {key} = {value}\n" for key, value in settings.items())
    found = named("schedule-mismatch", header + LATE)
    changes = [f.change for f in found if set(f.change) & set(settings)]
    assert changes == ([change] if change else [])


def test_a_nan_is_reported_once_with_what_came_before_it():
    run = Run(num_iters=60, losses={n: "nan" for n in range(40, 60)})
    [finding] = named("nan-loss", run.text)
    assert (finding.numbers["iter"], finding.numbers["last_iter"]) == (40, 39)
    fp16 = "Overriding: dtype = float16\n" + run.text
    assert named("nan-loss", fp16, "RTX 4090")[0].change == {"dtype": "bfloat16"}
    assert named("nan-loss", fp16, "T4")[0].change == {"dtype": "float32"}, "it has no bfloat16"
    assert named("nan-loss", Run(num_iters=60).text) == []


def test_a_loss_that_rises_and_stays_up_has_diverged():
    text = curve(falling(100) + [7.8] * 40, every=10)
    [finding] = named("divergence", text)
    assert finding.numbers["iter"] == pytest.approx(1000, abs=60)
    assert named("divergence", curve(falling(140), every=10)) == []
    assert named("divergence", curve(falling(100) + [7.8] * 3 + falling(40, 2.1), every=10)) == []


def test_one_point_far_above_its_neighbours_is_a_spike():
    losses = falling(200)
    losses[150] = 5.0
    [finding] = named("loss-spike", curve(losses))
    assert finding.iters == [150]
    assert named("loss-spike", curve(falling(200))) == []


@pytest.mark.parametrize(("first", "is_off"), [(10.82, True), (4.17, False), (4.29, False)])
def test_the_first_loss_is_held_against_the_vocabulary(first, is_off):
    text = (
        "\n".join(HEADER)
        + f"\niter 0: loss {first:.4f}, time 100.00ms, mfu -100.00%\n"
        + ("iter 10: loss 3.5, time 33.0ms, mfu 11.00%\n")
    )
    assert bool(named("initial-loss", text)) is is_off
    resumed = text.replace("Initializing a new model from scratch", "Resuming training from out")
    assert named("initial-loss", resumed) == []


def test_a_validation_loss_that_no_longer_moves_is_a_plateau():
    around = random.Random(5)
    flat = [(4 - 0.25 * n, 4.05 - 0.25 * n) for n in range(8)] + [
        (2.0, 2.05 + around.gauss(0, 0.002)) for _ in range(12)
    ]
    assert named("plateau", evals(flat))
    assert named("plateau", evals([(4 - 0.1 * n, 4.05 - 0.1 * n) for n in range(20)])) == []


@pytest.mark.parametrize(("length", "variant"), [(100, "few"), (20_000, None), (900_000, "many")])
def test_the_tokens_of_a_run_are_held_against_its_parameters(length, variant):
    header = [*HEADER[:1], *HEADER[2:], f"Overriding: max_iters = {length}"]
    found = named("data-budget", "\n".join(header) + "\n" + LATE)
    assert [f.variant for f in found] == ([variant] if variant else [])


def test_out_of_memory_halves_the_batch_and_cites_the_first_message_only():
    message = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB "
        "(GPU 0; 11.75 GiB total capacity; 1.20 GiB free)\n"
    )
    header = "Overriding: batch_size = 32\nOverriding: gradient_accumulation_steps = 4\n"
    [finding] = named("out-of-memory", header + LATE + message * 2)
    assert finding.change == {"batch_size": 16, "gradient_accumulation_steps": 8}
    assert finding.lines == [5]
    assert finding.numbers["tried_bytes"] == 2 * 2**30
    advice = "If you run out of memory, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
    assert named("out-of-memory", LATE + advice) == []


NANOCHAT = (
    "step {n:05d}/21400 (19.84%) | loss: 3.012123 | lrm: 1.00 | dt: 13776.73ms | "
    "tok/sec: {rate} | mfu: 13.44 | total time: 971.74m\n"
)


def test_tokens_per_second_that_contradict_the_batch_are_found():
    header = "Total batch size 524,288 => gradient accumulation steps: 64\n"
    wrong = header + "".join(NANOCHAT.format(n=n, rate="594") for n in range(4245, 4250))
    right = header + "".join(NANOCHAT.format(n=n, rate="38,056") for n in range(4245, 4250))
    [finding] = named("contradiction", wrong)
    assert finding.numbers["times"] == pytest.approx(64, rel=0.01)
    assert finding.numbers["real_rate"] == pytest.approx(38_056, rel=0.001)
    assert named("contradiction", right) == []


def test_a_nan_that_the_trainer_hides_is_betrayed_by_the_gradient_norm():
    lines = "".join(
        f"{{'loss': 2.1, 'grad_norm': {norm}, 'learning_rate': 5e-05, 'epoch': {n / 10}}}\n"
        for n, norm in enumerate(["1.2", "1.3", "nan", "nan"])
    )
    [finding] = named("contradiction", lines)
    assert finding.variant == "hidden-nan"
    assert finding.lines == [3]


def test_timestamps_that_contradict_the_printed_times_are_believed():
    text = "".join(
        f"2026-01-01 10:{n // 6:02d}:{n % 6 * 10:02d} iter {n * 10}: loss 2.0, time 400.00ms, "
        "mfu 11.00%\n"
        for n in range(30)
    )
    [finding] = named("contradiction", text)
    assert finding.numbers["stamped_ms"] == pytest.approx(1000)


def test_a_run_of_our_own_is_judged_by_its_phases(tmp_path):
    records = [{"kind": "start", "schema": 1, "config": {"eval_interval": 10, "max_iters": 60}}]
    for n in range(60):
        phases = {"data": 30.0, "forward_backward": 60.0, "optimizer": 10.0}
        if n % 10 == 0:
            phases["eval"] = 400.0
            records.append({"kind": "eval", "iter": n, "val_loss": 3.0, "wall_ms": 400.0})
        wall = sum(phases.values())
        records.append({"kind": "iter", "iter": n, "loss": 3.0, "wall_ms": wall, "phases": phases})
    text = "".join(json.dumps(record) + "\n" for record in records)
    found = {f.rule: f for f in findings(text)}
    assert found["data-bound"].numbers["data_share"] == pytest.approx(0.3)
    assert found["eval-too-expensive"].numbers["eval_share"] == pytest.approx(400 / 1400)


# -- what a reviewer found ----------------------------------------------------------------------


def test_an_evaluation_without_a_number_does_not_condemn_the_run():
    text = "step 0: train loss 4.2, val loss nan\n" + curve(falling(60))
    [finding] = named("nan-loss", text)
    assert (finding.variant, finding.level) == ("eval", "advice")


STEP = (
    "step: {step}  loss:  7.6  memory: 66.91GiB(37.51%)  tps: {rate}  tflops: 314.71  mfu: 13.99%"
)
TITAN = "[titan] 2026-02-24 19:{m:02d}:{s:02d},000 - root - INFO - {rest}\n"


def titan(second: int, rest: str) -> str:
    return TITAN.format(m=second // 60, s=second % 60, rest=rest)


def test_a_checkpoint_between_two_stamps_is_no_stall():
    text, now = "", 0
    for step in range(10, 1010, 10):
        now += 10
        text += titan(now, STEP.format(step=step, rate="10,050"))
        if step % 100 == 0:
            now += 60
            text += titan(now, f"Finished saving the checkpoint in 60.00 seconds at step {step}")
    found = {f.rule: f for f in findings(text)}
    assert "periodic-stall" not in found
    assert "unexplained-stall" not in found


def test_validations_between_stamps_do_not_contradict_the_printed_times():
    text, now = "", 0
    for n in range(1, 201):
        now += 1
        stamp = f"2026-01-01 10:{now // 60:02d}:{now % 60:02d}"
        text += (
            f" [{stamp}] iteration {n:8d}/ 1000 | elapsed time per iteration (ms): 1000.0 | "
            f"learning rate: 9.150E-06 | lm loss: 2.504220E+00 | grad norm: 0.231 |\n"
        )
        if n % 20 == 0:
            now += 15
            text += f" validation loss at iteration {n} | lm loss value: 2.5E+00 |\n"
    assert named("contradiction", text) == []


def test_a_rank_that_lags_a_line_behind_starts_no_new_run():
    text = ""
    for step in range(10, 600, 10):
        text += "[rank0]: " + STEP.format(step=step, rate="10,050") + "\n"
        late = step - 10 if step % 30 == 0 else step
        text += "[rank1]: " + STEP.format(step=late, rate=f"10,0{step % 90 + 10}") + "\n"
    log = detect.read_log(io.BytesIO(text.encode()), "test.log")
    assert len(log.segments) == 1


def test_a_foreign_trainer_is_not_told_nanogpts_settings():
    lines = "".join(
        f"iter {n} | step {n}: loss 2.0, iter time: 100.00 ms (optimizer.step)\n"
        + (f"iter {n}: val loss 2.1, val time: 60000.00 ms\n" if n % 20 == 0 else "")
        for n in range(1, 200)
    )
    [finding] = named("eval-too-expensive", lines)
    assert finding.change == {}


def test_fine_tuning_is_not_judged_by_tokens_per_parameter():
    header = [
        "tokens per iteration will be: 32,768",
        "Initializing from OpenAI GPT-2 weights: gpt2-xl",
        "number of parameters: 1555.97M",
        "Overriding: max_iters = 20",
    ]
    assert named("data-budget", "\n".join(header) + "\n" + LATE) == []


def test_warm_up_over_several_iterations_adds_up():
    lines = [
        "step 0: train loss 4.2000, val loss 4.2000",
        "iter 0: loss 4.2000, time 6033.00ms, mfu -100.00%",
        "iter 1: loss 4.1000, time 533.00ms, mfu -100.00%",
        *(f"iter {n}: loss 4.0000, time 33.00ms, mfu -100.00%" for n in range(2, 10)),
        "step 10: train loss 4.0000, val loss 4.0000",
        "iter 10: loss 4.0000, time 1033.00ms, mfu 1.00%",
        *(f"iter {n}: loss 4.0000, time 33.00ms, mfu 1.00%" for n in range(11, 20)),
    ]
    log = detect.read_log(io.BytesIO("\n".join(lines).encode()), "test.log")
    part = study(log).parts[0]
    phases = part.timing.ledger.phases
    assert phases["warmup"] == pytest.approx(5500)
    assert phases["eval"] == pytest.approx(2000)
    [finding] = named("warm-up", "\n".join(lines))
    assert finding.numbers["warmup_ms"] == pytest.approx(5000)


def test_our_own_evaluations_are_paired_and_not_called_noise():
    records = [{"kind": "start", "schema": 1, "config": {"max_iters": 200}}]
    for n in range(200):
        if n % 10 == 0:
            val = 3.0 - 0.0017 * n + 0.001 * (n % 20)
            records.append(
                {"kind": "eval", "iter": n, "val_loss": val, "val_se": 0.02, "wall_ms": 1.0}
            )
        phases = {"forward_backward": 100.0}
        records.append({"kind": "iter", "iter": n, "loss": 3.0, "wall_ms": 100.0, "phases": phases})
    assert named("eval-noise", "".join(json.dumps(r) + "\n" for r in records)) == []


# -- what sets the pace ---------------------------------------------------------------------------


def ended_on_a_gpu(**ledger) -> str:
    start = {"kind": "start", "schema": 1, "config": {"compile": False}, "device_type": "cuda"}
    iterations = [
        {"kind": "iter", "iter": n, "loss": 3.0, "wall_ms": 20.0, "phases": {"other": 20.0}}
        for n in range(5)
    ]
    totals = {"wall_ms": 100.0, "phases": {"other": 100.0}, **ledger}
    end = {"kind": "end", "reason": "finished", "iter": 5, "ledger": totals}
    return "".join(json.dumps(record) + "\n" for record in (start, *iterations, end))


@pytest.mark.parametrize(
    ("data_ms", "behind", "variant", "level", "change"),
    [
        (1.0, 0.9, "gpu", "note", {}),
        (1.0, 0.1, "python", "advice", {"compile": True}),
        (30.0, 0.1, "data", "advice", {}),
    ],
)
def test_the_devices_clock_says_what_sets_the_pace(data_ms, behind, variant, level, change):
    phases = {"data": data_ms, "forward_backward": 60.0}
    [finding] = named("pace-setter", ended_on_a_gpu(device_phases=phases, device_behind=behind))
    assert (finding.variant, finding.level, finding.change) == (variant, level, change)


@pytest.mark.parametrize(
    "ledger",
    [
        {},
        {"device_phases": {"data": 1.0}},
        {"device_phases": [1], "device_behind": 0.5},
        {"device_phases": {"data": None}, "device_behind": 0.5},
        {"device_phases": {"data": 1.0}, "device_behind": "much"},
    ],
)
def test_without_the_devices_clock_nothing_is_said_about_the_pace(ledger):
    assert named("pace-setter", ended_on_a_gpu(**ledger)) == []
