"""`harness effects`, and what `harness show` says of effects, on sessions that rows were written for."""

from __future__ import annotations

import json
import os
import pty
import select
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.cli.effects import due_text, duration_text, effects_of
from harness.model.effect import EffectCheck, EffectEvidence, EffectOutcome, EffectSource
from harness.model.errors import InputError
from harness.model.judgment import Judgment, JudgmentStatus
from harness.model.record import EffectAnswered, JudgmentGiven
from harness.rating.judgment_log import JudgmentLog
from harness.session.effect_items import HELD_QUESTION, effect_lines
from harness.session.log.database import SqliteLog
from harness.session.log.reader import rating_rows
from tests.command import harness
from tests.unit.session.figures.effect_rows import ASKED, TIMER, Session, trial
from tests.written_sessions import records

ESCAPE = "\x1b]0;owned\x07"


def written(folder: Path, session: Session, wall_s: float | None = None) -> Path:
    """The rows as a session folder; wall_s: of the moment 0, else an hour ago."""
    begun_s = time.time() - 3600 if wall_s is None else wall_s
    (folder / "clips").mkdir(parents=True)
    now = [0.0]
    with SqliteLog(folder, now_s=lambda: now[0], wall_s=lambda: begun_s + now[0]) as log:
        for entry in session.entries:
            now[0] = entry.at_s
            log.append(entry.record)
    return folder


def answers(folder: Path) -> list[EffectAnswered]:
    return records(rating_rows(folder), EffectAnswered)


def asked_session(check: EffectCheck | None = ASKED) -> Session:
    return Session(trial(check)).asked().answered().ends(12.0)


def hold(folder: Path, rater: str = "ann", effect: EffectOutcome | None = None) -> None:
    log = JudgmentLog(folder)
    log.append(JudgmentGiven(Judgment("j1", "t1", 1, rater, JudgmentStatus.HELD, None, "sha of r", effect=effect)))
    log.close()


