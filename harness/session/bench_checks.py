"""Checks the devices, the sound, the disk and the clock of a bench: before a run, and between its trials."""

from __future__ import annotations

import math
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from statistics import median
from typing import cast

from harness.base import threads
from harness.base.clocks import kernel_clock, wall_offset_s
from harness.base.host_check import Check, Level
from harness.base.ports import Clock, Driver, Hears, Stimulates
from harness.model.bench import Bench, Equipment
from harness.model.bench_checks import BenchChecks, CheckName, CheckPolicy
from harness.model.errors import DeviceError
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed, seconds
from harness.model.observation import ListeningProved, Observation, StimulusStarted
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.model.trial import Trial
from harness.session.take import BenchState
from harness.sound.calibration import why_unfit
from harness.sound.level import rms_dbfs
from harness.sound.path_check import HEARD_FROM, LEAD_S, SPREAD_REMEDY, START_LIMIT_S, TAIL_S, chirp, find, spread_ms
from harness.sound.recordings import at_rate

CHIRPS = 5
"""Number of test sounds for each loudspeaker and check."""
LISTEN_S = 2.0
"""Time without sound before the noise floor is read, in seconds."""
BEAT_S = 6.0
"""Least wait for a heartbeat, in seconds. Drivers report about one every 5 s."""
CLIP_BYTES_PER_S = 96_000
"""Size of one second of a clip at 48 kHz and 16 bits, uncompressed."""
ROWS_BYTES = 20_000
"""Size of the rows of one trial in the log."""
STIMULUS_S = 10.0
"""Usual length of a stored stimulus of a listening trial."""


def estimated_gb(trials: Iterable[Trial]) -> float:
    """A rough upper bound on the disk space of trials, in GB: their clips, uncompressed, and their rows."""

    def clips_s(trial: Trial) -> float:
        if trial.listening is None:
            return trial.reprompt.response_max_s
        settings = trial.listening.settings
        events = max(1, len(trial.listening.targets))
        return STIMULUS_S + events * (settings.clip_before_s + settings.clip_after_s)

    return sum(CLIP_BYTES_PER_S * clips_s(trial) + ROWS_BYTES for trial in trials) / 1e9


@frozen
class _HeardChirp:
    """A test sound at the microphone. delay_ms: time from playing it until it was heard."""

    delay_ms: float
    level_dbfs: float


