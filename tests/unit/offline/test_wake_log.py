"""The wake-evaluation log: the manual's own numbers, and what is written is what is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.offline.wake_log import (
    ErrorLine,
    MissedFile,
    RejectedFile,
    Spot,
    SpotCount,
    TranscriptLine,
    WakeLog,
    WakeLogEvent,
    computed_totals,
    differences,
    hours_text,
    seconds_of,
    summary,
    total_line,
    utc_text,
    write,
)
from harness.offline.wake_log_reading import (
    MAX_LINE_CHARS,
    InfoLine,
    TotalLine,
    entries,
    entry_at,
    has_escaped_names,
    read,
)

# The manual's example: 2612 in-vocabulary files with 2525 true accepts, 118 false accepts in 142.984 h.
MANUAL = WakeLog(
    info=(
        ("inv-files", "2612"),
        ("inv-seconds", "83259"),
        ("inv-hours", "23:07:39.285"),
        ("oov-files", "686"),
        ("oov-hours", "142:59:01.345"),
        ("real-time-factor", "658.9"),
    ),
    events=(
        *(Spot("INVTA", f"i{n}.wav", 1100, 1700, "alexa") for n in range(2525)),
        *(MissedFile("INVFR", f"j{n}.wav") for n in range(2612 - 2525)),
        *(Spot("OOVFA", f"o{n}.wav", 5, 7, "alexa") for n in range(118)),
        *(Spot("INVFA", f"i{n}.wav", 5, 7, "alexa") for n in range(3)),
    ),
)

ORIGINAL = (Path(__file__).parents[2] / "data" / "offline" / "original.log").read_text(encoding="utf-8")
"""As the original tool writes them: raw names, -u, numbers with decimals or none."""


def test_the_summary_matches_the_manuals_console_line() -> None:
    assert summary(MANUAL) == "3298 files, 166.111 hr, 118 FA 0.83/hr, 3.33% FR, 2525 TA, 658.9x RT"


def test_word_error_summary_matches_the_manual() -> None:
    words = TranscriptLine("STTSB", "a", 0, 1, "x", "y", 9174, 833, 198, 120, 12.546)
    log = WakeLog((("inv-files", "999"), ("inv-hours", "1:16:51.600"), ("real-time-factor", "5.3")), (words,))
    assert summary(log) == (
        "999 files, 1.281 hr, 9174 Words, 833 Substitutions, 198 Insertions, 120 Deletions, 12.546% WER, 5.3 xRT"
    )


def test_rates_without_audio_are_undefined() -> None:
    assert computed_totals(WakeLog()) == {}
    assert computed_totals(read('OOVFA "a" 1 2 "alexa" sv-score 0\n')) == {"FACOUNT": 1}
    assert summary(WakeLog()) == "0 files, 0.000 hr, 0 FA n/a/hr, no in-vocabulary files, 0 TA"


def test_summaries_of_run_and_log_round_alike() -> None:
    run = WakeLog(totals=(("FACOUNT", 4), ("FARATE", 1000.064997)))
    log = read(write(run))
    assert dict(log.totals)["FARATE"] == 1000.065
    assert summary(run) == summary(log)


def test_in_vocabulary_false_accepts_count_only_with_u() -> None:
    assert computed_totals(MANUAL)["FACOUNT"] == 118
    log = replace(MANUAL, info=(*MANUAL.info, ("x-count-in-vocabulary", "yes"), ("inv/oov-hours", "20:00:00.000")))
    totals = computed_totals(log)
    assert totals["FACOUNT"] == 121
    assert totals["FARATE"] == pytest.approx(121 / (seconds_of("142:59:01.345") / 3600 + 20))


def test_hours_and_times_are_formatted_like_the_manual() -> None:
    assert hours_text(83259.285) == "23:07:39.285"
    assert hours_text(3599.9996) == "1:00:00.000"
    assert seconds_of("142:59:01.345") == pytest.approx(514741.345)
    assert utc_text(1709287200.1234) == "2024-03-01 10:00:00.123 UTC"
    with pytest.raises(ValueError, match="H:MM:SS"):
        seconds_of("12:30")


def test_a_log_of_the_original_tool_reads_into_the_same_model() -> None:
    log = read(ORIGINAL)
    spots = [event for event in log.events if isinstance(event, Spot)]
    assert [spot.file for spot in spots[:4]] == ["a.wav", "a.wav", "C:\\new\\table.wav", 'say "hi" 5 6.wav']
    assert (spots[0].start_ms, spots[1].end_ms, spots[3].sv_score) == (1010.5, 2500.0, 0.001)
    assert spots[3].phrase == 'the "a" word'
    assert MissedFile("INVFR", "bro\nken.wav") in log.events
    assert RejectedFile("odd.wav", "wrong rate") in log.events
    assert log.about("operating-point") == "10"
    assert log.counts_in_vocabulary
    assert dict(log.totals) == {"FACOUNT": 2, "FARATE": 1.995, "FRCOUNT": 1, "FRRATIO": 25, "TACOUNT": 3}
    assert differences(log) == ()


def test_escaped_names_of_another_tool_are_understood() -> None:
    log = read('INVTA "say \\"hi\\".wav" 1 2 "alexa" sv-score 0\nCMDFR "a\\"b c.wav" turn it on\nINVFR "a.wav"\r\n')
    assert [event.file for event in log.events if not isinstance(event, ErrorLine)] == [
        'say "hi".wav',
        'a"b c.wav',
        "a.wav",
    ]
    assert isinstance(log.events[1], MissedFile)
    assert log.events[1].reference == "turn it on"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param(
            'CMDTA "a" 1 2 "light on" "light on" sv-score 0\nCMDSB "b" 1 2 "light off" "light on" sv-score 0\n'
            'CMDFR "c" light on\nCMDFR "d" "light on"\n'
            "FRCOUNT 2\nFRRATIO 50 %\nFR+SBCOUNT 3\nFR+SBRATIO 75 %\nTACOUNT 1\n",
            (),
            id="substitutions are no false rejects but errors",
        ),
        pytest.param(
            'STTTA "a" 1 2 "one two" "one two" 2, 0, 0, 0, 0.000\nSTTSB "b" 1 2 "one too" "one two" 2 1 0 0 50.0\n'
            'STTFR "c" "three words here"\n'
            "WER 57.143 %\nWER_WORDS 7\nWER_SUBSTITUTIONS 1\nWER_INSERTIONS 0\nWER_DELETIONS 3\n",
            (),
            id="the words of a text that was missed are left out",
        ),
        pytest.param(
            'INVFR "a"\nFRCOUNT 2\nWER 3 %\n',
            ("FRCOUNT is 2, but its lines add up to 1", "WER is 3, but no line counts towards it"),
            id="totals that do not fit are told",
        ),
    ],
)
def test_stated_totals_are_checked_against_the_lines(text: str, wrong: tuple[str, ...]) -> None:
    assert differences(read(text)) == wrong


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("INFO a b\nINVTA broken", 2),
        ('INVTX "a" many spots', 1),
        ("FACOUNT some", 1),
        ("WHAT is this", 1),
        ('INVFR "bro\nken"\nSTTSB "a" 1 2 "x" "y" 1e999, 0, 0, 0, n/a', 3),
        ('STTSB "a" 1 2 "x" "y" 1, -1, 0, 0, n/a', 1),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text: str, line: int) -> None:
    with pytest.raises(InputError, match=f"old.log:{line}: "):
        read(text, "old.log")


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_file_is_read_line_by_line_and_any_line_again(tmp_path: Path, ends: str, mark: bytes) -> None:
    path = tmp_path / "old.log"
    text = ORIGINAL.replace("a.wav", "\udce4.wav")  # a name that is no UTF-8
    path.write_bytes(mark + text.replace("\n", ends).encode("utf-8", "surrogateescape"))
    assert not has_escaped_names(path, "old.log")
    pairs = [*entries(path, "old.log", escaped=False)]
    whole = read(text)
    assert [entry for _, entry in pairs if not isinstance(entry, InfoLine | TotalLine)] == [*whole.events]
    assert [(entry.name, entry.detail) for _, entry in pairs if isinstance(entry, InfoLine)] == [*whole.info]
    assert [entry_at(path, begins, escaped=False) for begins, _ in pairs] == [entry for _, entry in pairs]


def test_a_line_without_an_end_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "zeros.log").open("wb") as file:
        file.write(b"INFO a b\n")
        file.truncate(MAX_LINE_CHARS + 100)
    with pytest.raises(InputError, match=r"zeros.log:2: the line is longer than 16 MB"):
        list(entries(tmp_path / "zeros.log", "zeros.log", escaped=False))


names = st.text(max_size=12) | st.sampled_from(['a" 1 2 "b', "x\\", "\\n", 'q" "r', "a\u2028b", "\udc80", "", " "])
ms = st.integers(0, 10**7).map(lambda n: n / 8)
counts = st.integers(0, 50)
extras = st.lists(st.tuples(st.sampled_from(["x-score", "x-trial"]), names), max_size=2).map(tuple)
events = st.one_of(
    st.builds(
        Spot, st.sampled_from(["INVTA", "INVFA", "OOVFA"]), names, ms, ms, names, st.just(""), counts.map(float), extras
    ),
    st.builds(MissedFile, st.just("INVFR"), names, st.just(""), extras),
    st.builds(MissedFile, st.sampled_from(["CMDFR", "STTFR"]), names, names, extras),
    st.builds(SpotCount, names, counts, extras),
    st.builds(Spot, st.sampled_from(["CMDTA", "CMDSB"]), names, ms, ms, names, names, counts.map(float), extras),
    st.builds(
        TranscriptLine,
        st.sampled_from(["STTTA", "STTSB"]),
        *(names, ms, ms, names, names, counts, counts, counts, counts, counts.map(float), extras),
    ),
    st.builds(RejectedFile, names, st.sampled_from(["unreadable", "wrong rate"])),
)


@given(st.lists(events, max_size=8), st.integers(0, 10**9), st.booleans())
def test_wake_log_survives_writing_and_reading(lines: list[WakeLogEvent], thousandths: int, with_u: bool) -> None:
    info = (("oov-hours", hours_text(thousandths / 1000)), ("x-count-in-vocabulary", "yes" if with_u else "no"))
    log = WakeLog(info, tuple(lines))
    log = replace(log, totals=tuple(computed_totals(log).items()))
    back = read(write(log))
    assert back.events == log.events
    assert back.info == log.info
    assert differences(back) == ()
    assert [total_line(key, value) for key, value in computed_totals(back).items()] == [
        total_line(key, value) for key, value in log.totals
    ]
