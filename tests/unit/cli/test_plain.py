"""The plain printer, the tables at the end of a session, and the operator's answers on standard input."""

from __future__ import annotations

import csv
import io
import json
import threading

import pytest

from harness.base.text_table import width_of
from harness.cli.plain import (
    ANSWERS,
    EFFECT_HINT,
    EFFECTS,
    RECOGNITION_HINT,
    SPEECH_HINT,
    JsonPrinter,
    OperatorPrompt,
    PlainPrinter,
    parse_reply,
)
from harness.model.effect import EffectOutcome
from harness.model.feed import (
    Answered,
    AnswerEffect,
    AnswerOperator,
    Command,
    Goodbye,
    Logged,
    Misspoke,
    StateChanged,
    StateWord,
    Welcome,
)
from harness.model.observation import HostStalled, LinkBack, LinkLost
from harness.model.record import (
    AttemptFinished,
    EffectAnswered,
    EndReason,
    Entry,
    Observed,
    OperatorAsked,
    Question,
    Record,
    SessionFinished,
)
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.session import summary
from harness.session.figures.progress import Progress
from harness.session.trial_table import trials_csv
from harness.wake.wake import WakeFigures
from tests.unit.session.figures.rows import Rows, clip_of, planned
from tests.written_sessions import progress_of

HOSTILE = "\x1b]0;owned\x07[/red]\u202e\n" + "x" * 10_000


def session(transcript: str = "it is ten past nine") -> list[Entry]:
    rows = Rows.of(planned(1), planned(2), planned(3, trial_id="北京 " * 20))
    rows.trial("time-1", attempts=2, clip=clip_of("1.flac"), text=transcript)
    rows.trial("time-2", Outcome.NO_WAKE, Recognition.UNKNOWN, latency_s=None)
    rows.add(SessionFinished(EndReason.STOPPED))
    return rows.entries


def welcome(last_seq: int = 0) -> Welcome:
    state = StateChanged(StateWord.PREPARING, 0.0)
    return Welcome("s1", "/tmp/no such folder/s1", 1, last_seq, state, "0", False)


def printed(entries: list[Entry], *, history: bool = True, colour: bool = False, last_seq: int = 0) -> str:
    stream = io.StringIO()
    printer = PlainPrinter(stream, history=history, colour=colour)
    printer.print_message(welcome(last_seq))
    for entry in entries:
        printer.print_message(Logged(entry))
    printer.print_message(Goodbye(3, "stopped"))
    return stream.getvalue()


def test_plain_output_ends_with_figures_and_the_next_commands() -> None:
    text = printed(session())
    assert "attempt 1: misheard, not recognised" in text
    assert 'it says "it is ten past nine"' in text
    assert "= time-2: DID NOT WAKE after 1 attempt" in text
    assert "finished             2 of 3 trials: 1 responded, 1 did not wake" in text
    assert "latency              median 800 ms" in text
    assert text.endswith(
        "\nthe run was stopped\n\nsession folder: /tmp/no such folder/s1\n"
        "resume:         harness run resume '/tmp/no such folder/s1'\n"
        "results:        harness report show '/tmp/no such folder/s1'\n"
        "page:           harness report '/tmp/no such folder/s1' --html report.html\n"
        "judge:          harness rate '/tmp/no such folder/s1'\n"
    )
    assert "\x1b" not in text


def test_colour_is_printed_only_on_request() -> None:
    assert "\x1b[1m" in printed(session(), colour=True)


def test_hostile_text_reaches_no_terminal() -> None:
    text = printed(session(HOSTILE))
    assert all(line.isprintable() for line in text.split("\n"))
    assert "\\e]0;owned" in text
    assert max(map(len, text.split("\n"))) < 1100


def test_late_watcher_gets_a_summary_of_earlier_trials() -> None:
    entries = session()
    middle = next(entry.seq for entry in entries if "trial_finished" in entry.record.kind)
    text = printed(entries, history=False, last_seq=middle)
    assert "so far 1 of 3 trials are finished" in text
    assert "attempt 1: misheard" not in text
    assert "DID NOT WAKE" in text
    assert "finished             2 of 3 trials" in text


