"""A scenario as it is after reading: names resolved, defaults filled in, paths absolute and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Literal

from harness.model.effect import EffectCheck
from harness.model.frozen import frozen
from harness.model.procedure import Procedure
from harness.model.stimulus import (
    Band,
    Channel,
    NoiseKind,
    NoiseSpec,
    Opening,
    Placement,
    RoomSpec,
    Utterance,
    VoiceSpec,
)
from harness.model.transcript import ENGLISH, Rewriting
from harness.model.transcript import Normalisation as Normalisation
from harness.model.understanding import ExpectedFrame

MIN_SEGMENT_S = 0.1
"""A shorter remainder of ambient sound is not played."""


@frozen
class AmbientSource:
    """One source of sound without the phrase: exactly one of recordings, noise and texts.

    recordings: absolute paths of sound files, in a fixed order. durations_s: their lengths, one for each.
    texts: texts that `voices` speak one after another.
    share: part of the time that this source gets, relative to other sources.
    """

    id: str
    recordings: tuple[str, ...] = ()
    noise: NoiseKind | None = None
    texts: tuple[str, ...] = ()
    voices: tuple[VoiceSpec, ...] = ()
    share: float = 1.0
    durations_s: tuple[float, ...] = ()


@frozen
class ProbeSpec:
    """A wake phrase before, after, and every `every_s` of ambient sound, which proves that devices listen.

    phrase, voice, level_dbfs: None is the devices' first phrase, the default voice and the default level.
    tail_s: sound after the phrase, in which a device that does not report its state can become idle again.
    recording: absolute path of a recording of the phrase, used instead of a voice; "": a voice speaks.
    """

    every_s: float
    phrase: str | None = None
    voice: VoiceSpec | None = None
    level_dbfs: float | None = None
    tail_s: float = 1.5
    recording: str = ""


@frozen
class AmbientSpec:
    """A long run of ambient sound, in segments that are trials of their own.

    The sources are repeated as needed, and shuffled with the scenario's seed.
    hours: length of the sound, for each repetition of the template. segment_s: length of the longest segment.
    """

    hours: float
    sources: tuple[AmbientSource, ...]
    segment_s: float = 60.0
    probe: ProbeSpec | None = None

    @property
    def segments(self) -> int:
        """Number of segments; a remainder of less than 0.1 s is not played."""
        # The small term: a remainder of 0.1 s is played, also if rounding makes it a little less.
        return max(1, math.ceil((self.hours * 3600 - MIN_SEGMENT_S) / self.segment_s + 1e-9))


@frozen
class Limits:
    """What must hold for exit status 0; None: no limit. Shares are 0–1, of the trials that were decided.

    Limits on wake results must hold for every device. A sequential test that fails a device fails the session too.
    Limits with `_upper` in their names: the upper end of the 95 % interval (over voices or Clopper–Pearson; Garwood).
    max_first_attempt_wer, max_final_wer: word errors per reference word, 0 and up, at the first attempts and at those
    that decided.
    min_command_share: share of the commands that were understood. min_effect_share: share of the known effects that
    are right.
    max_request_gap_ms: shortest pause between wake phrase and request from which 90 % of a device's requests arrive
    whole.
    min_understood_share: share of the trials whose intents and slots were understood, at the attempt that decided.
    min_intent_share: the same, of intents alone.
    max_disturbed_share: share of the attempts, in the takes that count, that the host disturbed. With more, the session
    is undecided. None: 0.1 if there is any other limit or test.
    """

    min_recognised_share: float | None = None
    min_first_attempt_share: float | None = None
    min_answered_share: float | None = None
    max_latency_p95_ms: float | None = None
    max_inconclusive: int | None = None
    max_interrupted: int | None = None
    max_false_reject_share: float | None = None
    max_false_reject_upper: float | None = None
    max_false_accepts_per_hour: float | None = None
    max_false_accepts_upper_per_hour: float | None = None
    min_exposure_hours: float | None = None
    min_command_share: float | None = None
    max_wake_delay_p95_ms: float | None = None
    max_request_gap_ms: float | None = None
    max_first_sound_p95_ms: float | None = None
    max_first_attempt_wer: float | None = None
    max_final_wer: float | None = None
    min_effect_share: float | None = None
    min_understood_share: float | None = None
    min_intent_share: float | None = None
    max_disturbed_share: float | None = None


class Evidence(StrEnum):
    """Who says whether a query was recognised.

    AUTO: the device when its profile reports transcripts, else the operator. NONE: nobody does; every response counts,
    and recognition is recorded as not assessed.
    """

    AUTO = "auto"
    DEVICE = "device"
    OPERATOR = "operator"
    NONE = "none"


class RepeatUntil(StrEnum):
    """What ends the repetition of a query: that its words were recognised, or that its frame was understood."""

    RECOGNISED = "recognised"
    UNDERSTOOD = "understood"


@frozen
class RepromptRule:
    """When a query is said again, and how long a trial waits for an answer.

    context_wait_s: wait before a repetition, so that the device has forgotten the dialogue.
    response_timeout_s: time from the end of the query within which an answer must begin.
    response_max_s: length at which an answer is cut off. end_silence_ms: silence after which it has ended.
    evidence_wait_s, operator_wait_s: how long the trial waits for the device's own report, and for the operator.
    max_interruptions: interruptions after which the harness gives up on a trial.
    until: None is UNDERSTOOD if the trial expects intents, else RECOGNISED.
    speak_within_s: time in which a person must begin to speak. max_prompts: how often that person is asked. None: the
    usual values.
    """

    max_attempts: int = 3
    context_wait_s: float = 5.0
    response_timeout_s: float = 8.0
    response_max_s: float = 30.0
    end_silence_ms: int = 800
    evidence_wait_s: float = 2.0
    operator_wait_s: float = 60.0
    max_interruptions: int = 5
    until: RepeatUntil | None = None
    speak_within_s: float | None = None
    max_prompts: int | None = None


@frozen
class CloseDialogue:
    """How a dialogue that the device may have left open is closed before the next query.

    say: a text that the trial's voice speaks, without a wake phrase; None: silence for wait_s, until the device gives
    up.
    """

    say: str | None = None
    wait_s: float = 8.0


@frozen
class Query:
    """A stimulus of the scenario: the sound of a query, and the words that a device should understand.

    alternatives: other words that count as right.
    """

    id: str
    utterance: Utterance
    reference: str
    alternatives: tuple[str, ...] = ()
    voice: VoiceSpec | None = None


class TrialKind(StrEnum):
    """What a trial is for.

    QUERY: a query is repeated until the device recognises and answers it. UNDERSTAND: a query is repeated until its
    intents and slots are understood; it need not be answered. WAKE: a lead-in, then one wake phrase (in-vocabulary).
    COMMAND: as WAKE, with a command whose words are checked. AMBIENT: sound without the phrase (out-of-vocabulary).
    PROBE: the phrase, to see that devices still listen. The plan adds probes to ambient sound; scenarios have none.
    MEMORY: a query, a wait, and a follow-up that makes sense only to a device which remembers the query.
    """

    QUERY = "query"
    WAKE = "wake"
    COMMAND = "command"
    AMBIENT = "ambient"
    PROBE = "probe"
    MEMORY = "memory"
    UNDERSTAND = "understand"

    @property
    def asks(self) -> bool:
        """Whether one device answers its trials; else several may listen, and only react."""
        return self in (TrialKind.QUERY, TrialKind.MEMORY, TrialKind.UNDERSTAND)


class Route(StrEnum):
    """How sound reaches a device. AUTO: over its connection if that can carry sound, else by loudspeaker."""

    AUTO = "auto"
    LOUDSPEAKER = "loudspeaker"
    INJECTION = "injection"


@frozen
class WakeSettings:
    """How wake events are counted (seconds); recorded with every result. Source: spec wake-evaluation, live counting.

    A stimulus opens a window [start − window_before_s, end + window_after_s] for events. refractory_s: a further event
    of the same device within this time of one is the same event. proof_within_s: time between two proofs of
    listening up to which the time between them counts as exposure. count_in_vocabulary: unmatched events of
    in-vocabulary trials count as false accepts too (the manual's -u).
    """

    window_before_s: float = 0.1
    window_after_s: float = 1.0
    refractory_s: float = 2.0
    clip_before_s: float = 5.0
    clip_after_s: float = 5.0
    proof_within_s: float = 15.0
    count_in_vocabulary: bool = False


@frozen
class SequentialTest:
    """Wald's sequential test of a rate or a share.

    good, bad: the values between which it decides (good < bad). They are events per hour for false accepts, and shares
    0–1 for false rejects.
    alpha, beta: largest probability that it fails a device as good as `good`, and passes one as bad as `bad`.
    """

    good: float
    bad: float
    alpha: float = 0.05
    beta: float = 0.05


class OnUndecided(StrEnum):
    """What a sequential test that is still open when the run ends means for the exit status."""

    FAIL = "fail"
    PASS = "pass"


@frozen
class Stopping:
    """The tests after which the rest of the trials is skipped, once they are decided for every device."""

    false_accepts: SequentialTest | None = None
    false_rejects: SequentialTest | None = None
    on_undecided: OnUndecided = OnUndecided.FAIL


@frozen
class MemorySpec:
    """A context-memory probe: `query` primes the device, and after each of waits_s the follow-up is said once.

    follow_up: id of a stimulus. waits_s: from the last sound of the answer to the start of the follow-up.
    shows: an answer with one of these phrases shows that the device remembers. forgets: an answer with one of these
    shows that it does not; (): every answer without one of `shows`. Compared after the scenario's normalisation.
    """

    follow_up: str
    waits_s: tuple[float, ...]
    shows: tuple[str, ...]
    forgets: tuple[str, ...] = ()


@frozen
class RecordingFacts:
    """What is known of a recording.

    phrase_end_s: where its speech ends, in seconds from the file's first sample; None: unknown.
    traits: (column of its list, value), such as its talker, accent or distance.
    """

    phrase_end_s: float | None = None
    traits: tuple[tuple[str, str], ...] = ()


@frozen
class TrialTemplate:
    """One entry under `trials:`, before matrix and repetitions are worked out; None means "as in defaults".

    query: id of a stimulus; "" for WAKE and AMBIENT. devices: which devices listen, for all kinds but QUERY; () is
    every device of the bench that reports wake events. phrase: None is the first wake phrase, the same for all devices.
    recordings: recordings of the wake phrase, used in turn instead of a voice. expects: for kind UNDERSTAND only.
    """

    id: str
    query: str
    repeat: int = 1
    device: str | None = None
    wake: bool = True
    voice: VoiceSpec | None = None
    level_dbfs: float | None = None
    gap_ms: int | None = None
    evidence: Evidence | None = None
    reprompt: RepromptRule | None = None
    close_dialogue: CloseDialogue | None = None
    query_class: str = ""
    core_capability: bool = False
    note: str = ""
    kind: TrialKind = TrialKind.QUERY
    devices: tuple[str, ...] = ()
    route: Route = Route.AUTO
    phrase: str | None = None
    recordings: tuple[str, ...] = ()
    recording_facts: tuple[RecordingFacts, ...] = ()
    as_recorded: bool = False
    lead_in_s: float = 1.0
    tail_s: float = 1.5
    ambient: AmbientSpec | None = None
    effect: EffectCheck | None = None
    memory: MemorySpec | None = None
    expects: ExpectedFrame | None = None
    power_cycle: int | None = None
    opening: Opening | None = None


AxisName = Literal[
    "voice",
    "level_dbfs",
    "level_spl",
    "gap_ms",
    "position",
    "noise",
    "opening",
    "room",
    "distance_m",
    "angle_deg",
    "speed",
    "gain_db",
    "band_hz",
    "clipping_db",
    "codec",
    "device_settings",
]
PLACING_AXES: frozenset[AxisName] = frozenset(("room", "distance_m", "angle_deg"))
"""The axes that place a talker in a room."""
CHANNEL_AXES: frozenset[AxisName] = frozenset(("speed", "gain_db", "band_hz", "clipping_db", "codec"))
"""The axes that set the fields of a `Channel`."""
SettingValues = tuple[tuple[str, str], ...]
"""Settings of a device: (name, value as text)."""
AxisValue = str | float | int | VoiceSpec | NoiseSpec | Opening | RoomSpec | Band | SettingValues | None


@frozen
class Axis:
    """One dimension of the matrix. labels: what tables show for the values, one for each.

    Value types: voice VoiceSpec, noise NoiseSpec or None (quiet), opening Opening or None, room RoomSpec or None,
    band_hz Band or None. Also codec str or None, clipping_db a number or None, device_settings SettingValues, position
    str; the others are numbers. A position is that of a loudspeaker of the bench. Settings of () change nothing.
    """

    name: AxisName
    values: tuple[AxisValue, ...]
    labels: tuple[str, ...]


def axes_of(template: TrialTemplate, through_air: bool = True) -> frozenset[AxisName]:
    """The axes of a matrix that make a difference to a template; along the others it is not multiplied.

    Ambient sound is planned in hours, and exactly those are played: no axis multiplies it, and the device keeps its own
    settings. through_air: whether a device hears it by loudspeaker, so that positions matter.
    """
    match template.kind:
        case TrialKind.QUERY | TrialKind.MEMORY | TrialKind.UNDERSTAND:
            spoken_axes: set[AxisName] = {"voice", "level_dbfs", "level_spl", "gap_ms", "noise", "device_settings"}
            spoken_axes |= PLACING_AXES | CHANNEL_AXES
            if template.kind is not TrialKind.MEMORY:
                spoken_axes.add("opening")
            if through_air:
                spoken_axes.add("position")
            return frozenset(spoken_axes)
        case TrialKind.AMBIENT | TrialKind.PROBE:
            return frozenset()
        case TrialKind.WAKE | TrialKind.COMMAND:
            axes: set[AxisName] = {"noise", "opening", "device_settings", *PLACING_AXES, *CHANNEL_AXES}
            if not template.as_recorded:
                axes |= {"level_dbfs", "level_spl"}
    if template.kind is TrialKind.COMMAND:
        axes |= {"gap_ms", "voice"}
    elif not template.recordings:
        axes.add("voice")
    if through_air:
        axes.add("position")
    return frozenset(axes)


def requested_voice(
    defaults: Defaults, template: TrialTemplate, query: Query | None, cell: Mapping[AxisName, AxisValue]
) -> VoiceSpec:
    """The voice that the matrix gives, else the trial, the query or the defaults.

    cell: the values of a cell of the matrix, by axis.
    """
    matrix_voice = cell.get("voice")
    if matrix_voice is not None:
        assert isinstance(matrix_voice, VoiceSpec), matrix_voice
        return matrix_voice
    if template.voice is not None:
        return template.voice
    if query is not None and query.voice is not None:
        return query.voice
    return defaults.voice


def requested_level(
    defaults: Defaults, template: TrialTemplate, cell: Mapping[AxisName, AxisValue]
) -> tuple[float, bool]:
    """The level that the matrix gives, else the trial or the defaults; and whether it is in dB SPL, else in dBFS.

    cell: the values of a cell of the matrix, by axis. The level has no effect on recordings that keep their own
    (`as_recorded`).
    """
    if template.as_recorded and template.kind is not TrialKind.COMMAND:
        return defaults.level_dbfs, False
    for value, in_spl in (
        (cell.get("level_spl"), True),
        (cell.get("level_dbfs"), False),
        (template.level_dbfs, False),
        (defaults.level_spl, True),
    ):
        if isinstance(value, int | float):
            return float(value), in_spl
    return defaults.level_dbfs, False


def power_cycle_of(defaults: Defaults, template: TrialTemplate) -> int:
    """Number of trials between two power cycles; 0: never. The default does not apply to ambient sound and probes."""
    if template.kind is TrialKind.PROBE:
        return 0
    default = 0 if template.kind is TrialKind.AMBIENT else defaults.power_cycle
    return default if template.power_cycle is None else template.power_cycle


def placement_of(defaults: Defaults, cell: Mapping[AxisName, AxisValue]) -> Placement | None:
    """Where the talker is in a simulated room, from the matrix, else the defaults; None without a room.

    cell: the values of a cell of the matrix, by axis.
    """
    room = cell.get("room", defaults.room)
    distance_m, angle_deg = cell.get("distance_m", defaults.distance_m), cell.get("angle_deg", defaults.angle_deg)
    assert room is None or isinstance(room, RoomSpec), room
    assert isinstance(distance_m, int | float), distance_m
    assert isinstance(angle_deg, int | float), angle_deg
    return None if room is None else room.placement(distance_m, angle_deg)


def channel_of(cell: Mapping[AxisName, AxisValue]) -> Channel:
    """The channel that the matrix gives. cell: the values of a cell of the matrix, by axis."""
    speed, gain_db, clipping_db = cell.get("speed", 1.0), cell.get("gain_db", 0.0), cell.get("clipping_db") or 0.0
    band, codec = cell.get("band_hz"), cell.get("codec") or ""
    assert isinstance(speed, int | float), speed
    assert isinstance(gain_db, int | float), gain_db
    assert isinstance(clipping_db, int | float), clipping_db
    assert band is None or isinstance(band, Band), band
    assert isinstance(codec, str), codec
    return Channel(float(speed), float(gain_db), band, float(clipping_db), codec)


class Order(StrEnum):
    LISTED = "listed"
    SHUFFLED = "shuffled"


@frozen
class Matrix:
    """Every trial is run once for each combination of the axes' values.

    exclude: combinations that are left out, each as (axis name, label) pairs.
    group_by: axes whose values change as rarely as possible, the rarest first; `order` applies within a group.
    """

    axes: tuple[Axis, ...] = ()
    exclude: tuple[tuple[tuple[str, str], ...], ...] = ()
    order: Order = Order.LISTED
    seed: int | None = None
    group_by: tuple[AxisName, ...] = ()


class Need(StrEnum):
    """What a scenario may need from a bench."""

    LOUDSPEAKER = "loudspeaker"
    MICROPHONE = "microphone"
    TRANSCRIPTS = "transcripts"
    WAKE_EVENTS = "wake_events"
    OPERATOR = "operator"
    MONITOR = "monitor"
    NOISE = "noise"
    POSITIONS = "positions"
    INJECTION = "injection"
    INTENTS = "intents"


@frozen
class Defaults:
    """What trials use unless they set their own. level_spl: level in dB SPL, instead of level_dbfs.

    room: a simulated room, with the talker at distance_m and angle_deg in it; None: no room is simulated.
    life_check_after: number of successive trials without a sign of life after which the harness makes a life check; 0:
    never. power_cycle: number of trials between two power cycles; 0: never.
    """

    voice: VoiceSpec = field(default_factory=VoiceSpec)
    level_dbfs: float = -26.0  # As usual for speech in ITU-T's tests of codecs.
    level_spl: float | None = None
    gap_ms: int = 250
    noise: NoiseSpec | None = None
    room: RoomSpec | None = None
    distance_m: float = 1.0
    angle_deg: float = 0.0
    evidence: Evidence = Evidence.AUTO
    reprompt: RepromptRule = field(default_factory=RepromptRule)
    close_dialogue: CloseDialogue | None = None
    between_trials_s: float = 1.0
    life_check_after: int = 3
    power_cycle: int = 0


@frozen
class RecognitionRule:
    """When a transcript counts as right: at most `wer` errors per reference word after `normalisation`.

    rewriting: word pairs that are applied after it; None: none. `normalisation` is then the base of this list.
    language: language of numerals under SPOKEN (BCP 47); in a trial, that of its stimulus.
    """

    normalisation: Normalisation = Normalisation.SPOKEN
    wer: float = 0.0
    rewriting: Rewriting | None = None
    language: str = "en-US"

    @property
    def name(self) -> str:
        """The name of the normalisation, as shown with every result."""
        name = self.normalisation.value if self.rewriting is None else self.rewriting.id
        if self.normalisation is Normalisation.SPOKEN and not self.english:
            return f"{name}, {self.language}"
        return name

    @property
    def english(self) -> bool:
        """Whether numerals are read in English."""
        return self.language.partition("-")[0].lower() == ENGLISH


@frozen
class Scenario:
    """One scenario file. path: absolute path. sha256: hash of the file's bytes."""

    id: str
    title: str
    path: str
    sha256: str
    queries: tuple[Query, ...]
    trials: tuple[TrialTemplate, ...]
    tags: tuple[str, ...] = ()
    defaults: Defaults = field(default_factory=Defaults)
    recognised: RecognitionRule = field(default_factory=RecognitionRule)
    matrix: Matrix = field(default_factory=Matrix)
    limits: Limits = field(default_factory=Limits)
    needs: tuple[Need, ...] = ()
    seed: int = 0
    wake: WakeSettings = field(default_factory=WakeSettings)
    stopping: Stopping = field(default_factory=Stopping)
    procedure: Procedure | None = None
