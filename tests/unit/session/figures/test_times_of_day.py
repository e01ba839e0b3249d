"""Times of day across midnight and changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.session.figures.effects import next_time_of_day

BERLIN = ZoneInfo("Europe/Berlin")


def unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("clock", "after", "found"),
    [
        ("01:00", "2024-06-01T23:30:00+02:00", "2024-06-02T01:00:00+02:00"),
        ("13:05", "2024-06-01T12:00:00+02:00", "2024-06-01T13:05:00+02:00"),
        ("13:05", "2024-06-01T13:05:00+02:00", "2024-06-02T13:05:00+02:00"),
        # The night that is an hour shorter: 02:30 does not come, and clocks show 03:30 instead.
        ("02:30", "2024-03-31T00:10:00+01:00", "2024-03-31T03:30:00+02:00"),
        ("03:00", "2024-03-31T01:59:00+01:00", "2024-03-31T03:00:00+02:00"),
        # The night that is an hour longer: 02:30 comes twice.
        ("02:30", "2024-10-27T00:10:00+02:00", "2024-10-27T02:30:00+02:00"),
        ("02:30", "2024-10-27T02:40:00+02:00", "2024-10-27T02:30:00+01:00"),
        ("02:30", "2024-10-27T02:40:00+01:00", "2024-10-28T02:30:00+01:00"),
        ("12:00", "2024-12-31T12:00:01+01:00", "2025-01-01T12:00:00+01:00"),
    ],
)
def test_the_next_such_time(clock: str, after: str, found: str) -> None:
    assert next_time_of_day(clock, unix(after), BERLIN) == unix(found)


@given(st.floats(0, 4e9), st.integers(0, 23), st.integers(0, 59))
def test_it_comes_after_and_within_two_days(after_s: float, hour: int, minute: int) -> None:
    found = next_time_of_day(f"{hour:02}:{minute:02}", after_s, BERLIN)
    assert after_s < found <= after_s + timedelta(hours=49).total_seconds()
    shown = datetime.fromtimestamp(found, BERLIN)
    assert (shown.minute, shown.second) == (minute, 0)
    utc = next_time_of_day(f"{hour:02}:{minute:02}", after_s, UTC)
    assert utc - after_s <= timedelta(days=1).total_seconds() + 1
