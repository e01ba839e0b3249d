"""The keys of scenario files: what stands under each, and what values it may have."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from harness.base.findings import MAX_TEXT, Id, Keys, Language, Spoken, Text, optional, word, wrong
from harness.model.scenario import Evidence, Need, Normalisation, OnUndecided, Order, Route, TrialKind, Until
from harness.model.stimulus import NoiseKind
from harness.model.understanding import intent_set

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
    rate_wpm: int | None = optional("Words a minute; without it the voice's own rate.", ge=50, le=500)
    pitch: int | None = optional("0-99; without it the voice's own pitch (50).", ge=0, le=99)
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
    recording: PathText | None = optional("Sound file of the noise; for kind recording only.")


class RepromptKeys(Keys):
    """When a query is said again, and for how long an answer is waited for."""

    max_attempts: int | None = optional("How often a query is said at most. Default 3.", ge=1, le=100)
    context_wait_s: float | None = optional(
        "Wait before it is said again, so that the device has forgotten, s. Default 5.", ge=0, le=600
    )
    response_timeout_s: float | None = optional(
        "A response must begin within this time of the query's end, s. Default 8.", gt=0, le=600
    )
    response_max_s: float | None = optional("A response is cut after this, s. Default 30.", gt=0, le=600)
    end_silence_ms: int | None = optional(
        "A response has ended when nothing was said for so long, ms. Default 800.", ge=50, le=30_000
    )
    evidence_wait_s: float | None = optional(
        "Wait for the device's own word on what it heard, s. Default 2.", ge=0, le=600
    )
    operator_wait_s: float | None = optional("Wait for the operator's answer, s. Default 60.", ge=0, le=86_400)
    max_interruptions: int | None = optional(
        "A trial is given up after so many interruptions. Default 5.", ge=0, le=1000
    )
    until: Annotated[Until, word(Until)] | None = optional(
        "It is said again until its words are recognised, or its intents and slots understood. Default: "
        "understood in trials of that kind, else recognised."
    )


class CloseDialogueKeys(Keys):
    """How a dialogue that is still open is ended: `say` or `wait_s`."""

    say: Spoken | None = optional("Text that the trial's voice says, without a wake phrase.")
    wait_s: float | None = optional("Silence until the device gives up, s.", ge=0, le=600)


def _intents(text: str) -> str:
    if not intent_set(text):
        raise wrong(f"{text!r} names no intent", "Write names, with # between two: set_timer#add_to_list")
    return text


Intents = Annotated[Text, AfterValidator(_intents)]


class SlotKeys(Keys):
    """A slot, where a concept comes twice."""

    concept: Text = Field(description="Its name, as the device or its profile has it.")
    value: Text | None = optional("Its value; without it, any.")


def _list_or_one(written: Any) -> str:
    return "<list>" if isinstance(written, list) else "<one>"


class ExpectsKeys(Keys):
    """What a device should understand of a query."""

    intents: Annotated[
        Annotated[Intents, Tag("<one>")] | Annotated[list[Intents], Tag("<list>")], Discriminator(_list_or_one)
    ] = Field(description="All intents that it should tell, and no other: [a, b] or a#b; [] when it should find none.")
    slots: (
        Annotated[
            Annotated[dict[Text, Text | None], Tag("<one>")] | Annotated[list[SlotKeys], Tag("<list>")],
            Discriminator(_list_or_one),
        ]
        | None
    ) = optional(
        "All slots that it should tell: {concept: value}, null is any value; {} when it should find none; "
        "a list of {concept, value} where one comes twice. Default: slots are not looked at."
    )


TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def _time_of_day(text: str) -> str:
    if not TIME_OF_DAY.fullmatch(text):
        raise wrong(f"{text!r} is not a time of day", "Write hours and minutes, 00:00 to 23:59: 01:00")
    return text


def _value(written: object) -> object:
    if isinstance(written, str) and (len(written) > MAX_TEXT or any(ord(letter) < 0x20 for letter in written)):
        raise wrong(f"the value is not one line of at most {MAX_TEXT} characters", "Shorten it")
    return written


TimeOfDay = Annotated[
    str, AfterValidator(_time_of_day), Field(json_schema_extra={"pattern": f"^{TIME_OF_DAY.pattern}$"})
]
Value = Annotated[str, BeforeValidator(_value)]


class EffectKeys(Keys):
    """What the query should bring about, and how that is found out: by the device's own state, or by a person."""

    wanted: Text = Field(description="What should have been brought about, for people: a timer of ten minutes runs.")
    state: dict[Text, Value | None] = Field(
        default={},
        description='Pieces of its state, all of which it must tell: name: value; null is any value, "" none.',
    )
    within_s: float = Field(
        default=10.0,
        gt=0,
        le=600,
        description="It must tell them within this time of the query's end, or before it has answered, s. Default 10.",
    )
    question: Text | None = optional("What the operator is asked. Default: nobody is asked.")
    after_s: float | None = optional(
        "One can only look so long after the response, s. Default: at once.", gt=0, le=604_800
    )
    at: TimeOfDay | None = optional(
        "One can only look at this local time of day, the next one after the response: 01:00."
    )


