"""The keys of scenario files, with their descriptions and bounds."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from harness.base.findings import (
    MAX_TEXT,
    Id,
    Keys,
    Language,
    Spoken,
    Text,
    enum_validator,
    matching,
    optional,
    preset,
    validation_error,
)
from harness.model.scenario import Evidence, Need, Normalisation, Order, RepeatUntil, Route, TrialKind
from harness.model.stimulus import NoiseKind
from harness.model.understanding import intent_set
from harness.scenario.policies import ProcedureKeys, StoppingKeys
from harness.scenario.sound_keys import AngleDeg, ChannelAxesKeys, ChannelExcludeKeys, DistanceM, PathText, RoomKeys

LevelDbfs = Annotated[float, Field(ge=-90, le=0)]
LevelSpl = Annotated[float, Field(ge=0, le=130)]
GapMs = Annotated[int, Field(ge=0, le=10_000)]
Seed = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
PerHour = Annotated[float, Field(ge=0)]
Wer = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class VoiceKeys(Keys):
    """A voice, or a person who speaks at the bench."""

    talker: Text | None = optional(
        "Name of a person who speaks the text during the run, instead of an engine: lowercase letters, digits, - and _."
    )
    engine: str = preset("espeak", "Text-to-speech engine; `harness admin voices list` shows the installed ones.")
    name: Text = preset("en-us", "Name of one of the engine's voices.")
    rate_wpm: int | None = optional("Words per minute. Default: the voice's own rate.", ge=50, le=500)
    pitch: int | None = optional("Pitch, 0-99. Default: the voice's own pitch (50).", ge=0, le=99)
    language: Language = preset("en-US", "Language tag (BCP 47).")


Voice = Annotated[
    Annotated[str, Tag("<name>")] | Annotated[VoiceKeys, Tag("<mapping>")],
    Discriminator(lambda value: "<mapping>" if isinstance(value, dict | VoiceKeys) else "<name>"),
]


class NoiseKeys(Keys):
    """Noise under a stimulus. Its level is one of snr_db, level_dbfs and level_spl."""

    kind: Annotated[NoiseKind, enum_validator(NoiseKind)] = Field(description="white, pink or recording.")
    snr_db: float | None = optional("Active speech level minus noise level, dB.", ge=-40, le=100)
    level_dbfs: LevelDbfs | None = optional("Level of the noise itself, dBFS (RMS).")
    level_spl: LevelSpl | None = optional(
        "Level of the noise itself, dB SPL, with the place and the weighting of the loudspeaker's calibration."
    )
    recording: PathText | None = optional("Sound file of the noise, for kind recording only.")
    weighting: Literal["A", "Z"] = preset(
        "Z", "Weighting of snr_db (both levels) or level_dbfs: A (IEC 61672), or Z for none. A attenuates bass."
    )
    positions: list[Id] = preset(
        [],
        "Positions of the loudspeakers that play the noise in wake and command trials. Default: the speech's position.",
    )
    ramp_s: float = preset(
        0.0, "Time over which the noise rises before the first word, and falls after the last, s.", ge=0, le=60
    )


class OpeningKeys(Keys):
    """What is said before a phrase, so that the device has just woken, or speaks or plays while it is called."""

    pause_s: float = Field(ge=0.1, le=60, description="Time from the last word of the opening to the phrase, s.")
    say: Spoken | None = optional("Request that follows the wake phrase. Default: the wake phrase alone.")
    then: Spoken | None = optional("Words that end the trial, after the wake phrase, such as stop. Default: nothing.")
    level_dbfs: LevelDbfs | None = optional("Level of `say` and `then`, dBFS. Default: the level in `defaults`.")
    level_spl: LevelSpl | None = optional("Level of `say` and `then`, dB SPL. Default: the level in `defaults`.")
    voice: Voice | None = optional("Voice for `say` and `then`. Default: the trial's voice.")
    sounds: bool | None = optional(
        "The attempt counts only if the microphone hears the device in the pause. Default: true with `say`."
    )


class RepromptKeys(Keys):
    """When the harness repeats a query, and how long it waits for an answer."""

    max_attempts: int | None = optional("Maximum number of times a query is played. Default 3.", ge=1, le=100)
    context_wait_s: float | None = optional(
        "Wait before a repetition, so that the device has forgotten the dialogue, s. Default 5.", ge=0, le=600
    )
    response_timeout_s: float | None = optional(
        "Time from the end of the query within which a response must begin, s. Default 8.", gt=0, le=600
    )
    response_max_s: float | None = optional("Time after which a response is cut off, s. Default 30.", gt=0, le=600)
    end_silence_ms: int | None = optional(
        "Silence after which a response counts as ended, ms. Default 800.", ge=50, le=30_000
    )
    evidence_wait_s: float | None = optional(
        "Time to wait for the device's own report of what it heard, s. Default 2.", ge=0, le=600
    )
    operator_wait_s: float | None = optional("Time to wait for the operator's answer, s. Default 60.", ge=0, le=86_400)
    max_interruptions: int | None = optional(
        "Interruptions after which the harness gives up on a trial. Default 5.", ge=0, le=1000
    )
    speak_within_s: float | None = optional(
        "Time within which a talker must begin to speak before the prompt is shown again, s. Default 20.", ge=1, le=600
    )
    max_prompts: int | None = optional("Maximum number of times a talker is prompted. Default 3.", ge=1, le=100)
    until: Annotated[RepeatUntil, enum_validator(RepeatUntil)] | None = optional(
        "Repeat the query until its words are recognised, or until its intents and slots are understood. "
        "Default: understood in trials of kind understand, else recognised."
    )


class CloseDialogueKeys(Keys):
    """How the harness ends a dialogue that is still open: `say` or `wait_s`."""

    say: Spoken | None = optional("Text that the trial's voice says, without a wake phrase.")
    wait_s: float | None = optional("Silence after which the device gives up, s.", ge=0, le=600)


def _check_intents(text: str) -> str:
    if not intent_set(text):
        raise validation_error(
            f"{text!r} does not name an intent", "Separate names with `#`, such as `set_timer#add_to_list`"
        )
    return text


Intents = Annotated[Text, AfterValidator(_check_intents)]


class SlotKeys(Keys):
    """A slot, for a list in which a concept occurs twice."""

    concept: Text = Field(description="Name of the slot, as the device or its profile reports it.")
    value: Text | None = optional("Value of the slot. Default: any value.")


def _list_or_one_tag(value: Any) -> str:
    return "<list>" if isinstance(value, list) else "<one>"


class ExpectsKeys(Keys):
    """What a device should understand from a query."""

    intents: Annotated[
        Annotated[Intents, Tag("<one>")] | Annotated[list[Intents], Tag("<list>")], Discriminator(_list_or_one_tag)
    ] = Field(description="All intents that the device should report: [a, b] or a#b. [] for none.")
    slots: (
        Annotated[
            Annotated[dict[Text, Text | None], Tag("<one>")] | Annotated[list[SlotKeys], Tag("<list>")],
            Discriminator(_list_or_one_tag),
        ]
        | None
    ) = optional(
        "All slots that the device should report, {concept: value}. null: any value. {}: no slots. "
        "If a concept occurs twice: a list of {concept, value}. Default: slots are not checked."
    )


TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def _check_value(value: object) -> object:
    if isinstance(value, str) and (len(value) > MAX_TEXT or any(ord(letter) < 0x20 for letter in value)):
        raise validation_error(f"the value is not one line of at most {MAX_TEXT} characters", "Write a shorter line")
    return value


TimeOfDay = Annotated[
    str,
    matching(TIME_OF_DAY, "a time of day", "Write hours and minutes from 00:00 to 23:59, such as 01:00"),
    Field(json_schema_extra={"pattern": f"^{TIME_OF_DAY.pattern}$"}),
]
Value = Annotated[str, BeforeValidator(_check_value)]


class EffectKeys(Keys):
    """The effect that a query should have, and how it is checked: by the device's own state, or by a person."""

    wanted: Text = Field(description="The expected effect in words, for people: a ten-minute timer is running.")
    state: dict[Text, Value | None] = preset(
        {}, 'State that the device must report, all of it, name: value. null: any value. "": the item no longer exists.'
    )
    within_s: float = preset(
        10.0,
        "Time limit for the report of the state, from the end of the query, s; at least until the response ends.",
        gt=0,
        le=600,
    )
    question: Text | None = optional("Question for the operator. Default: the harness asks no one.")
    after_s: float | None = optional(
        "Time after the response at which a person can check the effect, s. Default: immediately.", gt=0, le=604_800
    )
    at: TimeOfDay | None = optional(
        "Local time of day at which a person can check the effect, such as 01:00: the next one after the response."
    )


