"""A device's own word that it listens: how a profile maps it, and how often it is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.devices.wire.console import PROOF_EVERY_S, Console, ProofPace
from harness.devices.wire.mappings import observations
from harness.model.bench import DeviceProfile, LineMapping, MessageMapping, ObservationKind
from harness.model.observation import DeviceState, ListeningProved, LogLine, Proof, Status
from harness.model.time import Stamp

AT = Stamp(5.0, 0.1)
BEAT = MessageMapping("vh/lamp/heartbeat", ObservationKind.LISTENING)


def test_a_message_is_a_heartbeat_whatever_is_in_it() -> None:
    for payload in (b"", b"{}", b'{"boot": "a", "time": 3.5}', b"alive"):
        seen = observations([BEAT], "vh/lamp/heartbeat", payload, AT, "lamp")
        assert seen == (ListeningProved("lamp", AT, Proof.HEARTBEAT),) or payload == b""


def test_a_condition_says_which_messages_are_heartbeats() -> None:
    asked = MessageMapping("lamp/state", ObservationKind.LISTENING, when=(("/microphone", "on"),))
    on = observations([asked], "lamp/state", b'{"microphone": "on"}', AT, "lamp")
    off = observations([asked], "lamp/state", b'{"microphone": "off"}', AT, "lamp")
    assert [type(one) for one in (*on, *off)] == [ListeningProved, LogLine]


def test_a_line_is_a_heartbeat() -> None:
    rule = LineMapping(r"mic alive frames=\d+", ObservationKind.LISTENING)
    profile = DeviceProfile("lamp", "Lamp", "/lamp.yaml", "", ("alexa",), lines=(rule,))
    (seen,) = Console(profile, "lamp").feed(b"[12] mic alive frames=800\n", AT)
    assert seen == ListeningProved("lamp", AT, Proof.HEARTBEAT)


@given(st.lists(st.floats(0.01, 20.0), max_size=60))
def test_heartbeats_are_told_about_every_five_seconds_and_never_held_back_longer(gaps: list[float]) -> None:
    pace, at_s, told = ProofPace(), 0.0, [0.0]
    assert pace.passes(ListeningProved("lamp", Stamp(0.0), Proof.HEARTBEAT))
    for gap in gaps:
        at_s += gap
        if pace.passes(ListeningProved("lamp", Stamp(at_s), Proof.HEARTBEAT)):
            assert at_s - told[-1] >= PROOF_EVERY_S - 0.5 - 1e-9
            told.append(at_s)
        else:
            assert at_s - told[-1] < PROOF_EVERY_S - 0.5 + 1e-9


def test_the_first_heartbeat_after_a_start_or_a_lost_link_is_told() -> None:
    pace, beat = ProofPace(), ListeningProved("lamp", Stamp(1.0), Proof.HEARTBEAT)
    assert [pace.passes(beat), pace.passes(beat)] == [True, False]
    assert pace.passes(Status("lamp", Stamp(1.0), DeviceState.STARTED))
    assert [pace.passes(beat), pace.passes(beat)] == [True, False]
    pace.cut()
    assert [pace.passes(beat), pace.passes(beat)] == [True, False]


def test_acknowledgements_have_a_pace_of_their_own() -> None:
    pace = ProofPace()
    assert all(pace.passes(ListeningProved("lamp", Stamp(1.0), Proof.ACKNOWLEDGED, 3.0)) for _ in range(3))
