"""Protocols that the session, the drivers and the plug-ins share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, runtime_checkable

if TYPE_CHECKING:  # importing the log's rows would take an evaluation worker longer than loading its model
    import numpy as np
    import numpy.typing as npt

    from harness.model.bench import DeviceProfile, DeviceSetting
    from harness.model.observation import Observation
    from harness.model.offline import EngineFacts, OfflineModel, OfflineSpot, Said, ScoreTrack, Setting
    from harness.model.record import Entry, Record
    from harness.model.stimulus import Clip, RenderedStimulus, StimulusRecipe, VoiceSpec, Waveform
    from harness.model.understanding import Prediction, Utterance

Sink: TypeAlias = "Callable[[Observation], None]"
"""The function to which a driver passes its observations. It may be called from any thread, never blocks and never
raises."""


@runtime_checkable
class NamesHostParts(Protocol):
    """A driver whose options name what this host must have: a port, a variable with a password."""

    def demand_host(self, options: Any) -> None:
        """Raises InputError, or DeviceError for a port, if something is missing. Static: no device exists yet."""


class Clock(Protocol):
    """Monotonic seconds of the session, and the wall clock for people.

    A clock may run faster than the host's (the in-process sound path); `real_s` turns a duration on this clock into
    the duration to wait.
    """

    @property
    def speed(self) -> float: ...
    def now_s(self) -> float: ...
    def wall_s(self) -> float: ...
    def real_s(self, duration_s: float) -> float: ...


class Surroundings(Protocol):
    """What a driver may know about its session."""

    @property
    def clock(self) -> Clock: ...
    @property
    def sound_server(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def folder(self) -> Path:
        """A folder for this driver's files, which need not outlive the session."""

    @property
    def profile(self) -> DeviceProfile | None:
        """The profile of the device that this driver reaches, or None (loudspeaker, microphone)."""


class Driver(Protocol):
    """Something on the bench. `Options` is a frozen dataclass; its fields, types and defaults are the YAML keys.

    Constructed as `Driver(id, options, surroundings)`, which does no I/O. `open` raises DeviceError with a remedy if
    the far end is missing. Later, its loss and return are observations (LinkLost, LinkBack). `close` ends everything
    that `open` started, within 2 s, in any state.
    """

    Options: ClassVar[type]
    id: str

    def open(self, sink: Sink) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class Stimulates(Protocol):
    """Plays sound to a device. `play` returns at once; StimulusStarted and StimulusEnded follow with its play_id."""

    id: str

    def play(self, play_id: str, waveform: Waveform) -> None: ...
    def stop(self) -> None:
        """Stops the sound within 50 ms; StimulusEnded(complete=False) follows. Does nothing if nothing is playing."""

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms or so that were played, for a meter; None if closed."""


@runtime_checkable
class Hears(Protocol):
    """A microphone: observes speech, and keeps the last minutes of sound for clips."""

    id: str

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        """Takes a sound that the harness plays, and its start time, so that it is not mistaken for the device."""

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        """The sound of [start_s, end_s) on the host clock, and the exact host time of its first sample.

        Waits at most 1 s for samples that have not arrived yet. Raises DeviceError if they do not arrive.
        """

    def level_dbfs(self) -> float | None: ...
    def noise_floor_dbfs(self) -> float | None: ...


@runtime_checkable
class HasSettings(Protocol):
    """A driver that reads and sets the settings of its device: switches, numbers, choices."""

    def settings(self) -> Mapping[str, DeviceSetting]:
        """All settings with their current values, by name.

        Raises DeviceError if the device does not report them in time.
        """

    def set_setting(self, name: str, value: str) -> None:
        """Returns when the device has reported the value. Raises DeviceError if it does not in time.

        If the device restarts later, the driver sets the value again before it reports the link as back.
        """


@runtime_checkable
class KeepsSound(Protocol):
    """A driver whose device sends the sound of its microphone."""

    def keep_sound(self, save: Callable[[Waveform, float], Clip]) -> None:
        """Called once, before `open`. save: `SessionLog.save_clip`, after which the driver reports SoundKept."""


class SessionLog(Protocol):
    """The append-only log of one session; thread-safe."""

    def append(self, record: Record) -> Entry:
        """Returns when the row is on disk. Raises LogFull if the disk is full."""

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        """Returns when the complete file is on disk under its final name; only then may a row name it."""

    def entries(self, after_seq: int = 0) -> Iterator[Entry]: ...


class Renders(Protocol):
    """Renders the sound of a recipe; the same recipe gives the same samples."""

    def render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        """The sound of a recipe. Raises VoiceError or InputError if it cannot be rendered."""


class Voice(Protocol):
    """Text to speech. Plug-ins: entry points of `harness.voices`, constructed without arguments and without I/O."""

    def names(self) -> tuple[str, ...]:
        """The voices of this engine on this host.

        Raises VoiceError, with the remedy, if the engine is not installed.
        """

    def version(self) -> str:
        """Engine, version and model, for the log and the cache key."""

    def speak(self, text: str, voice: VoiceSpec) -> Waveform:
        """The spoken text at the engine's own rate and level; deterministic. Raises VoiceError if it fails."""


