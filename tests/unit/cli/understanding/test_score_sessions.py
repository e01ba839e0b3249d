"""`harness understanding score SESSION…`: what devices understood, from a session's log."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.model.errors import InputError
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Record,
    SessionStarted,
    TrialFinished,
    TrialStarted,
    Understood,
)
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.model.understanding import Slot
from harness.session.log.writer import SqliteLog
from tests.unit.session.figures.test_understood import GOOD, LYON, OPEN, OTHER, SILENT, Asked, asked


def store(folder: Path, plays: dict[str, list[Asked]]) -> Path:
    trials = tuple(asked(name, conditions=(("voice", name[:3]),)) for name in plays)
    rows: list[Record] = [SessionStarted("s1", "frames", "Frames", "a" * 64, "lab", "b" * 64, 0, "wire", (), trials)]
    for name, attempts in plays.items():
        rows.append(TrialStarted(name, 1))
        for number, (outcome, told) in enumerate(attempts, start=1):
            rows.append(AttemptStarted(name, 1, number, f"{name}.{number}", "c" * 64, 1.0, 2.0, 2.5, None))
            none = (Recognition.NOT_ASSESSED, EvidenceSource.NONE)
            rows.append(AttemptFinished(name, 1, number, outcome, *none, understood=told))
        rows.append(TrialFinished(name, 1, attempts[-1][0], len(attempts), len(attempts)))
    folder.mkdir()
    with SqliteLog(folder, wall_s=lambda: 1_800_000_000.0) as log:
        for row in rows:
            log.append(row)
    return folder


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return store(
        tmp_path / "s",
        {"ann1": [GOOD], "ann2": [OTHER, GOOD], "bob1": [SILENT], "bob2": [OPEN]},
    )


def harness(*arguments: str | Path) -> Result:
    runner = CliRunner(env={"COLUMNS": "140"})
    return runner.invoke(group, ["understanding", "score", *map(str, arguments)])


def test_what_devices_understood_is_scored_by_voice(session: Path) -> None:
    done = harness(session, "--by", "voice")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert any(line.startswith("EMR (exact match)") and line.endswith("2 of 3 utterances") for line in lines)
    assert any(line.startswith("slot F1") and "slots have no places" in line for line in lines)
    assert any(line.startswith("SFA  ") and "2 of 3 utterances; slots as lists of concepts" in line for line in lines)
    assert {"ann 2 100.00", "bob 1 0.00"} <= {" ".join(line.split()[:3]) for line in lines}
    assert "attempt       deciding of each trial" in lines
    assert lines[-1] == "unknown       1 (bob2): nothing says what was understood; counted nowhere"


def test_the_first_attempt_is_scored_where_it_is_asked_for(session: Path) -> None:
    done = harness(session, "--attempt", "first", "--min-emr", "50%")
    assert done.exit_code == 1
    assert "EMR (exact match) of devices in" in done.stderr
    assert "is 33.33 %, below 50.00 %" in done.stderr
    assert "by attempt" not in done.stdout


def test_values_count_beside_concepts(tmp_path: Path) -> None:
    other = Understood(("book", "greet"), (Slot("city", "Bern"),), True, False, EvidenceSource.DEVICE)
    assert LYON.value == "Lyon"
    done = harness(store(tmp_path / "s", {"ann1": [(Outcome.MISHEARD, other)], "ann2": [GOOD]}))
    rows = [line.split("  ") for line in done.stdout.splitlines() if line.startswith(("SFA", "CER"))]
    assert [[cell.strip() for cell in row if cell][1] for row in rows] == ["0.00 %", "100.00 %", "50.00 %", "50.00 %"]


def test_a_session_in_which_nobody_knows_what_was_understood_is_refused(tmp_path: Path) -> None:
    done = harness(store(tmp_path / "s", {"ann1": [OPEN]}))
    assert isinstance(done.exception, InputError)
    assert "no trial of this has an intent to score: of 1 (ann1) nothing says what was understood" in str(
        done.exception
    )
