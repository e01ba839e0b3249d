"""A rater's terminal while others work: evidence, rows of the same rater, and raters who disagree."""

from pathlib import Path

import pytest

from harness.dashboard.messages import RoomRead
from harness.model.effect import EffectWord
from harness.model.judgment import Category
from harness.model.record import EffectAnswered, JudgmentGiven
from harness.rating.items import withdrawal
from harness.rating.judgment_log import JudgmentLog
from tests.dashboard.bench import screen_text, shows, until
from tests.dashboard.seats import SMALL, adjudication, press, rows, seated, sitting
from tests.rating_sessions import rating_session


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return rating_session(tmp_path / "s1", 12)


async def test_evidence_from_elsewhere_releases_what_was_held_and_leaves_the_item_in_sight(tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 12, effects=True)
    async with sitting(seated(session)) as (app, pilot):
        held = [item for item in app.room.items if item.waits_for_effect]
        assert f"{len(held)} held" in screen_text(pilot)
        before = app.desk.view.item
        await press(pilot, "c", *"mine", "enter")
        log = JudgmentLog(session)
        for item in held:
            subject = item.subject
            log.append(EffectAnswered(subject.trial_id, subject.take, subject.attempt, EffectWord.RIGHT, "bob", "ran"))
        log.close()
        app.room.refresh()
        app.screen.post_message(RoomRead(""))
        await until(pilot, lambda: "held" not in screen_text(pilot).splitlines()[1])
        assert app.desk.view.item == before
        assert "mine" in screen_text(pilot)
        app.screen.post_message(RoomRead("the disk is away"))
        await until(pilot, shows(pilot, "the disk is away"))


@pytest.mark.parametrize("names", [False, True])
async def test_an_adjudicator_sees_the_inputs_and_settles_with_one_key(session: Path, names: bool) -> None:
    adjudication(session)
    async with sitting(seated(session, "eve", adjudicating=True, names=names), SMALL, "Settling item 1 of 2") as (
        app,
        pilot,
    ):
        text = screen_text(pilot)
        assert ("zoe" in text, "rater 1" in text) == (names, not names)
        assert "Correct" in text
        assert "Wrong" in text
        item = app.desk.view.item
        assert item is not None
        await press(pilot, "2")
        last = rows(session)[-1]
        assert last.adjudicates == tuple(row.id for row in item.inputs)
        assert (last.rater, last.category) == ("eve", Category.PARTIALLY_CORRECT)
        await press(pilot, "1")
        await until(pilot, shows(pilot, "All is judged"))


async def test_a_judgment_given_elsewhere_meanwhile_takes_the_item_away_from_a_panel(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        item = app.desk.view.item
        assert item is not None
        await press(pilot, "c", *"late")
        other = seated(session).room
        desk = other.desk("ann")
        desk.judge(Category.CORRECT)
        app.room.refresh()
        app.screen_stack[1].post_message(RoomRead(""))
        await until(pilot, lambda: app.desk.view.item != item)
        await press(pilot, "enter")
        assert "no longer in sight" in screen_text(pilot)
        assert app.desk.view.draft.comment == ""


async def test_after_a_withdrawal_elsewhere_the_item_is_to_be_judged_again(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        await press(pilot, "1")
        log = JudgmentLog(session)
        log.append(JudgmentGiven(withdrawal(rows(session)[0])))
        log.close()
        app.room.refresh()
        app.screen.post_message(RoomRead(""))
        await until(pilot, shows(pilot, "0 done, 12 left"))


async def test_what_somebody_else_settled_meanwhile_is_not_settled_twice(session: Path) -> None:
    adjudication(session)
    async with sitting(seated(session, "eve", adjudicating=True), SMALL, "Settling item 1 of 2") as (app, pilot):
        other = seated(session).room
        other.adjudication("dan").judge(Category.CORRECT)
        other.close()
        settled = rows(session)[-1]
        app.room.refresh()
        app.screen.post_message(RoomRead(""))
        await until(pilot, lambda: app.desk.view.count.total == 1)
        left = app.desk.view.item
        assert left is not None
        assert left.subject.trial_id != settled.trial_id
