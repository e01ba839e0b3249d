"""A live session as wake-evaluation logs: what stands where, and that a log read back gives the same totals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.record import EventReviewed, ReviewVerdict, StimulusStored, TrialFinished
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.stimulus import Recording
from harness.model.trial import Outcome, Trial
from harness.offline.wake_log import MissedFile, Spot, computed_totals, differences, summary, write
from harness.offline.wake_log_reading import read
from harness.report.session import WholeSession
from harness.report.wake_json import as_json
from harness.report.wake_log_session import wake_log
from harness.wake.reports.figures_text import pairs_with_trials
from harness.wake.wake import comparisons
from tests.command import harness, succeeded
from tests.dashboard.frame_bench import TIMER, some_frames, wanting
from tests.known import known
from tests.unit.session.figures.rows import Rows, clip_of, planned
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial
from tests.written_sessions import written

AMBIENT, COMMAND, WAKE = TrialKind.AMBIENT, TrialKind.COMMAND, TrialKind.WAKE


@pytest.fixture
def rows() -> WakeRows:
    """Two devices: three wake trials, two commands, two minutes of ambient sound, and one trial that was skipped."""
    names = ("kitchen", "den")
    wakes = [wake_trial(number, devices=names) for number in (1, 2, 3)]
    commands = [wake_trial(number, COMMAND, names) for number in (4, 5)]
    ambient = [wake_trial(number, AMBIENT, names) for number in (6, 7)]
    skipped = wake_trial(8, AMBIENT, names)
    wake_rows = rows_of(*wakes, *commands, *ambient, skipped)
    wake_rows.add(StimulusStored("sha-wake-1", clip_of("c1.flac")))
    wake_rows.play(wakes[0], [("kitchen", 0.4), ("kitchen", 1.8), ("den", 1.9)])
    wake_rows.play(wakes[1], [("kitchen", 1.75)])
    wake_rows.play(wakes[2])
    wake_rows.play(commands[0], [("kitchen", 1.3)], words=[("kitchen", 2.6, "turn on the light")])
    wake_rows.play(commands[1], words=[("kitchen", 2.6, 'turn "off" the light')])
    wake_rows.play(ambient[0], [("kitchen", 12.5), ("kitchen", 30.0)])
    wake_rows.play(ambient[1])
    wake_rows.add(TrialFinished(skipped.id, 1, Outcome.SKIPPED, 0, None))
    return wake_rows


def test_a_live_run_is_exported_as_a_wake_log(rows: WakeRows) -> None:
    session = WholeSession.of(rows.entries)
    log = wake_log(session, "kitchen", command_line="harness export x")
    keys = [event.key for event in log.events]
    assert keys == ["INVFA", "INVTA", "INVTX", "INVTA", "INVFR", "CMDTA", "CMDSB", "OOVFA", "OOVFA"]
    accept = log.events[1]
    assert isinstance(accept, Spot)
    assert (accept.file, accept.start_ms, accept.end_ms, accept.phrase) == ("c1.flac", 1000.0, 1800.0, "alexa")
    assert accept.extras == (("x-score", "0.9"), ("x-trial", "wake-1"))
    assert log.events[4] == MissedFile("INVFR", "wake-3", extras=(("x-trial", "wake-3"),))
    mistaken = log.events[6]
    assert isinstance(mistaken, Spot)
    assert (mistaken.phrase, mistaken.reference) == ('turn "off" the light', "turn on the light")
    false = log.events[7]
    assert isinstance(false, Spot)
    assert (false.file, false.end_ms) == ("ambient-6/cafe", 12500.0)
    assert log.about("inv-files") == "5"
    assert log.about("inv-hours") == "0:00:15.500"
    assert log.about("oov-hours") == "0:02:00.000"
    assert log.about("inv/oov-seconds") == "14"
    assert ("x-not-counted", '"ambient-8" skipped') in log.info
    assert dict(log.totals) == pytest.approx(
        {
            "FACOUNT": 2, "FARATE": 60, "FRCOUNT": 1, "FRRATIO": 20, "FR+SBCOUNT": 2, "FR+SBRATIO": 40, "TACOUNT": 3,
        }
    )  # fmt: skip
    assert summary(log).startswith("7 files, 0.038 hr, 2 FA 60.00/hr, 40.00% FR, 3 TA, ")


def test_reviews_change_counts_on_request(rows: WakeRows) -> None:
    first = WholeSession.of(rows.entries).wake.unmatched("kitchen")[1]
    rows.add(EventReviewed(first.seq, ReviewVerdict.REAL_PERSON, "ann"))
    session = WholeSession.of(rows.entries)
    before, after = wake_log(session, "kitchen"), wake_log(session, "kitchen", reviewed=True)
    assert (dict(before.totals)["FACOUNT"], dict(after.totals)["FACOUNT"]) == (2, 1)
    assert [detail for name, detail in before.info if name == "x-event"] == []
    aside = [detail for name, detail in after.info if name == "x-event"]
    assert len(aside) == 1
    assert "real_person" in aside[0]


def test_in_vocabulary_false_accepts_of_a_run_that_counts_them() -> None:
    settings = WakeSettings(count_in_vocabulary=True)
    wake, ambient = wake_trial(1, settings=settings), wake_trial(2, AMBIENT, settings=settings)
    rows = rows_of(wake, ambient)
    rows.play(wake, [("kitchen", 0.4), ("kitchen", 1.9)])
    rows.play(ambient, [("kitchen", 3.0)])
    log = wake_log(WholeSession.of(rows.entries), "kitchen")
    assert log.about("x-false-accept-rate") == "(OOVFA + INVFA) / (oov-hours + inv/oov-hours)"
    figures = rows.device()
    assert dict(log.totals)["FACOUNT"] == figures.false_accepts.count == 2
    assert dict(log.totals)["FARATE"] == pytest.approx(figures.false_accepts.per_hour)


def test_events_that_do_not_count_are_listed(rows: WakeRows) -> None:
    trial = wake_trial(9, AMBIENT)
    ambient_rows = rows_of(trial)
    ambient_rows.play(trial, [("kitchen", 3.0)], outcome=Outcome.INTERRUPTED, finish=False)
    ambient_rows.play(trial, attempt=2)
    log = wake_log(WholeSession.of(ambient_rows.entries), "kitchen")
    assert dict(log.totals)["FACOUNT"] == 0
    assert [detail.split()[-1] for name, detail in log.info if name == "x-event"] == ["outside_exposure"]


def test_devices_are_compared_on_the_same_stimuli(rows: WakeRows) -> None:
    (comparison,) = comparisons(rows.figures)
    counts = comparison.counts
    assert (counts.both, counts.only_first, counts.only_second, counts.neither) == (1, 1, 0, 1)
    assert comparison.only_first == ("wake-2",)
    assert counts.p == 1.0
    assert known(comparison.rates).p == pytest.approx(0.5)
    differ = "den is not shown to differ from kitchen: den minus kitchen"
    assert list(pairs_with_trials([comparison]))[1:] == [
        f"  share heard        {differ} -33.33 points (-71.78 to +31.58), p = 1.000 (McNemar)",
        f"  false accepts      {differ} -60.0 per hour (-217 to +62.6), p = 0.500 (two Poisson rates)",
        "  only kitchen: wake-2",
    ]
    assert list(pairs_with_trials([comparison] * 2))[-1] == "p-values are not corrected for the number of pairs"


def test_a_device_that_is_not_there_is_refused(rows: WakeRows) -> None:
    session = WholeSession.of(rows.entries)
    assert session.demand_devices(None) == ("kitchen", "den")
    with pytest.raises(InputError, match="no device"):
        session.demand_devices("attic")
    with pytest.raises(InputError, match="no plan"):
        WholeSession.of([])


kinds = st.sampled_from([WAKE, COMMAND, AMBIENT])
offsets = st.lists(st.integers(0, 3000).map(lambda n: n / 1000), max_size=4)


@given(
    st.lists(st.tuples(kinds, offsets, offsets, st.sampled_from(["", "turn on the light", "lights"])), max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_a_log_read_back_gives_the_same_totals(
    plays: list[tuple[TrialKind, list[float], list[float], str]], with_u: bool, reviewed: bool
) -> None:
    settings = WakeSettings(count_in_vocabulary=with_u)
    trials: list[Trial] = [
        wake_trial(number, kind, ("kitchen", "den"), settings=settings) for number, (kind, *_) in enumerate(plays)
    ]
    rows = rows_of(*trials, wake_trial(99, devices=("kitchen", "den"), settings=settings))
    for trial, (_, kitchen, den, phrase) in zip(trials, plays, strict=True):
        events = [("kitchen", time_s) for time_s in kitchen] + [("den", time_s) for time_s in den]
        rows.play(trial, events, words=[("den", 2.8, phrase)] if phrase else [])
    session = WholeSession.of(rows.entries)
    for device in ("kitchen", "den"):
        log = wake_log(session, device, reviewed=reviewed)
        back = read(write(log))
        assert differences(back) == ()
        assert computed_totals(back) == pytest.approx(dict(log.totals))
        figures = rows.device(device)
        totals = computed_totals(back)
        assert totals.get("FACOUNT", 0) == figures.false_accepts.count
        keys = [event.key for event in back.events]
        assert (keys.count("INVTA"), keys.count("INVFR")) == (figures.hits, figures.false_rejects.share.count)
        assert keys.count("INVFA") == figures.in_vocabulary_events
        assert keys.count("CMDTA") == figures.commands.count


@pytest.fixture
def folder(rows: WakeRows, tmp_path: Path) -> Path:
    session_folder = tmp_path / "s1"
    return written(session_folder, rows)


def test_export_writes_one_log_a_device(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = succeeded(harness("export", folder, "--wake-log"))
    assert 'Writing log to "s1.kitchen.log"' in result.output
    assert "only kitchen: wake-2" in result.output
    back = read((tmp_path / "s1.kitchen.log").read_text(encoding="utf-8"))
    assert dict(back.totals)["TACOUNT"] == 3
    assert (tmp_path / "s1.den.log").exists()


def test_export_to_standard_output_is_the_log_alone(folder: Path) -> None:
    result = succeeded(harness("export", folder, "--wake-log", "-", "--device", "den"))
    assert dict(read(result.stdout).totals)["TACOUNT"] == 1


def test_export_writes_json_for_each_device(folder: Path) -> None:
    result = succeeded(harness("export", folder, "--json"))
    report = json.loads(result.stdout)
    assert [device["device"] for device in report["devices"]] == ["kitchen", "den"]
    assert report["devices"][0]["false_accepts_before_review"]["count"] == 2
    assert report["devices"][0]["false_rejects"]["clopper_pearson"] is not None
    assert report["comparisons"][0]["only_first"] == ["wake-2"]


def test_two_devices_do_not_fit_into_one_file(folder: Path) -> None:
    result = harness("export", folder, "--wake-log", "x.log")
    assert isinstance(result.exception, InputError)
    assert "--device" in str(result.exception)


def test_json_of_a_session_without_exposure_has_no_rate() -> None:
    trial = wake_trial(1)
    rows = rows_of(trial)
    report = as_json(WholeSession.of(rows.entries), ("kitchen",))
    device = report["devices"][0]
    assert device["false_accepts_after_review"]["per_hour"] is None
    assert device["false_rejects"]["share"] is None
    assert device["log_totals"] == {}


def understood(rows: Rows) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(json.dumps(as_json(WholeSession.of(rows.entries), ())))["understood"]
    return report


def test_json_has_frame_counts_of_every_attempt(tmp_path: Path) -> None:
    report = understood(some_frames(tmp_path))
    assert (report["frames"]["right"], report["frames"]["of"], report["frames"]["value"]) == (3, 4, 0.75)
    assert report["first_attempt"]["frames"]["right"] == 2
    assert report["first_attempt"]["intents"]["right"] == 3
    assert report["attempts"] == [
        {"attempts": 1, "trials": 2, "of": 4},
        {"attempts": 2, "trials": 1, "of": 4},
        {"attempts": None, "trials": 1, "of": 4},
    ]
    timer = report["trials"][0]
    assert timer["expected"] == {"intents": ["set_timer"], "slots": [{"concept": "duration", "value": "10 minutes"}]}
    assert [(attempt["attempt"], attempt["intents_right"], attempt["right"]) for attempt in timer["attempts"]] == [
        (1, True, False),
        (2, True, True),
    ]
    assert timer["attempts"][0]["parts"] == [
        {"mark": "right", "intent": "set_timer"},
        {"mark": "other value", "slot": "duration", "value": "15 minutes", "wanted": "10 minutes"},
    ]
    assert report["trials"][4] == {
        "trial": "read_list",
        "device": "kitchen",
        "expected": {"intents": ["read_list"], "slots": None},
        "outcome": None,
        "attempts": [],
    }


def test_unknown_understanding_is_null() -> None:
    rows = Rows.of(wanting(1, "set a timer", "timer", TIMER))
    rows.trial("timer", Outcome.NO_WAKE, latency_s=None)
    report = understood(rows)
    assert report["trials"][0]["attempts"] == [{"attempt": 1, "understood": None, "intents_right": None, "right": None}]
    # … but a device that did not wake has not understood.
    assert (report["frames"]["right"], report["frames"]["of"]) == (0, 1)
    nothing = Rows.of(planned(1))
    empty = understood(nothing)
    assert empty["frames"] == {"right": 0, "of": 0, "value": None, "interval": None}
    assert empty["trials"] == []


def test_exports_have_the_interval_over_voices() -> None:
    """Ann is heard, Ben is not; then nobody knows who speaks."""
    for talkers, units, voices, unknown in (
        (("ann", "ben"), "over 2 voices", 2, False),
        (("ann", ""), "over 2 voices, unknown talkers counted as one", 2, True),
        (("", ""), "Clopper-Pearson, talkers unknown", 0, True),
    ):
        trials = [
            replace(trial, recipe=replace(trial.recipe, query=Recording(f"/said/{trial.id}.wav")))
            for number, talker in enumerate(talkers)
            for trial in [wake_trial(number, conditions=(("talker", talker),))]
        ]
        rows = rows_of(*trials)
        rows.play(trials[0], [("kitchen", 1.8)])
        rows.play(trials[1], [])
        session = WholeSession.of(rows.entries)
        low, high = known(rows.device().false_rejects.interval)
        assert wake_log(session, "kitchen").about("x-frratio-interval") == (
            f"{100 * low:.4f} to {100 * high:.4f} %, {units}, 95 %"
        )
        (device,) = as_json(session, ("kitchen",))["devices"]
        rejects = device["false_rejects"]
        assert (rejects["speakers"], rejects["talkers_unknown"]) == (voices, unknown)
        assert rejects["interval_95"] == (low, high)


def test_a_device_that_hears_one_voice_has_its_exact_interval_beside_a_device_that_hears_another() -> None:
    trials = [
        wake_trial(number, devices=(device,), conditions=(("talker", talker),))
        for number, (device, talker) in enumerate((("kitchen", "ann"), ("hall", "ben")))
    ]
    rows = rows_of(*trials)
    for trial in trials:
        rows.play(trial, [(trial.device, 1.8)])
    low, high = known(rows.device("kitchen").false_rejects.interval)
    interval = wake_log(WholeSession.of(rows.entries), "kitchen").about("x-frratio-interval")
    assert interval == f"{100 * low:.4f} to {100 * high:.4f} %, Clopper-Pearson, 95 %"


def test_a_probe_counts_as_nothing_else_with_count_in_vocabulary() -> None:
    settings = WakeSettings(count_in_vocabulary=True)
    probe, soak = (
        wake_trial(number, kind, settings=settings) for number, kind in ((1, TrialKind.PROBE), (2, TrialKind.AMBIENT))
    )
    rows = rows_of(probe, soak)
    rows.play(probe, [("kitchen", 0.2), ("kitchen", 1.7), ("kitchen", 3.05)])
    rows.play(soak)
    whole = WholeSession.of(rows.entries)
    (device,) = whole.wake.snapshot().devices
    assert (device.after_review.count, device.exposure_s, device.uncounted_events) == (0, 60.0, 1)
    log = wake_log(whole, "kitchen")
    assert dict(log.totals)["FACOUNT"] == 0
    assert [key for key, _ in log.info].count("x-event") == 1
