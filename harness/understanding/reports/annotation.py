"""How a project was annotated, as lines, as an object and as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.base.cells import fit, shown, width_of
from harness.model.understanding import joined
from harness.statistics.intervals import Share
from harness.understanding.arithmetic.distribution import LabelCounts
from harness.understanding.reports.words import per_cent
from harness.understanding.scoring.annotation_report import AnnotationReport

TOTAL = "all"
MOST_COMBINATIONS = 20


def lines(report: AnnotationReport, labels: Sequence[str]) -> Iterator[str]:
    """For people. labels: in the order of their set."""
    width = max(width_of(name) for name, _, _ in rows(report)) + 2
    for name, count, share in rows(report):
        yield f"{fit(name, width)}{count:>8}" + (f"   {share}" if share else "")
    yield ""
    if report.facts:
        yield "last batch: " + shown(", ".join(f"{name} {value}" for name, value in report.facts))
    people = f"{_time(report.review_time_s)} at pages, {_time(report.hand_time_s)} by hand"
    yield f"classifiers {report.cpu_s:.1f} CPU s; people {people}"
    yield ""
    yield from _distribution(report, labels)


def rows(report: AnnotationReport) -> list[tuple[str, int, str]]:
    """(what, utterances, their share in words or "")."""
    return [
        ("utterances", report.utterances, ""),
        ("labelled before any proposal", report.labelled_before, ""),
        ("proposed for", report.proposed, ""),
        ("  labelled by consensus", report.consensus, _of(report.consensus, report.proposed, "of these")),
        ("    all three agree", report.unanimous, _of(report.unanimous, report.consensus, "of consensus")),
        ("      of these struck", report.unanimous_struck, _of(report.unanimous_struck, report.unanimous, "")),
        ("    accepted", report.accepted, ""),
        ("    struck", report.struck, ""),
        ("    labelled otherwise without striking", report.overridden, ""),
        ("      both, of those looked at", report.struck + report.overridden, _share(report.struck_share)),
        ("    not looked at yet", report.unreviewed, ""),
        ("  without consensus", report.without_consensus, _of(report.without_consensus, report.proposed, "")),
        ("    agreed, but refused by the label set", report.refused, ""),
        ("  left for a person", report.for_person.count, _share(report.for_person)),
        ("final", report.final, _of(report.final, report.utterances, "of all")),
        ("  by accepting proposals", report.by_review, ""),
        ("  from files", report.by_import, ""),
        ("  labelled by a person, one by one", report.by_hand, _share(report.hand_share)),
    ]


def as_json(report: AnnotationReport, labels: Sequence[str]) -> dict[str, Any]:
    """All counts; shares as counts, so that they add up."""
    names = ("utterances", "final", "labelled_before", "batches", "proposed", "consensus", "without_consensus",
             "refused", "unanimous", "unanimous_struck", "accepted", "struck", "overridden", "unreviewed", "by_hand",
             "by_import", "by_review", "review_time_s", "hand_time_s", "cpu_s")  # fmt: skip
    shares = {name: getattr(report, name) for name in ("struck_share", "for_person", "hand_share")}
    return {
        **{name: getattr(report, name) for name in names},
        **{name: {"count": one.count, "of": one.total} for name, one in shares.items()},
        "last_batch": dict(report.facts),
        "splits": {split: _counts(counts, labels) for split, counts in report.splits.items()},
    }


def as_table(report: AnnotationReport, labels: Sequence[str]) -> list[list[str]]:
    """Rows of (section, split, what, count), a header first."""
    found = [["section", "split", "what", "count"]]
    found += [["utterances", "", name.strip(), str(count)] for name, count, _ in rows(report)]
    for name in ("review_time_s", "hand_time_s", "cpu_s"):
        found.append(["seconds", "", name, f"{getattr(report, name):.1f}"])
    for split, counts in report.splits.items():
        found += [["label", split, label, str(counts.labels.get(label, 0))] for label in labels]
        found += [["combination", split, joined(of), str(many)] for of, many in sorted(counts.sets.items())]
    return found


def _distribution(report: AnnotationReport, labels: Sequence[str]) -> Iterator[str]:
    whole = sum(report.splits.values(), LabelCounts())
    columns = [*((split or "-", counts) for split, counts in report.splits.items()), (TOTAL, whole)]
    width = max([len("combinations"), *(min(40, width_of(label)) for label in labels)]) + 2
    yield fit("final labels", width) + "".join(f"{shown(name, 9):>10}" for name, _ in columns)
    for label in labels:
        yield fit(label, width) + "".join(f"{counts.labels.get(label, 0):>10}" for _, counts in columns)
    yield fit("two or more", width) + "".join(f"{counts.several:>10}" for _, counts in columns)
    yield fit("no final ones", width) + "".join(f"{counts.unannotated:>10}" for _, counts in columns)
    several = sorted(((many, of) for of, many in whole.sets.items() if len(of) > 1), key=lambda one: (-one[0], one[1]))
    if several:
        yield ""
        yield "combinations"
        yield from (f"{many:>8}  {shown(joined(of), 200)}" for many, of in several[:MOST_COMBINATIONS])
        if len(several) > MOST_COMBINATIONS:
            yield f"{len(several) - MOST_COMBINATIONS} more: --csv has them all"


def _counts(counts: LabelCounts, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "utterances": counts.utterances,
        "not_final": counts.unannotated,
        "labels": {label: counts.labels.get(label, 0) for label in labels},
        "combinations": {joined(of): many for of, many in sorted(counts.sets.items())},
    }


def _of(count: int, total: int, what: str) -> str:
    return f"{per_cent(count / total if total else None)} {what}".strip()


def _share(share: Share) -> str:
    return f"{per_cent(share.count / share.total if share.total else None)} of {share.total}"


def _time(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"
