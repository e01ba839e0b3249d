"""A rater's terminal: each key, what is on the disk after it, and what is shown."""

from __future__ import annotations

import asyncio
import random
import subprocess
from pathlib import Path
from types import MappingProxyType

import pytest
from textual.events import Key, Paste

from harness.dashboard.messages import RoomRead
from harness.dashboard.sitting_app import run_rating_app
from harness.dashboard.widgets.verbatim_input import PASTE_GAP_S, VerbatimInput
from harness.model.effect import EffectOutcome
from harness.model.errors import InputError
from harness.model.judgment import (
    CATEGORY_LETTERS,
    Category,
    Exercise,
    Flag,
    JudgmentStatus,
    ProposalShown,
    RaterAction,
    RaterKeys,
    RatingRound,
    SubFlag,
    TranscriptPolicy,
)
from harness.model.record import JudgmentGiven
from harness.rating.guide import KEYS, LABELS
from harness.rating.items import withdrawal
from harness.rating.judgment_log import JudgmentLog
from tests.dashboard.bench import press_until, raw, screen_text, shows, until
from tests.dashboard.seats import SIZES, SMALL, WIDE, adjudication, press, ready, rows, seated, sitting
from tests.known import known
from tests.rating_sessions import TALKS, answer_effect, judged_source, proposing_round, rating_session

ANSWERS = {talk.query: talk.answer for talk in TALKS}


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return rating_session(tmp_path / "s1", 12)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_all_eleven_keys_label_and_each_is_on_the_disk_before_the_next_shows(
    session: Path, size: tuple[int, int]
) -> None:
    async with sitting(seated(session), size) as (app, pilot):
        judged = []
        for number, (key, category) in enumerate(KEYS, start=1):
            item = known(app.desk.view.item)
            assert f"“{item.query}”" in screen_text(pilot)
            assert f"item {number} of 12" in screen_text(pilot)
            await press(pilot, key)
            judged.append((item.subject.trial_id, category, number))
            assert [(row.trial_id, row.category, row.position) for row in rows(session)] == judged
        assert "11 done, 1 left" in screen_text(pilot)


