"""Finds a voice that wakes a device, with wake trials that end after the first voice that woke it every time."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path

from harness.base import threads
from harness.base.plugins import Group, load, names
from harness.model.bench import Device, OperatorPresence
from harness.model.errors import EngineError, HarnessError, InputError, Place, UnmetNeed, nearest
from harness.model.feed import Goodbye, Hello, Logged, Message
from harness.model.frozen import frozen
from harness.model.record import SessionStarted, TrialFinished
from harness.model.stimulus import SpokenText, StimulusRecipe, VoiceSpec
from harness.scenario.bench import load_bench
from harness.session.engine.feed import EngineClient
from harness.session.engine.launch import EnginePlace, start_engine
from harness.session.engine.prepare import prepare
from harness.sound.stimuli.renderer import renderer
from harness.sound.stimuli.voices.program import same_language
from harness.wake.wake import WakeFigures

TIMES = 3
"""How often each voice says the phrase. A voice of probes must wake the device every time."""
ENDS_WITHIN_S = 30.0
"""How long to wait for the end of the session."""


@frozen
class VoiceResult:
    """The result of one voice.

    - call_count, wake_count: how often it said the phrase, and how often the device woke.
    - delay_s: median time from the end of the phrase to the wake event; None without one.
    - trouble: why it was not tried completely; "" if it was.
    """

    voice: VoiceSpec
    wake_count: int = 0
    call_count: int = 0
    delay_s: float | None = None
    trouble: str = ""

    @property
    def wakes(self) -> bool:
        return self.wake_count == self.call_count == TIMES


def device_and_phrase(bench_path: Path, device_id: str) -> tuple[Device, str]:
    """The device and its wake phrase. Raises InputError when it is not on the bench or has no wake phrase."""
    bench = load_bench(bench_path)
    device = next((candidate for candidate in bench.devices if candidate.id == device_id), None)
    if device is None:
        raise InputError(
            f"the bench {bench.id!r} has no device {device_id!r}",
            place=Place(bench.path),
            remedy=nearest(device_id, [bench_device.id for bench_device in bench.devices], listed="Devices"),
        )
    if not device.profile.wake_phrases:
        raise InputError(
            f"no wake phrase is known for {device_id!r}",
            place=Place(device.profile.path),
            remedy="Add `wake_phrases: [...]` to the device's profile",
        )
    return device, device.profile.wake_phrases[0]


def find_voice(
    bench_path: Path, device_id: str, *, at_most: int, within_s: float, on_result: Callable[[VoiceResult], None]
) -> VoiceResult | None:
    """Plays a session of wake trials. Returns the result of the first voice that woke the device every time (TIMES).

    None if none of `at_most` voices did within within_s. on_result: called with the result of each voice, in the order
    of trying. Raises InputError when the bench cannot be used for this; EngineError, or the error of a driver, when the
    session fails.
    """
    device, phrase = device_and_phrase(bench_path, device_id)
    usable_voices: list[VoiceSpec] = []
    for voice in islice(voices_for(device.profile.language), at_most):
        try:
            renderer().render(StimulusRecipe(SpokenText(phrase), None, voice))
        except HarnessError as error:
            on_result(VoiceResult(voice, trouble=error.what))
            continue
        usable_voices.append(voice)
    if not usable_voices:
        return None
    with tempfile.TemporaryDirectory(prefix="voice-harness-", ignore_cleanup_errors=True) as scratch:
        scenario = Path(scratch) / "find_voice.yaml"
        scenario.write_text(_scenario_text(usable_voices, device_id), encoding="utf-8")
        try:
            folder = prepare(scenario, bench_path, Path(scratch), operator=OperatorPresence.ABSENT)
        except UnmetNeed as error:
            raise InputError(f"{device_id!r} cannot be called: {error.what}", remedy=error.remedy) from error
        place = start_engine(folder)
        try:
            return _follow_session(place, device_id, threads.monotonic() + within_s, on_result)
        finally:
            _end_session(place)


def _scenario_text(voices: Sequence[VoiceSpec], device_id: str) -> str:
    """A scenario in JSON, which is YAML too: each voice says the device's wake phrase TIMES times."""
    voice_keys = {f"voice{number}": {"engine": voice.engine, "name": voice.name} for number, voice in enumerate(voices)}
    return json.dumps(
        {
            "scenario": "find_voice",
            "voices": voice_keys,
            # No life check: the search expects voices that do not wake the device.
            "defaults": {"life_check_after": 0},
            "trials": [{"id": "call", "kind": "wake", "devices": [device_id], "repeat": TIMES}],
            "matrix": {"axes": {"voice": list(voice_keys)}},
        }
    )