def _trials_per_cycle(value: Any) -> int:
    """Number of trials from one power cycle of a device to the next; 0 for never."""
    match value:
        case "never":
            return 0
        case "trial":
            return 1
        case str() if (match := re.fullmatch(r"every ([1-9]\d{0,5})", value)) is not None:
            return int(match[1])
    raise validation_error("`power_cycle` must be `never`, `trial` or `every N`", "Write, for example, `every 20`")


PowerCycle = Annotated[
    int,
    BeforeValidator(_trials_per_cycle),
    Field(json_schema_extra={"type": "string", "pattern": r"^(never|trial|every [1-9]\d{0,5})$"}),
]

MAX_WAIT_S = 3600
WaitS = Annotated[float, Field(ge=0, le=MAX_WAIT_S)]


class SpreadKeys(Keys):
    """Waits in a geometric series: each is longer than the previous one by the same factor."""

    from_s: float = Field(gt=0, le=MAX_WAIT_S, alias="from", description="The shortest wait, s.")
    to: float = Field(gt=0, le=MAX_WAIT_S, description="The longest wait, s.")
    count: int = Field(ge=2, le=100, description="Number of waits.")


Waits = Annotated[
    Annotated[list[WaitS], Tag("<list>"), Field(min_length=1)] | Annotated[SpreadKeys, Tag("<mapping>")],
    Discriminator(lambda value: "<mapping>" if isinstance(value, dict | SpreadKeys) else "<list>"),
]


