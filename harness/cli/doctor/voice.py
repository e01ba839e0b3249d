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

WIDTH = 28
EVERY_S = 300


def report_voice(bench: Path, device: str, *, at_most: int, minutes: float, as_json: bool) -> int:
    """Looks for a voice and prints what came of each; the exit status."""
    _, phrase = device_and_phrase(bench, device)
    rows: list[VoiceResult] = []

    def tried(attempt: VoiceResult) -> None:
        rows.append(attempt)
        if not as_json:
            click.echo(_line(attempt))

    if not as_json:
        heading = f"Saying {plain_text(phrase)!r} to {device}: at most {at_most} voices, {TIMES} times each"
        click.echo(f"{heading}, for at most {exact(minutes)} min.\n{'voice':{WIDTH}}  {'heard':8}  delay")
    until_s = time.monotonic() + minutes * 60
    match = find_voice(bench, device, at_most=at_most, within_s=minutes * 60, on_result=tried)
    probe = _probe(match.voice) if match else ""
    if as_json:
        fields = {"device": device, "phrase": phrase, "found": match is not None, "probe": probe}
        click.echo(json.dumps({**fields, "voices": [_row(attempt) for attempt in rows]}, ensure_ascii=False, indent=2))
    elif match:
        click.echo(f"\n{plain_text(match.voice.label())} wakes {device}. In an ambient trial write:\n    {probe}")
    else:
        timeout = "Time is up. " if time.monotonic() >= until_s else ""
        click.echo(
            f"\n{timeout}None of these voices woke {device} {TIMES} times out of {TIMES}. Move the loudspeaker closer, "
            f"try more --voices, or record a person:\n    probe: {{every_s: {EVERY_S}, recording: said.wav}}"
        )
    return 0 if match else 1


def _line(attempt: VoiceResult) -> str:
    delay = "n/a" if attempt.delay_s is None else seconds(attempt.delay_s)
    cells = f"{plain_text(attempt.voice.label()):{WIDTH}}  {f'{attempt.heard} of {attempt.said}':8}  {delay}"
    return f"{cells}  ({plain_text(attempt.trouble, 200)})" if attempt.trouble else cells


def _row(attempt: VoiceResult) -> dict[str, object]:
    return picked(attempt.voice, "engine", "name") | picked(attempt, "heard", "said", "delay_s", "trouble")


def _probe(voice: VoiceSpec) -> str:
    return f"probe: {{every_s: {EVERY_S}, voice: {{engine: {voice.engine}, name: {json.dumps(voice.name)}}}}}"
