"""Ids that come again, in streams of any length."""

from __future__ import annotations

import random

from harness.transcripts.files import sro as seen_ids
from harness.transcripts.files.sro import SeenIds

LONGEST = 9000


def test_an_id_that_comes_again_is_told_with_its_first_place() -> None:
    seen = SeenIds()
    assert seen.repeated(["A", "B"], "a.sro", [1, 4]) == {}
    assert seen.repeated(["C", "B", "C"], "b.sro", [1, 2, 3]) == {1: "a.sro:4", 2: "b.sro:1"}
    assert seen.repeated([], "b.sro", []) == {}
    assert seen.repeated(["A"], "a.sro", [1]) == {0: "a.sro:1"}


def test_of_many_ids_none_is_missed_and_none_is_made_up() -> None:
    rng = random.Random(3)
    total = 3 * seen_ids.REMEMBERED
    ids = [f"U{number}" for number in range(total)]
    again = sorted(rng.sample(range(total), 500))
    stream = ids + [ids[number] for number in again] + ["NEW", "NEW"]
    told: dict[int, str] = {}
    seen = SeenIds()
    start = 0
    while start < len(stream):
        end = start + rng.randint(1, LONGEST)
        found = seen.repeated(stream[start:end], "a", range(start + 1, end + 1))
        told.update({start + index: where for index, where in found.items()})
        start = end
    assert sorted(told) == [*range(total, total + 500), len(stream) - 1]
    for position, number in enumerate(again, total):
        remembered = number < seen_ids.REMEMBERED - LONGEST
        assert told[position] == f"a:{number + 1}" if remembered else told[position] in ("", f"a:{number + 1}")
