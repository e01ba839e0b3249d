"""Compares what drivers report of devices with what the devices wrote, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.nights.rows import Row, Rows

ROUNDING_S = 1e-6
LOSS_NOTICED_S, RESTART_REPORTED_S = 15.0, 3.5
"""A loss with a cause is noticed within the first, a restart is reported within the second."""
VAGUE = ("lines", "messages")
"""Wires whose events may be later than stated: without a time of the device, or while its clock is not known."""


def stated_times_hold(rows: Rows, night: Any) -> Iterator[str]:
    """The stated time of a wake event, with its error, contains the moment at which the device heard it."""
    for event in _events(night):
        for stated_s, error_s in event["told"]:
            off_s = stated_s - event["at_s"]
            if abs(off_s) > error_s + ROUNDING_S and not (event["vague"] and event["wire"] in VAGUE):
                subject = f"{event['device']} ({event['wire']}) woke at {event['at_s']:.4f}"
                yield f"{subject}, stated {off_s:+.4f} ± {error_s:.4f} s"


def events_told_once(rows: Rows, night: Any) -> Iterator[str]:
    """A wake event is reported at most once, or as often as its line was printed; exactly so if nothing disturbs it."""
    for event in _events(night):
        max_reports = 2 if event.get("repeated") and event["wire"] == "lines" else 1
        if len(event["told"]) > max_reports:
            yield f"{event['device']} ({event['wire']}) woke at {event['at_s']:.3f}, told {len(event['told'])} times"
        if len(event["told"]) < min(event["due"], max_reports):
            yield f"{event['device']} ({event['wire']}) woke at {event['at_s']:.3f}, and nothing tells it"


def restarts_told_once(rows: Rows, night: Any) -> Iterator[str]:
    """A restart is reported once, soon, and only if there was one."""
    for wire in night.truth.wires:
        starts = list(wire["starts"])
        for restart in wire["restarts"]:
            later = [at_s for at_s in starts if restart["from_s"] <= at_s]
            due_s = restart["up_s"] + RESTART_REPORTED_S
            if restart["calm"] and rows.all[-1]["at_s"] > due_s and not any(at_s <= due_s for at_s in later):
                yield f"{wire['device']} ({wire['how']}) restarted at {restart['up_s']:.3f}, and nothing tells it"
        if len(starts) > len(wire["restarts"]):
            yield f"{wire['device']} ({wire['how']}) is said to start {len(starts)} times: {wire}"


def links_lost_for_a_reason(rows: Rows, night: Any) -> Iterator[str]:
    """No link counts as lost where its device, its line and its broker do what they should."""
    for wire in night.truth.wires:
        for loss in wire["losses"]:
            if loss["since_s"] > LOSS_NOTICED_S:
                yield f"{wire['device']} ({wire['how']}) is lost at {loss['at_s']:.3f} for no reason: {loss['what']}"


def _events(night: Any) -> Iterator[Row]:
    return (event for event in night.truth.wakes if "wire" in event)


WIRES = (stated_times_hold, events_told_once, restarts_told_once, links_lost_for_a_reason)
