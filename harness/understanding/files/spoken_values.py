"""Numbers, places in a row and times of day as they are said, each with its digits."""

from __future__ import annotations

from collections.abc import Iterable

from harness.transcripts.numerals import cardinal, clock_time, ordinal
from harness.understanding.grammar import Spoken, Value

_MORNING, _AFTERNOON, _EVENING = ("in the morning",), ("in the afternoon",), ("in the evening", "tonight")


def spoken_values(kind: Spoken, numbers: Iterable[int]) -> tuple[Value, ...]:
    """Every way to say each number. TIME: numbers are minutes since midnight, 0–1439.

    A time without a part of the day is given by the clock of twelve hours, as it was said: "seven thirty" is 7:30.
    """
    match kind:
        case Spoken.NUMBER:
            return tuple(Value(tuple(cardinal(one).split()), str(one)) for one in numbers)
        case Spoken.ORDINAL:
            return tuple(Value(tuple(ordinal(one).split()), str(one)) for one in numbers)
        case Spoken.TIME:
            return tuple(dict.fromkeys(said for one in numbers for said in _times(*divmod(one, 60))))


def _times(hour: int, minute: int) -> list[Value]:
    """A time of day in words: bare, by the clock, and with its part of the day. The forms share the time's weight."""
    if minute == 0 and hour in (0, 12):
        return [Value(("midnight",) if hour == 0 else ("noon",), f"{hour}:00")]
    twelve = hour % 12 or 12
    bare = [clock_time(twelve, minute)]
    following = cardinal(twelve % 12 + 1)
    if minute == 0:
        bare.append(f"{cardinal(twelve)} o'clock")
    elif minute == 15:
        bare.append(f"quarter past {cardinal(twelve)}")
    elif minute == 30:
        bare.append(f"half past {cardinal(twelve)}")
    elif minute == 45:
        bare.append(f"quarter to {following}")
    elif minute % 5 == 0:
        bare.append(f"{cardinal(minute)} past {cardinal(twelve)}" if minute < 30
                    else f"{cardinal(60 - minute)} to {following}")  # fmt: skip
    parts = ("a m", *_MORNING) if hour < 12 else ("p m", *(_AFTERNOON if hour < 17 else _EVENING))
    said = [(text, f"{twelve}:{minute:02}") for text in bare]
    said += [(f"{clock_time(twelve, minute)} {part}", f"{hour}:{minute:02}") for part in parts]
    return [Value(tuple(text.split()), value, 1 / len(said)) for text, value in said]
