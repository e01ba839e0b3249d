"""A conductor over the in-process sound path, for tests: real driver, in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.base import threads
from harness.base.clocks import HostClock, ScaledClock
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.in_process.device import InProcessOptions, waveform_sha256
from harness.devices.in_process.driver import InProcess
from harness.model.bench import DeviceProfile
from harness.model.feed import Command, StateChanged, StateWord
from harness.model.record import AttemptFinished, AttemptStarted, EndReason, Observed, ResponseFrozen, TrialFinished
from harness.model.trial import Trial
from harness.session.conductor import Conductor
from harness.session.plan import plan
from harness.session.resumption import Resumption
from harness.session.run import ConductorContext
from tests.unit.session.material import PROFILE, Bursts, Here, MemoryLog, bench, scenario

SPEED = 40.0


class House:
    """A bench in the air of one process, a conductor in a thread, and what it told its clients."""

    def __init__(self, trials: tuple[Trial, ...], log: MemoryLog, clock: ScaledClock, **changes: Any) -> None:
        profile: DeviceProfile | None = changes.pop("profile", PROFILE)
        options = changes.pop("options", InProcessOptions())
        device_options = changes.pop("device_options", options)
        self.clock, self.log, self.trials = clock, log, trials
        self.speaker = InProcess("speaker", options, Here(clock))
        self.mic = InProcess("mic", options, Here(clock))
        self.drivers = [self.speaker, self.mic]
        if profile is not None:
            self.drivers.append(InProcess("dut_link", device_options, Here(clock, profile=profile)))
        self.states: list[StateChanged] = []
        self.answers: dict[str, tuple[bool, str]] = {}
        self.reason: EndReason | None = None
        self.error: BaseException | None = None
        stage = ConductorContext(
            loudspeakers={driver.id: driver for driver in self.drivers if driver is not self.mic},
            microphone=self.mic,
            log=log,
            renders=changes.pop("renders", Bursts()),
            clock=clock,
            on_state=self.states.append,
            read_clip=lambda clip: log.clips[clip.name],
            answer=lambda id, ok, why: self.answers.__setitem__(id, (ok, why)),
            on_rendered=lambda trial, rendering: self.speaker.script(
                waveform_sha256(rendering.waveform), trial.reference
            ),
            **changes,
        )
        self.conductor = Conductor(trials, stage, Resumption.of(log.entries(), trials))
        self._thread = threads.thread(self._run)

    def _run(self) -> None:
        try:
            self.reason = self.conductor.run()
        except Exception as error:  # noqa: BLE001 - shown by the test that joins this thread
            self.error = error

    @contextmanager
    def running(self) -> Iterator[House]:
        for driver in self.drivers:
            driver.open(self.conductor.enqueue)
        self._thread.start()
        try:
            yield self
        finally:
            self._thread.join(3600)
            for driver in self.drivers:
                driver.close()
            assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def played(self) -> House:
        """The same, when the run has ended by itself."""
        with self.running():
            return self

    def until(self, condition: Callable[[], Any], within_s: float = 600.0) -> None:
        world = threads.current()
        assert isinstance(world, SimulatedThreads), "use the fixture simulated_time"
        came = world.wait(lambda: self.error or condition(), within_s)
        assert came, f"{self.states[-1:]}, {self.log.rows[-5:]}"
        assert self.error is None, self.error

    def ask(self, command: Command) -> tuple[bool, str]:
        self.conductor.enqueue(command)
        self.until(lambda: command.id in self.answers)  # type: ignore[union-attr]
        return self.answers[command.id]  # type: ignore[union-attr]

    def saw(self, word: StateWord) -> bool:
        return any(state.word is word for state in self.states)


def house(count: int = 4, room: Callable[[], bool] = lambda: True, **changes: Any) -> House:
    clock = changes.pop("clock", None) or ScaledClock(changes.pop("speed", SPEED), HostClock())
    test_bench = bench(connected=changes.get("profile", PROFILE) is not None)
    trials = changes.pop("trials", None) or plan(scenario(count), test_bench)
    return House(trials, changes.pop("log", None) or MemoryLog(clock, room), clock, **changes)


def assert_whole(log: MemoryLog, trials: tuple[Trial, ...]) -> None:
    """Each trial once, attempts without gaps, each started before its sound and finished, clips named after storing."""
    assert sorted(row.trial_id for row in log.of(TrialFinished)) == sorted(trial.id for trial in trials)
    started: dict[tuple[str, int], list[int]] = {}
    for entry in log.rows:
        match entry.record:
            case AttemptStarted(trial_id=trial_id, take=take, attempt=attempt):
                started.setdefault((trial_id, take), []).append(attempt)
            case Observed(observation=observation) if getattr(observation, "play_id", None):
                play_ids = {row.play_id for row in log.of(AttemptStarted)}
                assert observation.play_id in play_ids or ".c" in observation.play_id  # type: ignore[union-attr]
            case ResponseFrozen(clip=clip):
                assert clip.name in log.clips
            case _:
                pass
    for numbers in started.values():
        assert numbers == list(range(1, len(numbers) + 1))
    finished = {(row.trial_id, row.take, row.attempt) for row in log.of(AttemptFinished)}
    assert finished == {(trial, take, n) for (trial, take), numbers in started.items() for n in numbers}
