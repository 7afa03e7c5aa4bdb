"""The printed MFU divides by the peak of a device that is not the one that ran."""

import numpy as np

from stepglass.explain.finding import Finding
from stepglass.explain.study import Part


def find_mfu_wrong_peak(part: Part) -> list[Finding]:
    mfu = part.mfu
    if mfu.printed_last is None or mfu.assumed_tflops is None:
        return []
    if part.format.mfu_is_of_own_device:
        return []
    printed = part.column("mfu")
    over = np.flatnonzero(printed > 100)
    device = str(part.setting("device") or "")
    is_other = mfu.peak_tflops is not None and abs(mfu.peak_tflops / mfu.assumed_tflops - 1) > 0.02
    has_fixed_peak = part.format.assumed_peak_tflops is not None
    has_no_peak = has_fixed_peak and device.split(":")[0] in ("mps", "cpu")
    # A column that is not nanoGPT's average may be computed in another way throughout.
    is_sure = mfu.is_replayed or not part.format.averages_mfu
    if is_other and mfu.corrected is None:
        return []
    if not is_other and not len(over) and not has_no_peak:
        return []
    rows = over if len(over) else np.flatnonzero(np.isfinite(printed))[-1:]
    return [
        Finding(
            "mfu-wrong-peak",
            "established" if is_sure and not len(over) else "supported",
            "note",
            {
                "printed_mfu": float(printed[rows[0]]) if len(over) else mfu.printed_last,
                "clean_mfu": mfu.clean,
                "corrected_mfu": mfu.corrected,
                "assumed_tflops": mfu.assumed_tflops,
                "peak_tflops": mfu.peak_tflops,
                "achieved_tflops": mfu.achieved_tflops,
                "achieved": "known" if mfu.achieved_tflops is not None else "unknown",
                "device": mfu.device or device or None,
            },
            [int(part.column("line")[row]) for row in rows] + part.line_of_setting("device"),
            [int(part.column("iter")[row]) for row in rows],
            variant="other" if is_other else "over" if len(over) else "no-peak",
        )
    ]
