"""The peak of a CPU, also beside other programs."""

import numpy as np
import pytest
import torch

from stepglass.hardware import cpu_peak
from stepglass.hardware.cpu_peak import combined_rates, is_steady, measure_cpu_peak


def products(*lengths: float, start: float = 0.0) -> np.ndarray:
    """Products one after another, each of this many seconds."""
    ends = start + np.cumsum(lengths)
    return np.stack([ends - lengths, ends], axis=1)


def test_two_cores_that_work_at_the_same_time_are_added_up():
    rates = combined_rates([products(1, 1, 1), products(1, 1, 1)], flops=10)
    assert rates == pytest.approx([20, 20, 20])


def test_a_core_that_had_to_wait_counts_as_slow_for_as_long_as_it_waited():
    rates = combined_rates([products(1, 1, 1, 1), products(1, 2.5, 0.5)], flops=10)
    assert rates == pytest.approx([20, 14, 14, 30])


def test_a_core_that_has_not_begun_counts_for_nothing():
    rates = combined_rates([products(1, 1), products(1, start=1.0)], flops=10)
    assert rates == pytest.approx([10, 20])


class Machine:
    """Two cores that do 100 FLOP/s each, and a share of the time is another program's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, busy: float, seed: int = 0) -> None:
        self.rounds = 0
        self._busy, self._random = busy, np.random.default_rng(seed)
        monkeypatch.setattr(cpu_peak, "FLOPS", 1.0)
        monkeypatch.setattr(cpu_peak, "_multiply_on_all", self.multiply)

    def multiply(self, threads: int, dtype: torch.dtype) -> tuple[list[np.ndarray], float]:
        self.rounds += 1
        waits = self._random.random((threads, 120)) < self._busy
        return [products(*np.where(wait, 0.05, 0.01)) for wait in waits], 1 - self._busy


@pytest.mark.parametrize("busy", [0.0, 0.3, 0.6])
def test_the_peak_beside_busy_programs_is_that_of_a_quiet_machine(busy, monkeypatch):
    machine = Machine(monkeypatch, busy)
    assert measure_cpu_peak(2, torch.float32) == pytest.approx(200, rel=0.05)
    assert (machine.rounds == 2) == (busy == 0)  # a quiet machine is measured quickly


def test_a_machine_that_is_never_quiet_has_no_peak(monkeypatch):
    """No two moments of it are alike."""
    waits = np.random.default_rng(0)

    def multiply(threads, dtype):
        return [products(*0.01 * 100 ** waits.random(3)) for _ in range(threads)], 0.3

    monkeypatch.setattr(cpu_peak, "_multiply_on_all", multiply)
    assert measure_cpu_peak(2, torch.float32) is None


def test_cores_that_never_worked_together_have_no_peak(monkeypatch):
    monkeypatch.setattr(cpu_peak, "FLOPS", 1.0)
    one, other = products(*[0.01] * 300), products(*[0.01] * 300, start=100.0)
    monkeypatch.setattr(cpu_peak, "_multiply_on_all", lambda *_: ([one, other], 0.5))
    assert measure_cpu_peak(2, torch.float32) is None
    assert measure_cpu_peak(1, torch.float32) == pytest.approx(100)


def test_two_threads_of_one_core_that_gain_nothing_have_a_peak_on_a_quiet_machine(monkeypatch):
    monkeypatch.setattr(cpu_peak, "FLOPS", 1.0)
    half_as_fast = products(0.011, *[0.02] * 300)
    monkeypatch.setattr(cpu_peak, "_multiply_on_all", lambda *_: ([half_as_fast] * 2, 1.0))
    assert measure_cpu_peak(2, torch.float32) == pytest.approx(100)


def test_a_few_moments_prove_no_steadiness():
    assert not is_steady([100.0] * 20)
    assert is_steady([100.0] * 300)
    assert not is_steady([100.0] * 20 + [10.0] * 300)


def test_a_real_cpu_is_measured_and_nothing_that_training_needs_changes():
    """It once drew random numbers from the generator that dropout uses."""
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    found = measure_cpu_peak(2, torch.float32)
    assert found is None or found > 1e8
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
