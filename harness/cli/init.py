"""`harness init`: a commented starter scenario and bench that run in the virtual lab, or for a board of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.model.errors import InputError, Place

SCENARIO = """\
# A scenario: what is asked, how often, and what must hold. Every key: docs/scenario.md
# Check it: harness validate scenario.yaml bench.yaml
scenario: first_steps
title: First steps
tags: [starter]
seed: 1                                  # decides everything random
needs: [loudspeaker, microphone]         # a bench without these: the scenario is skipped

variables:
  dish: pancakes                         # ${dish} in a text stands for it

voices:                                  # `harness voices` lists those that are installed
  anna: {engine: espeak, name: en-us+f3, rate_wpm: 150}
  ben: {engine: espeak, name: en-gb, rate_wpm: 160, language: en-GB}

defaults:                                # what trials use unless they say otherwise
  voice: anna
  level_dbfs: -26                        # active speech level of what is played
  gap_ms: 300                            # silence between wake phrase and query
  evidence: auto                         # the device's word, else the operator's
  reprompt:
    max_attempts: 3                      # a query that was not recognised is said again
    context_wait_s: 5                    # … after this wait, so that the device has forgotten

stimuli:                                 # the queries: a text for a voice, or a recording with its transcript
  - {id: time, text: what time is it}
  - {id: product, text: what is six times seven, alternatives: [what's six times seven]}
  - {id: timer, text: "set a timer for the ${dish} for ten minutes"}
  # - {id: recorded, recording: sounds/time.wav, transcript: what time is it}

trials:                                  # what is run
  - {id: time, query: time, repeat: 2, query_class: clock}
  - {id: product, query: product, voice: ben, query_class: arithmetic}
  - {id: timer, query: timer, query_class: timers, core_capability: true, close_dialogue: {say: cancel}}
  # - {id: call, kind: wake, repeat: 20}    # does it wake? docs/wake.md
  # - {id: soak, kind: ambient, hours: 0.5, sources: [{noise: pink}]}

# matrix:                                # every trial once for each combination
#   axes: {level_dbfs: [-26, -36], position: [near, far]}
#   exclude: [{level_dbfs: -36, position: far}]

limits:                                  # what must hold for exit status 0
  min_recognised_share: 0.5
"""

BENCH = """\
# A bench: which devices, how they are reached, how the room is set up. Every key: docs/bench.md
# This one is the virtual lab; start it with: harness lab up
bench: my_bench
title: My bench
sound_server: virtual_lab                # `system` for real sound cards; `harness sound list` names them
room: living_room
operator: auto                           # asked while a dashboard is open

loudspeakers:                            # the first is the default
  near: {driver: loudspeaker, sound_device: harness_speaker, position: near}
  far: {driver: loudspeaker, sound_device: harness_speaker_far, position: far}
microphone: {driver: microphone, sound_device: harness_mic}
monitor: {driver: loudspeaker, sound_device: harness_monitor}

devices:                                 # the devices under test; the first is the default
  assistant:
    profile: reference_assistant         # a file of devices/, by its name, or a path
    position: shelf
    connection: {driver: mqtt, address: lab}
"""


PROFILE = """\
# A device profile: what this kind of board is like, and what its lines mean. Every key: docs/devices.md
# Watch the board with it, write rules, save, and see at once what they make of its lines:
#   harness devices monitor BOARD.yaml --port PORT --baud 115200
# Its tests: harness devices test BOARD.yaml
device: BOARD
title: BOARD
wake_phrases: [hey computer]             # what is said to wake it
reports: [wake]                          # what it can be believed to tell
console:
  baud: 115200
  # time: '^\\[(?P<time>\\d+)\\] '          # its own time at the start of a line, if it prints one
  # clock: ms
lines:                                   # the first rule that fits a line takes it
  - {match: 'wake word (?P<phrase>.+) (?P<score>\\d+)%', kind: wake, score_scale: 100}
  # - {match: 'mic level', kind: listening}  # a line that shows that it hears; ambient trials through the air need one
  # - {match: 'boot: (?P<detail>.*)', kind: status, fields: {state: started}}
samples:                                 # its tests: lines as they came, and what they are to become
  - {lines: ['wake word hey computer 87%'], gives: [{kind: wake, phrase: hey computer, score: 0.87}]}
  - {lines: ['temperature 21'], gives: []}
"""

BOARD_BENCH = """\
# A bench with one board on a serial port. Every key: docs/bench.md
# What it needs of this host: harness doctor --bench bench.yaml
bench: my_bench
title: BOARD on my desk
operator: absent

loudspeakers:                            # not needed if the board takes sound over its wire (`audio` in its profile)
  near: {driver: loudspeaker, sound_device: default}   # yours: `harness sound list`

devices:
  BOARD:
    profile: BOARD
    connection: {driver: serial, port: PORT}   # best one of /dev/serial/by-id
"""

BOARD_SCENARIO = """\
# Does it wake when it is called, and only then? Every key: docs/scenario.md; how it is run and counted: docs/wake.md
# Check it: harness validate scenario.yaml bench.yaml
scenario: first_calls
title: First calls
seed: 1                                  # decides everything random
needs: [wake_events]

voices:                                  # `harness voices` lists those that are installed
  anna: {engine: espeak, name: en-us+f3, rate_wpm: 150}
  ben: {engine: espeak, name: en-gb, rate_wpm: 160, language: en-GB}

trials:
  - {id: call, kind: wake, repeat: 5}    # or recordings of people: recordings: said/
  - id: soak                             # sound without the phrase
    kind: ambient
    hours: 0.1
    sources: [{id: hiss, noise: pink}, {id: talk, voices: [anna, ben], texts: [good morning, the train is late again]}]

matrix:                                  # every wake trial once for each combination
  axes: {voice: [anna, ben], level_dbfs: [-26, -36]}

limits:                                  # what must hold for exit status 0 (docs/ci.md)
  max_false_reject_share: 0.1
  max_false_accepts_per_hour: 10
"""
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--board", metavar="NAME", help="A starter for a board of yours: profile NAME.yaml, bench, wake scenario."
)
@click.option("--port", default="/dev/ttyUSB0", show_default=True, help="Its serial port.")
def command(folder: Path, board: str | None, port: str) -> None:
    """Write a commented starter scenario and bench into FOLDER (default: here)."""
    texts = {"scenario.yaml": SCENARIO, "bench.yaml": BENCH}
    if board is not None:
        if NAME.fullmatch(board) is None or board in ("scenario", "bench"):
            raise InputError(
                f"a board cannot be called {plain_text(board, 80)!r}", remedy="Use small letters, digits, - and _"
            )
        texts = {f"{board}.yaml": PROFILE, "bench.yaml": BOARD_BENCH, "scenario.yaml": BOARD_SCENARIO}
        quoted = port if re.fullmatch(r"[\w./:-]+", port) else json.dumps(port)
        texts = {name: text.replace("BOARD", board).replace("PORT", quoted) for name, text in texts.items()}
    _write(folder, texts)
    scenario, bench = folder / "scenario.yaml", folder / "bench.yaml"
    if board is not None:
        profile = folder / f"{board}.yaml"
        click.echo(f"Next: harness devices monitor {profile} --port {port}")
        click.echo(f"Then: harness devices test {profile}; harness validate {folder}; harness doctor --bench {bench}")
    else:
        click.echo(f"Next: harness validate {scenario} {bench}")
    up = "" if board is not None else "harness lab up; "
    click.echo(f"Then: {up}harness run {scenario} --bench {bench}")


def _write(folder: Path, texts: dict[str, str]) -> None:
    files = {folder / name: text for name, text in texts.items()}
    for path in files:
        if path.exists() or path.is_symlink():
            raise InputError(
                "there is such a file already",
                place=Place(str(path)),
                remedy="Name another folder: harness init FOLDER",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            click.echo(f"wrote {path}")
    except OSError as error:
        raise InputError(
            f"the files cannot be written: {error}", place=Place(str(folder)), remedy="Name another folder"
        ) from error
