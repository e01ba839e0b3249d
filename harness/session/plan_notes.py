"""Notes on a plan: trials that need a person's answer, and limits that none of its trials can decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.bench import OperatorPresence
from harness.model.numbers import counted
from harness.model.scenario import Evidence, Limits, TrialKind
from harness.model.stimulus import Recording
from harness.model.trial import Trial
from harness.statistics.intervals import values_needed

ON_RECOGNITION = ("min_recognised_share", "min_first_attempt_share", "max_first_attempt_wer", "max_final_wer")
"""Limits that have no result if there is no evidence of what a device understood."""


def evidence_notes(trials: Sequence[Trial], limits: Limits, operator: OperatorPresence) -> Iterator[str]:
    """Notes on trials that have a result only if a person answers, and on limits that nothing can decide."""
    operator_trials = [trial for trial in trials if trial.evidence is Evidence.OPERATOR]
    if operator_trials and operator is not OperatorPresence.PRESENT:
        devices = ", ".join(dict.fromkeys(trial.device for trial in operator_trials))
        count = f"{len(operator_trials)} of {counted(len(trials), 'trial')}"
        remedy = "Keep the dashboard open, or answer on a terminal: --plain --attended"
        if operator is OperatorPresence.ABSENT:
            count = f"the operator is absent, and {count}"
            remedy = "Use --attended, or set `operator: auto` in the bench and leave out --unattended"
        note = f"{count} need a person to say whether {devices} understood; unanswered, they are inconclusive. {remedy}"
        if not any(trial.kind is TrialKind.UNDERSTAND for trial in operator_trials):
            note += ". For a run without a person, write `evidence: none` and limits such as min_answered_share"
        yield note
    queries = [trial for trial in trials if trial.kind.asks]
    if not queries or any(trial.evidence is not Evidence.NONE for trial in queries):
        return
    has_commands = any(trial.kind is TrialKind.COMMAND for trial in trials)  # their words decide a WER
    for name in ON_RECOGNITION:
        if getattr(limits, name) is not None and not (has_commands and name.endswith("wer")):
            yield (
                f"{name} cannot be decided: with `evidence: none`, nothing shows what a device understood. "
                "Write `evidence: auto`, or limits such as min_answered_share and max_latency_p95_ms"
            )


def percentile_notes(trials: Sequence[Trial], limits: Limits) -> Iterator[str]:
    """Notes on limits on a p95 that cannot pass, because too few trials measure that time; with remedies."""
    least_count = values_needed(0.95)
    for name, counts in _planned_time_counts(trials).items():
        if getattr(limits, name) is None:
            continue
        for device, count in counts.items():
            limit = f"{name}[{device}]" if device else name
            if count == 0:
                remedy = "Remove the limit, or add trials that measure it"
                yield f"{limit} cannot pass: no trial in the plan measures this time. {remedy}"
            elif count < least_count:
                yield f"{limit} cannot pass with {counted(count, 'trial')}: p95 needs {least_count}. Raise `repeat`"


def _planned_time_counts(trials: Sequence[Trial]) -> dict[str, dict[str, int]]:
    """Limit on a p95 → device ("" for queries to all devices) → largest possible number of measured times.

    See `check_limits`.
    """
    queries = len([trial for trial in trials if trial.kind.asks and trial.memory is None and trial.responds])
    wakes, commands = dict[str, int](), dict[str, int]()
    for trial in trials:
        if trial.listening is None:
            continue
        for target in trial.targets:
            wakes.setdefault(target.device, 0)
            if trial.kind is TrialKind.WAKE and _has_phrase_end(trial):  # commands have no wake delay
                wakes[target.device] += 1
            if trial.kind is TrialKind.COMMAND:
                commands[target.device] = commands.get(target.device, 0) + 1
    first_sounds = dict(commands)
    if queries or not commands:
        first_sounds = {"": queries, **commands}
    return {
        "max_latency_p95_ms": {"": queries},
        "max_wake_delay_p95_ms": wakes or {"": 0},
        "max_first_sound_p95_ms": first_sounds,
    }


def _has_phrase_end(trial: Trial) -> bool:
    """Whether it is known where the phrase ends in the sound of a trial."""
    voice = trial.recipe.spoken_by
    return not isinstance(voice, Recording) or voice.phrase_end_s is not None
