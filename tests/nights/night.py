"""One night, drawn from a seed: a scenario, a bench, faults, people and deaths, played by the product itself."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from harness.base import threads
from harness.base.clocks import HostClock
from harness.base.row_store import read_entries
from harness.base.simulated_threads import SimulatedThreads
from harness.model.bench import Bench, Device, DeviceProfile, Equipment, ObservationKind, OnFault
from harness.model.errors import DeviceError, LogError, LogFull, Place
from harness.model.feed import Abort, AnswerOperator, Pause, Rerun, Resume, SetMark, Skip, StateChanged, WriteNote
from harness.model.observation import HostStalled
from harness.model.record import EndReason, EngineStarted, Entry, OperatorAsked, SessionStarted, TrialFinished
from harness.model.scenario import TrialKind
from harness.model.time import Stamp
from harness.model.trial import Trial
from harness.session.conductor import Conductor
from harness.session.engine.assemble import ResolvedSession, conductor_context
from harness.session.figures.live import LiveFigures
from harness.session.log.database import SqliteLog, _unlock
from harness.session.plan import plan
from harness.session.resumption import Resumption
from harness.session.simulated.bench import SimulatedLoudspeaker, SimulatedMicrophone, SimulatedRoom
from harness.session.simulated.facts import DeviceTraits, Phrases, Truth
from harness.session.talker import MARGIN_S
from harness.wake.wake import WakeFigures
from tests.nights.figures import figures_of
from tests.nights.greenlets import GreenletThreads
from tests.nights.host import Death, MortalLog, Renders, UnthreadedLog
from tests.nights.scenario import drawn_scenario
from tests.nights.wires import Injected, Reached, board_of

MAX_NIGHT_S = 8 * 3600.0
ON_DISK_EVERY = 100
"""One night of so many commits to the real file system."""
THREADED_EVERY = 20
"""One night of so many commits in the log's own thread."""
HERE = Place("night.yaml", 1, 1)
REPORTS = frozenset({ObservationKind.WAKE, ObservationKind.TRANSCRIPT})


@dataclass
class NightRecord:
    """What a checker gets. rows: as they stand in the log."""

    seed: int
    reason: str
    hours: float
    rows: list[dict[str, Any]]
    truth: Truth
    answers: dict[str, tuple[bool, str]]
    figures: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)


