"""A quick test: could a line be about a failure, a compiler, a wall-clock time or a device?

    if is_notable(text):
        records = events.records_of_any_log(text)

This test comes first because it is fast. A log without such lines never loads the slow patterns.
"""

MARKS = (
    "emory",
    "EXHAUSTED",
    "oom",
    "rror",
    "xception",
    "exc.",
    "Traceback",
    "KeyboardInterrupt",
    "SIG",
    "CANCELLED",
    "dynamo",
    "raph break",
    "WON'T CONVERT",
    "back to eager",
    "real",
    "lapsed",
    "% cpu",
    " cap",
    ": Active",
    "throttled",
    "0000:",
    "(UUID: ",
)


def is_notable(text: str) -> bool:
    return any(mark in text for mark in MARKS)
