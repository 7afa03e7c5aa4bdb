"""Settings with smaller update steps, for a run whose loss went up."""

from stepglass.explain.finding import Change
from stepglass.explain.study import Part


def calmer(part: Part) -> Change:
    """Half the learning rate, and gradient clipping if there is none."""
    change: Change = {}
    clip = part.number_setting("grad_clip")
    has_muon = part.setting("model") == "modern" and part.setting("optimizer") != "adamw"
    for name in ("learning_rate", *(("muon_lr", "embedding_lr") if has_muon else ())):
        rate = part.number_setting(name)
        if rate:
            change[name] = float(f"{rate / 2:.3g}")
    if clip is not None and (clip == 0 or clip > 1):
        change["grad_clip"] = 1.0
    return change
