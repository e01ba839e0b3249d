"""The small protocols that the session and the drivers need of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, runtime_checkable

if TYPE_CHECKING:  # an evaluation's worker would import the rows of a session's log, which takes longer than its model
    import numpy as np
    import numpy.typing as npt

    from harness.model.bench import DeviceProfile
    from harness.model.observation import Observation
    from harness.model.offline import EngineFacts, OfflineModel, OfflineSpot, Said, ScoreTrack, Setting
    from harness.model.record import Clip, Entry, Record
    from harness.model.stimulus import RenderedStimulus, StimulusRecipe, VoiceSpec, Waveform
    from harness.model.understanding import Prediction, Utterance

Sink: TypeAlias = "Callable[[Observation], None]"
"""Where a driver puts what it saw; may be called from any thread, never blocks, never raises."""


@runtime_checkable
class NamesHostParts(Protocol):
    """A driver whose options name what this host must have: a port, a variable with a password."""

    def demand_host(self, options: Any) -> None:
        """InputError when it is not there. A static method: there is no device yet."""


class Clock(Protocol):
    """Monotonic seconds of the session, with the wall clock beside it for people.

    A clock may run faster than the host's (the in-process sound path); `real_s` turns a duration on this clock into
    one to wait for.
    """

    @property
    def speed(self) -> float: ...
    def now_s(self) -> float: ...
    def wall_s(self) -> float: ...
    def real_s(self, duration_s: float) -> float: ...


class Surroundings(Protocol):
    """What a driver may know of the session that it works in."""

    @property
    def clock(self) -> Clock: ...
    @property
    def sound_server(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def folder(self) -> Path:
        """A folder of this driver's own, for files that need not outlive the session."""
        ...

    @property
    def profile(self) -> DeviceProfile | None:
        """The profile of the device that this driver reaches, or None (loudspeaker, microphone)."""
        ...


class Driver(Protocol):
    """Something on the bench. `Options` is a frozen dataclass; its fields, types and defaults are the YAML keys.

    Constructed as `Driver(id, options, surroundings)`, which does no I/O. `open` raises DeviceError with a remedy when
    the far end is not there; afterwards the loss and return of the far end are observations (LinkLost, LinkBack).
    `close` ends everything that `open` started, within 2 s, in any state.
    """

    Options: ClassVar[type]
    id: str

    def open(self, sink: Sink) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class Stimulates(Protocol):
    """Plays sound to a device. `play` returns at once; StimulusStarted and StimulusEnded with its play_id follow."""

    id: str

    def play(self, play_id: str, waveform: Waveform) -> None: ...
    def stop(self) -> None:
        """Ends what is playing within 50 ms; StimulusEnded(complete=False) follows. Nothing playing: does nothing."""
        ...

    def level_dbfs(self) -> float | None:
        """RMS of the last ~100 ms that were played, for a meter; None when closed."""
        ...


@runtime_checkable
class Hears(Protocol):
    """A microphone: observes speech, and keeps the last minutes of sound to cut clips from."""

    id: str

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        """Tells what we are playing and when it left, so that it is not taken for the device."""
        ...

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        """The sound of [start_s, end_s) on the host clock, and the exact host time of its first sample.

        Waits for samples that have not arrived yet, at most 1 s; DeviceError when they are not to be had.
        """
        ...

    def level_dbfs(self) -> float | None: ...
    def noise_floor_dbfs(self) -> float | None: ...


class SessionLog(Protocol):
    """The append-only log of one session; thread-safe."""

    def append(self, record: Record) -> Entry:
        """Returns when the row is on the disk. LogFull when there is no room."""
        ...

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        """Returns when the file is on the disk, whole, under its final name; a row may name it afterwards."""
        ...

    def entries(self, after_seq: int = 0) -> Iterator[Entry]: ...


class Renders(Protocol):
    """Makes the sound of a recipe; the same recipe gives the same samples."""

    def render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        """VoiceError or InputError when it cannot."""
        ...


class Voice(Protocol):
    """Text to speech. Plug-ins: entry points of `harness.voices`, constructed without arguments and without I/O."""

    def names(self) -> tuple[str, ...]:
        """The voices that this engine has here; VoiceError when the engine is not installed (with the remedy)."""
        ...

    def version(self) -> str:
        """Engine, version and model, for the log and the cache key."""
        ...

    def speak(self, text: str, voice: VoiceSpec) -> Waveform:
        """The spoken text at the engine's own rate and level; deterministic. VoiceError otherwise."""
        ...


class SpeechDetector(Protocol):
    """Frame-wise speech detection with state. Plug-ins: entry points of `harness.speech_detectors`."""

    rate_hz: ClassVar[int]
    frame_samples: ClassVar[int]

    def is_speech(self, frame: npt.NDArray[np.int16]) -> bool:
        """Shape (frame_samples,), at rate_hz, level already normalised."""
        ...

    def reset(self) -> None: ...


