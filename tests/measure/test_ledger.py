"""The ledger sums to the wall clock."""

import pytest

from stepglass.measure import ledger
from stepglass.measure.clock import PHASES, Lap
from stepglass.measure.records import Background


def test_record_has_every_phase_and_sums_to_the_wall_clock():
    record = ledger.ledger_totals(
        Lap(6_000_000, {"data": 1_000_000, "eval": 4_500_000, "other": 500_000})
    )
    assert list(record.phases) == list(PHASES)
    assert sum(record.phases.values()) == pytest.approx(record.wall_ms, abs=1e-9)


def test_table_shows_shares_and_the_wall_clock():
    total = Lap(4_000_000_000, {"forward_backward": 3_000_000_000, "other": 1_000_000_000})
    none = Background(checkpoint_writer_ms=0.0, saves=0, failed_saves=0)
    assert ledger.ledger_lines(total, none) == [
        "where the time went:",
        "  forward_backward        3.00s   75.0%   the model, forwards and backwards",
        "  other                   1.00s   25.0%   claimed by no phase",
        "  -------------------------------------",
        "  wall clock              4.00s  100.0%",
    ]


def test_what_the_writer_did_is_beside_the_sum():
    some = Background(checkpoint_writer_ms=3000.0, saves=2, failed_saves=1)
    last = ledger.ledger_lines(Lap(1, {"other": 1}), some)[-1]
    assert last == (
        "  beside it, in the background: 3.0s of writing checkpoints (2 saved, 1 failed)"
    )


@pytest.mark.parametrize(
    ("device_phases", "behind", "said"),
    [
        (
            {"forward_backward": 3800.0, "optimizer": 200.0},
            1.0,
            [
                "  on the device's own clock: forward_backward 3.80s",
                "  the GPU sets the pace: it had work queued most of the time",
            ],
        ),
        (
            {"forward_backward": 1010.0, "optimizer": 200.0},
            0.1,
            ["  Python sets the pace: the GPU waits for kernels to be started"],
        ),
    ],
)
def test_the_devices_times_are_shown_where_they_differ(device_phases, behind, said):
    """The host had queued an update in a second, and waited where the queue happened to be full."""
    host = {"forward_backward": 1_000_000_000, "optimizer": 210_000_000, "log": 2_790_000_000}
    total = Lap(4_000_000_000, host, device_phases, behind)
    none = Background(checkpoint_writer_ms=0.0, saves=0, failed_saves=0)
    assert ledger.ledger_lines(total, none)[-len(said) - 1 :] == [
        "  wall clock              4.00s  100.0%",
        *said,
    ]
    assert ledger.ledger_totals(total).device_behind == behind
