"""No shown text says whose response it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.model.effect import EffectWord
from harness.model.record import EffectAnswered
from harness.model.stimulus import Waveform
from harness.rating.items import Hidden, Item, Subject
from harness.rating.rating_room import LEVEL_DBFS, RATE_HZ, RatingRoom, blinded, open_room
from harness.sound.stimuli.level import FULL_SCALE, active_speech_level, at_level_unclipped
from tests.rating_sessions import Talk, rating_session
from tests.unit.rating.sittings import item

DEVICES = ("kitchen", "kitchen-2", "Echo. Dot")


def shown(note: str) -> str:
    before = replace(item(1), note=note, transcript="kitchen here")
    after = blinded(before, DEVICES)
    assert (after.query, after.transcript) == (before.query, "kitchen here")
    return after.note


def test_names_of_devices_are_replaced_in_notes() -> None:
    assert shown("KITCHEN-2 mumbles; the kitchen does not") == "the device mumbles; the device does not"


def test_names_are_whole_words_and_no_patterns() -> None:
    assert shown("kitchens, Echoes Dot, echo. dot!") == "kitchens, Echoes Dot, the device!"


def test_without_names_nothing_changes() -> None:
    plain = replace(item(1), note="as it was")
    assert blinded(plain, ("",)) == plain


TALKS = (
    Talk("pause", "pause the timer", "it is paused", "timers", "the timer pauses", "paused"),
    Talk("pause", "pause the timer", "it is paused", "timers", "the timer pauses", None, EffectWord.RIGHT),
)
"""Of the first device the state tells it, of the second one somebody has looked."""


def seen(item: Item) -> Item:
    """What front-ends show of an item."""
    return replace(item, id="", subject=Subject("", 1, ""), clip=None, length=None, hidden=Hidden())


def sounds(room: RatingRoom) -> list[Waveform]:
    return [room.response_sound(item) for item in room.items]


def test_two_devices_with_other_sound_and_evidence_give_the_same_item(tmp_path: Path) -> None:
    of_devices = {"kitchen": (48_000, -30.0), "den": (22_050, -1.0)}
    room = open_room([rating_session(tmp_path / "s1", 2, effects=True, talks=TALKS, sounds=of_devices)])
    first, second = room.items
    assert {one.clip.rate_hz for one in room.items if one.clip is not None} == {48_000, 22_050}
    assert seen(first) == seen(second)
    assert first.effect is not None
    assert (first.effect.word, first.effect.said, first.effect.check.state) == (EffectWord.RIGHT, "", ())
    assert first.transcript == "it is paused"
    heard = sounds(room)
    assert [one.rate_hz for one in heard] == [RATE_HZ, RATE_HZ]
    assert len(heard[0].samples) == pytest.approx(len(heard[1].samples), abs=2)
    for one in heard:
        level = active_speech_level(one)
        assert level is not None
        assert level.level_dbfs == pytest.approx(LEVEL_DBFS, abs=0.1)
    room.close()


def test_what_a_device_says_itself_stands_in_for_our_transcript(tmp_path: Path) -> None:
    room = open_room([rating_session(tmp_path / "s1", 2, transcripts=False)])
    assert [one.transcript is None for one in room.items] == [True, False]
    room.close()


def test_a_common_level_never_clips_and_leaves_silence_alone() -> None:
    click = np.zeros(16_000, dtype=np.float32)
    click[8000:8010] = 0.5
    loud = at_level_unclipped(Waveform(click, 16_000), -3.0)
    assert float(np.abs(loud.samples).max()) == pytest.approx(FULL_SCALE, abs=1e-4)
    silence = Waveform(np.zeros(1600, dtype=np.float32), 16_000)
    assert at_level_unclipped(silence, -26.0) is silence


def test_an_operators_words_are_not_shown(tmp_path: Path) -> None:
    room = open_room([rating_session(tmp_path / "s1", 12, effects=True)])
    waiting = next(item for item in room.items if item.waits_for_effect)
    at = waiting.subject
    room.answer_effect(waiting, EffectAnswered(at.trial_id, at.take, at.attempt, EffectWord.WRONG, "bob", "it rang"))
    room.refresh()
    effect = next(item.effect for item in room.items if item.id == waiting.id)
    assert effect is not None
    assert (effect.word, effect.said) == (EffectWord.WRONG, "")
    room.close()
