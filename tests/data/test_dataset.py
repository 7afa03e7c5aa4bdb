"""Batches and evaluation windows."""

import numpy as np
import pytest

from helpers import TEXT, prepare_tiny
from stepglass.data import dataset
from stepglass.data.dataset import uniform

PINNED = [985, 347, 78, 213]  # change these and no old run can be resumed exactly


def test_a_batch_depends_on_seed_and_step_alone():
    prepare_tiny()
    first, second = dataset.load_dataset("tiny", 8), dataset.load_dataset("tiny", 8)
    for _ in range(5):
        first.batch(1, 3, 4, 8)  # what was read before does not matter
    x, y = first.batch(1, 7, 4, 8)
    again, _ = second.batch(1, 7, 4, 8)
    assert (x == again).all()
    assert (x != second.batch(1, 8, 4, 8)[0]).any()
    assert (x != second.batch(2, 7, 4, 8)[0]).any()
    assert (x[:, 1:] == y[:, :-1]).all()


def test_a_larger_batch_begins_with_the_rows_of_a_smaller_one():
    prepare_tiny()
    data = dataset.load_dataset("tiny", 8)
    assert (data.batch(1, 5, 6, 8)[0][:2] == data.batch(1, 5, 2, 8)[0]).all()


def test_random_numbers_are_the_same_on_every_machine_for_ever():
    assert uniform(1337, 0, 0, 4, 1000).tolist() == PINNED
    assert uniform(1337, 0, 1, 4, 1000).tolist() != PINNED


def test_random_numbers_are_spread_evenly():
    draws = np.concatenate([uniform(1, 0, step, 1000, 10) for step in range(50)])
    assert np.bincount(draws, minlength=10) == pytest.approx(5000, rel=0.06)


def test_windows_of_an_evaluation_are_fixed_and_do_not_overlap():
    prepare_tiny(TEXT * 3)
    data = dataset.load_dataset("tiny", 8)
    windows = data.eval_windows(data.val, 1, 20, 8)
    assert len(windows) == len(set(windows)) == 20
    assert (windows % 8 == 0).all()
    assert (windows == data.eval_windows(data.val, 1, 20, 8)).all()
    assert (windows != data.eval_windows(data.val, 2, 20, 8)).any()


def test_a_large_evaluation_is_the_whole_split():
    prepare_tiny()
    data = dataset.load_dataset("tiny", 8)
    windows = data.eval_windows(data.val, 1, 10**9, 8)
    assert windows.tolist() == list(range(0, (len(data.val) - 1) // 8 * 8, 8))
