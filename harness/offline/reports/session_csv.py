"""A session live against offline, a row a trial and a row an ambient event, for a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.base.foreign import plain_text
from harness.base.safe_csv import safe_csv
from harness.offline.figures.session_comparison import ComparedTrial, DeviceComparison, Side

COLUMNS = (
    "device", "trial", "kind", "conditions", "clip", "at_s", "live", "offline", "differs", "live_delay_ms",
    "offline_delay_ms", "live_score", "offline_score", "live_extra", "offline_extra", "notes",
)  # fmt: skip


def table(found: Iterable[DeviceComparison]) -> str:
    """at_s: of an ambient event, in its segment; live and offline: 1 where it woke, 0 where not, "" where unknown."""
    return safe_csv([COLUMNS, *(row for one in found for row in _rows(one))])


def _rows(found: DeviceComparison) -> Iterator[tuple[str, ...]]:
    device = plain_text(found.device, 80)
    for one in found.trials:
        yield (device, *_trial(one))
    for event in found.ambient.events:
        score = "" if event.score is None else f"{event.score:.6g}"
        yield (
            device, event.trial_id, "ambient", "", "", f"{event.offset_s:.4f}", _yes(event.live), _yes(event.offline),
            _yes(event.live is not event.offline), "", "", score if event.live else "", "" if event.live else score,
            "", "", "",
        )  # fmt: skip
    for trial_id, why in found.left_out:
        yield (device, trial_id, "left out", *([""] * 12), plain_text(why))


def _trial(one: ComparedTrial) -> tuple[str, ...]:
    conditions = " ".join(f"{axis}={plain_text(label, 80)}" for axis, label in one.conditions)
    return (
        one.trial_id, one.kind.value, conditions, one.clip, "", _yes(one.live.woke), _yes(one.offline.woke),
        _yes(one.differs), _delay(one.live), _delay(one.offline), _score(one.live), _score(one.offline),
        str(one.live.extra), str(one.offline.extra), plain_text("; ".join(one.notes)),
    )  # fmt: skip


def _yes(value: bool) -> str:
    return str(int(value))


def _delay(side: Side) -> str:
    return "" if side.delay is None else f"{side.delay.value_s * 1000:.1f}"


def _score(side: Side) -> str:
    return "" if side.score is None else f"{side.score:.6g}"
