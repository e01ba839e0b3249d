"""`harness rate` in plain lines: labels, commands, scripts that go wrong, kills, and what the options choose."""

from __future__ import annotations

import io
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.cli.rate_lines import InvalidCommand, RateWord, TypedCommand, parse
from harness.cli.rate_plain import PlainSitting
from harness.dashboard import sitting_app
from harness.model.errors import SoundError
from harness.model.judgment import Category, Judgment, JudgmentStatus, RaterAction, RaterKeys, in_force
from harness.model.record import JudgmentGiven
from harness.model.stimulus import Waveform
from harness.rating.guide import LABELS
from harness.rating.rater_player import OnDone, RaterPlayer
from harness.session.log.reader import rating_rows
from harness.sound.tempo import SLOWER
from tests.command import succeeded
from tests.rating_sessions import open_room, rating_session

KEYS = RaterKeys()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rating_session(tmp_path_factory.mktemp("rate") / "s1", 12, effects=True)


@pytest.fixture
def session(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Path(shutil.copytree(stored, tmp_path / "s1"))


def rate(session: Path, lines: str, *options: str) -> Result:
    arguments = ["rate", str(session), "--rater", "ann", "--no-sound", *options]
    return CliRunner().invoke(group, arguments, input=lines)


def given(session: Path) -> list[Judgment]:
    return [entry.record.judgment for entry in rating_rows(session) if isinstance(entry.record, JudgmentGiven)]


def categories(session: Path) -> list[Category | None]:
    return [row.category for row in in_force(given(session))]


def test_each_label_of_a_script_is_confirmed_as_saved(session: Path) -> None:
    result = succeeded(
        rate(session, "1\nsure 2\nsub too_much\ncomment half of it\npartially correct\nslot_request\nWrong\n-\n")
    )
    assert categories(session) == [
        Category.CORRECT,
        Category.PARTIALLY_CORRECT,
        Category.SLOT_REQUEST,
        Category.WRONG,
        Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE,
    ]
    second = given(session)[1]
    assert (second.confidence, second.sub_flags, second.comment) == (2, ("too_much",), "half of it")
    assert [line for line in result.output.splitlines() if line.startswith("saved as Partially correct (response ")]
    assert "ended: 5 of 12 done" in result.output
    for hidden in ("kitchen", "den-", "moons", "±"):
        assert not [line for line in result.output.splitlines() if hidden in line and not line.startswith("query: ")]


def test_a_comment_that_is_too_long_ends_a_script_before_it_labels(session: Path) -> None:
    result = rate(session, f"comment {'x' * 10_001}\nwrong\n")
    assert result.exit_code == 2
    assert "the comment has 10,001 characters; the limit is 10,000" in result.output
    assert not given(session)


def test_the_end_of_the_input_and_quit_end_in_order(session: Path) -> None:
    for lines in ("1\n", "1\nquit\n", "1\nq\n2\n"):
        result = rate(session, lines)
        assert (result.exit_code, "everything is saved" in result.output) == (0, True)
    assert len(given(session)) == 3


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("wrogn", "Did you mean 'wrong'?"),
        ("paly", "Did you mean 'play'?"),
        ("sure 4", "sure 1 (unsure) to sure 3 (sure)"),
        ("flag audio", "Did you mean 'audio_bad'?"),
        ("sub to_much", "Did you mean 'too_much'?"),
        ("claims perhaps", "claims yes or claims no"),
        ("undo", "nothing is left to undo"),
        ("play", "no sound device is open"),
        ("%%%", "help lists the commands"),
        ("\x1b[31mwrong", "'\\e[31mwrong' is not a command"),
        ("x" * 100_000, "x…' is not a command"),
    ],
)
def test_a_wrong_line_is_answered_and_ends_a_script(session: Path, line: str, answer: str) -> None:
    result = rate(session, f"{line}\n1\n")
    assert result.exit_code == 2
    assert answer in result.output
    assert "the script ends here" in result.output
    assert "\x1b" not in result.output
    assert given(session) == [], "the lines after it would be about another response"


