"""A planned trial, and how it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePath
from typing import Annotated, Any

from harness.model.bench import EARCON, ObservationKind
from harness.model.effect import EffectCheck
from harness.model.frozen import frozen
from harness.model.numbers import counted
from harness.model.observation import DeviceState
from harness.model.scenario import (
    CloseDialogue,
    Evidence,
    RecognitionRule,
    RepeatUntil,
    RepromptRule,
    TrialKind,
    WakeSettings,
)
from harness.model.stimulus import Recording, StimulusRecipe, VoiceSpec
from harness.model.understanding import ExpectedFrame

_shared = lru_cache(maxsize=4096)(lambda value: value)


class Interned:
    """Annotates the type of a field: equal values read from JSON become one object, since plans repeat themselves."""

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(_shared, handler(kind))


LIFE_CHECK = "life-check"
"""Start of the ids of life checks: trials outside of the plan. They repeat a stimulus to which a device has reacted, to
see whether it is alive."""
LIFE_CHECK_BY = "the life check"
"""Who asks for the re-runs of takes that are not proven, as the rows record it."""
NOT_PROVEN = "not_proven"
"""Cause of a take without attempts that replaces the previous take, in which nothing shows that the device listened."""


class Outcome(StrEnum):
    """How an attempt or a trial ended.

    RESPONDED  recognised (or not assessed) and answered     NO_WAKE      the device did not wake
    MISHEARD   it understood something else                  NO_RESPONSE  it woke or may have, and said nothing
    LATE       recognised and answered after the time limit  INTERRUPTED  link, sound or engine was lost
    INCONCLUSIVE  an answer, but no evidence of recognition and nobody to ask
    SKIPPED / ABORTED  by the operator, because the bench lacks something, or because the test is decided
    UNDERSTOOD  an understand trial that succeeded without a response, which it does not need
    COUNTED  a wake, command or ambient trial that was heard in full; what it counts as is decided for each device
    """

    RESPONDED = "responded"
    LATE = "late"
    MISHEARD = "misheard"
    NO_WAKE = "no_wake"
    NO_RESPONSE = "no_response"
    INTERRUPTED = "interrupted"
    INCONCLUSIVE = "inconclusive"
    SKIPPED = "skipped"
    ABORTED = "aborted"
    COUNTED = "counted"
    UNDERSTOOD = "understood"

    @property
    def answered(self) -> bool:
        """True when there is a first response for a rater to judge."""
        return self in (Outcome.RESPONDED, Outcome.LATE)


class Recognition(StrEnum):
    """Whether the query was recognised, as far as there is evidence; never guessed."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    NOT_ASSESSED = "not_assessed"


class EvidenceSource(StrEnum):
    """Who provided evidence: the device's own reports, the operator, or nobody."""

    DEVICE = "device"
    OPERATOR = "operator"
    NONE = "none"


def trials_in_words(kinds: Iterable[TrialKind]) -> str:
    """The size of a plan: `5 trials and 2 probes`."""
    counts = Counter(kinds)
    probes = counts.pop(TrialKind.PROBE, 0)
    trials_text = counted(counts.total(), "trial")
    return f"{trials_text} and {counted(probes, 'probe')}" if probes else trials_text


@frozen
class Target:
    """A device that listens in a trial.

    - connection: id of its first source.
    - also: ids of its further sources. Wake events of different sources within merge_within_s are one event.
    - driver: name of the connection's driver, which labels the first source in tables.
    - player: id of the equipment that brings it the sound: a loudspeaker, or its connection.
    - reports: kinds of observations that its sources report.
    - listening_states: a status with one of these states proves that it listened at that moment.
    """

    device: str
    connection: str
    player: str
    reports: tuple[ObservationKind, ...] = ()
    listening_states: tuple[DeviceState, ...] = ()
    also: tuple[str, ...] = ()
    merge_within_s: float = 0.0
    driver: str = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """Ids of the equipment that reports about it; () if none does."""
        return (self.connection, *self.also) if self.connection else self.also

    def label(self, source: str) -> str:
        """The name of a source in tables: `led`; for the connection, its driver."""
        return (self.driver or "connection") if source == self.device else source.removeprefix(f"{self.device}.")

    @property
    def chimes(self) -> bool:
        """Whether a microphone hears its chimes, so that sound lost there may have held its wake event."""
        return f"{self.device}.{EARCON}" in self.sources

    @property
    def injected(self) -> bool:
        """Whether the sound reaches it over its connection, past its microphones."""
        return self.player == self.connection


@frozen
class ListeningSpec:
    """What a wake, command or ambient trial is beyond its sound.

    - targets: every device that listens, each counted separately. Devices with the same player hear the same sound.
    - lead_in_s, tail_s: length of the sound before the phrase and after the last word, in the stimulus.
    - phrase: the phrase for which a wake event is expected; "" in ambient trials.
    - source: what the ambient sound is made of, for tables and the log; "" in other trials.
    - probe_every_s: length of ambient sound between two probes, in ambient trials and probes; 0 if there are no probes.
    """

    kind: TrialKind
    targets: Annotated[tuple[Target, ...], Interned()]
    settings: Annotated[WakeSettings, Interned()]
    lead_in_s: float = 0.0
    tail_s: float = 0.0
    phrase: str = ""
    source: str = ""
    probe_every_s: float = 0.0

    @property
    def players(self) -> tuple[str, ...]:
        """Ids of the equipment that plays the sound, each once, in the order of the targets."""
        return tuple(dict.fromkeys(target.player for target in self.targets))