class SpeechDetector(Protocol):
    """Frame-wise speech detection with state. Plug-ins: entry points of `harness.speech_detectors`."""

    rate_hz: ClassVar[int]
    frame_samples: ClassVar[int]

    def is_speech(self, frame: npt.NDArray[np.int16]) -> bool:
        """Whether a frame is speech. frame: shape (frame_samples,), at rate_hz, with a normalised level."""

    def reset(self) -> None: ...


class Recogniser(Protocol):
    """Speech to text. Plug-ins: entry points of `harness.recognisers`; loading may take seconds."""

    name: str

    @staticmethod
    def installed() -> bool:
        """Whether the packages that it needs are installed; fast, imports none of them."""

    def transcribe(self, waveform: Waveform) -> str:
        """The words in a sound of any rate; "" if there are none."""


class WakeEngine(Protocol):
    """Finds a wake phrase in a stream. Plug-ins: entry points of `harness.wake_engines`."""

    rate_hz: ClassVar[int]

    def phrases(self) -> tuple[str, ...]: ...
    def feed(self, samples: npt.NDArray[np.int16]) -> tuple[WakeHit, ...]:
        """Takes any number of samples. Returns the hits in them, with the sample index since reset."""

    def reset(self) -> None: ...


class WakeHit(Protocol):
    @property
    def phrase(self) -> str: ...
    @property
    def sample(self) -> int: ...
    @property
    def score(self) -> float | None: ...


class OfflineEngine(Protocol):
    """An engine that evaluates files. Plug-ins: entry points of `harness.offline_engines`.

    The class lists its models and settings without loading one. `Engine(model, settings)` loads.

    - model: a name from `models()` or a path (in a task, the part after the colon).
    - settings: only the given ones, with checked texts.

    Raises PluginError or InputError, with a remedy, if it cannot load. An engine lives in one process and one thread.
    It also implements one of `ScoresSound`, `SpotsPhrases` and `Understands`. A class method `check(model, settings)`,
    if there is one, raises what can be known without loading.
    """

    settings: ClassVar[tuple[Setting, ...]]

    def __init__(self, model: str, settings: Mapping[str, str]) -> None: ...

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """The installed models. Raises PluginError, with the remedy, if the engine's package is not installed."""

    @property
    def facts(self) -> EngineFacts: ...
    def close(self) -> None:
        """Releases processes and devices; may be called twice."""


@runtime_checkable
class ScoresSound(Protocol):
    """A wake engine whose detections follow from scores: one pass gives every operating point."""

    def begin(self) -> ScoreStream:
        """A fresh engine state; ends the previous one."""


