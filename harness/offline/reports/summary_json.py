"""`<log>.json`: what a log sums up, with exact sample counts, for machines."""

from __future__ import annotations

from typing import Any

from harness.base.plain_json import plain
from harness.offline.figures.counts import Samples
from harness.offline.figures.figures import Figures
from harness.offline.reports.log import Run, factor
from harness.statistics.exact import Interval
from harness.wake.reports.wake_log import TOTALS, moment

FORMAT = 1


def as_json(run: Run, found: Figures) -> dict[str, Any]:
    """Settings, totals, intervals (of rates an hour, of shares and WER 0–1) and samples by rate in Hz.

    A total over nothing is null.
    """
    header, counts = run.header, found.counts
    clustering = found.clustering
    return {
        "evaluation_summary": FORMAT,
        "partial": run.partial,
        "planned_files": header.planned,
        "start_time": moment(header.started_s),
        "completion_time": moment(run.ended_s),
        "duration_s": round(run.duration_s, 3),
        "cpu_s": round(counts.cpu_s, 3),
        "real_time_factor": factor(run, counts),
        "lost_workers": list(run.lost_workers),
        "command_line": list(header.command_line),
        "versions": dict(header.versions),
        "task": plain(header.evaluation.task, sparse=True),
        "evaluation": plain(header.evaluation, sparse=True),
        "counting": {
            "count_in_vocabulary": header.counting.count_in_vocabulary,
            "normalise": header.counting.normalise,
            "words": header.counting.words,
            "lead_in_ms": header.counting.lead_in_ms,
            "lead_in_ref": header.counting.lead_in_ref.value,
        },
        "engine": plain(header.facts, sparse=True),
        "lists": [plain(one, sparse=True) for one in header.lists],
        "shard": None if header.shard is None else str(header.shard),
        "totals": {key: found.totals.get(key) for key in TOTALS},
        "lines": {key.value: counts.lines[key] for key in sorted(counts.lines)},
        "rejected": {reason.value: counts.rejected[reason] for reason in sorted(counts.rejected)},
        "files": {"inv": counts.inv_files, "oov": counts.oov_files, "rejected": counts.rejected_files},
        "samples": {
            "inv": _samples(counts.inv),
            "oov": _samples(counts.oov),
            "true_accept_spots": _samples(counts.accepted),
        },
        "exposure_hours": counts.exposure_hours(found.counting),
        "intervals_95": {
            "FARATE": _ends(found.false_accepts),
            "FARATE_by_file": None if clustering is None else _ends(clustering.interval),
            "FRRATIO": _ends(found.false_rejects),
            "FRRATIO_wilson": _ends(found.false_rejects_wilson),
            "FR+SBRATIO": _ends(found.with_substitutions),
            "FR+SBRATIO_wilson": _ends(found.with_substitutions_wilson),
            "WER": _ends(found.word_errors),
        },
        "clustering": None
        if clustering is None
        else {
            "index_of_dispersion": clustering.index,
            "p": clustering.p,
            "files": clustering.stretches,
            "clustered": found.clustered,
        },
    }


def _samples(samples: Samples) -> dict[str, int]:
    return {str(rate): samples[rate] for rate in sorted(samples)}


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)
