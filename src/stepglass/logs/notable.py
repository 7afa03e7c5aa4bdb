"""Could a line of anybody's log be about a failure, a compiler, a wall clock or a device?

    if is_notable(text):
        records = common(text)

Asked first because it is quick: the patterns of `common` need not even be loaded for a log that has
no such line.
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
