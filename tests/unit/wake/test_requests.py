"""The shortest pause between wake phrase and request from which the whole request arrives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from harness.model.observation import SpeechStarted
from harness.model.record import AttemptStarted, Observed, TrialStarted
from harness.model.scenario import TrialKind
from harness.model.time import Stamp
from harness.model.transcript import WordCounts
from harness.statistics.intervals import Share
from harness.wake.first_sounds import FirstSounds
from harness.wake.reports.figures_text import request_lines
from harness.wake.requests import (
    GapRequests,
    RequestResult,
    ShortestPause,
    add_by_gap,
    by_gap,
    pause_compared_with,
    shortest_pause,
    words_arrived,
)
from tests.known import known
from tests.unit.session.figures.rows import planned
from tests.unit.wake.wake_rows import rows_of, wake_trial


def gaps_of(arrived: dict[int, int], total: int = 10, unknown: int = 0) -> tuple[GapRequests, ...]:
    return tuple(GapRequests(gap_ms, Share(count, total), unknown=unknown) for gap_ms, count in arrived.items())


def test_every_word_must_arrive_and_extra_words_are_allowed() -> None:
    assert words_arrived(WordCounts(correct=4, insertions=2))
    assert not words_arrived(WordCounts(correct=3, deletions=1))
    assert not words_arrived(WordCounts(correct=3, substitutions=1))


@pytest.mark.parametrize(
    ("arrived", "expected"),
    [
        ({0: 0, 250: 0, 500: 10, 750: 10, 1000: 10}, ShortestPause(250, 500, (250, 1000), 500)),
        ({0: 10, 250: 10, 500: 10}, ShortestPause(None, 0, (0, 500), 0)),
        ({200: 10, 400: 10, 600: 10}, ShortestPause(None, 200, (0, 600), 200)),
        ({0: 0, 500: 0, 1000: 2}, ShortestPause(1000, None, (1000, None), None)),
        # 9 of 10 are 90 %, and not all.
        ({0: 0, 500: 9, 1000: 10, 1500: 10}, ShortestPause(0, 500, (0, None), 1000)),
        # The procedure takes the first pause with 10 of 10, whatever follows. The estimate does not.
        ({0: 0, 500: 10, 1000: 5, 1500: 10, 2000: 10}, ShortestPause(1000, 1500, (0, None), 500)),
    ],
)
def test_the_pause_lies_between_those_that_were_played(arrived: dict[int, int], expected: ShortestPause) -> None:
    assert shortest_pause(gaps_of(arrived)) == expected


def test_consistency_needs_at_least_ten_requests() -> None:
    assert known(shortest_pause(gaps_of({0: 9, 500: 9}, total=9))).consistent is None
    assert known(shortest_pause(gaps_of({0: 12, 500: 12}, total=12))).consistent == 0
    assert known(shortest_pause(gaps_of({0: 10, 500: 10}, unknown=1))).consistent is None
    assert shortest_pause(gaps_of({0: 0}, total=0, unknown=4)) is None


@pytest.mark.parametrize(
    ("limit_ms", "expected"), [(250, 500.0), (300, None), (499, None), (500, 500.0), (1000, 500.0)]
)
def test_a_limit_between_two_pauses_that_were_played_is_undecided(limit_ms: float, expected: float | None) -> None:
    gaps = gaps_of({0: 0, 250: 0, 500: 10, 750: 10})
    assert pause_compared_with(gaps, limit_ms) == expected


def test_a_pause_longer_than_all_that_were_played_fails_only_limits_up_to_there() -> None:
    gaps = gaps_of({0: 0, 1000: 0})
    assert pause_compared_with(gaps, 1000) == 1001
    assert pause_compared_with(gaps, 1500) is None


def test_unknown_requests_that_could_turn_the_verdict_leave_it_open() -> None:
    assert pause_compared_with(gaps_of({0: 0, 500: 10}, unknown=1), 500) == 500
    assert pause_compared_with(gaps_of({0: 0, 500: 10}, unknown=3), 500) is None
    assert pause_compared_with((), 500) is None


def test_requests_of_queries_and_commands_add_up_by_pause() -> None:
    counts = Counter(
        {
            RequestResult(500, True, False, True): 3,
            RequestResult(500, None, True, True): 2,
            RequestResult(0, False, True, False): 4,
            RequestResult(250, True, False, True): 0,  # taken back
        }
    )
    requests = by_gap(counts)
    assert requests == (GapRequests(0, Share(0, 4), 4, 0, 4), GapRequests(500, Share(3, 3), 0, 2, 0))
    assert add_by_gap(requests, requests[1:]) == (requests[0], GapRequests(500, Share(6, 6), 0, 4, 0))


def test_a_device_that_wakes_at_once_and_drops_the_beginning() -> None:
    heard = {0: "the light", 500: "on the light", 1000: "turn on the light"}
    trials, texts = [], []
    for number, (gap_ms, text) in enumerate([*heard.items()] * 10, 1):
        trial = wake_trial(number, TrialKind.COMMAND)
        trials.append(replace(trial, recipe=replace(trial.recipe, gap_ms=gap_ms)))
        texts.append(text)
    rows = rows_of(*trials)
    for trial, text in zip(trials, texts, strict=True):
        rows.play(trial, [("kitchen", 1.75)], words=[("kitchen", 2.6, text)])
    figures = rows.device()
    assert figures.hits == 0, "commands are no wake trials"
    assert [(gap.gap_ms, gap.whole) for gap in figures.requests] == [
        (0, Share(0, 10)), (500, Share(0, 10)), (1000, Share(10, 10)),
    ]  # fmt: skip
    assert list(request_lines("kitchen", figures.requests)) == [
        "kitchen: 90 % arrive whole after between 500 and 1000 ms (95 % interval 500 ms and up)",
        "first 10 of 10 after 1000 ms; 30 judged by the words of transcripts",
        "0 ms: 0 of 10, 500 ms: 0 of 10, 1000 ms: 10 of 10",
    ]


def test_a_later_take_of_a_command_replaces_the_earlier() -> None:
    trial = wake_trial(1, TrialKind.COMMAND)
    rows = rows_of(trial)
    rows.play(trial, [("kitchen", 1.75)], words=[("kitchen", 2.6, "turn on the light")])
    rows.play(trial, [("kitchen", 1.75)], words=[("kitchen", 2.6, "the light")], take=2)
    assert rows.device().requests == (GapRequests(250, Share(0, 1)),)


def test_without_transcripts_the_expected_response_decides_and_is_named() -> None:
    trials = [wake_trial(number, TrialKind.COMMAND, reference="LightOn") for number in (1, 2)]
    trials = [replace(trial, recipe=replace(trial.recipe, gap_ms=500 * number)) for number, trial in enumerate(trials)]
    rows = rows_of(*trials)
    rows.play(trials[0])
    rows.play(trials[1], [("kitchen", 1.75)], words=[("kitchen", 2.6, "intent:LightOn")])
    figures = rows.device()
    assert figures.requests == (GapRequests(0, Share(0, 1), 1), GapRequests(500, Share(1, 1), 1))
    assert list(request_lines("kitchen", figures.requests))[1] == (
        "fewer than 10 requests after each pause; 2 judged by the expected response, without transcripts"
    )


def test_the_answer_to_a_later_query_is_not_the_first_sound_of_a_command() -> None:
    command = replace(wake_trial(1, TrialKind.COMMAND, injected=False), microphone="mic")
    rows = rows_of(command, replace(planned(2, trial_id="q"), microphone="mic"))
    rows.play(command, [("kitchen", 1.7)], words=[("kitchen", 3.0, "turn on the light")])
    rows.add(TrialStarted("q", 1), 30.0)
    rows.add(AttemptStarted("q", 1, 1, "pq", "c", 0.5, 1.5, 1.6, None))
    rows.add(Observed(SpeechStarted("mic", Stamp(rows.at_s + 2), -20.0), "q", 1, 1))
    assert rows.device().first_sounds == FirstSounds.of([None])
