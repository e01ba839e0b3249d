"""Two devices on the same queries, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.choices import Derived, Reading
from harness.model.judgment import Category
from harness.model.trial import Outcome, Recognition
from harness.rating.figures.categories import compare_categories
from harness.rating.figures.judged import RatedTrial
from harness.statistics.significance import Discordance, mcnemar
from tests.unit.rating.figures.category_simulations import Fleet, simulated
from tests.unit.rating.figures.rated_rows import Case, rated

C, W, A, I = Category.CORRECT, Category.WRONG, Category.ADMITTED_DEFEAT, Category.INFERRABLE  # noqa: E741


def case(device: str, query: str, said: Category, **more: object) -> Case:
    return Case(f"{query}-{device}-{more}", {"ann": said}, device=device, query=query, **more)  # type: ignore[arg-type]


def pairs(*given: tuple[Category, Category]) -> tuple[RatedTrial, ...]:
    return rated(
        *(
            case(device, f"q{at}", said)
            for at, both in enumerate(given)
            for device, said in zip("ab", both, strict=True)
        )
    )


def test_single_pairs_are_mcnemars() -> None:
    found = compare_categories(pairs(*[(C, W)] * 7, *[(W, C)] * 2, *[(C, C)] * 5, *[(W, A)] * 3), "a", "b", C)
    assert found.discordance == Discordance(both=5, only_first=7, only_second=2, neither=3)
    assert found.swap is not None
    assert found.swap.p == pytest.approx(mcnemar(7, 2))
    assert found.difference is not None
    assert (found.difference.first, found.difference.second) == pytest.approx((12 / 17, 7 / 17))
    assert (found.queries, found.strata, found.first_unpaired, found.second_unpaired) == (17, 17, 0, 0)
    assert [one.query_id for one in found.apart] == ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8"]
    assert found.apart[0].first == ((C, 1),)


def test_repetitions_are_compared_as_shares_within_query_and_conditions() -> None:
    ann, bob = (("voice", "ann"),), (("voice", "bob"),)
    trials = rated(
        case("a", "q", C, conditions=ann), case("a", "q", C, conditions=ann, attempts=2),
        case("b", "q", W, conditions=ann),
        case("a", "q", W, conditions=bob), case("b", "q", W, conditions=bob),
        case("a", "r", C, conditions=bob), case("b", "r", C, conditions=ann),
        case("b", "s", C)
    )  # fmt: skip
    found = compare_categories(trials, "a", "b", C)
    assert (found.queries, found.strata, found.discordance) == (1, 2, None)
    assert (found.first_responses, found.second_responses) == (3, 2)
    assert (found.first_unpaired, found.second_unpaired) == (1, 2)
    assert found.difference is not None
    # 2 of 2 against 0 of 1 is worth 4/3 pairs, the other stratum 1.
    assert found.difference.difference == pytest.approx((4 / 3) / (7 / 3))
    assert found.difference.interval is None
    assert found.swap is not None
    assert found.swap.p == 1.0


def test_swapping_takes_a_query_with_all_its_repetitions_as_one() -> None:
    alike = rated(*(case(device, f"q{n}", C if device == "a" else W, attempts=r + 1)
                    for n in range(3) for r in range(6) for device in "ab"))  # fmt: skip
    found = compare_categories(alike, "a", "b", C)
    assert found.swap is not None
    assert found.swap.p == 2 / 8
    assert found.alone_p is not None
    assert found.alone_p < 1e-6


def test_the_readings_part_what_is_wrong() -> None:
    trials = rated(case("a", "q", A, core=True), case("b", "q", W), case("a", "r", A), case("b", "r", W))
    by_reading = {reading: compare_categories(trials, "a", "b", W, reading) for reading in Reading}
    found = {reading: one.difference.difference for reading, one in by_reading.items() if one.difference}
    assert found == {Reading.ADMITTED: -1.0, Reading.WRONG: -0.5}


def test_derived_groups_can_be_compared() -> None:
    found = compare_categories(pairs((I, C), (C, W)), "a", "b", Derived.HELPFUL)
    assert found.difference is not None
    assert (found.difference.first, found.difference.second) == (1.0, 0.5)


def test_devices_that_never_differ_have_no_p() -> None:
    found = compare_categories(pairs((C, C), (W, W)), "a", "b", C)
    assert (found.swap, found.all_swap, found.alone_p, found.apart) == (None, None, None, ())
    assert found.difference is not None
    assert found.difference.difference == 0


def test_sessions_are_compared_where_no_device_has_the_name() -> None:
    one = rated(case("a", "q", C), session_id="monday")
    other = rated(case("a", "q", W), session_id="tuesday")
    found = compare_categories((*one, *other), "monday", "tuesday", C)
    assert found.difference is not None
    assert found.difference.difference == 1.0
    with pytest.raises(ValueError, match="sunday"):
        compare_categories(one, "monday", "sunday", C)


@pytest.mark.parametrize(
    ("trials", "why"),
    [
        (rated(case("a", "q", C), case("b", "r", C)), "both have no query in common"),
        (rated(case("a", "q", C), case("b", "q", C, text="stop")), "both have no query in common"),
        (
            rated(case("a", "q", C), case("b", "q", C, conditions=(("voice", "bob"),))),
            "both have no query in common under the same conditions",
        ),
        (
            rated(
                case("a", "q", C),
                Case("x", device="b", query="q", outcome=Outcome.MISHEARD, recognition=Recognition.NO),
            ),
            "no response of b has a category",
        ),
    ],
)
def test_nothing_to_pair_says_why(trials: tuple[RatedTrial, ...], why: str) -> None:
    found = compare_categories(trials, "a", "b", C)
    assert (found.why_not, found.difference, found.swap, found.strata) == (why, None, None, 0)


def test_a_known_difference_is_found_again() -> None:
    fleet = Fleet(queries=60, repeats=3, first=0.75, second=0.5)
    found = [compare_categories(simulated(np.random.default_rng(seed), fleet), "a", "b", C) for seed in range(8)]
    intervals = [one.difference.interval for one in found if one.difference]
    assert sum(low <= 0.25 <= high for low, high in filter(None, intervals)) >= 6
    assert sum(one.swap is not None and one.swap.p < 0.05 for one in found) >= 6
