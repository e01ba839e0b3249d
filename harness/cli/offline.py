"""`harness evaluate offline`: run an engine on a session's stimuli, and compare it with the devices' live results."""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from harness.base.foreign import plain_text
from harness.base.text_table import join_blocks
from harness.cli.options import (
    EngineOptions,
    OutputFormat,
    argument,
    engine_options,
    flag,
    option,
    printed_options,
    verb,
)
from harness.cli.sessions import session_folder
from harness.cli.streams import RedrawnLine
from harness.model.errors import InputError
from harness.model.numbers import seconds

if TYPE_CHECKING:
    from harness.offline.session_stimuli import SessionStimuli

ENGINE_FAULT = 3  # Exit status, as for any fault.


@verb("offline")
def command(
    *,
    session: str = argument("SESSION"),
    options: EngineOptions = engine_options("Engine and model, as for `harness evaluate`."),
    device: str | None = option("Compare only this device.", metavar="NAME", show_default="all devices that listened"),
    continuous: bool = flag("Keep the engine's state across all stimuli in playback order, as a device does."),
    printed: OutputFormat = printed_options(
        "Print all results and every trial as JSON.", "Print one row per trial and ambient event."
    ),
    quiet: bool = flag("Hide the progress line."),
) -> None:
    """Run an engine on a session's stimuli, and compare it with the devices' live results, trial by trial.

    SESSION: the folder, or the name in ./sessions, of a run with wake, command or ambient trials. If the engine
    runs the device's own model, the difference is due to the acoustic path.

    Exit status: 0 done · 2 wrong usage or input · 3 the engine failed on a stimulus.
    """
    from harness.engines.offline_loading import load_engine
    from harness.offline.figures.session_comparison import compare_device
    from harness.offline.reports import session as reports
    from harness.offline.session_stimuli import detect_in_session, read_stimuli

    [task] = options.parse_tasks()
    folder = session_folder(session)
    stimuli = read_stimuli(folder)
    devices = _select_devices(stimuli, device)
    line, start_s = RedrawnLine(quiet=quiet), time.monotonic()

    def draw_progress(done: int, total: int) -> None:
        time_left = f", {seconds((time.monotonic() - start_s) / done * (total - done))} left" if done else ""
        line.draw(f"{done} of {total} stimuli{time_left}")

    with closing(load_engine(task)) as engine:
        facts = engine.facts
        try:
            detections, left_out = detect_in_session(
                engine, stimuli, devices, continuous=continuous, progress=draw_progress
            )
        finally:
            line.clear()
    threshold = facts.rule.threshold if facts.rule is not None else None
    clips = {sha256: clip.name for sha256, clip in stimuli.clips.items()}
    comparisons = [
        compare_device(
            stimuli.figures,
            name,
            detections,
            clips=clips,
            notes=stimuli.notes,
            reasons_left_out=left_out,
            threshold=threshold,
        )
        for name in devices
    ]

    def as_json() -> str:
        document = reports.comparison_json(folder.name, task.name, facts, comparisons, continuous=continuous)
        return json.dumps(document, indent=2, ensure_ascii=False)

    blocks = (
        reports.comparison_lines(comparison, facts, task.name, continuous=continuous) for comparison in comparisons
    )
    printed.print(json=as_json, csv=lambda: reports.comparison_csv(comparisons), lines=lambda: join_blocks(*blocks))
    if left_out:
        sys.exit(ENGINE_FAULT)


def _select_devices(stimuli: SessionStimuli, device: str | None) -> tuple[str, ...]:
    """The named device; None for all devices that listened. Raises InputError if the session does not have it."""
    if device is None:
        return stimuli.devices
    if device not in stimuli.devices:
        raise InputError(
            f"the session has no device {plain_text(device, 80)!r}",
            remedy=f"Use one of its devices: {', '.join(plain_text(name, 80) for name in stimuli.devices)}",
        )
    return (device,)