class Night:
    """All that is drawn from a seed, and its play in a folder."""

    def __init__(
        self,
        seed: int,
        world: SimulatedThreads,
        without: Collection[int] = (),
        templates: Collection[int] | None = None,
    ) -> None:
        """without: numbers of faults that do not happen. templates: numbers of those that are played; None: all."""
        self.seed, self.world = seed, world
        self.room = SimulatedRoom(world, seed)
        self._without = frozenset(without)
        self.lives = self.fault_count = 0
        self.doomed = ""
        self.full = False
        self.slow_commits_s = 0.0
        self.short = ""
        self.stall_s = 0.0
        self.stalls: list[HostStalled] = []
        self.attended = False
        self.commands = 0
        self.answers: dict[str, tuple[bool, str]] = {}
        self.conductor: Conductor | None = None
        self.finished: list[str] = []
        self.history: list[Entry] = []
        self.last: LiveFigures
        chance = self.room.chance("deaths")
        self.rows_left = -1
        self._draw_death(chance.randint(5, 600), chance.random() < 0.5, chance.random() < 0.5)
        self._chance_of_deaths = chance
        self.bench = self._bench()
        intents = ObservationKind.INTENT in self.bench.devices[0].profile.reports
        wired = all(isinstance(device, Injected) for device in self.room.devices)
        self.scenario = drawn_scenario(self.room, intents, wired, templates)
        self.trials = plan(self.scenario, self.bench)
        self.trial_of = {trial.id: trial for trial in self.trials}
        self.prompted = ""
        self._begin_faults()

    # What is drawn

    def _bench(self) -> Bench:
        chance, room = self.room.chance("bench"), self.room
        room.ear = SimulatedMicrophone("mic", room)
        room.speakers = [SimulatedLoudspeaker("speaker", room)]
        devices = []
        count = chance.choice((1, 1, 2, 3))
        for number in range(1, count + 1):
            like = DeviceTraits(
                wakes=chance.choice((0.6, 0.85, 0.95, 1.0)),
                mishears=chance.choice((0.0, 0.1, 0.3)),
                silent=chance.choice((0.0, 0.05, 0.2)),
                doubles=chance.choice((0.0, 0.05, 0.3)),
                edge=chance.choice((0.0, 0.05, 0.3)),
                false_per_hour=chance.choice((0.0, 3.0, 30.0, 120.0)),
                error_s=chance.choice((0.005, 0.02, 0.1)),
                latency_s=chance.choice((0.5, 1.0, 3.0)),
                answers=number == 1,
                beats=chance.random() < 0.8,
            )
            name = f"box{number}"
            like = replace(like, states=room.chance(f"{name}:states").random() < 0.3)
            board = board_of(name, room, like, self._happens, alone=count == 1)
            reports = REPORTS
            if not isinstance(board, Reached):  # the firmwares of drivers tell no intents
                reports |= {ObservationKind.INTENT}
                board.traits = replace(like, reports=like.reports | reports)
            profile = DeviceProfile(
                f"like{number}",
                "A box",
                "devices/box.yaml",
                "0" * 64,
                ("alexa",),
                reports=reports,
                responds=like.answers,
            )
            takes_sound = isinstance(board, Injected)
            devices.append(
                Device(name, profile, Equipment(f"{name}_link", "in_process", None, HERE, injects=takes_sound))
            )
        retry = OnFault(retry_after_s=chance.choice((5.0, 20.0)), retries=200)
        return Bench(
            "lab", "A lab", "bench.yaml", "b" * 64, tuple(devices),
            (Equipment("speaker", "in_process", None, HERE, "front"),), Equipment("mic", "in_process", None, HERE),
            on_fault=retry if chance.random() < 0.7 else None,
            max_noise_floor_dbfs=-50.0,
        )  # fmt: skip

    # Its play

    def play(self, folder: Path) -> NightRecord:
        """To its end, through deaths and resumes."""
        begun_s = self.world.monotonic()
        reason: EndReason | None = None
        while reason is None or reason is EndReason.STOPPED:
            reason = self._live(folder)
            assert self.lives < 60, "the night does not end"
            threads.sleep(self._chance_of_deaths.choice((0.5, 5.0, 40.0)))
        hours = (self.world.monotonic() - begun_s) / 3600
        stopping = self.scenario.stopping
        settings = {
            "bench": [asdict(device.traits) | {"name": device.name} for device in self.room.devices],
            "faults": self.fault_count,
            "templates": len({trial.template for trial in self.trials}),
            "limits": asdict(self.scenario.limits),
            "stopping": asdict(stopping),
            "life_check_after": self.scenario.defaults.life_check_after,
        }
        self.history += read_entries(folder / "log.sqlite", len(self.history))
        self._compare(self._replayed())
        rows = rows_of(folder / "log.sqlite")
        self._mark_reported(rows)
        totals, limits = self.last.session().totals, self.scenario.limits
        figures = figures_of(self.last._wake or WakeFigures(), totals, limits, stopping)
        return NightRecord(self.seed, reason.value, hours, rows, self.room.truth, self.answers, figures, settings)

    def _mark_reported(self, rows: list[dict[str, Any]]) -> None:
        """Notes which wake events the log has, and since when."""
        reported_s: dict[tuple[str, float], float] = {}
        for row in rows:
            if row["kind"] == "observed" and row["body"]["observation"]["kind"] == "wake":
                observation = row["body"]["observation"]
                reported_s.setdefault((observation["source"], observation["at"]["at_s"]), row["at_s"])
        for event in self.room.truth.wakes:
            at_s = reported_s.get((f"{event['device']}_link", event["stated_s"]))
            if at_s is not None:
                event["in_log"], event["in_log_by"] = True, at_s

    def _live(self, folder: Path) -> EndReason | None:
        """One life of the engine; None if it was killed."""
        self.lives += 1
        self.doomed = ""
        # Replaying all rows takes long: most lives go on with the figures of the one before.
        replays = self.lives == 2 or not self.history
        figures = LiveFigures(self.scenario) if replays else self.last
        clock = HostClock()
        kind = SqliteLog if self.seed % THREADED_EVERY == 0 else UnthreadedLog
        real = kind(folder, now_s=clock.now_s, wall_s=clock.wall_s, on_commit=self._committed(figures))
        log = MortalLog(self, real)
        try:
            history = self.history
            history += real.entries(len(history))
            if not history:
                real.append(self._started())
                history += real.entries()
            elif replays:
                for entry in history:
                    figures.add(entry)
                self._compare(figures)
            drivers: dict[str, Any] = {part.id: part for part in self._parts()}
            stage = conductor_context(
                ResolvedSession(self.scenario, self.bench), drivers, log, clock, figures,
                renders=Renders(self), on_state=self._shown, answer=self._answered, attended=lambda: self.attended,
                disk_space_problem=lambda: self.short, report_alive=self._alive(log), new_stalls=self._new_stalls,
            )  # fmt: skip
            standing = Resumption.of(history)
            conductor = Conductor(self.trials, stage, standing)
            standing.add(log.append(EngineStarted(1 + max(entry.run for entry in history), 1, "boot", 1.0)))
            self.room.truth.arrived.append([])
            for part in self._parts():
                part.open(conductor.enqueue)
            self.conductor = conductor
            return conductor.run()
        except (Death, LogFull, DeviceError):  # LogFull: the disk was full at its end. DeviceError: a device is away
            return None
        finally:
            for device in self.room.devices:
                device.close()
            self.conductor = None
            self.prompted = ""
            self.room.sink = None
            if log.dead:
                _cut_off(real)
            else:
                real.close()
            self.last = figures

    def _parts(self) -> list[Any]:
        return [*self.room.speakers, self.room.ear, *self.room.devices]

    def _started(self) -> SessionStarted:
        return SessionStarted(
            "night", "night", "A night", "a" * 64, "lab", "b" * 64, self.seed, "simulated", (), self.trials
        )

    def _committed(self, figures: LiveFigures) -> Callable[[Entry], None]:
        def committed(entry: Entry) -> None:
            figures.add(entry)
            if isinstance(entry.record, TrialFinished):
                self.finished.append(entry.record.trial_id)

        return committed

    def _replayed(self) -> LiveFigures:
        """Of all rows that were read from the file, each once."""
        figures = LiveFigures(self.scenario)
        for entry in self.history:
            figures.add(entry)
        return figures

    def _compare(self, replayed: LiveFigures) -> None:
        """Figures that grew with the rows in the last life are those of the rows."""
        if self.last.wake() != replayed.wake():
            self.room.truth.replayed["wake figures differ from a replay"] += 1
        if self.last.session() != replayed.session():
            self.room.truth.replayed["session figures differ from a replay"] += 1

    def _alive(self, log: MortalLog) -> Callable[[], None]:
        since_s = self.world.monotonic()

        def alive() -> None:
            log.check()
            stall_s, self.stall_s = self.stall_s, 0.0
            if stall_s:
                begun_s = self.room.now_s()
                threads.sleep(stall_s)
                self.stalls.append(HostStalled("host", Stamp(begun_s), self.room.now_s() - begun_s, 9.0, 0.5))
            assert self.world.monotonic() - since_s < MAX_NIGHT_S, "the night does not end"

        return alive

    def _new_stalls(self) -> list[HostStalled]:
        stalls, self.stalls = self.stalls, []
        return stalls

    def _shown(self, state: StateChanged) -> None:
        if state.prompt is None:
            self.prompted = ""
        elif self.prompted and not self.prompted.startswith(f"{state.trial_id}."):
            self.room.truth.replayed["a prompt is shown in another trial"] += 1
        if state.asks is not None and self.attended and state.trial_id and state.attempt:
            self.commands += 1
            answer = AnswerOperator(f"c{self.commands}", "ann", state.trial_id, state.attempt, True, "")
            delay_s = self.room.chance(f"answer:{self.commands}").uniform(0.5, 6.0)
            self.room.call_later(delay_s, lambda: self.tell(answer))

    def asks_a_talker(self, question: OperatorAsked) -> None:
        """The person thinks, and says it if the prompt still stands; now and then not at all."""
        spoken = next(trial for trial in self.trials if trial.talker and trial.listening)  # what a life check repeats
        trial = self.trial_of.get(question.trial_id, spoken)
        closes = question.question.endswith('"stop"')
        play_id = f"{question.trial_id}.t{question.take}.{'c' if closes else 'a'}{question.attempt}"
        self.prompted = play_id
        chance = self.room.chance(f"talker:{play_id}:{self.world.monotonic()}")

        def says() -> None:
            if self.prompted == play_id and closes:  # words that end a dialogue address nobody
                self.room.ear.hear(self.room.now_s(), self.room.now_s() + 0.6)
            elif self.prompted == play_id:
                self._says(trial, play_id)

        if chance.random() < 0.9 or not self._happens():
            self.room.call_later(chance.uniform(0.5, 6.0), says)
        else:
            self.room.truth.faults["a talker who says nothing"] += 1

    def _says(self, trial: Trial, play_id: str) -> None:
        room = self.room
        called_s = 0.6 if trial.recipe.wake_phrase or trial.kind is TrialKind.WAKE else 0.0
        query_s = (called_s, 1.4) if trial.listening is None else None
        starts_s, ends_s = room.now_s(), room.now_s() + (query_s[1] if query_s else called_s)
        play = {"play_id": play_id, "player": "ann", "start_s": starts_s - MARGIN_S, "end_s": ends_s + MARGIN_S}
        room.truth.plays[play_id] = play | {"complete": True, "wake_end_s": starts_s + called_s}
        room.ear.hear(starts_s, ends_s)
        phrases = Phrases(trial, ((0.0, called_s),) if called_s else (), query_s)
        for device in room.devices:
            device.hear(play_id, starts_s, phrases, room.speakers[0])

    def _answered(self, id: str, ok: bool, why: str) -> None:
        self.answers[id] = ok, why

    def tell(self, command: Any) -> None:
        if self.conductor is not None:
            self.room.truth.commands[command.id] = command.kind
            self.conductor.enqueue(command)

    def dies(self, when: str) -> None:
        """Called at a death."""
        self.room.truth.deaths.append({"at_s": self.world.monotonic(), "when": when})
        self.room.truth.faults[f"death {when}"] += 1
        self.room.sink = None
        self.conductor = None
        self.prompted = ""
        for speaker in self.room.speakers:
            speaker.cut("the engine died")
        for device in self.room.devices:
            device.killed()
        chance = self._chance_of_deaths
        self._draw_death(chance.randint(3, 600), chance.random() < 0.6 and self.lives < 8, chance.random() < 0.5)

    def is_slow_to_render(self, chance: Random) -> None:
        slow_s, impatient = chance.uniform(0.5, 3.0), chance.random() < 0.06
        if impatient and self._happens():
            self.room.truth.faults["abort while rendering"] += 1
            self.room.call_later(0.2, lambda: self.tell(Abort("impatient", "ann")))
        threads.sleep(slow_s)

    def dies_at_an_end(self) -> bool:
        return self.lives < 8 and self._happens()

    def _draw_death(self, after_rows: int, dies: bool, dies_after_row: bool) -> None:
        self.rows_left = after_rows if dies and self._happens() else -1
        self.dies_after_row = dies_after_row

    def _happens(self) -> bool:
        """Numbers a fault; False if it is left out."""
        number = self.fault_count
        self.fault_count += 1
        return number not in self._without

    # Faults

    def _begin_faults(self) -> None:
        chance = self.room.chance("faults")
        every_s = chance.choice((20.0, 40.0, 80.0))

        def next_one() -> None:
            self._fail(chance)
            self.room.call_later(chance.expovariate(1 / every_s), next_one)

        self.room.call_later(chance.expovariate(1 / every_s), next_one)
        more = self.room.chance("rarer faults")

        def next_rare() -> None:
            self._fail_rarely(more)
            self.room.call_later(more.expovariate(1 / 60.0), next_rare)

        self.room.call_later(more.expovariate(1 / 60.0), next_rare)

    def _fail_rarely(self, chance: Any) -> None:
        room, device = self.room, chance.choice(self.room.devices)
        kind, lasts_s = chance.choice(RARE_KINDS), chance.uniform(0.5, 5.0)
        if not self._happens():
            return
        match kind:
            case "gap in a sound":
                room.speakers[0].gap_s = chance.choice((0.02, 0.3))
            case "speech":
                room.truth.speech.append(room.now_s())
                room.ear.hear(room.now_s(), room.now_s() + lasts_s)
            case "gone":
                device.leave(4 * lasts_s)
            case "restless":
                device.wake_repeatedly(10 * lasts_s)
            case _:
                raise AssertionError(kind)
        room.truth.faults[kind] += 1

    def _fail(self, chance: Any) -> None:
        room = self.room
        device, speaker = chance.choice(room.devices), room.speakers[0]
        lasts_s = min(120.0, chance.expovariate(1 / 20.0) + 0.2)
        kind = chance.choice(KINDS)
        person = (f"person{self.commands % 2}",)
        id = f"c{self.commands}"
        self.commands += 1

        def until_then(end: Callable[[], object]) -> None:
            room.call_later(lasts_s, end)

        def set_back(name: str, value: Any, target: Any = self) -> None:
            until_then(lambda: setattr(target, name, value))

        if not self._happens():
            return
        match kind:
            case "late":
                device.late_s = chance.choice((1.0, 3.0, 10.0, 30.0))
                set_back("late_s", 0.0, device)
            case "reordered":
                device.late_s = chance.uniform(0.5, 3.0)
                room.call_later(0.3, lambda: setattr(device, "late_s", 0.0))
            case "repeated":
                device.repeats = True
            case "unread":
                device.unread = 1
            case "link" | "flap":
                device.drop(f"{kind} {self.commands}", lasts_s if kind == "link" else 0.2)
            case "restart":
                device.restart(chance.choice((0.5, 3.0, 12.0)))
            case "hang":
                device.hang(lasts_s + 5)
            case "short hang":
                device.hang(chance.uniform(0.3, 5.0))
            case "deaf":
                device.fail_microphone(lasts_s)
            case "speaker":
                speaker.lose(f"plug {id}")
                until_then(lambda: speaker.mend(f"plug {id}"))
            case "microphone":
                room.ear.lose(f"plug {id}")
                until_then(lambda: room.ear.mend(f"plug {id}"))
            case "refused":
                speaker.refuses = chance.randint(1, 4)
            case "cut":
                speaker.cut("underrun")
            case "slow start":
                speaker.slow_s = chance.uniform(0.1, 1.5)
                set_back("slow_s", 0.0, speaker)
            case "overrun":
                room.ear.overrun()
            case "noise":
                room.loud = True
                set_back("loud", False, room)
            case "stall":
                self.stall_s = chance.uniform(0.3, 5.0)
                room.truth.slow.append((room.now_s(), room.now_s() + 10.0))
            case "slow commits":
                room.truth.slow.append((room.now_s(), room.now_s() + lasts_s + 10.0))
                self.slow_commits_s = chance.uniform(0.05, 1.0)
                set_back("slow_commits_s", 0.0)
            case "disk full":
                room.truth.slow.append((room.now_s(), room.now_s() + lasts_s + 10.0))
                self.full = True
                set_back("full", False)
            case "short of room":
                self.short = "disk: short"
                set_back("short", "")
            case "clock back" | "clock on":
                step_s = chance.choice((0.5, 60.0, 7200.0)) * (-1 if kind == "clock back" else 1)
                self.world.set_wall(step_s)
            case "killed":
                if self.lives < 8:
                    self.doomed = "killed"
            case "power cut":
                if self.lives < 8:
                    self.doomed = "power cut"
                    for board in room.devices:
                        board.restart(chance.uniform(1.0, 8.0))
            case "pause":
                self.tell(Pause(id, *person, reason="lunch"))
                until_then(lambda: self.tell(Resume(f"{id}r", *person)))
            case "skip":
                room.truth.skips.append(room.now_s())
                self.tell(Skip(id, *person, reason="it rings"))
            case "rerun":
                if self.finished:
                    self.tell(Rerun(id, *person, trial_id=chance.choice(self.finished)))
            case "note":
                self.tell(WriteNote(id, *person, text="a note"))
            case "mark":
                self.tell(SetMark(id, *person, label="quiet"))
            case "detach" | "attach":
                self.attended = kind == "attach"
            case "stop":
                if self.conductor is not None and self.lives < 8:
                    self.conductor.stop()
            case "abort":
                if chance.random() < 0.05:
                    self.tell(Abort(id, *person))
            case _:
                raise AssertionError(kind)
        room.truth.faults[kind] += 1


