"""Requests by the pause behind their wake phrase: queries of a session, in everything that shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.bench import ObservationKind
from harness.model.record import EndReason, SessionFinished, UnderstandingResult
from harness.model.scenario import Evidence, Limits
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.report import junit
from harness.report.prometheus import prometheus
from harness.report.session import WholeSession
from harness.report.wake_json import as_json
from harness.session.figures.requests import requests_of_session
from harness.session.summary import results_lines
from harness.statistics.intervals import Share
from harness.wake.requests import GapRequests
from harness.wake.wake_progress import DeviceWake, WakeProgress
from tests.unit.report.test_junit import cases, report, scenario, why
from tests.unit.report.test_session_page import page, session, visible
from tests.unit.session.figures.rows import Rows, planned

WHOLE, CUT = "what time is it", "time is it"


def asked(number: int, gap_ms: int = 250, evidence: Evidence = Evidence.DEVICE, transcripts: bool = True) -> Trial:
    trial = planned(number)
    reports = (ObservationKind.TRANSCRIPT,) if transcripts else ()
    return replace(trial, recipe=replace(trial.recipe, gap_ms=gap_ms), evidence=evidence, reports=reports)


def requests_after(trial: Trial, *takes: dict[str, object]) -> tuple[GapRequests, ...]:
    rows = Rows.of(trial)
    for number, answer in enumerate(takes, 1):
        rows.trial(trial.id, take=number, **answer)  # type: ignore[arg-type]
    requests = requests_of_session(WholeSession.of(rows.entries).progress.totals.requests, None)
    return dict(requests).get("kitchen", ())


MISHEARD = {"outcome": Outcome.MISHEARD, "recognition": Recognition.NO}
SILENT = {"outcome": Outcome.NO_RESPONSE, "recognition": Recognition.UNKNOWN}
NO_WAKE = {"outcome": Outcome.NO_WAKE, "recognition": Recognition.UNKNOWN}
OPEN = {"outcome": Outcome.INCONCLUSIVE, "recognition": Recognition.UNKNOWN}
UNASKED = {"outcome": Outcome.RESPONDED, "recognition": Recognition.NOT_ASSESSED}


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        ({"heard": WHOLE}, GapRequests(250, Share(1, 1))),
        ({"heard": f"well {WHOLE} now"}, GapRequests(250, Share(1, 1))),
        ({"heard": CUT, **MISHEARD}, GapRequests(250, Share(0, 1))),
        (SILENT, GapRequests(250, Share(0, 1))),
        (NO_WAKE, GapRequests(250, Share(0, 1), unwoken=1)),
        (OPEN, GapRequests(250, Share(), unknown=1)),
        # An operator types what the device said, or guesses it from the answer.
        ({"heard": CUT, "evidence": EvidenceSource.OPERATOR}, GapRequests(250, Share(1, 1), 1)),
        ({"understood": UnderstandingResult(("time",), (), True, True)}, GapRequests(250, Share(1, 1), 1)),
    ],
)
def test_each_outcome_of_a_query_is_counted_by_its_pause(attempt: dict[str, object], expected: GapRequests) -> None:
    assert requests_after(asked(1), attempt) == (expected,)


def test_unjudged_answers_and_silence_are_unknown_requests() -> None:
    trial = asked(1, evidence=Evidence.NONE, transcripts=False)
    for answer in (UNASKED, SILENT, NO_WAKE):
        (requests,) = requests_after(trial, answer)
        assert (requests.whole, requests.unknown) == (Share(), 1)


def test_the_first_attempt_of_the_latest_take_counts() -> None:
    assert requests_after(asked(1), {"heard": WHOLE, "attempts": 2}) == (GapRequests(250, Share(0, 1), 1),)
    taken_again = ({"heard": CUT, **MISHEARD}, {"heard": WHOLE})
    assert requests_after(asked(1), *taken_again) == (GapRequests(250, Share(1, 1)),)


def test_a_query_without_a_wake_phrase_and_an_interrupted_one_have_no_pause() -> None:
    trial = asked(1)
    assert requests_after(replace(trial, recipe=replace(trial.recipe, wake_phrase=None)), {"heard": WHOLE}) == ()
    assert requests_after(trial, {"outcome": Outcome.INTERRUPTED}) == ()


def test_queries_and_commands_of_a_device_are_one_result() -> None:
    queries = (("den", (GapRequests(0, Share(1, 2)),)),)
    wake = WakeProgress((DeviceWake("kitchen"), DeviceWake("den", requests=(GapRequests(0, Share(2, 2)),))))
    assert requests_of_session(queries, wake) == (("den", (GapRequests(0, Share(3, 4)),)),)


def dropping(first_ms: int) -> Rows:
    """Ten queries after each of five pauses, by a device that loses the first milliseconds behind its wake phrase."""
    gaps_ms = (0, 250, 500, 750, 1000)
    trials = [asked(number, gap_ms) for number, gap_ms in enumerate(gaps_ms * 10, 1)]
    rows = Rows.of(*trials)
    for trial in trials:
        whole = trial.recipe.gap_ms >= first_ms
        rows.trial(trial.id, heard=WHOLE if whole else CUT, **({} if whole else MISHEARD))  # type: ignore[arg-type]
    rows.add(SessionFinished(EndReason.COMPLETED))
    return rows


def test_the_pause_is_the_same_wherever_it_is_shown(tmp_path: Path) -> None:
    rows, limits = dropping(400), Limits(max_request_gap_ms=500)
    whole = WholeSession.of(rows.entries)
    lines = [
        "kitchen: 90 % arrive whole after between 250 and 500 ms (95 % interval 250 to 1000 ms)",
        "first 10 of 10 after 500 ms; 50 judged by the words of transcripts",
        "0 ms: 0 of 10, 250 ms: 0 of 10, 500 ms: 10 of 10, 750 ms: 10 of 10, 1000 ms: 10 of 10",
    ]
    summary = "\n".join(results_lines(whole.progress, None, ()))
    assert f"requests             {lines[0]}" in summary
    verdict, shown = page(session(tmp_path / "s", rows, limits))
    for line in lines:
        assert line in summary
        assert line in visible(shown)
    assert verdict.value == "MARGINAL", "the interval reaches beyond the limit"
    assert "pause before the request of kitchenMARGINAL≤ 500 ms500 ms250 to 1000 ms50 requests" in visible(shown)
    (requests,) = as_json(whole, ())["requests"]
    assert requests["shortest_pause_ms"] == {
        "too_short": 250, "enough": 500, "interval": [250.0, 1000.0], "consistent": 500,
    }  # fmt: skip
    assert requests["gaps"][1]["whole"]["total"] == 10
    assert 'requests_whole{session="s1",device="kitchen",gap_ms="500"} 10.0' in prometheus(whole, scenario(limits))
    junit_report = junit.report_of(rows.entries, scenario(limits))
    (suite,) = [suite for suite in junit_report.suites if suite.name == "kitchen.query"]
    assert dict(suite.properties)["request_pause_consistent"] == "first 10 of 10 after 500 ms"
    assert dict(suite.properties)["requests_whole_after_250_ms"] == "0 of 10"
    assert why(cases(junit_report, "limits")["max_request_gap_ms[kitchen]"]) is None


def test_a_device_that_loses_a_second_and_a_half_fails_and_one_without_requests_is_undecided() -> None:
    limit_cases = cases(report(dropping(1500), Limits(max_request_gap_ms=1000)), "limits")
    assert why(limit_cases["max_request_gap_ms[kitchen]"]) == ("failure", "limit")
    assert "≤ 1000 ms: found 1001 ms, fails" in limit_cases["max_request_gap_ms[kitchen]"].output[0]
    rows = Rows.of(asked(1))
    rows.add(SessionFinished(EndReason.COMPLETED))
    nothing = cases(report(rows, Limits(max_request_gap_ms=1000)), "limits")
    assert nothing["max_request_gap_ms"].output == ("pause before the request ≤ 1000 ms: no data, undecided",)
