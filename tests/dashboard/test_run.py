"""Each key's effect on the run, at both sizes, over a real socket."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.widgets import Static

from harness.dashboard.app import Dashboard
from harness.dashboard.events import EventLine, LineTone
from harness.dashboard.screens.panels import HelpPanel, LinePrompt
from harness.dashboard.screens.questions import AskingPanel, SpeakingPanel
from harness.dashboard.screens.rating import RatingScreen
from harness.dashboard.widgets.bars import LargeText, large_letters, named_title, small_letters, state_words
from harness.dashboard.widgets.run import EventLog
from harness.model.effect import EffectOutcome
from harness.model.feed import (
    Abort,
    Answered,
    AnswerEffect,
    AnswerOperator,
    Goodbye,
    Logged,
    Misspoke,
    Pause,
    Rerun,
    Resume,
    SetMark,
    Skip,
    StateChanged,
    StateWord,
    TalkerPrompt,
    WriteNote,
)
from harness.model.record import NoteWritten, Paused, Question
from tests.dashboard.bench import LARGE, double, opened, press_until, shows, sizes, until
from tests.dashboard.engine_double import START_S, EngineDouble


@sizes
async def test_a_run_can_be_paused_and_resumed(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(double(tmp_path), size) as (engine, _, pilot):
        await press_until(pilot, shows(pilot, "pause: done"), "p")
        (sent,) = engine.commands(Pause)
        assert sent.by == "ann"
        engine.log(Paused("", "ann"))
        engine.say(StateWord.PAUSED)
        await until(pilot, shows(pilot, "PAUSED by ann"))
        await press_until(pilot, lambda: engine.commands(Resume), "p")


@sizes
async def test_skip_requires_a_reason(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(double(tmp_path), size) as (engine, _, pilot):
        await press_until(pilot, shows(pilot, "Type a text"), "s", "enter")
        assert engine.commands(Skip) == []
        await press_until(pilot, lambda: engine.commands(Skip), *"dog", "enter")
        (sent,) = engine.commands(Skip)
        assert sent.reason == "dog"


async def test_rerun_note_and_mark_are_sent_by_keys(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, _, pilot):
        await press_until(pilot, lambda: engine.commands(Rerun), "home", "down", "down", "r")
        await press_until(pilot, lambda: engine.commands(WriteNote), "n", *"loud", "enter")
        await press_until(pilot, lambda: engine.commands(SetMark), "m", *"bang", "enter")
        (rerun,), (note,), (mark,) = (engine.commands(kind) for kind in (Rerun, WriteNote, SetMark))
        assert rerun.trial_id == "kitchen-03"
        assert (note.text, note.trial_id) == ("loud", "kitchen-08")
        assert mark.label == "bang"


async def test_abort_needs_confirmation(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, _, pilot):
        await press_until(pilot, shows(pilot, "Abort this session?"), "a")
        await pilot.press("enter")
        await pilot.pause()
        assert engine.commands(Abort) == []
        await press_until(pilot, shows(pilot, "Abort this session?"), "a")
        await press_until(pilot, lambda: engine.commands(Abort), "y")


async def test_a_refusal_is_shown_with_its_reason(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, _, pilot):
        engine.refuse = "trial kitchen-08 is still running"
        await press_until(pilot, shows(pilot, "refused, trial kitchen-08 is still running"), "r")


async def test_a_command_is_open_until_it_is_answered(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, _, pilot):
        engine.silent = True
        await press_until(pilot, shows(pilot, "pause …"), "p")


def asks(app: Dashboard, about: Question) -> bool:
    return isinstance(app.screen, AskingPanel) and app.screen.question[2] is about


async def ask(app: Dashboard, engine: EngineDouble) -> None:
    engine.say(StateWord.ASKING, trial_id="kitchen-08", attempt=1, until_s=START_S + 42)


@sizes
@pytest.mark.parametrize(
    ("keys", "recognised", "heard"),
    [(["y"], True, ""), (["u"], None, ""), (["n", *"milk", "enter"], False, "milk"), (["n", "enter"], False, "")],
    ids=["yes", "cannot tell", "no", "no, unheard"],
)
async def test_the_operators_answer_is_sent(
    tmp_path: Path, size: tuple[int, int], keys: list[str], recognised: bool | None, heard: str
) -> None:
    async with opened(double(tmp_path), size) as (engine, app, pilot):
        await ask(app, engine)
        await until(pilot, shows(pilot, "42 s left to answer"))
        await press_until(pilot, lambda: engine.commands(AnswerOperator), *keys)
        (sent,) = engine.commands(AnswerOperator)
        assert (sent.trial_id, sent.attempt, sent.recognised, sent.heard) == ("kitchen-08", 1, recognised, heard)
        await until(pilot, lambda: not isinstance(app.screen, AskingPanel))


@sizes
@pytest.mark.parametrize(
    ("keys", "word", "detail"),
    [
        (["r"], EffectOutcome.RIGHT, ""),
        (["c"], EffectOutcome.UNKNOWN, ""),
        (["p", *"half", "enter"], EffectOutcome.PARTIAL, "half"),
        (["w", "enter"], EffectOutcome.WRONG, ""),
    ],
)
async def test_the_operators_answer_about_an_effect_is_sent(
    tmp_path: Path, size: tuple[int, int], keys: list[str], word: EffectOutcome, detail: str
) -> None:
    async with opened(double(tmp_path), size) as (engine, app, pilot):
        await ask(app, engine)
        await until(pilot, lambda: asks(app, Question.RECOGNITION))
        # The same attempt, another question: the panel changes without a key.
        engine.say(StateWord.ASKING, trial_id="kitchen-08", attempt=1, until_s=START_S + 42, asks=Question.EFFECT)
        await until(pilot, lambda: asks(app, Question.EFFECT))
        await until(pilot, shows(pilot, "r right   p partly   w wrong"))
        await pilot.press("y", "n")  # keys of the other question do nothing here
        await press_until(pilot, lambda: engine.commands(AnswerEffect), *keys)
        (sent,) = engine.commands(AnswerEffect)
        assert (sent.trial_id, sent.attempt, sent.word, sent.detail) == ("kitchen-08", 1, word, detail)
        assert engine.commands(AnswerOperator) == []
        await until(pilot, lambda: not isinstance(app.screen, AskingPanel))


async def test_a_question_can_be_put_aside_and_brought_back_and_closes_by_itself(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, app, pilot):
        await ask(app, engine)
        await until(pilot, lambda: isinstance(app.screen, AskingPanel))
        await press_until(pilot, lambda: not isinstance(app.screen, AskingPanel), "escape")
        await press_until(pilot, lambda: isinstance(app.screen, AskingPanel), "o")
        engine.say(StateWord.LISTENING, trial_id="kitchen-09", attempt=1)
        await until(pilot, lambda: not isinstance(app.screen, AskingPanel))
        assert engine.commands(AnswerOperator) == []


async def test_a_question_that_is_answered_and_over_at_once_closes_once(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, app, pilot):
        engine.silent = True
        await ask(app, engine)
        await until(pilot, lambda: isinstance(app.screen, AskingPanel))
        await press_until(pilot, lambda: engine.commands(AnswerOperator), "y")
        (sent,) = engine.commands(AnswerOperator)
        app.watch_.receive(StateChanged(StateWord.LISTENING, START_S, None, "kitchen-09", 1))
        app.redraw()
        app.watch_.receive(Answered(sent.id, True, ""))
        app.redraw()  # before Textual has taken the closed panel down
        await until(pilot, shows(pilot, "7 of 12"))


PROMPT = TalkerPrompt(
    "ann", "wie spät ist es", "Bitte sagen", "Bitte stehen bei mark 2, 1 m, 30°", "Bitte noch einmal."
)


@sizes
async def test_what_a_talker_says_is_shown_in_large_letters(tmp_path: Path, size: tuple[int, int]) -> None:
    async with opened(double(tmp_path), size) as (engine, app, pilot):
        until_s = START_S + 12
        speaking = {"trial_id": "kitchen-08", "attempt": 1, "asks": Question.SPEECH, "prompt": PROMPT}
        engine.say(StateWord.ASKING, until_s=until_s, **speaking)
        await until(pilot, shows(pilot, "Bitte noch einmal.   12 s"))
        letters = large_letters if size == LARGE else small_letters
        await until(pilot, shows(pilot, letters("WIE SPAT")[1]))
        await until(pilot, shows(pilot, "wie spät ist es"))  # with its umlaut
        engine.say(StateWord.ASKING, **speaking)  # it is heard: the words stay
        await press_until(pilot, lambda: engine.commands(Misspoke), "x")
        assert (engine.commands(Misspoke)[0].trial_id, engine.commands(Misspoke)[0].attempt) == ("kitchen-08", 1)
        engine.say(StateWord.LISTENING, trial_id="kitchen-08", attempt=1)
        await until(pilot, lambda: not isinstance(app.screen, SpeakingPanel))
        await press_until(pilot, lambda: len(engine.commands(Misspoke)) == 2, "x")


@pytest.mark.parametrize("text", ["请把客厅的灯打开然后播放一些安静的音乐", "てんき を おしえて " * 8])
def test_what_a_talker_says_in_a_wide_script_is_wrapped(text: str) -> None:
    *_, gap, first, second = LargeText().draw(("", "说", text), 30, 20).plain.splitlines()[:5]
    assert not gap
    assert 25 < cell_len(first) <= 30
    assert 0 < cell_len(second) <= 30


async def test_a_narrow_screen_shows_all_keys(tmp_path: Path) -> None:
    async with opened(double(tmp_path), (60, 24)) as (_, _app, pilot):
        await until(pilot, shows(pilot, "^q detach"))


async def test_waiting_counts_down(tmp_path: Path) -> None:
    async with opened(double(tmp_path), LARGE) as (engine, app, pilot):
        engine.say(StateWord.WAITING, trial_id="kitchen-08", attempt=2, until_s=START_S + 12)
        await until(pilot, lambda: app.watch_.view().remaining_s == pytest.approx(12))
        await until(pilot, shows(pilot, "attempt 2 of 3"))
        engine.say(StateWord.WAITING, trial_id="kitchen-08", attempt=2, until_s=START_S + 1800)
        await until(pilot, lambda: state_words(app.watch_.view())[0] == "WAITING 1800 s")


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_help_opens_on_every_screen(tmp_path: Path, key: str) -> None:
    async with opened(double(tmp_path)) as (engine, app, pilot):
        for opener, words in (("", "large word"), ("j", "Nothing is ever overwritten")):
            await pilot.press(*([opener] if opener else []))
            await press_until(pilot, shows(pilot, words), key)
            assert isinstance(app.screen, HelpPanel)
            await pilot.press("escape")
        assert isinstance(app.screen, RatingScreen)
        await pilot.press("escape")
        await ask(app, engine)
        await until(pilot, lambda: isinstance(app.screen, AskingPanel))
        await press_until(pilot, shows(pilot, "Only you can tell"), key)


async def test_the_palette_has_our_commands(tmp_path: Path) -> None:
    async with opened(double(tmp_path), LARGE) as (engine, app, pilot):
        titles = {command.title for command in app.get_system_commands(app.screen)}
        assert {"Pause or continue", "Skip", "Re-run", "Abort", "Judge responses", "Detach"} <= titles
        await pilot.press("ctrl+p")
        await press_until(pilot, lambda: engine.commands(Pause), *"pause", "enter", "enter")


async def test_ctrl_q_leaves_the_session_alone(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, app, pilot):
        await pilot.press("ctrl+q")
    assert app.return_value == 0
    assert engine.commands(Abort) == []


@sizes
async def test_a_lost_engine_is_a_banner(tmp_path: Path, size: tuple[int, int]) -> None:
    folder = tmp_path / "my tests"
    folder.mkdir()
    async with opened(double(folder), size) as (engine, app, pilot):
        engine.die()
        await until(pilot, shows(pilot, "The engine is gone"))
        await until(pilot, shows(pilot, "harness run resume '"))  # the folder's name has a blank
        assert not shows(pilot, "harness run resume SESSION")()
        await press_until(pilot, shows(pilot, "pause: refused, the engine is not running"), "p")
        await pilot.press("n")
        await until(pilot, shows(pilot, " refused, the engine is not running"))
        assert not isinstance(app.screen, LinePrompt)  # a text would be written in vain
        await pilot.press("ctrl+q")
    assert app.return_value == 3


async def test_the_engines_own_end_gives_its_exit_status(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, app, pilot):
        engine.send(Goodbye(1, "a limit failed"))
        await until(pilot, shows(pilot, "The engine has ended: a limit failed"))
        await pilot.press("ctrl+q")
    assert app.return_value == 1


async def test_a_burst_leaves_the_keys_alive(tmp_path: Path) -> None:
    async with opened(double(tmp_path)) as (engine, _, pilot):
        burst = [Logged(engine.rows.add(NoteWritten(f"line {n}", "board"))) for n in range(10_000)]
        engine.send(*burst)
        began_s = time.process_time()
        await press_until(pilot, lambda: engine.commands(Pause), "p")
        assert time.process_time() - began_s < 9
        await until(pilot, shows(pilot, "line 9999"))


class LogAlone(App[None]):
    def compose(self) -> Iterator[EventLog]:
        yield EventLog()


async def test_the_log_stays_at_its_end_when_lines_come_faster_than_they_are_drawn_and_it_becomes_lower() -> None:
    async with LogAlone().run_test(size=(40, 10)) as pilot:
        log = pilot.app.query_one(EventLog)
        for first in range(0, 80, 20):
            log.extend([EventLine(seq, "12:00:00", f"line {seq}", LineTone.PLAIN) for seq in range(first, first + 20)])
        await until(pilot, lambda: log.max_scroll_y > 60 and log.scroll_offset.y == log.max_scroll_y)
        await pilot.resize_terminal(40, 7)
        await until(pilot, lambda: log.size.height == 7 and log.scroll_offset.y == log.max_scroll_y)
        log.scroll_to(y=5, animate=False, force=True, immediate=True)
        log.extend([EventLine(80, "12:00:00", "line 80", LineTone.PLAIN)])
        await pilot.pause()
        assert log.scroll_offset.y == 5


async def test_a_title_keeps_the_end_of_a_long_name() -> None:
    class OneTitle(App[None]):
        def compose(self) -> ComposeResult:
            yield Static()

    app = OneTitle()
    async with app.run_test(size=(40, 5)):
        title = named_title(app.query_one(Static), "Trials: ", "set_a_timer_for_ten_minutes.v-belinda.r17").plain
    assert title == "Trials: set_a_timer_f….v-belinda.r17"
