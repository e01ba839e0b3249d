"""A black box in the virtual lab that only chimes: its wake events come from the microphone."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.lab.assistant.mouth import AssistantMouth
from harness.lab.assistant.settings import AssistantSettings
from harness.model.bench import EarconMeaning
from harness.model.observation import Earcon, SpeechStarted, Wake
from harness.model.record import Observed
from harness.sound.earcon_file import store
from tests.conformance.engine_runs import rows
from tests.conformance.lab_runs import LabRuns, lab_of_its_own
from tests.known import known
from tests.written_sessions import wake_of

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]

BENCH = """\
bench: chimes
sound_server: virtual_lab
room: living_room
operator: absent
loudspeakers:
  near: {driver: loudspeaker, sound_device: harness_speaker, position: near}
microphone: {driver: microphone, sound_device: harness_mic}
devices:
  box: {profile: reference_assistant_black_box, earcons: box.earcons.yaml}
  kitchen:
    profile: reference_assistant
    connection: {driver: mqtt, address: lab, topic_device: assistant}
"""
SCENARIO = """\
scenario: chimes
voices:
  cass: {engine: flite, name: slt}
defaults: {voice: cass, level_dbfs: -26, between_trials_s: 0.5}
wake: {window_after_s: 2, clip_before_s: 1, clip_after_s: 1}
trials:
  - {id: call, kind: wake, repeat: 2}
"""


def test_a_chime_through_the_air_is_the_wake_event_of_a_black_box(tmp_path: Path) -> None:
    settings = tmp_path / "assistant.yaml"
    settings.write_text("assistant: assistant\nearcons: true\n")
    store(AssistantMouth(AssistantSettings()).signal(880.0), EarconMeaning.WAKE, "box", tmp_path)
    bench, scenario = tmp_path / "bench.yaml", tmp_path / "scenario.yaml"
    bench.write_text(BENCH)
    scenario.write_text(SCENARIO)
    with lab_of_its_own(settings) as lab:
        runs = LabRuns(tmp_path, lab)
        try:
            folder = runs.prepare(scenario, bench)
            goodbye = runs.start(folder).goodbye(300)
        finally:
            runs.close()
    assert (goodbye.exit_code, goodbye.reason) == (0, "")
    entries = rows(folder)
    progress = wake_of(entries).snapshot()
    box, kitchen = known(progress.device("box")), known(progress.device("kitchen"))
    assert (box.false_rejects.share.total, box.hits) == (2, kitchen.hits)
    observations = [entry.record.observation for entry in entries if isinstance(entry.record, Observed)]
    reported = [wake.at.at_s for wake in observations if isinstance(wake, Wake) and wake.source == "kitchen"]
    chimes = [wake for wake in observations if isinstance(wake, Wake) and wake.source == "box.earcon"]
    assert len(chimes) == len(reported) >= 2
    for chime, at_s in zip(chimes, reported, strict=True):
        # The assistant reports, and begins to chime, in one step; the sound server may hold a sound back.
        assert -0.05 <= chime.at.at_s - at_s <= 0.5
        assert chime.at.error_s < 0.1
    tones = [tone for tone in observations if isinstance(tone, Earcon) and tone.of == "box.earcon"]
    for speech in (observation for observation in observations if isinstance(observation, SpeechStarted)):
        assert not any(tone.at.at_s - 0.05 <= speech.at.at_s <= tone.ends.at_s for tone in tones)