def test_waits_refusals_and_disk_full_are_reported_once() -> None:
    stream = io.StringIO()
    printer = PlainPrinter(stream, history=True, colour=False)
    printer.print_message(StateChanged(StateWord.WAITING, 10.0, 22.0, reason="until it has forgotten"))
    printer.print_message(StateChanged(StateWord.WAITING, 10.0, 22.0, reason="until it has forgotten"))
    printer.print_message(StateChanged(StateWord.PLAYING, 10.0))
    printer.print_message(StateChanged(StateWord.INTERRUPTED, 10.0, 20.0, reason="waiting for ww: its port is gone"))
    printer.print_message(StateChanged(StateWord.CLOSING, 10.0, reason="says 'never mind'"))
    printer.print_message(StateChanged(StateWord.PAUSED, 10.0, reason="disk full: no room"))
    printer.print_message(Answered("1", True))
    printer.print_message(Answered("2", False, "no monitor"))
    lines = [line.split("  ", 1)[-1].strip() for line in stream.getvalue().splitlines()]
    assert lines == [
        "waiting up to 12.0 s: until it has forgotten",
        "interrupted up to 10.0 s: waiting for ww: its port is gone",
        "ending dialogue: says 'never mind'",
        "paused: disk full: no room",
        "refused: no monitor",
    ]


def test_stalls_and_lost_links_that_come_again_and_again_are_summed_up() -> None:
    rows = Rows.of(planned(1))
    rows.add(Observed(LinkLost("mic", Stamp(0.0), "unplugged")))
    for number in range(20):
        rows.add(Observed(HostStalled("host", Stamp(number), 0.5, 40.0, None)), after_s=0.5)
        rows.add(Observed(LinkBack("mic", Stamp(number))), after_s=0.5)
        rows.add(Observed(LinkLost("mic", Stamp(number), "unplugged")), after_s=0.5)
    rows.add(Observed(HostStalled("host", Stamp(99.0), 0.5, 40.0, None)), after_s=60.0)
    rows.add(Observed(LinkBack("mic", Stamp(99.0))))
    lines = [line.partition("  ")[2] for line in printed(rows.entries).splitlines()]
    lost, back, stalled = "LOST mic: unplugged", "BACK mic", "HOST stalled for 500 ms (load 40.0)"
    assert [line for line in lines if line.startswith(("HOST", "LOST", "BACK"))] == [
        lost,
        *(5 * [stalled, back, lost]),
        stalled,
        back,
        *(6 * [stalled]),
        "LOST mic 15 more times within a minute; it is still lost",
        "HOST stalled 8 more times within a minute, for 4.00 s",
        stalled,
        back,
    ]
    lines = printed(rows.entries[:-2]).splitlines()
    assert "HOST stalled 8 more times within a minute, for 4.00 s" in lines, "also at the end"


@pytest.mark.parametrize(("history", "reasons"), [(False, ["paused: the room is loud"]), (True, [])])
def test_a_pause_names_the_commands_that_end_it(history: bool, reasons: list[str]) -> None:
    """And its reason, unless the row that has it is printed."""
    stream = io.StringIO()
    printer = PlainPrinter(stream, history=history, colour=False)
    paused = StateChanged(StateWord.PAUSED, 10.0, reason="the room is loud")
    printer.print_message(Welcome("s1", "/my lab/s1", 1, 0, paused, "0", False))
    printer.print_message(paused)
    _, *reason, pause = stream.getvalue().splitlines()
    assert [line.split("  ", 1)[-1].strip() for line in reason] == reasons
    assert (
        pause.split("  ", 1)[-1].strip()
        == "to resume: harness run attach '/my lab/s1' · to stop: harness run stop '/my lab/s1'"
    )


def test_each_row_is_printed_as_one_json_line() -> None:
    stream = io.StringIO()
    printer = JsonPrinter(stream)
    for entry in session(HOSTILE):
        printer.print_message(Logged(entry))
    messages = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [message["entry"]["seq"] for message in messages] == [entry.seq for entry in session()]


@pytest.mark.parametrize("width", [60, 80, 105, 120, 200])
def test_the_table_fits_the_terminal_width(width: int) -> None:
    for line in summary.trial_table(progress_of(session(HOSTILE)).trials, width):
        assert width_of(line) <= max(width, 78)
        assert line.isprintable()


def test_unplayed_trials_are_named_and_empty_shares_are_na() -> None:
    rows = progress_of(session()).trials
    assert [summary.outcome_in_words(row) for row in rows] == ["responded", "did not wake", "not played"]
    empty = summary.totals_lines(Progress().totals)
    assert sum("n/a" in line for line in empty) == 6


