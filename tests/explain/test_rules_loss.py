"""What the rules about the loss say, and above all what they leave unsaid."""

import io
import json
import math
import random

import pytest

from stepglass.explain.finding import Finding
from stepglass.explain.render.languages import Words
from stepglass.explain.render.output import text as text_of
from stepglass.explain.render.output import title as title_of
from stepglass.explain.rules import all_rules
from stepglass.explain.study import study
from stepglass.logs import detect

ENGLISH = Words("en")


def findings(text: str) -> list[Finding]:
    return all_rules.findings(study(detect.read_log(io.BytesIO(text.encode()), "test.log")))


def named(rule: str, text: str) -> list[Finding]:
    return [finding for finding in findings(text) if finding.rule == rule]


def said(finding: Finding) -> str:
    return title_of(finding, ENGLISH) + " " + text_of(finding, ENGLISH)


def iters(losses: list[float], every: int = 10, first: int = 0) -> str:
    return "".join(
        f"iter {first + n * every}: loss {loss:.4f}, time 50.00ms, mfu 10.00%\n"
        for n, loss in enumerate(losses)
    )


def settings(**values: object) -> str:
    return "".join(f"Overriding: {name} = {value}\n" for name, value in values.items())


def falling(count: int, start: float = 4.0, to: float = 2.0, noise: float = 0.02) -> list[float]:
    around = random.Random(2)
    return [
        to + (start - to) * math.exp(-4 * n / count) + around.gauss(0, noise) for n in range(count)
    ]


def run_with_evals(pairs: list[tuple[float, float]], noise: float = 0.02) -> str:
    """Evaluations with these train and val losses, and ten iterations after each."""
    around, text = random.Random(4), ""
    for n, (train, val) in enumerate(pairs):
        text += f"step {100 * n}: train loss {train:.4f}, val loss {val:.4f}\n"
        text += iters([train + around.gauss(0, noise) for _ in range(10)], first=100 * n)
    return text


# -- overfitting --------------------------------------------------------------------------------


def train_losses(count: int) -> list[float]:
    return [2.5 - 1.5 * n / count for n in range(count)]


def test_a_validation_loss_that_is_flat_and_noisy_is_no_overfitting():
    for seed in range(20):
        around = random.Random(seed)
        vals = [2.6, 2.2, *(2.0 + around.gauss(0, 0.06) for _ in range(18))]
        found = named("overfitting", run_with_evals(list(zip(train_losses(20), vals, strict=True))))
        assert [f for f in found if f.status == "established"] == []


def test_one_bad_last_evaluation_is_one_evaluation():
    vals = [2.6, 2.2, 2.1, 2.05, 2.0, 1.98, 1.97, 2.3]
    [finding] = named("overfitting", run_with_evals(list(zip(train_losses(8), vals, strict=True))))
    assert (finding.status, finding.variant, finding.level) == ("hypothesis", "one", "advice")
    assert "max_iters" not in finding.change
    assert "chance" in said(finding)


def test_a_rise_that_evaluations_agree_on_is_established_and_dated():
    around = random.Random(1)
    vals = [3.0, 2.4, 2.1, 2.0, *(2.0 + 0.05 * n + around.gauss(0, 0.01) for n in range(1, 9))]
    text = settings(dropout=0.3) + run_with_evals(list(zip(train_losses(12), vals, strict=True)))
    [finding] = named("overfitting", text)
    assert (finding.status, finding.variant) == ("established", "rising")
    assert finding.numbers["best_iter"] == 300
    assert finding.change == {"max_iters": 300, "lr_decay_iters": 300}, "it has dropout already"


def test_without_a_decay_only_the_length_is_changed():
    vals = [3.0, 2.4, 2.1, 2.0, 2.1, 2.2, 2.3, 2.4]
    text = settings(decay_lr=False, dropout=0.2)
    text += run_with_evals(list(zip(train_losses(8), vals, strict=True)))
    assert named("overfitting", text)[0].change == {"max_iters": 300}


def test_a_validation_loss_that_rises_with_the_training_loss_is_no_overfitting():
    vals = [3.0, 2.4, 2.1, 2.0, 2.1, 2.2, 2.3, 2.4]
    assert named("overfitting", run_with_evals([(val - 0.1, val) for val in vals])) == []


def test_few_evaluations_are_spoken_of_only_where_they_are_few():
    few = run_with_evals([(0.6, 1.7)])
    many = run_with_evals([(2.6, 2.6), (1.2, 1.7)] + [(0.6, 1.71)] * 8)
    assert "With so few evaluations" in said(named("overfitting", few)[0])
    [finding] = named("overfitting", many)
    assert finding.variant == "gap"
    assert "few evaluations" not in said(finding)


