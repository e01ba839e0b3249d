"""`harness resume` and `harness attach` where nothing is to be played: their status, and the report that they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.model.errors import InputError
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EndReason,
    Record,
    SessionFinished,
    TrialFinished,
    TrialStarted,
)
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.session.engine.prepare import prepare
from harness.session.log.writer import SqliteLog
from tests.unit.report.junit_schema import problems

INPUTS = Path(__file__).parents[2] / "conformance" / "in_process"
OUTCOMES = {Outcome.RESPONDED: Recognition.YES, Outcome.NO_WAKE: Recognition.NO}


def ended(root: Path, outcome: Outcome, reason: EndReason = EndReason.COMPLETED) -> Path:
    """A session of one query, which wants 0.9 of its queries to be recognised."""
    folder = prepare(INPUTS / "deaf.yaml", INPUTS / "bench.yaml", root)
    rows: tuple[Record, ...] = (
        TrialStarted("time.r1", 1),
        AttemptStarted("time.r1", 1, 1, "t1", "s" * 64, 1.0, 2.0, 2.5, None),
        AttemptFinished("time.r1", 1, 1, outcome, OUTCOMES[outcome], EvidenceSource.DEVICE),
        TrialFinished("time.r1", 1, outcome, 1, 1),
        SessionFinished(reason),
    )
    with SqliteLog(folder, now_s=lambda: 1.0, wall_s=lambda: 1_700_000_000.0) as log:
        for row in rows:
            log.append(row)
    return folder


def harness(*arguments: str | Path) -> Result:
    return CliRunner().invoke(group, [str(one) for one in arguments])


def reasons(report: Path) -> list[tuple[str, str]]:
    """Element and type of each verdict that is none of a pass."""
    assert problems(report.read_bytes()) == []
    return [
        (found.tag, found.get("type", ""))
        for case in ElementTree.parse(report).iter("testcase")
        for found in case
        if found.tag in ("failure", "error", "skipped")
    ]


@pytest.mark.parametrize(
    ("outcome", "status", "said"),
    [
        (Outcome.RESPONDED, 0, []),
        (Outcome.NO_WAKE, 1, [("failure", "limit"), ("failure", "no_wake")]),
    ],
)
def test_a_complete_session_is_answered_by_its_limits(
    tmp_path: Path, outcome: Outcome, status: int, said: list[tuple[str, str]]
) -> None:
    folder = ended(tmp_path, outcome)
    found = harness("resume", folder, "--plain", "--junit", tmp_path / "out" / "junit.xml")
    assert found.exit_code == status, found.output
    assert "nothing is left to play" in found.output
    assert ("failed: min_recognised_share" in found.output) is bool(status)
    assert reasons(tmp_path / "out" / "junit.xml") == said


@pytest.mark.parametrize(
    ("verb", "make", "words"),
    [
        ("resume", lambda root: ended(root, Outcome.NO_WAKE, EndReason.ABORTED), "was aborted"),
        ("resume", lambda root: root / "no-such", "is no session"),
        ("attach", lambda root: ended(root, Outcome.RESPONDED), "is not running"),
    ],
)
def test_what_cannot_be_watched_leaves_its_reason_instead_of_an_old_report(
    tmp_path: Path, verb: str, make: Callable[[Path], Path], words: str
) -> None:
    report = tmp_path / "junit.xml"
    report.write_text("<testsuites/>")
    found = harness(verb, make(tmp_path), "--plain", "--junit", report)
    assert words in str(found.exception)
    assert reasons(report) == [("error", "not_begun")]
    assert words in report.read_text(encoding="utf-8")


def test_a_report_of_what_is_not_waited_for_is_refused(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    found = harness("resume", tmp_path, "--no-watch", "--junit", report)
    assert isinstance(found.exception, InputError)
    assert not report.exists()
