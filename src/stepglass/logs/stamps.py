"""The timestamps of a log, in seconds. Only their differences mean anything.

    stamps = Stamps()
    stamps.read("Mar 12 11:10:21 host iter 3000: ...")  # None if the line has no stamp

A program writes all its stamps alike, so the first one decides how the rest of the log is read.
Many stamps lack a part: the year, the whole date, or the order of day and month (03/04). A log is
written in order, so what is missing follows from the stamp before: the clock went on, not back.
"""

import re
from datetime import date

DAY_S = 86400.0
# If a clock without a date goes back further than this, it passed midnight. One hour is lost in
# autumn, and ranks write a little out of order.
MOST_BACK_S = 3600.0
MOST_DAYS_BACK = 180  # if a date without a year goes back further, a new year began
NEAR = 160  # characters; a stamp stands near the start of its line

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NAME = rf"(?P<name>{'|'.join(month.capitalize() for month in MONTHS)})[a-z]{{0,6}}\.?"
CLOCK = (
    r"(?P<h>\d{1,2}):(?P<m>\d{2}):(?P<s>\d{2}(?:[.,]\d{1,9})?)(?![\d:])"
    r"(?:\s?(?P<half>[AaPp])\.?[Mm]\b)?"
)
LAYOUTS = [
    # 2024-03-12T11:10:21,511
    rf"(?<!\d)(?P<year>\d{{4}})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)[ T_,]{{1,2}}{CLOCK}",
    # 03/12/2024 11:10:21 AM, 12.03.2024 11:10:21, 24-03-12 11:10:21
    rf"(?<![\d/.-])(?P<a>\d\d?)(?P<sep>[-/.])(?P<b>\d\d?)(?P=sep)(?P<c>\d{{4}}|\d\d)[ T,]{{1,2}}"
    rf"{CLOCK}",
    # Mar 12 11:10:21, Tue Mar 12 11:10:21 UTC 2024
    rf"\b{NAME} {{1,2}}(?P<day>\d\d?),? (?:\d{{4}},? )?{CLOCK}",
    # 12 Mar 2024 11:10:21, 12/Mar/2024:11:10:21
    rf"(?<!\d)(?P<day>\d\d?)[ /-]{NAME}(?:[ /-]\d{{4}})?[ :,]{{1,2}}{CLOCK}",
    # I0312 11:10:21.511000
    rf"(?<![A-Za-z0-9])[IWEFDC](?:\d{{4}})?(?P<month>\d\d)(?P<day>\d\d) {CLOCK}",
    # [03/12 11:10:21]
    rf"(?<![\d/.:-])(?P<a>\d\d)[-/](?P<b>\d\d)[ T]{CLOCK}",
    # 1710241821.511
    r"^\W{0,2}(?P<epoch>1\d{9}(?:\d{3})?)(?P<part>\.\d{1,9})?(?=[\s\]:|,])",
    # [11:10:21], INFO 11:10:21.511
    rf"^\W{{0,2}}(?:(?:[A-Z]{{4,8}}|[\w.-]{{1,60}}\.py(?::\d+)?)\W{{1,3}})?{CLOCK}(?=[\s\]):|,>-]|$)",
]
MAY_HAVE = re.compile(r"\d:\d\d:\d\d|^\W{0,2}1\d{9}")
ORDERS = {"ymd": "abc", "mdy": "cab", "dmy": "cba"}  # which part is the year, the month, the day

Date = tuple[int, int, int]