LONGEST_WAIT_S = 3600
WaitS = Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)]


class SpreadKeys(Keys):
    """Waits that grow by the same factor from one to the next."""

    from_s: float = Field(gt=0, le=LONGEST_WAIT_S, alias="from", description="The shortest wait, s.")
    to: float = Field(gt=0, le=LONGEST_WAIT_S, description="The longest wait, s.")
    count: int = Field(ge=2, le=100, description="How many waits there are.")


def _mapping_or_list(written: Any) -> str:
    return "<mapping>" if isinstance(written, dict | SpreadKeys) else "<list>"


Waits = Annotated[
    Annotated[list[WaitS], Tag("<list>"), Field(min_length=1)] | Annotated[SpreadKeys, Tag("<mapping>")],
    Discriminator(_mapping_or_list),
]


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

    id: Id | None = optional("Its name in tables; without it, what it is made of.")
    recordings: PathText | list[PathText] | None = optional("Files, folders or patterns such as tv/*.flac; mono.")
    noise: Literal["pink", "white"] | None = optional("Generated noise: pink or white.")
    texts: list[Spoken] | None = optional("Spoken one after another, shuffled.", min_length=1)
    voices: list[Voice] | None = optional("Who speaks the texts.", min_length=1)
    share: float = Field(default=1.0, gt=0, le=1000, description="Part of the time, relative to the others. Default 1.")


class ProbeKeys(Keys):
    """A wake phrase around and within ambient sound, which proves that devices listen."""

    every_s: float = Field(ge=1, le=86_400, description="At most so much ambient sound between two probes, s.")
    phrase: Spoken | None = optional("What wakes them; without it, their first wake phrase.")
    voice: Voice | None = optional("Who says it: one that wakes them every time.")
    recording: PathText | None = optional("A recording of the phrase instead of a voice.")
    level_dbfs: LevelDbfs | None = optional("How loud. Default: as in defaults.")
    tail_s: float = Field(
        default=1.5, ge=0, le=600, description="Sound after it, in which a device comes to rest, s. Default 1.5."
    )