def test_csv_has_one_row_per_trial_and_no_control_characters() -> None:
    text = trials_csv(progress_of(session(HOSTILE)), WakeFigures()).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["trial"], row["outcome"], row["attempts"]) for row in rows][:2] == [
        ("time-1", "responded", "2"),
        ("time-2", "no_wake", "1"),
    ]
    assert rows[0]["latency_ms"] == "800.0"
    assert rows[2]["outcome"] == ""
    assert all(value.isprintable() for row in rows for value in row.values())


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y\n", (True, "")),
        ("YES", (True, "")),
        ("n  what dime is it \n", (False, "what dime is it")),
        ("?", (None, "")),
        ("", None),
        ("maybe", None),
        ("yn", None),
    ],
)
def test_answers_of_the_operator_are_parsed(line: str, answer: tuple[bool | None, str] | None) -> None:
    assert parse_reply(line, ANSWERS) == answer


class Lines(io.TextIOBase):
    """Standard input of which each line is typed when the test says so."""

    def __init__(self, count: int) -> None:
        self.typed: list[str] = []
        self.may_type = [threading.Event() for _ in range(count)]
        self._at = 0

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        if self._at == len(self.may_type):
            return ""
        self.may_type[self._at].wait(30)
        self._at += 1
        return self.typed[self._at - 1]


class Operator:
    """Types lines before a prompt, each when the test says so, and waits for what becomes of it."""

    def __init__(self, *lines: str) -> None:
        self.sent: list[Command] = []
        self.said: list[str] = []
        self._came = threading.Event()
        self._source = Lines(len(lines))
        self._source.typed = list(lines)
        self._prompt = OperatorPrompt(self._source, "ann", self._send, self._say)

    def _send(self, command: Command) -> None:
        self.sent.append(command)
        self._came.set()

    def _say(self, text: str) -> None:
        self.said.append(text)
        self._came.set()

    def told(self, record: Record) -> None:
        self._prompt.note_message(Logged(Entry(1, 1, 0.0, 0.0, record)))

    def types(self, number: int) -> None:
        self._came.clear()
        self._source.may_type[number].set()
        assert self._came.wait(30)


def test_a_talker_can_withdraw_a_misreading_during_the_attempt() -> None:
    operator = Operator("y\n", "x\n", "x\n")
    operator.told(OperatorAsked("t1", 1, 2, 'ann: Say: "alexa"', Question.SPEECH))
    operator.types(0)
    operator.types(1)
    (sent,) = operator.sent
    assert isinstance(sent, Misspoke)
    assert (sent.by, sent.trial_id, sent.attempt) == ("ann", "t1", 2)
    operator.told(AttemptFinished("t1", 1, 2, Outcome.COUNTED, Recognition.NOT_ASSESSED, EvidenceSource.NONE))
    operator.types(2)
    assert operator.said == [SPEECH_HINT, SPEECH_HINT, "no question is open"]


def test_an_answer_goes_to_the_open_question() -> None:
    operator = Operator("y\n", "hm\n", "n play jazz\n")
    operator.types(0)
    operator.told(OperatorAsked("t1", 1, 2, "did it?"))
    operator.types(1)
    operator.types(2)
    assert operator.said == ["no question is open", RECOGNITION_HINT, RECOGNITION_HINT]
    assert operator.sent == [AnswerOperator(operator.sent[0].id, "ann", "t1", 2, False, "play jazz")]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("r\n", (EffectOutcome.RIGHT, "")),
        ("W  no timer runs \n", (EffectOutcome.WRONG, "no timer runs")),
        ("partial half of it", (EffectOutcome.PARTIAL, "half of it")),
        ("c", (EffectOutcome.UNKNOWN, "")),
        ("y", None),
        ("", None),
    ],
)
def test_effect_answers_are_parsed(line: str, answer: tuple[EffectOutcome, str] | None) -> None:
    assert parse_reply(line, EFFECTS) == answer


def test_effect_question_takes_effect_answers_and_closes_when_answered() -> None:
    operator = Operator("y\n", "p half a timer\n", "r\n")
    operator.told(OperatorAsked("t1", 2, 1, "did it?", Question.EFFECT))
    operator.types(0)
    operator.types(1)
    id_ = operator.sent[0].id
    assert operator.sent == [AnswerEffect(id_, "ann", "t1", 1, EffectOutcome.PARTIAL, "half a timer", take=2)]
    operator.told(EffectAnswered("t1", 2, 1, EffectOutcome.PARTIAL, "ann"))
    operator.types(2)
    assert operator.said == [EFFECT_HINT, EFFECT_HINT, "no question is open"]
