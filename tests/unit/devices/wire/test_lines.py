"""State over several lines."""

from __future__ import annotations

from harness.devices.wire.lines import LineRules
from harness.model.bench import ClockKind, ConsoleSettings, LineMapping, ObservationKind, ScoreBlock
from harness.model.observation import DeviceState, Intent, LogLine, Observation, StateTold, Status, Transcript, Wake
from harness.model.time import Stamp

KIND = ObservationKind
AT = Stamp(1.0)
TWO = LineMapping(
    "wakeword detected",
    KIND.WAKE,
    more=(r"model index:(?P<model>\d+), word index:(?P<word>\d+)",),
    fields=(("phrase", "{model}.{word}"),),
    values=(("1.2", "hi esp"),),
    within_lines=3,
    within_s=0.5,
)
BLOCK = LineMapping(
    "^Predictions", KIND.WAKE, more=(r"^  (?P<phrase>\w+): (?P<score>[\d.]+)",), block=ScoreBlock(0.8, ("noise",))
)
BRACES = LineMapping(
    r"^\{$",
    KIND.INTENT,
    more=("understood : '(?P<understood>\\w+)'", "intent : '(?P<name>\\w+)'", "'(?P<slot>\\w+)' : '(?P<value>\\w*)'"),
    until=r"^\}$",
    when=(("understood", "true"),),
    within_lines=20,
)


def said(lines: LineRules, *texts: str, at: Stamp = AT) -> list[Observation]:
    return [one for text in texts for reading in lines.take(text, text, at) for one in reading.observations]


def lines(*mappings: LineMapping, takes_audio: bool = False) -> LineRules:
    return LineRules(mappings, ConsoleSettings(), "dev", takes_audio=takes_audio)


def test_a_second_line_fills_in_the_first_and_others_may_stand_between() -> None:
    reader = lines(TWO)
    assert said(reader, "wakeword detected", "something else") == []
    assert said(reader, "model index:1, word index:2", at=Stamp(1.2)) == [Wake("dev", AT, "hi esp")]
    assert said(reader, "model index:1, word index:2") == []


def test_what_does_not_come_in_time_is_told_without_it() -> None:
    reader = lines(TWO)
    said(reader, "wakeword detected")
    assert reader.expire(1.4) == []
    (late,) = reader.expire(1.6)
    assert late.observations == (Wake("dev", AT),)
    said(reader, "wakeword detected", "x", "y")
    assert said(reader, "z") == [Wake("dev", AT)]
    said(reader, "wakeword detected")
    assert said(reader, "wakeword detected") == [Wake("dev", AT)]
    assert [one.observations for one in reader.flush()] == [(Wake("dev", AT),)]


def test_of_a_block_the_best_word_is_told_once_until_it_was_below() -> None:
    reader = lines(BLOCK)

    def block(yes: float, noise: float) -> list[Observation]:
        return said(reader, "Predictions (…):", f"  yes: {yes}", f"  noise: {noise}")

    assert block(0.9, 0.1) == []
    assert block(0.95, 0.05) == [Wake("dev", AT, "yes", 0.9)]
    assert block(0.1, 0.9) == []
    assert block(0.85, 0.1) == []
    assert said(reader, "the end") == [Wake("dev", AT, "yes", 0.85)]


def test_braces_over_several_lines() -> None:
    reader = lines(BRACES)
    text = ("{", "  understood : 'true',", "  intent : 'order',", "  'size' : 'large',", "  'what' : 'tea',", "}")
    assert said(reader, *text) == [Intent("dev", AT, "order", (("size", "large"), ("what", "tea")))]
    assert said(reader, "{", "  understood : 'false',", "}") == []
    (unclear,) = said(reader, "{", "  understood : 'true',", "}")
    assert isinstance(unclear, LogLine)
    assert "no name" in unclear.text


def test_the_first_rule_that_fits_takes_the_line() -> None:
    first = LineMapping("wake (?P<phrase>one)", KIND.WAKE)
    status = LineMapping("(?P<state>\\w+)$", KIND.STATUS, values=(("one", "idle"), ("go", "listening")))
    reader = lines(first, status)
    assert said(reader, "wake one", "go") == [Wake("dev", AT, "one"), Status("dev", AT, DeviceState.LISTENING)]
    (unmapped,) = said(reader, "dancing")
    assert isinstance(unmapped, LogLine)
    assert "'dancing' is not mapped" in unmapped.text


def test_a_piece_of_state_has_its_value_from_a_group() -> None:
    rule = LineMapping(r"^state: (?P<name>\w+)=(?P<value>.*)$", KIND.STATE, values=(("tmr", "timer"),))
    told = said(lines(rule), "state: tmr=10 minutes", "state: list=")
    assert told == [StateTold("dev", AT, "timer", "10 minutes"), StateTold("dev", AT, "list", "")]


def test_a_condition_leaves_the_line_to_later_rules() -> None:
    rule = LineMapping(r"(?P<what>\w+) (?P<text>.*)", KIND.TRANSCRIPT, when=(("what", "heard"),))
    other = LineMapping(r"(?P<what>\w+) (?P<text>.*)", KIND.RESPONSE)
    reader = lines(rule, other)
    assert said(reader, "heard a word") == [Transcript("dev", AT, "a word")]
    assert [one.kind for one in said(reader, "said a word")] == ["response_text"]


def test_scores_and_audio_times() -> None:
    rule = LineMapping(
        r"(?P<phrase>\w+) \((?P<score>\d+)\) @(?P<time>\d+)ms", KIND.WAKE, score_scale=255, clock=ClockKind.AUDIO_MS
    )
    (seen,) = said(lines(rule, takes_audio=True), "yes (204) @4056ms")
    assert seen == Wake("dev", AT, "yes", 0.8, 4.056)
    (seen,) = said(lines(rule), "yes (999) @4056ms")
    assert seen == Wake("dev", AT, "yes", None)


def test_all_pairs_of_one_line_are_slots_in_their_order() -> None:
    reader = lines(LineMapping(r"^do (?P<name>\w+)(?: (?P<slot>\w+)=(?P<value>\w*))*$", KIND.INTENT))
    assert said(reader, "do heat room=bath degrees=21 room=hall") == [
        Intent("dev", AT, "heat", (("room", "bath"), ("degrees", "21"), ("room", "hall")))
    ]
    assert said(reader, "do heat room=bath") == [Intent("dev", AT, "heat", (("room", "bath"),))]
    assert said(reader, "do heat") == [Intent("dev", AT, "heat")]