def hf_evals(losses: list[float], metric: str, values: list[float]) -> str:
    """A Trainer's state: the training loss falls, evaluations have a loss and another figure."""
    history: list[dict[str, float]] = []
    for n, (loss, value) in enumerate(zip(losses, values, strict=True)):
        for i in range(5):
            step = 100 * n + 20 * (i + 1)
            train = 2.0 - 0.002 * step + 0.01 * (i % 2)
            history.append({"epoch": step / 500, "loss": train, "step": step})
        where = {"epoch": (n + 1) / 5, "step": 100 * (n + 1)}
        history.append({"eval_loss": loss, f"eval_{metric}": value, **where})
    state = {"global_step": 100 * len(losses), "log_history": history, "max_steps": 10_000}
    return json.dumps(state, indent=1)


@pytest.mark.parametrize(
    ("metric", "values", "is_worse"),
    [
        ("wer", [0.9, 0.8, 0.7, 0.65, 0.6, 0.58, 0.55], False),
        ("accuracy", [0.5, 0.6, 0.7, 0.72, 0.74, 0.75, 0.76], False),
        ("accuracy", [0.5, 0.6, 0.7, 0.68, 0.66, 0.64, 0.62], True),
        ("steps", [1, 2, 3, 4, 5, 6, 7], True),
    ],
)
def test_a_figure_that_improves_bars_the_word_worse(metric, values, is_worse):
    text = hf_evals([1.5, 1.2, 1.0, 1.1, 1.25, 1.4, 1.6], metric, values)
    [finding] = named("overfitting", text)
    assert ("made the model worse" in said(finding)) is is_worse
    assert (finding.level == "problem") is is_worse


# -- broken training ----------------------------------------------------------------------------


def test_nan_stands_in_the_title_and_an_explosion_before_it_names_the_rate():
    nan = iters([math.nan] * 5, first=400)
    calm, exploding = falling(40), [*falling(36), 3.5, 5.0, 9.0, 30.0]
    [plain] = named("nan-loss", iters(calm) + nan)
    [exploded] = named("nan-loss", settings(dtype="float16") + iters(exploding) + nan)
    assert (plain.variant, exploded.variant) == ("plain", "exploded")
    assert "NaN" in title_of(plain, ENGLISH)
    assert "learning rate is too high" in text_of(exploded, ENGLISH)
    assert "float16" not in text_of(exploded, ENGLISH)
    assert "vocabulary" not in text_of(exploded, ENGLISH)


def test_a_loss_that_is_nan_from_the_first_step_is_not_blamed_on_the_rate():
    text = settings(learning_rate=0.001) + iters([math.nan] * 5, every=1)
    [finding] = named("nan-loss", text)
    assert finding.variant == "first"
    assert finding.change == {}


@pytest.mark.parametrize("is_saved_later", [False, True])
def test_a_checkpoint_is_overwritten_only_if_the_log_shows_a_later_one(is_saved_later):
    saved = "step 100: train loss 3.0000, val loss 3.0000\nsaving checkpoint to out\n"
    later = "step 400: train loss nan, val loss nan\nsaving checkpoint to out\n"
    text = iters(falling(10)) + saved + iters(falling(20), first=100)
    text += iters([math.nan] * 10, first=300) + (later if is_saved_later else "")
    [finding] = named("nan-loss", text + iters([math.nan], first=400))
    assert finding.numbers["save_iter"] == 100
    assert ("overwritten" in said(finding)) is is_saved_later


MEGATRON = (
    " iteration {n:8d}/   9000 | elapsed time per iteration (ms): 812.4 | learning rate: 2.5E-04 |"
    "{loss} loss scale: {scale} | grad norm: {norm} | number of skipped iterations: {skipped:3d} |"
    " number of nan iterations:   0 |\n"
)


def megatron(n: int, loss: float | None, norm: float = 0.8, skipped: int = 0) -> str:
    shown = "" if loss is None else f" lm loss: {loss:.6E} |"
    return MEGATRON.format(n=n, loss=shown, norm=norm, skipped=skipped, scale=1.0)


def test_a_loss_that_vanishes_from_the_lines_is_nan():
    before = "".join(megatron(n, 3.0 - 0.01 * n) for n in range(1, 20))
    after = "".join(megatron(n, None, norm=math.nan) for n in range(20, 30))
    [finding] = named("nan-loss", before + after)
    assert (finding.variant, finding.status) == ("vanished", "established")
    assert finding.numbers["iter"] == 20
    assert "NaN" in title_of(finding, ENGLISH)
    assert named("nan-loss", before) == []
    [cut] = named("nan-loss", before + megatron(20, None))
    assert cut.status == "hypothesis", "the last line of an excerpt is often cut off"


