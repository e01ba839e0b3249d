"""Wake sessions on two boards of which one is struck: what was told, what the screen said, what the log holds after."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from harness.model.observation import LinkBack, LinkLost, Observation, StimulusStarted, Wake
from harness.model.record import AttemptFinished, AttemptStarted, Entry, Observed, Record, TrialFinished
from harness.model.trial import Outcome
from harness.session.engine.launch import EnginePlace, find
from harness.session.log.reader import LogReader, check
from harness.sound.stimuli.renderer import renderer
from harness.wake.wake_progress import WakeProgress
from tests.conformance.boards import built
from tests.conformance.engine_runs import HARNESS, Watcher, kill, rows, wait_for
from tests.written_sessions import plan_of, records, wake_of

SCENARIO = """\
scenario: faults
seed: 4
needs: [wake_events, injection]
voices:
  alan: {engine: espeak, name: en-gb, rate_wpm: 150, language: en-GB}
  boris: {engine: espeak, name: en-us+m3, rate_wpm: 170}
  kal: {engine: flite, name: kal}
trials:
  - {id: call, kind: wake, lead_in_s: 40}
  - id: soak
    kind: ambient
    hours: 0.1
    segment_s: 120
    level_dbfs: -20
    sources:
      - id: talk
        voices: [alan, boris]
        texts: [Alexahh, good morning to you, the train leaves at nine, I would like a coffee]
matrix: {axes: {voice: [alan, boris, kal]}}
"""
"""No event in it is near the spotter's threshold, so that what was heard before does not decide."""
SEGMENT_S = 120.0
SAME_PLACE_S = 0.1
"""An interruption may shift the spotter's 20 ms grid against the sound."""
JOIN_S = 3.0
"""A sound that was cut may leave half of a word, which with what follows is an event, and that one silences 2 s."""
O = TypeVar("O", bound=Observation)  # noqa: E741
R = TypeVar("R", bound=Record)
Events = dict[str, dict[str, list[float]]]
"""device → trial → seconds into the sound at which it woke, in the attempt that counted."""


def bench(**connections: str) -> str:
    """A bench of boards: device=the connection's YAML."""
    lines = ["bench: faults", "operator: absent", "devices:"]
    for device, connection in connections.items():
        profile = "vh_board_mqtt" if "mqtt" in connection else "vh_board"
        lines.append(f"  {device}: {{profile: {profile}, connection: {connection}}}")
    return "\n".join((*lines, ""))


