"""A rater's terminal with real sound: what is heard is what was judged, and is counted; without sound keys go on."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import soxr
from textual import events

from harness.lab.sound_server import LabSoundServer
from harness.model.errors import SoundError
from harness.rating.rater_player import open_player
from tests.conformance.sound_path import RATE_HZ, recorder
from tests.dashboard.bench import press_until, screen_text, shows, until
from tests.dashboard.seats import SMALL, ready, rows, seated
from tests.known import known
from tests.rating_sessions import rating_session
from tests.seen import until as wait_until

pytestmark = [pytest.mark.sound, pytest.mark.usefixtures("host_keeps_time")]
LENGTH_WITHIN_MS = 60


async def test_each_response_plays_arrives_and_is_counted(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 6)
    player = open_player("harness_speaker")
    app = seated(session, player=player)
    try:
        with recorder() as (_, ring, _):
            begun_s = time.monotonic()
            async with app.run_test(size=SMALL) as pilot:
                await ready(pilot)
                first = known(app.desk.view.item)
                await until(pilot, shows(pilot, " plays "))
                await until(pilot, shows(pilot, "┃"))
                assert ". stop" in screen_text(pilot)
                await until(pilot, lambda: app.desk.view.draft.plays == 1, 20.0)
                assert ". stop" not in screen_text(pilot)
                ended_s = time.monotonic()
                length_ms = round(app.room.response_sound(first).duration_s * 1000)
                assert app.desk.view.draft.heard_ms == length_ms
                await press_until(pilot, shows(pilot, " slower "), "s")
                await until(pilot, lambda: app.desk.view.draft.plays == 2, 20.0)
                assert app.desk.view.draft.heard_ms == pytest.approx(2 * length_ms, abs=LENGTH_WITHIN_MS)
                # The query is no part of the response.
                await press_until(pilot, shows(pilot, " query"), "a")
                await press_until(pilot, lambda: len(rows(session)) == 1, "p", "1")
                (row,) = rows(session)
                assert row.plays == 2
                await ready(pilot)
                # Not by the pilot, which waits after each key: the response is short.
                app.post_message(events.Key("space", " "))
                limit_s = time.monotonic() + 60.0
                while (player.position_s or 0) <= 0.2:
                    assert time.monotonic() < limit_s, screen_text(pilot)
                    await asyncio.sleep(0.01)
                app.post_message(events.Key("2", "2"))
                await until(pilot, lambda: len(rows(session)) == 2)
                cut = rows(session)[1]
                second = next(candidate for candidate in app.room.items if candidate.subject.trial_id == cut.trial_id)
                assert cut.plays == 1
                assert cut.heard_ms is not None
                assert 200 <= cut.heard_ms < app.room.response_sound(second).duration_s * 1000
            heard, _ = ring.cut(begun_s, ended_s)
        sound = app.room.response_sound(first)
        sent = soxr.resample(sound.samples, sound.rate_hz, RATE_HZ)
        offset = int(np.argmax(np.abs(np.correlate(heard.samples, sent, mode="valid"))))
        assert np.corrcoef(heard.samples[offset : offset + len(sent)], sent)[0, 1] > 0.98
    finally:
        player.close()


async def test_a_lost_sound_server_is_reported_and_rating_continues(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 6)
    player = open_player("harness_speaker")
    app = seated(session, player=player)
    try:
        async with app.run_test(size=(100, 30)) as pilot:
            await ready(pilot)
            await until(pilot, lambda: (player.position_s or 0) > 0.1, 20.0)
            assert lab_sound.pid is not None
            os.kill(lab_sound.pid, signal.SIGKILL)
            try:
                await until(pilot, shows(pilot, "the sound failed"))
                await press_until(pilot, lambda: len(rows(session)) == 1, "1")
                await until(pilot, shows(pilot, "no sound:"), 20.0)
                await press_until(pilot, lambda: len(rows(session)) == 2, "2")
                wait_until(lambda: not lab_sound.running(), 20.0, "the end of the server")
            finally:
                lab_sound.start()
            await until(pilot, shows(pilot, "item 3 of 6"))
            await pilot.press("space")
            await until(pilot, lambda: (player.position_s or 0) > 0.1, 20.0)
            assert "no sound" not in screen_text(pilot)
    finally:
        player.close()


async def test_a_missing_sound_device_disables_playback_only(lab_sound: LabSoundServer, tmp_path: Path) -> None:
    session = rating_session(tmp_path / "s1", 3)
    player = open_player("harness_speeker")
    with pytest.raises(SoundError, match="Did you mean 'harness_speaker'") as refused:
        player.check()
    assert "Available: " in str(refused.value)
    open_player("harness_speaker").check()
    async with seated(session, player=player).run_test(size=(100, 30)) as pilot:
        await until(pilot, shows(pilot, "Did you mean 'harness_speaker'?"))
        assert "┃" not in screen_text(pilot)
        await press_until(pilot, lambda: len(rows(session)) == 1, "1")
        assert rows(session)[0].plays == 0
