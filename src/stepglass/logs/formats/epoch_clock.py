"""The time that bars of training show, if their clock starts anew with each epoch.

    Epoch 2:  33%|███▎      | 307/938 [00:41<01:25,  7.42it/s, loss=0.198, v_num=51]

A bar shows whole seconds, which is too coarse for a few steps. Lightning's rate is the mean since
the epoch began, so it tells the same time with more digits. Other bars smooth their rate over the
last few steps.
"""

from stepglass.logs.bars import Bar

LEAST_SPAN_S = 20.0
MOST_ERROR = 0.05  # of the time between two bars, if steps are to be timed by it
HALF_DIGIT = 0.005  # rates are printed with two decimals


class EpochClock:
    """The time since the start, and of the steps since an earlier bar."""

    def __init__(self) -> None:
        self._epoch: int | None = None
        self._before: float | None = 0.0  # all epochs before this one, if known
        self._latest = 0.0
        self._told: float | None = None
        self._since = (0, 0.0, 0.0)  # step of this epoch and bounds of its time: counted from here

    def read(self, epoch: int, bar: Bar) -> dict[str, float | int | None]:
        """The times of a bar, as a record has them."""
        if self._epoch is None and epoch != 0:
            self._before = None  # this log begins later
        if epoch != self._epoch or bar.n <= self._since[0]:
            self._since = (0, 0.0, 0.0)
        if epoch != self._epoch and self._before is not None:
            self._before += self._latest
        self._epoch, self._latest = epoch, bar.elapsed_s
        time_ms, window = self._step_time(bar)
        return {"elapsed_s": self._elapsed_s(), "time_ms": time_ms, "window": window}

    def _elapsed_s(self) -> float | None:
        """The time since the start, if much has passed since it was told before."""
        if self._before is None:
            return None
        now = self._before + self._latest
        if self._told is not None and 0 <= now - self._told < LEAST_SPAN_S:
            return None
        self._told = now
        return now

    def _step_time(self, bar: Bar) -> tuple[float | None, int | None]:
        """The mean time of the steps since an earlier bar, and their number."""
        n, low_before, high_before = self._since
        low, high, mean_s = _bounds(bar)
        if not n and mean_s:
            self._since = (bar.n, low, high)
            return 1000 * mean_s, bar.n
        span = (low + high - low_before - high_before) / 2
        error = (high - low + high_before - low_before) / 2
        if error <= MOST_ERROR * span:
            self._since = (bar.n, low, high)
            return 1000 * span / (bar.n - n), bar.n - n
        if _is_lightning(bar) or not bar.rate_per_s:
            return None, None
        self._since = (bar.n, low, high)
        return 1000 / bar.rate_per_s, None


def _is_lightning(bar: Bar) -> bool:
    return "v_num=" in bar.postfix or "v_num:" in bar.postfix


def _bounds(bar: Bar) -> tuple[float, float, float | None]:
    """The least and the most time that this epoch may have taken so far, and the mean time of its
    steps, if it is shown; all in seconds.

    >>> bar = Bar("Epoch 0", 4, 18, 17.0, 1 / 4.47, ", loss=10.1, v_num=5")
    >>> [round(bound, 2) for bound in _bounds(bar)]
    [17.86, 17.9, 4.47]
    """
    low, high, rate = bar.elapsed_s, bar.elapsed_s + 1, bar.rate_per_s
    if not rate or not _is_lightning(bar):
        return low, high, None
    if abs(rate - round(rate, 2)) < 1e-9:  # printed as it/s, otherwise as s/it
        slow, fast = 1 / max(rate - HALF_DIGIT, 1e-9), 1 / (rate + HALF_DIGIT)
    else:
        slow, fast = 1 / rate + HALF_DIGIT, 1 / rate - HALF_DIGIT
    least, most = max(low, bar.n * fast), min(high, bar.n * slow)
    if least > most:  # the epoch was resumed, and the mean is of the steps since
        return low, high, None
    return least, most, 1 / rate
