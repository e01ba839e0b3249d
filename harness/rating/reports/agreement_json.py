"""How far raters agree, as one JSON object, and its items as a table."""

from __future__ import annotations

from typing import Any

from harness.rating.figures.agreement import CATEGORIES, AgreedItem, AgreementFigures
from harness.rating.figures.consensus import SURE_ENOUGH
from harness.rating.figures.raters import RaterFigures
from harness.statistics.agreement import Figure
from harness.statistics.intervals import Share

Json = dict[str, Any]


def as_json(figures: AgreementFigures) -> Json:
    """Counts, and figures with their intervals; what has no value is null, with the reason beside it."""
    table = figures.agreement
    together = figures.consensus
    return {
        "sessions": list(figures.sessions),
        "responses": figures.responses,
        "judged": len(figures.items),
        "gold_items": figures.gold_items,
        "disputed": len(figures.disputed),
        "settled": figures.settled,
        "agreement": {
            "raters": table.raters,
            "items": table.items,
            "shared": table.shared,
            "labels": table.labels,
            "shared_labels": table.shared_labels,
            "raw": _figure(table.raw),
            "alpha": _figure(table.alpha),
            "ac1": _figure(table.ac1),
            "intervals_over": "items",
            "categories": {
                category.value: {"labels": one.labels, "items": one.items, **_figure(one.agreement)}
                for category, one in zip(CATEGORIES, table.categories, strict=True)
            },
            "confusion": _cells(table.confusion, symmetric=True),
        },
        "pairs": [
            {
                "raters": [figures.names[one.first], figures.names[one.second]],
                "agreed": _share(one.agreed),
                "kappa": _figure(one.kappa),
                "confusion": _cells(one.confusion),
            }
            for one in figures.pairs
        ],
        "consensus": {
            "model": "dawid_skene",
            "least_probability": SURE_ENOUGH,
            "rounds": together.rounds,
            "converged": together.converged,
            "priors": {
                category.value: float(prior)
                for category, prior in zip(CATEGORIES, together.priors, strict=True)
                if prior > 0
            },
            "confusion": {
                name: {
                    said.value: {
                        other.value: float(matrix[row, column])
                        for column, other in enumerate(CATEGORIES)
                        if matrix[row, column] > 0
                    }
                    for row, said in enumerate(CATEGORIES)
                    if matrix[row].sum() > 0
                }
                for name, matrix in zip(figures.names, together.confusion, strict=True)
            },
        },
        "raters": [_rater(one) for one in figures.raters],
        "sub_flags": {
            flag.value: {"both": one.both, "one": one.one, "neither": one.neither} for flag, one in figures.sub_flags
        },
        "items": [_item(one) for one in figures.items],
    }


def table_of(figures: AgreementFigures) -> list[list[str]]:
    """A header, then a row for each item: what every rater said, and what they say together."""
    raters = [f"label.{name}" for name in figures.names]
    rows = [["session", "trial", *raters, "majority", "consensus", "probability", "settled", "gold", "disputed"]]
    for item in figures.items:
        said = dict(item.labels)
        rows.append(
            [
                item.session_id,
                item.trial_id,
                *(said[name].value if name in said else "" for name in figures.names),
                item.majority or "",
                item.consensus or "",
                "" if item.probability is None else f"{item.probability:.4f}",
                item.settled or "",
                item.gold or "",
                "true" if item.disputed else "false",
            ]
        )
    return rows


def _figure(figure: Figure) -> Json:
    found: Json = {"value": figure.value, "interval": figure.interval}
    return {**found, "why_not": figure.why_not} if figure.why_not else found


def _share(of: Share) -> Json:
    return {"count": of.count, "of": of.total, "share": of.value, "interval": of.interval}


def _cells(confusion: Any, *, symmetric: bool = False) -> list[Json]:
    return [
        {"first": CATEGORIES[c].value, "second": CATEGORIES[k].value, "count": int(confusion[c, k])}
        for c in range(len(CATEGORIES))
        for k in range(c if symmetric else 0, len(CATEGORIES))
        if confusion[c, k]
    ]


def _rater(one: RaterFigures) -> Json:
    quartiles = one.pace.quartiles
    return {
        "rater": one.rater,
        "submitted": one.submitted,
        "skipped": one.skipped,
        "flagged": one.flagged,
        "held": one.held,
        "withdrawn": one.withdrawn,
        "outdated": one.outdated,
        "time_to_answer_s": None
        if quartiles is None
        else {"low": quartiles.low_s, "median": quartiles.median_s, "high": quartiles.high_s, "of": one.pace.times},
        "per_hour": one.pace.per_hour,
        "too_fast": _share(one.too_fast),
        "heard_whole": _share(one.heard_whole),
        "transcript_shown": _share(one.transcript_shown),
        "gold": _share(one.gold),
        "exercises": _share(one.exercises),
        "as_the_others": _share(one.others),
        "as_the_others_first_half": _share(one.first_half),
        "as_the_others_second_half": _share(one.second_half),
    }


def _item(one: AgreedItem) -> Json:
    return {
        "session": one.session_id,
        "trial": one.trial_id,
        "labels": {rater: category.value for rater, category in one.labels},
        "majority": one.majority,
        "consensus": one.consensus,
        "probability": one.probability,
        "settled": one.settled,
        "gold": one.gold,
        "disputed": one.disputed,
    }
