"""A room of sessions on a disk: items without a name, judgments and sounds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.cli.rate_lines import item_lines
from harness.model.effect import EffectOutcome, EffectSource
from harness.model.errors import InputError, LogError
from harness.model.judgment import Category, GoldItem, ItemFilter, JudgmentStatus, RatingRound
from harness.model.record import Clip, Entry, JudgmentGiven, RatingRecord
from harness.model.stimulus import Waveform
from harness.model.trial import Outcome, Recognition
from harness.rating.desk import Desk
from harness.rating.exercises import BUILT_IN_EXERCISES
from harness.rating.figures.agreement import agreement_figures
from harness.rating.figures.judged_responses import read_sessions
from harness.rating.items import HiddenDetails, Item, Subject, new_row
from harness.rating.judgment_log import JudgmentLog
from harness.rating.rater_queue import raters_by_item
from harness.rating.rating_room import LEVEL_DBFS, RATE_HZ, RatingRoom
from harness.rating.session_items import blinded
from harness.session.log.database import SqliteLog
from harness.session.log.reader import check, rating_rows
from harness.sound.level import FULL_SCALE, active_speech_level, at_level_unclipped
from tests.judged_sessions import clips_of, judged
from tests.known import known
from tests.rating_sessions import TALKS, Talk, answer_effect, open_room, rating_session, rating_sessions
from tests.unit.rating.sittings import item
from tests.unit.session.figures.rows import Rows, planned

SESSIONS = [14, 24]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rooms")
    rating_sessions(root, *SESSIONS, effects=True)
    return root


@pytest.fixture
def folders(stored: Path, tmp_path: Path) -> list[Path]:
    return [Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in sorted(stored.iterdir())]


def saved_clip(log: SqliteLog, value: float = 0.0, start_s: float = 1.0) -> Clip:
    """Stores a clip of a second whose samples have all one value."""
    return log.save_clip(Waveform(np.full(8000, value, np.float32), 8000), start_s)


def append(log: SqliteLog, entries: Sequence[Entry]) -> None:
    for entry in entries:
        log.append(entry.record)


def test_answers_without_evidence_of_recognition_are_the_reason_why_nothing_can_be_judged(tmp_path: Path) -> None:
    """As of a device that reports no transcripts, with nobody to ask."""
    (tmp_path / "s1").mkdir()
    rows = Rows()
    with SqliteLog(tmp_path / "s1") as log:
        rows.start(planned(1, trial_id="q1"), planned(2, trial_id="q2"))
        for trial_id in ("q1", "q2"):
            rows.trial(trial_id, Outcome.INCONCLUSIVE, Recognition.UNKNOWN, clip=saved_clip(log))
        append(log, rows.entries)
    with pytest.raises(InputError, match="so 2 trials are inconclusive") as refused:
        open_room([tmp_path / "s1"])
    assert "`evidence: none`" in refused.value.remedy


@pytest.fixture
def room(folders: list[Path]) -> Iterator[RatingRoom]:
    rating_room = open_room(folders)
    yield rating_room
    rating_room.close()


def all_judged(desk: Desk, category: Category) -> None:
    while desk.view.item is not None:
        assert desk.judge(category)


def test_items_come_from_all_sessions_and_tell_what_is_needed(room: RatingRoom) -> None:
    assert len(room.items) == sum(SESSIONS)
    assert len({response.id for response in room.items}) == sum(SESSIONS)
    third = next(response for response in room.items if response.subject.trial_id == "weather-kitchen-3")
    assert (third.attempts, third.waits_s, third.subject.attempt) == (2, (5.0,), 2)
    assert (third.query, third.transcript) == (TALKS[2].query, TALKS[2].answer)
    assert third.length is not None
    assert third.clip is not None
    assert third.subject.span_s is not None
    assert third.subject.span_s[1] - third.subject.span_s[0] == pytest.approx(third.length.value_s)


def test_an_understood_query_counts_as_heard_although_a_word_was_misheard(tmp_path: Path) -> None:
    room = open_room([rating_session(tmp_path / "s1", 2, by_frame=True)])
    aid = known(room.desk("ann").begin_aid())
    assert aid.path[0] == "recognised=yes@harness"
    assert aid.question is not None, "the report counts these responses, so the aid leads to a category"
    room.close()


def test_positions_count_so_far_until_the_session_has_finished(tmp_path: Path) -> None:
    finished = rating_session(tmp_path / "s1", 2)
    running = rating_session(tmp_path / "s2", 2, session_id="s2", finished=False)
    for folders, growing in (([finished], False), ([finished, running], True)):
        room = open_room(folders)
        desk = room.desk("ann")
        assert desk.view.growing is growing
        room.update(desk)
        assert desk.view.growing is growing
        assert room.adjudication("lead").view.growing is growing
        (first, *_) = item_lines(desk.view)
        assert first.startswith(f"response 1 of {2 * len(folders)}{' so far' if growing else ''}, ")
        room.close()


SHARED = RatingRound(raters=("ann", "ben", "cem"), raters_per_item=1)


def test_shares_stay_while_one_of_several_sessions_goes_on(tmp_path: Path) -> None:
    other = rating_session(tmp_path / "s2", 6, session_id="s2")
    shares = []
    for count in (6, 14):
        running = rating_session(tmp_path / str(count) / "s1", count, finished=False)
        with closing(open_room([running, other], SHARED)) as room:
            shares.append(raters_by_item(room.items, SHARED))
    before, after = shares
    assert (len(before), len(after)) == (12, 20)
    assert {item_id: after[item_id] for item_id in before} == before


def test_shares_stay_when_a_trial_is_answered_only_when_it_runs_again(tmp_path: Path) -> None:
    folder = tmp_path / "s1"
    folder.mkdir()
    rows, names = Rows(), [f"q{number}" for number in range(1, 10)]
    with SqliteLog(folder) as log:
        rows.start(*(planned(number, trial_id=name) for number, name in enumerate(names, 1)))
        clip = saved_clip(log)
        for name in names:
            if name == "q2":
                rows.trial(name, Outcome.MISHEARD, Recognition.NO)
            else:
                rows.trial(name, clip=clip)
        append(log, rows.entries)
        with closing(open_room([folder], SHARED)) as room:
            before = raters_by_item(room.items, SHARED)
            written_count = len(rows.entries)
            rows.trial("q2", take=2, clip=clip)
            append(log, rows.entries[written_count:])
            room.refresh()
            after = raters_by_item(room.items, SHARED)
    assert (len(before), len(after)) == (8, 9)
    assert {item_id: after[item_id] for item_id in before} == before


def test_a_moved_response_stays_with_its_new_rater_when_its_trial_runs_again(tmp_path: Path) -> None:
    folder = tmp_path / "s1"
    folder.mkdir()
    rows = Rows()
    with SqliteLog(folder) as log:
        rows.start(planned(1, trial_id="q1"))
        rows.trial("q1", clip=saved_clip(log))
        rows.trial("q1", take=2, clip=saved_clip(log, 0.5, 9.0))
        second_take = next(index for index, entry in enumerate(rows.entries) if getattr(entry.record, "take", 1) == 2)
        append(log, rows.entries[:second_take])
        with closing(open_room([folder], SHARED)) as room:
            ((first_id, old_raters),) = raters_by_item(room.items, SHARED).items()
            (old_rater,) = old_raters
            new_rater, last_rater = (rater for rater in SHARED.raters if rater != old_rater)
            assert room.reassign(old_rater, (new_rater,), "carla") == (1, 0)
            append(log, rows.entries[second_take:])
            room.refresh()
            ((second_id, raters),) = raters_by_item(room.items, SHARED).items()
            assert (second_id == first_id, raters) == (False, {new_rater})
            assert room.reassign(new_rater, (last_rater,), "carla") == (1, 0)
            assert raters_by_item(room.items, SHARED) == {second_id: {last_rater}}


def test_items_shown_never_name_the_device(room: RatingRoom) -> None:
    for response in room.items:
        shown = replace(response, hidden=type(response.hidden)(), subject=type(response.subject)("", 1, ""))
        assert "kitchen" not in repr(shown)
        assert "den" not in response.id


def test_effects_are_known_or_hold_their_items(folders: list[Path], room: RatingRoom) -> None:
    words = {response.hidden.query_id: response.effect for response in room.items if response.effect is not None}
    assert {name: (effect.word, effect.source) for name, effect in words.items()} == {
        "timer": (EffectOutcome.UNKNOWN, EffectSource.NONE),
        "pause": (EffectOutcome.RIGHT, EffectSource.OPERATOR),
        "lamp": (EffectOutcome.WRONG, EffectSource.OPERATOR),
        "list": (EffectOutcome.RIGHT, EffectSource.OPERATOR),
    }
    desk = room.desk("ann")
    held_count = desk.view.count.held
    assert held_count == sum(response.waits_for_effect for response in room.items) > 0
    waiting = next(response for response in room.items if response.waits_for_effect)
    session = next(folder for folder in folders if folder.name == waiting.subject.session_id)
    answer_effect(session, waiting, word=EffectOutcome.RIGHT, observer="ann")
    room.refresh()
    desk.refresh(room.items, room.rows)
    assert desk.view.count.held == held_count - 1


def test_judgments_of_several_raters_stay_apart_and_on_the_disk(folders: list[Path], room: RatingRoom) -> None:
    all_judged(room.desk("ann"), Category.CORRECT)
    desk = room.desk("ben")
    assert desk.view.count.done == 0
    desk.judge(Category.WRONG)
    ids = {row.id for row in room.rows}
    stored = [
        row.record.judgment
        for folder in folders
        for row in rating_rows(folder)
        if isinstance(row.record, JudgmentGiven)
    ]
    assert {row.id for row in stored} == ids
    reopened = open_room(folders)
    assert reopened.desk("ann").view.count == room.desk("ann").view.count
    assert reopened.desk("ben").view.count.done == 1
    reopened.close()
    assert all(not check(folder).damage for folder in folders)


def test_a_desk_that_is_seated_without_reading_again_knows_the_last_row(room: RatingRoom) -> None:
    room.desk("ann").judge(Category.CORRECT)
    assert room.desk("ann").view.count.done == 1
    room.refresh()
    assert room.desk("ann").view.count.done == 1


def test_rows_of_another_process_come_with_the_next_reading(folders: list[Path], room: RatingRoom) -> None:
    other = open_room(folders)
    other.desk("ann").judge(Category.CORRECT)
    desk = room.desk("ann")
    assert desk.view.count.done == 0
    room.refresh()
    desk.refresh(room.items, room.rows)
    assert desk.view.count.done == 1
    other.close()


def test_a_judgment_at_the_bench_counts_after_a_skip_elsewhere(folders: list[Path], room: RatingRoom) -> None:
    desk = room.desk("ann")
    item = known(desk.view.item)
    desk.skip()
    at_bench = new_row(replace(item.subject, session_id=""), "ann", JudgmentStatus.SUBMITTED, Category.WRONG)
    folder = next(folder for folder in folders if folder.name == item.subject.session_id)
    with closing(JudgmentLog(folder)) as log:
        log.append(JudgmentGiven(at_bench))
    room.refresh()
    count = room.desk("ann").view.count
    assert (count.done, count.skipped) == (1, 0)
    (ann,) = agreement_figures(read_sessions(folders)).raters
    assert (ann.submitted, ann.skipped, ann.outdated) == (1, 0, 0)


def test_adjudication_has_the_inputs_and_leaves_out_what_others_settled(room: RatingRoom) -> None:
    ann, ben = room.desk("ann"), room.desk("ben")
    for _ in range(6):
        ann.judge(Category.CORRECT)
    all_judged(ben, Category.WRONG)
    settling = room.adjudication("cem")
    assert settling.view.count.total == 6
    assert settling.view.item is not None
    assert [row.category for row in settling.view.item.inputs] in (
        [Category.CORRECT, Category.WRONG],
        [Category.WRONG, Category.CORRECT],
    )
    settling.judge(Category.PARTIALLY_CORRECT)
    assert room.adjudication("cem").view.count.done == 1
    assert room.adjudication("dora").view.count.total == 5
    assert len(room.disputed) == 6
    assert room.desk("ann").view.count.done == 6


def test_a_round_draws_shares_gold_and_exercises(folders: list[Path]) -> None:
    gold = (GoldItem("s1", "moons-kitchen-1", Category.CORRECT), GoldItem("s1", "none", Category.WRONG))
    round_ = RatingRound(
        sessions=tuple(map(str, folders)),
        items=ItemFilter(devices=("kitchen",), limit=8),
        raters=("ann", "ben"),
        raters_per_item=1,
        exercises=BUILT_IN_EXERCISES[:2],
        gold=gold,
    )
    room = RatingRoom(round_)
    assert len(room.items) == 8
    assert [response.hidden.gold for response in room.items if response.hidden.gold] == [gold[0]]
    assert room.unmatched_gold == (gold[1],)
    assert len(room.exercises) == 2
    assert sum(room.desk(rater).view.count.total for rater in ("ann", "ben")) == 9
    with pytest.raises(InputError, match="not a rater in the round"):
        room.desk("cem")
    room.close()


def test_exercises_are_kept_with_the_first_session_and_harm_no_figure(folders: list[Path]) -> None:
    room = open_room(folders, RatingRound(exercises=BUILT_IN_EXERCISES[:1]))
    desk = room.desk("ann")
    desk.judge(BUILT_IN_EXERCISES[0].category)
    (row,) = [entry.record for entry in rating_rows(folders[0]) if isinstance(entry.record, JudgmentGiven)]
    assert row.judgment.trial_id == f"exercise:{BUILT_IN_EXERCISES[0].id}"
    assert len(open_room(folders).items) == sum(SESSIONS)
    room.close()


def test_sounds_are_the_stored_response_the_query_alone_and_a_spoken_exercise(folders: list[Path]) -> None:
    room = open_room(folders, RatingRound(exercises=BUILT_IN_EXERCISES[:1]))
    response = room.items[0]
    assert response.clip is not None
    heard = room.response_sound(response)
    assert (len(heard.samples), heard.rate_hz) == (response.clip.samples, response.clip.rate_hz)
    query = room.query_sound(response)
    assert 0.5 < query.duration_s < 5
    assert float(np.abs(query.samples).max()) > 0.01
    exercise = room.exercises[0]
    assert room.response_sound(exercise).duration_s > 0.5
    assert room.query_sound(exercise).duration_s > 0.5
    (folders[0] / "clips" / response.clip.name).unlink()
    with pytest.raises(LogError, match="is missing"):
        room.response_sound(response)
    room.close()


def test_invalid_rating_sessions_are_refused(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="listed twice"):
        open_room([folders[0], folders[0]])
    with pytest.raises(InputError, match="no first response"):
        open_room(folders, RatingRound(items=ItemFilter(devices=("bath",))))
    with pytest.raises(LogError, match="not a session folder"):
        open_room([tmp_path / "none"])
    (folders[0] / "judgments.sqlite").write_bytes(b"hello" * 999)
    with pytest.raises(LogError, match=r"judgments\.sqlite is damaged or not a database"):
        open_room(folders)


def test_a_row_stored_twice_is_read_once(folders: list[Path], room: RatingRoom) -> None:
    desk = room.desk("ann")
    desk.judge(Category.CORRECT)
    row = room.rows[0]
    log = JudgmentLog(folders[0] if row.session_id == "s1" else folders[1])
    log.append(JudgmentGiven(row))
    log.close()
    room.refresh()
    assert [judgment.id for judgment in room.rows] == [row.id]


def test_rows_that_were_read_before_an_error_come_with_the_next_reading(folders: list[Path], room: RatingRoom) -> None:
    trial_id, (attempt, clip) = next(iter(clips_of(folders[0]).items()))
    row = judged(trial_id, clip, "zoe", Category.WRONG, attempt=attempt, session_id="s1")
    with SqliteLog(folders[0]) as log:
        log.append(JudgmentGiven(row))
    stray = folders[0] / "judgments.sqlite"
    stray.write_bytes(b"hello" * 999)
    with pytest.raises(LogError):
        room.refresh()
    stray.unlink()
    room.refresh()
    assert [judgment.id for judgment in room.rows] == [row.id]


def test_a_row_that_another_thread_reads_as_soon_as_it_is_on_the_disk_is_there_once(
    room: RatingRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = JudgmentLog.append

    def append_and_read(log: JudgmentLog, record: RatingRecord) -> None:
        append(log, record)
        room.refresh()

    monkeypatch.setattr(JudgmentLog, "append", append_and_read)
    room.desk("ann").judge(Category.CORRECT)
    assert [judgment.category for judgment in room.rows] == [Category.CORRECT]


DEVICES = ("kitchen", "kitchen-2", "Echo. Dot")


def shown(note: str) -> str:
    before = replace(item(1), note=note, transcript="kitchen here")
    after = blinded(before, DEVICES)
    assert (after.query, after.transcript) == (before.query, "kitchen here")
    return after.note


def test_names_of_devices_are_replaced_in_notes() -> None:
    assert shown("KITCHEN-2 mumbles; the kitchen does not") == "the device mumbles; the device does not"


def test_device_names_match_whole_words_and_not_patterns() -> None:
    assert shown("kitchens, Echoes Dot, echo. dot!") == "kitchens, Echoes Dot, the device!"


def test_without_names_nothing_changes() -> None:
    plain = replace(item(1), note="as it was")
    assert blinded(plain, ("",)) == plain


TWO_TALKS = (
    Talk("pause", "pause the timer", "it is paused", "timers", "the timer pauses", "paused"),
    Talk("pause", "pause the timer", "it is paused", "timers", "the timer pauses", None, EffectOutcome.RIGHT),
)
"""Of the first device the state tells it, of the second one somebody has looked."""


def seen(item: Item) -> Item:
    """What front-ends show of an item."""
    return replace(item, id="", subject=Subject("", 1, ""), clip=None, length=None, hidden=HiddenDetails())


def sounds(room: RatingRoom) -> list[Waveform]:
    return [room.response_sound(item) for item in room.items]


def test_two_devices_with_other_sound_and_evidence_give_the_same_item(tmp_path: Path) -> None:
    of_devices = {"kitchen": (48_000, -30.0), "den": (22_050, -1.0)}
    room = open_room([rating_session(tmp_path / "s1", 2, effects=True, talks=TWO_TALKS, sounds=of_devices)])
    first, second = room.items
    assert {response.clip.rate_hz for response in room.items if response.clip is not None} == {48_000, 22_050}
    assert seen(first) == seen(second)
    assert first.effect is not None
    assert (first.effect.word, first.effect.said, first.effect.check.state) == (EffectOutcome.RIGHT, "", ())
    assert first.transcript == "it is paused"
    heard = sounds(room)
    assert [sound.rate_hz for sound in heard] == [RATE_HZ, RATE_HZ]
    assert len(heard[0].samples) == pytest.approx(len(heard[1].samples), abs=2)
    for sound in heard:
        level = known(active_speech_level(sound))
        assert level.level_dbfs == pytest.approx(LEVEL_DBFS, abs=0.1)
    room.close()


def test_reported_response_text_replaces_a_missing_transcript(tmp_path: Path) -> None:
    room = open_room([rating_session(tmp_path / "s1", 2, transcripts=False)])
    assert [response.transcript is None for response in room.items] == [True, False]
    room.close()


def test_a_common_level_never_clips_and_leaves_silence_alone() -> None:
    click = np.zeros(16_000, dtype=np.float32)
    click[8000:8010] = 0.5
    loud = at_level_unclipped(Waveform(click, 16_000), -3.0)
    assert float(np.abs(loud.samples).max()) == pytest.approx(FULL_SCALE, abs=1e-4)
    silence = Waveform(np.zeros(1600, dtype=np.float32), 16_000)
    assert at_level_unclipped(silence, -26.0) is silence


def test_notes_of_the_operator_are_not_shown(tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 12, effects=True)
    room = open_room([session])
    waiting = next(item for item in room.items if item.waits_for_effect)
    answer_effect(session, waiting, word=EffectOutcome.WRONG, observer="bob", detail="it rang")
    room.refresh()
    effect = known(next(item.effect for item in room.items if item.id == waiting.id))
    assert (effect.word, effect.said) == (EffectOutcome.WRONG, "")
    room.close()


def test_a_rater_keeps_the_first_spelling_of_the_name(tmp_path: Path) -> None:
    folder = rating_session(tmp_path / "s1", 2)
    room = open_room([folder])
    desk = room.desk("Jörg")
    desk.judge(Category.WRONG)
    room.close()
    with closing(open_room([folder])) as reopened:
        assert reopened.desk("jo\u0308rg").rater == "Jörg"
        assert reopened.desk("jo\u0308rg").view.count.done == 1
        assert [entry.rater for entry in reopened.progress(["JÖRG"])] == ["Jörg"]
