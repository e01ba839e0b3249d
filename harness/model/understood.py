"""What a device understood at one attempt, and whether that is right."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.trial import EvidenceSource
from harness.model.understanding import Slot


@dataclass(frozen=True, slots=True)
class Understood:
    """Of one attempt of a trial that expects something.

    intents, slots: as the device told them, those of several events united; () is "told that there are none", None is
    "told nothing" (an operator may know all the same whether it was right). intents_right, right: the intents, the
    whole frame (intents and, where the trial looks at them, slots); None: unknown. source: of what is known.
    """

    intents: tuple[str, ...] | None = None
    slots: tuple[Slot, ...] | None = None
    intents_right: bool | None = None
    right: bool | None = None
    source: EvidenceSource = EvidenceSource.NONE
