"""Settings with smaller update steps, for a run whose loss went up."""

from stepglass.explain.finding import Change
from stepglass.explain.study import Part

# The highest learning rates that transformers of a size usually bear with AdamW: parameters, rate.
CEILINGS = ((20e6, 3e-3), (200e6, 1e-3), (2e9, 5e-4))
LOWEST_CEILING = 3e-4
CEILING_OF_UNKNOWN = 1e-3
USUAL_FLOOR = 0.1  # min_lr, as a share of the learning rate


def calmer(part: Part) -> Change:
    """A learning rate of half or of what is usual, and gradient clipping if there is none."""
    change: Change = {}
    clip = part.number_setting("grad_clip")
    has_muon = part.setting("model") == "modern" and part.setting("optimizer") != "adamw"
    for name in ("learning_rate", *(("muon_lr", "embedding_lr") if has_muon else ())):
        rate = part.number_setting(name)
        if rate:
            most = _ceiling(part) if name == "learning_rate" and not has_muon else rate
            change[name] = float(f"{min(rate / 2, most):.3g}")
    lower, floor = change.get("learning_rate"), part.number_setting("min_lr")
    if isinstance(lower, float) and floor is not None and floor > lower / 2:
        change["min_lr"] = float(f"{USUAL_FLOOR * lower:.3g}")
    if clip is not None and (clip == 0 or clip > 1):
        change["grad_clip"] = 1.0
    return change


def _ceiling(part: Part) -> float:
    size = part.fact("parameters")
    if not size:
        return CEILING_OF_UNKNOWN
    return next((rate for most, rate in CEILINGS if size <= most), LOWEST_CEILING)
