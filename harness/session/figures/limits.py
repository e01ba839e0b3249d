"""A scenario's declared limits against what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.model.scenario import Limits, OnUndecided, Stopping
from harness.model.trial import Outcome
from harness.session.figures.totals import Totals
from harness.transcripts.recognition import WordsHeard
from harness.wake.wake_progress import DeviceWake, Interval, WakeProgress

NO_TESTS = Stopping()
Finding = tuple[str, float | None, float | None]


@dataclass(frozen=True, slots=True)
class LimitVerdict:
    """One limit that was asked for. `found` None: nothing was measured, which does not hold any limit.

    name: of the limit; of one on wake figures with the device, `max_false_reject_share[kitchen]`. wanted, found: in
    the unit of the name (a share 0–1, word errors a word, milliseconds, hours, events an hour, or trials); of a
    sequential test (`false_accepts_test[kitchen]`) 1 for passed, 0 for failed and None while it is undecided.
    """

    name: str
    wanted: float
    found: float | None
    ok: bool

    @property
    def of_test(self) -> bool:
        """Whether it is the verdict of a sequential test."""
        return "_test[" in self.name


def check_limits(
    limits: Limits, totals: Totals, wake: WakeProgress | None = None, stopping: Stopping = NO_TESTS
) -> tuple[LimitVerdict, ...]:
    """A verdict for each limit that is asked for; on wake figures for every device, on WER for all of them together.

    Where wake figures are limited and no device has any, the verdict is one on nothing. False accepts are those after
    review. Sequential tests come last: one that is still open fails unless `stopping` says that it passes.
    """
    p95 = totals.latency.p95
    found: list[Finding] = [
        ("min_recognised_share", limits.min_recognised_share, totals.recognised.value),
        ("min_first_attempt_share", limits.min_first_attempt_share, totals.first_attempt.value),
        ("max_latency_p95_ms", limits.max_latency_p95_ms, None if p95 is None else p95.value_s * 1000),
        ("min_effect_share", limits.min_effect_share, totals.effects.value),
        ("min_understood_share", limits.min_understood_share, totals.understood.right.value),
        ("min_intent_share", limits.min_intent_share, totals.understood.intents.value),
        ("max_inconclusive", limits.max_inconclusive, totals.count(Outcome.INCONCLUSIVE)),
        ("max_interrupted", limits.max_interrupted, totals.count(Outcome.INTERRUPTED)),
    ]
    if limits.max_first_attempt_wer is not None or limits.max_final_wer is not None:
        first, final = words_of_session(totals, wake)
        found.append(("max_first_attempt_wer", limits.max_first_attempt_wer, first.wer))
        found.append(("max_final_wer", limits.max_final_wer, final.wer))
    devices = wake.devices if wake else ()
    found += [finding for device in devices for finding in _of_device(limits, device)]
    if not devices:
        found += [(name, wanted, None) for name, wanted, _ in _of_device(limits, None)]
    return (
        *(
            LimitVerdict(name, wanted, value, value is not None and _holds(name, wanted, value))
            for name, wanted, value in found
            if wanted is not None
        ),
        *(verdict for device in devices for verdict in _tests(device, stopping)),
    )


def words_of_session(totals: Totals, wake: WakeProgress | None) -> tuple[WordsHeard, WordsHeard]:
    """What was heard at the first attempt, and at the one that decided: of queries, and of every device's commands."""
    commands = sum((device.words for device in wake.devices), WordsHeard()) if wake else WordsHeard()
    return totals.first_words + commands, totals.final_words + commands


def _of_device(limits: Limits, device: DeviceWake | None) -> Iterator[Finding]:
    """Limits on wake figures; without a device, what is asked for and not found."""
    of = DeviceWake("") if device is None else device
    rejects, accepts = of.false_rejects, of.after_review
    found = (
        ("max_false_reject_share", limits.max_false_reject_share, rejects.share.value),
        ("max_false_reject_upper", limits.max_false_reject_upper, _upper(rejects.interval)),
        ("max_false_accepts_per_hour", limits.max_false_accepts_per_hour, accepts.per_hour),
        ("max_false_accepts_upper_per_hour", limits.max_false_accepts_upper_per_hour, _upper(accepts.interval)),
        ("min_exposure_hours", limits.min_exposure_hours, of.exposure_s / 3600),
        ("min_command_share", limits.min_command_share, of.commands.value),
    )
    for name, wanted, value in found:
        yield (f"{name}[{of.device}]" if device else name), wanted, value


def _tests(device: DeviceWake, stopping: Stopping) -> Iterator[LimitVerdict]:
    decided = dict(device.decisions)
    declared = {"false_accepts": stopping.false_accepts, "false_rejects": stopping.false_rejects}
    for figure, test in declared.items():
        name, passed = f"{figure}_test[{device.device}]", decided.get(figure)
        if passed is not None:
            yield LimitVerdict(name, 1.0, float(passed), passed)
        elif test is not None:
            yield LimitVerdict(name, 1.0, None, stopping.on_undecided is OnUndecided.PASS)


def _upper(interval: Interval | None) -> float | None:
    return None if interval is None else interval[1]


def _holds(name: str, wanted: float, found: float) -> bool:
    return found >= wanted if name.startswith("min_") else found <= wanted
