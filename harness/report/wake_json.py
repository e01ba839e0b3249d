"""A session's results as JSON: counts, times, intervals, words, frames, unmatched events, comparison."""

from __future__ import annotations

from dataclasses import asdict

from harness.base.plain_json import Json, picked, to_plain
from harness.model.choices import Grouping
from harness.model.time import Stamp
from harness.model.trial import Trial
from harness.model.understanding import Slot
from harness.report.session import WholeSession
from harness.report.wake_log_session import wake_log
from harness.session.figures.progress import Progress, normalisation_of
from harness.session.figures.requests import requests_of_session
from harness.session.figures.trials import (
    AttemptProgress,
    FirstAndFinalWords,
    TrialProgress,
    by_group,
    heard_in,
    tested_attempts,
    words_of,
)
from harness.statistics.intervals import LatencyFigures, Share, clopper_pearson
from harness.transcripts.recognition import GroupTranscripts
from harness.transcripts.reports.scoring_json import counts_of
from harness.understanding.reported_frames import FramePart, parts_of
from harness.wake.first_sounds import FirstSounds
from harness.wake.requests import GapRequests, shortest_pause
from harness.wake.wake import DevicePair, WakeFigures, comparisons
from harness.wake.wake_plays import Play
from harness.wake.wake_progress import DeviceWake, Rate, Ratio, Recovery, UnmatchedWake


def as_json(session: WholeSession, devices: tuple[str, ...], *, reviewed: bool = False) -> Json:
    """One object for a session. A rate without trials is null. reviewed: whether false accepts are counted after
    review."""
    wake, started = session.wake.snapshot(), session.started
    device_by_name = {device.device: device for device in wake.devices}
    return {
        "session": started.session_id,
        "scenario": {"id": started.scenario_id, "sha256": started.scenario_sha256},
        "seed": started.seed,
        "settings": asdict(session.wake.settings),
        "reviewed": reviewed,
        **picked(wake, "planned", "counted"),
        "boards": [
            {"device": board.source, **picked(board, "firmware", "serial")} for board in session.progress.boards
        ],
        "device_settings": [
            {"device": source, "name": name, "value": value} for source, name, value in session.settings
        ],
        "devices": [_device_json(session, device_by_name[name], reviewed) for name in devices],
        "heard": _words_by_group_json(session.progress, session.wake),
        "understood": _frames_json(session.progress),
        "first_sound_s": _first_sounds_json(session.progress.totals.first_sounds),
        "requests": [
            _requests_json(*requests) for requests in requests_of_session(session.progress.totals.requests, wake)
        ],
        "self_wakes": [
            {"device": self_wake.device, "own": _share_json(self_wake.own), "others": _share_json(self_wake.others)}
            for self_wake in session.progress.self_wakes
        ],
        "comparisons": [_comparison_json(pair) for pair in comparisons(session.wake, every_pair=True)],
    }


def _device_json(session: WholeSession, device: DeviceWake, reviewed: bool) -> Json:
    return {
        "device": device.device,
        "false_rejects": _ratio_json(device.false_rejects),
        "double_wakes": _counted_json(device.double_wakes),
        "false_accepts_before_review": _rate_json(device.false_accepts),
        "false_accepts_after_review": _rate_json(device.after_review),
        "commands": {
            "understood": device.commands.count,
            "of": device.commands.total,
            "substituted": device.substituted,
            "missed": device.missed,
            "words": asdict(device.words.counts) | {"attempts": device.words.attempts},
        },
        **picked(device, "exposure_s", "unproven_s", "suppressed"),
        "events_outside_exposure": device.ambient_events_outside,
        "events_in_trials_that_do_not_count": device.uncounted_events,
        "first_sound_s": _first_sounds_json(device.first_sounds),
        "delay_s": _times_json(device.delays, "p50", "p95", "p99"),
        "recoveries": [_recovery_json(recovery) for recovery in device.recoveries],
        "inferred_events": dict(device.inferred),
        "source_events": device.source_events,
        "source_disagreements": [asdict(disagreement) for disagreement in device.disagreements],
        "clock_error_s": device.clock_error_s,
        "decisions": dict(device.decisions),
        "conditions": {name: _ratio_json(ratio) for name, ratio in device.conditions},
        "log_totals": dict(wake_log(session, device.device, reviewed=reviewed).totals),
        "trials": [_play_json(play) for play in session.wake.plays(device.device)],
        "unmatched_events": [_event_json(event) for event in session.wake.unmatched(device.device)],
    }


