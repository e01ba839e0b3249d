"""Declared limits against totals."""

import pytest

from harness.model.scenario import Limits
from harness.model.time import Measured
from harness.model.transcript import WordCounts
from harness.model.trial import Outcome
from harness.session.figures.progress import LimitVerdict, Totals, check_limits
from harness.statistics.intervals import Share
from harness.statistics.latency import latency_figures
from harness.transcripts.recognition import WordsHeard
from harness.wake.wake_progress import DeviceWake, WakeProgress


def test_no_limits_no_verdicts() -> None:
    assert check_limits(Limits(), Totals()) == ()


def test_nothing_measured_holds_no_share() -> None:
    verdicts = check_limits(Limits(min_recognised_share=0.0, max_latency_p95_ms=900), Totals())
    assert [(one.found, one.ok) for one in verdicts] == [(None, False), (None, False)]


def test_no_transcripts_hold_no_wer() -> None:
    totals = Totals(first_words=WordsHeard.of([("time", None), ("time", None)]))
    verdicts = check_limits(Limits(max_first_attempt_wer=1.0, max_final_wer=1.0), totals)
    assert [(one.name, one.found, one.ok) for one in verdicts] == [
        ("max_first_attempt_wer", None, False),
        ("max_final_wer", None, False),
    ]


def test_the_wer_is_of_queries_and_of_every_devices_commands() -> None:
    totals = Totals(first_words=WordsHeard.of([("time", WordCounts(correct=3, deletions=1, sentences=1))]))
    devices = (
        DeviceWake("kitchen", words=WordsHeard.of([("time", WordCounts(correct=4, sentences=1))])),
        DeviceWake("den", words=WordsHeard.of([("time", WordCounts(deletions=2, sentences=1)), ("time", None)])),
    )
    (verdict,) = check_limits(Limits(max_first_attempt_wer=0.3), totals, WakeProgress(devices))
    assert verdict == LimitVerdict("max_first_attempt_wer", 0.3, 0.3, True)


def test_nothing_inconclusive_holds() -> None:
    assert check_limits(Limits(max_inconclusive=0), Totals()) == (LimitVerdict("max_inconclusive", 0, 0, True),)


@pytest.mark.parametrize(
    ("limits", "ok"),
    [
        (Limits(min_recognised_share=0.9), True),
        (Limits(min_recognised_share=0.91), False),
        (Limits(min_first_attempt_share=0.5), True),
        (Limits(min_first_attempt_share=0.51), False),
        (Limits(max_latency_p95_ms=800), True),
        (Limits(max_latency_p95_ms=799), False),
        (Limits(max_inconclusive=2), True),
        (Limits(max_inconclusive=1), False),
        (Limits(max_interrupted=1), True),
        (Limits(max_interrupted=0), False),
        (Limits(max_first_attempt_wer=1.5), True),
        (Limits(max_first_attempt_wer=1.49), False),
        (Limits(max_final_wer=0.25), True),
        (Limits(max_final_wer=0.24), False),
    ],
)
def test_each_limit_at_its_edge(limits: Limits, ok: bool) -> None:
    totals = Totals(
        by_outcome=((Outcome.INTERRUPTED, 1), (Outcome.INCONCLUSIVE, 2)),
        recognised=Share(9, 10),
        first_attempt=Share(5, 10),
        latency=latency_figures([Measured(0.8)]),
        first_words=WordsHeard.of([("time", WordCounts(1, 1, 0, 2, 1, 1)), ("time", None)]),
        final_words=WordsHeard.of([("time", WordCounts(2, 0, 0, 1, 1, 1)), ("time", WordCounts(2, 0, 0, 0, 1, 0))]),
    )
    (verdict,) = check_limits(limits, totals)
    assert verdict.ok is ok