def test_undo_skip_hold_and_flag(session: Path) -> None:
    result = succeeded(rate(session, "1\n9\nundo\nundo\nskip\nhold\nflag privacy\nstatus\n"))
    standing = [row.status for row in in_force(given(session))]
    assert standing == [JudgmentStatus.SKIPPED, JudgmentStatus.HELD, JudgmentStatus.FLAGGED]
    assert "responses: 12, 1 done, 9 left, 1 of them left for later, 2 held, 1 put aside" in result.output


def test_undo_reaches_judgments_of_an_earlier_sitting(session: Path) -> None:
    rate(session, "1\n9\n")
    assert rate(session, "undo\nundo\n").exit_code == 0
    assert categories(session) == []


def test_rating_skips_held_items_until_they_are_requested(session: Path) -> None:
    result = succeeded(rate(session, "1\n" * 11))
    assert "nothing is left to judge: 11 of 12 done, 1 held" in result.output
    assert rate(session, "1\n").exit_code == 2
    assert rate(session, "held\n1\n").exit_code == 0
    assert len(categories(session)) == 12


def test_transcript_is_hidden_until_requested_and_as_the_round_allows(session: Path) -> None:
    hidden = rate(session, "item\n")
    assert "transcript: hidden" in hidden.output
    output = rate(session, "text\n1\n").output
    assert output.count("\ntranscript: hidden") < output.count("\ntranscript: ")
    assert given(session)[-1].transcript_shown
    shown = rate(session, "2\n", "--transcript", "shown")
    assert "transcript: hidden" not in shown.output
    never = rate(session, "text\n", "--transcript", "never")
    assert (never.exit_code, "hides transcripts" in never.output) == (2, True)


def test_the_aid_leads_to_a_label_and_its_path_is_kept(session: Path) -> None:
    result = succeeded(rate(session, "aid\nback\nb\nsave\naid\nleave\n1\n"))
    assert "Question" in result.output
    first, second = given(session)
    assert first.aid_path
    assert (first.category is None) == (first.status is not JudgmentStatus.SUBMITTED)
    assert (second.category, second.aid_path) == (Category.CORRECT, ())


@pytest.mark.parametrize(
    ("lines", "status", "message", "path"),
    [
        ("", 2, "was not saved; use `save`", 0),
        ("quit\n", 2, "was not saved; use `save`", 0),
        ("1\n", 2, "nothing has been saved yet", 0),
        ("leave\n", 0, "left the aid; nothing was saved", 0),
        ("back\nleave\n", 0, "left the aid; nothing was saved", 0),
        ("item\nsave\n", 0, "everything is saved", 1),
    ],
)
def test_result_of_the_aid_is_saved_only_after_confirmation(
    session: Path, lines: str, status: int, message: str, path: int
) -> None:
    result = rate(session, f"aid\nb\n{lines}")
    assert (result.exit_code, message in result.output) == (status, True), result.output
    assert "`save` saves this" in result.output
    assert [bool(row.aid_path) for row in given(session)] == [True] * path


def test_a_category_labels_within_the_aid(session: Path) -> None:
    rate(session, "aid\nwrong\n1\n")
    assert categories(session) == [Category.WRONG, Category.CORRECT]


def test_answers_to_exercises_are_explained(session: Path) -> None:
    result = rate(session, "1\n2\n", "--training")
    assert "exercise 1 of 27" in result.output
    assert "why: " in result.output
    assert all(row.trial_id.startswith("exercise:") for row in given(session))
    assert "exercises: 2 of 27 done" in rate(session, "", "--training", "--list").output


def test_a_repeated_exercise_says_why_it_comes_again(session: Path) -> None:
    output = rate(session, "correct rejection\n" * 28, "--training").output
    assert "exercise 27 of 27\n" in output
    assert "exercise 3 of 27 again, since too few of your answers were right\n" in output


def test_releasing_held_responses_says_so_when_none_is_held(session: Path) -> None:
    assert "no response is held\n" in rate(session, "held\n", "--class", "lists").output
    assert "no response is held" not in rate(session, "hold\nheld\n", "--class", "lists").output


