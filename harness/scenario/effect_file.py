"""The keys of a trial's effect check."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from harness.base.file_words import MAX_TEXT, Text, wrong
from harness.base.findings import Keys

TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def _time_of_day(text: str) -> str:
    if not TIME_OF_DAY.fullmatch(text):
        raise wrong(f"{text!r} is not a time of day", "Write hours and minutes, 00:00 to 23:59: 01:00")
    return text


def _value(written: object) -> object:
    if isinstance(written, str) and (len(written) > MAX_TEXT or any(ord(letter) < 0x20 for letter in written)):
        raise wrong(f"the value is not one line of at most {MAX_TEXT} characters", "Shorten it")
    return written


TimeOfDay = Annotated[
    str, AfterValidator(_time_of_day), Field(json_schema_extra={"pattern": f"^{TIME_OF_DAY.pattern}$"})
]
Value = Annotated[str, BeforeValidator(_value)]


class EffectKeys(Keys):
    """What the query should bring about, and how that is found out: by the device's own state, or by a person."""

    wanted: Text = Field(description="What should have been brought about, for people: a timer of ten minutes runs.")
    state: dict[Text, Value | None] = Field(
        default={},
        description='Pieces of its state, all of which it must tell: name: value; null is any value, "" none.',
    )
    within_s: float = Field(
        default=10.0,
        gt=0,
        le=600,
        description="It must tell them within this time of the query's end, or before it has answered, s. Default 10.",
    )
    question: Text | None = Field(default=None, description="What the operator is asked. Default: nobody is asked.")
    after_s: float | None = Field(
        default=None, gt=0, le=604_800, description="One can only look so long after the response, s. Default: at once."
    )
    at: TimeOfDay | None = Field(
        default=None, description="One can only look at this local time of day, the next one after the response: 01:00."
    )
