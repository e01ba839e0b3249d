"""From nothing to the first table in three commands: discover, init, run; with a Wyoming satellite."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from zeroconf import ServiceInfo, Zeroconf

from harness.model.observation import StimulusStarted
from harness.model.record import AttemptStarted, Observed
from tests.conformance.engine_runs import HARNESS, Runs, rows, watching
from tests.conformance.wyoming_far_ends import WyomingProgram
from tests.ports import free_port
from tests.seen import until

KIND = "_wyoming._tcp.local."
AFTER_PHRASE_S = 0.2
SHORTER = {
    "repeat: 5": "repeat: 1",
    "hours: 0.1": "hours: 0.001",
    "voice: [anna, ben], level_dbfs: [-26, -36]": "voice: [anna]",
    "max_false_accepts_per_hour: 30 ": "max_false_accepts_per_hour: 10000\n  max_disturbed_share: 1 ",
}
"""What is changed in the scenario: how long it takes, and limits that so little sound or a busy host cannot meet."""


def run(command: str, folder: Path) -> str:
    words = shlex.split(command)
    assert words[0] == "harness"
    result = subprocess.run([*HARNESS, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def changed(file: Path, changes: dict[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


class Hearing:
    """When a satellite wakes: after each phrase, and once in the ambient sound."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._due: list[float] = []
        self._plays: dict[str, AttemptStarted] = {}
        self._seen = 0
        self.false_accepts = 0

    def follow(self, folder: Path) -> None:
        entries = rows(folder)
        for entry in entries[self._seen :]:
            match entry.record:
                case AttemptStarted() as attempt:
                    self._plays[attempt.play_id] = attempt
                case Observed(observation=StimulusStarted() as began):
                    attempt = self._plays[began.play_id]
                    if attempt.query_end_s > attempt.query_start_s:
                        self._due.append(began.at.at_s + attempt.query_end_s + AFTER_PHRASE_S)
                    elif not self.false_accepts:
                        self.false_accepts = 1
                        self._due.append(began.at.at_s + attempt.duration_s / 2)
        self._seen = len(entries)
        now_s = time.monotonic()
        for due_s in [moment_s for moment_s in self._due if moment_s <= now_s]:
            self._due.remove(due_s)
            self._wake()


def table(running: subprocess.Popen[str], hearing: Hearing, sessions: Path) -> str:
    """What a run prints whose device wakes once when it is called, and once when it is not."""
    folders: list[Path] = []

    def ended() -> bool:
        folders[:] = [log.parent for log in sessions.glob("[!.]*/log.sqlite")] if sessions.exists() else []
        if folders:
            hearing.follow(folders[0])
        return running.poll() is not None

    until(ended, 120)
    printed, trouble = running.communicate()
    assert running.returncode == 0, printed + trouble
    assert "false rejects      0 of 1" in printed
    assert "false accepts      1 in 0.001 h" in printed
    return printed


def test_discover_init_and_run_give_hits_and_false_accepts_of_a_satellite(runs: Runs, tmp_path: Path) -> None:
    name = f"sat{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        satellite = stack.enter_context(WyomingProgram("satellite", free_port()))
        announcing = Zeroconf(interfaces=["127.0.0.1"])
        stack.callback(announcing.close)
        address = socket.inet_aton("127.0.0.1")
        announcing.register_service(
            ServiceInfo(KIND, f"{name}.{KIND}", addresses=[address], port=satellite.port), cooperating_responders=True
        )
        commands: list[str] = []

        def found() -> bool:
            devices = json.loads(run("harness devices discover --seconds 2 --json", tmp_path))
            commands.extend(device["command"] for device in devices if device["name"] == name)
            return bool(commands)

        until(found, 30)
        output = run(commands[0], tmp_path)
        last = output.splitlines()[-1].strip()
        assert last == f"harness run {name}/scenario.yaml --bench {name}/bench.yaml"

        # Home Assistant, pointed at the harness. Without a loudspeaker, sound goes to one in the process.
        home_assistant = WyomingProgram("client", free_port())
        bench = {
            "0.0.0.0:10600": f"127.0.0.1:{home_assistant.port}",
            "loudspeaker, sound_device: default": "in_process",
        }
        changed(tmp_path / name / "bench.yaml", bench)
        changed(tmp_path / name / "scenario.yaml", SHORTER)
        stack.enter_context(home_assistant)

        sessions = tmp_path / "sessions"
        scenario, bench_file = (tmp_path / name / f"{stem}.yaml" for stem in ("scenario", "bench"))
        running = watching("run", scenario, "--bench", bench_file, "--sessions", sessions)
        hearing = Hearing(lambda: satellite.say("detection", {"name": "okay_nabu"}))
        printed = table(running, hearing, sessions)
    assert "probes             2 of 2 heard" in printed
    assert ("run-satellite", 0) in satellite.heard
