"""LightlyTrain: where each step's time went, as shares.

    [...][INFO] Train Step 1/10 | Train Loss: 32.8633 | Time Spent [Dataload: 64.5%, Forward: 16.2%,
    Backward: 19.3%, Metrics: 0.0%]                               (one line)

The line has no time: only how it was divided.
"""

import re

from stepglass.logs.reader import NUMBER, Record, field, number

LINE = re.compile(r"(?<!\w)Train Step (\d{1,15})/(\d{1,15}) \|(.{1,2000})")
SHARES = re.compile(r"\bTime Spent \[([^\]]{1,500})\]")
SHARE = re.compile(rf"(\w{{1,40}}): ({NUMBER})%")


class LightlyTrain:
    """Reads LightlyTrain's console."""

    name = "lightly-train"
    time_holds_eval = False

    def read(self, text: str) -> list[Record]:
        if "Train Step " not in text or not (found := LINE.search(text)):
            return []
        rest = found[3]
        loss = field(rest, "Train Loss")
        spent = SHARES.search(rest)
        shares = {
            key.lower(): number(share) for key, share in SHARE.findall(spent[1] if spent else "")
        }
        if loss is None and not shares:
            return []
        return [
            {
                "kind": "iter",
                "iter": int(found[1]),
                "max_iters": int(found[2]),
                "loss": loss,
                "data_share": shares.get("dataload"),
                "shares": shares,
            }
        ]
