"""What plain output and tables say of wake, command and ambient trials."""

import csv
import io

import pytest

from harness.cli.plain import PlainPrinter
from harness.model.feed import Goodbye, Logged, StateChanged, StateWord, Welcome
from harness.model.observation import ListeningProved, Proof, Wake
from harness.model.record import DecisionReached, EventClipped, EventReviewed, Observed, Record, ReviewVerdict
from harness.model.scenario import TrialKind
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.session.figures.progress import SessionFigures
from harness.session.summary import end_of_session
from harness.session.trial_table import trials_csv
from harness.statistics.intervals import garwood
from harness.statistics.sequential import rate_sequence
from harness.wake.reports.figures_text import ANY_TIME, WakeLines, rate_text, ratio_text, wake_summary
from harness.wake.wake import WakeFigures
from harness.wake.wake_progress import Rate, Ratio
from tests.unit.cli.test_plain import HOSTILE
from tests.unit.session.figures.rows import clip_of
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial

DEVICES = ("kitchen", "hall")


@pytest.mark.parametrize(("count", "hours", "narrower"), [(0, 2.9, True), (0, 3.1, False), (1, 0.5, False)])
def test_the_summary_says_when_the_interval_for_any_time_is_narrower(count: int, hours: float, narrower: bool) -> None:
    assert wake_summary(session().figures).count(ANY_TIME) == 1
    exact, any_time = garwood(count, hours), rate_sequence(count, hours)
    assert exact is not None
    assert any_time is not None
    assert (any_time[1] < exact[1]) is narrower


def session() -> WakeRows:
    """Heard by both, by one, by none at first and interrupted; a command; ambient sound with two events."""
    rows = WakeRows()
    wakes = [wake_trial(n, devices=DEVICES, conditions=(("voice", "amy"),)) for n in (1, 2)]
    command = wake_trial(3, TrialKind.COMMAND, DEVICES)
    sound = wake_trial(4, TrialKind.AMBIENT, DEVICES)
    rows.plan(*wakes, command, sound)
    rows.play(wakes[0], [("kitchen", 1.8), ("hall", 1.9)])
    rows.play(wakes[1], outcome=Outcome.INTERRUPTED, finish=False)
    rows.play(wakes[1], [("kitchen", 1.8), ("kitchen", 0.2)], attempt=2)
    rows.play(
        command,
        [("kitchen", 1.7), ("hall", 1.7)],
        words=[("kitchen", 2.9, "turn on the light"), ("hall", 2.9, "turn on the night")],
    )
    seqs = rows.play(sound, [("kitchen", 12.34), ("kitchen", 40.0)])
    rows.add(EventClipped(seqs[0], clip_of("12.flac")))
    rows.add(EventReviewed(seqs[0], ReviewVerdict.REAL_PERSON, "ann"))
    rows.add(DecisionReached("kitchen", "false_accepts", False))
    return rows


def printed(rows: WakeRows, *, history: bool = True, last_seq: int = 0) -> list[str]:
    stream = io.StringIO()
    printer = PlainPrinter(stream, history=history, colour=False)
    state = StateChanged(StateWord.PREPARING, 0.0)
    printer.print_message(Welcome("s1", "/tmp/no such folder/s1", 1, last_seq, state, "0", False))
    for entry in rows.entries:
        printer.print_message(Logged(entry))
    printer.print_message(Goodbye(0, ""))
    lines = stream.getvalue().splitlines()
    return [line[10:] if line[2:3] == ":" else line for line in lines]


def test_one_line_for_each_device_of_a_trial_and_each_unmatched_event() -> None:
    rows = session()
    lines = printed(rows)
    clipped = next(entry.record for entry in rows.entries if isinstance(entry.record, EventClipped))
    assert isinstance(clipped, EventClipped)
    for line in (
        "1/4 wake-1 kitchen: hit, 200 ms ± 0 ms after the phrase, score 0.90",
        "1/4 wake-1 hall: hit, 300 ms ± 0 ms after the phrase, score 0.90",
        "2/4 wake-2 hall: FALSE REJECT",
        '3/4 command-3 kitchen: hit, score 0.90; understood "turn on the light"',
        '3/4 command-3 hall: hit, score 0.90; MISUNDERSTOOD as "turn on the night"',
        f"    sound around event {clipped.event_seq} kept as 12.flac",
        f"event {clipped.event_seq}: real person, by ann",
        "DECIDED kitchen: false accepts FAIL the sequential test",
    ):
        assert line in lines
    unmatched = [line for line in lines if line.startswith("    UNMATCHED")]
    assert len(unmatched) == 3
    assert 'UNMATCHED kitchen woke on "alexa" (0.90), 12.340 s into ambient-4' in unmatched[1]
    ambient = next(
        line for line in lines if line.startswith("4/4 ambient-4 kitchen: ambient 60.0 s; so far 2 in 0.017")
    )
    assert "= 120/h (95 % exact 14.5–433; at any time" in ambient
    assert "2/4 wake-2 attempt 1: interrupted" in lines
    assert "2/4 wake-2 attempt 2" in lines
    assert any(line.startswith("TRIAL 4/4 ambient-4: ambient 60 s of cafe to kitchen (injected)") for line in lines)
    assert not any("COUNTED" in line or ("woke on" in line and "UNMATCHED" not in line) for line in lines)