def test_showing_rater_names_requires_adjudication(session: Path) -> None:
    assert "--adjudicate" in str(getattr(rate(session, "", "--names").exception, "remedy", ""))


def test_a_round_without_transcripts_offers_none(session: Path) -> None:
    assert "\ntext: show the transcript" in rate(session, "help\n").output
    never = rate(session, "help\n", "--transcript", "never").output
    assert "\ntext: " not in never
    assert "`text`" not in never


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_leaving_the_screen_says_that_all_is_saved_and_how_to_continue(
    session: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sitting_app.SittingApp, "run", lambda app: app.desk.judge(Category.WRONG) and None)
    monkeypatch.setattr(sys, "stdin", _Terminal())
    monkeypatch.setattr(sys, "stderr", _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(SystemExit, match="0"):
        group.main(["rate", str(session), "--rater", "ann", "--no-sound", "--limit", "2"], standalone_mode=False)
    line = capsys.readouterr().out
    assert line.startswith("ended: 1 of 2 done, 1 left")
    assert line.endswith("everything is saved. Run the same command to continue\n")


def test_no_remaining_time_is_shown_when_nothing_is_left(session: Path) -> None:
    assert "ended: 1 of 2 done, 1 left, about 1 min at your pace;" in rate(session, "1\n", "--limit", "2").output
    assert "ended: 2 of 2 done, 0 left;" in rate(session, "1\nstatus\n", "--limit", "2").output


def test_the_list_applies_filters_and_counts_items(session: Path) -> None:
    assert "round open: 12 responses of 1 session" in rate(session, "", "--list").output
    few = rate(session, "", "--list", "--device", "den", "--condition", "noise=quiet", "--limit", "2", "--round", "r2")
    assert "round r2: 2 responses of 1 session" in few.output
    assert "ann: 1 to judge" in rate(session, "", "--list", "--class", "lists").output
    assert "ann: 2 to judge" in rate(session, "", "--list", "--trial", "hot-den-6", "--trial", "moon-kitchen-7").output
    nothing = rate(session, "", "--device", "bath")
    assert nothing.exception is not None
    assert "no first response to judge" in str(nothing.exception)


def test_disagreement_is_settled_with_the_judgments_in_view(session: Path) -> None:
    rate(session, "1\n1\n")
    options = ["rate", str(session), "--no-sound"]
    CliRunner().invoke(group, [*options, "--rater", "ben"], input="9\n" * 11)
    assert "raters disagree on 2 responses" in rate(session, "", "--list").output
    with_names = CliRunner().invoke(group, [*options, "--rater", "cem", "--adjudicate", "--names"], input="")
    assert "judgment 1 of ann: " in with_names.output or "judgment 1 of ben: " in with_names.output
    settled = succeeded(CliRunner().invoke(group, [*options, "--rater", "cem", "--adjudicate"], input="1\n9\n"))
    assert settled.output.count("judgment 1: ") == 2
    assert "ben" not in settled.output
    assert all(len(row.adjudicates) == 2 for row in given(session) if row.rater == "cem")
    listing = CliRunner().invoke(group, [*options, "--rater", "dora", "--adjudicate", "--list"])
    assert "dora: 0 to settle" in listing.output
    assert "raters disagree on 2 responses; 2 settled\n" in rate(session, "", "--list").output


def test_an_adjudication_without_disputes_is_done(session: Path) -> None:
    settle = ["rate", str(session), "--no-sound", "--rater", "cem", "--adjudicate"]
    nothing = succeeded(CliRunner().invoke(group, settle, input="1\nundo\n"))
    assert "nothing is left to settle: 0 of 0 done, 0 held\n" in nothing.output
    assert "nothing to undo" not in nothing.output
    rate(session, "1\n")
    CliRunner().invoke(group, ["rate", str(session), "--rater", "ben", "--no-sound"], input="9\n" * 11)
    assert CliRunner().invoke(group, settle, input="1\n9\n").exit_code == 2, "one line more than disputes"
    again = succeeded(CliRunner().invoke(group, settle, input="1\n"))
    assert "nothing is left to settle: 1 of 1 done, 0 held\nthere is nothing to settle\n" in again.output
    opened = succeeded(CliRunner().invoke(group, settle, input="undo\n1\n"))
    assert "saved as Correct" in opened.output


def test_options_override_a_round_file(session: Path) -> None:
    path = session.parent / "round.yaml"
    path.write_text("round: spring\nsessions: [s1]\ntraining: none\nraters: [ann, ben]\nraters_per_item: 1\n")
    assert "round spring: 12 responses" in rate(path, "", "--list").output
    assert "ann: 6 to judge" in rate(path, "", "--list").output
    assert "round spring: 4 responses" in rate(path, "", "--list", "--limit", "4").output
    rate(path, "1\n")
    assert given(session)[-1].round == "spring"
    everyone = CliRunner().invoke(group, ["rate", str(path), "--list"]).output
    assert "ann: 6 to judge, 1 done, 4 left, 1 held\nben: 6 to judge, 0 done, 6 left\n" in everyone
    stranger = CliRunner().invoke(group, ["rate", str(path), "--rater", "zoe", "--no-sound"])
    assert "not a rater in the round" in str(stranger.exception)


def test_the_list_says_which_rater_was_stopped(session: Path) -> None:
    path = session.parent / "round.yaml"
    path.write_text(
        "round: spring\nsessions: [s1]\ntraining: none\nraters: [ann, ben]\ngold: known.yaml\n"
        "stop: {after: 1, below: 1}\n"
    )
    (session.parent / "known.yaml").write_text(
        "gold: known\nresponses: [{session: s1, trial: moons-kitchen-1, category: correct}]\n"
    )
    rate(path, "9\n" * 12)
    listing = CliRunner().invoke(group, ["rate", str(path), "--list"]).output.splitlines()
    assert [line.endswith("; stopped, and gets no more responses") for line in listing[-2:]] == [True, False]


def test_keys_from_a_file_work_as_commands(session: Path, tmp_path: Path) -> None:
    keys = tmp_path / "config" / "voice-harness" / "rater_keys.yaml"
    keys.parent.mkdir(parents=True)
    keys.write_text("rater_keys: mine\ncorrect: 2\npartially_correct: 1\nundo: z\n")
    assert rate(session, "2\n2\nz\n1\n").exit_code == 0
    assert categories(session) == [Category.CORRECT, Category.PARTIALLY_CORRECT]


def test_an_unknown_speaker_is_refused_before_the_first_response(session: Path) -> None:
    result = CliRunner().invoke(group, ["rate", str(session), "--speaker", "nonsense"], input="1\n")
    assert isinstance(result.exception, SoundError)
    assert "response 1" not in result.output
    assert given(session) == []


def test_a_terminal_without_sound_says_so_before_the_first_response(session: Path, tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - another process
        code = "from harness.cli import main; main()"
        words = [sys.executable, "-c", code, "rate", str(session), "--rater", "ann", "--plain"]
        os.execve(sys.executable, words, {**os.environ, "HARNESS_LAB": str(tmp_path / "no-lab")})
    shown = b""
    try:
        give_up_s = time.monotonic() + 120
        while b"\n> " not in shown:
            assert time.monotonic() < give_up_s, shown
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 4096)
        os.write(terminal, b"quit\n")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        os.close(terminal)
    assert 0 <= shown.find(b"harness: no sound: ") < shown.find(b"response 1 of 12")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--web", "--plain"], "--web cannot be combined with"),
        (["--web-port", "80"], "--web-port applies only to the raters' site"),
        (["--no-sound", "--speaker", "x"], "cannot be combined"),
        (["--condition", "quiet"], "is not AXIS=LABEL"),
        (["--rater", " "], "is not a valid rater name"),
        (["--rater", "a\x1bb"], "is not a valid rater name"),
        (["--keys", "/nowhere/keys.yaml"], "no such file"),
    ],
)
def test_options_that_do_not_fit_are_refused(session: Path, options: list[str], message: str) -> None:
    result = CliRunner().invoke(group, ["rate", str(session), *options])
    assert result.exit_code != 0
    assert message in str(result.exception)