def _ratio_json(ratio: Ratio) -> Json:
    return {
        "count": ratio.share.count,
        "of": ratio.share.total,
        "share": ratio.share.value,
        "interval_95": ratio.interval,
        "speakers": ratio.voices or 0,
        "talkers_unknown": ratio.speakers.unknown,
        "clopper_pearson": clopper_pearson(ratio.share.count, ratio.share.total),
        "wilson": ratio.share.interval,
        "any_time": ratio.any_time,
    }


def _recovery_json(recovery: Recovery) -> Json:
    failed, succeeded = recovery.bracket_of_half
    return {
        "after": recovery.say or None,
        "not_within_s": None if failed is None else failed[0],
        "within_s": None if succeeded is None else succeeded[0],
        "heard": [{"pause_s": pause_s, **_counted_json(share)} for pause_s, share in recovery.results],
    }


def _first_sounds_json(sounds: FirstSounds) -> Json:
    return {**_times_json(sounds.heard, "p50", "p95", "p99"), "without_a_sound": sounds.soundless}


def _times_json(latency: LatencyFigures, *figures: str) -> Json:
    return {"of": latency.total, **picked(latency, "excluded", *figures)}


def _requests_json(device: str, gaps: tuple[GapRequests, ...]) -> Json:
    pause = shortest_pause(gaps)
    return {
        "device": device,
        "shortest_pause_ms": to_plain(pause),
        "gaps": [
            {**picked(gap, "gap_ms", "by_response", "unknown", "unwoken"), "whole": _counted_json(gap.whole)}
            for gap in gaps
        ],
    }


def _counted_json(share: Share) -> Json:
    return {**asdict(share), "interval_95": share.interval}


def _rate_json(rate: Rate) -> Json:
    return {**picked(rate, "count", "hours", "per_hour"), "garwood": rate.interval, "any_time": rate.any_time}


def _play_json(play: Play) -> Json:
    reading = play.reading
    return {
        "trial": play.trial.id,
        "kind": play.kind.value,
        "take": play.row.take,
        "conditions": dict(play.trial.conditions),
        "recording": play.trial.recording or None,
        "stimulus_sha256": play.row.stimulus_sha256,
        "woke": reading.hit is not None,
        "inferred": "" if reading.hit is None else reading.hit.inferred,
        "delay_s": None if reading.delay is None else reading.delay.value_s,
        "command": to_plain(reading.command),
        "heard": reading.heard,
        "words": to_plain(reading.counts),
        "exposure_s": reading.exposure_s,
        "unmatched_rows": [event.seq for event in reading.unmatched],
        "sources": [
            _source_json(play.target.label(report.source), report.at, report.seq, report.inferred)
            for report in (reading.hit.reports if reading.hit is not None else ())
        ],
    }


def _event_json(event: UnmatchedWake) -> Json:
    clip = None if event.clip is None else event.clip.name
    sources = [_source_json(report.source, report.at, report.seq, report.inferred) for report in event.sources]
    return {
        "row": event.seq,
        "trial": event.trial_id,
        **picked(event, "phrase", "score", "offset_s", "audio_s", "wall_s", "in_vocabulary", "exposed", "rule", "why"),
        "word": to_plain(event.verdict),
        **picked(event, "reviewed_by", "inferred"),
        "clip": clip,
        "sources": sources,
    }


def _source_json(name: str, stamp: Stamp, seq: int, inferred: str) -> Json:
    """The report of an event by one of a device's sources: its time in session seconds, and its row in the log."""
    return {"source": name, "at_s": stamp.at_s, "error_s": stamp.error_s, "row": seq, "inferred": inferred}


