"""Long trial names in few columns."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.session.wording import short_names


def test_a_last_part_that_all_share_is_left_out() -> None:
    assert short_names(["time.r1", "black_box.r1"], 9) == ["time", "black_box"]
    assert short_names(["time.r1", "time.r2"], 9) == ["time.r1", "time.r2"]
    assert short_names(["time.r1"], 9) == ["time.r1"]


@pytest.mark.parametrize(
    "ids",
    [
        [f"time.v-{voice}.n{noise}.r{n}" for voice in ("alan", "belinda") for noise in (10, -20) for n in (1, 2)],
        [f"a-very-long-name-with-{one}-in-the-middle-of-it.r1" for one in ("alan", "belinda", "cass")],
        [f"kitchen-evening-question-{n:03}.r1" for n in range(500)],
    ],
)
def test_long_names_stay_different(ids: list[str]) -> None:
    shown = short_names(ids, 11)
    assert len(set(shown)) == len(ids)
    assert max(map(len, shown)) <= 11


@example(ids=["1", "1", "11", "1a"], width=1)
@given(st.lists(st.text("abc.-1", min_size=1, max_size=30), max_size=8), st.integers(1, 24))
def test_never_longer_than_asked_nor_empty(ids: list[str], width: int) -> None:
    shown = short_names(ids, width)
    assert len(shown) == len(ids)
    assert all(1 <= len(one) <= width for one in shown)