WrittenKind = Literal[
    TrialKind.QUERY, TrialKind.WAKE, TrialKind.COMMAND, TrialKind.AMBIENT, TrialKind.MEMORY, TrialKind.UNDERSTAND
]


class SourceKeys(Keys):
    """A source of ambient sound: recordings, noise or texts."""

    id: Id | None = optional("Name in tables. Default: the kind of source.")
    recordings: PathText | list[PathText] | None = optional("Mono files, folders or patterns such as tv/*.flac.")
    noise: Literal["pink", "white"] | None = optional("Generated noise: pink or white.")
    texts: list[Spoken] | None = optional(
        "Texts that the voices speak, one after another, in random order.", min_length=1
    )
    voices: list[Voice] | None = optional("Voices that speak the texts. Default: the default voice.", min_length=1)
    share: float = preset(1.0, "Share of the time, relative to the other sources.", gt=0, le=1000)


class ProbeKeys(Keys):
    """A wake phrase before, within and after ambient sound, which proves that devices listen."""

    every_s: float = Field(
        ge=1, le=86_400, description="Longest stretch of ambient sound between two probes, s; at least segment_s."
    )
    phrase: Spoken | None = optional("Wake phrase. Default: the first phrase of the devices, which must agree on it.")
    voice: Voice | None = optional("Voice that says the phrase; choose one that wakes the devices every time.")
    recording: PathText | None = optional("Recording of the phrase, instead of a voice.")
    level_dbfs: LevelDbfs | None = optional("Level of the phrase, dBFS. Default: the level in `defaults`.")
    tail_s: float = preset(1.5, "Sound after the phrase, until the device is idle again, s.", ge=0, le=600)


