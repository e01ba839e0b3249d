"""The keys of a scenario file, as they are written; `scenario.py` makes the model's Scenario of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from harness.base.file_words import Id, Spoken, Text, word, wrong
from harness.base.findings import Keys
from harness.model.scenario import Evidence, Need, Normalisation, OnUndecided, Order
from harness.scenario.asking_file import (
    CloseDialogueKeys,
    Count,
    GapMs,
    LevelDbfs,
    NoiseKeys,
    PathText,
    PerHour,
    RepromptKeys,
    Seed,
    Share,
    Voice,
    VoiceKeys,
    Wer,
)
from harness.scenario.trial_file import TrialKeys


class DefaultsKeys(Keys):
    """What trials use unless they say otherwise."""

    voice: Voice | None = Field(default=None, description="A named voice, or a voice. Default: espeak, en-us.")
    level_dbfs: LevelDbfs = Field(
        default=-26.0, description="Active speech level of what is played, dBFS. Default -26."
    )
    gap_ms: GapMs = Field(default=250, description="Silence between wake phrase and query, ms. Default 250.")
    noise: NoiseKeys | None = Field(
        default=None, description="Noise under every stimulus, or null for none (the default)."
    )
    evidence: Annotated[Evidence, word(Evidence)] = Field(
        default=Evidence.AUTO, description="Who says whether the query was recognised: auto, device, operator or none."
    )
    reprompt: RepromptKeys = Field(default=RepromptKeys(), description="Repetition and waiting.")
    close_dialogue: CloseDialogueKeys | None = Field(
        default=None,
        description="How a dialogue left open is ended, or null: as the device profile says, else by waiting.",
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
    text: Spoken | None = Field(default=None, description="What the voice says.")
    recording: PathText | None = Field(
        default=None, description="Sound file: a path in the scenario's folder, or root:path."
    )
    transcript: Spoken | None = Field(default=None, description="What is said in the recording.")
    sro: Spoken | None = Field(
        default=None, description="What is said, in .sro conventions; instead of a transcript, or beside a text."
    )
    alternatives: list[Spoken] = Field(default_factory=list, description="Other wordings that count as recognised.")
    voice: Voice | None = Field(default=None, description="A voice for this query only.")


class AxesKeys(Keys):
    """The dimensions of the matrix."""

    voice: list[Voice] | None = Field(default=None, min_length=1, description="Named voices, or voices.")
    level_dbfs: list[LevelDbfs] | None = Field(default=None, min_length=1, description="Levels, dBFS.")
    gap_ms: list[GapMs] | None = Field(default=None, min_length=1, description="Gaps, ms.")
    position: list[Id] | None = Field(default=None, min_length=1, description="Positions of the bench's loudspeakers.")
    noise: list[NoiseKeys | None] | None = Field(default=None, min_length=1, description="Noises; null is quiet.")


class ExcludeKeys(Keys):
    """Combinations that are left out: all that agree with every key given."""

    voice: Voice | None = Field(default=None, description="One of the axis's voices.")
    level_dbfs: LevelDbfs | None = Field(default=None, description="One of the axis's levels.")
    gap_ms: GapMs | None = Field(default=None, description="One of the axis's gaps.")
    position: Id | None = Field(default=None, description="One of the axis's positions.")
    noise: NoiseKeys | None = Field(default=None, description="One of the axis's noises; null is quiet.")


class MatrixKeys(Keys):
    """Every trial is run once for each combination of the axes, less those excluded."""

    axes: AxesKeys = Field(description="Name of an axis: its values.")
    exclude: list[ExcludeKeys] = Field(default_factory=list, description="Combinations that are left out.")
    order: Annotated[Order, word(Order)] = Field(default=Order.LISTED, description="listed (the default) or shuffled.")
    seed: Seed | None = Field(default=None, description="Seed of the shuffle; without it, the scenario's.")


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

    false_accepts: SequentialKeys | None = Field(
        default=None, description="Of false accepts per hour of ambient sound."
    )
    false_rejects: SequentialKeys | None = Field(default=None, description="Of the share of phrases that did not wake.")
    on_undecided: OnUndecided = Field(
        default=OnUndecided.FAIL,
        description="Whether a run that ends before a test has decided fails or passes. Default fail.",
    )


class LimitsKeys(Keys):
    """What must hold for exit status 0."""

    min_recognised_share: Share | None = Field(
        default=None, description="Recognised queries, share 0-1 of those decided."
    )
    min_first_attempt_share: Share | None = Field(
        default=None, description="Recognised at the first attempt, share 0-1."
    )
    min_effect_share: Share | None = Field(
        default=None, description="Effects that are right, share 0-1 of those that are known."
    )
    min_understood_share: Share | None = Field(
        default=None, description="Queries whose intents and slots were understood, share 0-1 of those decided."
    )
    min_intent_share: Share | None = Field(default=None, description="… whose intents were understood, share 0-1.")
    max_latency_p95_ms: float | None = Field(
        default=None, gt=0, description="End of speech to response, 95th percentile, ms."
    )
    max_inconclusive: Count | None = Field(default=None, description="Trials without evidence.")
    max_interrupted: Count | None = Field(default=None, description="Trials that were interrupted.")
    max_false_reject_share: Share | None = Field(
        default=None, description="Phrases that did not wake, share 0-1; every device."
    )
    max_false_reject_upper: Share | None = Field(
        default=None, description="… upper end of its 95 % interval (Clopper-Pearson)."
    )
    max_false_accepts_per_hour: PerHour | None = Field(
        default=None, description="Wakes to ambient sound, per hour; every device."
    )
    max_false_accepts_upper_per_hour: PerHour | None = Field(
        default=None, description="… upper end of its 95 % interval (Garwood)."
    )
    min_exposure_hours: PerHour | None = Field(
        default=None, description="Ambient sound that a device was proved to hear, h."
    )
    min_command_share: Share | None = Field(default=None, description="Commands understood, share 0-1 of those said.")
    max_first_attempt_wer: Wer | None = Field(
        default=None, description="Word errors per reference word of what was heard at first attempts, 0 and up."
    )
    max_final_wer: Wer | None = Field(default=None, description="… at the attempts that decided.")


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
    matrix: MatrixKeys | None = Field(default=None, description="Conditions that every trial is run under.")
    limits: LimitsKeys = Field(default=LimitsKeys(), description="What must hold for exit status 0.")
    wake: WakeKeys = Field(default=WakeKeys(), description="How wake events are counted.")
    stopping: StoppingKeys = Field(default=StoppingKeys(), description="When trials that are left are needless.")
