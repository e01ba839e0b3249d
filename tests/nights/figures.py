"""The product's figures of a session, in the form in which tests.nights.verdicts counts them anew."""

from __future__ import annotations

from typing import Any

from harness.model.scenario import Limits, Stopping, TrialKind
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import Totals
from harness.wake.wake import WakeFigures
from harness.wake.wake_progress import DeviceWake

Json = dict[str, Any]


def figures_of(wake: WakeFigures, totals: Totals, limits: Limits, stopping: Stopping) -> Json:
    """Of the rows that both were fed with."""
    progress = wake.snapshot()
    verdicts = check_limits(limits, totals, progress, stopping)
    return {
        "totals": {
            "planned": totals.planned,
            "finished": totals.finished,
            "by_outcome": {outcome.value: count for outcome, count in totals.by_outcome},
            "recognised": (totals.recognised.count, totals.recognised.total),
            "first_attempt": (totals.first_attempt.count, totals.first_attempt.total),
            "answered": (totals.answered.count, totals.answered.total),
            "disturbed": (totals.disturbed.count, totals.disturbed.total),
            "latencies": totals.latency.total,
            "latency_p95_s": None if totals.latency.p95 is None else totals.latency.p95.value_s,
            "latency_p95_low_s": None if totals.latency.p95 is None else totals.latency.p95.low_s,
            "latency_p95_between_s": totals.latency.p95_between_s if totals.latency.measured else None,
        },
        "limits": {verdict.name: (verdict.found, not verdict.fails_run) for verdict in verdicts},
        "devices": {device.device: _of_device(device, wake) for device in progress.devices},
    }


def _of_device(device: DeviceWake, wake: WakeFigures) -> Json:
    plays = [play for play in wake.plays(device.device) if play.kind is not TrialKind.AMBIENT]
    return {
        "hits": device.hits,
        "wake_trials": device.false_rejects.share.total,
        "speakers": device.false_rejects.voices or 0,
        "double_wakes": device.double_wakes.count,
        "false_accepts": device.false_accepts.count,
        "after_review": device.after_review.count,
        "suppressed": device.suppressed,
        "unaccounted": wake.unaccounted().get(device.device, 0),
        "in_vocabulary_events": device.in_vocabulary_events,
        "ambient_events_outside": device.ambient_events_outside,
        "uncounted_events": device.uncounted_events,
        "exposure_s": device.exposure_s,
        "unproven_s": device.unproven_s,
        "probes": (device.probes.count, device.probes.total),
        "commands": (device.commands.count, device.substituted, device.missed),
        "delays": device.delays.total,
        "delay_p95_s": None if device.delays.p95 is None else device.delays.p95.value_s,
        "delay_p95_low_s": None if device.delays.p95 is None else device.delays.p95.low_s,
        "delay_p95_between_s": device.delays.p95_between_s if device.delays.measured else None,
        "decisions": dict(device.decisions),
        "woke": {play.trial.id: play.reading.hit.seq if play.reading.hit else None for play in plays},
        "unmatched": {event.seq: (event.in_vocabulary, event.exposed) for event in wake.unmatched(device.device)},
    }
