"""The keys of a trial, and of what ambient sound is made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.base.file_words import Id, Spoken, Text, word
from harness.base.findings import Keys
from harness.model.scenario import Evidence, Route, TrialKind
from harness.scenario.asking_file import CloseDialogueKeys, GapMs, LevelDbfs, PathText, RepromptKeys, Voice
from harness.scenario.effect_file import EffectKeys
from harness.scenario.expects_file import ExpectsKeys
from harness.scenario.memory_file import Waits

WrittenKind = Literal[
    TrialKind.QUERY,
    TrialKind.WAKE,
    TrialKind.COMMAND,
    TrialKind.AMBIENT,
    TrialKind.MEMORY,
    TrialKind.UNDERSTAND,
]


class SourceKeys(Keys):
    """A source of ambient sound: recordings, noise or texts."""

    id: Id | None = Field(default=None, description="Its name in tables; without it, what it is made of.")
    recordings: PathText | list[PathText] | None = Field(
        default=None, description="Files, folders or patterns such as tv/*.flac; mono."
    )
    noise: Literal["pink", "white"] | None = Field(default=None, description="Generated noise: pink or white.")
    texts: list[Spoken] | None = Field(default=None, min_length=1, description="Spoken one after another, shuffled.")
    voices: list[Voice] | None = Field(default=None, min_length=1, description="Who speaks the texts.")
    share: float = Field(default=1.0, gt=0, le=1000, description="Part of the time, relative to the others. Default 1.")


class ProbeKeys(Keys):
    """A wake phrase around and within ambient sound, which proves that devices listen."""

    every_s: float = Field(ge=1, le=86_400, description="At most so much ambient sound between two probes, s.")
    phrase: Spoken | None = Field(default=None, description="What wakes them; without it, their first wake phrase.")
    voice: Voice | None = Field(default=None, description="Who says it: one that wakes them every time.")
    recording: PathText | None = Field(default=None, description="A recording of the phrase instead of a voice.")
    level_dbfs: LevelDbfs | None = Field(default=None, description="How loud. Default: as in defaults.")
    tail_s: float = Field(
        default=1.5, ge=0, le=600, description="Sound after it, in which a device comes to rest, s. Default 1.5."
    )


class TrialKeys(Keys):
    """A trial: a query asked of one device, a wake phrase or a command for several, or ambient sound."""

    id: Id | None = Field(default=None, description="Name of the trial; without it, the query's.")
    kind: Annotated[WrittenKind, word(TrialKind, TrialKind.PROBE)] = Field(
        default=TrialKind.QUERY, description="query (the default), understand, wake, command, ambient or memory."
    )
    query: str | None = Field(
        default=None, description="The id of a stimulus: what is asked or commanded, and what primes a memory."
    )
    repeat: int = Field(default=1, ge=1, le=10_000, description="How many trials of this kind are run. Default 1.")
    device: Id | None = Field(default=None, description="A device of the bench; without it, the bench's first.")
    wake: bool = Field(default=True, description="Whether the wake phrase is spoken before the query. Default true.")
    voice: Voice | None = Field(default=None, description="A named voice, or a voice.")
    level_dbfs: LevelDbfs | None = Field(default=None, description="As in defaults.")
    gap_ms: GapMs | None = Field(default=None, description="As in defaults.")
    evidence: Annotated[Evidence, word(Evidence)] | None = Field(default=None, description="As in defaults.")
    reprompt: RepromptKeys | None = Field(
        default=None, description="As in defaults; what is not given here is taken from there."
    )
    close_dialogue: CloseDialogueKeys | None = Field(default=None, description="As in defaults.")
    query_class: Text = Field(default="", description="Group of queries, for tables (clock, lists, …).")
    core_capability: bool = Field(
        default=False, description="Whether every device must be able to answer it. Default false."
    )
    note: Text = Field(default="", description="For people; kept in the log.")
    effect: EffectKeys | None = Field(default=None, description="What it should bring about, and who can tell.")
    expects: ExpectsKeys | None = Field(
        default=None, description="What the device should understand: intents, and slots where they are looked at."
    )
    devices: list[Id] | None = Field(
        default=None,
        min_length=1,
        description="Who listens in wake, command and ambient trials; without it, all that report wake events.",
    )
    route: Annotated[Route, word(Route)] = Field(
        default=Route.AUTO,
        description="How the sound of wake, command, ambient and understand trials reaches devices: auto (over the "
        "wire if possible), loudspeaker, injection.",
    )
    phrase: Spoken | None = Field(default=None, description="What wakes them; without it, their first wake phrase.")
    recordings: PathText | list[PathText] | None = Field(
        default=None,
        description="Recordings of the wake phrase instead of a voice: files, folders, patterns, or a list (.csv) with "
        "the columns recording, phrase_end_ms and any others.",
    )
    level: Literal["as_recorded"] | None = Field(
        default=None, description="as_recorded: play recordings at their own level, whole, instead of at level_dbfs."
    )
    lead_in_s: Annotated[float, Field(ge=0, le=600)] | None = Field(
        default=None, description="Sound before the phrase, s. Default: the refractory time."
    )
    tail_s: Annotated[float, Field(ge=0, le=600)] | None = Field(
        default=None, description="Sound after the last word, s. Default 1.5."
    )
    hours: Annotated[float, Field(gt=0, le=10_000)] | None = Field(default=None, description="Of ambient sound, h.")
    segment_s: Annotated[float, Field(ge=1, le=600)] | None = Field(
        default=None, description="Length of the trials that an ambient soak is cut into, s. Default 60."
    )
    sources: list[SourceKeys] | None = Field(
        default=None, min_length=1, description="What the ambient sound is made of."
    )
    probe: ProbeKeys | None = Field(
        default=None, description="Wake phrases that prove that devices listen which do not tell it themselves."
    )
    follow_up: str | None = Field(
        default=None, description="The id of a stimulus that makes sense only to a device which remembers the query."
    )
    waits_s: Waits | None = Field(
        default=None, description="Silence before the follow-up, s: a list, or {from: 1, to: 60, count: 8}."
    )
    shows: list[Spoken] | None = Field(
        default=None, min_length=1, description="Words of which some are in an answer that remembers."
    )
    forgets: list[Spoken] | None = Field(
        default=None,
        min_length=1,
        description="Words of which some are in an answer that has forgotten; without it, any other answer has.",
    )
