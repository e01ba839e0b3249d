"""The wake screen over a real socket, with the figures worked out from rows."""

import random
import time
from pathlib import Path

import pytest

from harness.dashboard.screens.panels import HelpPanel
from harness.dashboard.screens.run import RunScreen
from harness.dashboard.screens.wake import REVIEW_KEYS, UnmatchedList, WakeScreen
from harness.model.feed import Goodbye, Logged, Pause, Replay, Review, StateWord
from harness.model.observation import LinkBack, LinkLost, ListeningProved, Proof, Wake
from harness.model.record import DecisionReached, Observed, ReviewVerdict, TrialStarted
from harness.model.scenario import TrialKind
from harness.model.time import Stamp
from tests.dashboard.bench import (
    LARGE,
    SMALL,
    double,
    opened,
    press_until,
    raw,
    screen_text,
    shows,
    sizes,
    still,
    until,
)
from tests.dashboard.engine_double import EngineDouble
from tests.dashboard.test_hostile import HOSTILE
from tests.dashboard.wake_bench import NAMES, wake_dashboard, wake_double, wake_opened
from tests.known import known
from tests.unit.session.figures.rows import planned
from tests.unit.wake.wake_rows import WakeRows, wake_trial


async def test_the_timeline_has_every_kind_of_mark_and_the_band_narrows(tmp_path: Path) -> None:
    rows = WakeRows()
    trials = [wake_trial(n) for n in range(1, 13)]
    sound = wake_trial(13, TrialKind.AMBIENT)
    rows.plan(*trials, sound)
    for trial in trials:
        rows.play(trial, [] if trial.number == 5 else [("kitchen", 1.8)])
    async with wake_opened(EngineDouble(tmp_path, rows), LARGE, "1 of 12") as (_, _, pilot):

        def marks() -> tuple[int, int]:
            strip = "".join(line for line in screen_text(pilot).splitlines() if line.lstrip().startswith("−"))
            return strip.count("✓"), strip.count("✗")

        await until(pilot, lambda: marks() == (11, 1))
        await still(pilot)
        band = [line for line in screen_text(pilot).splitlines() if any("⠀" < char <= "⣿" for char in line)]
        dots = [sum(bin(ord(line[column]) - 0x2800).count("1") for line in band if "⠀" <= line[column] <= "⣿") for
                column in range(LARGE[0])]  # fmt: skip
        drawn = [dot for dot in dots if dot]
        assert drawn[0] > drawn[-1] > 0, "the interval after the first trial is wider than after the twelfth"


@pytest.mark.parametrize(("key", "word"), REVIEW_KEYS)
async def test_a_key_says_what_the_event_was_and_goes_on_to_the_next(
    tmp_path: Path, key: str, word: ReviewVerdict
) -> None:
    async with wake_opened(wake_double(tmp_path)) as (engine, app, pilot):
        events = app.screen.query_one(UnmatchedList)
        latest = known(events.selected)
        await press_until(pilot, shows(pilot, "6, 4 to review"), key)
        (sent,) = engine.commands(Review)
        assert (sent.event_seq, sent.word, sent.by) == (latest.seq, word, "ann")
        await until(pilot, lambda: events.selected is not None and events.selected.seq < latest.seq)
        after = known(events.selected)
        assert after.verdict is None, "one that nobody has reviewed yet"
        await until(pilot, shows(pilot, "done"))
        await press_until(pilot, shows(pilot, "6, 5 to review"), "u")
        assert engine.commands(Review)[-1].word is None
        assert engine.commands(Review)[-1].event_seq == latest.seq
        await until(pilot, lambda: events.selected is not None and events.selected.seq == latest.seq)


async def test_a_review_that_is_not_answered_is_not_shown_as_done_and_takes_no_second_key(tmp_path: Path) -> None:
    async with wake_opened(wake_double(tmp_path)) as (engine, _, pilot):
        engine.silent = True
        await press_until(pilot, lambda: engine.commands(Review), "f", "x")
        await until(pilot, shows(pilot, "false accept …"))
        assert len(engine.commands(Review)) == 1
        assert "5 to review" in screen_text(pilot)


async def test_a_refused_review_says_why_and_the_event_stays(tmp_path: Path) -> None:
    async with wake_opened(wake_double(tmp_path)) as (engine, app, pilot):
        engine.refuse = "no row of that number is a wake event"
        events = app.screen.query_one(UnmatchedList)
        before = events.selected
        await press_until(pilot, shows(pilot, "refused, no row of that number is a wake event"), "h")
        assert events.selected == before