class TrialKeys(Keys):
    """A trial: a query asked of one device, a wake phrase or a command for several, or ambient sound."""

    id: Id | None = optional("Name of the trial; without it, the query's.")
    kind: Annotated[WrittenKind, word(TrialKind, TrialKind.PROBE)] = Field(
        default=TrialKind.QUERY, description="query (the default), understand, wake, command, ambient or memory."
    )
    query: str | None = optional("The id of a stimulus: what is asked or commanded, and what primes a memory.")
    repeat: int = Field(default=1, ge=1, le=10_000, description="How many trials of this kind are run. Default 1.")
    device: Id | None = optional("A device of the bench; without it, the bench's first.")
    wake: bool = Field(default=True, description="Whether the wake phrase is spoken before the query. Default true.")
    voice: Voice | None = optional("A named voice, or a voice.")
    level_dbfs: LevelDbfs | None = optional("As in defaults.")
    gap_ms: GapMs | None = optional("As in defaults.")
    evidence: Annotated[Evidence, word(Evidence)] | None = optional("As in defaults.")
    reprompt: RepromptKeys | None = optional("As in defaults; what is not given here is taken from there.")
    close_dialogue: CloseDialogueKeys | None = optional("As in defaults.")
    query_class: Text = Field(default="", description="Group of queries, for tables (clock, lists, …).")
    core_capability: bool = Field(
        default=False, description="Whether every device must be able to answer it. Default false."
    )
    note: Text = Field(default="", description="For people; kept in the log.")
    effect: EffectKeys | None = optional("What it should bring about, and who can tell.")
    expects: ExpectsKeys | None = optional(
        "What the device should understand: intents, and slots where they are looked at."
    )
    devices: list[Id] | None = optional(
        "Who listens in wake, command and ambient trials; without it, all that report wake events.", min_length=1
    )
    route: Annotated[Route, word(Route)] = Field(
        default=Route.AUTO,
        description="How the sound of wake, command, ambient and understand trials reaches devices: auto (over the "
        "wire if possible), loudspeaker, injection.",
    )
    phrase: Spoken | None = optional("What wakes them; without it, their first wake phrase.")
    recordings: PathText | list[PathText] | None = optional(
        "Recordings of the wake phrase instead of a voice: files, folders, patterns, or a list (.csv) with "
        "the columns recording, phrase_end_ms and any others."
    )
    level: Literal["as_recorded"] | None = optional(
        "as_recorded: play recordings at their own level, whole, instead of at level_dbfs."
    )
    lead_in_s: Annotated[float, Field(ge=0, le=600)] | None = optional(
        "Sound before the phrase, s. Default: the refractory time."
    )
    tail_s: Annotated[float, Field(ge=0, le=600)] | None = optional("Sound after the last word, s. Default 1.5.")
    hours: Annotated[float, Field(gt=0, le=10_000)] | None = optional("Of ambient sound, h.")
    segment_s: Annotated[float, Field(ge=1, le=600)] | None = optional(
        "Length of the trials that an ambient soak is cut into, s. Default 60."
    )
    sources: list[SourceKeys] | None = optional("What the ambient sound is made of.", min_length=1)
    probe: ProbeKeys | None = optional("Wake phrases that prove that devices listen which do not tell it themselves.")
    follow_up: str | None = optional(
        "The id of a stimulus that makes sense only to a device which remembers the query."
    )
    waits_s: Waits | None = optional("Silence before the follow-up, s: a list, or {from: 1, to: 60, count: 8}.")
    shows: list[Spoken] | None = optional("Words of which some are in an answer that remembers.", min_length=1)
    forgets: list[Spoken] | None = optional(
        "Words of which some are in an answer that has forgotten; without it, any other answer has.", min_length=1
    )


class DefaultsKeys(Keys):
    """What trials use unless they say otherwise."""

    voice: Voice | None = optional("A named voice, or a voice. Default: espeak, en-us.")
    level_dbfs: LevelDbfs = Field(
        default=-26.0, description="Active speech level of what is played, dBFS. Default -26."
    )
    gap_ms: GapMs = Field(default=250, description="Silence between wake phrase and query, ms. Default 250.")
    noise: NoiseKeys | None = optional("Noise under every stimulus, or null for none (the default).")
    evidence: Annotated[Evidence, word(Evidence)] = Field(
        default=Evidence.AUTO, description="Who says whether the query was recognised: auto, device, operator or none."
    )
    reprompt: RepromptKeys = Field(default=RepromptKeys(), description="Repetition and waiting.")
    close_dialogue: CloseDialogueKeys | None = optional(
        "How a dialogue left open is ended, or null: as the device profile says, else by waiting."
    )
    between_trials_s: float = Field(default=1.0, ge=0, le=3600, description="Pause between trials, s. Default 1.")
    life_check_after: int = Field(
        default=3,
        ge=0,
        le=1000,
        description="Trials in a row without a sign of life after which a device is doubted; 0: never. Default 3.",
    )


_WORDS = (Normalisation.VERBATIM, Normalisation.PLAIN, Normalisation.SPOKEN, Normalisation.SNOR)


