"""The ledger sums to the wall clock."""

import pytest

from stepglass.measure import ledger
from stepglass.measure.clock import PHASES, Lap


def test_record_has_every_phase_and_sums_to_the_wall_clock():
    record = ledger.as_record(
        Lap(6_000_000, {"data": 1_000_000, "eval": 4_500_000, "other": 500_000})
    )
    assert list(record["phases"]) == list(PHASES)
    assert sum(record["phases"].values()) == pytest.approx(record["wall_ms"], abs=1e-9)


def test_table_shows_shares_and_the_wall_clock():
    lines = ledger.table(
        Lap(4_000_000_000, {"forward_backward": 3_000_000_000, "other": 1_000_000_000})
    )
    assert lines == [
        "  forward_backward        3.00s   75.0%   the model, forwards and backwards",
        "  other                   1.00s   25.0%   claimed by no phase",
        "  -------------------------------------",
        "  wall clock              4.00s  100.0%",
    ]