@frozen
class MemoryPart:
    """A part of a context-memory probe: the trial that primes the device, or one that says the follow-up.

    - primed_by: id of the trial that primes; "" if this is that trial.
    - wait_s: planned wait, from the last sound of the answer to the prime until the follow-up starts. The attempt's row
      has the real wait.
    - shows, forgets: phrases in an answer that remembers, and in one that does not; see `MemorySpec`.
    """

    primed_by: str = ""
    wait_s: float = 0.0
    shows: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()


@frozen
class Trial:
    """One planned trial; `id` is unique in the session and stable: the same scenario, bench and seed give the same."""

    id: str
    number: int
    """Counts from 1, in the order of playing."""
    template: str
    """Id of its entry under `trials:` in the scenario."""
    query_id: str
    device: str
    loudspeaker: str
    """Id of the bench's equipment that plays it."""
    recipe: Annotated[StimulusRecipe, Interned()]
    reference: str
    alternatives: tuple[str, ...]
    recognised: Annotated[RecognitionRule, Interned()]
    evidence: Evidence
    reprompt: Annotated[RepromptRule, Interned()]
    close_dialogue: CloseDialogue | None
    conditions: Annotated[tuple[tuple[str, str], ...], Interned()] = ()
    """(matrix axis, label), in the matrix's order."""
    query_class: str = ""
    core_capability: bool = False
    note: str = ""
    microphone: str = ""
    """Id of the equipment that hears the device; "" when there is none."""
    connection: str = ""
    """Id of the equipment that carries the device's own reports; "" when there is none."""
    reports: tuple[ObservationKind, ...] = ()
    """Kinds of observations that the device's sources report."""
    wake_phrases: tuple[str, ...] = ()
    """The device's wake phrases, which are removed from the front of its transcripts."""
    listening: Annotated[ListeningSpec | None, Interned()] = None
    """None if one device answers a query. Otherwise `device` and `loudspeaker` are the first target's, and attempts end
    as COUNTED or INTERRUPTED."""
    effect: EffectCheck | None = None
    memory: MemoryPart | None = None
    expects: ExpectedFrame | None = None
    """The intents and slots that the device should understand; None: not specified."""
    responds: bool = True
    """Whether its device has a voice, so that the trial waits for a response."""
    settings: tuple[tuple[str, str], ...] = ()
    """(name, value) of device settings during the trial. All others have their values from the start of the session."""
    also: tuple[str, ...] = ()
    """Ids of further sources of reports about the device."""
    stands: tuple[tuple[str, str], ...] = ()
    """(id, value) of the stands that are moved before it."""
    power_cycle: int = 0
    """Its devices are power cycled before it if they have played this many trials since the last power cycle; 0:
    never."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Ids of the equipment that reports about its device; () if none does."""
        return (self.connection, *self.also) if self.connection else self.also

    @property
    def condition(self) -> str:
        """Its conditions in one line, not sanitised: `voice=anna noise=pink_5_dB`; "" for none."""
        return " ".join(f"{axis}={label}" for axis, label in self.conditions)

    def needs_condition(self, groupings: Iterable[str]) -> bool:
        """Whether its condition says more than any single one of these groupings.

        It does if it has several axes, or an axis that is not among the groupings.
        """
        names = set(map(str, groupings))
        return len(self.conditions) > 1 or any(axis not in names for axis, _ in self.conditions)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The devices that it is about: those that listen, or the one that answers the query."""
        if self.listening is not None:
            return self.listening.targets
        return (Target(self.device, self.connection, self.loudspeaker, self.reports, also=self.also),)

    @property
    def kind(self) -> TrialKind:
        """What it is for; the plan does not state it, since it follows from what the trial has."""
        if self.listening is not None:
            return self.listening.kind
        if self.memory is not None:
            return TrialKind.MEMORY
        return TrialKind.QUERY if self.expects is None else TrialKind.UNDERSTAND

    @property
    def speaker(self) -> str:
        """Who speaks: the talker that a list of recordings names, else the voice; "" where the list names none."""
        listed_talker = dict(self.conditions).get("talker")
        if listed_talker:
            return listed_talker
        source = self.recipe.spoken_by
        return "" if isinstance(source, Recording) else source.label()

    @property
    def talker(self) -> str:
        """Name of the person who says it at the bench; "" if it is played."""
        voice = self.recipe.spoken_by
        if isinstance(voice, VoiceSpec) and voice.is_person and self.kind is not TrialKind.AMBIENT:
            return voice.name
        return ""

    @property
    def recording(self) -> str:
        """The name of the recording that is played, without its folder; "" where a voice speaks."""
        source = self.recipe.spoken_by
        return PurePath(source.path).name if isinstance(source, Recording) else ""

    @property
    def until_understood(self) -> bool:
        """Whether it is repeated until its intents and slots are understood, else until its words are recognised."""
        return self.expects is not None and self.reprompt.until is not RepeatUntil.RECOGNISED

    @property
    def players(self) -> tuple[str, ...]:
        """Ids of the equipment that plays its sound, without loudspeakers that play only noise."""
        return (self.loudspeaker,) if self.listening is None else self.listening.players

    @property
    def is_prime(self) -> bool:
        """Whether it primes the device in a memory probe."""
        return self.memory is not None and not self.memory.primed_by

    @property
    def is_follow_up(self) -> bool:
        """Whether it asks the follow-up in a memory probe."""
        return self.memory is not None and bool(self.memory.primed_by)

    @property
    def noise_players(self) -> tuple[str, ...]:
        """Ids of loudspeakers that play nothing but noise."""
        return () if self.recipe.noise is None else tuple(player for player, _ in self.recipe.noise.players)
