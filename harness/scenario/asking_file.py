"""The keys of how a query is said: voices, noise, repetition, and how dialogues end."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from harness.base.file_words import Language, Spoken, Text, word
from harness.base.findings import Keys
from harness.model.scenario import Until
from harness.model.stimulus import NoiseKind

LevelDbfs = Annotated[float, Field(ge=-90, le=0)]
GapMs = Annotated[int, Field(ge=0, le=10_000)]
Seed = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
PerHour = Annotated[float, Field(ge=0)]
Wer = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
PathText = Annotated[Text, Field(description="A path in the scenario's folder, or root:path in a named asset root.")]


class VoiceKeys(Keys):
    """A voice."""

    engine: str = Field(default="espeak", description="Text-to-speech engine, one of `harness voices`.")
    name: Text = Field(default="en-us", description="One of the engine's voices.")
    rate_wpm: int | None = Field(
        default=None, ge=50, le=500, description="Words a minute; without it the voice's own rate."
    )
    pitch: int | None = Field(default=None, ge=0, le=99, description="0-99; without it the voice's own pitch (50).")
    language: Language = Field(default="en-US", description="Language tag (BCP 47).")


def _mapping_or_name(written: Any) -> str:
    return "<mapping>" if isinstance(written, dict | VoiceKeys) else "<name>"


Voice = Annotated[
    Annotated[str, Tag("<name>")] | Annotated[VoiceKeys, Tag("<mapping>")], Discriminator(_mapping_or_name)
]


class NoiseKeys(Keys):
    """Noise under a stimulus."""

    kind: Annotated[NoiseKind, word(NoiseKind)] = Field(description="white, pink or recording.")
    snr_db: float = Field(ge=-40, le=100, description="Active speech level less noise level, dB.")
    recording: PathText | None = Field(default=None, description="Sound file of the noise; for kind recording only.")


class RepromptKeys(Keys):
    """When a query is said again, and for how long an answer is waited for."""

    max_attempts: int | None = Field(
        default=None, ge=1, le=100, description="How often a query is said at most. Default 3."
    )
    context_wait_s: float | None = Field(
        default=None,
        ge=0,
        le=600,
        description="Wait before it is said again, so that the device has forgotten, s. Default 5.",
    )
    response_timeout_s: float | None = Field(
        default=None,
        gt=0,
        le=600,
        description="A response must begin within this time of the query's end, s. Default 8.",
    )
    response_max_s: float | None = Field(
        default=None, gt=0, le=600, description="A response is cut after this, s. Default 30."
    )
    end_silence_ms: int | None = Field(
        default=None,
        ge=50,
        le=30_000,
        description="A response has ended when nothing was said for so long, ms. Default 800.",
    )
    evidence_wait_s: float | None = Field(
        default=None, ge=0, le=600, description="Wait for the device's own word on what it heard, s. Default 2."
    )
    operator_wait_s: float | None = Field(
        default=None, ge=0, le=86_400, description="Wait for the operator's answer, s. Default 60."
    )
    max_interruptions: int | None = Field(
        default=None, ge=0, le=1000, description="A trial is given up after so many interruptions. Default 5."
    )
    until: Annotated[Until, word(Until)] | None = Field(
        default=None,
        description="It is said again until its words are recognised, or its intents and slots understood. Default: "
        "understood in trials of that kind, else recognised.",
    )


class CloseDialogueKeys(Keys):
    """How a dialogue that is still open is ended: `say` or `wait_s`."""

    say: Spoken | None = Field(default=None, description="Text that the trial's voice says, without a wake phrase.")
    wait_s: float | None = Field(default=None, ge=0, le=600, description="Silence until the device gives up, s.")
