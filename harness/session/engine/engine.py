"""The engine: one process that runs one session and reports to its clients.

`python -m harness.session.engine.engine FOLDER` starts it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast
from uuid import uuid4

from harness import __version__
from harness.base.child_process import boot_id
from harness.base.garbage_collection import gc_paused
from harness.base.places import SessionFolder
from harness.base.plugins import Group, load, names
from harness.base.ports import Clock, Driver, Hears, KeepsSound, Recogniser, Stimulates
from harness.devices.declared import is_simulated
from harness.devices.orders import DevicePower
from harness.model.bench import Bench, OperatorPresence
from harness.model.errors import DeviceError, HarnessError, InputError, LogError, PluginError
from harness.model.feed import Answered, Command, Goodbye, Meters, Replay, StateChanged, StateWord, Welcome
from harness.model.numbers import exact, fixed
from harness.model.observation import LinkBack, LinkLost, Observation
from harness.model.record import EndReason, EngineStarted, Entry, FaultMet, NoteWritten
from harness.model.stimulus import Clip, Waveform
from harness.model.trial import Trial
from harness.session.conductor import Conductor
from harness.session.engine.assemble import (
    ResolvedSession,
    assemble,
    clock_of,
    conductor_context,
    equipment_of,
    players_of,
    read_resolved,
    with_typed_options,
)
from harness.session.engine.feed import FeedServer, Reply
from harness.session.engine.host_watch import HostWatch
from harness.session.engine.launch import EnginePlace, publish, this_process, withdraw
from harness.session.engine.notify import NOTIFY_BY, Notifier, SessionSnapshot
from harness.session.figures.live import LiveFigures
from harness.session.log.clips import clip_of
from harness.session.log.database import SqliteLog
from harness.session.log.reader import later_rows, read_clip
from harness.session.resumption import Resumption
from harness.session.run import ConductorContext, WakeUp
from harness.session.summary import bench_lines, ran_line, results_lines, self_wake_lines, verdict_lines
from harness.sound.recogniser_process import RecogniserProcess
from harness.statistics.verdict import unmet_limits_text
from harness.wake.reports.figures_text import device_lines


def replay(loudspeaker: Stimulates | None, folder: Path, clips: Mapping[str, Clip], name: str) -> str:
    """Plays a clip that a row of the log names, and stops an earlier one. Returns why it cannot be played, else "".

    - loudspeaker: the bench's monitor.
    - clips: name → clip.
    """
    if loudspeaker is None:
        return "the bench has no monitor; add `monitor: {driver: loudspeaker, …}` to the bench file"
    if name not in clips:
        return "this session has no clip with that name"
    try:
        waveform = read_clip(folder, clips[name])
        loudspeaker.stop()
        loudspeaker.play(f"replay-{uuid4().hex[:8]}", waveform)
    except HarnessError as error:
        return str(error)
    return ""


def installed_recogniser() -> str | None:
    """Name of the first recogniser that can be loaded and whose packages are installed; None without one."""
    for name in names(Group.RECOGNISERS):
        with contextlib.suppress(PluginError):
            kind: type[Recogniser] = load(Group.RECOGNISERS, name)
            if kind.installed():
                return name
    return None


class Transcriber:
    """Transcribes responses. The first failure is reported to `on_trouble`, and the run continues."""

    def __init__(self, name: str, on_trouble: Callable[[str], None]) -> None:
        self.name = name
        self._process = RecogniserProcess(name)
        self._on_trouble = on_trouble
        self._lock = threading.Lock()
        self._reports_are_suppressed = False

    def transcribe(self, waveform: Waveform, on_words: Callable[[str], None]) -> None:
        """Starts to transcribe, and returns. on_words gets the words later, on another thread; "" on a failure."""

        def done(answer: str | HarnessError) -> None:
            self.name = self._process.name
            if isinstance(answer, HarnessError):
                if not self._suppress_reports():
                    self._on_trouble(f"responses are not transcribed for people: {answer}")
                answer = ""
            on_words(answer)

        self._process.transcribe_later(waveform, done)

    def close(self) -> None:
        """Ends the recogniser. What it has not transcribed by now is not a failure to report."""
        self._suppress_reports()
        self._process.close()

    def _suppress_reports(self) -> bool:
        """Suppresses further reports. Returns whether they were suppressed already."""
        with self._lock:
            before, self._reports_are_suppressed = self._reports_are_suppressed, True
        return before


def disk_space_problem(folder: Path, wanted_gb: float) -> str:
    """Why the disk has too little space for another trial; "" if it has enough."""
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb >= wanted_gb:
        return ""
    return f"disk: {fixed(free_gb, 1)} GB are free, and the bench requires {exact(wanted_gb)} GB"


class Watchdog:
    """Reports to systemd's watchdog (sd_notify(3)) that the run is not stuck; without one it does nothing."""

    def __init__(self) -> None:
        name = os.environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{name[1:]}" if name.startswith("@") else name  # @: a socket without a file
        self._every_s = float(os.environ.get("WATCHDOG_USEC") or 0) / 4e6  # a quarter of the limit, in s
        self._next_notice_s = 0.0

    def notify(self) -> None:
        """Call this often. It sends a few messages within the watchdog's limit, and never blocks."""
        now_s = time.monotonic()
        if not (self._address and self._every_s) or now_s < self._next_notice_s:
            return
        self._next_notice_s = now_s + self._every_s
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.sendto(b"WATCHDOG=1", socket.MSG_DONTWAIT, self._address)  # a lost one is followed by others