def _comparison_json(pair: DevicePair) -> Json:
    fields: Json = to_plain(pair)
    del fields["accepts"], fields["lag"]
    return fields | {
        "rates_p": None if pair.rates is None else pair.rates.p,
        "mcnemar_p": pair.counts.p,
        "later_s": _times_json(pair.lag, "error_s", "p50"),
    }


def _words_by_group_json(progress: Progress, wake: WakeFigures) -> Json:
    """Results on words, of queries and commands together. A WER over no words is null, and so is a missing label."""
    trials = heard_in(progress.trials, wake)
    return {
        "normalisation": normalisation_of(progress),
        "totals": _first_and_final_json(words_of(trials)),
        "attempts_to_recognition": _attempts_json(progress.totals.attempts_needed),
        "by": {
            grouping.value: [
                {"label": label or None, **_first_and_final_json(group)} for label, group in by_group(trials, grouping)
            ]
            for grouping in Grouping
        },
    }


def _attempts_json(shares: tuple[tuple[int | None, Share], ...]) -> list[Json]:
    return [{"attempts": attempts, "trials": share.count, "of": share.total} for attempts, share in shares]


def _first_and_final_json(heard: FirstAndFinalWords) -> Json:
    return {"first": _words_json(heard.first), "final": _words_json(heard.final)}


def _words_json(words: GroupTranscripts) -> Json:
    counts = words.counts
    return {
        **counts_of(counts),
        **picked(words, "attempts", "typed"),
        "wer": counts.wer,
        "interval": words.interval,
        "interval_over": None if words.interval is None else words.unit.value,
    }


def _frames_json(progress: Progress) -> Json:
    """Results on frames. A share of nothing has the value null, and so have unknown values of an attempt."""
    frames = progress.totals.understood
    return {
        "frames": _share_json(frames.right),
        "intents": _share_json(frames.intents),
        "first_attempt": {"frames": _share_json(frames.first_right), "intents": _share_json(frames.first_intents)},
        "attempts": _attempts_json(frames.attempts_needed),
        "not_known": frames.unknown,
        "trials": [_understood_trial_json(trial) for trial in progress.trials if trial.trial.expects is not None],
    }


def _understood_trial_json(trial: TrialProgress) -> Json:
    expected, take = trial.trial.expects, trial.counting
    return {
        "trial": trial.trial.id,
        "device": trial.trial.device,
        "expected": None if expected is None else _frame_json(expected.intents, expected.slots),
        "outcome": None if take is None else to_plain(take.outcome),
        "attempts": [_attempt_json(trial.trial, attempt) for attempt in (tested_attempts(take) if take else ())],
    }


def _attempt_json(trial: Trial, attempt: AttemptProgress) -> Json:
    verdict = attempt.verdict
    understanding = verdict.understood if verdict else None
    if verdict is None or understanding is None:
        return {"attempt": attempt.attempt, "understood": None, "intents_right": None, "right": None}
    return {
        "attempt": attempt.attempt,
        "understood": None
        if understanding.intents is None
        else _frame_json(understanding.intents, understanding.slots),
        **picked(understanding, "intents_right", "right", "source"),
        "parts": [_part_json(part) for part in parts_of(trial, verdict)],
    }


def _part_json(part: FramePart) -> Json:
    """An intent or a slot of a frame."""
    fields: Json = {"mark": part.mark.value}
    if part.is_slot:
        fields |= {"slot": part.name, "value": part.value}
    else:
        fields |= {"intent": part.name}
    if part.wanted is not None:
        fields |= {"wanted": part.wanted}
    return fields


def _frame_json(intents: tuple[str, ...], slots: tuple[Slot, ...] | None) -> Json:
    slot_objects = None if slots is None else [{"concept": slot.concept, "value": slot.value} for slot in slots]
    return {"intents": list(intents), "slots": slot_objects}


def _share_json(share: Share) -> Json:
    return {"right": share.count, "of": share.total, "value": share.value, "interval": share.interval}