def voices_for(language: str) -> Iterator[VoiceSpec]:
    """The voices that speak a language: one from each engine in turn, plain voices before variants."""
    voices_by_engine: list[list[VoiceSpec]] = []
    for engine in names(Group.VOICES):
        try:
            voice = load(Group.VOICES, engine)()
            voice_names = [name for name in voice.names() if same_language(language, (voice.language_of(name),))]
        except HarnessError:  # not installed, as the checks of the host say
            continue
        # Plain voices first (a variant has a +), and of these first the one named as the language's own region.
        voice_names.sort(key=lambda name: ("+" in name, name.partition("+")[0].casefold() != language.casefold()))
        voices_by_engine.append([VoiceSpec(engine, name, language=language) for name in voice_names])
    return (voice for voice in chain.from_iterable(zip_longest(*voices_by_engine)) if voice is not None)


def _follow_session(
    place: EnginePlace, device_id: str, until_s: float, on_result: Callable[[VoiceResult], None]
) -> VoiceResult | None:
    """Follows the session until a voice is found, the time is over, or every voice has been tried."""
    arrivals: queue.SimpleQueue[Message | str] = threads.simple_queue()  # a text says why the connection was closed
    client = EngineClient(Path(place.socket), Hello("doctor", 0, attended=False), arrivals.put, arrivals.put)
    figures, trials_done = WakeFigures(), Counter[VoiceSpec]()
    voice_of: dict[str, VoiceSpec] = {}
    try:
        while (left_s := until_s - threads.monotonic()) > 0:
            try:
                message = arrivals.get(timeout=left_s)
            except queue.Empty:
                break
            match message:
                case Logged(entry):
                    figures.add(entry)
                    if isinstance(entry.record, SessionStarted):
                        voice_of = {trial.id: trial.recipe.voice for trial in entry.record.trials}
                    if isinstance(entry.record, TrialFinished):
                        voice = voice_of[entry.record.trial_id]
                        trials_done[voice] += 1
                        if trials_done[voice] == TIMES:
                            result = _voice_result(figures, device_id, voice)
                            on_result(result)
                            if result.wakes:
                                return result
                case Goodbye(exit_code=0):
                    break
                case Goodbye(reason=reason):
                    raise EngineError(reason)
                case str():
                    raise EngineError(message or "the engine closed the connection")
                case _:
                    pass
    finally:
        client.close()
    return None


def _voice_result(figures: WakeFigures, device_id: str, voice: VoiceSpec) -> VoiceResult:
    plays = [play for play in figures.plays(device_id) if play.trial.recipe.voice == voice]
    hits = [play.reading for play in plays if play.reading.hit is not None]
    delays = [reading.delay.value_s for reading in hits if reading.delay is not None]
    return VoiceResult(
        voice,
        wake_count=len(hits),
        call_count=len(plays),
        delay_s=statistics.median(delays) if delays else None,
        trouble="" if len(plays) == TIMES else "interrupted",
    )


def _end_session(place: EnginePlace) -> None:
    """Asks the engine to end, and waits up to ENDS_WITHIN_S, since the session's folder is deleted next."""
    if place.alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(place.pid, signal.SIGTERM)
    deadline_s = threads.monotonic() + ENDS_WITHIN_S
    while place.alive and threads.monotonic() < deadline_s:
        threads.sleep(0.02)