def test_gradient_norms_that_stay_nan_are_broken_training_even_without_a_loss():
    without = "".join(megatron(n, None, norm=math.nan) for n in range(1, 6))
    with_loss = "".join(megatron(n, 2.5 + 0.01 * (n % 3), norm=math.nan) for n in range(1, 6))
    assert [f.variant for f in named("broken-gradient", without)] == ["nan-no-loss"]
    [finding] = named("broken-gradient", with_loss)
    assert finding.variant == "nan"
    assert "NaN" in title_of(finding, ENGLISH)
    once = megatron(1, 2.5, norm=math.inf) + "".join(megatron(n, 2.5 - n / 50) for n in range(2, 9))
    assert named("broken-gradient", once) == []


def test_a_gradient_norm_of_zero_learns_nothing():
    def trainer(loss: float) -> str:
        return "".join(
            f"{{'loss': {loss + n / 1000}, 'grad_norm': 0.0, 'learning_rate': 5e-05, "
            f"'epoch': {n / 10}}}\n"
            for n in range(8)
        )

    assert [f.variant for f in named("broken-gradient", trainer(2.5))] == ["zero"]
    assert named("broken-gradient", trainer(0.001)) == [], "there is nothing left to learn"


def test_skipped_updates_count_after_the_loss_scale_was_found():
    start = "".join(megatron(n, 9.0 - n / 50, skipped=int(n < 9)) for n in range(1, 300))
    assert named("skipped-updates", start) == []
    often = "".join(megatron(n, 9.0 - n / 50, skipped=int(n % 20 == 0)) for n in range(1, 400))
    [finding] = named("skipped-updates", often)
    assert (finding.variant, finding.numbers["count"]) == ("often", 14)
    stuck = start + "".join(megatron(n, 4.0, skipped=1) for n in range(300, 320))
    assert named("skipped-updates", stuck)[0].variant == "stuck"


def test_a_loss_that_repeats_to_the_last_digit_is_not_learning():
    [finding] = named("constant-loss", iters([10.8259] * 20))
    assert (finding.variant, finding.numbers["count"]) == ("plain", 20)
    assert named("constant-loss", iters([0.01] * 20)) == [], "two digits may well repeat"
    assert named("constant-loss", iters([*falling(20), 2.0123, 2.0123])) == []
    zeros = "".join(
        f"{{'loss': 0.0, 'grad_norm': 0.5, 'learning_rate': 5e-05, 'epoch': {n / 10}}}\n"
        for n in range(12)
    )
    assert [f.variant for f in named("constant-loss", zeros)] == ["zero"]


def test_an_infinite_gradient_now_and_then_hides_no_nan():
    def trainer(norms: list[str]) -> str:
        return "".join(
            f"{{'loss': {2 + n / 100}, 'grad_norm': {norm}, 'learning_rate': 5e-05, "
            f"'epoch': {n / 10}}}\n"
            for n, norm in enumerate(norms)
        )

    assert named("contradiction", trainer(["inf"] + ["1.2"] * 30 + ["nan"] + ["1.1"] * 30)) == []
    assert named("contradiction", trainer(["1.2"] * 30 + ["nan"] * 3))[0].variant == "hidden-nan"


# -- divergence and spikes ----------------------------------------------------------------------


def test_a_loss_that_explodes_is_seen_in_a_dozen_lines():
    losses = [10.9, 9.8, 9.1, 7.9, 6.7, 6.1, 5.8, 5.6, 5.4, 5.1, 311.2, 240.7]
    [finding] = named("divergence", iters(losses))
    assert (finding.status, finding.variant) == ("established", "exploded")
    assert (finding.numbers["iter"], finding.numbers["best_loss"]) == (100, 5.1)
    assert named("divergence", iters([*losses[:10], 311.2])) == [], "one line may be a spike"


def test_a_loss_that_rises_and_comes_back_has_recovered():
    losses = [*falling(150), *[4.5] * 15, *falling(100, start=4.0, to=1.9)]
    [finding] = named("divergence", iters(losses))
    assert (finding.variant, finding.level) == ("recovered", "note")
    assert finding.numbers["high_loss"] == 4.5
    assert finding.change == {}


def test_slow_noise_is_no_divergence():
    for seed in range(20):
        around, value, losses = random.Random(seed), 0.0, []
        for loss in falling(200, noise=0.0):
            value = 0.9 * value + 0.44 * around.gauss(0, 0.15)
            losses.append(loss + value)
        found = named("divergence", iters(losses))
        assert [f for f in found if f.status == "established"] == []


@pytest.mark.parametrize(
    ("rate", "parameters", "wanted"),
    [(10.0, "10.65", 3e-3), (10.0, "124.00", 1e-3), (6e-4, "124.00", 3e-4), (0.1, None, 1e-3)],
)
def test_a_calmer_learning_rate_is_one_that_makes_sense(rate, parameters, wanted):
    header = settings(learning_rate=rate, min_lr=rate / 10, grad_clip=0.0)
    if parameters:
        header += f"number of parameters: {parameters}M\n"
    [finding] = named("divergence", header + iters([*falling(100), *[7.8] * 40]))
    assert finding.change["learning_rate"] == pytest.approx(wanted)
    assert finding.change["grad_clip"] == 1.0
    assert finding.change.get("min_lr", 0.0) < wanted


