"""What the harness has counted, held against the truth: its figures, and the wake-evaluation log that it exports."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness.model.record import Entry
from harness.model.scenario import TrialKind
from harness.offline.wake_log import MissedFile, Spot, SpotCount, WakeLog, computed_totals, differences
from harness.offline.wake_log_reading import read
from harness.wake.wake import WakeFigures
from tests.command import harness, succeeded
from tests.conformance.wake_truth import RATE_HZ, Spotted, Truth
from tests.written_sessions import wake_of

SCORE_ERROR = 1e-4
"""Scores are rounded to a 65535th on one wire and to 4 decimals on the other."""
_SAMPLES_A_MS = RATE_HZ // 1000


def figures_agree(entries: Sequence[Entry], device: str, true: Truth) -> None:
    """Live and replayed figures of a device: every count, place and duration is the truth's."""
    figures = wake_of(entries)
    plays = {play.trial.id: play for play in figures.plays(device)}
    assert set(plays) == {*true.hits, *true.commands, *true.exposure}

    hits = figures.hits(device)
    assert hits == {trial: hit is not None for trial, hit in true.hits.items()}
    delays = {
        trial: _samples(plays[trial].reading.delay.value_s)  # type: ignore[union-attr]
        for trial, woke in hits.items()
        if woke
    }
    assert delays == true.delays()
    for trial, hit in true.hits.items():
        heard = plays[trial].reading.hit
        if hit is not None:
            assert heard is not None
            assert heard.score is not None
            assert abs(heard.score - hit.score) < SCORE_ERROR

    events = figures.unmatched(device)
    counted = [event for event in events if event.exposed]
    assert sorted((event.trial_id or "", _samples(event.offset_s), event.in_vocabulary) for event in counted) == sorted(
        (spot.play.trial.id, spot.offset, spot.play.listening.kind is not TrialKind.AMBIENT) for spot in true.extra
    )
    assert all(event.rule is None for event in events), "what is injected has not heard the room"
    exposure = {trial: _samples(plays[trial].reading.exposure_s) for trial in true.exposure}
    assert exposure == true.exposure

    summed = figures.snapshot().device(device)
    assert summed is not None
    assert summed.hits == len(true.hits) - len(true.missed)
    assert (summed.false_rejects.share.count, summed.false_rejects.share.total) == (len(true.missed), len(true.hits))
    assert summed.false_accepts.count == summed.after_review.count == len(true.false_accepts())
    assert summed.in_vocabulary_events == len(true.extra) - len(true.in_ambience())
    assert summed.suppressed == len(true.merged)
    assert _samples(summed.exposure_s) == true.exposed()
    assert summed.unproven_s == 0
    assert (summed.commands.count, summed.commands.total, summed.missed) == (0, len(true.commands), len(true.commands))
    assert dict(_cells(summed.conditions)) == _true_cells(figures, device, true)


def log_agrees(folder: Path, device: str, true: Truth, output: Path) -> None:
    """`harness export --wake-log`: its totals are the truth's, and are the same when it is read back."""
    target = output / f"{device}.log"
    succeeded(harness("export", folder, "--wake-log", target, "--device", device))
    text = target.read_text(encoding="utf-8")
    _plain_totals(text, true)
    log = read(text)
    assert differences(log) == ()
    totals, stated = computed_totals(log), dict(log.totals)
    assert set(totals) == set(stated)
    assert all(abs(totals[key] - stated[key]) <= 0.51e-4 for key in stated)
    _lines_agree(log, true)


def json_agrees(folder: Path, device: str, true: Truth) -> None:
    """`harness export --json`: exact counts for programs."""
    result = succeeded(harness("export", folder, "--json", "--device", device))
    (report,) = json.loads(result.stdout)["devices"]
    assert (report["false_rejects"]["count"], report["false_rejects"]["of"]) == (len(true.missed), len(true.hits))
    assert report["false_accepts_before_review"]["count"] == len(true.false_accepts())
    assert _samples(report["exposure_s"]) == true.exposed()
    assert {row["trial"]: row["woke"] for row in report["trials"] if row["kind"] == "wake"} == {
        trial: hit is not None for trial, hit in true.hits.items()
    }


