"""Clips that are removed, and spans that are made silent: who did it stays known, and what is needed stays."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from textual.app import App, ComposeResult

from harness.cli import group
from harness.dashboard.widgets.response import ClipShape
from harness.model.errors import InputError, SoundGone
from harness.model.judgment import Category, RatingRound
from harness.model.record import EventClipped, EventReviewed, ReviewVerdict, SoundsRemoved
from harness.rating.judgment_log import JudgmentLog
from harness.rating.purging import PurgeRule, purge, purge_plan, redact
from harness.report.session_cases import SoundStorage
from harness.report.session_page import write_report
from harness.session.log.clips import named_clips
from harness.session.log.database import SqliteLog
from harness.session.log.reader import LogReader, check, read_clip
from tests.rating_sessions import open_room, rating_session
from tests.written_sessions import written

DATA = Path(__file__).parents[2] / "data"
OLD = PurgeRule(older_than_s=0.0)
LATER_S = 4e9


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DATA / "kept" / "queries", tmp_path / "sessions" / "judged")
    return tmp_path / "sessions"


def said(*words: str) -> str:
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 0, result.output
    return result.stdout


def clips(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "clips").iterdir())


def test_a_purge_keeps_numbers_and_readers_name_who_removed_the_sound(sessions: Path) -> None:
    numbers = ["show", "judged", "--csv"], ["categories", "judged", "--json"], ["export", "judged", "--junit", "-"]
    before = [said(*words) for words in numbers]
    said("purge", "sessions", "--older-than", "0d", "--yes", "--reason", "consent ended")
    assert clips(sessions / "judged") == []
    assert [said(*words) for words in numbers] == before
    reason = "because: consent ended"
    assert reason in said("show", "judged")
    checked = said("show", "judged", "--check")
    assert reason in checked
    assert "65 rows and 4 clips: whole" in checked
    with LogReader(sessions / "judged") as reader:
        _, clip = next(named_clips(reader.entries()))
    with pytest.raises(SoundGone, match=reason):
        read_clip(sessions / "judged" / "clips", clip)
    write_report([sessions / "judged"], sessions / "page.html", SoundStorage.EMBED)
    assert reason in (sessions / "page.html").read_text(encoding="utf-8")


def test_a_clip_that_no_row_removed_is_still_damage(sessions: Path) -> None:
    said("purge", "sessions", "--older-than", "0d", "--yes")
    for name in ("judgments.sqlite", "judgments.seal"):
        (sessions / "judged" / name).unlink()
    assert any("is missing" in line for line in check(sessions / "judged").damage)


def test_a_purge_that_was_killed_is_completed_without_a_second_row(sessions: Path) -> None:
    folder = sessions / "judged"
    log = JudgmentLog(folder)
    log.append(SoundsRemoved(tuple(clips(folder)), "to make room", "ann"))
    log.close()
    (folder / "clips" / clips(folder)[0]).unlink()  # killed after the first clip
    findings = check(folder)
    assert not findings.damage
    assert "3 clips to be removed still exist. Run again: harness admin purge" in findings.notes
    (plan,) = purge_plan(sessions, OLD, LATER_S)
    assert purge(plan, OLD, "other", "ben") == ""
    assert clips(folder) == []
    assert check(folder).rows == findings.rows


def test_the_row_is_written_before_the_first_clip_goes(sessions: Path) -> None:
    folder = sessions / "judged"
    (plan,) = purge_plan(sessions, OLD, LATER_S)
    (folder / "judgments.sqlite").write_bytes(b"not a database")
    assert purge(plan, OLD, "room", "ann")  # damaged since the plan
    assert clips(folder) == list(plan.clips)


def test_sessions_that_run_are_damaged_or_are_not_judged_are_kept(sessions: Path) -> None:
    shutil.copytree(DATA / "unsealed" / "session", sessions / "unjudged")
    damaged = shutil.copytree(sessions / "judged", sessions / "damaged")
    (damaged / "clips" / clips(damaged)[0]).write_bytes(b"")
    broken = shutil.copytree(sessions / "judged", sessions / "broken")
    (broken / "log.sqlite").write_bytes(b"not a database" * 99)
    with SqliteLog(sessions / "judged"):
        why = {plan.folder.name: plan.kept_because for plan in purge_plan(sessions, OLD, LATER_S)}
    assert "is running" in why["judged"]
    assert why["unjudged"] == "1 of 1 responses are not judged"
    assert why["damaged"].startswith("the session is damaged")
    assert "is damaged or not a database" in why["broken"]
    unjudged = PurgeRule(older_than_s=0.0, unjudged=True)
    assert {plan.folder.name for plan in purge_plan(sessions, unjudged, LATER_S) if not plan.kept_because} == {
        "judged",
        "unjudged",
    }


def test_a_session_that_starts_after_the_plan_is_kept(sessions: Path) -> None:
    (plan,) = purge_plan(sessions, OLD, LATER_S)
    with SqliteLog(sessions / "judged"):
        assert "is running" in purge(plan, OLD, "room", "ann")
    assert clips(sessions / "judged") == list(plan.clips)


def test_purge_removes_the_oldest_until_the_size_limit_holds(sessions: Path) -> None:
    shutil.copytree(sessions / "judged", sessions / "twin")
    total = sum(path.stat().st_size for path in sessions.rglob("*") if path.is_file())  # before SQLite writes beside it
    assert [plan.folder.name for plan in purge_plan(sessions, PurgeRule(max_bytes=total), LATER_S)] == []
    assert len(list(purge_plan(sessions, PurgeRule(max_bytes=total - 1), LATER_S))) == 1
    assert len(list(purge_plan(sessions, PurgeRule(max_bytes=1), LATER_S))) == 2
    young = PurgeRule(older_than_s=1e9)
    assert list(purge_plan(sessions, young, 1.8e9)) == []


@pytest.mark.parametrize(
    ("verdicts", "size"),
    [
        ((), "4 clips (1 of unreviewed wake events)"),
        ((ReviewVerdict.FALSE_ACCEPT,), "4 clips"),
        ((ReviewVerdict.FALSE_ACCEPT, None), "4 clips (1 of unreviewed wake events)"),
    ],
)
def test_the_plan_counts_clips_of_wake_events_without_a_review(
    sessions: Path, verdicts: tuple[ReviewVerdict | None, ...], size: str
) -> None:
    with LogReader(sessions / "judged") as reader:
        entries = list(reader.entries())
    seq, clip = next(named_clips(entries))
    reviews = [EventReviewed(seq, verdict, "ann") for verdict in verdicts]
    night = sessions / "night"
    shutil.copytree(sessions / "judged", night, ignore=shutil.ignore_patterns("*.sqlite", "*.seal"))
    written(night, [*(entry.record for entry in entries), EventClipped(seq, clip), *reviews])
    plan = said("purge", "sessions/night", "--older-than", "0d", "--unjudged", "--dry-run")
    assert f"  {size}  236776 bytes  remove" in plan


def test_a_purge_without_yes_removes_nothing(sessions: Path) -> None:
    assert "4 clips, 236776 bytes would be removed" in said("purge", "sessions", "--older-than", "0d", "--dry-run")
    result = CliRunner().invoke(group, ["purge", "sessions", "--older-than", "0d"])
    assert result.exit_code != 0
    assert len(clips(sessions / "judged")) == 4


def test_sessions_of_a_round_stay_until_its_raters_are_done(sessions: Path) -> None:
    for rater in ("ann", "dora"):  # ann has judged every response, dora none
        (sessions / f"{rater}.yaml").write_text(f"round: open\nsessions: [judged]\nraters: [{rater}]\n")
    words = ["purge", "sessions", "--older-than", "0d", "--yes", "--keep-round"]
    assert "keep: raters of a round have responses left" in said(*words, "sessions/dora.yaml")
    assert len(clips(sessions / "judged")) == 4
    assert "judged: removed" in said(*words, "sessions/ann.yaml")
    assert clips(sessions / "judged") == []


def test_sessions_of_a_round_stay_while_it_is_not_begun_or_responses_are_held(tmp_path: Path) -> None:
    folder = rating_session(tmp_path / "s1", 14, effects=True)
    held, begun_by_none = RatingRound(sessions=(str(folder),)), RatingRound("new", sessions=(str(folder),))
    with closing(open_room([], held)) as room:
        desk = room.desk("ann")
        while desk.view.item is not None:
            desk.judge(Category.CORRECT)
    for round_ in (held, begun_by_none):
        (plan,) = purge_plan(folder, PurgeRule(older_than_s=0.0, unjudged=True, rounds=(round_,)), LATER_S)
        assert plan.kept_because == "raters of a round have responses left"


def test_sessions_of_a_round_stay_when_the_purge_names_them_by_a_link(sessions: Path) -> None:
    (sessions / "dora.yaml").write_text("round: open\nsessions: [judged]\nraters: [dora]\n")
    sessions.with_name("link").symlink_to(sessions)
    printed = said("purge", "link", "--older-than", "0d", "--yes", "--keep-round", "link/dora.yaml")
    assert "keep: raters of a round have responses left" in printed
    assert len(clips(sessions / "judged")) == 4


async def test_the_dashboard_says_who_removed_the_sound(sessions: Path) -> None:
    with LogReader(sessions / "judged") as reader:
        _, clip = next(named_clips(reader.entries()))
    said("purge", "sessions", "--older-than", "0d", "--yes", "--reason", "consent ended")

    class Shown(App[None]):
        def compose(self) -> ComposeResult:
            yield ClipShape()

    app = Shown()
    async with app.run_test() as pilot:
        shape = app.query_one(ClipShape)
        shape.show(clip, sessions / "judged")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "because: consent ended" in shape.paint(80, 3).plain


def test_a_redacted_span_is_silent_for_good_and_every_reader_says_so(sessions: Path) -> None:
    folder = sessions / "judged"
    name = clips(folder)[0]
    with LogReader(folder) as reader:
        clip = next(clip for _, clip in named_clips(reader.entries()) if clip.name == name)
    before, shown = read_clip(folder / "clips", clip), said("show", "judged", "--csv")
    said("redact", "judged", name, "--span", "0.2", "0.5", "--span", "0.4", "0.6", "--reason", "a name", "--yes")
    after = read_clip(folder / "clips", clip)
    span = slice(round(0.2 * before.rate_hz), round(0.6 * before.rate_hz))
    assert np.any(before.samples[span])
    assert not np.any(after.samples[span])
    np.testing.assert_array_equal(np.delete(before.samples, span), np.delete(after.samples, span))
    notice = f"clip {name} was redacted (0.2 to 0.5 s, 0.4 to 0.6 s)"
    assert notice in said("show", "judged")
    assert notice in said("show", "judged", "--check")
    assert said("show", "judged", "--csv") == shown
    rows = check(folder).rows
    said("redact", "judged", name, "--span", "0.2", "0.5", "--reason", "again", "--yes")
    assert check(folder).rows == rows
    write_report([folder], sessions / "page.html", SoundStorage.EMBED)
    assert "because: a name" in (sessions / "page.html").read_text(encoding="utf-8")
    said("pack", "judged")
    said("unpack", "judged.tar.gz", "-o", "unpacked")
    (folder / "clips" / name).write_bytes(b"other")
    assert any("is not what was stored" in line for line in check(folder).damage)


def test_a_span_that_is_already_silent_is_not_redacted_again(sessions: Path) -> None:
    folder = sessions / "judged"
    name = clips(folder)[0]
    with_sound = (folder / "clips" / name).read_bytes()
    said("redact", "judged", name, "--span", "0.2", "0.5", "--span", "0.4", "0.6", "--reason", "a name", "--yes")
    silent, rows = (folder / "clips" / name).read_bytes(), check(folder).rows
    words = ["redact", "judged", name, "--reason", "again", "--span"]
    assert f"clip {name} was redacted (0.2 to 0.5 s, 0.4 to 0.6 s)" in said(*words, "0.3", "0.6")  # asks nothing
    assert ((folder / "clips" / name).read_bytes(), check(folder).rows) == (silent, rows)
    said(*words, "0.3", "0.6", "--span", "0.6", "0.7", "--yes")
    assert "; it was redacted (0.6 to 0.7 s)" in said("show", "judged", "--check")
    (folder / "clips" / name).write_bytes(with_sound)  # killed after the row: there is sound to remove
    assert "redact asks before it removes sound" in str(CliRunner().invoke(group, [*words, "0.3", "0.6"]).exception)


def test_a_redaction_that_was_killed_is_named_and_completed(sessions: Path) -> None:
    folder = sessions / "judged"
    name = clips(folder)[0]
    with_sound = (folder / "clips" / name).read_bytes()
    redact(folder, name, [(0.2, 0.5)], "a name", "ann")
    silent, rows = (folder / "clips" / name).read_bytes(), check(folder).rows
    (folder / "clips" / name).write_bytes(with_sound)  # killed after the row
    findings = check(folder)
    assert not findings.damage
    assert f"clip {name} still has the sound to be redacted. Run again: harness admin redact" in findings.notes
    redact(folder, name, [(0.2, 0.5)], "a name", "ann")
    assert (folder / "clips" / name).read_bytes() == silent
    assert check(folder).rows == rows


@pytest.mark.parametrize(
    ("name", "span_s", "message"),
    [
        ("", (1.0, 99.0), "has no span from 1 to 99 s: the clip is 1.900 s long"),
        ("", (0.5, 0.5), "has no span"),
        ("", (float("nan"), 1.0), "has no span"),
        ("none.flac", (0.0, 1.0), "has no clip 'none.flac'"),
        ("../log.sqlite", (0.0, 1.0), "has no clip"),
    ],
)
def test_invalid_redaction_changes_nothing(
    sessions: Path, name: str, span_s: tuple[float, float], message: str
) -> None:
    folder = sessions / "judged"
    rows = check(folder).rows
    with pytest.raises(InputError, match=re.escape(message)):
        redact(folder, name or clips(folder)[0], [span_s], "a name", "ann")
    assert check(folder).rows == rows
