"""The agreement report: lines of at most 80 columns, one JSON object, and a table of items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any

from harness.base.grouping import group_by
from harness.base.plain_json import Json, picked, to_plain
from harness.base.table import Field, Notes, Occurrences, Part, Section, Table
from harness.base.text_table import join_blocks, shown
from harness.model.judgment import Category, SubFlag
from harness.model.numbers import NOTHING, counted, fixed, percent, seconds
from harness.rating.figures.agreement import (
    CATEGORIES,
    AgreedItem,
    AgreementFigures,
    RaterFigures,
    SubFlagAgreement,
    Votes,
    VotesFigures,
)
from harness.rating.guide import LABELS, TO_JUDGE
from harness.statistics.agreement import (
    DOUBTFUL,
    NOTHING_JUDGED,
    TOO_FEW_ITEMS,
    CategoryAgreement,
    Figure,
    PairAgreement,
    confusions,
    rough_note,
)
from harness.statistics.intervals import Share
from harness.statistics.text import coefficient, coefficient_interval, percent_interval, seconds_interval, share


def to_json(figures: AgreementFigures) -> Json:
    """Counts, and coefficients with intervals. A missing value is null, with its reason in why_not."""
    table = figures.agreement
    model = figures.model
    return {
        "sessions": list(figures.sessions),
        "responses": figures.responses,
        "judged": len(figures.items),
        "gold_items": figures.gold_items,
        "disputed": len(figures.disputed),
        "settled": figures.settled,
        "agreement": {
            **picked(table, "raters", "items", "shared", "labels", "shared_labels"),
            "raw": _figure_json(table.raw),
            "alpha": _figure_json(table.alpha),
            "ac1": _figure_json(table.ac1),
            "intervals_over": "items",
            "categories": {
                category.value: {"labels": specific.labels, "items": specific.items, **_figure_json(specific.agreement)}
                for category, specific in zip(CATEGORIES, table.categories, strict=True)
            },
            "confusion": _confusion_json(table.confusion, symmetric=True),
        },
        "pairs": _pairs_table(figures).json(),
        "consensus": {
            "votes": votes_table(figures).json(),
            "model": "dawid_skene",
            "least_probability": DOUBTFUL,
            "rounds": model.rounds,
            "converged": model.converged,
            "priors": {
                category.value: float(prior)
                for category, prior in zip(CATEGORIES, model.priors, strict=True)
                if prior > 0
            },
            "confusion": {
                name: _rater_confusion_json(matrix) for name, matrix in zip(figures.names, model.confusion, strict=True)
            },
        },
        "raters": Table((_RATER, *_COUNTS, *_ATTENTION_SHARES, *_CORRECT_SHARES, *_HALF_SHARES), figures.raters).json(),
        "sub_flags": {flag.value: to_plain(flag_agreement) for flag, flag_agreement in figures.sub_flags},
        "items": [
            {
                "session": item.session_id,
                "trial": item.trial_id,
                "labels": {rater: category.value for rater, category in item.labels},
                **picked(item, *_ITEM_JSON_KEYS),
            }
            for item in figures.items
        ],
    }


_ITEM_JSON_KEYS = ("majority", "consensus", "consensus_raters", "probability", "settled", "gold", "disputed")


_ITEM_COLUMNS = (
    "majority", "consensus", "probability", "settled", "gold", "disputed", "consensus_raters", "gold_right",
    "gold_right_low", "gold_right_high"
)  # fmt: skip


def item_rows(figures: AgreementFigures) -> list[list[str]]:
    """A header, then a row for each item: labels of the raters, majority and consensus.

    gold_right: share of gold items with the same votes on which the raters are right, with its interval.
    """
    label_columns = [f"label.{name}" for name in figures.names]
    rows = [["session", "trial", *label_columns, *_ITEM_COLUMNS]]
    for item in figures.items:
        labels, right = dict(item.labels), figures.right(item)
        low, high = right.interval or (None, None)
        rows.append(
            [
                item.session_id,
                item.trial_id,
                *(labels[name].value if name in labels else "" for name in figures.names),
                item.majority or "",
                item.consensus or "",
                "" if item.probability is None else fixed(item.probability, 4),
                item.settled or "",
                item.gold or "",
                "true" if item.disputed else "false",
                str(item.consensus_raters or ""),
                *("" if value is None else fixed(value, 4) for value in (right.value, low, high)),
            ]
        )
    return rows


def _figure_json(figure: Figure) -> Json:
    fields: Json = {"value": figure.value, "interval": figure.interval}
    if figure.why_not:
        fields["why_not"] = figure.why_not
    return fields


def _share_json(ratio: Share) -> Json:
    return {"count": ratio.count, "of": ratio.total, "share": ratio.value, "interval": ratio.interval}


def _rater_confusion_json(matrix: Any) -> Json:
    """For each true category, the categories that the rater gives with a probability above zero, and the
    probability."""
    rows: Json = {}
    for category, probabilities in zip(CATEGORIES, matrix, strict=True):
        cells = {
            other.value: float(probability)
            for other, probability in zip(CATEGORIES, probabilities, strict=True)
            if probability > 0
        }
        if cells:
            rows[category.value] = cells
    return rows


def _confusion_json(confusion: Any, *, symmetric: bool = False) -> list[Json]:
    """The cells above zero of a confusion matrix. symmetric: whether to leave out those below the diagonal."""
    cells: list[Json] = []
    for row, first in enumerate(CATEGORIES):
        for column, second in enumerate(CATEGORIES):
            if confusion[row, column] and not (symmetric and column < row):
                cells.append({"first": first.value, "second": second.value, "count": int(confusion[row, column])})
    return cells


_PROGRAM_MARK = "* "
"""Marks a program in the tables."""


def _marked_name(rater: RaterFigures) -> str:
    return f"{_PROGRAM_MARK}{rater.rater}" if rater.program else rater.rater


def _pace_json(rater: RaterFigures) -> Json | None:
    if rater.quartiles_s is None:
        return None
    low_s, median_s, high_s = rater.quartiles_s
    return {"low": low_s, "median": median_s, "high": high_s, "of": len(rater.times_s)}


def _pace_in_words(rater: RaterFigures) -> str:
    if rater.quartiles_s is None:
        return NOTHING
    low_s, median_s, high_s = rater.quartiles_s
    return f"{seconds(median_s)} ({seconds_interval(low_s, high_s)})"


MAX_PER_HOUR = 3600
"""More answers per hour than a person can give. Higher rates are not written out."""


def _per_hour_in_words(rater: RaterFigures) -> str:
    return f"> {MAX_PER_HOUR}" if (rater.per_hour or 0) > MAX_PER_HOUR else fixed(rater.per_hour, 0)


_RATER: Field[RaterFigures] = Field("rater", "rater", attrgetter("rater"), _marked_name)
_COUNTS: tuple[Field[RaterFigures], ...] = (
    *(
        Field(key, title, attrgetter(key))
        for key, title in {
            "program": "", "submitted": "judged", "skipped": "skip", "flagged": "flag", "held": "held",
            "withdrawn": "undone", "outdated": "old",
        }.items()
    ),
    Field("time_to_answer_s", "median (quartiles)", _pace_json, _pace_in_words),
    Field("per_hour", "per h", attrgetter("per_hour"), _per_hour_in_words),
)  # fmt: skip


def _share_column(key: str, title: str, text: Callable[[Share], str], attribute: str = "") -> Field[RaterFigures]:
    """A column of shares.

    - key: its key in the JSON.
    - attribute: that of `RaterFigures`; "" if it has the key's name.
    """
    share_of: Callable[[RaterFigures], Share] = attrgetter(attribute or key)
    return Field(key, title, lambda rater: _share_json(share_of(rater)), lambda rater: text(share_of(rater)))


WIDTH = 80
MAX_LISTED = 15
_CUT_SECTIONS = ("confusions", "pairs")
"""Sections of which the text shows only MAX_LISTED rows."""
HIGH_RAW, LOW_ALPHA = 0.8, 0.4
"""Raw agreement above HIGH_RAW with alpha below LOW_ALPHA shows that one category makes up most labels."""
_NOTE_COLUMN = 15
"""Column in which the texts of notes begin."""


def report_lines(figures: AgreementFigures, rated: str = "SESSION…") -> Iterator[str]:
    """The report without disputed items. rated: the sessions as arguments of `harness rate`, with which the disputed
    items can be settled; escaped."""
    names = ", ".join(shown(session, 30) for session in figures.sessions)
    yield shown(f"session {names}" if len(figures.sessions) == 1 else f"sessions {names}", WIDTH)
    if figures.untouched:
        yield f"{counted(figures.responses, 'response')}: {NOTHING_JUDGED}. {TO_JUDGE}"
        return
    section_lines = (
        section.lines(WIDTH, MAX_LISTED if section.key in _CUT_SECTIONS else None) for section in sections(figures)
    )
    hint = [f"Disputed items: --disagreements. To settle: harness rate {rated} --adjudicate"]
    yield from join_blocks(*section_lines, hint if figures.disputed else ())


def sections(figures: AgreementFigures) -> Iterator[Section]:
    """The sections of the report, as text and page show them."""
    parts = (_sentences(_counts_in_words(figures)), _coefficients_table(figures), _sentences(_cautions(figures)))
    yield Section("agreement", "Inter-rater agreement", parts)
    if figures.by_votes:
        yield Section("votes", "Consensus", (votes_table(figures), _consensus_notes(figures)))
    yield Section("raters", "Raters", list(_rater_parts(figures)))
    if figures.agreement.shared:
        note = _specific_agreement_note("how often another rater chose this category if one rater did")
        yield Section(
            "confusions", "Agreement by category", (_categories_table(figures), note, _confusions_part(figures))
        )
    if figures.pairs:
        lowest_first = sorted(figures.pairs, key=lambda pair: pair.agreed.value or 0.0)
        order = _sentences(["Pairs with the lowest agreement come first."])
        yield Section("pairs", "Pairs of raters", (replace(_pairs_table(figures), rows=lowest_first), order))
    flags = [(flag, counts) for flag, counts in figures.sub_flags if counts.both + counts.one]
    if flags:
        note = _specific_agreement_note(
            "if two raters chose the same category and one set the sub-flag: how often the other set it too"
        )
        yield Section("sub-flags", "Sub-flags", (Table(_SUB_FLAGS, flags), note))


def _specific_agreement_note(meaning: str) -> Notes:
    return Notes([("agreement", f"specific agreement: {meaning}")], _NOTE_COLUMN)


def _sentences(sentences: Iterable[str]) -> Notes:
    return Notes([("", sentence) for sentence in sentences])


def disputed_lines(figures: AgreementFigures) -> Iterator[str]:
    """The items on which raters differ, most divided first."""
    items = figures.disputed
    if not items:
        yield f"{NOTHING_JUDGED}. {TO_JUDGE}" if figures.untouched else "no item is disputed"
        return
    yield f"disputed items: {len(items)}, most divided first"
    for item in items:
        session = f"{shown(item.session_id, 30)} " if len(figures.sessions) > 1 else ""
        yield shown(f"{session}{shown(item.trial_id, 60)}", WIDTH)
        for line in vote_lines(item, figures):
            yield shown(f"    {line}", WIDTH)


def vote_lines(item: AgreedItem, figures: AgreementFigures) -> Iterator[str]:
    """Lines about one item: who gave each category, the most frequent first, and the result of all votes."""
    counts = Counter(category for _, category in item.labels)
    for category, _ in counts.most_common():
        yield f"{LABELS[category]}: {', '.join(shown(rater, 20) for rater, label in item.labels if label is category)}"
    summary = _outcome_text(item)
    if summary:
        yield summary
    right = figures.right(item)
    if item.consensus is not None and right.total:
        yield f"correct on known answers with {votes_in_words(item.votes)}: {_share_with_interval(right)}"


def votes_in_words(votes: Votes) -> str:
    """How many of the raters agree, such as `2 of 3 raters`."""
    agreeing, raters = votes
    return f"{agreeing} of {raters} raters"


def _outcome_text(item: AgreedItem) -> str:
    """The consensus, the known category and the adjudication of an item; "" if it has none of them."""
    parts = []
    if item.consensus is not None:
        parts.append(f"consensus {LABELS[item.consensus]}, {votes_in_words(item.votes)}")
    if item.gold is not None:
        parts.append(f"correct answer: {LABELS[item.gold]}")
    if item.settled is not None:
        parts.append(f"settled as {LABELS[item.settled]}")
    return " · ".join(parts)


def _counts_in_words(figures: AgreementFigures) -> Iterator[str]:
    """Lines about what was judged, and on which items the coefficients are based."""
    table = figures.agreement
    raters = counted(len(figures.names), "rater")
    yield (
        f"{counted(figures.responses, 'response')}, {len(figures.items)} judged by {raters}; "
        f"{len(figures.disputed)} disputed, {figures.settled} settled"
    )
    if figures.gold_items:
        left_out = counted(figures.gold_items, "known answer")
        yield f"not counted: {left_out}, since they were selected, not sampled at random"
    if table.shared:
        yield (
            f"agreement over {counted(table.shared, 'response')} with labels from two or more raters "
            f"({table.shared_labels} labels)"
        )


def _coefficients_table(figures: AgreementFigures) -> Table[tuple[str, str, str]]:
    """The table of raw agreement, alpha and AC1, with intervals."""
    table = figures.agreement
    rows = [("raw", percent(table.raw.value), percent_interval(table.raw.interval))]
    for name, figure in (("Krippendorff's alpha", table.alpha), ("Gwet's AC1", table.ac1)):
        rows.append((name, coefficient(figure.value), coefficient_interval(figure.interval)))
    titles = ("agreement", "value", "95 % interval")
    return Table([Field("", title, itemgetter(index)) for index, title in enumerate(titles)], rows)


def _cautions(figures: AgreementFigures) -> Iterator[str]:
    """Lines on how to read the coefficients, and why one is missing."""
    table = figures.agreement
    reasons = group_by(
        ((figure.why_not, "value" if figure.value is None else "interval"), name)
        for name, figure in (("raw", table.raw), ("alpha", table.alpha), ("AC1", table.ac1))
        if figure.why_not
    )
    for (why, lacking), names in reasons.items():
        yield f"no {lacking} for {', '.join(names)}: {why}"
        if why == TOO_FEW_ITEMS:
            yield "Only these intervals are bootstraps. The intervals below hold for any number of items."
    if table.shared:
        yield "Intervals generalise to other items judged by these raters, not to other raters."
    yield from rough_note(table.shared)
    raw, alpha = table.raw.value, table.alpha.value
    if raw is not None and alpha is not None and raw > HIGH_RAW and alpha < LOW_ALPHA:
        counts = [specific.labels for specific in table.categories]
        most_frequent = CATEGORIES[counts.index(max(counts))]
        share_text = percent(max(counts) / table.shared_labels)
        yield f"{LABELS[most_frequent]} is {share_text} of the labels, so most pairs would agree by chance."
        yield "Alpha corrects for this. Compare it with AC1 and the categories below."


def votes_table(figures: AgreementFigures) -> Table[tuple[Votes, VotesFigures]]:
    """The table of responses with a consensus, by the number of raters who agree. It also shows how often such a
    consensus is right on gold items."""
    fields: tuple[Field[tuple[Votes, VotesFigures]], ...] = (
        Field("", "consensus", lambda row: votes_in_words(row[0])),
        Field("votes", "", lambda row: row[0][0]),
        Field("raters", "", lambda row: row[0][1]),
        Field("items", "items", lambda row: row[1].items),
        Field("doubtful", "doubtful", lambda row: row[1].doubtful),
        Field(
            "gold", "known answers right", lambda row: _share_json(row[1].right), lambda row: _share_text(row[1].right)
        ),
        Field("", "95 %", lambda row: percent_interval(row[1].right.interval)),
    )
    return Table(fields, list(figures.by_votes.items()))


def _consensus_notes(figures: AgreementFigures) -> Notes:
    """Notes on what a consensus is, and how to read the table."""
    labelled = [item for item in figures.items if item.gold is None and len(item.labels) > 1]
    decided = sum(item.consensus is not None for item in labelled)
    model = counted(figures.model.rounds, "iteration")
    if not figures.model.converged:
        model = f"NOT converged after {model}"
    pairs = [
        ("", f"{decided} of {counted(len(labelled), 'response')} with two or more labels have a consensus"),
        ("consensus", "the category that most raters chose, at least two; none in a tie"),
        ("doubtful", f"below 90 % probability in the Dawid-Skene model ({model}); review these first"),
    ]
    if not any(votes.right.total for votes in figures.by_votes.values()):
        pairs.append(("", "How often a consensus is right is unknown: only known answers can show it."))
    return Notes(pairs, _NOTE_COLUMN)


def _rater_parts(figures: AgreementFigures) -> Iterator[Part]:
    """Three tables of the raters, which together have all columns, and notes on them."""
    raters = figures.raters
    for columns in (_COUNTS, _CORRECT_SHARES, (*_HALF_SHARES, *_ATTENTION_SHARES)):  # so that each fits into WIDTH
        yield Table((_RATER, *columns), raters)
    pairs = [
        ("median", "time to answer, counted from when the response appears"),
        ("leave-one-out", "agreement with the consensus of the other raters"),
        ("1st, 2nd half", "leave-one-out in each half of the rater's judgments, in the order of judging"),
        ("too fast", "answered in less time than the response lasts"),
        ("transcript", "shown to the rater"),
    ]
    if any(rater.outdated for rater in raters):
        pairs.append(("old", "judgments of responses that no longer count, since the trial was run again"))
    if all(rater.leave_one_out.value is None for rater in raters):
        pairs.append(("n/a", "leave-one-out needs at least two other raters who agree"))
    if figures.programs:
        pairs.append((_PROGRAM_MARK, "a program; only people count in agreement, consensus and disputes"))
    yield Notes(pairs, _NOTE_COLUMN)


def _categories_table(figures: AgreementFigures) -> Table[tuple[Category, CategoryAgreement]]:
    """The table of agreement on each category that some rater gave."""
    fields: tuple[Field[tuple[Category, CategoryAgreement]], ...] = (
        Field("", "category", lambda row: LABELS[row[0]]),
        Field("", "labels", lambda row: row[1].labels),
        Field("", "items", lambda row: row[1].items),
        Field("", "agreement", lambda row: percent(row[1].agreement.value)),
        Field("", "95 %", lambda row: percent_interval(row[1].agreement.interval)),
    )
    categories = zip(CATEGORIES, figures.agreement.categories, strict=True)
    return Table(fields, [row for row in categories if row[1].labels])


def _confusions_part(figures: AgreementFigures) -> Part:
    rows = [
        ((f"{LABELS[CATEGORIES[first]]} / {LABELS[CATEGORIES[second]]}",), count)
        for first, second, count in confusions(figures.agreement.confusion)
    ]
    if not rows:
        return _sentences(["no two raters chose different categories"])
    return Occurrences("most frequent confusions (pairs of labels)", rows)


def _pairs_table(figures: AgreementFigures) -> Table[PairAgreement]:
    names = (*figures.names, *figures.programs)
    marked_names = (*figures.names, *(f"{_PROGRAM_MARK}{program}" for program in figures.programs))
    fields: tuple[Field[PairAgreement], ...] = (
        Field(
            "raters",
            "pair of raters",
            lambda pair: [names[pair.first], names[pair.second]],
            lambda pair: f"{shown(marked_names[pair.first], 20)}, {shown(marked_names[pair.second], 20)}",
        ),
        Field("", "items", lambda pair: pair.agreed.total),
        Field(
            "agreed", "agreement", lambda pair: _share_json(pair.agreed), lambda pair: _share_with_interval(pair.agreed)
        ),
        Field("kappa", "kappa", lambda pair: _figure_json(pair.kappa), lambda pair: coefficient(pair.kappa.value)),
        Field("confusion", "", lambda pair: _confusion_json(pair.confusion)),
    )
    return Table(fields, figures.pairs)


def _share_with_interval(ratio: Share) -> str:
    return NOTHING if ratio.value is None else f"{_share_text(ratio)}, {percent_interval(ratio.interval)}"


def _percent(ratio: Share) -> str:
    return percent(ratio.value)


def _share_text(ratio: Share) -> str:
    return NOTHING if ratio.value is None else f"{ratio.count}/{ratio.total} {percent(ratio.value)}"


_ATTENTION_SHARES = (
    _share_column("too_fast", "too fast", _share_text),
    _share_column("heard_whole", "heard in full", _share_text),
    _share_column("transcript_shown", "transcript", _percent),
)
_CORRECT_SHARES = (
    _share_column("gold", "known answers right", _share_with_interval),
    _share_column("exercises", "exercises right", _share_text),
    _share_column("as_the_others", "leave-one-out", _share_with_interval, "leave_one_out"),
)
_HALF_SHARES = (
    _share_column("as_the_others_first_half", "1st half", _percent, "first_half"),
    _share_column("as_the_others_second_half", "2nd half", _percent, "second_half"),
)
_SUB_FLAGS: tuple[Field[tuple[SubFlag, SubFlagAgreement]], ...] = (
    Field("", "sub-flag", lambda row: row[0].value),
    Field("", "agreement", lambda row: row[1].set_again, lambda row: share(row[1].set_again)),
)
