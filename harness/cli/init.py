"""`harness init`: a commented starter scenario and bench that run in the virtual lab."""

from __future__ import annotations

from pathlib import Path

import click

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


@click.command()
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
def command(folder: Path) -> None:
    """Write a commented starter scenario and bench into FOLDER (default: here)."""
    files = {folder / "scenario.yaml": SCENARIO, folder / "bench.yaml": BENCH}
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
    scenario, bench = files
    click.echo(f"Next: harness validate {scenario} {bench}")
    click.echo(f"Then: harness lab up; harness run {scenario} --bench {bench}")