class ScoreStream(Protocol):
    """A state of a `ScoresSound`. The scores do not depend on the sizes of the pieces of sound."""

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Takes sound, shape (n,), at the engine's rate; any n."""

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """Scores since the last take, one track per phrase; positions count from `begin`.

        flush: the sound ends here; returns all remaining scores. Nothing is fed afterwards.
        """


@runtime_checkable
class SpotsPhrases(Protocol):
    """A wake engine that reports detections without scores (a keyphrase search, a closed engine, a board)."""

    def listen(self) -> SpotStream:
        """A fresh engine state; ends the previous one."""


class SpotStream(Protocol):
    """A state of a `SpotsPhrases`."""

    def feed(self, samples: npt.NDArray[np.int16]) -> None: ...
    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        """Detections since the last take; positions count from `listen`."""


@runtime_checkable
class Understands(Protocol):
    """A recogniser of commands or of words: one file, one answer."""

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        """What was understood in a file; None if nothing was. Raises EngineError if the engine failed."""


class AudioUnderstander(OfflineEngine, Understands, Protocol):
    """A system from sound to intents and slots. Plug-ins: entry points of `harness.audio_understanders`.

    Its facts have the kind FRAME. `understand` returns intents and slots, and the words that were recognised, if any.
    """


class LearnsFromSound(AudioUnderstander, Protocol):
    """An `AudioUnderstander` that can be trained. A model's name is then its folder."""

    @classmethod
    def fit(
        cls,
        train: Sequence[Utterance],
        held_out: Sequence[Utterance],
        sound_of: Callable[[str], npt.NDArray[np.int16]],
        settings: Mapping[str, str],
        *,
        seed: int,
        tell: Callable[[str], None],
    ) -> Self:
        """Learns from utterances with intents and tags; held_out (may be empty) may decide when to stop.

        - sound_of: the samples of an id, shape (n,), at 16 kHz.
        - settings: only the given ones, with checked texts. The same machine, seed, settings and data give the same
          model, byte by byte.
        """

    def save(self, folder: Path) -> None:
        """Writes everything that loading needs into an empty folder, in no format that runs code when it is read."""


class IntentClassifier(Protocol):
    """A multi-label classifier of texts. Plug-ins: entry points of `harness.intent_classifiers`.

    settings: only the given ones, with checked texts. Raises PluginError or InputError, with a remedy, if it cannot
    load. The same seed, settings and data give the same probabilities.
    """

    settings: ClassVar[tuple[Setting, ...]]

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None: ...

    def fit(self, texts: Sequence[str], intents: Sequence[tuple[str, ...]], labels: Sequence[str]) -> None:
        """Learns from texts and their label sets. labels: all labels, in the order of the columns below.

        May be called again with more texts, and then starts afresh or continues. Never predicts a label without texts.
        """

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """The probability of each label for each text: shape (texts, labels), 0–1, independent of each other."""


class Understander(Protocol):
    """A model of text → intents and BIO slots. Plug-ins: entry points of `harness.understanders`.

    settings: only the given ones, with checked texts, as in `IntentClassifier`. It lives in one process and one thread.
    """

    settings: ClassVar[tuple[Setting, ...]]

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None: ...

    def fit(self, train: Sequence[Utterance], held_out: Sequence[Utterance], tell: Callable[[str], None]) -> None:
        """Learns from utterances with intents and tags; held_out (may be empty) only decides when to stop.

        tell: takes a line about progress.
        """

    def predict(self, words: Sequence[tuple[str, ...]]) -> list[Prediction]:
        """One prediction per text. Unknown words are not an error; a text without words has no intent."""

    def save(self, folder: Path) -> None:
        """Writes everything that `load` needs into an empty folder, in no format that runs code when it is read."""

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The model in a folder. Raises InputError, with the file, if there is none of this kind, or a damaged one."""
