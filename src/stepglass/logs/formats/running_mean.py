"""From a mean that reaches far back to the mean since the line before.

    Epoch: [1][6912/10010]  Time 0.430 (2.779)  Data 0.000 (2.400)

A single step says little where one in ten waits for data: here the mean of the epoch so far, in
brackets, is six times the time of the step that was printed. Two such means, times their numbers
of steps, tell what the steps between them took.
"""

MOST_ERROR = 0.1  # of the time between two lines, by which rounding may falsify it

Times = dict[str, float]  # seconds by name, such as `time` and `data`


class MeanOfEpoch:
    """Reads means since the start of an epoch (or of the process, which is one long epoch)."""

    def __init__(self) -> None:
        self._epoch: object = None
        self._count = 0
        self._sums: Times = {}

    def since_line_before(
        self, epoch: object, count: int, means: Times, digits: int
    ) -> tuple[Times, int] | None:
        """The means of the steps since the line before, and their number. None if the printed
        digits are too few to tell. `count` is the number of steps that `means` are about."""
        before = self._sums if epoch == self._epoch and count > self._count else {}
        skipped = self._count if before else 0
        self._epoch, self._count = epoch, count
        self._sums = {name: mean * count for name, mean in means.items()}
        steps = count - skipped
        if steps <= 0:
            return None
        error = 0.5 * 10.0**-digits * (count + skipped)
        spans = {name: total - before.get(name, 0.0) for name, total in self._sums.items()}
        if spans["time"] <= 0 or error > MOST_ERROR * spans["time"]:
            return None
        return {name: max(0.0, span) / steps for name, span in spans.items()}, steps


class MeanOfLast:
    """Reads means of the last `window` steps of an epoch, printed more often than that."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._epoch: object = None
        self._last = -1  # the newest step
        self._pieces: list[tuple[int, Times]] = []  # first step and sums, one after another

    def since_line_before(self, epoch: object, step: int, means: Times) -> tuple[Times, int] | None:
        """The means of the steps since the line before, and their number. None if they overlap
        with steps whose own times are not known. Steps are counted from 0 in each epoch."""
        if epoch != self._epoch or step <= self._last:
            self._epoch, self._last, self._pieces = epoch, -1, []
        first, before = max(0, step - self._window + 1), self._last
        sums = {name: mean * (step - first + 1) for name, mean in means.items()}
        self._last = step
        if before < first:  # nothing overlaps
            self._pieces = [(first, sums)]
            return means, step - first + 1
        known = [piece for piece in self._pieces if piece[0] >= first]
        self._pieces = known
        if not known or known[0][0] != first:
            return None
        for _, times in known:
            sums = {name: sums[name] - times.get(name, 0.0) for name in sums}
        if sums["time"] <= 0:
            self._pieces = []
            return None
        self._pieces.append((before + 1, sums))
        return {name: max(0.0, ms) / (step - before) for name, ms in sums.items()}, step - before


def digits_of(text: str) -> int:
    """The number of decimals of a printed number.

    >>> digits_of("2.779"), digits_of("12"), digits_of("1.5e-03")
    (3, 0, 4)
    """
    mantissa, _, exponent = text.lower().partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)
