"""Effects of responses in lines for people."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from harness.base.cells import fit
from harness.base.folder import SessionFolder
from harness.base.foreign import plain_text
from harness.model.effect import EffectSource, EffectWord
from harness.model.stimulus import SpokenText
from harness.rating.effects import EffectItem, effects_of
from harness.session.figures.progress import Progress

_WORDS = {
    EffectWord.RIGHT: "right",
    EffectWord.PARTIAL: "partly",
    EffectWord.WRONG: "WRONG",
    EffectWord.UNKNOWN: "unknown",
}
_TEXT = 60


def checked_in(progress: Progress, folder: Path) -> tuple[EffectItem, ...]:
    """The effects of a session, read only where its scenario checks any or people have judged; LogError."""
    checked = any(one.trial.effect is not None for one in progress.trials)
    return effects_of(folder).items if checked or SessionFolder(folder).judgments.is_file() else ()


def lines(items: Sequence[EffectItem]) -> list[str]:
    """The section of a session's summary: a line of counts, and one for each effect; [] when there is none."""
    if not items:
        return []
    counts = ", ".join(
        f"{count} {name}"
        for name, count in (
            *((_WORDS[word], _count(items, word)) for word in EffectWord if word is not EffectWord.UNKNOWN),
            ("cannot be told", sum(_word(one) == "unknown" and not one.is_open for one in items)),
            ("open", sum(one.is_open for one in items)),
        )
        if count
    )
    found = [f"effects              {len(items)}: {counts}"]
    for one in items:
        who = "open" if one.is_open else one.evidence.source.value
        head = f"  {fit(_word(one), 8)} {fit(who, 8)}  {plain_text(one.trial.id, 30)}: {wanted(one)}"
        found.append(head)
        if one.evidence.said:
            found.append(f"                     {plain_text(one.evidence.said, 300)}")
    return found


def described(item: EffectItem, now_wall_s: float, *, of_several: bool = False) -> list[str]:
    """An effect that a person is to look at: what was asked, wanted and answered, and when one can look.

    of_several: sessions, so that its own is named.
    """
    check, trial = item.evidence.check, item.trial
    asked = trial.recipe.query.text if isinstance(trial.recipe.query, SpokenText) else trial.reference
    its = f" of {plain_text(item.session_id, 80)}" if of_several else ""
    found = [
        f"{plain_text(trial.id, 80)}{its}  {when(item, now_wall_s)}",
        f"  asked   “{plain_text(asked, 200)}” of {plain_text(trial.device, 40)}",
    ]
    if check.wanted:
        found.append(f"  wanted  {plain_text(check.wanted, 200)}")
    if item.said:
        found.append(f"  it said “{plain_text(item.said, 200)}” (our transcription)")
    if item.held_by:
        found.append(f"  held by {plain_text(', '.join(item.held_by), 120)}")
    if item.evidence.said:
        found.append(f"  known   {plain_text(item.evidence.said, 300)}")
    if check.question:
        found.append(f"  →       {plain_text(check.question, 200)}")
    return found


def when(item: EffectItem, now_wall_s: float) -> str:
    """From when a person can look: `due now`, `at 01:00, in 12 min`; or what is known."""
    due_s = item.evidence.due_wall_s
    if not item.is_open:
        return f"{_word(item)}, by {'the device' if item.evidence.source is EffectSource.DEVICE else 'a person'}"
    if due_s is None or due_s <= now_wall_s:
        return "due now"
    at = datetime.fromtimestamp(due_s).astimezone()
    today = datetime.fromtimestamp(now_wall_s).astimezone().date()
    day = "" if at.date() == today else "tomorrow " if at.date() == today + timedelta(days=1) else f"{at:%d %b} "
    return f"at {day}{at:%H:%M}, in {length(due_s - now_wall_s)}"


def length(seconds: float) -> str:
    """`40 s`, `12 min`, `3 h 5 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def wanted(item: EffectItem) -> str:
    """What should have been brought about, in short."""
    return plain_text(item.evidence.check.wanted or item.evidence.check.question or "what it did", _TEXT)


def clock(wall_s: float) -> str:
    """`14:05`."""
    return time.strftime("%H:%M", time.localtime(wall_s))


def _word(item: EffectItem) -> str:
    return "–" if item.is_open else _WORDS[item.evidence.word]


def _count(items: Sequence[EffectItem], word: EffectWord) -> int:
    return sum(one.evidence.word is word and not one.is_open for one in items)