@dataclass
class Session:
    """`harness run --plain` (or `resume`) in a process of its own, with a client of ours beside it."""

    root: Path
    scenario: str = SCENARIO
    bench: str = ""
    folder: Path = Path()

    def __enter__(self) -> Session:
        self.root.mkdir(exist_ok=True)
        (self.root / "scenario.yaml").write_text(self.scenario, encoding="utf-8")
        (self.root / "bench.yaml").write_text(self.bench, encoding="utf-8")
        self._screen = (self.root / "screen").open("ab")
        sessions = self.root / "sessions"
        self._start("run", "scenario.yaml", "--bench", "bench.yaml", "--sessions", str(sessions))
        try:
            wait_for(lambda: bool(self._made()) or self._ended, 90, "the session's folder")
            assert not self._ended, self.screen()
            (self.folder,) = self._made()
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        place = find(self.folder)
        if place is not None:
            kill(place)
        self._screen.close()

    def resume(self) -> None:
        """Goes on with it, after its engine has ended."""
        self.process.wait(60)
        self._start("resume", str(self.folder))
        self._attach()

    def _made(self) -> list[Path]:
        return [log.parent for log in (self.root / "sessions").glob("[!.]*/log.sqlite")]

    def _start(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*HARNESS, *arguments, "--plain"],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=self._screen,
            stderr=self._screen,
        )

    def _attach(self) -> None:
        wait_for(lambda: find(self.folder) is not None or self._ended, 120, "the engine")
        place = find(self.folder)
        assert place is not None, self.screen()
        self.place: EnginePlace = place
        wait_for(Path(place.socket).exists, event="the engine's socket")
        self.watcher = Watcher(place, len(rows(self.folder)))
        self.records, self.ask, self.goodbye = self.watcher.records, self.watcher.ask, self.watcher.goodbye

    @property
    def _ended(self) -> bool:
        return self.process.poll() is not None

    def screen(self) -> str:
        return (self.root / "screen").read_text(encoding="utf-8", errors="replace")  # may end within a character

    def observations(self, kind: type[O], source: str, after_s: float = 0.0) -> list[tuple[float, O]]:
        return [
            (at_s, row.observation)
            for at_s, row in self.records(Observed, after_s)
            if isinstance(row.observation, kind) and row.observation.source == source
        ]

    def playing(self, trial: str, source: str, after_s: float = 0.0, within_s: float = 120.0) -> float:
        """Waits until that source has begun to be given a trial's sound: the moment."""

        def began() -> list[float]:
            starts = self.observations(StimulusStarted, source, after_s)
            return [at_s for at_s, start in starts if start.play_id.startswith(trial)]

        wait_for(lambda: bool(began()) or bool(self.watcher.closed), within_s, f"{trial} on {source}")
        assert began(), f"{trial} was over before: {self.screen()}"
        return began()[0]

    def interrupted(self, struck_s: float, within_s: float = 45.0) -> tuple[float, str]:
        """How long after the stroke the attempt was interrupted, and the cause."""
        wait_for(lambda: bool(self._cuts(struck_s)), within_s, "the interruption")
        at_s, row = self._cuts(struck_s)[0]
        return at_s - struck_s, row.cause

    def _cuts(self, after_s: float) -> list[tuple[float, AttemptFinished]]:
        attempts = self.records(AttemptFinished, after_s)
        return [(at_s, row) for at_s, row in attempts if row.outcome is Outcome.INTERRUPTED]

    def lost(self, source: str, struck_s: float, within_s: float = 45.0) -> tuple[float, str]:
        """How long after the stroke the link was lost, and what the driver says of it."""
        wait_for(lambda: bool(self.observations(LinkLost, source, struck_s)), within_s, f"the loss of {source}")
        at_s, loss = self.observations(LinkLost, source, struck_s)[0]
        return at_s - struck_s, loss.what

    def back(self, source: str, mended_s: float, within_s: float = 180.0) -> float:
        """How long after the repair the link was back."""
        wait_for(lambda: bool(self.observations(LinkBack, source, mended_s)), within_s, f"the return of {source}")
        return self.observations(LinkBack, source, mended_s)[0][0] - mended_s

    def goes_on(self, after_s: float, within_s: float = 45.0) -> float:
        """How long after that moment the next attempt began."""
        wait_for(lambda: bool(self.records(AttemptStarted, after_s)), within_s, "the next attempt")
        return self.records(AttemptStarted, after_s)[0][0] - after_s

    def finish(self, within_s: float = 180.0) -> int:
        """Waits for the end; the exit status that the person's command gave."""
        wait_for(lambda: self._ended, within_s, "the end of the run")
        return int(self.process.returncode)


def figures(entries: Iterable[Entry]) -> WakeProgress:
    return wake_of(entries).snapshot()


def true_events(entries: list[Entry], room: Path) -> dict[str, list[float]]:
    """Where the firmware's own spotter wakes in the sound of each trial, made again from the plan."""
    renders = renderer()
    events = {}
    for trial in plan_of(entries).values():
        sound = renders.render(trial.recipe).waveform
        path = room / "truth.s16"
        np.clip(np.rint(sound.samples * 32768), -32768, 32767).astype("<i2").tofile(path)
        output = subprocess.run([built("host") / "vh_spot", path], capture_output=True, text=True, check=True).stdout
        events[trial.id] = [int(line.split()[0]) / sound.rate_hz for line in output.splitlines()]
    return events


