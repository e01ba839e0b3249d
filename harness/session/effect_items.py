"""First responses with their effects, for the people who observe them, and as lines of a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness.base.foreign import plain_text
from harness.base.text_table import fit
from harness.base.user_text import name_key
from harness.model.effect import EffectCheck, EffectEvidence, EffectOutcome
from harness.model.frozen import frozen
from harness.model.judgment import Judgment, JudgmentStatus
from harness.model.record import EffectAnswered
from harness.model.trial import Trial
from harness.session.figures.progress import Progress
from harness.session.figures.trials import FirstResponse

HELD_QUESTION = "What did the device do?"
"""The question about a held response for which the scenario names no effect."""


@frozen
class EffectItem:
    """A first response with its effect.

    - folder, session_id: its session. take, attempt: their numbers.
    - evidence: what is known of the effect. answers: (Unix time, answer of a person), oldest first.
    - transcript: the harness's transcript of the response; "" if there is none.
    - held_by: raters who hold it. waited_for: whether one of them held it while the evidence was the same as now.
    """

    folder: Path
    session_id: str
    trial: Trial
    take: int
    attempt: int
    evidence: EffectEvidence
    transcript: str = ""
    held_by: tuple[str, ...] = ()
    waited_for: bool = False
    answers: tuple[tuple[float, EffectAnswered], ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether the effect is unknown, or a rater holds the response despite an answer."""
        return self.evidence.is_open or self.waited_for

    def is_due(self, now_wall_s: float) -> bool:
        """Whether it is open, and a person can already observe it."""
        due_s = self.evidence.due_wall_s
        return self.is_open and (due_s is None or due_s <= now_wall_s)


@frozen
class SessionEffects:
    """All effects of a session. ended: whether no more responses will come, unless the session is resumed."""

    items: tuple[EffectItem, ...]
    ended: bool


def effects_in(progress: Progress, folder: Path) -> SessionEffects:
    """First responses with an effect check, a hold or an answer, in the order of playing."""
    items = []
    for response in filter(None, (trial.response for trial in progress.trials)):
        key = (response.trial.id, response.take, response.attempt)
        held_judgments = _holds(response)
        evidence = progress.effects.get(key)
        if evidence is None and held_judgments:
            due_wall_s = progress.responses_wall_s.get(key)
            evidence = EffectEvidence(EffectCheck("", question=HELD_QUESTION), due_wall_s=due_wall_s)
        if evidence is not None:
            items.append(
                EffectItem(
                    folder=folder,
                    session_id=progress.session.session_id if progress.session else "",
                    trial=response.trial,
                    take=response.take,
                    attempt=response.attempt,
                    evidence=evidence,
                    transcript=response.transcript or "",
                    held_by=tuple(judgment.rater for judgment in held_judgments),
                    waited_for=any(judgment.effect is evidence.word for judgment in held_judgments),
                    answers=progress.effect_answers.get(key, ()),
                )
            )
    return SessionEffects(tuple(items), progress.finished is not None and progress.left == 0)


def _holds(response: FirstResponse) -> list[Judgment]:
    """The latest judgments of raters who hold the response. Adjudications do not count."""
    latest = {name_key(judgment.rater): judgment for judgment in response.judgments if not judgment.adjudicates}
    return [
        judgment
        for judgment in response.judgments
        if latest.get(name_key(judgment.rater)) is judgment and judgment.status is JudgmentStatus.HELD
    ]


_EFFECT_WORDS = {
    EffectOutcome.RIGHT: "right",
    EffectOutcome.PARTIAL: "partly",
    EffectOutcome.WRONG: "WRONG",
    EffectOutcome.UNKNOWN: "unknown",
}
_COUNTED_AS = _EFFECT_WORDS | {EffectOutcome.UNKNOWN: "cannot tell"}


def effect_lines(items: Sequence[EffectItem]) -> list[str]:
    """The section of a session's summary: a line of counts, and one for each effect; [] when there is none."""
    if not items:
        return []
    counts = Counter("open" if effect.is_open else _COUNTED_AS[effect.evidence.word] for effect in items)
    shown = ", ".join(f"{counts[name]} {name}" for name in (*_COUNTED_AS.values(), "open") if counts[name])
    lines = [f"effects              {len(items)}: {shown}"]
    for effect in items:
        source = "open" if effect.is_open else effect.evidence.source.value
        aim = plain_text(effect.evidence.check.wanted or effect.evidence.check.question or "what the device did", 60)
        lines.append(f"  {fit(effect_word(effect), 8)} {fit(source, 8)}  {plain_text(effect.trial.id, 30)}: {aim}")
        if effect.evidence.said:
            lines.append(f"                     {plain_text(effect.evidence.said, 300)}")
    return lines


def effect_word(item: EffectItem) -> str:
    """What is known of an effect, in one word."""
    return "–" if item.is_open else _EFFECT_WORDS[item.evidence.word]