async def test_a_new_event_does_not_take_a_key_meant_for_another(tmp_path: Path) -> None:
    async with wake_opened(wake_double(tmp_path)) as (engine, app, pilot):
        selected = known(app.screen.query_one(UnmatchedList).selected)
        stamp = Stamp(engine.rows.at_s + 30)
        engine.log(Observed(Wake(f"{NAMES[0]}_link", stamp, "alexa", 0.5), None))
        await until(pilot, shows(pilot, "7, 6 to review"))
        await press_until(pilot, lambda: engine.commands(Review), "f")
        assert engine.commands(Review)[0].event_seq == selected.seq


async def test_replay_needs_sound_and_a_monitor(tmp_path: Path) -> None:
    async with wake_opened(wake_double(tmp_path)) as (engine, _, pilot):
        await press_until(pilot, shows(pilot, "replay: done"), "enter")
        (sent,) = engine.commands(Replay)
        assert sent.clip_name == "event.flac"
        await press_until(pilot, shows(pilot, "not stored yet"), "down", "enter")
        assert len(engine.commands(Replay)) == 1


async def test_w_switches_screens_and_p_pauses_on_both(tmp_path: Path) -> None:
    async with wake_opened(wake_double(tmp_path)) as (engine, app, pilot):
        await press_until(pilot, lambda: len(engine.commands(Pause)) == 1, "p")
        await press_until(pilot, lambda: isinstance(app.screen, RunScreen), "w")
        await until(pilot, shows(pilot, "ambient-88"))
        assert "w wake" in screen_text(pilot)
        await press_until(pilot, lambda: isinstance(app.screen, WakeScreen), "w")
        await press_until(pilot, lambda: isinstance(app.screen, HelpPanel), "question_mark")
        await until(pilot, shows(pilot, "the time-uniform interval"))


async def test_events_without_phrase_and_score_leave_no_gap(tmp_path: Path) -> None:
    rows = WakeRows()
    rows.plan(wake_trial(1, TrialKind.AMBIENT))
    rows.see(Wake("kitchen_link", Stamp(rows.at_s), ""))
    with EngineDouble(tmp_path, rows) as engine:
        async with wake_dashboard(engine).run_test(size=SMALL) as pilot:
            await until(pilot, shows(pilot, "no trial     unreviewed · not exposed"))


@sizes
async def test_a_finished_wake_screen_names_the_key_that_leaves(tmp_path: Path, size: tuple[int, int]) -> None:
    async with wake_opened(wake_double(tmp_path), size) as (engine, _, pilot):
        assert "p pause" in screen_text(pilot)
        engine.say(StateWord.FINISHED)
        await until(pilot, shows(pilot, "^q leave"))
        assert "p pause" not in screen_text(pilot)


