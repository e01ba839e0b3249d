"""What rooms give out names no device and nobody who looked, in whatever front-end it is shown."""

from __future__ import annotations

from pathlib import Path

from harness.model.effect import EffectWord
from harness.model.record import EffectAnswered
from harness.rig.rating_room import open_room
from tests.rating_sessions import rating_session


def test_an_operators_words_name_neither_the_device_nor_them(tmp_path: Path) -> None:
    folder = rating_session(tmp_path / "s1", 12, effects=True)
    profiles = folder / "inputs" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "acme-one.yaml").touch()
    room = open_room([folder])
    waiting = next(item for item in room.items if item.waits_for_effect)
    at = waiting.subject
    detail = "the Kitchen rang, not the den; Acme-One never does"
    room.answer_effect(waiting, EffectAnswered(at.trial_id, at.take, at.attempt, EffectWord.WRONG, "bob", detail))
    room.refresh()
    effect = next(item.effect for item in room.items if item.id == waiting.id)
    assert effect is not None
    assert effect.said == "somebody looked: wrong, “the device rang, not the device; the device never does”"
    room.close()
