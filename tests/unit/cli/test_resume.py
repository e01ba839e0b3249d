"""`harness resume`, `attach` and `plan`, and `harness run` on a virtual lab that is down."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from harness.base.child_process import boot_id, start_ticks
from harness.cli import run
from harness.cli.plan import command
from harness.cli.run import demand_sound
from harness.cli.sessions import only_unfinished
from harness.lab.lab import Lab
from harness.model.bench import Bench
from harness.model.errors import EngineError, InputError, LabError, SoundError
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EndReason,
    FaultMet,
    Record,
    SessionFinished,
    TrialFinished,
    TrialStarted,
)
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.scenario.bench import load_bench
from harness.session.engine.launch import EnginePlace
from harness.session.engine.prepare import prepare
from harness.statistics.intervals import garwood
from tests.command import harness, succeeded
from tests.known import known
from tests.unit.report.junit_schema import problems
from tests.written_sessions import written

INPUTS = Path(__file__).parents[2] / "conformance" / "in_process"
OUTCOMES = {
    Outcome.RESPONDED: Recognition.YES,
    Outcome.NO_WAKE: Recognition.NO,
    Outcome.INCONCLUSIVE: Recognition.UNKNOWN,
}


def ended(root: Path, outcome: Outcome, reason: EndReason = EndReason.COMPLETED) -> Path:
    """A session of one query, which wants 0.9 of its queries to be recognised."""
    folder = prepare(INPUTS / "deaf.yaml", INPUTS / "bench.yaml", root)
    rows: tuple[Record, ...] = (
        TrialStarted("time.r1", 1),
        AttemptStarted("time.r1", 1, 1, "t1", "s" * 64, 1.0, 2.0, 2.5, None),
        AttemptFinished("time.r1", 1, 1, outcome, OUTCOMES[outcome], EvidenceSource.DEVICE),
        TrialFinished("time.r1", 1, outcome, 1, 1),
        SessionFinished(reason),
    )
    return written(folder, rows, now_s=lambda: 1.0, wall_s=lambda: 1_700_000_000.0)


def reasons(report: Path) -> list[tuple[str, str]]:
    """Element and type of each verdict that is none of a pass."""
    assert problems(report.read_bytes()) == []
    return [
        (verdict.tag, verdict.get("type", ""))
        for case in ElementTree.parse(report).iter("testcase")
        for verdict in case
        if verdict.tag in ("failure", "error", "skipped")
    ]


def test_a_run_that_does_not_stop_in_time_is_described_and_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ended(tmp_path, Outcome.RESPONDED)
    busy = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as engine:
        try:
            assert known(engine.stdout).readline()
            place = EnginePlace(str(folder), engine.pid, known(start_ticks(engine.pid)), boot_id(), "socket")
            monkeypatch.setattr(run, "only_running", lambda: place)
            monkeypatch.setattr(run, "STOPS_WITHIN_S", 0.1)
            result = harness("stop")
            assert engine.poll() is None
        finally:
            engine.kill()
    error = result.exception
    assert isinstance(error, EngineError)
    assert re.search(r"has not ended after 0.1 s\. Its last row is .+ old: END all trials are finished", error.what)
    assert "All stored rows are safe" in error.remedy
    assert f"harness run attach {folder} --plain" in error.remedy
    assert "kill" not in str(error)


@pytest.mark.parametrize(
    ("outcome", "status", "expected"),
    [(Outcome.RESPONDED, 0, []), (Outcome.NO_WAKE, 1, [("failure", "limit"), ("failure", "no_wake")])],
)
def test_resuming_a_complete_session_reports_its_limits(
    tmp_path: Path, outcome: Outcome, status: int, expected: list[tuple[str, str]]
) -> None:
    folder = ended(tmp_path, outcome)
    result = harness("resume", folder, "--plain", "--junit", tmp_path / "out" / "junit.xml")
    assert result.exit_code == status, result.output
    assert "nothing is left to play" in result.output
    assert ("failed: recognised ≥ 90 %" in result.output) is bool(status)
    assert reasons(tmp_path / "out" / "junit.xml") == expected


def test_resume_without_a_name_takes_the_only_unfinished_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = Path("sessions")
    none = harness("resume")
    assert isinstance(none.exception, InputError)
    assert none.exception.what == "there is no unfinished session in ./sessions"
    ended(root, Outcome.RESPONDED)
    (root / "not_a_session").mkdir()
    left = prepare(INPUTS / "deaf.yaml", INPUTS / "bench.yaml", root)
    assert only_unfinished() == left
    ended(root, Outcome.RESPONDED, EndReason.ABORTED)
    assert only_unfinished() == left
    other = prepare(INPUTS / "deaf.yaml", INPUTS / "bench.yaml", root)
    several = harness("resume")
    assert isinstance(several.exception, InputError)
    assert several.exception.what == "2 sessions in ./sessions are unfinished"
    assert several.exception.remedy.splitlines()[1:] == [f"  {other}", f"  {left}"]


def test_an_undecided_limit_sets_the_status_of_the_run_and_not_of_a_page_about_it(tmp_path: Path) -> None:
    folder = ended(tmp_path, Outcome.INCONCLUSIVE)
    resumed = harness("resume", folder, "--plain")
    assert (resumed.exit_code, "undecided: recognised ≥ 90 %" in resumed.output) == (1, True), resumed.output
    for words in (("show", folder), ("report", folder, "--html", tmp_path / "page.html", "--audio", "none")):
        shown = harness(*words)
        assert (shown.exit_code, "UNDECIDED" in shown.output) == (0, True), shown.output


def test_a_run_that_fails_to_start_leaves_no_limit_open(tmp_path: Path) -> None:
    folder = prepare(INPUTS / "deaf.yaml", INPUTS / "bench.yaml", tmp_path)
    written(folder, (FaultMet("engine", "the board does not answer"),), now_s=lambda: 1.0, wall_s=lambda: 1.7e9)
    shown = harness("show", folder)
    assert "The run failed at the start: nothing was played." in shown.output
    assert "UNDECIDED recognised" in shown.output
    assert "OPEN" not in shown.output


def test_a_missing_sound_device_leaves_no_session(tmp_path: Path) -> None:
    assert harness("init", "--bench-kind", "sound", tmp_path).exit_code == 0
    bench = tmp_path / "bench.yaml"
    bench.write_text(bench.read_text("utf-8").replace("sound_device: default", "sound_device: nowhere"), "utf-8")
    words = ("run", tmp_path / "scenario.yaml", "--bench", bench, "--sessions", tmp_path / "s", "--plain")
    refusal = harness(*words)
    assert isinstance(refusal.exception, SoundError), refusal.output
    assert (refusal.exception.exit_code, str(refusal.exception.place)) == (3, f"{bench}:8:3")
    assert not (tmp_path / "s").exists()
    doctor = harness("check", "doctor", "--bench", bench, "--json")
    assert (doctor.exit_code, refusal.exception.what in doctor.output) == (3, True), doctor.output
    prepared = harness(*words[:-1], "--prepare")
    resumed = harness("run", "resume", prepared.output.strip(), "--plain")
    assert isinstance(resumed.exception, SoundError), resumed.output
    assert str(resumed.exception) == str(refusal.exception)


def test_resume_leaves_ports_and_notifications_to_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The port of a device without power appears when the engine has switched it on."""
    port, bench, scenario = tmp_path / "tty", tmp_path / "bench.yaml", tmp_path / "scenario.yaml"
    port.touch()
    connection = f"{{driver: serial, port: {port}}}"
    devices = f"devices: {{board: {{profile: vh_board, connection: {connection}}}}}\n"
    bench.write_text(f"bench: desk\noperator: absent\nnotify: [{{webhook_env: HOOK}}]\n{devices}", "utf-8")
    scenario.write_text(
        "scenario: calls\ndefaults: {voice: {engine: espeak, name: en-us}}\ntrials: [{id: call, kind: wake}]\n", "utf-8"
    )
    monkeypatch.setenv("HOOK", "http://localhost:1/")
    folder = prepare(scenario, bench, tmp_path / "s")
    port.unlink()
    monkeypatch.delenv("HOOK")
    began: list[Path] = []

    def start_engine(folder: Path, **options: bool) -> EnginePlace:
        began.append(folder)
        raise EngineError("it is not started here")

    monkeypatch.setattr("harness.session.engine.launch.start_engine", start_engine)
    result = harness("run", "resume", folder, "--plain")
    assert isinstance(result.exception, EngineError), result.output
    assert began == [folder]