KINDS = (
    "late", "reordered", "repeated", "unread", "link", "flap", "restart", "hang", "short hang", "deaf", "speaker",
    "microphone", "refused", "cut", "slow start", "overrun", "noise", "stall", "slow commits", "disk full",
    "short of room", "clock back", "clock on", "killed", "power cut", "pause", "skip", "rerun", "note", "mark",
    "detach", "attach", "stop", "abort",
)  # fmt: skip


RARE_KINDS = ("gap in a sound", "speech", "gone", "restless")


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Rows as they stand."""
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT seq, run, at_s, wall_s, kind, body FROM entries ORDER BY seq").fetchall()
    finally:
        connection.close()
    return [
        {"seq": seq, "run": run, "at_s": at_s, "wall_s": wall_s, "kind": kind, "body": json.loads(body)}
        for seq, run, at_s, wall_s, kind, body in rows
    ]


def _cut_off(log: SqliteLog) -> None:
    """Ends the log as the kernel does with a killed process: nothing is sealed, the lock is free."""
    log._closed = True
    log._queue.put(None)
    log._thread.join()
    with suppress(LogError):
        log._connection.close()
    _unlock(log._lock_fd)


def played(
    seed: int, folder: Path, without: Collection[int] = (), templates: Collection[int] | None = None
) -> NightRecord:
    """Plays the night of a seed in an empty folder; the rest as of `Night`."""
    with GreenletThreads() as world, threads.using(world):
        return Night(seed, world, without, templates).play(folder)
