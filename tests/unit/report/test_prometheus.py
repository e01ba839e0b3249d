"""Metrics of a session: their text form, that their numbers are those of the JSON, and that labels stay labels."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from harness.model.record import AttemptFinished, SessionStarted
from harness.model.scenario import Limits
from harness.model.time import MeasuredDuration
from harness.report.prometheus import METRICS
from harness.report.session import read_session
from harness.report.wake_json import as_json
from tests.command import harness
from tests.unit.report.test_session_page import HOSTILE, session, wake_rows
from tests.unit.session.figures.rows import Rows, planned

LINE = re.compile(r'(voice_harness_[a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)')


def parsed(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    metrics = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            name, labels, value = LINE.fullmatch(line).groups()  # type: ignore[union-attr]
            assert f"# TYPE {name} gauge" in text
            pairs = re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', labels)
            key = name.removeprefix("voice_harness_"), frozenset(pair for pair in pairs if pair[0] != "session")
            assert key not in metrics
            metrics[key] = float(value)
    return metrics


def test_numbers_are_those_of_the_json(tmp_path: Path) -> None:
    folder = session(tmp_path / "s", wake_rows(), Limits(max_false_reject_share=0.9))
    whole = read_session(folder)
    (device,) = as_json(whole, whole.devices)["devices"]
    metrics = parsed(harness("export", folder, "--prometheus", "-").stdout)
    assert {name for name, _ in metrics} <= set(METRICS)

    def result(name: str, end: str = "") -> float:
        return metrics[f"result{end}", frozenset({("device", "kitchen"), ("result", name)})]

    rejects, accepts = device["false_rejects"], device["false_accepts_after_review"]
    assert (result("false_rejects"), result("false_rejects", "_of")) == (rejects["share"], rejects["of"])
    assert tuple(result("false_rejects", end) for end in ("_low", "_high")) == tuple(rejects["interval_95"])
    assert result("false_accepts_per_hour") == accepts["per_hour"]
    assert result("false_accepts_per_hour", "_of") == accepts["hours"]
    assert metrics["verdict", frozenset({("verdict", "PASS")})] == 1
    assert sum(value for (name, _), value in metrics.items() if name == "verdict") == 1
    assert metrics["trials", frozenset({("outcome", "counted")})] == 21


def test_names_of_others_stay_labels_and_a_file_is_written_whole(tmp_path: Path) -> None:
    rows = wake_rows()
    started = rows.entries[0].record
    assert isinstance(started, SessionStarted)
    rows.entries[0] = replace(rows.entries[0], record=replace(started, scenario_id=HOSTILE + '"} 7\n\\'))
    target = tmp_path / "metrics.prom"
    harness("export", session(tmp_path / "s", rows), "--prometheus", target)
    text = target.read_text(encoding="utf-8")
    assert parsed(text)
    assert "\x1b" not in text
    assert r"\"} 7" in text


def test_wake_delays_of_queries_are_exported_like_those_of_wake_trials(tmp_path: Path) -> None:
    rows = Rows.of(planned(0))
    rows.trial("time-0")
    (ended,) = (entry for entry in rows.entries if isinstance(entry.record, AttemptFinished))
    delayed = replace(ended.record, wake_delay=MeasuredDuration(0.2, 0.001))
    rows.entries[ended.seq - 1] = replace(ended, record=delayed)
    metrics = parsed(harness("export", session(tmp_path / "s", rows), "--prometheus", "-").stdout)
    labels = {("device", ""), ("of", "wake_delay")}
    assert metrics["duration_of", frozenset(labels)] == 1
    assert metrics["duration_seconds", frozenset({*labels, ("quantile", "0.5")})] == 0.2
