"""The engine as its clients see it: it starts, serves, stops in order, and outlives them all."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.cli.plain import RECOGNITION_HINT
from harness.model.bench import OperatorPresence
from harness.model.errors import LogError
from harness.model.feed import (
    Abort,
    Goodbye,
    Logged,
    Meters,
    Pause,
    Replay,
    Resume,
    Skip,
    StateChanged,
    StateWord,
    Welcome,
    WriteNote,
)
from harness.model.record import (
    EndReason,
    FaultMet,
    NoteWritten,
    OperatorAsked,
    SessionFinished,
    TrialFinished,
    TrialStarted,
)
from harness.model.trial import Outcome
from harness.session.engine.engine import CLIENT_WITHIN_S
from harness.session.engine.launch import find, list_running, start_engine
from harness.session.log.database import SqliteLog
from harness.session.log.reader import check
from tests.conformance.engine_runs import (
    HARNESS,
    HERE,
    Runs,
    Watcher,
    kill,
    play_out,
    records,
    rows,
    wait_for,
    watching,
)
from tests.known import known
from tests.seen import until


def some_id() -> str:
    return uuid4().hex


def test_run_is_watched_from_first_row_to_goodbye(runs: Runs) -> None:
    folder = runs.prepare("three.yaml")
    place = start_engine(folder)
    assert find(folder) == place
    assert list_running() == (place,)
    client = Watcher(place, meters=True)
    assert client.goodbye() == Goodbye(0, "")
    assert isinstance(client.messages[0], Welcome)
    assert client.messages[0].session_folder == str(folder)
    logged = [message.entry for message in client.messages if isinstance(message, Logged)]
    assert logged == rows(folder)
    states = {message.word for message in client.messages if isinstance(message, StateChanged)}
    assert {StateWord.PLAYING, StateWord.LISTENING, StateWord.FINISHED} <= states
    assert any(isinstance(message, Meters) for message in client.messages)
    wait_for(lambda: not place.alive)
    assert list_running() == ()
    assert not (folder / "engine.json").exists()


def test_a_running_engine_reports_to_the_watchdog_and_a_stuck_one_does_not(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = runs.prepare("lasting.yaml")
    with tempfile.TemporaryDirectory(prefix="vh") as short, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"{short}/notify")
        systemd.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", f"{short}/notify")
        monkeypatch.setenv("WATCHDOG_USEC", "800000")
        place = start_engine(folder)
        assert [systemd.recv(100) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        os.kill(place.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{place.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", 30, "it does not stop")
        systemd.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while systemd.recv(100):  # what was on its way
                pass
        systemd.settimeout(1.0)
        with pytest.raises(TimeoutError):
            systemd.recv(100)


def test_a_stop_is_orderly_and_the_rest_is_played_on_resume(runs: Runs) -> None:
    folder = runs.prepare("lasting.yaml")
    place = start_engine(folder)
    client = Watcher(place)
    client.wait_row(TrialFinished)
    os.kill(place.pid, signal.SIGTERM)
    assert client.goodbye() == Goodbye(3, "stopped")
    assert rows(folder)[-1].record == SessionFinished(EndReason.STOPPED)
    before = len(records(folder, TrialFinished))
    assert 0 < before < 1200
    wait_for(lambda: not place.alive)
    resumed = Watcher(start_engine(folder), len(rows(folder)))
    resumed.wait_row(TrialFinished)
    logged = [message.entry.seq for message in resumed.messages if isinstance(message, Logged)]
    assert logged[0] > before


def test_a_run_is_stopped_from_outside_and_a_second_stop_says_that_it_has_ended(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("lasting.yaml")
    client = Watcher(start_engine(folder))
    client.wait_row(TrialFinished)
    stop = cli("stop", folder, folder=tmp_path)
    assert (stop.returncode, stop.stdout.startswith("stopped: ")) == (0, True), stop.stdout + stop.stderr
    assert f"harness run resume sessions/{folder.name}" in stop.stdout
    assert client.goodbye() == Goodbye(3, "stopped")
    second = cli("stop", folder, folder=tmp_path)
    assert (second.returncode, "is not running: it has ended (stopped)" in second.stderr) == (3, True), second.stderr


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
@pytest.mark.usefixtures("host_keeps_time")
def test_a_log_that_is_deleted_or_replaced_ends_the_run_and_resume_goes_on(runs: Runs, replaced: bool) -> None:
    folder = runs.prepare("sixty.yaml")
    place = start_engine(folder)
    client = Watcher(place)
    client.wait_row(TrialFinished)
    for path in folder.glob("log.sqlite*"):
        path.unlink()
    struck_s = time.monotonic()
    if replaced:
        (folder / "log.sqlite").touch()
    goodbye = client.goodbye()
    assert goodbye.exit_code == 3
    assert "log.sqlite was deleted, moved or replaced" in goodbye.reason
    assert client.arrivals[-1][0] - struck_s < 1.0, "a fault within a second"
    last_told = max(message.entry.seq for message in client.messages if isinstance(message, Logged))
    wait_for(lambda: not place.alive)
    shown = subprocess.run([*HARNESS, "show", str(folder)], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 3
    assert "harness run resume" in shown.stderr
    resumed = subprocess.run([*HARNESS, "resume", str(folder), "--plain"], capture_output=True, text=True, timeout=180)
    assert resumed.returncode == 0, resumed
    assert "Its rows were rescued" in resumed.stderr
    assert check(folder).damage == ()
    finished = records(folder, TrialFinished)
    assert len(finished) == len({row.trial_id for row in finished}) == 60
    entries = rows(folder)
    assert [message.entry for message in client.messages if isinstance(message, Logged)] == entries[:last_told]
    assert any(
        isinstance(entry.record, FaultMet) and "was deleted" in entry.record.what for entry in entries[last_told:]
    )


def skipped(client: Watcher, folder: Path) -> bool:
    """Asks for it. Whether the trial had no verdict yet; it has one before the answer."""
    before = len(records(folder, TrialFinished))
    if not client.ask(Skip(some_id(), "ann", "enough")).ok:
        return False
    finished = records(folder, TrialFinished)[before:]
    assert finished
    return finished[0].outcome is Outcome.SKIPPED


def test_commands_are_committed_before_they_are_answered(runs: Runs) -> None:
    folder = runs.prepare("lasting.yaml")
    client = Watcher(start_engine(folder))
    client.wait_row(TrialFinished)
    assert client.ask(Pause(some_id(), "ann", "the door")).ok
    assert not client.ask(Pause(some_id(), "ann")).ok
    assert client.ask(WriteNote(some_id(), "ann", "[/red]\x1b]0;x\x07")).ok
    assert records(folder, NoteWritten) == [NoteWritten("[/red]\x1b]0;x\x07", "ann")]
    assert client.ask(Resume(some_id(), "ann")).ok
    wait_for(lambda: skipped(client, folder))
    refused = client.ask(Replay(some_id(), "ann", "00001-x.flac"))
    assert not refused.ok
    assert "no monitor" in refused.why
    assert client.ask(Abort(some_id(), "ann")).ok
    assert client.goodbye() == Goodbye(3, "aborted")
    assert rows(folder)[-1].record == SessionFinished(EndReason.ABORTED)


def test_the_engine_outlives_clients_that_are_killed_or_hostile(runs: Runs) -> None:
    folder = runs.prepare("lasting.yaml")
    place = start_engine(folder)
    watcher = watching("attach", str(folder))
    known(watcher.stdout).readline()
    watcher.kill()
    watcher.communicate()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hostile, contextlib.suppress(OSError):
        hostile.connect(place.socket)
        hostile.sendall(b"\xff\x00{{{" * 100_000)
    before = len(rows(folder))
    wait_for(lambda: len(rows(folder)) > before + 20)
    assert place.alive


def test_a_second_engine_is_not_started(runs: Runs) -> None:
    folder = runs.prepare("lasting.yaml")
    place = start_engine(folder)
    assert start_engine(folder) == place
    second = subprocess.run(
        [sys.executable, "-m", "harness.session.engine.engine", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 3
    assert "being written by another process" in second.stderr
    assert place.alive


def test_a_damaged_log_is_refused_with_a_remedy(runs: Runs) -> None:
    folder = runs.prepare("three.yaml")
    (folder / "log.sqlite").write_bytes(b"x" * 10_000)
    with pytest.raises(LogError, match="damaged"):
        rows(folder)
    result = cli("resume", folder, "--plain", folder=folder)
    assert result.returncode == 3
    assert "recover" in result.stderr
    assert "Traceback" not in result.stderr


def cli(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HARNESS, *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=300, cwd=folder, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.usefixtures("host_keeps_time")  # a response is late where the host stands still
def test_run_show_and_resume_on_the_command_line(runs: Runs, tmp_path: Path) -> None:
    result = cli("run", HERE / "three.yaml", "--bench", HERE / "bench.yaml", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "3 of 3 trials: 3 responded" in result.stdout
    assert result.stdout.isascii() or "\x1b" not in result.stdout
    (session,) = (tmp_path / "sessions").iterdir()
    assert f"harness report show sessions/{session.name}" in result.stdout
    shown = cli("show", session.name, folder=tmp_path)
    assert "3 of 3 trials: 3 responded" in shown.stdout
    checked, table, lines = (
        CliRunner().invoke(group, ["show", str(session), option]).stdout for option in ("--check", "--csv", "--json")
    )
    assert checked.endswith(" clips: whole\n")
    assert (len(table.splitlines()), len(lines.splitlines())) == (4, len(rows(session)))
    resumed = cli("resume", session.name, "--junit", "out/junit.xml", folder=tmp_path)
    assert (resumed.returncode, "nothing is left" in resumed.stdout) == (0, True)
    report = (tmp_path / "out" / "junit.xml").read_bytes()
    assert (report.count(b"<testcase "), b"<error" in report, b"<failure" in report) == (5, False, False)
    assert cli("attach", folder=tmp_path).returncode == 3
    wrong = cli("show", "no-such", folder=tmp_path)
    assert (wrong.returncode, session.name in wrong.stderr) == (2, True)


def test_a_session_is_planned_first_and_played_later(runs: Runs, tmp_path: Path) -> None:
    planned = cli("run", HERE / "three.yaml", "--bench", HERE / "bench.yaml", "--prepare", folder=tmp_path)
    folder = Path(planned.stdout.strip())
    assert (planned.returncode, find(folder), len(rows(folder))) == (0, None, 1)
    # On a host that stands still, some of the three are late.
    assert "3 of 3 trials: " in cli("resume", folder, "--unattended", "--plain", folder=tmp_path).stdout


@pytest.mark.parametrize(
    ("scenario", "status", "words"),
    [("deaf.yaml", 1, "FAIL      recognised ≥"), ("skip.yaml", 0, "SKIP "), ("wrong.yaml", 2, "wrong.yaml:")],
)
def test_each_end_of_a_run_has_its_exit_status(
    runs: Runs, tmp_path: Path, scenario: str, status: int, words: str
) -> None:
    bench = HERE / ("deaf_bench.yaml" if scenario == "deaf.yaml" else "bench.yaml")
    result = cli("run", HERE / scenario, "--bench", bench, "--plain", folder=tmp_path)
    assert result.returncode == status, result.stdout + result.stderr
    assert words in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_a_device_that_shows_no_sign_of_life_is_not_counted_as_a_bad_one(runs: Runs, tmp_path: Path) -> None:
    dead = (HERE / "deaf.yaml").read_text(encoding="utf-8").replace("  life_check_after: 0\n", "")
    (tmp_path / "dead.yaml").write_text(dead, encoding="utf-8")
    result = cli("run", tmp_path / "dead.yaml", "--bench", HERE / "deaf_bench.yaml", "--plain", folder=tmp_path)
    assert result.returncode == 3, result.stdout + result.stderr
    assert "no sign of life" in result.stdout
    assert "interrupted" in result.stdout
    assert "harness run resume" in result.stdout


def test_ctrl_c_stops_in_order_and_says_how_to_go_on(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("lasting.yaml")
    report = tmp_path / "junit.xml"
    watcher = watching("resume", str(folder), "--junit", str(report))
    assert watcher.stdout is not None
    shown = watcher.stdout.readline()  # it is connected now; interrupted earlier, it just leaves
    wait_for(lambda: bool(records(folder, TrialFinished)))
    watcher.send_signal(signal.SIGINT)
    output, errors = watcher.communicate(timeout=300)
    assert watcher.returncode == 3, shown + output
    assert "stopping the run" in errors
    assert f"harness run resume {folder}" in output
    assert rows(folder)[-1].record == SessionFinished(EndReason.STOPPED)
    assert b'<error type="stopped"' in report.read_bytes()


def test_finished_run_waits_for_a_late_watcher(runs: Runs) -> None:
    folder = runs.prepare("deaf.yaml", "deaf_bench.yaml")
    with SqliteLog(folder, now_s=time.monotonic, wall_s=time.time) as log:
        log.append(TrialStarted("time.r1", 1))
        log.append(TrialFinished("time.r1", 1, Outcome.NO_WAKE, 1, 1))
    place = start_engine(folder)
    until(lambda: any(isinstance(entry.record, SessionFinished) for entry in rows(folder)))
    time.sleep(CLIENT_WITHIN_S + 1)  # a busy host: it comes late
    assert Watcher(place).goodbye().exit_code == 1


def test_resume_completes_a_run_killed_after_its_last_trial(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("deaf.yaml", "deaf_bench.yaml")
    with SqliteLog(folder, now_s=time.monotonic, wall_s=time.time) as log:
        log.append(TrialStarted("time.r1", 1))
        log.append(TrialFinished("time.r1", 1, Outcome.NO_WAKE, 1, 1))
    result = cli("resume", folder, "--junit", "junit.xml", folder=tmp_path)
    assert (result.returncode, "failed: recognised ≥ 90 %" in result.stdout) == (1, True), result.stderr
    assert rows(folder)[-1].record == SessionFinished(EndReason.COMPLETED)
    assert b"<error" not in (tmp_path / "junit.xml").read_bytes()


def test_resuming_an_attended_session_asks_the_operator(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("asking.yaml", "attended_bench.yaml", operator=OperatorPresence.PRESENT)
    watcher = watching("resume", str(folder))
    questions = 0
    for line in known(watcher.stderr):
        # A host that stands still interrupts an attempt, and the next one asks again.
        if RECOGNITION_HINT in line:
            questions += 1
            known(watcher.stdin).write("y\n")
            known(watcher.stdin).flush()
    output, errors = watcher.communicate(timeout=300)
    assert (watcher.returncode, "2 of 2 trials: 2 responded" in output) == (0, True), output + errors
    assert questions >= 2


def test_resume_unattended_asks_nobody_in_an_attended_session(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("asking.yaml", "attended_bench.yaml", operator=OperatorPresence.PRESENT)
    result = cli("resume", folder, "--plain", "--unattended", folder=tmp_path)
    assert (result.returncode, "2 of 2 trials: 2 inconclusive" in result.stdout) == (0, True), (
        result.stdout + result.stderr
    )
    assert not records(folder, OperatorAsked)


def engines_of(folder: Path) -> list[int]:
    """Processes that were started to run that session, whether they answer yet or not."""
    pids = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"harness.session.engine.engine" in words and os.fsencode(folder.resolve()) in words:
                pids.append(int(process.name))
    return pids


def test_ctrl_c_while_the_engine_starts_leaves_none_behind(runs: Runs) -> None:
    folder = runs.prepare("lasting.yaml")
    watcher = watching("resume", str(folder))
    wait_for(lambda: bool(engines_of(folder)), event="an engine")
    watcher.send_signal(signal.SIGINT)
    _, errors = watcher.communicate(timeout=300)
    assert watcher.returncode == 3, errors
    assert f"harness run resume {folder}" in errors
    assert "Traceback" not in errors
    wait_for(lambda: not engines_of(folder), event="the engine's end")


def test_attach_names_an_engine_whose_socket_was_removed(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("lasting.yaml")
    place = start_engine(folder)
    shutil.rmtree(Path(place.socket).parent)
    result = cli("attach", folder, "--plain", folder=tmp_path)
    assert (result.returncode, f"harness run stop {folder}" in result.stderr) == (3, True), result.stderr
    assert place.alive
    stopped = cli("run", "stop", folder, folder=tmp_path)
    assert stopped.returncode == 0, stopped.stderr
    assert rows(folder)[-1].record == SessionFinished(EndReason.STOPPED)


def test_session_continues_without_its_scenario_file_or_a_watcher(runs: Runs, tmp_path: Path) -> None:
    shutil.copytree(HERE, tmp_path / "here")
    scenario = tmp_path / "here" / "sixty.yaml"
    scenario.write_text(scenario.read_text("utf-8").replace("repeat: 20", "repeat: 5"), encoding="utf-8")
    folder = runs.prepare(scenario, tmp_path / "here" / "bench.yaml")
    place = start_engine(folder)
    wait_for(lambda: bool(records(folder, TrialFinished)))
    kill(place)
    shutil.rmtree(tmp_path / "here")
    play_out(folder)
    assert len(records(folder, TrialFinished)) == 15


def test_a_second_ctrl_c_leaves_an_engine_that_hangs(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("lasting.yaml")
    place = start_engine(folder)
    report = tmp_path / "junit.xml"
    watcher = watching("attach", str(folder), "--junit", str(report))
    known(watcher.stdout).readline()
    os.kill(place.pid, signal.SIGSTOP)
    watcher.send_signal(signal.SIGINT)
    assert "stopping the run" in known(watcher.stderr).readline()
    watcher.send_signal(signal.SIGINT)
    _, errors = watcher.communicate(timeout=300)
    assert watcher.returncode == 130
    assert f"harness run resume {folder}" in errors
    assert b'<error type="not_finished"' in report.read_bytes()


def test_watcher_is_told_that_its_engine_was_killed(runs: Runs) -> None:
    folder = runs.prepare("lasting.yaml")
    place = start_engine(folder)
    client = Watcher(place)
    client.wait_row(TrialFinished)
    kill(place)
    wait_for(lambda: bool(client.closed))
    assert "harness run resume" in client.closed[0]
