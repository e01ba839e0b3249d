"""A session live against offline, as JSON."""

from __future__ import annotations

from dataclasses import asdict

from harness.model.offline import EngineFacts
from harness.model.scenario import TrialKind
from harness.offline.figures.session_comparison import ComparedTrial, DeviceComparison
from harness.statistics.comparison import Discordance, mcnemar
from harness.statistics.exact import garwood
from harness.statistics.latency import LatencyFigures

FORMAT = 1


def document(
    session: str, task: str, facts: EngineFacts, found: list[DeviceComparison], *, continuous: bool
) -> dict[str, object]:
    """Counts, intervals and every trial; a share, a rate or a p over nothing is null."""
    return {
        "format": FORMAT,
        "session": session,
        "task": task,
        "engine": {
            "version": facts.version,
            "fingerprint": facts.fingerprint,
            "operating_point": facts.operating_point,
            "threshold": facts.rule.threshold if facts.rule is not None else None,
            "settings": dict(facts.settings),
        },
        "continuous": continuous,
        "devices": [_device(one) for one in found],
    }


def _device(found: DeviceComparison) -> dict[str, object]:
    ambient = found.ambient
    counts = ambient.counts
    difference = {kind: found.difference(kind) for kind in (TrialKind.WAKE, TrialKind.COMMAND)}
    return {
        "device": found.device,
        "through_air": found.through_air,
        "tables": {
            kind.value: {
                **_table(found.counts(kind)),
                "woke_live_less_offline": None if one is None else [one.value, one.low, one.high],
            }
            for kind, one in difference.items()
        },
        "conditions": [{"condition": name, **_table(cell)} for name, cell in found.conditions],
        "ambient": {
            "segments": ambient.segments,
            "live": _rate(counts.both + counts.only_first, ambient.live_s),
            "offline": _rate(counts.both + counts.only_second, ambient.offline_s),
            "both": counts.both,
            "only_live": counts.only_first,
            "only_offline": counts.only_second,
            "p": mcnemar(counts.only_first, counts.only_second),
            "events": [asdict(one) for one in ambient.events],
        },
        "wake_delay_s": {
            "live": _latency(found.live_delays),
            "offline": _latency(found.offline_delays),
            "live_less_offline": _latency(found.delay_differences),
        },
        "trials": [_trial(one) for one in found.trials],
        "left_out": [{"trial": trial_id, "why": why} for trial_id, why in found.left_out],
    }


def _table(counts: Discordance) -> dict[str, object]:
    return {
        "trials": counts.total,
        "both": counts.both,
        "only_live": counts.only_first,
        "only_offline": counts.only_second,
        "neither": counts.neither,
        "p": counts.p,
    }


def _rate(count: int, exposure_s: float) -> dict[str, object]:
    hours = exposure_s / 3600
    per_hour = count / hours if hours > 0 else None
    return {"count": count, "exposure_s": exposure_s, "per_hour": per_hour, "interval": garwood(count, hours)}


def _latency(figures: LatencyFigures) -> dict[str, object]:
    quantiles = {name: getattr(figures, name) for name in ("p50", "p95", "p99")}
    return {
        "total": figures.total,
        **{name: None if one is None else [one.value_s, one.low_s, one.high_s] for name, one in quantiles.items()},
    }


def _trial(one: ComparedTrial) -> dict[str, object]:
    return {
        "trial": one.trial_id,
        "kind": one.kind.value,
        "conditions": dict(one.conditions),
        "clip": one.clip or None,
        "differs": one.differs,
        **{
            name: {
                "woke": side.woke,
                "delay_s": None if side.delay is None else side.delay.value_s,
                "score": side.score,
                "extra_events": side.extra,
            }
            for name, side in (("live", one.live), ("offline", one.offline))
        },
        "notes": list(one.notes),
    }