def spiky(spikes: list[int], count: int = 200, to: float = 2.0) -> list[float]:
    losses = falling(count, to=to)
    for spike in spikes:
        losses[spike] += 2.0
    return losses


def test_a_spike_at_the_same_iteration_of_every_run_is_in_the_data():
    again = iters(spiky([150])) + iters(spiky([150], to=2.1))
    assert [f.variant for f in named("loss-spike", again)] == ["data"]
    elsewhere = iters(spiky([150])) + iters(spiky([90], to=2.1))
    assert {f.variant for f in named("loss-spike", elsewhere)} == {"plain"}
    assert [f.variant for f in named("loss-spike", iters(spiky([150])))] == ["plain"]


def test_spikes_that_are_many_and_last_are_blamed_on_the_rate():
    lasting = [60, 61, 62, 110, 111, 112, 160, 161, 162]
    [finding] = named("loss-spike", settings(learning_rate=1e-3) + iters(spiky(lasting, 250)))
    assert (finding.variant, finding.change) == ("rate", {"learning_rate": 5e-4})


# -- plateaus and notes -------------------------------------------------------------------------


def plateau_from(start: int, count: int = 24) -> str:
    around = random.Random(6)
    vals = [2.0 + 0.1 * max(start - n, 0) + around.gauss(0, 0.002) for n in range(count)]
    last = 100 * (count - 1)
    header = settings(
        learning_rate=1e-3, min_lr=1e-4, warmup_iters=10, lr_decay_iters=last, max_iters=last
    )
    return header + run_with_evals([(val - 0.02, val) for val in vals])


def test_a_plateau_is_judged_by_where_it_began():
    [early] = named("plateau", plateau_from(4))
    assert early.variant == "through", "the rate was high then, and lowering it did not help"
    assert early.numbers["first_iter"] == pytest.approx(400, abs=200)
    assert early.numbers["count"] > 12


def test_dropout_explains_why_an_evaluation_lies_below_the_batches():
    pairs = [(1.0, 1.5)] * 4
    text = run_with_evals(pairs)
    above = text.replace("train loss 1.0000", "train loss 0.8000")
    assert named("eval-below-batch", text) == []
    [unknown] = named("eval-below-batch", above)
    [known] = named("eval-below-batch", settings(dropout=0.2) + above)
    assert (unknown.status, known.status) == ("hypothesis", "supported")
    assert named("eval-below-batch", settings(dropout=0.0) + above) == []
    steep = iters([4.2, 3.2, 2.8]) + "step 25: train loss 2.6000, val loss 2.6000\n"
    assert named("eval-below-batch", steep + iters([2.6, 2.5], first=30)) == []


def test_shakespeares_usual_loss_is_told_at_the_end_of_such_a_run():
    header = settings(dataset="shakespeare_char", max_iters=400)
    pairs = [(4.2, 4.2), (2.4, 2.5), (1.8, 2.0), (1.5, 1.7), (1.4, 1.6)]
    [finding] = named("expected-loss", header + run_with_evals(pairs))
    assert finding.variant == "worse"
    assert "1.47" in said(finding)
    assert named("expected-loss", settings(max_iters=400) + run_with_evals(pairs)) == []
    unfinished = header.replace("400", "5000") + run_with_evals(pairs)
    assert named("expected-loss", unfinished) == []


def test_clipping_is_explained_where_nearly_every_gradient_is_clipped():
    def run_log(norm: float) -> str:
        start = {"kind": "start", "schema": 1, "config": {"grad_clip": 1.0}}
        rows = [
            {
                "kind": "iter",
                "iter": n,
                "loss": 3.0 - n / 100,
                "grad_norm": norm + 0.1 * (n % 3),
                "wall_ms": 10.0,
                "phases": {"forward_backward": 10.0},
            }
            for n in range(60)
        ]
        return "".join(json.dumps(record) + "\n" for record in [start, *rows])

    [finding] = named("gradient-clipping", run_log(3.0))
    assert finding.numbers["clipped_share"] == 1.0
    assert named("gradient-clipping", run_log(0.5)) == []


def test_the_longer_run_that_is_advised_keeps_its_decay():
    pairs = [(4 - 0.3 * n, 4.01 - 0.3 * n) for n in range(8)]
    header = settings(max_iters=700, lr_decay_iters=700, warmup_iters=5)
    [finding] = named("stopped-early", header + run_with_evals(pairs))
    assert finding.change == {"max_iters": 1400, "lr_decay_iters": 1400}