def test_the_end_sums_each_device_up_before_and_after_review() -> None:
    lines = printed(session())
    kitchen, hall = lines.index("device kitchen"), lines.index("device hall")
    block, other = "\n".join(lines[kitchen:hall]), "\n".join(lines[hall:])
    assert "false rejects      0 of 2 = 0.00 % (95 % exact 0.00–84.2 %; at any time" in block
    assert "false accepts      1 in 0.017 h = 60.0/h" in block
    assert "2 in 0.017 h = 120/h" in block
    assert "heard              0:01:00.0 proven, 0:00:00.0 without proof" in block
    assert "wake delay         median 200 ms" in block
    assert "commands           1 of 1 = 100 %" in block
    assert "real person 1" in block
    assert "unreviewed 2" in block
    assert "1 in wake trials" in block
    assert "sequential test    false accepts: FAILED" in block
    assert "voice=amy: 0 of 2" in block
    assert "false rejects      1 of 2 = 50.0 %" in other
    assert "0 of 1 = 0.00 %" in other
    assert "1 misunderstood, 0 missed" in other
    assert "kitchen against hall: of the same 2 stimuli, both heard 1, only the first 1, only the second 0" in other
    heard = "hall is not shown to differ from kitchen: hall minus kitchen -50.00 points"
    assert f"share heard {heard} (-90.55 to +27.26), p = 1.000 (McNemar)" in " ".join(other.split())
    assert not any(line.startswith("#") for line in lines), "a table of single trials says nothing here"


def test_late_watcher_gets_the_same_summary() -> None:
    rows = session()
    lines = printed(rows, history=False, last_seq=rows.entries[-1].seq)
    assert "device kitchen" in lines
    assert not any(line.startswith(("1/4", "4/4", "    UNMATCHED")) for line in lines)
    assert lines[lines.index("device kitchen") :] == printed(rows)[printed(rows).index("device kitchen") :]


def test_undefined_rates_are_shown_as_na() -> None:
    rows = rows_of(wake_trial(1), wake_trial(2, TrialKind.AMBIENT))
    text = "\n".join(wake_summary(rows.figures))
    assert text.count("n/a") == 4
    assert wake_summary(WakeFigures()) == []
    assert rate_text(Rate()) == "0 in 0 h: n/a"
    assert ratio_text(Ratio()) == "n/a (no data)"


def test_csv_has_a_row_for_each_trial_and_device() -> None:
    rows = session()
    progress = SessionFigures()
    for entry in rows.entries:
        progress.add(entry)
    csv_rows = list(csv.DictReader(io.StringIO(trials_csv(progress.snapshot(), rows.figures).decode())))
    assert [(row["trial"], row["device"], row["kind"], row["hit"], row["unmatched"]) for row in csv_rows] == [
        ("wake-1", "kitchen", "wake", "1", "0"),
        ("wake-1", "hall", "wake", "1", "0"),
        ("wake-2", "kitchen", "wake", "1", "1"),
        ("wake-2", "hall", "wake", "0", "0"),
        ("command-3", "kitchen", "command", "1", "0"),
        ("command-3", "hall", "command", "1", "0"),
        ("ambient-4", "kitchen", "ambient", "", "2"),
        ("ambient-4", "hall", "ambient", "", "0"),
    ]
    assert csv_rows[0]["wake_delay_ms"] == "200.0"
    assert csv_rows[6]["exposure_s"] == "60.000"
    assert csv_rows[5]["heard"] == "turn on the night"


def test_hostile_text_reaches_no_terminal() -> None:
    rows = WakeRows()
    sound = wake_trial(1, TrialKind.AMBIENT, (HOSTILE,), conditions=(("voice", HOSTILE),))
    wake = wake_trial(2, devices=(HOSTILE, "other"), conditions=(("voice", HOSTILE),))
    rows.plan(sound, wake)
    rows.play(sound, [(HOSTILE, 4.0)])
    rows.play(wake, [(HOSTILE, 1.8)])
    more: list[Record] = [
        Observed(Wake(f"{HOSTILE}_link", Stamp(rows.at_s + 60), HOSTILE, 0.5)),
        Observed(ListeningProved(f"{HOSTILE}_link", Stamp(rows.at_s), Proof.PROBE)),
        DecisionReached(HOSTILE, "false_rejects", True),
    ]
    for record in more:
        rows.add(record)
    lines = printed(rows)
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) < 1100


def test_each_of_many_trials_has_its_line() -> None:
    trials = [wake_trial(n) for n in range(1, 401)]
    rows = rows_of(*trials)
    for trial in trials:
        rows.play(trial, [("kitchen", 1.8)])
    lines = WakeLines()
    output_lines = [line for entry in rows.entries for line in lines.add(entry)]
    assert len(output_lines) == 400
    assert end_of_session(SessionFigures().snapshot(), lines.figures, None)
