"""A session as JUnit: what passes and fails, the schema, and characters that XML cannot hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.bench import Bench
from harness.model.effect import EffectOutcome
from harness.model.errors import InputError, UnmetNeed
from harness.model.observation import Wake
from harness.model.record import (
    DecisionReached,
    EndReason,
    EventReviewed,
    FaultMet,
    Observed,
    ReviewVerdict,
    SessionFinished,
    TrialFinished,
    TrialStarted,
    UnderstandingResult,
)
from harness.model.scenario import (
    Limits,
    OnUndecided,
    RepeatUntil,
    RepromptRule,
    Scenario,
    SequentialTest,
    Stopping,
    TrialKind,
)
from harness.model.stimulus import Recording
from harness.model.trial import Outcome, Recognition
from harness.report import junit
from harness.report.junit_xml import Case, CaseVerdict, JUnitReport, Reason, Suite, to_xml
from harness.session.engine.assemble import ResolvedSession, write_resolved
from harness.session.summary import end_of_session
from harness.session.wording import RowWriter
from tests.command import harness, succeeded
from tests.dashboard.frame_bench import TIMER, some_frames, told, wanting
from tests.known import known
from tests.unit.report.junit_schema import problems
from tests.unit.session.figures.effect_rows import ASKED, Session, answer
from tests.unit.session.figures.effect_rows import trial as checked_trial
from tests.unit.session.figures.rows import Rows, clip_of, planned
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial
from tests.written_sessions import progress_of, written

AMBIENT, COMMAND = TrialKind.AMBIENT, TrialKind.COMMAND


def scenario(limits: Limits | None = None, stopping: Stopping | None = None) -> Scenario:
    return Scenario(
        "kitchen", "Kitchen", "/s.yaml", "a", (), (), limits=limits or Limits(), stopping=stopping or Stopping()
    )


def report(rows: Rows, limits: Limits | None = None, stopping: Stopping | None = None) -> JUnitReport:
    junit_report = junit.report_of(rows.entries, scenario(limits, stopping))
    assert problems(to_xml(junit_report)) == []
    return junit_report


def cases(junit_report: JUnitReport, suite: str) -> dict[str, Case]:
    (test_suite,) = [test_suite for test_suite in junit_report.suites if test_suite.name == suite]
    return {case.name: case for case in test_suite.cases}


def why(case: Case) -> tuple[str, str] | None:
    return None if case.reason is None else (case.reason.verdict.value, case.reason.type)


@pytest.fixture
def rows() -> WakeRows:
    """Two devices: two wake trials, three commands, three minutes of ambient sound of which one was skipped."""
    names = ("kitchen", "den")
    wakes = [wake_trial(number, devices=names) for number in (1, 2)]
    commands = [wake_trial(number, COMMAND, names) for number in (3, 4, 5)]
    ambient = [wake_trial(number, AMBIENT, names) for number in (6, 7, 8)]
    wake_rows = rows_of(*wakes, *commands, *ambient)
    wake_rows.play(wakes[0], [("kitchen", 0.4), ("kitchen", 1.75), ("den", 1.9)])
    wake_rows.play(wakes[1], [("kitchen", 1.75)])
    wake_rows.play(commands[0], [("kitchen", 1.3)], words=[("kitchen", 2.6, "turn on the light")])
    wake_rows.play(commands[1], words=[("kitchen", 2.6, "turn \x1b[31moff the light")])
    wake_rows.play(commands[2])
    wake_rows.play(ambient[0], [("kitchen", 12.5), ("kitchen", 30.0)])
    wake_rows.play(ambient[1], proof=False)
    wake_rows.add(TrialFinished(ambient[2].id, 1, Outcome.SKIPPED, 0, None, "needless"))
    return wake_rows


def test_each_device_has_a_case_per_wake_trial(rows: WakeRows) -> None:
    junit_report = report(rows)
    assert why(cases(junit_report, "kitchen.wake")["wake-2"]) is None
    assert why(cases(junit_report, "den.wake")["wake-1"]) is None
    missed = cases(junit_report, "den.wake")["wake-2"]
    assert why(missed) == ("failure", "false_reject")
    assert missed.class_name == "kitchen.den.wake"
    woke = cases(junit_report, "kitchen.wake")["wake-1"]
    assert woke.duration_s == pytest.approx(3.1)
    assert woke.output[0] == "woke, 150 ms ± 0 ms after the phrase"
    assert "unmatched event at 0.400 s: alexa, score 0.9, unreviewed" in woke.output


def test_probes_are_counted_apart_from_trials() -> None:
    plan = wake_trial(1), wake_trial(2, TrialKind.PROBE)
    rows = rows_of(*plan)
    for trial in plan:
        rows.play(trial, [("kitchen", 1.75)])
    assert known(RowWriter().text(rows.entries[0].record)).endswith("· 1 trial and 1 probe")
    lines = end_of_session(progress_of(rows), rows.figures, None)
    assert lines[0] == "finished             2 of 2 trials and probes: 2 counted"
    assert not [line for line in lines if line.startswith("wake trials")]
    assert cases(report(rows), "session")["run"].output == ("2 of 2 trials and probes finished",)


def test_an_event_without_a_phrase_says_so(rows: WakeRows) -> None:
    rows.entries = [
        replace(entry, record=replace(entry.record, observation=replace(entry.record.observation, phrase="")))
        if isinstance(entry.record, Observed) and isinstance(entry.record.observation, Wake)
        else entry
        for entry in rows.entries
    ]
    woke = cases(report(rows), "kitchen.wake")["wake-1"]
    assert "unmatched event at 0.400 s: an unnamed phrase, score 0.9, unreviewed" in woke.output


def test_command_cases_state_the_heard_words(rows: WakeRows) -> None:
    command_cases = cases(report(rows), "kitchen.command")
    assert [why(case) for case in command_cases.values()] == [None, ("failure", "substitution"), ("failure", "missing")]
    assert "heard: turn on the light" in command_cases["command-3"].output
    assert "heard: turn \\e[31moff the light" in command_cases["command-4"].output


def test_a_limit_on_effects_knows_what_people_have_said_since() -> None:
    session = Session(checked_trial(ASKED)).asked().answered().ends(12.0)
    limited = scenario(Limits(min_effect_share=1.0))
    for later, reason in (((), ("failure", "limit")), ((answer(EffectOutcome.RIGHT),), None)):
        junit_report = junit.report_of(session.entries, limited, later)
        assert why(cases(junit_report, "limits")["min_effect_share"]) == reason


def test_false_accepts_fail_only_where_a_limit_says_so(rows: WakeRows) -> None:
    limits = Limits(max_false_accepts_per_hour=10.0)
    rows.add(SessionFinished(EndReason.COMPLETED))
    assert why(cases(report(rows), "kitchen.ambient")["ambient-6"]) is None
    assert why(cases(report(rows, Limits(max_false_accepts_per_hour=200.0)), "kitchen.ambient")["ambient-6"]) is None
    broken = report(rows, limits)
    failed = cases(broken, "kitchen.ambient")["ambient-6"]
    assert why(failed) == ("failure", "false_accept")
    message = "2 false accepts; false accepts per hour of kitchen ≤ 10: found 120, fails"
    assert known(failed.reason).message == message
    assert len([line for line in failed.output if line.startswith("unmatched event")]) == 2
    # The other device heard the same and said nothing.
    assert why(cases(broken, "den.ambient")["ambient-6"]) is None
    for event in rows.figures.unmatched("kitchen"):
        rows.add(EventReviewed(event.seq, ReviewVerdict.REAL_PERSON, "ann"))
    assert why(cases(report(rows, limits), "kitchen.ambient")["ambient-6"]) is None


def test_unproven_exposure_is_skipped_and_not_passed(rows: WakeRows) -> None:
    ambient_cases = cases(report(rows), "kitchen.ambient")
    assert why(ambient_cases["ambient-7"]) == ("skipped", "unproven")
    assert why(ambient_cases["ambient-8"]) == ("skipped", "skipped")
    assert ambient_cases["ambient-8"].reason is not None
    assert ambient_cases["ambient-8"].reason.message == "skipped (needless)"


def test_limits_and_sequential_tests_are_cases_of_their_own(rows: WakeRows) -> None:
    test = SequentialTest(0.1, 0.5)
    rows.add(DecisionReached("kitchen", "false_rejects", True))
    rows.add(DecisionReached("den", "false_rejects", False))
    rows.add(SessionFinished(EndReason.COMPLETED))
    junit_report = report(rows, Limits(max_false_reject_share=0.4, min_recognised_share=0.5), Stopping(test, test))
    limits = cases(junit_report, "limits")
    assert {name: why(case) for name, case in limits.items()} == {
        "min_recognised_share": ("failure", "limit"),
        "max_false_reject_share[kitchen]": None,
        "max_false_reject_share[den]": ("failure", "limit"),
    }
    failure = limits["max_false_reject_share[den]"].reason
    assert known(failure).message.endswith("found 50.0 %, fails (of 2 wake trials)")
    assert limits["min_recognised_share"].output == ("recognised ≥ 50 %: no data, undecided",)
    assert limits["max_false_reject_share[den]"].output == ("false rejects of den ≤ 40 %: found 50.0 %, fails",)
    assert {name: why(case) for name, case in cases(junit_report, "sequential tests").items()} == {
        "false_accepts_test[kitchen]": ("failure", "undecided"),
        "false_rejects_test[kitchen]": None,
        "false_accepts_test[den]": ("failure", "undecided"),
        "false_rejects_test[den]": ("failure", "failed"),
    }
    passing = cases(report(rows, None, Stopping(test, test, OnUndecided.PASS)), "sequential tests")
    assert why(passing["false_accepts_test[den]"]) == ("skipped", "undecided")


def test_a_sequential_test_of_a_session_without_wake_trials_is_undecided() -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1")
    rows.add(SessionFinished(EndReason.COMPLETED))
    stopping = Stopping(false_rejects=SequentialTest(0.1, 0.5))
    (case,) = cases(report(rows, None, stopping), "sequential tests").values()
    assert (case.name, why(case)) == ("false_rejects_test", ("failure", "undecided"))
    assert case.output == ("sequential test of false rejects: undecided", "good 0.1, bad 0.5")


def test_a_session_that_the_host_disturbed_does_not_pass() -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1", disturbed="the host stalled for 800 ms")
    rows.add(SessionFinished(EndReason.COMPLETED))
    case = cases(report(rows, Limits(max_interrupted=0)), "limits")["max_disturbed_share"]
    assert why(case) == ("failure", "limit")
    assert known(case.reason).message == (
        "max_disturbed_share: attempts that the host disturbed ≤ 10 %: found 100 %, undecided (of 1 attempt)"
    )
    allowed = cases(report(rows, Limits(max_disturbed_share=1.0)), "limits")["max_disturbed_share"]
    assert why(allowed) is None


def test_a_false_reject_fails_by_itself_only_where_no_limit_says_how_many_may(rows: WakeRows) -> None:
    for limits, stopping in (
        (Limits(max_false_reject_share=0.9), None),
        (Limits(max_false_reject_upper=0.1), None),
        (None, Stopping(false_rejects=SequentialTest(0.02, 0.1))),
    ):
        missed = cases(report(rows, limits, stopping), "den.wake")["wake-2"]
        assert why(missed) is None
        assert "did not wake" in missed.output
    accepts = report(rows, Limits(max_false_accepts_per_hour=1.0))
    assert why(cases(accepts, "den.wake")["wake-2"]) == ("failure", "false_reject")


EXPECTED = {
    Outcome.RESPONDED: None,
    Outcome.LATE: "failure",
    Outcome.MISHEARD: "failure",
    Outcome.NO_WAKE: "failure",
    Outcome.NO_RESPONSE: "failure",
    Outcome.INTERRUPTED: "error",
    Outcome.ABORTED: "error",
    Outcome.INCONCLUSIVE: "skipped",
    Outcome.SKIPPED: "skipped",
    Outcome.UNDERSTOOD: None,
}


def test_every_outcome_of_a_query_has_its_verdict() -> None:
    assert EXPECTED.keys() == set(Outcome) - {Outcome.COUNTED}
    rows = Rows()
    trials = [planned(number) for number in range(len(EXPECTED) + 1)]
    rows.start(*trials)
    for trial, outcome in zip(trials, EXPECTED, strict=False):
        rows.add(TrialStarted(trial.id, 1))
        rows.attempt(trial.id, 1, outcome, Recognition.NO, clip=clip_of(f"{trial.id}.flac"), text="it is noon",
                     heard="what lime is it")  # fmt: skip
        rows.add(TrialFinished(trial.id, 1, outcome, 1, 1, "cable"), 1.0)
    query_cases = cases(report(rows), "kitchen.query")
    verdicts = [case.reason and case.reason.verdict.value for case in query_cases.values()]
    assert verdicts == [*EXPECTED.values(), "skipped"]
    assert why(query_cases[trials[-1].id]) == ("skipped", "not_played")
    misheard = query_cases[trials[2].id]
    assert misheard.reason is not None
    assert misheard.reason.message == "misheard (cable)"
    assert "heard: what lime is it" in misheard.reason.text
    assert misheard.duration_s == pytest.approx(4.0)


def test_a_run_that_did_not_end_is_an_error_with_its_faults(rows: WakeRows) -> None:
    rows.add(FaultMet("kitchen_link", "the cable\x07 was pulled"))
    run = cases(report(rows), "session")["run"]
    assert why(run) == ("error", "not_finished")
    assert known(run.reason).message == "the run did not finish"
    assert "fault: kitchen_link: the cable\\x07 was pulled" in run.output
    rows.add(SessionFinished(EndReason.STOPPED))
    assert why(cases(report(rows), "session")["run"]) == ("error", "stopped")
    rows.add(SessionFinished(EndReason.COMPLETED))
    assert why(cases(report(rows), "session")["run"]) is None


def test_a_suite_says_whether_talkers_are_known_and_voices_enough() -> None:
    spoken = wake_trial(1)
    recorded = replace(wake_trial(2), recipe=replace(spoken.recipe, query=Recording("/said/a.wav")))
    rows = rows_of(recorded)
    rows.play(recorded)
    (figures,) = (dict(suite.properties) for suite in report(rows).suites if suite.name == "kitchen.wake")
    assert (figures["talkers"], figures["voices"], figures["share_interval_95"]) == ("unknown", "1", "0.025 to 1")
    rows = rows_of(spoken, recorded)
    rows.play(spoken)
    (figures,) = (dict(suite.properties) for suite in report(rows).suites if suite.name == "kitchen.wake")
    assert figures["share_interval_95"] == "too few voices for an interval"
    (figures,) = (
        dict(suite.properties) for suite in report(rows_of(spoken, recorded)).suites if suite.name == "kitchen.wake"
    )
    assert (figures["false_rejects"], figures["voices"]) == ("0 of 0", "0")


def test_every_suite_names_its_session(rows: WakeRows) -> None:
    junit_report = report(rows, Limits(max_false_reject_share=1.0))
    names = ["session", "limits"]
    names += [f"{device}.{kind}" for kind in ("wake", "command", "ambient") for device in ("kitchen", "den")]
    assert [suite.name for suite in junit_report.suites] == names
    for suite in junit_report.suites:
        properties = dict(suite.properties)
        assert (
            properties["session"],
            properties["scenario_sha256"],
            properties["bench_sha256"],
            properties["seed"],
        ) == ("s1", "a", "b", "1")
    figures = {suite.name: dict(suite.properties) for suite in junit_report.suites}
    assert figures["session"]["version numpy"] == "2"
    assert figures["den.wake"]["false_rejects"] == "1 of 2"
    assert figures["kitchen.command"]["commands_understood"] == "1 of 3"
    assert figures["kitchen.ambient"]["false_accepts"] == "2"
    assert figures["kitchen.ambient"]["exposure_hours"] == f"{60 / 3600:.6f}"


texts = st.text() | st.text(st.characters(codec=None, categories=("Cc", "Cs", "Cn", "Co", "Zl"))) | st.just("]]>\r\n&<")
reasons = st.none() | st.builds(Reason, st.sampled_from(CaseVerdict), texts.map("t".__add__), texts, texts)
a_case = st.builds(
    Case,
    texts.map("n".__add__),
    texts.map("c".__add__),
    st.floats(0, 1e6),
    reasons,
    st.lists(texts, max_size=3).map(tuple),
)
suites = st.builds(
    Suite,
    texts.map("s".__add__),
    st.lists(a_case, max_size=3).map(tuple),
    st.lists(st.tuples(texts.map("p".__add__), texts), max_size=2).map(tuple),
)


@given(st.lists(suites, max_size=3).map(tuple), texts)
def test_whatever_a_text_holds_the_report_is_valid(drawn_suites: tuple[Suite, ...], name: str) -> None:
    assert problems(to_xml(JUnitReport(name, drawn_suites, 1.7e9, 3.5))) == []


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0xFFFD, categories=("L", "N", "P", "Zs"))))
def test_a_text_that_xml_can_hold_is_read_back_as_it_was(text: str) -> None:
    document = to_xml(JUnitReport("r", (Suite("s", (Case(f"n{text}", "c", output=(f"x{text}",)),)),), 0.0))
    case = next(ElementTree.fromstring(document).iter("testcase"))
    assert case.get("name") == f"n{text}"
    assert case.findtext("system-out") == f"x{text}"


def test_the_checker_finds_what_is_wrong() -> None:
    good = to_xml(JUnitReport("r", (Suite("s", (Case("n", "c"),)),), 0.0)).decode()
    assert problems(good.encode()) == []
    for old, new in (
        ('tests="1"', 'tests="2"'),
        ('classname="c"', 'class="c"'),
        ('time="0.000"', 'time="soon"'),
        ("<properties />", "<failure type='a'/>"),
        ("1970-01-01T00:00:00", "yesterday"),
    ):
        assert old in good
        assert problems(good.replace(old, new).encode()) != [], new


def stored(folder: Path, rows: WakeRows, limits: Limits) -> Path:
    written(folder, rows, now_s=lambda: 0.0, wall_s=lambda: 1000.0)
    write_resolved(folder, ResolvedSession(scenario(limits), Bench("lab", "", "", "b", ())))
    return folder


def test_export_writes_it_into_a_file_or_to_standard_output(rows: WakeRows, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    folder = stored(tmp_path / "s1", rows, Limits(max_false_reject_share=0.1))
    monkeypatch.chdir(tmp_path)
    result = succeeded(harness("export", folder, "--junit"))
    assert result.stdout == 'Writing JUnit report to "s1.junit.xml"\n'
    document = (tmp_path / "s1.junit.xml").read_bytes()
    assert problems(document) == []
    assert b'name="max_false_reject_share[den]"' in document
    assert not list(tmp_path.glob("*.log"))
    assert harness("export", folder, "--junit", "-").stdout_bytes == document
    refusal = harness("export", folder, "--junit", "-", "--json")
    assert isinstance(refusal.exception, InputError)


def test_a_run_that_never_begins_leaves_no_old_report(tmp_path: Path) -> None:
    target = tmp_path / "new" / "junit.xml"
    target.parent.mkdir()
    target.write_text("of yesterday", encoding="utf-8")
    arguments = ["run", str(tmp_path / "night.yaml"), "--bench", str(tmp_path / "b.yaml"), "--junit", str(target)]
    result = harness(*arguments)
    assert isinstance(result.exception, InputError)
    document = target.read_bytes()
    assert problems(document) == []
    (case,) = ElementTree.fromstring(document).iter("testcase")
    assert case.get("classname") == "night.session"
    assert (case[0].tag, case[0].get("type")) == ("error", "not_begun")
    assert "night.yaml" in str(case[0].get("message"))


def test_unmet_bench_need_is_reported_as_skipped() -> None:
    document = junit.not_begun("night", UnmetNeed("the bench has no microphone"))
    assert problems(document) == []
    assert next(ElementTree.fromstring(document).iter("skipped")).get("message") == "the bench has no microphone"


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    arguments = ["run", "s.yaml", "--bench", "b.yaml", "--junit", str(tmp_path / "file" / "junit.xml")]
    result = harness(*arguments)
    assert isinstance(result.exception, InputError)
    assert "JUnit report cannot be written" in str(result.exception)
    waits = harness("run", "s.yaml", "--bench", "b.yaml", "--junit", "x.xml", "--no-watch")
    assert isinstance(waits.exception, InputError)
    assert "harness report export SESSION --junit" in str(waits.exception)
    plans = harness("run", "s.yaml", "--bench", "b.yaml", "--junit", str(tmp_path / "x.xml"), "--prepare")
    assert "--prepare and --junit cannot be combined" in str(plans.exception)
    assert not (tmp_path / "x.xml").exists()


def test_word_errors_are_properties_of_queries_and_of_commands(rows: WakeRows) -> None:
    query_rows = Rows.of(planned(1), planned(2))
    for number, heard in ((1, "what lime is it"), (2, "what time is it")):
        query_rows.add(TrialStarted(f"time-{number}", 1))
        query_rows.attempt(f"time-{number}", 1, heard=heard)
        query_rows.add(TrialFinished(f"time-{number}", 1, Outcome.RESPONDED, 1, 1))
    (queries,) = [suite for suite in report(query_rows).suites if suite.name == "kitchen.query"]
    properties = dict(queries.properties)
    assert properties["normalisation"] == "spoken"
    assert (properties["first_attempt_word_errors"], properties["first_attempt_wer"]) == ("1 of 8", "0.125")
    assert (properties["final_attempt_word_errors"], properties["final_attempt_transcripts"]) == ("1 of 8", "2 of 2")
    assert " to " in properties["final_attempt_wer_interval_95"]
    assert properties["final_attempt_wer_interval_over"] == "attempts"
    suites = {suite.name: dict(suite.properties) for suite in report(rows).suites}
    assert suites["kitchen.command"]["final_attempt_word_errors"] == "3 of 8"  # "31moff" is said as three
    assert "normalisation" not in suites["den.command"]
    assert "normalisation" not in suites["kitchen.wake"]


def test_expected_and_understood_frames_are_reported(tmp_path: Path) -> None:
    junit_report = report(some_frames(tmp_path))
    by_name = cases(junit_report, "kitchen.understand")
    assert [why(by_name[name]) for name in ("timer", "time", "full_moon")] == [None, None, None]
    assert by_name["timer"].class_name == "kitchen.kitchen.understand"
    assert by_name["timer"].output[2:] == (
        "expected: set_timer (duration: 10 minutes)",
        "attempt 1: intents right, slots not: set_timer (duration: 15 minutes)",
        '    = set_timer, ≠ duration "15 minutes" (wanted "10 minutes")',
        "attempt 2: understood: set_timer (duration: 10 minutes)",
    )
    wrong = known(by_name["timer_and_eggs"].reason)
    assert (wrong.verdict, wrong.type) == (CaseVerdict.FAILURE, "intents_differ")
    assert wrong.message == (
        "expected add_to_list#set_timer (duration: 5 minutes, item: eggs); "
        "understood read_list#set_timer (duration: 9 minutes, day: today)"
    )
    assert "− add_to_list, = set_timer, + read_list" in wrong.text
    assert why(by_name["read_list"]) == ("skipped", "not_played")
    assert known(by_name["read_list"].reason).message == "not played to its end"  # the run may continue
    (suite,) = [suite for suite in junit_report.suites if suite.name == "kitchen.understand"]
    properties = dict(suite.properties)
    assert properties["frames_right"] == "3 of 4"
    assert properties["first_attempt_frames_right"] == "2 of 4"
    assert properties["first_attempt_intents_right"] == "3 of 4"


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (told("set_timer", right=False, intents_right=True), ("failure", "slots_differ")),
        (None, ("skipped", "frame_unknown")),
    ],
)
def test_right_words_do_not_pass_without_a_right_frame(
    frame: UnderstandingResult | None, reason: tuple[str, str]
) -> None:
    rows = Rows()
    trial = wanting(1, "set a timer for ten minutes", "timer", TIMER)
    rows.start(replace(trial, reprompt=RepromptRule(until=RepeatUntil.RECOGNISED)))
    rows.trial("timer", clip=clip_of("a"), understood=frame)
    assert why(cases(report(rows), "kitchen.understand")["timer"]) == reason


def test_silence_is_reported_as_silence() -> None:
    rows = Rows.of(wanting(1, "set a timer for ten minutes", "timer", TIMER))
    rows.trial("timer", Outcome.NO_WAKE, Recognition.UNKNOWN, latency_s=None)
    assert why(cases(report(rows), "kitchen.understand")["timer"]) == ("failure", "no_wake")
