"""A planned trial, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.bench import ObservationKind
from harness.model.scenario import CloseDialogue, Evidence, Recognised, RepromptRule
from harness.model.stimulus import StimulusRecipe


class Outcome(StrEnum):
    """How an attempt or a trial ended.

    RESPONDED  recognised (or not assessed) and answered     NO_WAKE      the device did not wake
    MISHEARD   it understood something else                  NO_RESPONSE  it woke or may have, and said nothing
    LATE       recognised and answered after the time limit  INTERRUPTED  link, sound or engine was lost
    INCONCLUSIVE  an answer, but no evidence of recognition and nobody to ask
    SKIPPED / ABORTED  by the operator, or because the bench lacks something
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


@dataclass(frozen=True, slots=True)
class Trial:
    """One planned trial; `id` is unique in the session and stable: the same scenario, bench and seed give the same.

    conditions: matrix axis → label, in the matrix's order. number counts from 1 in the order of playing.
    loudspeaker: id of the bench's equipment that plays it. microphone, connection: ids of the equipment that hears the
    device and that carries its own reports ("" when there is none). reports: what it can be believed to tell us.
    wake_phrases: the device's, taken off the front of its transcripts.
    """

    id: str
    number: int
    template: str
    query_id: str
    device: str
    loudspeaker: str
    recipe: StimulusRecipe
    reference: str
    alternatives: tuple[str, ...]
    recognised: Recognised
    evidence: Evidence
    reprompt: RepromptRule
    close_dialogue: CloseDialogue | None
    conditions: tuple[tuple[str, str], ...] = ()
    query_class: str = ""
    core_capability: bool = False
    note: str = ""
    microphone: str = ""
    connection: str = ""
    reports: tuple[ObservationKind, ...] = ()
    wake_phrases: tuple[str, ...] = ()
