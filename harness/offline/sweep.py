"""From an evaluation's outcomes and the scores that were kept to counts at every threshold; no engine, no sound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.model.errors import InputError
from harness.model.offline import Counting, EngineFacts, Evaluation, FileOutcome, SpotRule
from harness.offline.figures.sweep import Sweep
from harness.offline.score_cache import ScoreCache

MOST_NAMED = 3


def demand_scores(facts: EngineFacts, evaluation: Evaluation) -> SpotRule:
    """The rule of an engine that tells scores; InputError for one that tells spots, or whose scores are not kept."""
    if facts.rule is None:
        raise InputError(
            f"{evaluation.task.engine} tells no scores, so that its operating points cannot be swept",
            remedy="Run it once for each value of its own setting, and compare the logs: harness compare",
        )
    if evaluation.continuous:
        raise InputError(
            "with --continuous the scores of a file depend on those before it, and are not kept",
            remedy="Sweep without --continuous",
        )
    return facts.rule


def sweep_of(
    outcomes: Iterable[tuple[FileOutcome, str]],
    facts: EngineFacts,
    evaluation: Evaluation,
    counting: Counting,
    cache: ScoreCache,
    *,
    refractory_ms: float | None = None,
) -> Sweep:
    """Outcomes, each with the file's name, as counts at every threshold. refractory_ms: in place of the run's own.

    InputError for files whose scores are not there, naming some; a damaged entry has been told by the cache.
    """
    rule = demand_scores(facts, evaluation)
    if refractory_ms is not None:
        rule = replace(rule, refractory_samples=round(refractory_ms / 1000 * facts.rate_hz))
    sweep = Sweep(counting, rule, facts.operating_points)
    missing: list[str] = []
    gone = 0
    for outcome, name in outcomes:
        tracks = None
        if sweep.wants(outcome):
            tracks = cache.get(facts.fingerprint, outcome.sha256) if outcome.sha256 else None
            if tracks is None:
                gone += 1
                missing += [name] if len(missing) < MOST_NAMED else []
                continue
        sweep.add(outcome, tracks or ())
    if gone:
        named = ", ".join(repr(name) for name in missing)
        raise InputError(
            f"{cache.folder} has no scores of {gone:,} files, such as {named}",
            remedy="Run the evaluation again with --cache and the same folder: only what is missing is worked out",
        )
    return sweep