class TrialKeys(Keys):
    """A trial: a query for one device, a wake phrase or a command for several devices, or ambient sound."""

    id: Id | None = optional("Name of the trial. Default: the query's name, else the kind.")
    kind: Annotated[WrittenKind, enum_validator(TrialKind, TrialKind.PROBE)] = preset(
        TrialKind.QUERY, "query (the default), understand, wake, command, ambient or memory."
    )
    query: str | None = optional("Id of the stimulus to play; in memory trials, the one that sets the context.")
    repeat: int = preset(1, "Number of times to run the trial.", ge=1, le=10_000)
    device: Id | None = optional("Device on the bench. Default: the first one.")
    wake: bool = preset(True, "Play the wake phrase before the query.")
    voice: Voice | None = optional(
        "Name of a voice in `voices`, or the keys of a voice. Default: the voice in `defaults`."
    )
    level_dbfs: LevelDbfs | None = optional("Active speech level, dBFS. Default: the value in `defaults`.")
    gap_ms: GapMs | None = optional("Silence between wake phrase and query, ms. Default: the value in `defaults`.")
    evidence: Annotated[Evidence, enum_validator(Evidence)] | None = optional(
        "What decides whether the query was recognised. Default: the value in `defaults`."
    )
    reprompt: RepromptKeys | None = optional(
        "When the harness repeats the query. Default: the values in `defaults`, also for single missing keys."
    )
    close_dialogue: CloseDialogueKeys | None = optional("How an open dialogue ends. Default: as in `defaults`.")
    query_class: Text = preset("", "Group of queries for tables, such as clock.")
    core_capability: bool = preset(False, "Whether every device must be able to answer the query.")
    note: Text = preset("", "Note that is kept in the log.")
    effect: EffectKeys | None = optional("Effect that the query should have, and how it is checked.")
    expects: ExpectsKeys | None = optional("What the device should understand: intents, and slots if they are given.")
    devices: list[Id] | None = optional(
        "Devices that listen in wake, command and ambient trials. Default: all that report wake events.", min_length=1
    )
    route: Annotated[Route, enum_validator(Route)] = preset(
        Route.AUTO,
        "How sound reaches devices in wake, command, ambient and understand trials: auto (injection if "
        "the connection can, else loudspeaker), loudspeaker, injection.",
    )
    phrase: Spoken | None = optional("Wake phrase. Default: the first phrase of the devices, which must agree on it.")
    recordings: PathText | list[PathText] | None = optional(
        "Recordings of the wake phrase, instead of a voice: files, folders, patterns, or a list (.csv, .tsv, wav.scp). "
        "Its columns are recording, phrase_end_ms and any others."
    )
    level: Literal["as_recorded"] | None = optional(
        "as_recorded: play recordings whole, at their own level instead of level_dbfs."
    )
    lead_in_s: Annotated[float, Field(ge=0, le=600)] | None = optional(
        "Sound before the phrase, s. Default: the refractory time."
    )
    tail_s: Annotated[float, Field(ge=0, le=600)] | None = optional("Sound after the last word, s. Default 1.5.")
    hours: Annotated[float, Field(gt=0, le=10_000)] | None = optional("Duration of ambient sound, h.")
    segment_s: Annotated[float, Field(ge=1, le=600)] | None = optional(
        "Length of the trials into which ambient sound is split, s. Default 60."
    )
    sources: list[SourceKeys] | None = optional("Sources of the ambient sound.", min_length=1)
    probe: ProbeKeys | None = optional(
        "Wake phrases that prove that a device listens, for devices that do not report that they listen."
    )
    power_cycle: PowerCycle | None = optional("Power cycles. Default: as in `defaults`; in ambient trials, none.")
    opening: OpeningKeys | None = optional("What is said before a query, a command or a phrase. Default: nothing.")
    follow_up: str | None = optional("Id of a stimulus that makes sense only to a device that remembers the query.")
    waits_s: Waits | None = optional(
        "Silences between the end of the answer and the follow-up, s: a list, or {from: 1, to: 60, count: 8}."
    )
    shows: list[Spoken] | None = optional(
        "Words or phrases; an answer with one of them shows that the device remembers.", min_length=1
    )
    forgets: list[Spoken] | None = optional(
        "Words or phrases; an answer with one of them shows that the context is lost. Default: any other answer.",
        min_length=1,
    )


