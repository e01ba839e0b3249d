"""A planned trial, and how it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePath
from typing import Annotated, Any

from harness.model.bench import ObservationKind
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
    """Beside the type of a field: equal values that are read from JSON become one object. A plan repeats itself."""

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(_shared, handler(kind))


LIFE_CHECK = "life-check"
"""Ids of trials that no plan has begin so: what a device reacted to before, said again to see whether it is alive."""
LIFE_CHECK_BY = "the life check"
"""Who asks for the takes again that are not proven, in the rows."""
NOT_PROVEN = "not_proven"
"""Cause code of a take without attempts, which replaces the one before: nothing shows that the device was listening."""


class Outcome(StrEnum):
    """How an attempt or a trial ended.

    RESPONDED  recognised (or not assessed) and answered     NO_WAKE      the device did not wake
    MISHEARD   it understood something else                  NO_RESPONSE  it woke or may have, and said nothing
    LATE       recognised and answered after the time limit  INTERRUPTED  link, sound or engine was lost
    INCONCLUSIVE  an answer, but no evidence of recognition and nobody to ask
    SKIPPED / ABORTED  by the operator, because the bench lacks something, or because the test is decided
    UNDERSTOOD  an understand trial that needs no saying again (as RESPONDED), and no response was heard, nor is needed
    COUNTED  a wake, command or ambient trial that was heard in full; what it counts as is worked out for each device
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
    """Was the query recognised, as far as evidence says; never guessed."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    NOT_ASSESSED = "not_assessed"


class EvidenceSource(StrEnum):
    DEVICE = "device"
    OPERATOR = "operator"
    NONE = "none"


def trials_in_words(kinds: Iterable[TrialKind]) -> str:
    """The size of a plan: `5 trials and 2 probes`."""
    counts = Counter(kind is TrialKind.PROBE for kind in kinds)
    return counted(counts[False], "trial") + (f" and {counted(counts[True], 'probe')}" if counts[True] else "")


@frozen
class Target:
    """A device that listens in a trial. player: id of what brings it the sound, a loudspeaker or its connection.

    connection: id of its first source. also: ids of its further sources. Wake events of different sources within
    merge_within_s are one event. driver: of the connection, which names it beside other sources.
    listening_states: a status with one of these states proves that it listened at that moment.
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
        """Ids of what reports for it; () without any."""
        return (self.connection, *self.also) if self.connection else self.also

    def label(self, source: str) -> str:
        """The name of a source in tables: `led`; for the connection, its driver."""
        return (self.driver or "connection") if source == self.device else source.removeprefix(f"{self.device}.")

    @property
    def injected(self) -> bool:
        """True when the sound reaches it over its connection, past its microphones."""
        return self.player == self.connection


