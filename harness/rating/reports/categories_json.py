"""A category report as JSON: counts first, shares and intervals beside them; all text is ASCII."""

from __future__ import annotations

import json
from typing import Any

from harness import __version__
from harness.model.choices import Derived, Reading
from harness.model.judgment import Category
from harness.rating.figures.categories import CategoryFigures, CountedShare
from harness.rating.figures.category_comparison import CategoryComparison
from harness.rating.figures.category_groups import CrossedFigures
from harness.rating.figures.rated_trials import Fate, RatedTrial
from harness.rating.figures.reprompts import RepromptFigures
from harness.rating.reports.report import CategoryReport
from harness.statistics.significance import Swapping

FORMAT = 1


def text_of(report: CategoryReport) -> str:
    """The JSON, with a line break at its end."""
    return json.dumps(object_of(report), ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def object_of(report: CategoryReport) -> dict[str, Any]:
    """The JSON as a dictionary; docs/categories.md names its keys."""
    of = report.selection
    return {
        "format": FORMAT,
        "version": __version__,
        "sessions": list(report.sessions),
        "raters": list(of.raters),
        "round": of.round_id,
        "on": of.on.value,
        **_figures(report.figures),
        "reprompts": _reprompts(report.reprompts),
        "groups": {
            by.value: [
                {"label": one.label, **_figures(one.figures), "reprompts": _reprompts(one.reprompts)} for one in groups
            ]
            for by, groups in report.groups
        },
        "crossed": [_crossed(one) for one in report.crossed],
        "comparisons": [_comparison(one) for one in report.comparisons],
        "disputed": [_response(one) for one in report.of(Fate.DISPUTED)],
    }


def _figures(of: CategoryFigures) -> dict[str, Any]:
    return {
        "funnel": {
            "planned": of.planned,
            "asked": of.asked,
            "recognised": of.recognised,
            "answered": of.answered,
            "judged": of.judged,
            "not_assessed": of.unassessed,
            "fates": {fate.value: count for fate, count in of.fates},
        },
        "why_not": of.why_not,
        "total": of.total,
        "queries": of.queries,
        "interval_over": "queries",
        "interval_method": of.method.value,
        "basis": {basis.value: count for basis, count in of.bases},
        "categories": {
            one.value: {reading.value: _share(of.share(one, reading)) for reading in Reading} for one in Category
        },
        "derived": {
            one.value: {reading.value: _share(of.share(one, reading)) for reading in Reading} for one in Derived
        },
        "core_capability": {
            "by_rater": of.core.by_rater,
            "by_scenario": of.core.by_scenario,
            "by_both": of.core.by_both,
        },
        "sub_flags": {flag.value: count for flag, count in of.sub_flags},
        "flagged_too": of.flagged_too,
    }


def _share(of: CountedShare) -> dict[str, Any]:
    return {"count": of.count, "share": of.value, "interval": of.interval, "interval_together": of.together}


def _reprompts(of: RepromptFigures) -> dict[str, Any]:
    waits = of.waits
    return {
        "assessed": of.assessed,
        "attempts": {str(attempts): queries for attempts, queries in of.needed},
        "never": of.never,
        "not_assessed": of.unassessed,
        "first_attempt": {"count": of.first.count, "share": of.first.value, "interval": of.first.interval},
        "mean": of.mean,
        "mean_interval": of.mean_interval,
        "interval_over": "queries",
        "waits": {
            "count": waits.count,
            "least_s": waits.least_s,
            "median_s": waits.median_s,
            "most_s": waits.most_s,
            "shorter": waits.shorter,
            "unknown": waits.unknown,
        },
    }


def _crossed(of: CrossedFigures) -> dict[str, Any]:
    return {
        "by": [one.value for one in of.by],
        "rows": list(of.rows),
        "columns": list(of.columns),
        "cells": [[None if cell is None else _figures(cell) for cell in row] for row in of.cells],
    }


def _comparison(of: CategoryComparison) -> dict[str, Any]:
    apart, counts = of.difference, of.discordance
    return {
        "first": of.first,
        "second": of.second,
        "on": of.on.value,
        "reading": of.reading.value,
        "why_not": of.why_not,
        "queries": of.queries,
        "strata": of.strata,
        "responses": [of.first_responses, of.second_responses],
        "unpaired": [of.first_unpaired, of.second_unpaired],
        "shares": None if apart is None else [apart.first, apart.second],
        "difference": None if apart is None else apart.difference,
        "interval": None if apart is None else apart.interval,
        "pairs": None
        if counts is None
        else {
            "both": counts.both,
            "only_first": counts.only_first,
            "only_second": counts.only_second,
            "neither": counts.neither,
        },
        "swap": _swap(of.swap),
        "mantel_haenszel_p": of.alone_p,
        "swap_of_all_categories": _swap(of.all_swap),
        "differing": [
            {
                "query": one.query_id,
                "text": one.text,
                "difference": one.apart,
                "first": {category.value: count for category, count in one.first},
                "second": {category.value: count for category, count in one.second},
            }
            for one in of.apart
        ],
    }


def _swap(of: Swapping | None) -> dict[str, Any] | None:
    return None if of is None else {"p": of.p, "exact": of.exact, "queries": of.clusters}


def _response(one: RatedTrial) -> dict[str, Any]:
    given = [row.category for row in one.judged.submitted] if one.judged else []
    return {
        "session": one.session_id,
        "trial": one.trial.id,
        "device": one.trial.device,
        "query": one.trial.query_id,
        "text": one.trial.reference,
        "given": {category.value: given.count(category) for category in Category if category in given},
    }