class DefaultsKeys(Keys):
    """Values for trials that do not set their own."""

    voice: Voice | None = optional("Name of a voice in `voices`, or the keys of a voice. Default: espeak, en-us.")
    level_dbfs: LevelDbfs = preset(-26.0, "Active speech level of what is played, dBFS.")
    level_spl: LevelSpl | None = optional(
        "Active speech level in dB SPL, instead of level_dbfs, at the place where the loudspeaker is calibrated."
    )
    gap_ms: GapMs = preset(250, "Silence between wake phrase and query, ms.")
    noise: NoiseKeys | None = optional("Background noise for every stimulus. Default: null, no noise.")
    room: Id | None = optional("Simulated room in which everything is spoken, one of `rooms`. Default: none.")
    distance_m: DistanceM = preset(1.0, "Distance of the talker from the device in a simulated room, m.")
    angle_deg: AngleDeg = preset(
        0.0, "Angle of the talker relative to the device's front in a simulated room, degrees; left is positive."
    )
    evidence: Annotated[Evidence, enum_validator(Evidence)] = preset(
        Evidence.AUTO, "What decides whether a query was recognised: auto, device, operator or none."
    )
    reprompt: RepromptKeys = preset(RepromptKeys(), "When the harness repeats a query, and how long it waits.")
    close_dialogue: CloseDialogueKeys | None = optional(
        "How the harness ends a dialogue that is still open. Default: null, as in the device profile, else by waiting."
    )
    between_trials_s: float = preset(1.0, "Pause between trials, s.", ge=0, le=3600)
    power_cycle: PowerCycle = preset(
        "never",
        "When the power of the devices is switched off and on before a trial: never, trial (before each), or every N.",
        validate_default=True,
    )
    life_check_after: int = preset(
        3,
        "Number of successive trials without a sign of life after which the harness makes a life check; 0: never.",
        ge=0,
        le=1000,
    )


_NORMALISATIONS = (Normalisation.VERBATIM, Normalisation.PLAIN, Normalisation.SPOKEN, Normalisation.SNOR)


def _normalisation_or_file(value: Any) -> Any:
    """The normalisation that a word names; the path of a YAML file is returned unchanged."""
    if value == Normalisation.EXPANDED_SNOR:
        problem = "`expanded_snor` is for scoring files only: devices do not report pauses and false starts"
        raise validation_error(problem, "Use `snor`")
    if value in _NORMALISATIONS:
        return Normalisation(value)
    if isinstance(value, str) and value.endswith((".yaml", ".yml")):
        return value
    raise PydanticCustomError(
        "word", "unknown word", {"choices": [*map(str, _NORMALISATIONS), "a file such as words.yaml"]}
    )


class RecognisedKeys(Keys):
    """When a transcript counts as correct."""

    normalisation: Annotated[
        Literal[Normalisation.VERBATIM, Normalisation.PLAIN, Normalisation.SPOKEN, Normalisation.SNOR]
        | Annotated[PathText, Field(json_schema_extra={"pattern": r"\.ya?ml$"})],
        BeforeValidator(_normalisation_or_file),
    ] = preset(
        Normalisation.SPOKEN,
        "verbatim, plain (ignores case and punctuation), spoken (also reads numbers as words), snor, or the "
        "path of a normalisation file such as words.yaml.",
    )
    wer: Share = preset(0.0, "Word errors allowed, as a share of the reference words, 0-1.")


class StimulusKeys(Keys):
    """A query: a text for a voice, or a recording with its transcript."""

    id: Id = Field(description="Name of the query.")
    text: Spoken | None = optional("Text that the voice says.")
    recording: PathText | None = optional("Sound file: a path in this file's folder, or root:path.")
    transcript: Spoken | None = optional("Words spoken in the recording.")
    sro: Spoken | None = optional(
        "Words spoken, in .sro conventions: instead of a transcript, or together with a text."
    )
    alternatives: list[Spoken] = Field(default_factory=list, description="Other wordings that count as recognised.")
    voice: Voice | None = optional("Voice for this query only.")


def _setting_text(value: Any) -> Any:
    """Text as the device reports it: 20, 0.5, on, or an option's own words."""
    match value:
        case bool():
            return "on" if value else "off"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
    return _check_value(value)


SettingText = Annotated[
    str, BeforeValidator(_setting_text), Field(json_schema_extra={"type": ["string", "number", "boolean"]})
]