@pytest.mark.parametrize("options", [["--list"], ["--web", "--invitations", "none.json"]])
def test_known_answers_that_match_no_response_are_reported(session: Path, options: list[str]) -> None:
    (session.parent / "known.yaml").write_text(
        "gold: known\nresponses:\n  - {session: s1, trial: none, category: wrong}\n"
    )
    round_file = session.parent / "round.yaml"
    round_file.write_text("round: one\nsessions: [s1]\ngold: known.yaml\n")
    result = CliRunner().invoke(group, ["rate", str(round_file), *options])
    assert "1 of 1 known answers match no response, for example none of s1" in result.output


def test_failed_save_ends_a_script_and_keeps_the_item(session: Path) -> None:
    (session / "judgments.sqlite").mkdir()
    result = CliRunner().invoke(group, ["rate", str(session), "--rater", "ann", "--no-sound"], input="1\n1\n")
    assert (result.exit_code, "not saved" in result.output) == (3, True)
    assert "0 done" in rate(session, "", "--list").output


def test_every_command_is_explained_and_understood() -> None:
    for word in RateWord:
        assert parse(word.word, KEYS) == TypedCommand(word)
    for category in Category:
        for text in (category.value, LABELS[category], category.value.replace("_", " ").upper()):
            assert parse(text, KEYS) is category
        assert parse(KEYS.categories[category], KEYS) is category
    for action, key in KEYS.actions.items():
        command = parse(key, KEYS)
        assert action is RaterAction.PLAY or isinstance(command, TypedCommand), "space is no line"
    assert parse("comment  two words ", KEYS) == TypedCommand(RateWord.COMMENT, "two words")
    assert isinstance(parse("1 2", KEYS), InvalidCommand)