@frozen
class ListeningSpec:
    """What a wake, command or ambient trial is beyond its sound.

    targets: every device that listens, each counted for itself. Devices with the same player share one sound.
    lead_in_s, tail_s: sound before the phrase and after the last word, part of the stimulus. phrase: what a wake event
    is expected for; "" in ambient trials. source: what the ambient sound is made of, for tables and the log.
    probe_every_s: ambient sound between two probes, in those trials and in probes; 0 where there are none.
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
        """Ids of what plays the sound, each once, in the order of the targets."""
        return tuple(dict.fromkeys(target.player for target in self.targets))


@frozen
class MemoryPart:
    """A part of a context-memory probe. primed_by: id of the trial that primes; "" when it is that one itself.

    wait_s: planned, from the last sound of the answer to the prime to the start of the follow-up. The real wait is in
    the attempt's row. shows, forgets: as in `MemorySpec`.
    """

    primed_by: str = ""
    wait_s: float = 0.0
    shows: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()


@frozen
class Trial:
    """One planned trial; `id` is unique in the session and stable: the same scenario, bench and seed give the same.

    - conditions: matrix axis → label, in the matrix's order. number counts from 1 in the order of playing.
    - loudspeaker: id of the bench's equipment that plays it.
    - microphone, connection: ids of the equipment that hears the device and that carries its own reports ("" when there
      is none).
    - also: further sources of its reports.
    - reports: what those are evidence for.
    - wake_phrases: the device's, removed from the front of its transcripts.
    - listening: None for a query. Otherwise `device` and `loudspeaker` are the first target's, and attempts end as
      COUNTED or INTERRUPTED.
    - expects: what the device should understand; None: not specified.
    - responds: its device has a voice, so that the trial waits for a response.
    - settings: of its devices while it is played, name and value. All others have the values that they had at its
      start.
    - stands: ids of the stands that are moved before it, each with the value that it is set to.
    - power_cycle: its devices are power cycled before it if they have played this many trials since; 0: never.
    """

    id: str
    number: int
    template: str
    query_id: str
    device: str
    loudspeaker: str
    recipe: Annotated[StimulusRecipe, Interned()]
    reference: str
    alternatives: tuple[str, ...]
    recognised: Annotated[RecognitionRule, Interned()]
    evidence: Evidence
    reprompt: Annotated[RepromptRule, Interned()]
    close_dialogue: CloseDialogue | None
    conditions: Annotated[tuple[tuple[str, str], ...], Interned()] = ()
    query_class: str = ""
    core_capability: bool = False
    note: str = ""
    microphone: str = ""
    connection: str = ""
    reports: tuple[ObservationKind, ...] = ()
    wake_phrases: tuple[str, ...] = ()
    listening: Annotated[ListeningSpec | None, Interned()] = None
    effect: EffectCheck | None = None
    memory: MemoryPart | None = None
    expects: ExpectedFrame | None = None
    responds: bool = True
    settings: tuple[tuple[str, str], ...] = ()
    also: tuple[str, ...] = ()
    stands: tuple[tuple[str, str], ...] = ()
    power_cycle: int = 0

    @property
    def sources(self) -> tuple[str, ...]:
        """Ids of what reports for its device; () without any."""
        return (self.connection, *self.also) if self.connection else self.also

    @property
    def condition(self) -> str:
        """Its conditions as people read them, not escaped: `voice=anna noise=pink_5_dB`; "" for none."""
        return " ".join(f"{axis}={label}" for axis, label in self.conditions)

    def needs_condition(self, groupings: Iterable[str]) -> bool:
        """Whether its condition says more than one of these groupings: several axes, or one that is not among them."""
        names = set(map(str, groupings))
        return len(self.conditions) > 1 or any(axis not in names for axis, _ in self.conditions)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The devices that it is about: those that listen, or the one that is asked."""
        if self.listening is not None:
            return self.listening.targets
        return (Target(self.device, self.connection, self.loudspeaker, self.reports, also=self.also),)

    @property
    def kind(self) -> TrialKind:
        if self.listening is not None:
            return self.listening.kind
        if self.memory is not None:
            return TrialKind.MEMORY
        return TrialKind.QUERY if self.expects is None else TrialKind.UNDERSTAND

    @property
    def speaker(self) -> str:
        """Who speaks: the talker that a list of recordings names, else the voice; "" where the list names none."""
        source = self.recipe.spoken_by
        return dict(self.conditions).get("talker") or ("" if isinstance(source, Recording) else source.label())

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
        """Whether it is said again until its frame is understood; else until its words are recognised."""
        return self.expects is not None and self.reprompt.until is not RepeatUntil.RECOGNISED

    @property
    def players(self) -> tuple[str, ...]:
        """Ids of what plays its sound, without noise beside it."""
        return (self.loudspeaker,) if self.listening is None else self.listening.players

    @property
    def noise_players(self) -> tuple[str, ...]:
        """Ids of loudspeakers that play nothing but noise."""
        return () if self.recipe.noise is None else tuple(player for player, _ in self.recipe.noise.players)