def _word_or_file(written: Any) -> Any:
    """A word as the normalisation that it names; what is named like a YAML file as it stands."""
    if written == Normalisation.EXPANDED_SNOR:
        what = "expanded_snor is for scoring files: no device tells pauses and false starts"
        raise wrong(what, "Write snor")
    if written in _WORDS:
        return Normalisation(written)
    if isinstance(written, str) and written.endswith((".yaml", ".yml")):
        return written
    raise PydanticCustomError("word", "unknown word", {"choices": [*map(str, _WORDS), "a file such as words.yaml"]})


class RecognisedKeys(Keys):
    """When a transcript counts as right."""

    normalisation: Annotated[
        Literal[Normalisation.VERBATIM, Normalisation.PLAIN, Normalisation.SPOKEN, Normalisation.SNOR]
        | Annotated[PathText, Field(json_schema_extra={"pattern": r"\.ya?ml$"})],
        BeforeValidator(_word_or_file),
    ] = Field(
        default=Normalisation.SPOKEN,
        description="verbatim, plain (case, punctuation), spoken (also numbers), snor, or the path of a normalisation "
        "file such as words.yaml. Default spoken.",
    )
    wer: Share = Field(default=0.0, description="Word errors allowed per word of the reference, 0-1. Default 0.")


class StimulusKeys(Keys):
    """A query: a text for a voice, or a recording with its transcript."""

    id: Id = Field(description="Name of the query.")
    text: Spoken | None = optional("What the voice says.")
    recording: PathText | None = optional("Sound file: a path in the scenario's folder, or root:path.")
    transcript: Spoken | None = optional("What is said in the recording.")
    sro: Spoken | None = optional("What is said, in .sro conventions; instead of a transcript, or beside a text.")
    alternatives: list[Spoken] = Field(default_factory=list, description="Other wordings that count as recognised.")
    voice: Voice | None = optional("A voice for this query only.")


class AxesKeys(Keys):
    """The dimensions of the matrix."""

    voice: list[Voice] | None = optional("Named voices, or voices.", min_length=1)
    level_dbfs: list[LevelDbfs] | None = optional("Levels, dBFS.", min_length=1)
    gap_ms: list[GapMs] | None = optional("Gaps, ms.", min_length=1)
    position: list[Id] | None = optional("Positions of the bench's loudspeakers.", min_length=1)
    noise: list[NoiseKeys | None] | None = optional("Noises; null is quiet.", min_length=1)


class ExcludeKeys(Keys):
    """Combinations that are left out: all that agree with every key given."""

    voice: Voice | None = optional("One of the axis's voices.")
    level_dbfs: LevelDbfs | None = optional("One of the axis's levels.")
    gap_ms: GapMs | None = optional("One of the axis's gaps.")
    position: Id | None = optional("One of the axis's positions.")
    noise: NoiseKeys | None = optional("One of the axis's noises; null is quiet.")


class MatrixKeys(Keys):
    """Every trial is run once for each combination of the axes, less those excluded."""

    axes: AxesKeys = Field(description="Name of an axis: its values.")
    exclude: list[ExcludeKeys] = Field(default_factory=list, description="Combinations that are left out.")
    order: Annotated[Order, word(Order)] = Field(default=Order.LISTED, description="listed (the default) or shuffled.")
    seed: Seed | None = optional("Seed of the shuffle; without it, the scenario's.")


class WakeKeys(Keys):
    """How wake events are counted."""

    window_before_s: float = Field(
        default=0.1, ge=0, le=10, description="An event may precede the phrase by so much, s. Default 0.1."
    )
    window_after_s: float = Field(
        default=1.0, gt=0, le=60, description="… and follow its end by so much, s. Default 1."
    )
    refractory_s: float = Field(
        default=2.0, ge=0, le=60, description="Further events within this time are the same event, s. Default 2."
    )
    clip_before_s: float = Field(
        default=5.0, ge=0, le=60, description="Sound kept before an unmatched event, s. Default 5."
    )
    clip_after_s: float = Field(default=5.0, ge=0, le=60, description="… and after it, s. Default 5.")
    proof_within_s: float = Field(
        default=15.0,
        gt=0,
        le=3600,
        description="Time between two proofs of listening that counts as exposure, s. Default 15.",
    )
    count_in_vocabulary: bool = Field(
        default=False,
        description="Whether unmatched events of wake and command trials are false accepts too. Default false.",
    )


