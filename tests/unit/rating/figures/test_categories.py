"""Category figures against tables that were counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.choices import GROUPINGS, Grouping, Reading, ResultGrouping
from harness.model.judgment import SUB_FLAGS_OF, Category, JudgmentStatus, SubFlag
from harness.model.trial import Outcome, Recognition
from harness.rating.figures.categories import Method, Waits, category_figures, crossed, grouped, reprompt_figures
from harness.rating.figures.category_comparison import compare_categories
from harness.rating.figures.judged_responses import Basis, QueryOutcome, RatedTrial
from harness.statistics.intervals import wilson
from harness.statistics.significance import Discordance, mcnemar
from tests.unit.rating.figures.rated_rows import Case, rated

C, W, A, I = Category.CORRECT, Category.WRONG, Category.ADMITTED_DEFEAT, Category.INFERRABLE  # noqa: E741
LACKS = ("core_capability_missing",)


def test_a_missing_core_capability_is_counted_in_both_readings() -> None:
    figures = category_figures(
        rated(
            Case("said", {"ann": A}, sub_flags=LACKS),
            Case("known", {"ann": A}, core=True),
            Case("both", {"ann": A}, core=True, sub_flags=LACKS),
            Case("neither", {"ann": A}),
            Case("wrong", {"ann": W}, sub_flags=LACKS),
            Case("right", {"ann": C}, core=True),
        )
    )
    counts = {reading: [figures.share(category, reading).count for category in (C, A, W)] for reading in Reading}
    assert counts == {Reading.ADMITTED: [1, 4, 1], Reading.WRONG: [1, 1, 4]}
    assert (figures.core.by_rater, figures.core.by_scenario, figures.core.by_both) == (1, 1, 1)
    assert dict(figures.sub_flags)[SubFlag.CORE_CAPABILITY_MISSING] == 3
    assert [figures.share(category).total for category in Category] == [6] * 11


def test_the_funnel_adds_up() -> None:
    cases = [
        Case("a", outcome=None),
        Case("b", outcome=Outcome.SKIPPED),
        Case("c", outcome=Outcome.MISHEARD, recognition=Recognition.NO),
        Case("d", outcome=Outcome.NO_WAKE, recognition=Recognition.NO),
        Case("e", outcome=Outcome.INCONCLUSIVE, recognition=Recognition.UNKNOWN),
        Case("f", outcome=Outcome.NO_RESPONSE, recognition=Recognition.YES),
        Case("g"),
        Case("h", {"ann": JudgmentStatus.HELD}),
        Case("i", {"ann": JudgmentStatus.FLAGGED}),
        Case("j", {"ann": C, "bo": W}),
        Case("k", {"ann": C}, recognition=Recognition.NOT_ASSESSED),
        Case("l", {"ann": C, "bo": C}),
    ]
    figures = category_figures(rated(*cases))
    stages = figures.planned, figures.asked, figures.recognised, figures.answered, figures.judged, figures.total
    assert stages == (12, 10, 7, 6, 3, 2)
    assert figures.unassessed == 1
    assert dict(figures.bases)[Basis.ALONE] == dict(figures.bases)[Basis.UNANIMOUS] == 1
    assert figures.count(QueryOutcome.NOT_RECOGNISED) == 2


def test_queries_asked_once_have_wilson_intervals() -> None:
    figures = category_figures(rated(*(Case(f"q{n}", {"ann": C if n < 7 else W}) for n in range(10))))
    right = figures.share(C)
    assert figures.method is Method.WILSON
    assert right.interval == wilson(7, 10)
    assert right.together == wilson(7, 10, 1 - 0.05 / 11)
    assert right.together is not None
    assert right.interval is not None
    assert right.together[0] < right.interval[0] < right.interval[1] < right.together[1]


@pytest.mark.parametrize("queries", [2, 3, 5])
def test_repeated_queries_widen_the_interval(queries: int) -> None:
    """Also less than all queries together, of which they are a part."""

    def interval(count: int, repeats: int) -> tuple[float, float]:
        cases = [
            Case(f"q{n}.{r}", {"ann": W if n % 3 == 1 else C}, query=f"q{n}")
            for n in range(count)
            for r in range(repeats)
        ]
        figures = category_figures(rated(*cases))
        assert figures.method is Method.CLUSTERED
        bounds = figures.share(C).interval
        assert bounds is not None
        return bounds

    low, high = interval(queries, 12)
    binomial, whole = wilson(sum(n % 3 != 1 for n in range(queries)), queries), interval(12, 12)
    assert binomial is not None
    assert high - low > 0.9 * (binomial[1] - binomial[0])
    assert high - low > whole[1] - whole[0]


def test_single_repeated_query_has_no_interval() -> None:
    figures = category_figures(rated(*(Case(f"q{n}", {"ann": C}, query="q") for n in range(12))))
    assert (figures.method, figures.queries, figures.share(C).value) == (Method.TOO_FEW, 1, 1.0)
    assert figures.share(C).interval is figures.share(C).together is None


def test_the_same_id_with_other_words_is_another_query() -> None:
    figures = category_figures(
        (*rated(Case("q", {"ann": C})), *rated(Case("q", {"ann": C}, text="stop"), session_id="s2"))
    )
    assert figures.queries == 2


@pytest.mark.parametrize(
    ("cases", "why"),
    [
        ([], "no query was planned"),
        ([Case("q", outcome=None)], "no query was played to the end"),
        ([Case("q", outcome=Outcome.NO_WAKE, recognition=Recognition.NO)], "no query was answered"),
        ([Case("q")], "nothing was judged"),
        ([Case("q", {"ann": JudgmentStatus.HELD})], "nothing was judged"),
        ([Case("q", {"ann": C, "bo": W})], "raters differ on all 1 judged responses, and none is settled"),
        ([Case("q", {"ann": C})], ""),
    ],
)
def test_a_share_over_nothing_says_why(cases: list[Case], why: str) -> None:
    figures = category_figures(rated(*cases))
    assert figures.why_not == why
    assert (figures.share(C).value is None) == bool(why) == (figures.share(C).interval is None)


def test_groups_and_crossed_tables_have_the_labels_of_the_matrix() -> None:
    trials = rated(
        Case("a", {"ann": C}, query_class="time", conditions=(("level_dbfs", "-26"),), attempts=4),
        Case("b", {"ann": W}, query_class="lists", conditions=(("level_dbfs", "-9"),), device="radio", attempts=2),
        Case("c", {"ann": W}, conditions=(("level_dbfs", "-26"),)),
        Case("d", outcome=Outcome.NO_WAKE, recognition=Recognition.NO),
    )
    labels = {grouping: [label for label, _ in grouped(trials, grouping)] for grouping in GROUPINGS.values()}
    assert labels[ResultGrouping.DEVICE] == ["kitchen", "radio"]
    assert labels[ResultGrouping.CLASS] == ["lists", "time", ""]
    assert labels[ResultGrouping.ATTEMPTS] == ["1", "2", "3 or more", ""]
    assert labels[Grouping.LEVEL] == ["-26", "-9"]
    table = crossed(trials, ResultGrouping.DEVICE, ResultGrouping.CLASS)
    assert [[cell.planned if cell else None for cell in row] for row in table.cells] == [[None, 1, 2], [1, None, None]]


flags = st.sampled_from([None, *JudgmentStatus]).filter(
    lambda status: status not in (JudgmentStatus.SUBMITTED, JudgmentStatus.WITHDRAWN)
)


@st.composite
def cases(draw: st.DrawFn, prefix: str) -> list[Case]:
    drawn_cases = []
    for number in range(draw(st.integers(0, 8))):
        verdicts = draw(
            st.dictionaries(
                st.sampled_from(("ann", "bo", "cy")), st.one_of(st.sampled_from(Category), flags), max_size=3
            )
        )
        given_to = {rater: verdict for rater, verdict in verdicts.items() if verdict is not None}
        categories = {verdict for verdict in given_to.values() if isinstance(verdict, Category)}
        lacks = all(SubFlag.CORE_CAPABILITY_MISSING in SUB_FLAGS_OF.get(category, ()) for category in categories)
        drawn_cases.append(
            Case(
                f"{prefix}{number}",
                given_to,
                draw(st.none() | st.sampled_from(Category)) if len(given_to) > 1 and not lacks else None,
                device=draw(st.sampled_from(("kitchen", "radio"))),
                query=draw(st.sampled_from(("a", "b", "c"))),
                outcome=draw(st.sampled_from([Outcome.RESPONDED] * 6 + [Outcome.SKIPPED, Outcome.NO_WAKE, None])),
                core=draw(st.booleans()),
                sub_flags=LACKS if lacks and draw(st.booleans()) else (),
            )
        )
    return drawn_cases


@given(cases("x"), cases("y"))
def test_counts_add_over_sessions_and_groups_and_shares_add_to_one(first: list[Case], second: list[Case]) -> None:
    first_trials, other = rated(*first), rated(*second, session_id="s2")
    whole = category_figures((*first_trials, *other))
    by_device = [category_figures(trials) for _, trials in grouped((*first_trials, *other), ResultGrouping.DEVICE)]
    for parts in ([category_figures(first_trials), category_figures(other)], by_device):
        for outcome in QueryOutcome:
            assert whole.count(outcome) == sum(part.count(outcome) for part in parts)
        for reading in Reading:
            for category in Category:
                assert whole.share(category, reading).count == sum(
                    part.share(category, reading).count for part in parts
                )
    for part in (whole, *by_device):
        for reading in Reading:
            shares = [part.share(category, reading) for category in Category]
            assert sum(share.count for share in shares) == part.total
            if part.total:
                assert (shares[0].interval is None) == (part.method is Method.TOO_FEW)
                assert sum(share.value or 0.0 for share in shares) == pytest.approx(1.0)
                assert all(low <= (share.value or 0.0) + 1e-12 and (share.value or 0.0) <= high + 1e-12
                           for share in shares for low, high in [share.interval or (0.0, 1.0)])  # fmt: skip


def case(device: str, query: str, category: Category, **more: object) -> Case:
    return Case(f"{query}-{device}-{more}", {"ann": category}, device=device, query=query, **more)  # type: ignore[arg-type]


def pairs(*categories: tuple[Category, Category]) -> tuple[RatedTrial, ...]:
    return rated(
        *(
            case(device, f"q{number}", category)
            for number, pair in enumerate(categories)
            for device, category in zip("ab", pair, strict=True)
        )
    )


def test_single_pairs_are_compared_by_mcnemars_test() -> None:
    comparison = compare_categories(pairs(*[(C, W)] * 7, *[(W, C)] * 2, *[(C, C)] * 5, *[(W, A)] * 3), "a", "b", C)
    assert comparison.difference is not None
    assert comparison.difference.discordance == Discordance(both=5, only_first=7, only_second=2, neither=3)
    assert comparison.difference.swap is not None
    assert comparison.difference.swap.p == pytest.approx(mcnemar(7, 2))
    assert (comparison.difference.first, comparison.difference.second) == pytest.approx((12 / 17, 7 / 17))
    assert (comparison.queries, comparison.strata, comparison.first_unpaired, comparison.second_unpaired) == (
        17,
        17,
        0,
        0,
    )
    assert [query.query_id for query in comparison.differing] == ["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8"]
    assert comparison.differing[0].first == ((C, 1),)


def test_every_axis_that_varies_within_a_session_separates_partners() -> None:
    near, far = (("distance_m", "1"),), (("distance_m", "3"),)
    trials = rated(case("a", "q", C, conditions=near), case("b", "q", C, conditions=far))
    assert compare_categories(trials, "a", "b", C).why_not == "they have no query in common under the same conditions"
    monday = rated(case("a", "q", C, conditions=near), session_id="monday")
    tuesday = rated(case("a", "q", W, conditions=far), session_id="tuesday")
    assert compare_categories((*monday, *tuesday), "monday", "tuesday", C).strata == 1, "one label each is compared"


def test_repetitions_are_compared_as_shares_within_query_and_conditions() -> None:
    ann, bob = (("voice", "ann"),), (("voice", "bob"),)
    trials = rated(
        case("a", "q", C, conditions=ann), case("a", "q", C, conditions=ann, attempts=2),
        case("b", "q", W, conditions=ann),
        case("a", "q", W, conditions=bob), case("b", "q", W, conditions=bob),
        case("a", "r", C, conditions=bob), case("b", "r", C, conditions=ann),
        case("b", "s", C)
    )  # fmt: skip
    comparison = compare_categories(trials, "a", "b", C)
    assert (comparison.queries, comparison.strata) == (1, 2)
    assert (comparison.first_responses, comparison.second_responses) == (3, 2)
    assert (comparison.first_unpaired, comparison.second_unpaired) == (1, 2)
    assert comparison.difference is not None
    assert comparison.difference.discordance is None
    # 2 of 2 against 0 of 1 is worth 4/3 pairs, the other stratum 1.
    assert comparison.difference.difference == pytest.approx((4 / 3) / (7 / 3))
    assert comparison.difference.interval is None
    assert comparison.difference.swap is not None
    assert comparison.difference.swap.p == 1.0


def test_swapping_takes_a_query_with_all_its_repetitions_as_one() -> None:
    right = [case("a", f"q{n}", C, attempts=r + 1) for n in range(3) for r in range(6)]
    wrong = [case("b", f"q{n}", W, attempts=r + 1) for n in range(3) for r in range(6)]
    alike = rated(*right, *wrong)
    comparison = compare_categories(alike, "a", "b", C)
    assert comparison.difference is not None
    assert comparison.difference.swap is not None
    assert comparison.difference.swap.p == 2 / 8
    assert comparison.difference.alone_p is not None
    assert comparison.difference.alone_p < 1e-6


def test_the_two_readings_differ_in_what_counts_as_wrong() -> None:
    trials = rated(case("a", "q", A, core=True), case("b", "q", W), case("a", "r", A), case("b", "r", W))
    by_reading = {reading: compare_categories(trials, "a", "b", W, reading) for reading in Reading}
    differences = {
        reading: comparison.difference.difference for reading, comparison in by_reading.items() if comparison.difference
    }
    assert differences == {Reading.ADMITTED: -1.0, Reading.WRONG: -0.5}


def test_devices_that_never_differ_have_no_p_value() -> None:
    comparison = compare_categories(pairs((C, C), (W, W)), "a", "b", C)
    assert comparison.difference is not None
    assert (comparison.difference.swap, comparison.all_swap, comparison.difference.alone_p, comparison.differing) == (
        None,
        None,
        None,
        (),
    )
    assert comparison.difference.difference == 0


def test_sessions_without_a_common_device_are_compared() -> None:
    monday = rated(case("a", "q", C), session_id="monday")
    other = rated(case("a", "q", W), session_id="tuesday")
    comparison = compare_categories((*monday, *other), "monday", "tuesday", C)
    assert comparison.difference is not None
    assert comparison.difference.difference == 1.0
    with pytest.raises(ValueError, match="sunday"):
        compare_categories(monday, "monday", "sunday", C)


@pytest.mark.parametrize(
    ("trials", "why"),
    [
        (rated(case("a", "q", C), case("b", "r", C)), "they have no query in common"),
        (rated(case("a", "q", C), case("b", "q", C, text="stop")), "they have no query in common"),
        (
            rated(case("a", "q", C), case("b", "q", C, conditions=(("voice", "bob"),))),
            "they have no query in common under the same conditions",
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
def test_a_comparison_without_pairs_states_its_reason(trials: tuple[RatedTrial, ...], why: str) -> None:
    comparison = compare_categories(trials, "a", "b", C)
    assert (comparison.why_not, comparison.difference, comparison.all_swap, comparison.strata) == (why, None, None, 0)


def test_the_mean_is_of_recognised_queries_and_the_share_of_all_assessed() -> None:
    figures = reprompt_figures(
        rated(
            *(Case(f"a{n}") for n in range(6)),
            *(Case(f"b{n}", attempts=2) for n in range(2)),
            Case("c", attempts=4),
            Case("d", outcome=Outcome.MISHEARD, recognition=Recognition.NO, attempts=3),
            Case("e", recognition=Recognition.NOT_ASSESSED),
            Case("f", outcome=Outcome.SKIPPED),
        )
    )
    assert figures.needed == ((1, 6), (2, 2), (4, 1))
    assert (figures.never, figures.assessed, figures.unassessed) == (1, 10, 1)
    assert (figures.first.count, figures.first.total, figures.first.interval) == (6, 10, wilson(6, 10))
    assert figures.mean == pytest.approx((6 + 4 + 4) / 9)
    assert figures.mean_interval is not None
    assert 1 <= figures.mean_interval[0] < figures.mean < figures.mean_interval[1]


def test_repetitions_of_a_query_count_together() -> None:
    cases = [Case(f"q{n}.{r}", query=f"q{n}", attempts=1 + n % 2) for n in range(8) for r in range(6)]
    together = reprompt_figures(rated(*cases))
    alone = reprompt_figures(rated(*(replace(case, query="") for case in cases)))
    assert together.mean == alone.mean == 1.5
    for interval, other in (
        (together.mean_interval, alone.mean_interval),
        (together.first.interval, alone.first.interval),
    ):
        assert interval is not None
        assert other is not None
        assert interval[1] - interval[0] > 1.5 * (other[1] - other[0])


def test_one_query_said_often_has_no_interval() -> None:
    figures = reprompt_figures(rated(Case("a.1", query="a"), Case("a.2", query="a")))
    assert (figures.first.value, figures.first.interval, figures.mean, figures.mean_interval) == (1.0, None, 1.0, None)


@pytest.mark.parametrize("cases", [[], [Case("a", outcome=None)], [Case("a", recognition=Recognition.NOT_ASSESSED)]])
def test_nothing_assessed_has_no_figure(cases: list[Case]) -> None:
    figures = reprompt_figures(rated(*cases))
    assert (figures.mean, figures.mean_interval, figures.first.value, figures.first.interval) == (None,) * 4


def waiting(trial: RatedTrial, *waited_s: float | None) -> RatedTrial:
    """With these waits before its second attempt and those after it."""
    take = trial.progress.takes[0]
    attempts = tuple(
        replace(attempt, waited_s=seconds) for attempt, seconds in zip(take.attempts, (None, *waited_s), strict=True)
    )
    return replace(trial, progress=replace(trial.progress, takes=(replace(take, attempts=attempts),)))


def test_waits_are_measured_before_later_attempts() -> None:
    single, twice, often = rated(Case("a"), Case("b", attempts=2), Case("c", attempts=4))
    waits = reprompt_figures([single, waiting(twice, 6.0), waiting(often, 5.0, 4.0, None)]).waits
    assert waits == Waits(3, 4.0, 5.0, 6.0, shorter=1, unknown=1)
    assert reprompt_figures([single]).waits == Waits()
