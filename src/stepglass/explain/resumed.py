"""Which segments of a log continue the one before, and which begin a run anew."""

from stepglass.logs.log import Log


def is_resumed(log: Log, number: int) -> bool:
    """Does a segment continue the previous one, instead of starting from the beginning?"""
    if number == 0:
        return False
    segment, before = log.segments[number], log.segments[number - 1]
    stated = segment.facts.get("init_from") or segment.setting("init_from")
    if stated is not None:
        return bool(stated == "resume")
    return (segment.first_iter or 0) > (before.first_iter or 0)