class Stamps:
    """Reads the stamps of one log, in the order of its lines."""

    def __init__(self) -> None:
        self._layout: re.Pattern[str] | None = None
        self._dates: dict[str, Date] = {}  # the newest date, in every order that is still possible
        self._days = 0
        self._second = 0.0  # of the day

    def read(self, text: str, decides: bool = True) -> float | None:
        """The stamp of a line. `decides`: if no stamp was read before, this one shows how the log
        writes them. A line of a library may have a stamp of its own kind."""
        text = text[:NEAR]
        if not MAY_HAVE.search(text):
            return None
        if self._layout is not None:
            found = self._layout.search(text)
            return self._seconds(found) if found else None
        for layout in LAYOUTS if decides else []:
            if (found := re.search(layout, text)) and (result := self._seconds(found)) is not None:
                self._layout = re.compile(layout)
                return result
        return None

    def _seconds(self, found: re.Match[str]) -> float | None:
        parts = found.groupdict()
        if "epoch" in parts:
            whole = float(parts["epoch"] + (parts["part"] or ""))
            return whole / 1000 if whole >= 1e12 else whole
        second = _second_of_day(parts)
        dates = _dates(parts)
        if second is None or dates is None:
            return None
        if self._layout is None:
            if dates:
                year, month, day = next(iter(dates.values()))
                self._days = date(year or 2000, month, day).toordinal()
        elif not dates:
            self._days += second < self._second - MOST_BACK_S
        elif (days := self._days_since(dates)) is None:
            return None
        else:
            self._days += days
        self._dates, self._second = dates, second
        return DAY_S * (self._days + 1) + second

    def _days_since(self, dates: dict[str, Date]) -> int | None:
        """Days since the stamp before. Of the possible orders, the one with the least is right."""
        both = {order: dates[order] for order in self._dates if order in dates}
        steps = {order: _days_between(self._dates[order], now) for order, now in both.items()}
        if not steps:
            return None
        least = min(steps.values(), key=lambda days: (days < 0, abs(days)))
        for order, days in steps.items():
            if days != least:
                del dates[order]
        for order in set(dates) - set(steps):
            del dates[order]
        return least


def _second_of_day(parts: dict[str, str]) -> float | None:
    """
    >>> _second_of_day({"h": "12", "m": "01", "s": "02,5", "half": "a"})
    62.5
    """
    hour, minute = int(parts["h"]), int(parts["m"])
    second = float(parts["s"].replace(",", "."))
    if parts.get("half"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if parts["half"] in "pP" else 0)
    if hour > 23 or minute > 59 or second >= 61:
        return None
    return 3600.0 * hour + 60.0 * minute + second


def _dates(parts: dict[str, str]) -> dict[str, Date] | None:
    """The date in every order that makes it one; empty without a date; None if it is none.

    >>> _dates({"a": "03", "b": "13", "c": "2024"}), _dates({"month": "02", "day": "30"})
    ({'mdy': (2024, 3, 13)}, None)
    """
    if "name" in parts:
        possible = {"": ("", str(MONTHS.index(parts["name"].lower()) + 1), parts["day"])}
    elif "month" in parts:
        possible = {"": (parts.get("year") or "", parts["month"], parts["day"])}
    elif "c" in parts:
        orders = [order for order in ORDERS if order != "ymd" or len(parts["c"]) == 2]
        if parts.get("sep") == ".":
            orders.remove("mdy")  # only the day stands before a point
        possible = {
            order: (parts[ORDERS[order][0]], parts[ORDERS[order][1]], parts[ORDERS[order][2]])
            for order in orders
        }
    elif "a" in parts:
        possible = {"mdy": ("", parts["a"], parts["b"]), "dmy": ("", parts["b"], parts["a"])}
    else:
        return {}
    result = {}
    for order, (year, month, day) in possible.items():
        whole = (_year(year), int(month), int(day))
        if _is_date(whole):
            result[order] = whole
    return result or None


def _year(text: str) -> int:
    """A year without its century is of this one. No year is 0."""
    return int(text) + (2000 if len(text) == 2 else 0) if text else 0


def _is_date(whole: Date) -> bool:
    try:
        date(whole[0] or 2000, *whole[1:])
    except ValueError:
        return False
    return True


def _days_between(before: Date, now: Date) -> int:
    """
    >>> _days_between((0, 12, 31), (0, 1, 1)), _days_between((0, 2, 28), (0, 3, 1))
    (1, 1)
    """
    if before[0]:
        return date(*now).toordinal() - date(*before).toordinal()
    # A year with 366 days is meant only if the log shows the day that it has more.
    year = 2000 if (2, 29) in (before[1:], now[1:]) else 2001
    days = date(year, *now[1:]).toordinal() - date(year, *before[1:]).toordinal()
    return days + (365 if days < -MOST_DAYS_BACK else 0)
