"""The comparison of a session, live against offline: as text, as JSON, and as a table for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from harness.base.foreign import plain_text
from harness.base.table import Field, Table
from harness.base.text_file import safe_csv
from harness.base.text_table import Column, first_lines, join_blocks, shown, text_table
from harness.model.numbers import NOTHING, counted, exposure, fixed, number, p_is, probability
from harness.model.offline import EngineFacts
from harness.model.scenario import TrialKind
from harness.offline.figures.session_comparison import AmbientCounts, ComparedTrial, DeviceComparison, Side
from harness.statistics.comparison import MeasureKind, sentence
from harness.statistics.intervals import LatencyFigures, garwood
from harness.statistics.significance import Discordance
from harness.statistics.text import number_interval, percentile, quantile

TRIAL_NOUNS = {
    TrialKind.WAKE: ("wake trial", "wake trials"),
    TrialKind.COMMAND: ("wake phrase of a command", "wake phrases of commands"),
}
WOKE_COLUMNS = (Column(""), Column("offline woke"), Column("did not"), Column("live"))
MAX_DIFFERING = 50
# Of the two sides of a Discordance, live is the first: the live device missed what only the second side woke to.
DISCORDANCE_FIELDS: tuple[Field[tuple[str, Discordance]], ...] = (
    Field("condition", "condition", lambda row: row[0]),
    Field("trials", "n", lambda row: row[1].total),
    Field("", "FR live", lambda row: row[1].only_second + row[1].neither),
    Field("", "offline", lambda row: row[1].only_first + row[1].neither),
    Field("both", "", lambda row: row[1].both),
    Field("only_live", "only live", lambda row: row[1].only_first),
    Field("only_offline", "only offline", lambda row: row[1].only_second),
    Field("neither", "", lambda row: row[1].neither),
    Field("p", "p", lambda row: row[1].p, lambda row: probability(row[1].p)),
)
TABLE_WIDTH = 100
JSON_FORMAT = 1
CSV_COLUMNS = (
    "device", "trial", "kind", "conditions", "clip", "at_s", "live", "offline", "differs", "live_delay_ms",
    "offline_delay_ms", "live_score", "offline_score", "live_extra", "offline_extra", "notes",
)  # fmt: skip


def comparison_lines(comparison: DeviceComparison, facts: EngineFacts, task: str, *, continuous: bool) -> Iterator[str]:
    """One device against the engine, in lines. Of the differing trials, MAX_DIFFERING are listed."""
    yield f"device {shown(comparison.device, 80)} live, {shown(task, 200)} ({shown(facts.version, 80)}) offline"
    yield ""
    yield from join_blocks(
        *(_woke_lines(comparison.counts(kind), nouns) for kind, nouns in TRIAL_NOUNS.items()),
        _condition_lines(comparison),
        _ambient_lines(comparison.ambient),
        _delay_lines(comparison),
        _differing_lines(comparison),
        _left_out_lines(comparison),
        _explanation_lines(comparison, continuous),
    )


def _woke_lines(counts: Discordance, nouns: tuple[str, str]) -> Iterator[str]:
    if not counts.total:
        return
    yield f"  {counted(counts.total, *nouns)}"
    live_rows = (("live woke", counts.both, counts.only_first), ("did not", counts.only_second, counts.neither))
    rows = [
        (name, str(woke), str(not_woke), f"{woke + not_woke} of {counts.total}") for name, woke, not_woke in live_rows
    ]
    yield from (f"    {line}" for line in text_table(WOKE_COLUMNS, rows, TABLE_WIDTH))
    difference = sentence("live", "offline", counts.difference, MeasureKind.SHARE, more_is_better=True)
    yield f"    share that woke: {difference} (McNemar)"


def _condition_lines(comparison: DeviceComparison) -> Iterator[str]:
    if comparison.conditions:
        yield from (f"  {line}" for line in Table(DISCORDANCE_FIELDS, comparison.conditions).lines(TABLE_WIDTH))


def _ambient_lines(ambient: AmbientCounts) -> Iterator[str]:
    counts = ambient.counts
    if not ambient.segments:
        return
    yield f"  false accepts in {counted(ambient.segments, 'ambient segment')}, on the same audio"
    live_rate = _rate_text(counts.both + counts.only_first, ambient.live_s)
    yield f"    live     {live_rate}, of proven exposure, after review"
    yield f"    offline  {_rate_text(counts.both + counts.only_second, ambient.offline_s)}"
    yield (
        f"    of {counts.total} events, {counts.both} occurred in both, {counts.only_first} only live, "
        f"{counts.only_second} only offline; difference in number: {p_is(counts.p)}"
    )


def _delay_lines(comparison: DeviceComparison) -> Iterator[str]:
    if not comparison.live_delays.total:
        return
    yield f"  wake delay, {counted(comparison.live_delays.total, 'trial')} that both woke to"
    yield f"    live                 {_quantiles_text(comparison.live_delays)}"
    yield f"    offline              {_quantiles_text(comparison.offline_delays)}"
    yield f"    live minus offline   {_quantiles_text(comparison.delay_differences)}"


def _differing_lines(comparison: DeviceComparison) -> Iterator[str]:
    differing = [trial for trial in comparison.trials if trial.differs]
    if not differing:
        return
    yield f"  {counted(len(differing), 'trial')} on which they differ"
    for trial in differing[:MAX_DIFFERING]:
        yield from _trial_lines(trial)
    if len(differing) > MAX_DIFFERING:
        yield f"    and {len(differing) - MAX_DIFFERING} more; --csv and --json list all"


def _trial_lines(trial: ComparedTrial) -> Iterator[str]:
    side = "live" if trial.live.woke else "offline"
    conditions = ", ".join(f"{axis}={label}" for axis, label in trial.conditions)
    within = f" ({shown(conditions, 200)})" if conditions else ""
    clip = f"  clips/{trial.clip}" if trial.clip else ""
    yield f"    only {side}: {shown(trial.trial_id, 80)}{within}{shown(clip, 120)}"
    scores = [(name, _score_text(side)) for name, side in (("live", trial.live), ("offline", trial.offline))]
    score_texts = [f"{name} {score}" for name, score in scores if score]
    notes = [f"scores: {', '.join(score_texts)}", *trial.notes] if score_texts else trial.notes
    for note in notes:
        yield f"      {shown(note, 300)}"


def _left_out_lines(comparison: DeviceComparison) -> Iterator[str]:
    reasons = [f"{shown(trial_id, 80)}: {shown(why, 300)}" for trial_id, why in comparison.left_out]
    if reasons:
        yield f"  {counted(len(reasons), 'trial')} left out"
    yield from (f"    {line}" for line in first_lines(reasons, 10))


def _explanation_lines(comparison: DeviceComparison, continuous: bool) -> Iterator[str]:
    if comparison.through_air:
        yield "  Live, the sound went through the air. If the device and the engine run the same model, the difference"
        yield "  shows the effect of loudspeaker, room and microphones. If not, it also includes that of the models."
    else:
        yield "  Live, the sound went over a wire. The difference shows the effect of the device's path and of earlier"
        yield "  sound, not that of the room."
    if comparison.noise:
        yield "  Both sides contain the scenario's noise. Only the live side contains the noise of the room."
    if not continuous:
        yield "  Offline, each stimulus started with a fresh engine. With --continuous the engine keeps its state, as a"
        yield "  device does."


def _rate_text(count: int, exposure_s: float) -> str:
    hours = exposure_s / 3600
    if not hours:
        return f"{count} in 0 h: {NOTHING}"
    interval = number_interval(garwood(count, hours))
    return f"{count} in {exposure(hours)} = {number(count / hours)}/h (95 % exact interval {interval})"


def _quantiles_text(latency: LatencyFigures) -> str:
    return f"median {quantile(latency.p50)}, p95 {percentile(latency.p95, latency.total)}"


def _score_text(side: Side) -> str:
    return "" if side.score is None else fixed(side.score, 3)


def comparison_json(
    session: str, task: str, facts: EngineFacts, comparisons: list[DeviceComparison], *, continuous: bool
) -> dict[str, object]:
    """Counts, intervals and every trial. A share, a rate or a p without data is null."""
    return {
        "format": JSON_FORMAT,
        "session": session,
        "task": task,
        "engine": {
            "version": facts.version,
            "fingerprint": facts.fingerprint,
            "operating_point": facts.operating_point,
            "threshold": facts.rule.threshold if facts.rule is not None else None,
            "settings": dict(facts.settings),
        },
        "continuous": continuous,
        "devices": [_device_json(comparison) for comparison in comparisons],
    }


def _discordance_json(kind: TrialKind, counts: Discordance) -> dict[str, object]:
    estimate = counts.difference
    return {
        # One row, without the name of a condition.
        **Table(DISCORDANCE_FIELDS[1:], [(kind.value, counts)]).json()[0],
        "woke_live_less_offline": None if estimate is None else [estimate.difference, *estimate.interval],
    }


def _device_json(comparison: DeviceComparison) -> dict[str, object]:
    ambient = comparison.ambient
    counts = ambient.counts
    return {
        "device": comparison.device,
        "through_air": comparison.through_air,
        "tables": {
            kind.value: _discordance_json(kind, comparison.counts(kind)) for kind in (TrialKind.WAKE, TrialKind.COMMAND)
        },
        "conditions": Table(DISCORDANCE_FIELDS, comparison.conditions).json(),
        "ambient": {
            "segments": ambient.segments,
            "live": _rate_json(counts.both + counts.only_first, ambient.live_s),
            "offline": _rate_json(counts.both + counts.only_second, ambient.offline_s),
            "both": counts.both,
            "only_live": counts.only_first,
            "only_offline": counts.only_second,
            "p": counts.p,
            "events": [asdict(event) for event in ambient.events],
        },
        "wake_delay_s": {
            "live": _latency_json(comparison.live_delays),
            "offline": _latency_json(comparison.offline_delays),
            "live_less_offline": _latency_json(comparison.delay_differences),
        },
        "trials": [_trial_json(trial) for trial in comparison.trials],
        "left_out": [{"trial": trial_id, "why": why} for trial_id, why in comparison.left_out],
    }


def _rate_json(count: int, exposure_s: float) -> dict[str, object]:
    hours = exposure_s / 3600
    per_hour = count / hours if hours > 0 else None
    return {"count": count, "exposure_s": exposure_s, "per_hour": per_hour, "interval": garwood(count, hours)}


def _latency_json(figures: LatencyFigures) -> dict[str, object]:
    quantiles = {name: getattr(figures, name) for name in ("p50", "p95", "p99")}
    return {
        "total": figures.total,
        **{
            name: None if estimate is None else [estimate.value_s, estimate.low_s, estimate.high_s]
            for name, estimate in quantiles.items()
        },
    }


def _trial_json(trial: ComparedTrial) -> dict[str, object]:
    return {
        "trial": trial.trial_id,
        "kind": trial.kind.value,
        "conditions": dict(trial.conditions),
        "clip": trial.clip or None,
        "differs": trial.differs,
        **{
            name: {
                "woke": side.woke,
                "delay_s": None if side.delay is None else side.delay.value_s,
                "score": side.score,
                "extra_events": side.extra,
            }
            for name, side in (("live", trial.live), ("offline", trial.offline))
        },
        "notes": list(trial.notes),
    }


def comparison_csv(comparisons: Iterable[DeviceComparison]) -> str:
    """CSV with a row for each trial and each event in ambient sound. at_s: place of the event in its segment. live,
    offline: 1 if that side woke, 0 if it did not, "" if it is unknown."""
    rows = (
        {"device": plain_text(comparison.device, 80)} | row
        for comparison in comparisons
        for row in _csv_rows(comparison)
    )
    return safe_csv([CSV_COLUMNS, *([row.get(name, "") for name in CSV_COLUMNS] for row in rows)])


def _csv_rows(comparison: DeviceComparison) -> Iterator[dict[str, str]]:
    """Cells by their column; absent ones are empty."""
    for trial in comparison.trials:
        row = {
            "trial": trial.trial_id,
            "kind": trial.kind.value,
            "conditions": " ".join(f"{axis}={plain_text(label, 80)}" for axis, label in trial.conditions),
            "clip": trial.clip,
            "differs": str(int(trial.differs)),
            "notes": plain_text("; ".join(trial.notes)),
        }
        for name, side in (("live", trial.live), ("offline", trial.offline)):
            row |= {name: str(int(side.woke)), f"{name}_extra": str(side.extra)}
            if side.delay is not None:
                row[f"{name}_delay_ms"] = f"{side.delay.value_s * 1000:.1f}"
            if side.score is not None:
                row[f"{name}_score"] = f"{side.score:.6g}"
        yield row
    for event in comparison.ambient.events:
        row = {"trial": event.trial_id, "kind": "ambient", "at_s": f"{event.offset_s:.4f}"}
        row |= {"live": str(int(event.live)), "offline": str(int(event.offline))}
        row["differs"] = str(int(event.live != event.offline))
        if event.score is not None:  # the live score if both sides have one
            row["live_score" if event.live else "offline_score"] = f"{event.score:.6g}"
        yield row
    for trial_id, why in comparison.left_out:
        yield {"trial": trial_id, "kind": "left out", "notes": plain_text(why)}
