"""What the first bytes of a board that does not answer say, and words for causes and errors."""

from harness.devices.framing.board_words import observation
from harness.devices.serial.port import no_answer
from harness.devices.wire.audio_link import AudioLink
from harness.devices.wire.messages import ErrorCode, ErrorEvent
from harness.model.observation import Intent, LogLine
from harness.model.time import Stamp
from harness.session.wording import in_words


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
    told_of = [observation(ErrorEvent(1, code, "so"), "dut", Stamp(1.0), AudioLink()) for code in ErrorCode]
    assert [(type(one), getattr(one, "name", None)) for one in told_of] == [(LogLine, None), (Intent, "")]