def test_open_effects_are_listed_and_an_answer_closes_them(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", asked_session(replace(ASKED, wanted=f"a timer{ESCAPE} runs")))
    listing = harness("effects", folder)
    assert listing.exit_code == 1
    assert "1 effect: 1 open, 1 of them due." in listing.stdout
    assert "t1  due now" in listing.stdout
    assert "\x1b" not in listing.stdout
    assert "does it?" in listing.stdout
    answer = harness("effects", folder, "--answer", "t1", "partial", "--comment", "half", "--observer", "ann")
    assert (answer.exit_code, answer.stdout) == (0, "t1: partial, by ann\n")
    assert answers(folder) == [EffectAnswered("t1", 1, 1, EffectOutcome.PARTIAL, "ann", "half")]
    closed = harness("effects", folder)
    assert (closed.exit_code, closed.stdout) == (0, "1 effect, all known.\n")
    overruled = harness("effects", folder, "--answer", "t1", "right", "--observer", "bob")
    assert "It overrules ann, who answered partial at " in overruled.stdout
    assert answers(folder)[-1].detail == "overrules ann, who answered partial"
    assert effects_of(folder).items[0].evidence.word is EffectOutcome.RIGHT


def test_answer_overrules_the_device_report(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", Session(trial(TIMER)).asked().told(4.0).answered().ends(12.0))
    assert harness("effects", folder).exit_code == 0
    assert "right, by the device" in harness("effects", "--all", folder).stdout
    overruled = harness("effects", folder, "--answer", "t1", "wrong", "--observer", "ann")
    assert "It overrules the device: reported timer" in overruled.stdout
    shown = harness("show", folder).stdout
    assert "effects              1: 1 WRONG" in shown
    assert "the device says otherwise: right" in shown


def test_open_effects_are_listed_as_json(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", asked_session(), wall_s=1_700_000_000.0)
    result = harness("effects", "--json", folder)
    assert result.exit_code == 1
    (effect,) = json.loads(result.stdout)["effects"]
    assert (effect["trial"], effect["attempt"], effect["open"], effect["question"]) == ("t1", 1, True, "does it?")
    assert effect["due_wall_s"] == 1_700_000_006.0


def test_responses_held_by_a_rater_are_asked_about(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", asked_session(None))
    assert harness("effects", folder).stdout == "The session has no effect to check and no response on hold.\n"
    hold(folder, rater="ann")
    listing = harness("effects", folder)
    assert listing.exit_code == 1
    assert HELD_QUESTION in listing.stdout
    assert "held by ann" in listing.stdout
    assert harness("effects", folder, "--answer", "t1", "unknown").exit_code == 0
    assert harness("effects", folder).exit_code == 0


def test_hold_despite_an_unknown_effect_waits_for_an_answer(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", asked_session())
    assert harness("effects", folder, "--answer", "t1", "unknown").exit_code == 0
    hold(folder, rater="ann", effect=EffectOutcome.UNKNOWN)
    assert "held by ann" in harness("effects", folder).stdout
    assert harness("effects", folder, "--answer", "t1", "right").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--answer", "t2", "right"], "Did you mean 't1'"),
        (["--json", "--watch"], "Choose one"),
        (["--comment", "x"], "--answer TRIAL WORD"),
    ],
)
def test_wrong_usage_is_refused_with_a_remedy(tmp_path: Path, arguments: list[str], part: str) -> None:
    result = harness("effects", written(tmp_path / "s", asked_session()), *arguments)
    assert isinstance(result.exception, InputError)
    assert part in result.exception.remedy


def test_a_session_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "s", asked_session())
    result = harness("effects", folder, f"{folder}/.", "--list")
    assert isinstance(result.exception, InputError)
    assert "a session is listed twice" in result.exception.what


def test_trial_found_in_two_sessions_needs_a_single_session(tmp_path: Path) -> None:
    folder, other = (written(tmp_path / name, asked_session()) for name in ("a", "b"))
    result = harness("effects", folder, other, "--answer", "t1", "right")
    assert isinstance(result.exception, InputError)
    assert "Pass only one session" in result.exception.remedy
    assert harness("effects", folder, other, "--list").output.count("\nt1 of ") == 2
    assert "\nt1  due now" in harness("effects", folder, "--list").output
    assert answers(folder) == answers(other) == []


def test_watch_announces_the_next_effect_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun_s = 1_800_000_000.0
    folder = written(tmp_path / "s", asked_session(replace(ASKED, after_s=1.0)), wall_s=begun_s)
    now_s = [begun_s + 4.0]  # it is due 7 s after the beginning

    def sleep(for_s: float) -> None:
        now_s[0] += for_s

    clock = SimpleNamespace(**vars(time) | {"time": lambda: now_s[0], "sleep": sleep})
    monkeypatch.setattr("harness.cli.effects.time", clock)
    result = harness("effects", "--watch", folder)
    assert result.exit_code == 1
    assert result.stdout.startswith("next: t1 at ")
    assert "t1  due now" in result.stdout
    assert now_s[0] >= begun_s + 7.0


def test_watching_several_sessions_names_the_session_of_each_effect(tmp_path: Path) -> None:
    folders = [written(tmp_path / name, asked_session(ASKED), wall_s=1_700_000_000.0) for name in ("s1", "s2")]
    result = harness("effects", "--watch", *folders)
    assert result.exit_code == 1
    assert result.stdout.count("t1 of ") == 2, result.stdout


def test_terminal_asks_for_each_open_effect(tmp_path: Path) -> None:
    session = Session(trial(ASKED), trial(ASKED, 2)).asked().answered()
    session.asked(20.0, "t2").ends(40.0)
    folder = written(tmp_path / "s", session)
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - another process
        code = "from harness.cli import main; main()"
        os.execv(sys.executable, [sys.executable, "-c", code, "effects", str(folder), "--observer", "ann"])
    shown = b""

    def until(text: bytes) -> None:
        nonlocal shown
        give_up_s = time.monotonic() + 120
        while text not in shown:
            assert time.monotonic() < give_up_s, shown
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 4096)

    try:
        until(b"s skips, q ends")
        os.write(terminal, b"perhaps\n")
        shown = b""
        until(b"s skips, q ends")
        os.write(terminal, b"w no timer runs\n")
        until(b"t1: wrong, by ann")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        os.close(terminal)
    assert answers(folder) == [EffectAnswered("t1", 1, 1, EffectOutcome.WRONG, "ann", "no timer runs")]


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (40, "40 s"), (719, "12 min"), (11_100, "3 h 5 min")])
def test_durations_are_shown_in_readable_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_due_time_is_shown_as_clock_time(tmp_path: Path) -> None:
    (effect,) = effects_of(written(tmp_path / "s", asked_session())).items
    later = replace(effect, evidence=EffectEvidence(ASKED, due_wall_s=1_700_003_600.0))
    assert due_text(later, 1_700_003_600.0) == "due now"
    assert due_text(later, 1_700_003_000.0).endswith(", in 10 min")


def test_a_session_summary_counts_its_effects(tmp_path: Path) -> None:
    (effect,) = effects_of(written(tmp_path / "s", asked_session())).items
    looked = EffectEvidence(ASKED, EffectOutcome.UNKNOWN, EffectSource.OPERATOR, "ann looked: unknown")
    lines = effect_lines([effect, replace(effect, evidence=looked)])
    assert lines[0] == "effects              2: 1 cannot tell, 1 open"
    assert effect_lines([]) == []
