"""The first sound after a query or command, a chime included, from the observation to every report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.observation import Earcon, Observation, SpeechEnded, SpeechStarted
from harness.model.record import AttemptFinished, EndReason, SessionFinished
from harness.model.scenario import Limits, TrialKind
from harness.model.time import MeasuredDuration, Stamp
from harness.model.trial import Outcome, Recognition
from harness.report import junit
from harness.report.prometheus import prometheus
from harness.report.session import WholeSession
from harness.report.wake_json import as_json
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import Totals, totals_of
from harness.session.figures.trials import SessionTrials
from harness.session.summary import totals_lines
from harness.statistics.verdict import LimitVerdict
from harness.wake.first_sounds import FirstSounds
from harness.wake.reports.figures_text import device_lines
from harness.wake.wake_progress import DeviceWake, WakeProgress
from tests.known import known
from tests.unit.report.test_junit import cases, scenario, why
from tests.unit.report.test_session_page import page, session, visible
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.session.material import TIMING
from tests.unit.session.rehearsal import Later, says, speech, wake
from tests.unit.session.test_query_trial import RIGHT, WRONG, rehearse
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial

END_S = TIMING.query_end_s


def chime(at_s: float, lag_s: float = 0.4) -> Later:
    return at_s + lag_s, Earcon("mic", Stamp(at_s, 0.01), Stamp(at_s + 0.2, 0.01), -30.0)


@pytest.mark.parametrize(
    ("after", "outcome", "first_s", "latency_s"),
    [
        ([wake(), chime(END_S + 0.2), says(RIGHT), *speech(END_S + 1.0, END_S + 2.0)], "responded", 0.2, 1.0),
        ([wake(), says(RIGHT), *speech(END_S + 1.0, END_S + 2.0)], "responded", 1.0, 1.0),
        # The chime of the wake word comes before the query has ended.
        ([wake(), chime(1.1), says(RIGHT), *speech(END_S + 1.0, END_S + 2.0)], "responded", 1.0, 1.0),
        ([wake(), chime(END_S + 0.3), says(RIGHT)], "no_response", 0.3, None),
        ([wake(), says(RIGHT)], "no_response", None, None),
        ([wake(), says(WRONG), chime(END_S + 0.7)], "misheard", 0.7, None),
        # An answer that began during the query and goes on.
        ([wake(), says(RIGHT), *speech(1.5, END_S + 1.0), chime(END_S + 1.5)], "responded", 1.5 - END_S, 1.5 - END_S),
    ],
)
def test_a_chime_is_a_first_sound_and_no_response(
    after: list[Later], outcome: str, first_s: float | None, latency_s: float | None
) -> None:
    row = rehearse(after).standing()[1]
    assert row.outcome.value == outcome
    assert (row.first_sound and row.first_sound.value_s) == (None if first_s is None else pytest.approx(first_s))
    assert (row.latency and row.latency.value_s) == (None if latency_s is None else pytest.approx(latency_s))
    if row.first_sound is not None:
        assert row.first_sound.error_s == pytest.approx(0.011)


def sounds_of(trial_rows: Rows) -> FirstSounds:
    played = SessionTrials()
    for entry in trial_rows.entries:
        played.add(entry.record)
    return totals_of(played.trials).first_sounds


def asked(*first_sounds_s: float | None, outcome: Outcome = Outcome.RESPONDED, microphone: str = "mic") -> Rows:
    """Queries with a first sound each; None: without any."""
    trials = [replace(planned(number), microphone=microphone) for number in range(1, len(first_sounds_s) + 1)]
    rows = Rows.of(*trials)
    for trial, first_s in zip(trials, first_sounds_s, strict=True):
        answered = outcome.answered and first_s is not None
        rows.trial(
            trial.id,
            outcome if first_s is not None or not outcome.answered else Outcome.NO_RESPONSE,
            Recognition.YES,
            latency_s=1.2 if answered else None,
        )
        last = max(n for n, entry in enumerate(rows.entries) if isinstance(entry.record, AttemptFinished))
        sound = None if first_s is None else MeasuredDuration(first_s, 0.01)
        entry = rows.entries[last]
        rows.entries[last] = replace(entry, record=replace(entry.record, first_sound=sound))  # type: ignore[type-var]
    rows.add(SessionFinished(EndReason.COMPLETED))
    return rows


def test_silence_counts_as_a_sound_of_any_length() -> None:
    sounds = sounds_of(asked(0.2, 0.3, None))
    assert (sounds.soundless, sounds.heard.total, sounds.heard.excluded, sounds.times.excluded) == (1, 2, 0, 1)
    assert str(sounds).endswith("clock error ± 10 ms, n = 2; 1 without a sound")


@pytest.mark.parametrize(
    ("outcome", "microphone", "measured"),
    [
        (Outcome.RESPONDED, "mic", 1),
        (Outcome.MISHEARD, "mic", 1),
        (Outcome.NO_WAKE, "mic", 0),
        (Outcome.INTERRUPTED, "mic", 0),
        (Outcome.RESPONDED, "", 0),
    ],
)
def test_only_queries_that_a_device_may_respond_to_count(outcome: Outcome, microphone: str, measured: int) -> None:
    assert sounds_of(asked(0.2, outcome=outcome, microphone=microphone)).times.measured == measured


def test_a_log_of_an_earlier_version_has_no_first_sounds() -> None:
    rows = Rows.of(*(replace(planned(number), microphone="mic") for number in (1, 2)))
    rows.trial("time-1", latency_s=1.2)
    rows.trial("time-2", Outcome.NO_RESPONSE, latency_s=None)
    assert sounds_of(rows) == FirstSounds()


@pytest.mark.parametrize(
    ("sounds_s", "wanted_ms", "found_ms", "ok"),
    [
        ([0.2] * 20, 500, 200, True),
        ([0.6] * 20, 500, 600, False),
        ([*[0.2] * 39, None], 500, 200, True),
        ([*[0.2] * 19, None], 500, None, False),  # 19 sounds are too few
        ([*[0.2] * 18, None, None], 500, None, False),  # the 95th percentile may be any
    ],
)
def test_the_limit_of_queries_and_of_each_devices_commands(
    sounds_s: list[float | None], wanted_ms: float, found_ms: float | None, ok: bool
) -> None:
    sounds = FirstSounds.of([None if sound_s is None else MeasuredDuration(sound_s, 0.01) for sound_s in sounds_s])
    limits, commands = Limits(max_first_sound_p95_ms=wanted_ms), WakeProgress((DeviceWake("den", first_sounds=sounds),))
    for totals, wake_progress, name in (
        (Totals(first_sounds=sounds), None, "max_first_sound_p95_ms"),
        (Totals(), commands, "max_first_sound_p95_ms[den]"),
    ):
        (verdict,) = check_limits(limits, totals, wake_progress)
        assert (verdict.name, verdict.found, verdict.holds) == (name, found_ms, ok)
    verdicts = check_limits(limits, Totals(first_sounds=sounds), commands)
    assert [verdict.name for verdict in verdicts] == ["max_first_sound_p95_ms", "max_first_sound_p95_ms[den]"]
    (nothing,) = check_limits(limits, Totals(), WakeProgress((DeviceWake("den"),)))
    assert (nothing.name, nothing.verdict) == ("max_first_sound_p95_ms", LimitVerdict.UNDECIDED)


def commanded(
    *sounds: Observation, devices: tuple[str, ...] = ("kitchen",), text: str = "turn on the light"
) -> WakeRows:
    """A command that ends at 11.6 s, and sounds at their times."""
    trial = replace(wake_trial(1, TrialKind.COMMAND, devices, injected=False), microphone="mic")
    rows = rows_of(trial, at_s=9.5)
    rows.play(trial, [("kitchen", 1.3)], words=[("kitchen", 1.9, text)] if text else ())
    for sound in sounds:
        rows.see(sound)
    return rows


def beeps(at_s: float, source: str = "mic") -> Earcon:
    return Earcon(source, Stamp(at_s, 0.01), Stamp(at_s + 0.2), -30.0)


def test_the_first_sound_after_a_command_may_be_heard_after_its_attempt() -> None:
    chimes = [beeps(11.2), beeps(11.9), SpeechStarted("mic", Stamp(12.4), -30.0), SpeechEnded("mic", Stamp(13.0))]
    sounds = commanded(*chimes).device().first_sounds
    assert sounds.soundless == 0
    assert known(sounds.heard.p50).value_s == pytest.approx(0.3)
    assert known(sounds.heard.p50).clock_error_s == pytest.approx(0.01)


def test_a_command_that_was_not_understood_and_sounds_of_others_say_nothing() -> None:
    assert commanded(beeps(11.9), text="").device().first_sounds.times.measured == 0
    assert commanded(beeps(11.9, "another_mic")).device().first_sounds.soundless == 1
    results = commanded(beeps(11.9), devices=("kitchen", "den")).device()
    assert results.first_sounds.times.measured == 0, "the microphone cannot tell which of the devices it was"


def test_the_next_command_takes_no_sound_of_the_one_before() -> None:
    trials = [replace(wake_trial(n, TrialKind.COMMAND, injected=False), microphone="mic") for n in (1, 2)]
    rows = rows_of(*trials, at_s=9.5)
    rows.play(trials[0], [("kitchen", 1.3)], words=[("kitchen", 1.9, "turn on the light")])
    rows.see(beeps(11.9))
    rows.play(trials[1], [("kitchen", 1.3)], words=[("kitchen", 1.9, "turn on the light")])
    sounds = rows.device().first_sounds
    assert (sounds.heard.total, sounds.soundless) == (1, 1)


def test_the_first_sound_is_the_same_wherever_it_is_shown(tmp_path: Path) -> None:
    rows, limits = asked(*[0.2] * 39, None), Limits(max_first_sound_p95_ms=500)
    whole = WholeSession.of(rows.entries)
    words = str(whole.progress.totals.first_sounds)
    assert words.startswith("median 200 ms")
    assert f"first sound          {words}" in totals_lines(whole.progress.totals)
    _, shown = page(session(tmp_path / "s", rows, limits))
    assert f"first sound{words}" in visible(shown)
    assert "first sound, p95" in visible(shown)
    report = as_json(whole, ())["first_sound_s"]
    assert (report["of"], report["without_a_sound"], report["p95"]["value_s"]) == (39, 1, 0.2)
    assert 'of="first_sound",quantile="0.95"} 0.2' in prometheus(whole, scenario(limits))
    junit_report = junit.report_of(rows.entries, scenario(limits))
    assert why(cases(junit_report, "limits")["max_first_sound_p95_ms"]) is None
    assert "first sound: 200 ms ± 10 ms" in cases(junit_report, "kitchen.query")["time-1"].output
    commands = commanded(beeps(11.9))
    assert any(line.startswith("  first sound        median 300 ms") for line in device_lines(commands.progress))
    lines = cases(junit.report_of(commands.entries, scenario()), "kitchen.command")["command-1"].output
    assert "first sound: 300 ms ± 10 ms" in lines