def _plain_totals(text: str, true: Truth) -> None:
    """The lines as anybody's script would take them, without our reader."""
    totals = dict(re.findall(r"^([A-Z+]+) ([\d.]+)", text, re.MULTILINE))
    false, rejects = len(true.false_accepts()), len(true.missed) + len(true.commands)
    expected: dict[str, float] = {"TACOUNT": len(true.hits) - len(true.missed), "FRCOUNT": rejects, "FACOUNT": false}
    assert {key: float(totals[key]) for key in expected} == expected
    assert totals["FRRATIO"] == f"{100 * rejects / (len(true.hits) + len(true.commands)):.4f}"
    about = dict(re.findall(r"^INFO (\S+) (.*)$", text, re.MULTILINE))
    seconds = 0.0
    for part, samples in (("oov", true.exposure), ("inv/oov", true.rest)):
        hours, minutes, rest = map(float, about[f"{part}-hours"].split(":"))
        stated_s = hours * 3600 + minutes * 60 + rest
        assert abs(stated_s - sum(samples.values()) / RATE_HZ) < 0.51e-3, "as exact as its milliseconds"
        seconds += stated_s if part == "oov" or true.count_in_vocabulary else 0.0
    assert totals["FARATE"] == f"{false / seconds * 3600:.4f}"
    assert about["oov-files"] == str(len(true.exposure))
    assert about["inv-files"] == str(len(true.hits) + len(true.commands))
    keys = Counter(line.split(maxsplit=1)[0] for line in text.splitlines())
    assert keys["OOVFA"] == len(true.in_ambience())
    assert keys["INVFA"] == len(true.extra) - keys["OOVFA"]
    assert keys["INVTA"] == expected["TACOUNT"]


def _lines_agree(log: WakeLog, true: Truth) -> None:
    """Every event at its sample, every missed phrase under its name."""
    spots = [event for event in log.events if isinstance(event, Spot)]
    places = sorted((spot.key, dict(spot.extras)["x-trial"], round(spot.end_ms * _SAMPLES_A_MS)) for spot in spots)
    hits = [("INVTA", *_place(hit)) for hit in true.hits.values() if hit is not None]
    extra = [("OOVFA" if event in true.in_ambience() else "INVFA", *_place(event)) for event in true.extra]
    assert places == sorted([*hits, *extra])
    missed = [event for event in log.events if isinstance(event, MissedFile)]
    assert sorted(dict(miss.extras)["x-trial"] for miss in missed) == sorted([*true.missed, *true.commands])
    counts_by_trial = {
        dict(event.extras)["x-trial"]: event.count for event in log.events if isinstance(event, SpotCount)
    }
    counts = Counter(trial for _, trial, _ in [*hits, *extra] if trial in true.hits)
    assert counts_by_trial == {trial: count for trial, count in counts.items() if count > 1}


def _place(event: Spotted) -> tuple[str, int]:
    return event.play.trial.id, event.offset


def _samples(seconds: float | None) -> int:
    """Exactly so many; AssertionError for a time that lies between two samples."""
    assert seconds is not None
    exact = seconds * RATE_HZ
    assert abs(exact - round(exact)) < 1e-3, f"{seconds} s is no whole number of samples"
    return round(exact)


def _cells(conditions: object) -> list[tuple[str, tuple[int, int]]]:
    return [(name, (ratio.share.count, ratio.share.total)) for name, ratio in conditions]  # type: ignore[attr-defined]


def _true_cells(figures: WakeFigures, device: str, true: Truth) -> dict[str, tuple[int, int]]:
    cells: dict[str, tuple[int, int]] = {}
    for play in figures.plays(device):
        if play.trial.id not in true.hits:
            continue
        for axis, label in play.trial.conditions:
            missed, total = cells.get(f"{axis}={label}", (0, 0))
            if true.hits[play.trial.id] is None:
                missed += 1
            cells[f"{axis}={label}"] = missed, total + 1
    return cells