class Recogniser(Protocol):
    """Speech to text. Plug-ins: entry points of `harness.recognisers`; loading may take seconds."""

    name: str

    @staticmethod
    def installed() -> bool:
        """Whether the packages that it needs are there; quick, imports none of them."""
        ...

    def transcribe(self, waveform: Waveform) -> str:
        """The words, or "" when there are none. Any rate."""
        ...


class WakeEngine(Protocol):
    """Finds a wake phrase in a stream. Plug-ins: entry points of `harness.wake_engines`."""

    rate_hz: ClassVar[int]

    def phrases(self) -> tuple[str, ...]: ...
    def feed(self, samples: npt.NDArray[np.int16]) -> tuple[WakeHit, ...]:
        """Any number of samples; hits in them, with the sample index since reset at which they were found."""
        ...

    def reset(self) -> None: ...


class WakeHit(Protocol):
    @property
    def phrase(self) -> str: ...
    @property
    def sample(self) -> int: ...
    @property
    def score(self) -> float | None: ...


class OfflineEngine(Protocol):
    """An engine that files are evaluated with. Plug-ins: entry points of `harness.offline_engines`.

    The class lists what it has without loading a model. `Engine(model, settings)` loads: model is what stands behind
    the colon of a task, a name of `models()` or a path; settings are names of `settings` with checked texts, those
    that were given only. PluginError or InputError, with a remedy, when that cannot be. An engine lives in one
    process and one thread; it also implements one of `ScoresSound`, `SpotsPhrases` and `Understands`.
    """

    settings: ClassVar[tuple[Setting, ...]]

    def __init__(self, model: str, settings: Mapping[str, str]) -> None: ...

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """What is installed here; PluginError with the remedy when the engine's package is not."""
        ...

    @property
    def facts(self) -> EngineFacts: ...
    def close(self) -> None:
        """Lets go of processes and devices; may be called twice."""
        ...


@runtime_checkable
class ScoresSound(Protocol):
    """A wake engine whose spots follow from scores by its rule: any operating point is a look at the same scores."""

    def begin(self) -> ScoreStream:
        """An engine state that has heard nothing; ends the one before."""
        ...


class ScoreStream(Protocol):
    """A state of a `ScoresSound`. The scores do not depend on how the sound is cut into pieces."""

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Shape (n,), at the engine's rate; any n."""
        ...

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """Scores since the last take, one track a phrase; positions count from `begin`.

        flush: the sound ends here, and what is still inside comes out; nothing is fed afterwards.
        """
        ...


@runtime_checkable
class SpotsPhrases(Protocol):
    """A wake engine that tells spots and no scores (a keyphrase search, a closed engine, a board)."""

    def listen(self) -> SpotStream:
        """An engine state that has heard nothing; ends the one before."""
        ...


class SpotStream(Protocol):
    """A state of a `SpotsPhrases`."""

    def feed(self, samples: npt.NDArray[np.int16]) -> None: ...
    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        """Spots since the last take; positions count from `listen`."""
        ...


@runtime_checkable
class Understands(Protocol):
    """A recogniser of commands or of words: one file, one answer."""

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        """None where nothing was understood. EngineError when it failed."""
        ...


class IntentClassifier(Protocol):
    """A multi-label classifier of texts. Plug-ins: entry points of `harness.intent_classifiers`.

    settings: names of `settings` with checked texts, those that were given only. PluginError or InputError, with a
    remedy, when it cannot be. The same seed, settings and data give the same probabilities.
    """

    settings: ClassVar[tuple[Setting, ...]]

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None: ...

    def fit(self, texts: Sequence[str], intents: Sequence[tuple[str, ...]], labels: Sequence[str]) -> None:
        """Learns from texts and their label sets; labels: all there are, in the order of the columns below.

        May be called again with more, and then learns anew or goes on, as it likes. A label that no text has is never
        predicted.
        """
        ...

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Shape (texts, labels), 0–1, independent of each other."""
        ...


class Understander(Protocol):
    """A model of text → intents and BIO slots. Plug-ins: entry points of `harness.understanders`.

    settings: as in `IntentClassifier`. One process and one thread.
    """

    settings: ClassVar[tuple[Setting, ...]]

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None: ...

    def fit(self, train: Sequence[Utterance], held_out: Sequence[Utterance], tell: Callable[[str], None]) -> None:
        """Learns from utterances with intents and tags; held_out (may be empty) decides when to end, never more.

        tell: takes a line on how far it is.
        """
        ...

    def predict(self, words: Sequence[tuple[str, ...]]) -> list[Prediction]:
        """One for each; words that it has never seen are no error. A text without words means nothing: no intent."""
        ...

    def save(self, folder: Path) -> None:
        """Writes all that `load` needs into an empty folder; nothing that runs code when it is read."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        """InputError, with the file, when the folder holds no model of this kind or a damaged one."""
        ...
