"""Whose silence it is, and what the first bytes of a board that does not answer say."""

from harness.devices.mqtt.board_silence import BoardSilence
from harness.devices.serial.port import no_answer
from harness.devices.serial.telling import observation
from harness.devices.wire.audio_link import AudioLink
from harness.devices.wire.device_clock import DeviceClock
from harness.devices.wire.messages import ErrorCode, ErrorEvent
from harness.model.observation import Intent, LogLine
from harness.session.wording import in_words


def test_a_silence_is_the_boards_while_the_broker_answers() -> None:
    owed_s = [0.0]
    silence = BoardSilence(lambda: owed_s[0])
    silence.heard(10.0)
    assert silence.too_long(15.0, 4.0) == "", "it was not asked"
    silence.asked(10.5)
    assert silence.too_long(13.9, 4.0) == ""
    assert silence.too_long(14.5, 4.0) == "the board has said nothing for 4.5 s; the broker answers"
    owed_s[0] = 2.0
    assert silence.too_long(14.5, 4.0).startswith("the broker answers nothing")


def test_a_silence_that_we_slept_through_is_not_the_boards() -> None:
    silence = BoardSilence(lambda: 0.0)
    silence.look(10.0)
    silence.heard(10.0)
    silence.asked(10.1)
    silence.look(16.0)
    assert silence.too_long(16.0, 4.0) == ""
    silence.asked(16.5)
    for step in range(1, 50):
        silence.look(16.0 + step / 10)
    assert silence.too_long(20.9, 4.0), "awake, and still nothing came"


def test_first_bytes() -> None:
    assert no_answer(b"", 0)[0] == "nothing came from it"
    assert no_answer(b"hi\r\nI (5) main: hello\r\n", 22)[0] == '22 bytes of text came, such as "I (5) main: hello"'
    seen, remedy = no_answer(bytes(range(256)), 9000)
    assert seen == "9000 bytes came that are neither text nor frames"
    assert "`baud`" in remedy
    assert "\x1b" not in no_answer(b"plain text that is long enough, and \x1b[31mred", 45)[0]


def test_causes_in_words() -> None:
    assert in_words("link_lost: a_b: the port is gone") == "link lost: a_b: the port is gone"
    assert in_words("engine_ended") == "engine ended"


def test_that_a_board_understood_nothing_is_evidence_and_other_errors_are_lines() -> None:
    clock = DeviceClock()
    clock.start("b")
    for sent_s in (100.0, 101.0, 102.0):
        clock.ping(sent_s, int(sent_s * 1e6), int(sent_s * 1e6), sent_s + 0.001)
    told_of = [observation(ErrorEvent(1_000_000, code, "so"), "dut", clock, AudioLink()) for code in ErrorCode]
    assert [(type(one), getattr(one, "name", None)) for one in told_of] == [(LogLine, None), (Intent, "")]
