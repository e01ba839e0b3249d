"""How far raters agree, as one JSON object, and its items as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from harness.base.cells import counted, fit, shown
from harness.model.judgment import Category
from harness.rating.figures.agreement import CATEGORIES, AgreedItem, AgreementFigures, RaterFigures
from harness.rating.figures.consensus import SURE_ENOUGH
from harness.rating.guide import LABELS
from harness.statistics.agreement import Figure, confusions
from harness.statistics.intervals import Interval, Share

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


NOTHING = "n/a"
WIDTH = 80
NAME = 12
LISTED_CONFUSIONS = 10
LISTED_PAIRS = 15
HIGH_RAW, LOW_ALPHA = 0.8, 0.4
"""Raw agreement above the one with an alpha below the other: one category is most of the labels."""


def lines(figures: AgreementFigures) -> Iterator[str]:
    """All but the disputed items."""
    yield from _head(figures)
    yield ""
    yield from _overall(figures)
    yield ""
    yield from _raters(figures.raters)
    yield ""
    yield from _care(figures.raters)
    if figures.agreement.shared:
        yield ""
        yield from _categories(figures)
        yield ""
        yield from _confusions(figures)
        yield ""
        yield from _pairs(figures)
    if any(one.both + one.one for _, one in figures.sub_flags):
        yield ""
        yield from _sub_flags(figures)


def disputed(figures: AgreementFigures) -> Iterator[str]:
    """The items on which raters differ, the widest apart first."""
    found = figures.disputed
    if not found:
        yield "no item is disputed"
        return
    yield f"disputed items: {len(found)}, the widest apart first"
    for item in found:
        several = f"{shown(item.session_id, 30)} " if len(figures.sessions) > 1 else ""
        yield shown(f"{several}{shown(item.trial_id, 60)}", WIDTH)
        for category, raters in _by_category(item):
            yield shown(f"    {LABELS[category]}: {', '.join(raters)}", WIDTH)
        if told := _together(item):
            yield shown(f"    {told}", WIDTH)


def share(of: Share, digits: int = 0) -> str:
    """`9 of 10 = 90 %`; n/a of nothing."""
    return NOTHING if of.value is None else f"{of.count} of {of.total} = {100 * of.value:.{digits}f} %"


def _by_category(item: AgreedItem) -> Iterator[tuple[Category, list[str]]]:
    often = Counter(category for _, category in item.labels)
    for category, _ in often.most_common():
        yield category, [shown(rater, 20) for rater, label in item.labels if label is category]


def _together(item: AgreedItem) -> str:
    told = []
    if item.consensus is not None and item.probability is not None:
        told.append(f"consensus {LABELS[item.consensus]}, {100 * item.probability:.0f} %")
    if item.gold is not None:
        told.append(f"known to be {LABELS[item.gold]}")
    return " · ".join(told)


def _head(figures: AgreementFigures) -> Iterator[str]:
    table = figures.agreement
    names = ", ".join(shown(one, 30) for one in figures.sessions)
    yield shown(f"session{'s' * (len(figures.sessions) != 1)} {names}", WIDTH)
    yield (
        f"{figures.responses} responses, {len(figures.items)} judged by {counted(len(figures.names), 'rater')}; "
        f"{len(figures.disputed)} disputed, {figures.settled} settled"
    )
    if figures.gold_items:
        yield f"{figures.gold_items} gold items, chosen and not drawn, are left out of agreement"
    if table.shared:
        yield f"agreement over {table.shared} items with {table.shared_labels} labels of two raters or more"


def _overall(figures: AgreementFigures) -> Iterator[str]:
    table = figures.agreement
    yield _row(("agreement", "value", "95 % interval"), (20, 8, 18))
    yield _row(("raw", _per_cent(table.raw.value), _interval(table.raw.interval, 100)), (20, 8, 18))
    for name, figure in (("Krippendorff's alpha", table.alpha), ("Gwet's AC1", table.ac1)):
        value = NOTHING if figure.value is None else f"{figure.value:.3f}"
        yield _row((name, value, _interval(figure.interval)), (20, 8, 18))
    for why, names in _reasons(table.raw, table.alpha, table.ac1).items():
        yield f"n/a of {', '.join(names)}: {why}"
    if table.shared:
        yield "Intervals are of further items judged by these raters, not of further raters."
    if _paradox(table.raw, table.alpha):
        most, often = Counter(category for item in figures.items for _, category in item.labels).most_common(1)[0]
        total = sum(len(item.labels) for item in figures.items)
        yield f"{LABELS[most]} is {100 * often / total:.0f} % of the labels: by chance alone most pairs agree, which"
        yield "alpha takes out. Read it beside AC1 and the categories below."
    together = figures.consensus
    if figures.agreement.shared:
        rest = str(together.rounds) if together.converged else f"NOT at rest after {together.rounds}"
        labelled = [item for item in figures.items if len(item.labels) >= 3 and item.gold is None]
        decided = sum(item.consensus is not None for item in labelled)
        sure = f"{100 * SURE_ENOUGH:.0f} %"
        yield f"consensus (Dawid-Skene, {rest} rounds), {sure} sure: {decided} of {len(labelled)} with three labels"


def _reasons(raw: Figure, alpha: Figure, ac1: Figure) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, figure in (("raw", raw), ("alpha", alpha), ("AC1", ac1)):
        if figure.why_not:
            found.setdefault(figure.why_not, []).append(name if figure.value is None else f"{name}'s interval")
    return found


def _paradox(raw: Figure, alpha: Figure) -> bool:
    return raw.value is not None and alpha.value is not None and raw.value > HIGH_RAW and alpha.value < LOW_ALPHA


def _raters(raters: Sequence[RaterFigures]) -> Iterator[str]:
    widths = (NAME, 6, 5, 5, 5, 6, 5, 8, 11, 7)
    heads = ("rater", "judged", "skip", "flag", "held", "undone", "old", "median", "quartiles", "per h")
    yield _row(heads, widths)
    for one in raters:
        quartiles = one.pace.quartiles
        yield _row(
            (
                one.rater,
                *map(str, (one.submitted, one.skipped, one.flagged, one.held, one.withdrawn, one.outdated)),
                NOTHING if quartiles is None else f"{quartiles.median_s:.1f} s",
                NOTHING if quartiles is None else f"{quartiles.low_s:.1f}–{quartiles.high_s:.1f}",
                NOTHING if one.pace.per_hour is None else f"{one.pace.per_hour:.0f}",
            ),
            widths,
        )
    if any(one.outdated for one in raters):
        yield "old: on responses that no longer count, as their trial was run again"


def _care(raters: Sequence[RaterFigures]) -> Iterator[str]:
    known = (NAME, 21, 21, 15)
    yield _row(("rater", "as the others say", "gold right", "exercises right"), known)
    for one in raters:
        yield _row((one.rater, _with_interval(one.others), _with_interval(one.gold), _of(one.exercises)), known)
    yield ""
    widths = (NAME, 10, 11, 17, 17, 8)
    yield _row(("rater", "1st half", "2nd half", "too fast", "heard whole", "read"), widths)
    for one in raters:
        halves = (_per_cent(one.first_half.value), _per_cent(one.second_half.value))
        yield _row(
            (one.rater, *halves, _of(one.too_fast), _of(one.heard_whole), _per_cent(one.transcript_shown.value)), widths
        )
    yield "1st, 2nd half: as the others say, in the order of judging. too fast: answered in"
    yield "less time than the response lasts. read: its transcript was shown."


def _categories(figures: AgreementFigures) -> Iterator[str]:
    widths = (30, 8, 8, 10, 15)
    yield _row(("category", "labels", "items", "said again", "95 %"), widths)
    for category, one in zip(CATEGORIES, figures.agreement.categories, strict=True):
        if one.labels:
            value = _per_cent(one.agreement.value)
            yield _row(
                (LABELS[category], str(one.labels), str(one.items), value, _interval(one.agreement.interval, 100)),
                widths,
            )
    yield "said again: when one rater says it, how often another one says it, too"


def _confusions(figures: AgreementFigures) -> Iterator[str]:
    found = confusions(figures.agreement.confusion)
    if not found:
        yield "no two raters gave an item different categories"
        return
    total = sum(often for _, _, often in found)
    yield f"taken for one another, of {total} pairs of labels that differ"
    for first, second, often in found[:LISTED_CONFUSIONS]:
        yield f"{often:6}  {LABELS[CATEGORIES[first]]} / {LABELS[CATEGORIES[second]]}"
    if len(found) > LISTED_CONFUSIONS:
        rest = sum(often for _, _, often in found[LISTED_CONFUSIONS:])
        yield f"{rest:6}  in {len(found) - LISTED_CONFUSIONS} other ways"


def _pairs(figures: AgreementFigures) -> Iterator[str]:
    widths = (NAME, NAME, 8, 22, 8)
    yield _row(("two raters", "", "shared", "agree", "kappa"), widths, left=2)
    least = sorted(figures.pairs, key=lambda one: one.agreed.value or 0.0)
    for one in least[:LISTED_PAIRS]:
        kappa = NOTHING if one.kappa.value is None else f"{one.kappa.value:.3f}"
        names = figures.names[one.first], figures.names[one.second]
        yield _row((*names, str(one.agreed.total), _with_interval(one.agreed), kappa), widths, left=2)
    if len(least) > LISTED_PAIRS:
        yield f"and {len(least) - LISTED_PAIRS} pairs that agree more"


def _sub_flags(figures: AgreementFigures) -> Iterator[str]:
    yield "sub-flags, where two raters gave the same category: when one sets it, the other, too"
    for flag, one in figures.sub_flags:
        if one.both + one.one:
            yield f"  {flag.value:<24}{share(one.set_again)}"


def _with_interval(of: Share) -> str:
    """`90 %  (77–96)`, of how many is told by the counts elsewhere."""
    if of.value is None or of.interval is None:
        return NOTHING
    return f"{of.count}/{of.total} {_per_cent(of.value)} {_span(of.interval, 100)}"


def _of(of: Share) -> str:
    return NOTHING if of.value is None else f"{of.count}/{of.total} {_per_cent(of.value)}"


def _per_cent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"


def _interval(interval: Interval | None, times: float = 1.0) -> str:
    if interval is None:
        return NOTHING
    if times == 1.0:
        return f"{interval[0]:.3f} to {interval[1]:.3f}"
    return f"{times * interval[0]:.1f} to {times * interval[1]:.1f} %"


def _span(interval: Interval, times: float) -> str:
    return f"{times * interval[0]:.0f}–{times * interval[1]:.0f}"


def _row(cells: Sequence[str], widths: Sequence[int], left: int = 1) -> str:
    sized = list(zip(cells, widths, strict=True))
    # A figure that is too wide moves its line: cut, it would be another figure.
    return " ".join(
        [*(fit(*one) for one in sized[:left]), *(cell.rjust(width) for cell, width in sized[left:])]
    ).rstrip()
