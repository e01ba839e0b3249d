"""A session's figures as JSON: exact counts and times, intervals, every unmatched event, the comparison."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.report.comparison import Comparison, compare_devices
from harness.report.frames_json import as_json as frames_as_json
from harness.report.heard_json import as_json as heard_as_json
from harness.report.wake_log_session import wake_log
from harness.report.wake_session import WakeSession
from harness.statistics.intervals import clopper_pearson
from harness.statistics.latency import LatencyFigures
from harness.wake.wake_plays import Play
from harness.wake.wake_progress import DeviceWake, Rate, Ratio, WakeEvent

Json = dict[str, Any]


def as_json(session: WakeSession, devices: tuple[str, ...], *, reviewed: bool = False) -> Json:
    """One object for a session; rates over nothing are null."""
    found = {one.device: one for one in session.progress.devices}
    return {
        "session": session.started.session_id,
        "scenario": {"id": session.started.scenario_id, "sha256": session.started.scenario_sha256},
        "seed": session.started.seed,
        "settings": asdict(session.figures.settings),
        "reviewed": reviewed,
        "planned": session.progress.planned,
        "counted": session.progress.counted,
        "boards": [
            {"device": one.source, "firmware": one.firmware, "serial": one.serial} for one in session.asked.boards
        ],
        "devices": [_device(session, found[name], reviewed) for name in devices],
        "heard": heard_as_json(session.asked, session.figures),
        "understood": frames_as_json(session.asked),
        "comparisons": [_comparison(one) for one in compare_devices(session.figures)],
    }


def _device(session: WakeSession, one: DeviceWake, reviewed: bool) -> Json:
    return {
        "device": one.device,
        "false_rejects": _ratio(one.false_rejects),
        "false_accepts_before_review": _rate(one.false_accepts),
        "false_accepts_after_review": _rate(one.after_review),
        "commands": {
            "understood": one.commands.count,
            "of": one.commands.total,
            "substituted": one.substituted,
            "missed": one.missed,
            "words": asdict(one.words.counts) | {"attempts": one.words.attempts},
        },
        "exposure_s": one.exposure_s,
        "unproven_s": one.unproven_s,
        "suppressed": one.suppressed,
        "events_outside_exposure": one.ambient_events_outside,
        "events_in_trials_that_do_not_count": one.uncounted_events,
        "delay_s": _delays(one.delays),
        "clock_error_s": one.clock_error_s,
        "decisions": dict(one.decisions),
        "conditions": {name: _ratio(ratio) for name, ratio in one.conditions},
        "log_totals": dict(wake_log(session, one.device, reviewed=reviewed).totals),
        "trials": [_trial(play) for play in session.figures.plays(one.device)],
        "unmatched_events": [_event(event) for event in session.figures.unmatched(one.device)],
    }


def _ratio(ratio: Ratio) -> Json:
    return {
        "count": ratio.share.count,
        "of": ratio.share.total,
        "share": ratio.share.value,
        "interval_95": ratio.interval,
        "speakers": ratio.speakers,
        "clopper_pearson": clopper_pearson(ratio.share.count, ratio.share.total),
        "wilson": ratio.share.interval,
        "any_time": ratio.any_time,
    }


def _rate(rate: Rate) -> Json:
    return {
        "count": rate.count,
        "hours": rate.hours,
        "per_hour": rate.per_hour,
        "garwood": rate.interval,
        "any_time": rate.any_time,
    }


def _delays(delays: LatencyFigures) -> Json:
    return {
        "of": delays.total,
        "p50": None if delays.p50 is None else asdict(delays.p50),
        "p95": None if delays.p95 is None else asdict(delays.p95),
        "p99": None if delays.p99 is None else asdict(delays.p99),
    }


def _trial(play: Play) -> Json:
    reading = play.reading
    return {
        "trial": play.trial.id,
        "kind": play.kind.value,
        "take": play.row.take,
        "conditions": dict(play.trial.conditions),
        "recording": play.trial.recording or None,
        "stimulus_sha256": play.row.stimulus_sha256,
        "woke": reading.hit is not None,
        "delay_s": None if reading.delay is None else reading.delay.value_s,
        "command": None if reading.command is None else reading.command.value,
        "heard": reading.heard,
        "words": None if reading.counts is None else asdict(reading.counts),
        "exposure_s": reading.exposure_s,
        "unmatched_rows": [event.seq for event in reading.unmatched],
    }


def _event(event: WakeEvent) -> Json:
    return {
        "row": event.seq,
        "trial": event.trial_id,
        "phrase": event.phrase,
        "score": event.score,
        "offset_s": event.offset_s,
        "audio_s": event.audio_s,
        "wall_s": event.wall_s,
        "in_vocabulary": event.in_vocabulary,
        "exposed": event.exposed,
        "rule": event.rule,
        "why": event.why,
        "word": event.word,
        "reviewed_by": event.reviewed_by,
        "clip": None if event.clip is None else event.clip.name,
    }


def _comparison(one: Comparison) -> Json:
    return asdict(one) | {"mcnemar_p": one.counts.p}