@pytest.mark.parametrize(
    ("verb", "make", "words"),
    [
        ("resume", lambda root: ended(root, Outcome.NO_WAKE, EndReason.ABORTED), "was aborted"),
        ("resume", lambda root: root / "no-such", "is not a session"),
        ("attach", lambda root: ended(root, Outcome.RESPONDED), "is not running"),
    ],
)
def test_failure_to_watch_replaces_an_old_junit_report(
    tmp_path: Path, verb: str, make: Callable[[Path], Path], words: str
) -> None:
    report = tmp_path / "junit.xml"
    report.write_text("<testsuites/>")
    result = harness(verb, make(tmp_path), "--plain", "--junit", report)
    assert words in str(result.exception)
    assert reasons(report) == [("error", "not_begun")]
    assert words in report.read_text(encoding="utf-8")


def test_junit_report_is_refused_without_watching(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    result = harness("resume", tmp_path, "--no-watch", "--junit", report)
    assert isinstance(result.exception, InputError)
    assert not report.exists()


@pytest.mark.parametrize("option", ["--plain", "--json"])
def test_no_watch_is_refused_with_an_option_of_watching(tmp_path: Path, option: str) -> None:
    result = harness("resume", ended(tmp_path, Outcome.RESPONDED), "--no-watch", option)
    assert isinstance(result.exception, InputError)
    assert f"{option} and --no-watch cannot be combined" in str(result.exception)


def test_a_negative_seed_is_refused(tmp_path: Path) -> None:
    result = harness("run", INPUTS / "deaf.yaml", "--bench", INPUTS / "bench.yaml", "--prepare", "--seed", "-1")
    assert result.exit_code == 2
    assert "--seed" in result.output


class Terminal(io.StringIO):
    """Standard input or error of somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str | None]:
    """The rooms of the labs that were started; nothing is started in truth."""
    rooms: list[str | None] = []

    def up(lab: Lab, settings_path: Path | None = None, room: str | None = None) -> bool:
        rooms.append(room)
        return True

    monkeypatch.setattr(Lab, "up", up)
    monkeypatch.setenv("HARNESS_LAB", str(tmp_path / "lab"))
    return rooms


def bench_with(root: Path, sound_server: str = "virtual_lab") -> Bench:
    bench = root / "bench.yaml"
    plain = (INPUTS / "bench.yaml").read_text(encoding="utf-8").replace("device.yaml", str(INPUTS / "device.yaml"))
    bench.write_text(f"{plain}\nsound_server: {sound_server}\nroom: anechoic\n", encoding="utf-8")
    return load_bench(bench)


@pytest.mark.parametrize(("typed", "started"), [("\n", ["anechoic"]), ("y\n", ["anechoic"]), ("n\n", [])])
def test_starting_the_lab_is_confirmed_at_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starts: list[str | None], typed: str, started: list[str]
) -> None:
    bench, error = bench_with(tmp_path), Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    monkeypatch.setattr("sys.stderr", error)
    if started:
        demand_sound(bench, start=False)
    else:
        with pytest.raises(LabError):
            demand_sound(bench, start=False)
    assert "The virtual lab is down. Start it now? [Y/n]" in error.getvalue()
    assert starts == started


def test_yes_starts_the_lab_without_asking(tmp_path: Path, starts: list[str | None]) -> None:
    demand_sound(bench_with(tmp_path), start=True)
    assert starts == ["anechoic"]


def test_a_bench_with_sound_cards_needs_no_lab(tmp_path: Path, starts: list[str | None]) -> None:
    demand_sound(bench_with(tmp_path, "system"), start=True)
    assert starts == []


def test_without_a_terminal_the_error_names_both_remedies(tmp_path: Path, starts: list[str | None]) -> None:
    bench_with(tmp_path)
    result = harness(
        "run", INPUTS / "deaf.yaml", "--bench", tmp_path / "bench.yaml", "--sessions", tmp_path / "s", "--plain"
    )
    assert isinstance(result.exception, LabError), result.output
    assert result.exception.exit_code == 3
    assert "harness admin lab up" in result.exception.remedy
    assert "--yes" in result.exception.remedy
    assert starts == []
    assert not (tmp_path / "s").exists(), "nothing was played, so there is no session"


def said(*arguments: str) -> str:
    result = succeeded(CliRunner().invoke(command, arguments, catch_exceptions=False))
    return result.output


def test_plan_prints_the_numbers_of_the_specification() -> None:
    text = said()
    for figure in ("30.0 h", "47.4 h", "63.0 h", "173 utterances if exactly", "passes after 7.4 h"):
        assert figure in text, text
    plan = json.loads(said("--json"))
    assert [round(row["hours"], 1) for row in plan["false_accepts"]["claims"][:3]] == [30.0, 47.4, 63.0]
    # The hours from which on the interval of a report ends within the limit of `evaluate --max-fa-per-hour`.
    for row in plan["false_accepts"]["claims"]:
        interval = known(garwood(row["events"], row["hours_for_limit"]))
        assert interval[1] == pytest.approx(0.1)
    assert re.search(r"^  0 +6\.0 h +7\.4 h$", said("--fa-below", "0.5"), re.M)
    assert plan["false_rejects"]["utterances_as_expected"] == 173
    assert plan["sequential"]["hours_to_pass"] == pytest.approx(7.4, abs=0.05)


def test_plan_takes_power_and_talkers_into_account() -> None:
    plan = json.loads(said("--fa-below", "0.1", "--fa-expected", "0.02", "--json"))
    assert round(plan["false_accepts"]["hours"], 1) == 63.0
    assert plan["false_accepts"]["power"] >= 0.8
    assert "false_rejects" not in plan
    plan = json.loads(said("--fr-below", "5%", "--fr-expected", "0.02", "--per-talker", "20", "--json"))
    assert plan["design_effect"] == pytest.approx(2.9)
    rejects = plan["false_rejects"]
    assert rejects["utterances_clustered"] == pytest.approx(rejects["utterances"] * 2.9, abs=1)
    assert rejects["talkers_without_rejects"] == 30
    text = said("--fr-below", "5%", "--per-talker", "20")
    assert "they need 30 talkers with 20 utterances each, and no false rejects" in text
    assert "a new talker for each utterance" in said("--fr-below", "5%")
    refused = CliRunner().invoke(command, ["--fr-below", "5%", "--correlation", "0.5"])
    assert "--correlation needs --per-talker" in str(refused.exception)
    assert json.loads(said("--per-talker", "20", "--json"))["design_effect"] == pytest.approx(2.9)
    refused = CliRunner().invoke(command, ["--fa-below", "0.1", "--per-talker", "20"])
    assert "--per-talker needs --fr-below or --difference" in str(refused.exception)


def test_plan_counts_files_for_comparing_two_systems() -> None:
    plan = json.loads(said("--difference", "5%", "3%", "--json"))["difference"]
    fewer = json.loads(said("--difference", "5%", "3%", "--discordant", "2.5%", "--json"))["difference"]
    assert fewer["files"] < plan["files"]
    assert plan["power"] >= 0.8
    assert f"{plan['files']:,} files" in said("--difference", "5%", "3%")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--fa-expected", "1"),
        ("--fa-below", "0.1", "--fa-expected", "0.2"),
        ("--fr-below", "5%", "--fr-expected", "6%"),
        ("--discordant", "5%"),
        ("--sprt", "0.5", "0.1"),
        ("--sprt", "0.1", "0.5", "--alpha", "0.5", "--beta", "0.5"),
        ("--difference", "3%", "3%"),
        ("--difference", "5%", "3%", "--discordant", "1%"),
        ("--fr-below", "500%"),
        ("--fr-below", "0%"),
        ("--fa-below", "0"),
    ],
)
def test_impossible_planning_numbers_are_refused(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code != 0
    assert result.exception is None or not isinstance(result.exception, ValueError | ArithmeticError)


def test_swapped_rates_are_put_in_order() -> None:
    with pytest.raises(InputError, match=r"Write --sprt 0\.1 0\.5"):
        CliRunner().invoke(command, ["--sprt", "0.5", "0.1"], catch_exceptions=False)
