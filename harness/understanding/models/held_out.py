"""How well an understander does on utterances that it has not learned from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness.model.understanding import Prediction, Utterance
from harness.understanding.arithmetic.counts import total
from harness.understanding.arithmetic.figures import FrameFigures, figures
from harness.understanding.arithmetic.frame import count_frame
from harness.understanding.arithmetic.rule import Rule, Values

RULE = Rule(values=Values.NONE)


def predicted(utterances: Iterable[Utterance], predictions: Iterable[Prediction]) -> tuple[Utterance, ...]:
    """The utterances with what was predicted in place of what they mean."""
    return tuple(
        replace(one, intents=said.intents, tags=said.tags, slots=None)
        for one, said in zip(utterances, predictions, strict=True)
    )


def held_out_figures(utterances: Sequence[Utterance], predictions: Sequence[Prediction]) -> FrameFigures:
    """Figures of predictions, one for each utterance; conlleval chunks, full concepts."""
    said = predicted(utterances, predictions)
    return figures(total(count_frame(one, other, RULE) for one, other in zip(utterances, said, strict=True)))


def named_figures(found: FrameFigures) -> tuple[tuple[str, float], ...]:
    """The figures that there are, by name: EMR, slot F1, SFA."""
    values = (("emr", found.intents.exact.value), ("slot_f1", found.slots.micro.f1), ("sfa", found.slots.frames.value))
    return tuple((name, value) for name, value in values if value is not None)