async def test_a_session_of_queries_has_no_wake_screen(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (_, app, pilot):
        assert isinstance(app.screen, RunScreen)
        await press_until(pilot, shows(pilot, "no wake, command or ambient trials"), "w")
        assert "w wake" not in screen_text(pilot)


async def test_with_queries_too_it_opens_only_by_the_key(tmp_path: Path) -> None:
    rows = WakeRows()
    rows.plan(planned(1), wake_trial(2))
    rows.play(wake_trial(2), [("kitchen", 1.8)])
    async with wake_opened(EngineDouble(tmp_path, rows), SMALL, "1 of 2") as (_, app, pilot):
        assert isinstance(app.screen, RunScreen)
        await press_until(pilot, shows(pilot, "0.00 %  0 of 1"), "w")


@sizes
async def test_faults_are_shown_where_they_occur(tmp_path: Path, size: tuple[int, int]) -> None:
    async with wake_opened(wake_double(tmp_path, NAMES[:2]), size, "to review") as (engine, _, pilot):
        link = f"{NAMES[0]}_link"
        engine.log(Observed(LinkLost(link, Stamp(engine.rows.at_s), "port /dev/ttyUSB0 is gone")))
        await until(pilot, shows(pilot, "LINK LOST: port /dev/ttyUSB0 is gone"))
        engine.log(
            Observed(LinkBack(link, Stamp(engine.rows.at_s))),
            DecisionReached(NAMES[0], "false_accepts", False),
            DecisionReached(NAMES[1], "false_rejects", True),
        )
        await until(pilot, lambda: "LINK LOST" not in screen_text(pilot))
        await until(pilot, shows(pilot, "test fails"))
        engine.die()
        await until(pilot, shows(pilot, "The engine is gone"))
        await press_until(pilot, shows(pilot, "refused, the engine is not running"), "f")


async def test_listening_that_is_not_proved_any_more_is_said_while_it_matters(tmp_path: Path) -> None:
    rows = WakeRows()
    rows.plan(wake_trial(1), wake_trial(2))
    rows.play(wake_trial(1), [("kitchen", 1.8)])
    rows.at_s += 40
    async with wake_opened(EngineDouble(tmp_path, rows), SMALL, "listening last proved 42 s ago") as (engine, _, pilot):
        engine.log(TrialStarted("wake-2", 1))
        await until(pilot, shows(pilot, "listening unproven for 42 s"))
        engine.log(Observed(ListeningProved("kitchen_link", Stamp(rows.at_s + 1), Proof.HEARTBEAT)))
        await until(pilot, shows(pilot, "listening proved 0 s ago"))


async def test_before_anything_was_heard_nothing_is_a_number(tmp_path: Path) -> None:
    rows = WakeRows()
    rows.plan(wake_trial(1), wake_trial(2, TrialKind.AMBIENT))
    async with wake_opened(EngineDouble(tmp_path, rows), SMALL, "FR    n/a  0 of 0") as (engine, _, pilot):
        await until(pilot, shows(pilot, "FA/h  n/a  0 in 0.000 h"))
        assert "every wake event so far belongs to a stimulus" in screen_text(pilot)
        await press_until(pilot, shows(pilot, "there is no event to review"), "f")
        assert engine.commands(Review) == []


@sizes
async def test_many_devices_are_reached_by_scrolling(tmp_path: Path, size: tuple[int, int]) -> None:
    names = [f"board-{n:02}" for n in range(12)]
    async with wake_opened(wake_double(tmp_path, names), size, "board-00") as (_, _, pilot):
        assert "board-11  link" not in screen_text(pilot)
        await press_until(pilot, shows(pilot, "board-00 : board-11  same 60"), "tab", "end")
        await press_until(pilot, shows(pilot, "board-11  link"), *["up"] * 6)


@sizes
async def test_hostile_text_in_every_field(tmp_path: Path, size: tuple[int, int]) -> None:
    trial = wake_trial(1, TrialKind.AMBIENT, (HOSTILE,))
    rows = WakeRows()
    rows.plan(trial, wake_trial(2, devices=(HOSTILE,)))
    (seq,) = rows.play(trial, [(HOSTILE, 12.0)])
    link = f"{HOSTILE}_link"
    with EngineDouble(tmp_path, rows) as engine:
        app = wake_dashboard(engine)
        async with app.run_test(size=size) as pilot:
            await until(pilot, shows(pilot, "1, 1 to review"))
            assert raw(pilot) == []
            engine.log(
                Observed(Wake(link, Stamp(rows.at_s), HOSTILE, 0.3)),
                Observed(LinkLost(link, Stamp(rows.at_s), HOSTILE)),
                DecisionReached(HOSTILE, "false_accepts", False),
            )
            engine.say(StateWord.INTERRUPTED, trial_id=trial.id, attempt=1, reason=HOSTILE)
            await until(pilot, shows(pilot, "LINK LOST: [/red] [wake]"))
            assert raw(pilot) == []
            engine.refuse = HOSTILE
            await press_until(pilot, shows(pilot, "refused"), "f")
            assert raw(pilot) == []
            engine.send(Goodbye(0, HOSTILE))
            await until(pilot, shows(pilot, "The engine has ended"))
            assert raw(pilot) == []
    assert seq


async def test_a_flood_of_events_leaves_the_keys_alive(tmp_path: Path) -> None:
    async with wake_opened(wake_double(tmp_path)) as (engine, _, pilot):
        at_s, chance = engine.rows.at_s, random.Random(1)
        burst = [
            Logged(
                engine.rows.add(Observed(Wake(f"{NAMES[0]}_link", Stamp(at_s + 3 * n), f"alexa {n}", chance.random())))
            )
            for n in range(5_000)
        ]
        engine.send(*burst)
        began_s = time.process_time()
        await press_until(pilot, lambda: engine.commands(Pause), "p")
        await until(pilot, shows(pilot, "4999 ou"))  # …tside; the list may stay where its cursor is
        assert time.process_time() - began_s < 30
