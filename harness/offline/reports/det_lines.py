"""What a sweep found, in lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.model.choices import ChosenBy
from harness.model.offline import EngineFacts
from harness.offline.figures.chosen_point import Aim, ChosenPoint, PointFigures, Target, TermWeighted, figures_at
from harness.offline.figures.sweep import Sweep
from harness.offline.reports.det_csv import threshold_text

FLATTERS = (
    "One list served to choose the point and to report it: such figures flatter themselves. "
    "Choose on another list: --dev-inv, --dev-oov"
)


def target_text(target: Target) -> str:
    """at most 0.5 false accepts an hour (the figure itself)"""
    by = "the figure itself" if target.by is ChosenBy.ESTIMATE else "the upper end of its 95 % interval"
    match target.aim:
        case Aim.FALSE_ACCEPTS:
            return f"at most {target.value:g} false accepts an hour ({by})"
        case Aim.FALSE_REJECTS:
            return f"at most {100 * target.value:g} % false rejects ({by})"
        case Aim.COST:
            return (
                f"the least cost an hour, with {target.miss_cost:g} a false reject, {target.accept_cost:g} a false "
                f"accept, {target.uses_per_hour:g} uses an hour"
            )


def figures_text(found: PointFigures) -> str:
    """Both figures with their counts and exact 95 % intervals."""
    rate, rates = found.per_hour, found.per_hour_interval
    share, shares = found.false_rejects, found.false_reject_interval
    accepts = "FA n/a" if rate is None or rates is None else (
        f"{found.false_accepts} FA in {found.hours:.3f} h, {rate:.4g}/h [{rates[0]:.4g}, {rates[1]:.4g}]"
    )  # fmt: skip
    rejects = "FR n/a" if share is None or shares is None else (
        f"{found.misses} of {found.files} FR, {100 * share:.2f} % [{100 * shares[0]:.2f}, {100 * shares[1]:.2f}]"
    )  # fmt: skip
    return f"{accepts}; {rejects}"


def point_text(found: PointFigures) -> str:
    """Its threshold, as a setting, and its number where it has one."""
    number = f" (operating point {found.point})" if found.point is not None else ""
    return f"threshold {threshold_text(found.threshold)}{number}"


def chosen_lines(target: Target, found: ChosenPoint | None) -> Iterator[str]:
    """The recommended point, on both lists side by side, or that there is none."""
    yield f"Target: {target_text(target)}"
    if found is None:
        yield "No threshold keeps it: more material, another target or another model is needed"
        return
    yield f"Chosen: {point_text(found.chosen)}, by -s threshold={threshold_text(found.chosen.threshold)}"
    if found.reported is None:
        yield f"  on the only list: {figures_text(found.chosen)}"
        yield FLATTERS
        return
    yield f"  on the development list: {figures_text(found.chosen)}"
    keeps = {True: "; the target is kept", False: "; the target is NOT kept", None: ""}[found.reported.keeps(target)]
    yield f"  reported:                {figures_text(found.reported)}{keeps}"


def twv_lines(found: TermWeighted) -> Iterator[str]:
    """MTWV and ATWV."""
    over = "the hours of false accepts" if found.speech_s is None else f"{found.speech_s:g} s of speech"
    if found.best is None or found.best_at is None:
        yield f"MTWV n/a (beta {found.beta:g}, over {over})"
        return
    yield f"MTWV {found.best:.4f} at {point_text(found.best_at)} (beta {found.beta:g}, over {over})"
    actual = "n/a" if found.actual is None else f"{found.actual:.4f}"
    yield f"ATWV {actual} at {point_text(found.at_point)}"


def sweep_json(report: Sweep, thresholds: int, facts: EngineFacts, lead_in_ms: float) -> dict[str, Any]:
    """How the counts were made, and those at the operating points."""
    return {
        "fingerprint": facts.fingerprint,
        "lead_in_ms": lead_in_ms,
        "refractory_ms": 1000 * report.rule.refractory_samples / facts.rate_hz,
        "count_in_vocabulary": report.counting.count_in_vocabulary,
        "thresholds": thresholds,
        "rejected_files": report.rejected_files,
        "operating_points": [figures_json(figures_at(report, point.threshold)) for point in report.points],
    }


def chosen_json(target: Target, found: ChosenPoint | None) -> dict[str, Any]:
    """The same as plain JSON values; shares are 0–1."""
    told: dict[str, Any] = {"aim": target.aim.value, "by": target.by.value}
    if target.aim is Aim.COST:
        told |= {"miss": target.miss_cost, "false_accept": target.accept_cost, "uses_per_hour": target.uses_per_hour}
    else:
        told["value"] = target.value
    if found is None:
        return {"target": told, "chosen": None, "reported": None, "one_list": None}
    return {
        "target": told,
        "chosen": figures_json(found.chosen),
        "reported": figures_json(found.reported) if found.reported is not None else None,
        "kept": found.reported.keeps(target) if found.reported is not None else None,
        "one_list": found.reported is None,
    }


def figures_json(found: PointFigures) -> dict[str, Any]:
    """A point's counts and intervals; null over nothing."""
    return {
        "threshold": float(threshold_text(found.threshold)),
        "operating_point": found.point,
        "false_accepts": found.false_accepts,
        "hours": found.hours,
        "fa_per_hour": found.per_hour,
        "fa_per_hour_95": found.per_hour_interval,
        "false_rejects": found.misses,
        "files": found.files,
        "fr": found.false_rejects,
        "fr_95": found.false_reject_interval,
    }


def twv_json(found: TermWeighted) -> dict[str, Any]:
    """Term-weighted values, null over nothing."""
    return {
        "beta": found.beta,
        "speech_s": found.speech_s,
        "mtwv": found.best,
        "mtwv_at": figures_json(found.best_at) if found.best_at is not None else None,
        "atwv": found.actual,
        "atwv_at": figures_json(found.at_point),
    }