class BenchCheck:
    """The checks of one bench, made through its drivers.

    `observe` takes every observation of the drivers, from any thread. `run` blocks while it listens and plays, so a run
    calls it from a thread of its own, with no trial under way.
    """

    def __init__(self, bench: Bench, checks: BenchChecks, drivers: Mapping[str, Driver], clock: Clock, folder: Path):
        """folder: a folder on the disk of the sessions."""
        self.every_s = math.inf if checks.every_min is None else checks.every_min * 60
        self._bench = bench
        self._checks = checks
        self._clock = clock
        self._folder = folder
        self._loudspeakers = {
            loudspeaker.id: cast(Stimulates, drivers[loudspeaker.id]) for loudspeaker in bench.loudspeakers
        }
        self._microphone = cast(Hears, drivers[bench.microphone.id]) if bench.microphone is not None else None
        self._lock = threads.lock()
        self._state = BenchState()
        self._unopened: dict[str, str] = {}
        self._beats_s: dict[str, float] = {}
        self._starts: dict[str, tuple[SimpleQueue[Stamp], Waveform]] = {}
        """Play id of a test sound → where to put the time at which it starts, and the sound."""
        self._play_numbers = count(1)
        self._wall_offset_s = wall_offset_s()
        self._delays_ms: dict[str, list[float]] = {}
        """Loudspeaker → delays of the test sounds of the latest check."""

    def observe(self, observation: Observation) -> None:
        """Takes an observation; never blocks."""
        with self._lock:
            self._state.observe(observation)
            if isinstance(observation, ListeningProved):
                self._beats_s[observation.source] = self._clock.now_s()
            played = self._starts.get(observation.play_id) if isinstance(observation, StimulusStarted) else None
        if played is not None and self._microphone is not None:
            started, sound = played
            self._microphone.own_sound(cast(StimulusStarted, observation).play_id, sound, observation.at.at_s)
            started.put(observation.at)

    def note_unopened(self, id: str, why: str) -> None:
        """Records that a driver could not be opened. why: the reason, for people."""
        self._unopened[id] = why

    def run(self, trials: Iterable[Trial], given_up: threading.Event) -> list[Check]:
        """Runs the checks that are not off. Returns their results.

        - trials: those that are still to be played.
        - given_up: when set, the function returns early.
        """
        self._delays_ms = {}
        kinds: tuple[tuple[CheckName, Callable[[], Iterator[Check]]], ...] = (
            (CheckName.DEVICES, lambda: self._check_devices(given_up)),
            (CheckName.NOISE_FLOOR, lambda: self._check_noise_floor(given_up)),
            (CheckName.LOUDSPEAKERS, lambda: self._check_loudspeakers(given_up)),
            (CheckName.LOOP_DELAY, lambda: self._check_loop_delay(given_up)),
            (CheckName.DISK, lambda: self._check_disk(trials)),
            (CheckName.CLOCK, self._check_wall_clock),
            (CheckName.CALIBRATION, self._check_calibrations),
        )
        results: list[Check] = []
        for name, check in kinds:
            if self._checks.policy(name) is not CheckPolicy.OFF and not given_up.is_set():
                results += check()
        return results

    def _result(self, name: CheckName, says: str, remedy: str, *, fails: bool) -> Check:
        level = Level.OK
        if fails:
            level = Level.FAIL if self._checks.policy(name) is CheckPolicy.REFUSE else Level.WARN
        return Check(name.value, level, says, remedy)

    def _check_devices(self, given_up: threading.Event) -> Iterator[Check]:
        waits_s = {
            part.id: max(BEAT_S, profile.heartbeat.within_s)
            for device in self._bench.devices
            for part, profile in device.equipment
            if profile.heartbeat is not None
        }
        begun_s = self._clock.now_s()
        for part in self._parts():
            wait_s = waits_s.get(part.id)
            state, why = "connected", ""
            if wait_s is not None:
                state = "connected, heartbeat seen"
                if not self._has_heartbeat(part.id, begun_s, wait_s, given_up):
                    why = f"no heartbeat in {exact(wait_s)} s"
            why = self._loss_reason(part.id) or why
            says = f"{part.id}: {why or state}"
            remedy = f"Check its power and its cable, and its entry in the bench ({part.place})"
            yield self._result(CheckName.DEVICES, says, remedy, fails=bool(why))

    def _parts(self) -> tuple[Equipment, ...]:
        """Everything on the bench that a check of devices concerns, each once."""
        bench = self._bench
        connected = (part for device in bench.devices for part, _ in device.equipment)
        parts = (*bench.loudspeakers, bench.microphone, bench.monitor, *connected)
        return tuple({part.id: part for part in parts if part is not None}.values())

    def _loss_reason(self, id: str) -> str:
        """Why a part of the bench cannot be reached; "" if it can."""
        if id in self._unopened:
            return self._unopened[id]
        with self._lock:
            if id in self._state.unreachable:
                return f"lost ({self._state.loss_reasons.get(id) or 'reason unknown'})"
        return ""

    def _has_heartbeat(self, id: str, begun_s: float, wait_s: float, given_up: threading.Event) -> bool:
        """Waits for a heartbeat within wait_s after begun_s, unless one came within wait_s before it."""
        while True:
            with self._lock:
                if self._beats_s.get(id, -math.inf) >= begun_s - wait_s:
                    return True
            left_s = self._clock.real_s(begun_s + wait_s - self._clock.now_s())
            if left_s <= 0 or self._loss_reason(id) or given_up.wait(min(0.1, left_s)):
                return False

    # Sound

    def _check_noise_floor(self, given_up: threading.Event) -> Iterator[Check]:
        part = self._bench.microphone
        if part is None or self._microphone is None:
            return
        if why := self._loss_reason(part.id):
            says, remedy = f"{part.id}: not measured: {why}", "Repair or reconnect the microphone"
            yield self._result(CheckName.NOISE_FLOOR, says, remedy, fails=True)
            return
        given_up.wait(self._clock.real_s(LISTEN_S))
        floor_dbfs, limit_dbfs = self._microphone.noise_floor_dbfs(), self._bench.max_noise_floor_dbfs
        if floor_dbfs is None:
            says, remedy = f"{part.id} does not record", "Check its sound device"
            yield self._result(CheckName.NOISE_FLOOR, says, remedy, fails=True)
            return
        says = f"{part.id}: the noise floor is {fixed(floor_dbfs, 1)} dBFS"
        if part.calibration is not None:
            says += f", {fixed(part.calibration.unweighted_spl(floor_dbfs), 1)} dB SPL (unweighted)"
        too_loud = limit_dbfs is not None and floor_dbfs > limit_dbfs
        if limit_dbfs is not None:
            says += f"; the bench allows at most {exact(limit_dbfs)} dBFS"
        remedy = "Find what is loud (air conditioning, a fan), or raise `max_noise_floor_dbfs`"
        yield self._result(CheckName.NOISE_FLOOR, says, remedy, fails=too_loud)

    def _check_loudspeakers(self, given_up: threading.Event) -> Iterator[Check]:
        """Plays test sounds on every loudspeaker. Leaves their delays in `_delays_ms`."""
        microphone = self._bench.microphone
        if microphone is None or self._microphone is None:
            return
        least_db = self._checks.above_noise_db_min
        remedy = "Check its power and volume, and that it is in the same room as the microphone: harness check sound"
        for part in self._bench.loudspeakers:
            if why := self._loss_reason(part.id) or self._loss_reason(microphone.id):
                yield self._result(CheckName.LOUDSPEAKERS, f"{part.id}: not tried: {why}", remedy, fails=True)
                continue
            try:
                chirps = [self._play_chirp(part, self._microphone, given_up) for _ in range(CHIRPS)]
            except DeviceError as error:
                yield self._result(
                    CheckName.LOUDSPEAKERS, f"{part.id}: {error.what}", error.remedy or remedy, fails=True
                )
                continue
            if given_up.is_set():
                return
            heard = [chirp for chirp in chirps if chirp is not None]
            self._delays_ms[part.id] = [chirp.delay_ms for chirp in heard]
            floor_dbfs = self._microphone.noise_floor_dbfs()
            says = f"{part.id}: {microphone.id} heard {len(heard)} of {CHIRPS} test sounds"
            above_db = None
            if heard and floor_dbfs is not None:
                above_db = sum(chirp.level_dbfs for chirp in heard) / len(heard) - floor_dbfs
                says += f", {fixed(above_db, 0)} dB above the noise floor (at least {exact(least_db)} required)"
            fails = len(heard) < CHIRPS or above_db is None or above_db < least_db
            yield self._result(CheckName.LOUDSPEAKERS, says, remedy, fails=fails)

    def _play_chirp(self, part: Equipment, microphone: Hears, given_up: threading.Event) -> _HeardChirp | None:
        """Plays a test sound, and finds it in the recording; None if it was not heard.

        Raises DeviceError if the loudspeaker does not start to play.
        """
        if given_up.is_set():
            return None
        sound, started = _test_sound(part), threads.simple_queue()
        play_id = f"check-{next(self._play_numbers)}"
        with self._lock:
            self._starts[play_id] = started, sound
        try:
            called_s = self._clock.now_s()
            self._loudspeakers[part.id].play(play_id, sound)
            start = started.get(timeout=START_LIMIT_S)
        except Empty:
            raise DeviceError("did not start to play within 3 s", remedy="Check its sound device") from None
        finally:
            with self._lock:
                del self._starts[play_id]
        ends_s = start.at_s + sound.duration_s + TAIL_S
        if given_up.wait(max(0.0, self._clock.real_s(ends_s - self._clock.now_s()))):
            self._loudspeakers[part.id].stop()
            return None
        recording, first_s = microphone.cut(max(called_s, start.at_s - LEAD_S), ends_s)
        reference = at_rate(sound, recording.rate_hz)
        match = find(recording.samples, reference.samples)
        if match.correlation < HEARD_FROM:
            return None
        first = round(match.start)
        level_dbfs = rms_dbfs(recording.samples[first : first + len(reference.samples)])
        return _HeardChirp((first_s + match.start / recording.rate_hz - start.at_s) * 1000, level_dbfs)

    def _check_loop_delay(self, given_up: threading.Event) -> Iterator[Check]:
        if self._checks.policy(CheckName.LOUDSPEAKERS) is CheckPolicy.OFF:  # then nothing has played the test sounds
            for _ in self._check_loudspeakers(given_up):
                pass  # only its delays are wanted
        limit_ms = self._checks.loop_delay_spread_ms_max
        for id, delays_ms in self._delays_ms.items():
            spread = spread_ms(delays_ms)
            if spread is None:
                says, fails = f"{id}: n/a, {len(delays_ms)} of {CHIRPS} test sounds were heard", True
            else:
                says = f"{id}: {fixed(median(delays_ms), 1)} ms, spread {fixed(spread, 1)} ms over {len(delays_ms)}"
                says += f" (at most {exact(limit_ms)} allowed)"
                fails = spread > limit_ms
            yield self._result(CheckName.LOOP_DELAY, says, SPREAD_REMEDY, fails=fails)

    # Host and files

    def _check_disk(self, trials: Iterable[Trial]) -> Iterator[Check]:
        free_gb = shutil.disk_usage(self._folder).free / 1e9
        need_gb = estimated_gb(trials)
        wanted_gb = self._bench.min_free_gb + need_gb
        says = f"{fixed(free_gb, 1)} GB are free at {self._folder}; {fixed(wanted_gb, 1)} GB are required"
        says += f" ({fixed(need_gb, 1)} GB for the trials left, {exact(self._bench.min_free_gb)} GB min_free_gb)"
        remedy = "Free disk space: harness admin purge deletes old clips"
        yield self._result(CheckName.DISK, says, remedy, fails=free_gb < wanted_gb)

    def _check_wall_clock(self) -> Iterator[Check]:
        before_s, self._wall_offset_s = self._wall_offset_s, wall_offset_s()
        jump_ms, limit_ms = abs(self._wall_offset_s - before_s) * 1000, self._checks.clock_jump_ms_max
        synchronised, error_s = kernel_clock()
        if synchronised is None:
            state = "unknown whether it is synchronised"
        else:
            state = f"synchronised to {seconds(error_s)}" if synchronised else "not synchronised"
        says = f"{state}; the clock moved by {fixed(jump_ms, 0)} ms since the previous check"
        says += f" (at most {exact(limit_ms)} allowed)"
        remedy = "Start chrony or systemd-timesyncd. Only dates are affected; results use the monotonic clock"
        yield self._result(CheckName.CLOCK, says, remedy, fails=synchronised is False or jump_ms > limit_ms)

    def _check_calibrations(self) -> Iterator[Check]:
        today = datetime.fromtimestamp(self._clock.wall_s()).astimezone().date()
        days = self._checks.calibration_days_min
        for part in self._parts():
            if part.calibration is None:
                continue
            why = why_unfit(part, part.calibration, today + timedelta(days=days))
            says = f"{part.id}: {why or f'its calibration is valid until {part.calibration.expires_on}'}"
            if why and not why_unfit(part, part.calibration, today):
                says = f"{part.id}: its calibration expires on {part.calibration.expires_on}, within {days} days"
            remedy = "Calibrate again: harness admin calibrate"
            yield self._result(CheckName.CALIBRATION, says, remedy, fails=bool(why))


def _test_sound(part: Equipment) -> Waveform:
    """A chirp, no louder than the loudspeaker's calibration allows."""
    sound = chirp()
    if part.calibration is None:
        return sound
    over_db = max(0.0, rms_dbfs(sound.samples) - part.calibration.dbfs(part.calibration.max_spl))
    return Waveform((sound.samples * 10 ** (-over_db / 20)).astype(sound.samples.dtype), sound.rate_hz)
