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
