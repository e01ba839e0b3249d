"""Results by groups of recordings as a table, the worst group first."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.table import Field, Notes, Section, Table
from harness.base.text_table import shown
from harness.model.numbers import NOTHING, number, percent, probability
from harness.offline.figures.groups import FileBreakdown, FileGroup
from harness.statistics.comparison import MeasureKind, sentence
from harness.statistics.text import number_interval, voices_interval

_MAX_GROUPS = 40
P_OF_GROUPS = (
    "for the difference from all other groups together, corrected for all groups (Holm); "
    "for the largest gap, corrected for all pairs (Bonferroni)"
)


def clusters_text(clustered_by: str, units: str) -> str:
    """How intervals treat files, such as `clustered by talker (unknown ones counted as one)` or `files treated as
    independent`. units: plural of what is counted, such as `files`."""
    if not clustered_by:
        return f"{units} treated as independent"
    return f"clustered by {shown(clustered_by, 40)} (unknown ones counted as one)"


def group_lines(breakdown: FileBreakdown, width: int) -> Iterator[str]:
    """The table of a breakdown, and the gaps between the worst group and the best. width: space for the table, in
    characters."""
    rejects = any(group.rejects.total for group in breakdown.groups)
    accepts = any(group.hours for group in breakdown.groups)
    nouns = "phrases" if breakdown.labelled else "files"
    fields: list[Field[FileGroup]] = [Field("", shown(breakdown.by, 40), lambda group: shown(group.label, 40))]
    if rejects:
        fields += [
            Field("", nouns, lambda group: f"{group.rejects.total:,}"),
            Field("", "FR", lambda group: percent(group.rejects.value)),
            Field(
                "",
                "95 % interval",
                lambda group: NOTHING if group.rejects.value is None else voices_interval(group.rejects_interval),
                gives_way=2,
            ),
            Field("", "p", lambda group: probability(group.rejects_p), gives_way=1),
        ]
    if accepts:
        fields += [
            Field("", "hours", lambda group: number(group.hours), gives_way=5),
            Field("", "FA/h", lambda group: number(group.accepts_per_hour)),
            Field("", "95 % interval", lambda group: number_interval(group.accepts_interval), gives_way=4),
            Field("", "p", lambda group: probability(group.accepts_p), gives_way=3),
        ]
    pairs: list[tuple[str, str]] = []
    if rejects:
        pairs.append(("intervals of FR", clusters_text(breakdown.clustered_by, nouns)))
    pairs.append(("p", P_OF_GROUPS))
    yield ""
    yield from Section("", "", (Table(fields, breakdown.groups), Notes([*pairs, *gap_texts(breakdown)]))).lines(
        width, _MAX_GROUPS
    )


def gap_texts(breakdown: FileBreakdown) -> Iterator[tuple[str, str]]:
    """The gaps between the worst group and the best, as pairs (name of the result, gap in words)."""
    gaps = (("FR", breakdown.rejects_gap, MeasureKind.SHARE), ("FA/h", breakdown.accepts_gap, MeasureKind.RATE))
    for name, gap, measure in gaps:
        if gap is not None:
            names = shown(gap.worst, 40), shown(gap.best, 40)
            yield f"largest gap, {name}", sentence(*names, gap.difference, measure, more_is_better=False)
