"""The peak FLOP/s of a CPU: what all its cores do together when nothing disturbs them.

A matrix product on all cores waits for the slowest, so beside one busy program it seems up to a
hundred times slower than it is. Here every core multiplies small matrices of its own, each product
shorter than the time a program gets before another has its turn. What counts is the best moment:
one in which no product was interrupted. On a busy machine more moments are looked at. If too few
agree, or if the cores never seem to have worked at the same time, the peak is unknown.
"""

import threading
import time

import numpy as np
import numpy.typing as npt
import torch

SIZE = 256  # of the square matrices
ROUND_S, MOST_ROUNDS = 0.12, 8
LEAST_AGREEING = 8  # moments
AGREEING = 0.9  # of the best
MANY, QUIET = 200, 0.75  # moments, and how close to the best most of them are
UNDISTURBED = 0.9  # of the time that the threads could have had
TOGETHER = 1.2  # times the rate of one core: less may mean that the cores took turns
FLOPS = 2 * SIZE**3  # of a product

Spans = npt.NDArray[np.float64]  # begin and end of each product, in seconds


def measure_cpu_peak(threads: int, dtype: torch.dtype) -> float | None:
    """FLOP/s of all threads together, or None if the machine is too busy to say."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # of each product
    rates: list[float] = []
    of_one, is_alone = 0.0, False
    try:
        for _ in range(MOST_ROUNDS):
            spans, got_time = _multiply_on_all(threads, dtype)
            rates += combined_rates(spans, FLOPS)
            of_one = max(of_one, *(FLOPS / float(np.diff(span).min()) for span in spans))
            is_alone = got_time > UNDISTURBED and is_steady(rates)
            if is_alone:
                break
    finally:
        torch.set_num_threads(before)
    peak = agreed(rates)
    if peak is None or threads == 1 or is_alone:
        return peak  # on a quiet machine, two threads of one core may gain nothing
    return peak if peak > TOGETHER * of_one else None


def agreed(rates: list[float]) -> float | None:
    """The highest rate that several moments agree on, if there is one.

    >>> agreed([50.0, 100.0, 99.0, 98.0, 97.0, 96.0, 95.0, 94.0, 93.0])
    98.0
    >>> agreed([100.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0, 10.0]) is None
    True
    """
    best = sorted(rates, reverse=True)[:LEAST_AGREEING]
    if len(best) < LEAST_AGREEING:
        return None
    third = best[2]  # the very best may be an error of the clock
    return third if best[-1] >= AGREEING * third else None


def is_steady(rates: list[float]) -> bool:
    """Was most of the time as fast as the best moments? That is also so if one thread has its core
    and another never gets one, so it does not mean that the machine is quiet."""
    peak = agreed(rates)
    return peak is not None and len(rates) >= MANY and float(np.median(rates)) > QUIET * peak


def combined_rates(spans: list[Spans], flops: float) -> list[float]:
    """The rate of all threads together, at the middle of each product of the first one. A product
    that was interrupted has a low rate for as long as it lasted."""
    at = spans[0].mean(axis=1)
    total = np.zeros(len(at))
    for begin, end in (span.T for span in spans):
        last = np.searchsorted(begin, at, side="right") - 1
        is_at_work = (last >= 0) & (at <= end[last])
        total += np.where(is_at_work, flops / (end[last] - begin[last]), 0.0)
    return [float(rate) for rate in total]


def _multiply_on_all(threads: int, dtype: torch.dtype) -> tuple[list[Spans], float]:
    """Let every thread multiply for a while. Returns when each product began and ended, and the
    share of the time that the threads have got from the system."""
    spans: list[list[tuple[float, float]]] = [[] for _ in range(threads)]
    began, cpu_began = time.perf_counter(), time.process_time()
    until = began + ROUND_S

    def multiply(done: list[tuple[float, float]]) -> None:
        # No random numbers: drawing some would change those that training gets.
        a = torch.ones(SIZE, SIZE, dtype=dtype)
        torch.mm(a, a)
        while True:
            begin = time.perf_counter()
            torch.mm(a, a)
            end = time.perf_counter()
            done.append((begin, end))
            if end > until:
                return

    workers = [threading.Thread(target=multiply, args=(done,)) for done in spans[1:]]
    for worker in workers:
        worker.start()
    multiply(spans[0])
    for worker in workers:
        worker.join()
    share = (time.process_time() - cpu_began) / (threads * (time.perf_counter() - began))
    return [np.array(done) for done in spans], share