class PlayerDouble(RaterPlayer):
    """Plays nothing, and says at once that half of it was heard when it is stopped, or all when `whole`."""

    def __init__(self, *, whole: bool) -> None:
        super().__init__("", "system")
        self.played: list[Waveform] = []
        self.whole = whole
        self._done: OnDone | None = None

    def play(self, waveform: Waveform, on_done: OnDone | None = None, order: int | None = None) -> None:
        self.played.append(waveform)
        self._done = on_done
        if self.whole:
            self._end(1.0)

    def stop(self) -> None:
        self._end(0.5)

    def _end(self, share: float) -> None:
        if self._done is not None:
            done, self._done = self._done, None
            threading.Thread(target=done, args=(share * self.played[-1].duration_s, share == 1.0)).start()


@pytest.mark.parametrize("whole", [True, False])
def test_heard_playback_is_stored_with_the_judgment(session: Path, whole: bool) -> None:
    room = open_room([session])
    player = PlayerDouble(whole=whole)
    desk = room.desk("ann")
    item = desk.view.item
    assert item is not None
    assert item.length is not None
    lines = "play\nwait\nslow\nquery\nslow\n1\n" if whole else "play\nstop\nslow\nquery\nslow\n1\n"
    assert PlainSitting(room, desk, KEYS, player, io.StringIO(lines)).run() == 0
    room.close()
    (row,) = given(session)
    assert row.plays == 3
    expected_ms = 1000 * item.length.value_s * (3 if whole else 1.5)
    assert row.heard_ms == pytest.approx(expected_ms, abs=60)
    first, slow = player.played[0], player.played[1]
    assert slow.duration_s == pytest.approx(first.duration_s / SLOWER, abs=0.05)


def test_a_closed_input_is_refused(session: Path) -> None:
    code = "from harness.cli import main; main()"
    command = f"{sys.executable} -W ignore -c '{code}' rate {session} --no-sound <&-"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=100, check=False)
    assert (result.returncode, "standard input is closed" in result.stderr) == (2, True)


