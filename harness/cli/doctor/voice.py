"""`harness check doctor --find-voice`: which voice wakes a device every time."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.base.plain_json import picked
from harness.model.numbers import exact, seconds
from harness.model.stimulus import VoiceSpec
from harness.session.engine.voice_finding import TIMES, VoiceResult, device_and_phrase, find_voice

VOICE_COLUMNS = 28
PROBE_EVERY_S = 300
"""Interval of probes in the `probe:` that is suggested."""


def report_voice(bench: Path, device: str, *, at_most: int, minutes: float, as_json: bool) -> int:
    """Tries voices until one wakes the device, and prints the result of each. Returns the exit status.

    at_most: number of voices.
    """
    _, phrase = device_and_phrase(bench, device)
    results: list[VoiceResult] = []

    def report(result: VoiceResult) -> None:
        results.append(result)
        if not as_json:
            click.echo(_result_line(result))

    if not as_json:
        heading = f"Saying {plain_text(phrase)!r} to {device}: at most {at_most} voices, {TIMES} times each"
        click.echo(f"{heading}, for at most {exact(minutes)} min.\n{'voice':{VOICE_COLUMNS}}  {'heard':8}  delay")
    deadline_s = time.monotonic() + minutes * 60
    match = find_voice(bench, device, at_most=at_most, within_s=minutes * 60, on_result=report)
    probe = _probe_text(match.voice) if match else ""
    if as_json:
        fields = {"device": device, "phrase": phrase, "found": match is not None, "probe": probe}
        rows = [
            picked(result.voice, "engine", "name")
            | {"heard": result.wake_count, "said": result.call_count}
            | picked(result, "delay_s", "trouble")
            for result in results
        ]
        click.echo(json.dumps({**fields, "voices": rows}, ensure_ascii=False, indent=2))
    elif match:
        click.echo(f"\n{plain_text(match.voice.label())} wakes {device}. In an ambient trial, write:\n    {probe}")
    else:
        timeout = "Time is up. " if time.monotonic() >= deadline_s else ""
        click.echo(
            f"\n{timeout}None of these voices woke {device} {TIMES} times out of {TIMES}. Move the loudspeaker closer, "
            f"try more --voices, or record a person:\n    probe: {{every_s: {PROBE_EVERY_S}, recording: said.wav}}"
        )
    return 0 if match else 1


def _result_line(result: VoiceResult) -> str:
    delay = "n/a" if result.delay_s is None else seconds(result.delay_s)
    count_text = f"{result.wake_count} of {result.call_count}"
    cells = f"{plain_text(result.voice.label()):{VOICE_COLUMNS}}  {count_text:8}  {delay}"
    return f"{cells}  ({plain_text(result.trouble, 200)})" if result.trouble else cells


def _probe_text(voice: VoiceSpec) -> str:
    return f"probe: {{every_s: {PROBE_EVERY_S}, voice: {{engine: {voice.engine}, name: {json.dumps(voice.name)}}}}}"