METERS_EVERY_S = 0.1
"""Interval at which levels are sent. Each level is that of the last 100 ms."""
CLIENT_WITHIN_S = 2.0
"""How long a run that nobody is expected to watch, or that was stopped, waits at its end for a client."""
OPERATOR_WITHIN_S = 10.0
"""How long the first trial waits for a dashboard, at which an operator may sit, in seconds."""
WATCHER_WITHIN_S = 60.0
"""A client that starts an engine to watch it connects within this time, even on a busy host, in seconds."""
DONE, LIMIT_FAILED, FAULT = 0, 1, 3  # Exit statuses. 2 is for wrong usage and files.


class Engine:
    """Runs one session from where its log stands until its end, a stop or an abort."""

    def __init__(self, folder: Path, resolved: ResolvedSession, log_clock: Clock, *, watched: bool = True) -> None:
        """watched: whether the client that started the engine will connect. A run that ends before waits for it."""
        self._watched = watched
        self._folder = SessionFolder(folder)
        self._resolved = resolved
        self._clock = log_clock
        self._figures = LiveFigures(resolved.scenario)
        self._clips: dict[str, Clip] = {}
        self._state = StateChanged(StateWord.PREPARING, log_clock.now_s())
        self._conductor: Conductor | None = None
        self._replay: Callable[[str], str] = lambda name: "the session is still being prepared"
        self._stop_signal: signal.Signals | None = None
        self._server: FeedServer | None = None
        self._log: SqliteLog | None = None
        bench = resolved.bench
        self._notifier: Notifier | None = None
        if bench.notify:
            self._notifier = Notifier(bench.notify, self._folder.path, bench.id, self._snapshot, self._note_undelivered)

    def run(self) -> int:
        """Runs the session. Returns the exit status, which clients also receive.

        Raises HarnessError if the log cannot be opened.
        """
        with ExitStack() as stack:
            log = stack.enter_context(
                SqliteLog(
                    self._folder.path, now_s=self._clock.now_s, wall_s=self._clock.wall_s, on_commit=self._on_commit
                )
            )
            self._log = log
            resumption, runs = Resumption(), 0
            with gc_paused():
                for entry in log.entries():
                    self._add_to_results(entry)
                    resumption.add(entry)
                    runs = max(runs, entry.run)
            place = this_process(self._folder.path)
            server = FeedServer(
                Path(place.socket), self._folder.path, self._make_welcome, self._on_command, self._wake_conductor
            )
            server.start_at(log.last_seq)
            self._server = server
            stack.callback(withdraw, place)
            goodbye = Goodbye(FAULT, "the engine was interrupted")
            try:
                goodbye = self._run_published(place, log, resumption, 1 + runs)
            finally:
                # A run can end before its client connects. The client still needs the result.
                expected = self._watched and self._stop_signal is None
                server.wait_for_a_client(WATCHER_WITHIN_S if expected else CLIENT_WITHIN_S)
                if self._notifier is not None:
                    self._notifier.close(goodbye)
                server.close(goodbye)
            return goodbye.exit_code

    def _run_published(self, place: EnginePlace, log: SqliteLog, resumption: Resumption, run: int) -> Goodbye:
        """Publishes where the engine answers, and runs the session. An error ends it with a goodbye that names it.

        - resumption: the state after the earlier rows.
        - run: the number of this run.
        """
        try:
            signal.signal(signal.SIGTERM, self._on_stop_signal)  # before a client can connect
            publish(place)
            return self._run_session(log, resumption, run)
        except HarnessError as error:
            sys.stderr.write(f"{error}\n")
            with contextlib.suppress(LogError):
                log.append(FaultMet("engine", str(error)))
            return Goodbye(error.exit_code or FAULT, str(error))
        except Exception as error:  # noqa: BLE001 - clients receive it, with its traceback in the file
            traceback.print_exc()  # before anybody is sent to read it
            sys.stderr.flush()
            return Goodbye(FAULT, f"the engine failed: {error!r}; see {self._folder.engine_output}")

    def _run_session(self, log: SqliteLog, resumption: Resumption, run: int) -> Goodbye:
        """Opens the drivers, and runs the conductor to its end. Whatever was opened is closed, in reverse order."""
        bench = self._resolved.bench
        started = self._figures.session().session
        if started is None:
            raise LogError(f"{self._folder.database} contains no plan", remedy="Start a new session: harness run")
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="voice-harness-")))
            drivers = assemble(bench, self._clock, started.seed, scratch)
            for driver in drivers.values():
                if isinstance(driver, KeepsSound):
                    driver.keep_sound(log.save_clip)
            watch = HostWatch()
            transcriber = self._transcriber(log, bench)
            if transcriber is not None:
                stack.callback(transcriber.close)
            context = self._conductor_context(drivers, log, transcriber, watch)
            self._refuse_absent_talkers(started.trials, resumption)
            conductor = Conductor(started.trials, context, resumption)
            self._conductor = conductor
            row = EngineStarted(run, os.getpid(), boot_id(), self._clock.speed)
            resumption.add(log.append(row))
            unpowered = [power for device, power in context.power.items() if device in resumption.unpowered]
            stack.enter_context(self._open_drivers(drivers, unpowered))
            monitor = cast(Stimulates, drivers[bench.monitor.id]) if bench.monitor else None
            self._replay = partial(replay, monitor, self._folder.clips, self._clips)
            stack.enter_context(self._meter(drivers, context.microphone))
            stack.enter_context(watch.watching())
            if self._stop_signal is not None:  # it came before there was a conductor to stop
                conductor.stop(self._stop_reason())
            if self._watched and bench.operator is OperatorPresence.AUTO and self._server is not None:
                self._server.wait_for_a_client(OPERATOR_WITHIN_S)
            try:
                reason = conductor.run()
            finally:
                self._conductor = None
        return self._goodbye(reason)

    def _conductor_context(
        self, drivers: Mapping[str, Driver], log: SqliteLog, transcriber: Transcriber | None, watch: HostWatch
    ) -> ConductorContext:
        bench, watchdog, checks = self._resolved.bench, Watchdog(), None
        if bench.checks is not None:
            from harness.session.bench_checks import BenchCheck  # here, since few benches are checked

            checks = BenchCheck(bench, bench.checks, drivers, self._clock, self._folder.path)

        def report_alive() -> None:
            watchdog.notify()
            log.demand_place()  # also while nothing is to be written

        return conductor_context(
            self._resolved,
            drivers,
            log,
            self._clock,
            self._figures,
            on_state=self._on_state,
            answer=self._answer,
            attended=self._is_attended,
            transcribe=transcriber.transcribe if transcriber else None,
            recogniser_name=transcriber.name if transcriber else "",
            read_clip=partial(read_clip, self._folder.clips) if transcriber else None,
            linger=self._attended_by_a_client,
            checks=checks,
            disk_space_problem=partial(disk_space_problem, self._folder.path, bench.min_free_gb),
            report_alive=report_alive,
            # At another speed, simulated devices stand still with the engine.
            new_stalls=watch.new_stalls if self._clock.speed == 1.0 else tuple,
        )

    def _refuse_absent_talkers(self, trials: Sequence[Trial], resumption: Resumption) -> None:
        """Raises InputError if a person speaks in a trial that is left, and nobody is there."""
        pending_ids = {trial_id for trial_id, _ in resumption.pending()}
        if self._resolved.bench.operator is OperatorPresence.ABSENT and any(
            trial.talker and trial.id in pending_ids for trial in trials
        ):
            raise InputError(
                "people speak in this session, but the operator is absent", remedy="Resume without --unattended"
            )

    def _goodbye(self, reason: EndReason) -> Goodbye:
        """The last message to the clients of a run that ended without an error."""
        for entry in later_rows(self._folder.path):  # answers on effects that were given during the stop count too
            self._figures.add_later(entry)
        progress = self._figures.session()
        if reason is EndReason.ABORTED:
            return Goodbye(FAULT, "aborted")
        if reason is EndReason.STOPPED and progress.left:
            return Goodbye(FAULT, "stopped")
        failed = unmet_limits_text(self._figures.limits(running=False))
        return Goodbye(LIMIT_FAILED if failed else DONE, failed)

    @contextlib.contextmanager
    def _open_drivers(self, drivers: Mapping[str, Driver], unpowered: Sequence[DevicePower]) -> Iterator[None]:
        """Opens the drivers, and closes those that it opened.

        unpowered: devices that an earlier run left without power. They boot before their drivers are opened.
        """
        places = {part.id: part.place for part in equipment_of(self._resolved.bench)}
        actuators = {actuator.id for actuator in self._resolved.bench.actuators}
        with ExitStack() as stack:
            # Actuators first: they switch the power of the devices whose drivers follow.
            for driver in sorted(drivers.values(), key=lambda driver: driver.id not in actuators):
                if unpowered and driver.id not in actuators:
                    self._boot(unpowered)
                    unpowered = ()
                stack.callback(_close, driver)  # first, so that a driver that fails while it opens is closed too
                try:
                    driver.open(self._sink_for(driver))
                except DeviceError as error:
                    error.place = error.place or places.get(driver.id)
                    raise
            yield

    def _boot(self, unpowered: Sequence[DevicePower]) -> None:
        """Switches devices on, and waits for their boot time, unless the engine is asked to end."""
        for power in unpowered:
            power.turn(on=True, given_up=threading.Event())
        until_s = time.monotonic() + max(self._clock.real_s(power.switch.boot_s) for power in unpowered)
        while time.monotonic() < until_s and self._stop_signal is None:
            time.sleep(0.1)

    def _sink_for(self, driver: Driver) -> Callable[[Observation], None]:
        """The function to which the driver passes its observations, from any thread."""
        # A monitor that plays no stimuli: the session only needs its loss and return.
        bench = self._resolved.bench
        player_ids = {player.id for player in players_of(bench)}
        only_links = bench.monitor is not None and driver.id == bench.monitor.id and driver.id not in player_ids

        def enqueue(observation: Observation) -> None:
            conductor = self._conductor  # read once: the end of the run removes it meanwhile
            if conductor is not None and (not only_links or isinstance(observation, LinkLost | LinkBack)):
                conductor.enqueue(observation)

        return enqueue

    @contextlib.contextmanager
    def _meter(self, drivers: Mapping[str, Driver], microphone: Hears | None) -> Iterator[None]:
        """Sends levels ten times a second to clients that requested them."""
        speakers = [cast(Stimulates, drivers[player.id]) for player in players_of(self._resolved.bench)]
        ending = threading.Event()

        def measure() -> None:
            while not ending.wait(METERS_EVERY_S):
                if self._server is not None and self._server.wants_meters:
                    levels = [level for speaker in speakers if (level := speaker.level_dbfs()) is not None]
                    self._server.publish(
                        Meters(
                            speaker_dbfs=max(levels, default=None),
                            microphone_dbfs=microphone.level_dbfs() if microphone else None,
                            noise_floor_dbfs=microphone.noise_floor_dbfs() if microphone else None,
                        )
                    )

        thread = threading.Thread(target=measure, name="meters", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def _transcriber(self, log: SqliteLog, bench: Bench) -> Transcriber | None:
        """The harness's own recogniser; None without an installed one, or without real sound."""
        if all(is_simulated(part.driver) for part in equipment_of(bench)):
            return None  # no real sound to transcribe
        name = installed_recogniser()
        if name is None:
            return None

        def note(text: str) -> None:
            sys.stderr.write(f"{text}\n")
            with contextlib.suppress(LogError):  # a failed note must not end the run
                log.append(NoteWritten(text, by="harness"))

        return Transcriber(name, note)

    def _is_attended(self) -> bool:
        presence = self._resolved.bench.operator
        by_client = presence is OperatorPresence.AUTO and self._attended_by_a_client()
        return presence is OperatorPresence.PRESENT or by_client

    def _attended_by_a_client(self) -> bool:
        return self._server is not None and self._server.attended

    def _snapshot(self) -> SessionSnapshot:
        progress, wake = self._figures.session(), self._figures.wake()
        totals = progress.totals
        lines = [ran_line(progress), "", *results_lines(progress, wake, device_lines(wake))]
        lines += [*self_wake_lines(progress), *bench_lines(progress)]
        lines += verdict_lines(self._figures.limits(running=progress.finished is None), progress)
        outcomes = tuple((outcome.value, count) for outcome, count in totals.by_outcome)
        return SessionSnapshot(totals.planned, totals.finished, outcomes, tuple(lines))

    def _note_undelivered(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        if self._log is not None:
            with contextlib.suppress(LogError):  # a full disk must not end the thread that reports it
                self._log.append(NoteWritten(text, NOTIFY_BY))

    def _add_to_results(self, entry: Entry) -> None:
        self._figures.add(entry)
        if (clip := clip_of(entry.record)) is not None:
            self._clips[clip.name] = clip

    def _on_commit(self, entry: Entry) -> None:
        """Called on the log's thread for each row. Results come first, since clients may ask for them at once."""
        self._add_to_results(entry)
        if self._notifier is not None:
            self._notifier.committed(entry)
        if self._server is not None:
            self._server.committed(entry)

    def _on_state(self, state: StateChanged) -> None:
        self._state = state
        if self._notifier is not None:
            self._notifier.state_changed(state)
        if self._server is not None:
            self._server.publish(state)

    def _make_welcome(self) -> Welcome:
        assert self._log is not None, "clients come after the log is open"
        return Welcome(
            session_id=self._folder.path.name,
            session_folder=str(self._folder.path.resolve()),
            engine_pid=os.getpid(),
            last_seq=self._log.last_seq,
            state=self._state,
            tool_version=__version__,
            has_monitor=self._resolved.bench.monitor is not None,
        )

    def _on_command(self, command: Command, reply: Reply) -> None:
        """Replays a clip, or passes another command to the conductor. Called on a client's thread."""
        conductor = self._conductor
        if isinstance(command, Replay):
            why = self._replay(command.clip_name)
            reply(Answered(command.id, not why, why))
        elif conductor is None:
            reply(Answered(getattr(command, "id", ""), False, "the session is being prepared, or has ended"))
        else:
            conductor.enqueue(command)

    def _answer(self, command_id: str, ok: bool, why: str) -> None:
        if self._server is not None:
            self._server.publish(Answered(command_id, ok, why))

    def _wake_conductor(self) -> None:
        if self._conductor is not None:
            self._conductor.enqueue(WakeUp())

    def _on_stop_signal(self, number: int, frame: object) -> None:
        self._stop_signal = signal.Signals(number)
        if self._conductor is not None:
            self._conductor.stop(self._stop_reason())

    def _stop_reason(self) -> str:
        return f"stopped: the engine was asked to end ({self._stop_signal.name if self._stop_signal else 'unknown'})"


def _close(driver: Driver) -> None:
    try:
        driver.close()
    except DeviceError as error:
        sys.stderr.write(f"{error}\n")


def main(arguments: list[str]) -> int:
    """Runs the session in the named folder. Returns the exit status."""
    flags = set(arguments[1:])
    if not arguments or flags - {"--unattended", "--unwatched"}:
        sys.stderr.write("usage: python -m harness.session.engine.engine FOLDER [--unattended] [--unwatched]\n")
        return 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the client, which requests a stop
    try:
        folder = SessionFolder(Path(arguments[0])).demand().path
        resolved = read_resolved(folder)
        bench = with_typed_options(resolved.bench)
        if "--unattended" in flags:
            bench = replace(bench, operator=OperatorPresence.ABSENT)
        resolved = replace(resolved, bench=bench)
        return Engine(folder, resolved, clock_of(bench), watched="--unwatched" not in flags).run()
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