class AxesKeys(ChannelAxesKeys):
    """The dimensions of the matrix."""

    voice: list[Voice] | None = optional("Names of voices in `voices`, or the keys of voices.", min_length=1)
    level_dbfs: list[LevelDbfs] | None = optional("Levels, dBFS.", min_length=1)
    level_spl: list[LevelSpl] | None = optional(
        "Levels, dB SPL, at the place where the loudspeaker is calibrated; not with level_dbfs.", min_length=1
    )
    gap_ms: list[GapMs] | None = optional("Gaps, ms.", min_length=1)
    position: list[Id] | None = optional("Positions of the bench's loudspeakers.", min_length=1)
    noise: list[NoiseKeys | None] | None = optional("Noises; null means quiet.", min_length=1)
    opening: list[OpeningKeys | None] | None = optional("What is said first; null means nothing.", min_length=1)
    room: list[Id | None] | None = optional("Simulated rooms, from `rooms`; null means none.", min_length=1)
    distance_m: list[DistanceM] | None = optional("Distances of the talker from the device, m.", min_length=1)
    angle_deg: list[AngleDeg] | None = optional(
        "Angles of the talker relative to the device's front, degrees; left is positive.", min_length=1
    )
    device_settings: list[dict[Text, SettingText]] | None = optional(
        "Settings of the devices, {name: value}, such as {number.gain: 20}. They apply to the trials of the cell, and "
        "the harness then restores the original ones. {}: the device's own settings. A value is a number, on, off, or "
        "an option.",
        min_length=1,
    )


class ExcludeKeys(ChannelExcludeKeys):
    """Combinations to leave out: all that match every key given here."""

    voice: Voice | None = optional("One of the axis's voices.")
    level_dbfs: LevelDbfs | None = optional("One of the axis's levels.")
    level_spl: LevelSpl | None = optional("One of the axis's levels.")
    gap_ms: GapMs | None = optional("One of the axis's gaps.")
    position: Id | None = optional("One of the axis's positions.")
    noise: NoiseKeys | None = optional("One of the axis's noises; null means quiet.")
    opening: OpeningKeys | None = optional("One of the axis's openings; null means nothing.")
    room: Id | None = optional("One of the axis's rooms.")
    distance_m: DistanceM | None = optional("One of the axis's distances.")
    angle_deg: AngleDeg | None = optional("One of the axis's angles.")
    device_settings: dict[Text, SettingText] | None = optional("One of the axis's settings.")


class MatrixKeys(Keys):
    """Every trial runs once for each combination of the axes that is not excluded."""

    axes: AxesKeys = Field(description="Values of each axis.")
    exclude: list[ExcludeKeys] = Field(default_factory=list, description="Combinations to leave out.")
    order: Annotated[Order, enum_validator(Order)] = preset(Order.LISTED, "Order of the trials: listed or shuffled.")
    seed: Seed | None = optional("Seed for the shuffle. Default: the scenario's seed.")
    group_by: list[Text] = Field(
        default_factory=list,
        description="Axes whose changes take time, the slowest first, such as [position]. Trials with the same values "
        "are played together, and `order` applies within them.",
    )


class WakeKeys(Keys):
    """How wake events are counted."""

    window_before_s: float = preset(0.1, "How long before the start of the phrase an event may come, s.", ge=0, le=10)
    window_after_s: float = preset(1.0, "How long after the end of the phrase an event may come, s.", gt=0, le=60)
    refractory_s: float = preset(
        2.0, "Time after an event within which further events count as the same one, s.", ge=0, le=60
    )
    clip_before_s: float = preset(5.0, "Length of the sound to keep before an unmatched event, s.", ge=0, le=60)
    clip_after_s: float = preset(5.0, "Length of the sound to keep after an unmatched event, s.", ge=0, le=60)
    proof_within_s: float = preset(
        15.0, "Longest time between two proofs of listening that counts as exposure, s.", gt=0, le=3600
    )
    count_in_vocabulary: bool = preset(False, "Count unmatched events in wake and command trials as false accepts too.")


