"""Understand trials in JUnit: what was expected and what was understood, in cases and as figures of a suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model.trial import Outcome, Trial
from harness.report.junit_xml import Properties, Reason, Verdict
from harness.session.figures.trials import AttemptProgress, TrialProgress
from harness.session.figures.understood import frame_of, tested, understood_of
from harness.statistics.intervals import Share
from harness.understanding.scoring.parts import compared, parts_of, verdict_in_words, written

_DECIDED_OTHERWISE = (Outcome.RESPONDED, Outcome.UNDERSTOOD, Outcome.MISHEARD)


def said(one: TrialProgress) -> Iterator[str]:
    """Lines about the frame: expected, and what each attempt of the take that counts came to."""
    wanted = one.trial.expects
    if wanted is None:
        return
    yield f"expected: {written(wanted.intents, wanted.slots)}{'' if wanted.slots is not None else ', with any slots'}"
    for attempt in tested(one.counting) if one.counting else ():
        yield from _of_attempt(one.trial, attempt)


def reason(one: TrialProgress, lines: Iterable[str]) -> Reason | None:
    """Why a trial did not pass whose frame is known to be wrong; None of others, which their outcome tells of."""
    wanted, take = one.trial.expects, one.counting
    if wanted is None or take is None or take.outcome not in _DECIDED_OTHERWISE or take.deciding is None:
        return None
    frame, verdict = frame_of(take.deciding), take.deciding.verdict
    told = verdict.understood if verdict else None
    if frame.right is not False:
        return None
    word = "slots_differ" if frame.intents else "intents_differ"
    expected = written(wanted.intents, wanted.slots)
    if told is None or told.intents is None:
        message = f"expected {expected}; the operator says that it was not understood"
    else:
        message = f"expected {expected}; understood {written(told.intents, told.slots)}"
    return Reason(Verdict.FAILURE, word, message, "\n".join(lines))


def figures(trials: Iterable[TrialProgress]) -> Properties:
    """Frames and intents that were right, of those known, with their 95 % intervals."""
    found = understood_of(trials)
    return (
        *_share("frames_right", found.right),
        *_share("intents_right", found.intents),
        *_share("first_attempt_frames_right", found.first_right),
        *_share("first_attempt_intents_right", found.first_intents),
        *((("frames_not_known", str(found.unknown)),) if found.unknown else ()),
    )


def _of_attempt(trial: Trial, attempt: AttemptProgress) -> Iterator[str]:
    told = attempt.verdict.understood if attempt.verdict else None
    if told is None or attempt.verdict is None:
        return
    what = "" if told.intents is None else f": {written(told.intents, told.slots)}"
    yield f"attempt {attempt.attempt}: {verdict_in_words(told)}{what}"
    if not told.right and (found := compared(parts_of(trial, attempt.verdict))):
        yield f"    {found}"


def _share(name: str, share: Share) -> Properties:
    if share.interval is None:
        return ((name, "n/a"),)
    low, high = share.interval
    return ((name, f"{share.count} of {share.total}"), (f"{name}_interval_95", f"{low:.6g} to {high:.6g}"))