def test_a_label_after_the_last_item_is_refused(session: Path) -> None:
    result = rate(session, "1\n" * 13)
    assert result.exit_code == 2
    assert result.output.count("saved as") == 11
    assert "there is no response to judge" in result.output


def test_a_kill_after_any_answer_loses_no_answer(session: Path) -> None:
    code = "from harness.cli import main; main()"
    command = [sys.executable, "-W", "ignore", "-c", code, "rate", str(session), "--rater", "ann", "--no-sound"]
    saved = 0
    for count in (1, 3):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            for _ in range(count):
                program.stdin.write("1\n")
                program.stdin.flush()
                for line in program.stdout:
                    if line.startswith("saved as"):
                        saved += 1
                        break
            os.kill(program.pid, signal.SIGKILL)
    assert saved == 4
    assert len(categories(session)) == 4
    assert "4 done" in rate(session, "status\n").output


def test_an_earlier_judgment_is_found_opened_and_changed(session: Path) -> None:
    assert rate(session, "1\n9\n2\n").exit_code == 0
    listing = rate(session, "find wrong\n").output
    (line,) = [line for line in listing.splitlines() if line.endswith(": Wrong")]
    result = rate(session, f"open {line.partition(':')[0]}\n3\n")
    assert (result.exit_code, "your judgment so far: Wrong" in result.output, " again, " in result.output) == (
        0,
        True,
        True,
    )
    assert given(session)[-1].replaces == given(session)[1].id
    stepped = rate(session, "earlier\nearlier\nlater\nskip\n")
    assert (stepped.exit_code, len(given(session))) == (0, 4)
    assert rate(session, "open nothing\n").exit_code == 2
    assert rate(session, "later\n").exit_code == 2


BEFORE = Mapping[int, Callable[[], object]]


class Lines(io.StringIO):
    """A script; `before` does something before the line of that number, counted from 0, is read."""

    def __init__(self, text: str, before: BEFORE) -> None:
        super().__init__(text)
        self._before = before
        self._number = 0

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        if (happens := self._before.get(self._number)) is not None:
            happens()
        self._number += 1
        return super().readline()


def test_a_play_does_not_count_for_the_response_that_replaces_its_own(session: Path) -> None:
    def judge_in_another_window() -> None:
        with closing(open_room([session])) as other_room:
            assert other_room.desk("ann").judge(Category.WRONG)

    source = Lines("play\nstatus\n1\n", {1: judge_in_another_window})
    with closing(open_room([session])) as room:
        assert PlainSitting(room, room.desk("ann"), KEYS, PlayerDouble(whole=False), source).run() == 0
    first, second = given(session)
    assert first.item_id != second.item_id
    assert (second.plays, second.heard_ms) == (0, 0)


@pytest.fixture
def long_session(tmp_path: Path) -> Path:
    return rating_session(tmp_path / "s1", 12, effects=True)


def sit(long_session: Path, lines: str, before: BEFORE) -> int:
    room = open_room([long_session])
    try:
        return PlainSitting(room, room.desk("ann"), RaterKeys(), None, Lines(lines, before)).run()
    finally:
        room.close()


def looked(long_session: Path) -> Result:
    arguments = ["effects", str(long_session), "--answer", "timer-den-10", "right", "--observer", "dora"]
    return CliRunner().invoke(group, arguments)


def test_a_response_released_at_the_end_is_shown_before_labelling(
    long_session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = sit(long_session, "1\n" * 11 + "status\n", {11: lambda: looked(long_session)})
    output = capsys.readouterr().out
    assert status == 0
    assert "nothing is left to judge: 11 of 12 done, 1 held" in output
    after = output.partition("nothing is left")[2]
    assert "query: set a timer for ten minutes" in after
    assert "1 left" in after


def test_a_deleted_session_is_reported_and_nothing_counts_as_saved(
    long_session: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = sit(long_session, "1\nstatus\n1\n", {1: lambda: shutil.rmtree(long_session)})
    output = capsys.readouterr()
    assert "cannot read the sessions again" in output.err
    assert (status, output.out.count("saved as")) == (3, 1)