def counted_events(entries: list[Entry]) -> Events:
    """Where in each sound each device woke, of the attempts that counted last.

    What comes while an attempt goes on but lies before its first sample is of the sound before: a board that stood
    still tells it late.
    """
    counted: dict[str | None, tuple[int | None, int | None]] = {
        row.trial_id: (row.take, row.attempt)
        for row in records(entries, AttemptFinished)
        if row.outcome is Outcome.COUNTED
    }
    starts = {
        (row.observation.source, row.observation.play_id): row.observation.audio_s
        for row in records(entries, Observed)
        if isinstance(row.observation, StimulusStarted) and row.observation.audio_s is not None
    }
    events: Events = {}
    for entry in entries:
        match entry.record:
            case Observed(observation=Wake(source=source, audio_s=float(audio_s))) as row:
                if counted.get(row.trial_id) == (row.take, row.attempt):
                    play_id = f"{row.trial_id}.t{row.take}.a{row.attempt}"
                    place_s = audio_s - starts[source, play_id]
                    if place_s >= 0:
                        events.setdefault(source, {}).setdefault(row.trial_id or "", []).append(place_s)
            case _:
                pass
    return events


def causes(entries: list[Entry]) -> list[str]:
    """Why attempts were interrupted, in order."""
    attempts = (entry.record for entry in entries if isinstance(entry.record, AttemptFinished))
    return [row.cause for row in attempts if row.outcome is Outcome.INTERRUPTED]


def assert_whole(folder: Path, *, skipped: int = 0, takes: int = 1) -> list[Entry]:
    """The log is whole, each trial counted once in one attempt, and the figures are what the firmware does without us.

    skipped: trials that somebody ended. takes: of the trial that has most.
    """
    assert check(folder).damage == ()
    with LogReader(folder) as reader:
        entries = list(reader.entries())
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    verdicts = records(entries, TrialFinished)
    assert {row.trial_id for row in verdicts} == set(plan_of(entries))
    assert max(Counter(row.trial_id for row in verdicts).values()) == takes
    assert set(Counter((row.trial_id, row.take) for row in verdicts).values()) == {1}
    assert Counter(row.outcome for row in verdicts if row.take == takes or takes == 1)[Outcome.SKIPPED] == skipped
    starts = records(entries, AttemptStarted)
    ended = records(entries, AttemptFinished)
    keys = [(row.trial_id, row.take, row.attempt) for row in starts]
    assert sorted(keys) == sorted((row.trial_id, row.take, row.attempt) for row in ended)
    assert len(keys) == len(set(keys))
    for verdict in verdicts:
        mine = [number for trial_id, take, number in keys if (trial_id, take) == (verdict.trial_id, verdict.take)]
        assert sorted(mine) == list(range(1, verdict.attempts + 1))
        counted = [
            row.attempt
            for row in ended
            if (row.trial_id, row.take, row.outcome) == (verdict.trial_id, verdict.take, Outcome.COUNTED)
        ]
        assert counted == ([verdict.attempts] if verdict.outcome is Outcome.COUNTED else [])
    latest = {row.trial_id: row for row in verdicts}
    _assert_true(
        {trial_id for trial_id, row in latest.items() if row.outcome is Outcome.COUNTED}, entries, folder.parent
    )
    return entries


def _assert_true(counted: set[str], entries: list[Entry], room: Path) -> None:
    """Each device's events and figures are those of the spotter in a file, over the trials that count."""
    true, heard, snapshot = true_events(entries, room), counted_events(entries), figures(entries)
    calls = {trial_id for trial_id in counted if trial_id.startswith("call")}
    assert len(snapshot.devices) == 2
    for device in snapshot.devices:
        mine = {trial_id: heard.get(device.device, {}).get(trial_id, []) for trial_id in counted}
        for trial_id in counted:
            met, expected = _after_the_join(mine[trial_id]), _after_the_join(true[trial_id])
            assert met == pytest.approx(expected, abs=SAME_PLACE_S), (device.device, trial_id, met, expected)
        assert device.hits == sum(bool(true[call]) for call in calls)
        assert device.false_rejects.share.count == sum(not true[call] for call in calls)
        assert device.false_accepts.count == sum(len(mine[trial_id]) for trial_id in counted - calls)
        assert device.exposure_s == pytest.approx(SEGMENT_S * len(counted - calls), abs=0.01)
        assert device.unproven_s == pytest.approx(0.0, abs=0.01)
        assert device.link_up


def _after_the_join(events: list[float]) -> list[float]:
    """Without what the end of the sound before may have had a hand in: half of a word, or a refractory time."""
    return [at_s for at_s in events if at_s > JOIN_S]


def strike(action: Callable[[], object]) -> float:
    """Does it; the moment before."""
    now_s = time.monotonic()
    action()
    return now_s
