from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.mqtt.device import JudgedMessage, MappedNumbering
from harness.model.bench import PlainValue


def message(seq: int, boot: str = "a") -> PlainValue:
    return {"boot": boot, "seq": seq}


def test_the_first_number_heard_is_where_counting_begins() -> None:
    assert MappedNumbering().judge(message(40)) == JudgedMessage()


def test_duplicates_gaps_and_what_comes_late() -> None:
    numbering = MappedNumbering()
    assert [numbering.judge(message(seq)) for seq in (1, 2, 2, 5, 3, 3, 6)] == [
        JudgedMessage(),
        JudgedMessage(),
        JudgedMessage(duplicate=True),
        JudgedMessage(missing=2),
        JudgedMessage(),
        JudgedMessage(duplicate=True),
        JudgedMessage(),
    ]


def test_a_new_boot_counts_from_one_and_the_old_ones_will_says_nothing() -> None:
    numbering = MappedNumbering()
    numbering.judge(message(7))
    assert numbering.judge(message(1, "b")) == JudgedMessage(rebooted=True)
    assert numbering.judge({"boot": "a", "state": "gone"}) == JudgedMessage(late=True)
    assert numbering.judge(message(2, "b")) == JudgedMessage()
    assert numbering.judge(message(3, "c")) == JudgedMessage(rebooted=True, missing=2)


def test_one_message_of_another_boot_does_not_take_the_place_of_a_device_that_speaks_on() -> None:
    numbering = MappedNumbering()
    numbering.judge(message(7))
    assert numbering.judge(message(3, "deadbeef")) == JudgedMessage(rebooted=True, missing=2)
    assert numbering.judge(message(8)) == JudgedMessage(beside="deadbeef")
    assert numbering.judge(message(8)) == JudgedMessage(duplicate=True)
    assert numbering.judge({"boot": "a", "state": "gone"}) == JudgedMessage()


@pytest.mark.parametrize(
    "document", [None, 3, "x", [], {}, {"boot": None, "seq": 1}, {"boot": "a"}, {"boot": "a", "seq": True}]
)
def test_messages_without_numbers_are_taken_as_they_are(document: PlainValue) -> None:
    numbering = MappedNumbering()
    assert numbering.judge(document) == JudgedMessage()
    assert numbering.judge(document) == JudgedMessage()


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80))
def test_each_number_is_new_exactly_once(numbers: list[int]) -> None:
    numbering = MappedNumbering()
    fresh = [seq for seq in numbers if not numbering.judge(message(seq)).duplicate]
    assert sorted(fresh) == sorted(set(numbers))