class SequentialKeys(Keys):
    """A test that ends trials as soon as the question is decided."""

    good: float = Field(ge=0, description="This good is good enough: events per hour, or a share 0-1.")
    bad: float = Field(gt=0, description="This bad is too bad.")
    alpha: float = Field(
        default=0.05, gt=0, lt=0.5, description="Probability that a good device is failed. Default 0.05."
    )
    beta: float = Field(
        default=0.05, gt=0, lt=0.5, description="Probability that a bad device is passed. Default 0.05."
    )


class StoppingKeys(Keys):
    """When the trials that are left are needless."""

    false_accepts: SequentialKeys | None = optional("Of false accepts per hour of ambient sound.")
    false_rejects: SequentialKeys | None = optional("Of the share of phrases that did not wake.")
    on_undecided: OnUndecided = Field(
        default=OnUndecided.FAIL,
        description="Whether a run that ends before a test has decided fails or passes. Default fail.",
    )


class LimitsKeys(Keys):
    """What must hold for exit status 0."""

    min_recognised_share: Share | None = optional("Recognised queries, share 0-1 of those decided.")
    min_first_attempt_share: Share | None = optional("Recognised at the first attempt, share 0-1.")
    min_effect_share: Share | None = optional("Effects that are right, share 0-1 of those that are known.")
    min_understood_share: Share | None = optional(
        "Queries whose intents and slots were understood, share 0-1 of those decided."
    )
    min_intent_share: Share | None = optional("… whose intents were understood, share 0-1.")
    max_latency_p95_ms: float | None = optional("End of speech to response, 95th percentile, ms.", gt=0)
    max_inconclusive: Count | None = optional("Trials without evidence.")
    max_interrupted: Count | None = optional("Trials that were interrupted.")
    max_false_reject_share: Share | None = optional("Phrases that did not wake, share 0-1; every device.")
    max_false_reject_upper: Share | None = optional("… upper end of its 95 % interval (Clopper-Pearson).")
    max_false_accepts_per_hour: PerHour | None = optional("Wakes to ambient sound, per hour; every device.")
    max_false_accepts_upper_per_hour: PerHour | None = optional("… upper end of its 95 % interval (Garwood).")
    min_exposure_hours: PerHour | None = optional("Ambient sound that a device was proved to hear, h.")
    min_command_share: Share | None = optional("Commands understood, share 0-1 of those said.")
    max_first_attempt_wer: Wer | None = optional(
        "Word errors per reference word of what was heard at first attempts, 0 and up."
    )
    max_final_wer: Wer | None = optional("… at the attempts that decided.")


class ScenarioKeys(Keys):
    """A scenario: what is asked, how often, by which voices, and what must hold."""

    scenario: Id = Field(description="Name of the scenario.")
    title: Text = Field(default="", description="For people. Default: the name.")
    tags: list[Id] = Field(default_factory=list, description="Words to choose scenarios by.")
    seed: Seed = Field(default=0, description="Decides everything random. Default 0.")
    needs: list[Annotated[Need, word(Need)]] = Field(
        default_factory=list, description="What the bench must offer; else the scenario is skipped."
    )
    assets: dict[Id, Text] = Field(
        default_factory=dict, description="Name of an asset root: its folder, relative to the scenario's."
    )
    variables: dict[Id, Text] = Field(default_factory=dict, description="Name: text; ${name} in texts stands for it.")
    voices: dict[Id, VoiceKeys] = Field(default_factory=dict, description="Name: voice.")
    defaults: DefaultsKeys = Field(default=DefaultsKeys(), description="What trials use unless they say otherwise.")
    recognised: RecognisedKeys = Field(default=RecognisedKeys(), description="When a transcript counts as right.")
    stimuli: list[StimulusKeys] = Field(
        default_factory=list, description="The queries; wake and ambient trials need none."
    )
    trials: list[TrialKeys] = Field(min_length=1, description="What is run.")
    matrix: MatrixKeys | None = optional("Conditions that every trial is run under.")
    limits: LimitsKeys = Field(default=LimitsKeys(), description="What must hold for exit status 0.")
    wake: WakeKeys = Field(default=WakeKeys(), description="How wake events are counted.")
    stopping: StoppingKeys = Field(default=StoppingKeys(), description="When trials that are left are needless.")