class LimitsKeys(Keys):
    """Bounds on results; exit status 0 requires all of them to hold."""

    min_recognised_share: Share | None = optional("Share of the decided queries that are recognised, 0-1.")
    min_first_attempt_share: Share | None = optional(
        "Share of the decided queries that are recognised at the first attempt, 0-1."
    )
    min_answered_share: Share | None = optional(
        "Share of the decided queries that are answered, even late (and recognised, if that is assessed), 0-1."
    )
    min_effect_share: Share | None = optional("Share of the effects known at the end of the run that are correct, 0-1.")
    min_understood_share: Share | None = optional(
        "Share of the decided understand trials in which all intents and slots are correct, 0-1."
    )
    min_intent_share: Share | None = optional(
        "Share of the decided understand trials in which all intents are correct, 0-1."
    )
    max_latency_p95_ms: float | None = optional("95th percentile of the time from end of speech to response, ms.", gt=0)
    max_inconclusive: Count | None = optional("Number of inconclusive trials, for which there was no evidence.")
    max_interrupted: Count | None = optional("Number of interrupted trials.")
    max_disturbed_share: Share | None = optional(
        "Share of the attempts that the host disturbed, 0-1. Above this, the session is undecided. Default 0.1."
    )
    max_false_reject_share: Share | None = optional(
        "Share of the wake phrases that each device misses (false rejects), 0-1."
    )
    max_false_reject_upper: Share | None = optional(
        "Upper end of the 95 % interval of the share of missed wake phrases (over voices, if several speak)."
    )
    max_false_accepts_per_hour: PerHour | None = optional("False accepts of each device, per hour of ambient sound.")
    max_false_accepts_upper_per_hour: PerHour | None = optional(
        "Upper end of the 95 % interval of the false accepts per hour (Garwood)."
    )
    min_exposure_hours: PerHour | None = optional("Ambient sound that each device demonstrably heard, h.")
    min_command_share: Share | None = optional("Share of the played commands that each device understands, 0-1.")
    max_wake_delay_p95_ms: float | None = optional(
        "95th percentile of each device's time from end of wake phrase to wake event, ms.", gt=0
    )
    max_first_sound_p95_ms: float | None = optional(
        "95th percentile of the time from end of speech to the device's first sound (including a chime), ms.", gt=0
    )
    max_request_gap_ms: float | None = optional(
        "Each device's shortest pause between wake phrase and request at which 90 % of requests arrive whole, ms.", gt=0
    )
    max_first_attempt_wer: Wer | None = optional("Word error rate (WER) of first attempts; it can exceed 1.")
    max_final_wer: Wer | None = optional("Word error rate (WER) of the attempts that decided; it can exceed 1.")


class ScenarioKeys(Keys):
    """A scenario: which queries are played, how often, by which voices, and which limits must hold."""

    scenario: Id = Field(description="Name of the scenario.")
    title: Text = preset("", "Title. Default: the name.")
    tags: list[Id] = Field(
        default_factory=list, description="Tags for your own scripts; the harness does not use them."
    )
    seed: Seed = preset(0, "Seed for everything random.")
    needs: list[Annotated[Need, enum_validator(Need)]] = Field(
        default_factory=list, description="What the bench must offer. If it does not, the scenario is skipped."
    )
    assets: dict[Id, Text] = Field(
        default_factory=dict, description="Asset roots, name: folder, relative to the scenario."
    )
    variables: dict[Id, Text] = Field(
        default_factory=dict, description="Variables, name: text. ${name} in a text is replaced by it."
    )
    voices: dict[Id, VoiceKeys] = Field(default_factory=dict, description="Voices by name.")
    rooms: dict[Id, RoomKeys] = Field(default_factory=dict, description="Simulated rooms by name.")
    defaults: DefaultsKeys = preset(DefaultsKeys(), "Values for trials that do not set their own.")
    recognised: RecognisedKeys = preset(RecognisedKeys(), "When a transcript counts as correct.")
    stimuli: list[StimulusKeys] = Field(
        default_factory=list, description="Queries and commands; wake and ambient trials need none."
    )
    trials: list[TrialKeys] = Field(min_length=1, description="Trials to run.")
    matrix: MatrixKeys | None = optional("Conditions under which every trial runs. Default: only those in `defaults`.")
    limits: LimitsKeys = preset(LimitsKeys(), "Bounds on results; exit status 0 requires all of them to hold.")
    wake: WakeKeys = preset(WakeKeys(), "How wake events are counted.")
    procedure: ProcedureKeys | None = optional("The published procedure that the scenario follows.")
    stopping: StoppingKeys = preset(
        StoppingKeys(), "When the harness skips the remaining trials, because the question is decided."
    )