async def test_earlier_responses_are_opened_by_steps_and_by_words_and_changed(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        await press(pilot, "c", *"hum", "enter", "9", "1")
        waiting = app.desk.view.item
        await press(pilot, "left", "left")
        for words in ("item 1 of 12 again", "before  Wrong", "hum"):
            assert words in screen_text(pilot)
        await press(pilot, "right", "right")
        assert app.desk.view.item == waiting
        await press(pilot, "e", then="Words from the query")
        await press_until(pilot, shows(pilot, "Which response do you want to open again?"), *"hum", "enter")
        await press_until(pilot, lambda: app.desk.view.is_reopened, "1")
        await press(pilot, "3")
        first, _, last = rows(session)
        assert (last.replaces, last.category, last.comment) == (first.id, Category.CLARIFICATION, "hum")
        assert app.desk.view.item == waiting


async def test_undo_survives_a_restart_and_the_item_comes_back_as_it_was_judged(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        first = known(app.desk.view.item)
        await press(pilot, "c", *"hum", "enter", "k", "9", "1")
    second_app = seated(session)
    async with second_app.run_test(size=SMALL) as pilot:
        await ready(pilot)
        assert "item 3 of 12" in screen_text(pilot)
        await press(pilot, "u", "u")
        assert second_app.desk.view.item == first
        for words in ("hum", "1 unsure", "taken back", "0 done, 12 left"):
            assert words in screen_text(pilot)
        await press(pilot, "1")
        wrong, right, *undone, last = rows(session)
        assert [row.replaces for row in undone] == [right.id, wrong.id]
        assert (wrong.category, wrong.comment, wrong.confidence) == (Category.WRONG, "hum", 1)
        assert (last.category, last.comment, last.confidence) == (Category.CORRECT, "hum", 1)
        assert last.trial_id == wrong.trial_id
        await press(pilot, "u")
        await press(pilot, "u", then="nothing is left to undo")


async def test_leaving_after_a_failed_save_says_so(session: Path) -> None:
    (session / "judgments.sqlite").mkdir()
    async with sitting(seated(session)) as (app, pilot):
        await press(pilot, "1")
        assert (app.sitting.exit_status, "0 done, 12 left" in screen_text(pilot)) == (3, True)
        (session / "judgments.sqlite").rmdir()
        await press(pilot, "1")
        assert (app.sitting.exit_status, "1 done, 11 left" in screen_text(pilot)) == (0, True)
        (session / "judgments.sqlite").rename(session / "away")
        (session / "judgments.sqlite").mkdir()
        await press(pilot, "2", "q")
    assert app.return_value == 3


@pytest.mark.parametrize("raters", [(), ("ann", "bob")])
async def test_raters_of_a_shared_round_are_not_sent_to_their_agreement(
    tmp_path: Path, raters: tuple[str, ...]
) -> None:
    session = rating_session(tmp_path / "s1", 1)
    async with sitting(seated(session, round_=RatingRound(raters=raters))) as (_, pilot):
        await press(pilot, "1", then="All done. Thank you.")
        assert ("report agreement" in screen_text(pilot)) is not bool(raters)


async def test_skipped_ones_come_at_the_end_with_a_mark(tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 3)
    async with sitting(seated(session)) as (app, pilot):
        skipped = app.desk.view.item
        await press(pilot, "x")
        assert "1 skipped" in screen_text(pilot)
        await press(pilot, "1", "2")
        assert app.desk.view.item == skipped
        assert "before  left for later" in screen_text(pilot)
        await press(pilot, "3", then="All done. Thank you.")
        assert rows(session)[-1].replaces == rows(session)[0].id


async def test_flag_asks_for_the_reason_and_escape_does_nothing(session: Path) -> None:
    async with sitting(seated(session)) as (_app, pilot):
        await press(pilot, "f", "escape")
        assert rows(session) == []
        await press(pilot, "f", "2")
        (row,) = rows(session)
        assert (row.status, row.flags) == (JudgmentStatus.FLAGGED, (list(Flag)[1].value,))
        assert "1 flagged" in screen_text(pilot)


async def test_sub_flags_confidence_and_comment_go_with_the_key(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        await press(pilot, "k", "k", "b", "1", "c", *"only [red]one[/red]", "enter")
        for words in ("2 fairly sure", "too little", "“only [red]one[/red]”"):
            assert words in screen_text(pilot)
        await press(pilot, "b", "2")
        assert app.desk.view.draft.sub_flags == (SubFlag.TOO_MUCH,)
        await press(pilot, "c", *"!", "enter", "2")
        (row,) = rows(session)
        assert (row.confidence, row.sub_flags, row.comment) == (2, ("too_much",), "only [red]one[/red]!")
        await press(pilot, "k", "k", "k", "k")
        assert app.desk.view.draft.confidence is None


async def test_the_transcript_is_hidden_until_asked_for_and_that_is_stored(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        await press(pilot, "1")
        item = known(app.desk.view.item)
        assert ANSWERS[item.query] not in screen_text(pilot)
        await press(pilot, "t")
        assert f"said    “{ANSWERS[item.query]}”" in screen_text(pilot)
        await press(pilot, "t", then="escape goes back")
        await press(pilot, "escape", "1")
        *others, last = rows(session)
        assert last.transcript_shown
        assert not any(row.transcript_shown for row in others)


async def test_a_round_that_is_judged_by_ear_shows_no_text(session: Path) -> None:
    async with sitting(seated(session, round_=RatingRound(transcript=TranscriptPolicy.NEVER))) as (app, pilot):
        assert "hidden in this round" in screen_text(pilot)
        assert " t text" not in screen_text(pilot)
        await press(pilot, "t")
        item = known(app.desk.view.item)
        assert ANSWERS[item.query] not in screen_text(pilot)
        assert "hides transcripts" in screen_text(pilot)


async def test_the_screen_never_names_the_device(session: Path) -> None:
    for size in SIZES.values():
        app = seated(session, round_=RatingRound(transcript=TranscriptPolicy.SHOWN))
        async with app.run_test(size=size) as pilot:
            await ready(pilot)
            for _ in range(4):
                text = screen_text(pilot)
                assert "kitchen" not in text
                assert "den" not in text.split()
                assert "±" not in text, "an error depends on how the device is connected"
                await press(pilot, "1")


async def test_the_aid_leads_to_a_category_that_is_saved_with_its_path(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        await press(pilot, "question_mark", then="of at most")
        assert "(known)" in screen_text(pilot)
        await press(pilot, "question_mark")
        assert "of at most" not in screen_text(pilot), "its key closes it, too"
        await press(pilot, "question_mark", "b", then="Result  Slot request")
        await press(pilot, "backspace", then="of at most")
        assert rows(session) == []
        await press(pilot, "c", "enter")
        (row,) = rows(session)
        assert row.category is Category.CLARIFICATION
        assert row.aid_path[-1] == "asks_back=meaning"
        await press(pilot, "question_mark", "escape")
        assert len(rows(session)) == 1
        # What the harness filled in is taken back, and the answer puts the response aside.
        await press(pilot, "question_mark", "backspace", "backspace", "backspace")
        no = next(answer.key for answer in app.screen._state.question.answers if answer.id == "no")  # type: ignore[attr-defined]
        await press(pilot, no, "enter")
        assert rows(session)[-1].status is JudgmentStatus.FLAGGED
        assert rows(session)[-1].aid_path == ("recognised=no",)


async def test_a_training_round_explains_each_answer(session: Path) -> None:
    round_ = RatingRound(
        exercises=(
            Exercise("one", "name two rivers", "the danube", Category.PARTIALLY_CORRECT, "It names one of two."),
            Exercise("two", "pause it", "stopped", Category.CORRECT, "It was paused.", effect="It was paused."),
        )
    )
    async with sitting(seated(session, round_=round_), SMALL, "TRAINING 1 of 2") as (_app, pilot):
        await press(pilot, "x")
        assert "an exercise needs a category" in screen_text(pilot)
        await press(pilot, "2", then="Right: Partially correct")
        assert "It names one of two." in screen_text(pilot)
        assert "x skip" not in screen_text(pilot)
        await press(pilot, "m")
        await ready(pilot, "TRAINING 2 of 2")
        assert "seen    It was paused." in screen_text(pilot)
        await press(pilot, "9", then="Not Wrong, but Correct")
        await press(pilot, "u")
        await ready(pilot, "TRAINING 2 of 2")
        await press(pilot, "1", "space")
        await ready(pilot, "item 1 of 12")
        assert [row.trial_id for row in rows(session)][:2] == ["exercise:one", "exercise:two"]


async def test_what_cannot_be_saved_stays_in_sight_and_says_why(session: Path) -> None:
    blocked = session / "judgments.sqlite"
    blocked.mkdir()
    async with sitting(seated(session)) as (app, pilot):
        item = app.desk.view.item
        await press(pilot, "k", "1", then="NOT SAVED")
        assert app.desk.view.item == item
        assert "item 1 of 12" in screen_text(pilot)
        assert all(
            f"{key} {CATEGORY_LETTERS[category]} {LABELS[category]}" in screen_text(pilot) for key, category in KEYS
        )
        blocked.rmdir()
        await press(pilot, "1", then="item 2 of 12")
        assert "NOT SAVED" not in screen_text(pilot)
        (row,) = rows(session)
        assert row.confidence == 1


KEPT = "first\n\tsecond می\u200cخواهم\u3000!"


async def test_a_comment_is_kept_as_it_was_written(session: Path) -> None:
    app = seated(session)
    async with app.run_test(size=SMALL) as pilot:
        await ready(pilot)
        await press(pilot, "c")
        line = app.screen.query_one(VerbatimInput)
        app.screen.post_message(Paste(KEPT))
        await until(pilot, lambda: line.value == KEPT)
        assert "first⏎⇥second" in screen_text(pilot)
        assert "2 lines" in screen_text(pilot)
        assert raw(pilot) == []
        # Both arrive together: the first one counts, and the screen below stays.
        await press_until(pilot, lambda: len(app.screen_stack) == 2, "enter", "enter", "escape")
        assert app.desk.view.draft.comment == KEPT
        app.desk.set_comment("long " * 300)
        await press(pilot, "c", "enter")
        assert app.desk.view.draft.comment == "long " * 300, "opened and left as it was"
        await press(pilot, "c")
        app.screen.query_one(VerbatimInput).value = "x" * 10_001
        await press(pilot, "enter")
        assert "the limit is 10,000" in screen_text(pilot)
        await press(pilot, "escape", "c")
        line = app.screen.query_one(VerbatimInput)
        line.value = ""
        for sign in "one\r\rtwo":  # pasted, in a terminal that does not mark it
            app.post_message(Key("enter" if sign == "\r" else sign, sign))
        await until(pilot, lambda: line.value == "one\n\ntwo")
        await press(pilot, "escape", "1")
        assert [row.comment for row in rows(session)] == ["long " * 300]


async def test_lines_that_are_pasted_while_the_app_is_busy_stay_one_comment(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        await press(pilot, "c")
        line = app.screen.query_one(VerbatimInput)
        enter, sign = Key("enter", "\r"), Key("t", "t")
        app.post_message(enter)
        app.call_later(asyncio.sleep, 5 * PASTE_GAP_S)
        app.post_message(sign)
        await until(pilot, lambda: line.value == "\nt")


async def test_keyboards_whose_digits_need_shift_are_supported(session: Path) -> None:
    async with sitting(seated(session)) as (_, pilot):
        await press(pilot, "é")
        assert "the digits need Shift" in screen_text(pilot)
        await press(pilot, "-")
        assert "- again saves Missed disamb., unrecoverable" in screen_text(pilot)
        assert rows(session) == []
        await press(pilot, "i")
        assert rows(session)[0].category is Category.INFERRABLE
        await press(pilot, "-", "f")
        assert rows(session)[1].category is Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE
        await until(pilot, shows(pilot, "Put this response aside"))
        await press_until(pilot, lambda: len(rows(session)) == 3, "'")
        assert rows(session)[2].flags == (tuple(Flag)[3].value,)


async def test_keys_can_be_read_from_a_file(session: Path) -> None:
    default = RaterKeys()
    letters = dict(zip(Category, "qwertyuiopz", strict=True))
    actions = {**default.actions, RaterAction.QUIT: "f10", RaterAction.UNDO: "backspace", RaterAction.RELEASE_HELD: "W"}
    actions |= {RaterAction.TRANSCRIPT: "tab", RaterAction.SKIP: "down", RaterAction.COMMENT: "enter"}
    actions |= {RaterAction.AID: "ä", RaterAction.FIND: "f9"}
    keys = RaterKeys(MappingProxyType(letters), MappingProxyType(actions))
    async with sitting(seated(session, keys=keys)) as (app, pilot):
        assert "z Missed disamb., unrecoverable" in screen_text(pilot)
        await press(pilot, "tab")
        assert app.desk.view.draft.transcript_shown
        await press(pilot, "enter", *"so", "enter", "z", "down", "backspace")
        labelled, skipped, undone = rows(session)
        assert labelled.category is Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE
        assert (labelled.comment, skipped.status, undone.replaces) == ("so", JudgmentStatus.SKIPPED, skipped.id)
        await press(pilot, "1")
        assert len(rows(session)) == 3, "the usual keys are free then"
        await pilot.pause(0.1)
        await press(pilot, "p")
        assert len(rows(session)) == 4, "a category, not the setting of the same key"
        await press(pilot, "ä", then="of at most")
        await press(pilot, "escape", "f10")
    assert app.return_value == 0


async def test_a_narrow_screen_shows_all_keys(session: Path) -> None:
    # The keys of a player take the room that 12 columns less take here.
    async with sitting(seated(session), (48, 24)) as (_app, pilot):
        await press(pilot, "1", "2", "left")
        await until(pilot, shows(pilot, "right later"))
        assert "q quit" in screen_text(pilot)


async def test_a_resize_loses_nothing(session: Path) -> None:
    async with sitting(seated(session), WIDE) as (_app, pilot):
        await press(pilot, "t", "k", "c", *"stays", "enter")
        for size in ((40, 10), (80, 24), (200, 60), (20, 5), (120, 40), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        for words in ("1 unsure", "“stays”", "item 1 of 12"):
            assert words in screen_text(pilot)
        await press(pilot, "1")
        assert rows(session)[0].comment == "stays"


async def test_the_end_shows_counts_and_held_items(tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 12, effects=True)
    async with sitting(seated(session)) as (app, pilot):
        while app.desk.view.item is not None:
            await press(pilot, random.Random(len(rows(session))).choice("12345"))
        await until(pilot, shows(pilot, "All done, except held responses."))
        text = screen_text(pilot)
        waiting = [item for item in app.room.items if item.waits_for_effect]
        assert waiting
        for words in (
            "harness report agreement",
            "harness report effects",
            f"{12 - len(waiting)} of 12",
            "w judge held",
        ):
            assert words in text
        assert "a timer of ten minutes runs" in text
        await press(pilot, "w")
        await ready(pilot)
        await press(pilot, "1")
        assert "All" in screen_text(pilot) or app.desk.view.item is not None
        assert len(rows(session)) == 12 - len(waiting) + 1


async def test_a_command_with_a_long_path_can_be_pasted(tmp_path: Path) -> None:
    session = rating_session(tmp_path / ("a long " * 25) / ("$path" * 40) / "s1", 1)
    async with sitting(seated(session)) as (_, pilot):
        await press(pilot, "1")
        await until(pilot, shows(pilot, "All done. Thank you."))
        lines = [line.rstrip() for line in screen_text(pilot).split("\n")]
    first = lines.index("  How far raters agree:") + 1
    last = next(number for number in range(first, len(lines)) if not lines[number].endswith("\\"))
    pasted = "\n".join(lines[first : last + 1]).replace("harness", "args", 1)
    shell = subprocess.run(["sh", "-c", f"args() {{ printf '%s|' \"$@\"; }}\n{pasted}"], capture_output=True, text=True)
    assert shell.stdout == f"report|agreement|{session}|"


def test_a_terminal_without_a_screen_is_refused_with_a_hint(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = seated(session)
    for term in ("dumb", ""):
        monkeypatch.setenv("TERM", term)
        with pytest.raises(InputError) as caught:
            run_rating_app(app.room, app.desk, RaterKeys(), None)
        assert "--plain" in caught.value.remedy


async def test_a_proposal_appears_after_the_choice_unless_allowed_earlier(session: Path, tmp_path: Path) -> None:
    source = judged_source(tmp_path / "s0")
    async with sitting(seated(session, round_=proposing_round(source))) as (_, pilot):
        assert "classifier" not in screen_text(pilot)
        await press(pilot, "9")
        assert "the classifier would have proposed" in screen_text(pilot)
        assert "%)" in screen_text(pilot)
        await press(pilot, "u")
        assert "would have said" not in screen_text(pilot)
        await press(pilot, "1")
        first, _, second = rows(session)
        assert (first.proposal_shown, first.unaided) == (ProposalShown.AFTER, None)
        assert (second.proposal_shown, second.unaided) == (ProposalShown.BEFORE, Category.WRONG)
    async with sitting(seated(session, "bob", round_=proposing_round(source, ProposalShown.BEFORE))) as (_app, pilot):
        assert "classifier " in screen_text(pilot)
        assert "%)" in screen_text(pilot)


async def test_evidence_from_elsewhere_releases_what_was_held_and_leaves_the_item_in_sight(tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 12, effects=True)
    async with sitting(seated(session)) as (app, pilot):
        held = [item for item in app.room.items if item.waits_for_effect]
        assert f"{len(held)} held" in screen_text(pilot)
        before = app.desk.view.item
        await press(pilot, "c", *"mine", "enter")
        answer_effect(session, *held, word=EffectOutcome.RIGHT, observer="bob", detail="ran")
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
        item = known(app.desk.view.item)
        await press(pilot, "2")
        last = rows(session)[-1]
        assert last.adjudicates == tuple(row.id for row in item.inputs)
        assert (last.rater, last.category) == ("eve", Category.PARTIALLY_CORRECT)
        await press(pilot, "1", then="All done. Thank you.")


async def test_a_judgment_given_elsewhere_meanwhile_takes_the_item_away_from_a_panel(session: Path) -> None:
    async with sitting(seated(session)) as (app, pilot):
        item = known(app.desk.view.item)
        await press(pilot, "c", *"late")
        other = seated(session).room
        desk = other.desk("ann")
        desk.judge(Category.CORRECT)
        app.room.refresh()
        app.screen_stack[1].post_message(RoomRead(""))
        await until(pilot, lambda: app.desk.view.item != item)
        await press(pilot, "enter")
        assert "no longer on screen" in screen_text(pilot)
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
        left = known(app.desk.view.item)
        assert left.subject.trial_id != settled.trial_id


LOW = (60, 15)


async def test_keys_and_answers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    async with sitting(seated(rating_session(tmp_path / "s1", 2)), LOW) as (_app, pilot):
        text = screen_text(pilot)
        assert "0 - … enlarge to 24 lines to show all keys" in text
        await press(pilot, "?")
        text = screen_text(pilot)
        assert all(f"  {letter} " in text for letter in "abcd")
        assert "escape" in text
        assert "(known)\n" not in text
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "query heard" in screen_text(pilot)
