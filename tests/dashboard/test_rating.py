"""Judging at the bench: every key, saved before the next shows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

from harness.dashboard.app import Dashboard
from harness.dashboard.screens.rating import RatingScreen
from harness.model.feed import Answered, Judge, Replay
from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import Clip, JudgmentGiven
from harness.rating.guide import KEYS
from harness.rating.judgment_log import JudgmentLog
from harness.session.engine.feed import EngineClient
from harness.session.log.database import SqliteLog
from tests.dashboard.bench import SMALL, double, opened, screen_text, shows, until
from tests.dashboard.engine_double import START_S, EngineDouble, write_clip
from tests.dashboard.seats import press
from tests.unit.session.figures.rows import judgment_on


def judgments(engine: EngineDouble) -> list[Judgment]:
    return [command.judgment for command in engine.commands(Judge)]


@asynccontextmanager
async def judging(
    engine: EngineDouble, size: tuple[int, int] = SMALL
) -> AsyncIterator[tuple[EngineDouble, Dashboard, Pilot[int]]]:
    """At the bench, with the first response in sight."""
    async with opened(engine, size) as (_, app, pilot):
        await press(pilot, "j", then="milk is on the list")
        yield engine, app, pilot


def pressed(key: str) -> str:
    return "minus" if key == "-" else key


@pytest.mark.parametrize(("key", "category"), KEYS)
async def test_each_category_key_labels_and_goes_on(tmp_path: Path, key: str, category: Category) -> None:
    async with judging(double(tmp_path)) as (engine, _, pilot):
        await press(pilot, pressed(key))
        if key == "-":
            await until(pilot, shows(pilot, "A digit may need Shift here"))
            assert not judgments(engine), "on AZERTY it is the key of 6"
            await press(pilot, pressed(key))
        await until(pilot, shows(pilot, "I don't know that yet"))
        (judgment,) = judgments(engine)
        assert (judgment.trial_id, judgment.category, judgment.rater) == ("kitchen-02", category, "ann")
        assert judgment.clip_sha256 == "sha of b.flac"
        assert judgment.time_to_answer_s is not None


async def test_undo_is_a_new_row_and_the_response_comes_again(tmp_path: Path) -> None:
    async with judging(double(tmp_path)) as (engine, _, pilot):
        await press(pilot, "9", then="I don't know that yet")
        await press(pilot, "u", then="milk is on the list")
        judgment, undone = judgments(engine)
        assert undone.status is JudgmentStatus.WITHDRAWN
        assert undone.replaces == judgment.id
        await press(pilot, "u", then="nothing to undo")


async def test_undo_before_the_answer_takes_the_judgment_back_after_it(tmp_path: Path) -> None:
    async with judging(double(tmp_path)) as (engine, app, pilot):
        screen = app.screen
        assert isinstance(screen, RatingScreen)
        engine.silent = True
        await press(pilot, "9", "u")
        await until(pilot, lambda: screen._is_undo_due and judgments(engine))
        engine.silent = False
        engine.log(JudgmentGiven(judgments(engine)[0]))
        engine.send(Answered(engine.commands(Judge)[0].id, True))
        await until(pilot, lambda: len(judgments(engine)) == 2)
        judgment, undone = judgments(engine)
        assert (undone.status, undone.replaces) == (JudgmentStatus.WITHDRAWN, judgment.id)
        await until(pilot, shows(pilot, "milk is on the list"))


async def test_skip_comes_back_at_the_end_and_the_new_row_replaces_it(tmp_path: Path) -> None:
    async with judging(double(tmp_path)) as (engine, _, pilot):
        await press(pilot, "x", then="I don't know that yet")
        await press(pilot, "8", then="it is noon")
        await press(pilot, "1", then="milk is on the list")
        await press(pilot, "1", then="Every response is judged")
        skipped, *_, last = judgments(engine)
        assert last.replaces == skipped.id


async def test_skipped_responses_take_turns(tmp_path: Path) -> None:
    async with judging(double(tmp_path)) as (_, _, pilot):
        for answer in ("I don't know that yet", "it is noon", "milk is on the list", "I don't know that yet"):
            await press(pilot, "x", then=answer)


async def test_a_response_can_be_flagged_and_commented(tmp_path: Path) -> None:
    async with judging(double(tmp_path)) as (engine, _, pilot):
        await press(pilot, "c", *"hum", "enter", then="hum")
        await press(pilot, "c", "enter")  # the comment stands in the prompt, and stays
        await until(pilot, lambda: isinstance(pilot.app.screen, RatingScreen))
        await press(pilot, "f", then="something private")
        await press(pilot, "3", then="I don't know that yet")
        (judgment,) = judgments(engine)
        assert judgment.status is JudgmentStatus.FLAGGED
        assert judgment.flags == ("cut_response",)
        assert judgment.comment == "hum"


async def test_a_refused_judgment_stays_and_says_why(tmp_path: Path) -> None:
    async with judging(double(tmp_path)) as (engine, _, pilot):
        engine.refuse = "the disk is full"
        await press(pilot, "1", then="refused, the disk is full")
        assert "milk is on the list" in screen_text(pilot)


async def test_replay_counts_its_plays(tmp_path: Path) -> None:
    async with judging(double(tmp_path)) as (engine, _, pilot):
        await press(pilot, "space", then="replay: done")
        (replay,) = engine.commands(Replay)
        assert replay.clip_name == "b.flac"
        await press(pilot, "1")
        await until(pilot, lambda: judgments(engine))
        assert judgments(engine)[0].plays == 1


async def test_without_a_monitor_replay_says_so(tmp_path: Path) -> None:
    async with judging(double(tmp_path, has_monitor=False)) as (engine, _, pilot):
        await press(pilot, "space", then="no monitor")
        assert engine.commands(Replay) == []


async def test_what_was_judged_away_from_the_bench_is_not_asked_for_again(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, app, pilot):
        SqliteLog(tmp_path).close()  # an engine's own log would be there
        log = JudgmentLog(tmp_path)
        clip = Clip("b.flac", "sha of b.flac", 16000, 1, 0.0)
        skipped = Clip("c.flac", "sha of c.flac", 16000, 1, 0.0)
        log.append(JudgmentGiven(replace(judgment_on("kitchen-02", clip, "r1", category=Category.WRONG), attempt=2)))
        left = judgment_on("kitchen-05", skipped, "r2")
        log.append(JudgmentGiven(replace(left, status=JudgmentStatus.SKIPPED, category=None)))
        log.append(JudgmentGiven(judgment_on("exercise:lamp", clip, "r3", category=Category.WRONG)))
        log.close()
        await press(pilot, "j", then="I don't know that yet")
        assert "2 of 4 done, 2 left" in screen_text(pilot)
        assert app.watch_.view().progress.unplanned_rows == 0
        await press(pilot, "1", then="it is noon")
        (judgment,) = judgments(engine)
        assert (judgment.trial_id, judgment.replaces) == ("kitchen-05", None)


async def test_a_judgment_names_the_take_of_a_trial_that_was_run_again(tmp_path: Path) -> None:
    engine = double(tmp_path)
    engine.rows.trial("kitchen-02", take=2, clip=write_clip(tmp_path, "e.flac"), text="milk is on the list")
    async with judging(engine) as (_, _, pilot):
        await press(pilot, "1", then="I don't know that yet")
        (judgment,) = judgments(engine)
        assert (judgment.trial_id, judgment.take, judgment.attempt) == ("kitchen-02", 2, 1)


async def test_a_break_is_in_no_time_to_answer(tmp_path: Path) -> None:
    now_s = START_S
    engine = double(tmp_path)
    dashboard = Dashboard(partial(EngineClient, engine.socket_path), "ann", now=lambda: now_s)
    async with opened(engine, make=lambda _: dashboard) as (_, _, pilot):
        await press(pilot, "j", then="milk is on the list")
        now_s += 3600
        await press(pilot, "space")
        now_s += 4
        await press(pilot, "1", then="I don't know that yet")
        now_s += 3600
        await press(pilot, "1", then="it is noon")
        assert [judgment.time_to_answer_s for judgment in judgments(engine)] == [4.0, None]


async def test_an_unreadable_judgment_file_is_reported_and_blocks_nobody(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (_, _, pilot):
        (tmp_path / "judgments.sqlite").write_text("no database")
        await press(pilot, "j", then="milk is on the list")
        assert "cannot be read" in screen_text(pilot)
