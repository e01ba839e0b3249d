"""The independent model of tests/nights counts what the product counts."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from harness.base.codec import RECORDS
from harness.model.record import Entry
from harness.session.figures.progress import SessionFigures
from harness.wake.wake import WakeFigures
from tests.nights.model import DeviceCount, Recount, Row
from tests.written_sessions import progress_of, wake_of


def rows_of(entries: Iterable[Entry]) -> list[Row]:
    return [
        Row(one.seq, one.run, one.at_s, one.wall_s, one.record.kind, json.loads(RECORDS.dump_json(one.record)))
        for one in entries
    ]


def by_product(entries: list[Entry]) -> dict[str, object]:
    totals, figures = progress_of(entries).totals, wake_of(entries)
    counted: dict[str, object] = {
        "planned": totals.planned,
        "finished": totals.finished,
        "by_outcome": {outcome.value: count for outcome, count in totals.by_outcome},
        "recognised": (totals.recognised.count, totals.recognised.total),
        "first_attempt": (totals.first_attempt.count, totals.first_attempt.total),
        "answered": (totals.answered.count, totals.answered.total),
        "latencies": totals.latency.total,
    }
    for one in figures.snapshot().devices:
        counted[one.device] = {
            "hits": one.hits,
            "wake_trials": one.false_rejects.share.total,
            "double_wakes": one.double_wakes.count,
            "false_accepts": one.false_accepts.count,
            "after_review": one.after_review.count,
            "in_vocabulary_events": one.in_vocabulary_events,
            "suppressed": one.suppressed,
            "exposure_s": pytest.approx(one.exposure_s, abs=1e-6),
            "unproven_s": pytest.approx(one.unproven_s, abs=1e-6),
            "ambient_events_outside": one.ambient_events_outside,
            "uncounted_events": one.uncounted_events,
            "probes": (one.probes.count, one.probes.total),
            "commands": (one.commands.count, one.substituted, one.missed),
            "delays": one.delays.total,
            "p95": None if one.delays.p95 is None else pytest.approx(one.delays.p95.value_s, abs=1e-9),
            "woke": figures.hits(one.device),
            "speakers": one.false_rejects.speakers,
            "decisions": dict(one.decisions),
        }
    return counted


def by_model(entries: list[Entry]) -> dict[str, object]:
    recount = Recount(rows_of(entries))
    totals = recount.totals()
    counted: dict[str, object] = {**totals, "latencies": len(totals.pop("latencies_s"))}
    counted.pop("latencies_s", None)
    for name, device in recount.devices.items():
        counted[name] = of_device(recount, name, device)
    return counted


def of_device(recount: Recount, name: str, device: DeviceCount) -> dict[str, object]:
    count = device.count
    names = (
        "hits", "wake_trials", "double_wakes", "false_accepts", "after_review", "in_vocabulary_events", "suppressed",
        "ambient_events_outside", "uncounted_events",
    )  # fmt: skip
    delays = sorted(device.delays_s)
    return {
        **{key: count[key] for key in names},
        "exposure_s": device.exposure_s,
        "unproven_s": device.unproven_s,
        "probes": (count["probes_heard"], count["probes"]),
        "commands": (count["match"], count["substitution"], count["missed"]),
        "delays": len(delays),
        "p95": delays[-(-95 * len(delays) // 100) - 1] if delays else None,
        "woke": device.woke,
        "speakers": len(device.speakers) if len(device.speakers) > 1 else 0,
        "decisions": {figure: passed for (of, figure), passed in recount.decisions.items() if of == name},
    }


def assert_agree(entries: list[Entry]) -> None:
    model, product = by_model(entries), by_product(entries)
    differences = {}
    for name, value in product.items():
        if isinstance(value, dict) and name != "by_outcome":
            own = model[name]
            of = {key: (own[key], known) for key, known in value.items() if not own[key] == known}  # type: ignore
            if of:
                differences[name] = of
        elif model[name] != value:
            differences[name] = (model[name], value)
    assert not differences, f"(model, product): {differences}"
