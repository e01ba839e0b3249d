"""The listening machine in simulated time: when it plays, what interrupts it, how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.bench import ObservationKind
from harness.model.observation import (
    DeviceState,
    Intent,
    LinkBack,
    LinkLost,
    ListeningProved,
    Observation,
    Overrun,
    Proof,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
)
from harness.model.record import AttemptFinished, FaultMet
from harness.model.scenario import (
    AmbientSource,
    AmbientSpec,
    Matrix,
    Order,
    ProbeSpec,
    RepromptRule,
    TrialKind,
    TrialTemplate,
    WakeSettings,
)
from harness.model.stimulus import Ambience, NoiseKind, Recording, SpokenText, VoiceSpec
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition, Target, Trial
from harness.session.listening_trial import INJECTION_GUARD_S, RETRY_S
from harness.session.plan import plan
from harness.session.soak import OTHER_TRIAL_S
from harness.session.take import SOUND_GUARD_S, BenchState, Phase
from tests.known import known
from tests.unit.session.listening_material import BY_AIR, RULE, TIMING, WIRED, Play
from tests.unit.session.material import bench, scenario


def test_a_wired_device_is_through_with_the_last_acknowledged_sample() -> None:
    play = Play(WIRED)
    play.starts("wired", 0.0)
    play.wait(0.2)  # faster than real time
    play.ends("wired", audio_s=3.0)
    assert (play.ended.outcome, play.ended.deciding_attempt) == (Outcome.COUNTED, 1)
    row = play.started[0]
    assert (row.query_start_s, row.query_end_s, row.duration_s) == (1.0, 1.6, 3.0)


def test_by_air_the_window_is_waited_for_after_the_phrase() -> None:
    play = Play(BY_AIR, settings=WakeSettings(window_after_s=4.0))
    play.starts("speaker")
    begins_s = play.now_s
    play.wait(3.0)
    play.ends("speaker")
    assert play.machine.phase is Phase.LISTENING
    play.wait(2.5)
    assert play.verdict is None, "1.6 s + 4 s + arrival is not over yet"
    play.wait(0.5)
    assert play.ended.outcome is Outcome.COUNTED
    assert play.now_s - begins_s == pytest.approx(6.0)


def test_all_players_must_have_ended() -> None:
    play = Play(BY_AIR, WIRED)
    assert play.trial.players == ("speaker", "wired")
    play.starts("speaker")
    play.starts("wired", 7.0)
    play.ends("wired", audio_s=10.0)
    assert play.verdict is None
    play.wait(3.0)
    play.ends("speaker")
    play.wait(1.0)
    assert play.ended.outcome is Outcome.COUNTED


def test_wake_events_are_credited_to_the_attempt_under_way_and_to_no_other() -> None:
    play = Play(WIRED, not_before_s=105.0)
    early, within, late = (Wake("wired", Stamp(at_s), "alexa", 0.9, at_s) for at_s in (1.0, 2.0, 3.0))
    stranger = Wake("somebody", Stamp(2.0))
    play.feed(early)
    play.wait(5.0)
    play.starts("wired", 0.0)
    play.feed(within)
    play.feed(stranger)
    play.ends("wired", audio_s=3.0)
    play.feed(late)
    assert [play.credited(wake) for wake in (early, within, stranger, late)] == [None, 1, None, None]


@pytest.mark.parametrize(
    ("observation", "cause"),
    [
        (LinkLost("wired", Stamp(100.0), "the port is gone"), "link_lost: wired: the port is gone"),
        (Status("wired", Stamp(100.0), DeviceState.STARTED), "device_restarted: wired"),
        (Status("wired", Stamp(100.0), DeviceState.GONE), "device_gone: wired"),
        (
            StimulusEnded("wired", Stamp(100.0), "call.r1.t1.a1", False, 1.0, "it hung up"),
            "stimulus_cut: wired: it hung up",
        ),
    ],
)
def test_interrupted_attempt_names_its_cause_and_is_repeated(observation: Observation, cause: str) -> None:
    play = Play(BY_AIR, WIRED)
    play.starts("speaker")
    play.starts("wired", 0.0)
    play.wait(1.0)
    play.feed(observation)
    assert [(row.outcome, row.cause) for row in play.attempts] == [(Outcome.INTERRUPTED, cause)]
    assert play.stops == 1, "the other player is stopped"
    play.ends("speaker", complete=False)
    if not isinstance(observation, StimulusEnded):
        play.ends("wired", complete=False, audio_s=1.0)
    play.feed(LinkBack("wired", play.at()))
    play.feed(Status("wired", play.at(), DeviceState.IDLE))
    play.wait(RETRY_S)
    assert [action.attempt for action in play.started] == [1, 2]
    play.starts("speaker")
    play.starts("wired", 1.0)
    play.wait(3.0)
    play.ends("speaker")
    play.ends("wired", audio_s=4.0)
    play.wait(1.0)
    assert (play.ended.outcome, play.ended.attempts, play.ended.deciding_attempt) == (Outcome.COUNTED, 2, 2)


def test_each_source_of_a_device_shows_that_it_woke_and_any_lost_one_interrupts() -> None:
    seen_twice = replace(BY_AIR, also=("shelf.led",))
    play = Play(seen_twice, kind=TrialKind.PROBE)
    play.starts("speaker", 0.0)
    play.wait(1.5)
    play.feed(Wake("shelf.led", play.at(), "alexa"))
    play.wait(1.5)
    play.ends("speaker")
    play.wait(5.0)
    assert play.ended.outcome is Outcome.COUNTED
    lost = Play(seen_twice)
    lost.starts("speaker", 0.0)
    lost.feed(LinkLost("shelf.led", lost.at(), "the camera is gone"))
    assert lost.attempts[0].outcome is Outcome.INTERRUPTED
    lost.ends("speaker", complete=False)
    lost.wait(RETRY_S + 1)
    assert lost.machine.phase is Phase.LINK_LOST
    lost.feed(LinkBack("shelf.led", lost.at()))
    assert lost.machine.phase is Phase.PLAYING


def test_events_of_other_devices_interrupt_nothing() -> None:
    play = Play(WIRED)
    play.starts("wired", 0.0)
    play.feed(LinkLost("mic", play.at(), "unplugged"))
    play.feed(Status("other", play.at(), DeviceState.STARTED))
    play.ends("wired", audio_s=3.0)
    assert play.ended.outcome is Outcome.COUNTED


def test_nothing_is_played_while_a_link_is_down_and_the_trial_is_given_up_after_a_while() -> None:
    state = BenchState()
    state.observe(LinkLost("wired", Stamp(99.0), "unplugged"))
    play = Play(WIRED, bench_state=state)
    assert play.machine.phase is Phase.LINK_LOST
    assert not play.started
    play.wait(59.0)
    assert play.verdict is None
    play.wait(1.0)
    assert (play.ended.outcome, play.ended.attempts) == (Outcome.INTERRUPTED, 0)
    assert play.ended.cause == "link_lost: wired did not come back"


def test_a_device_that_was_said_to_be_gone_is_back_when_it_shows_that_it_listens() -> None:
    state = BenchState()
    state.observe(Status("wired", Stamp(99.0), DeviceState.GONE))
    play = Play(WIRED, bench_state=state)
    assert play.machine.phase is Phase.LINK_LOST
    play.feed(ListeningProved("wired", play.at(), Proof.HEARTBEAT))
    assert play.started


def test_too_many_interruptions_give_the_trial_up() -> None:
    play = Play(WIRED)
    for number in range(1, 7):
        assert len(play.started) == number
        play.starts("wired", 0.0)
        play.ends("wired", complete=False, audio_s=0.1)
        play.wait(RETRY_S)
    assert (play.ended.outcome, play.ended.attempts) == (Outcome.INTERRUPTED, 6)
    assert play.ended.cause.startswith("too_many_interruptions")


def test_refractory_time_is_awaited_by_air_and_not_by_wire() -> None:
    state = BenchState()
    for source in ("shelf_link", "wired"):
        state.observe(Wake(source, Stamp(99.5), "alexa"))
    assert Play(WIRED, bench_state=state).started
    play = Play(BY_AIR, bench_state=state)
    assert not play.started
    play.wait(1.4)
    assert not play.started
    play.wait(0.1)
    assert play.started


def test_a_device_that_never_stops_waking_is_reported_and_does_not_hold_the_run() -> None:
    """It wakes every 0.7 s: the refractory time after its last event never ends."""
    play = Play(BY_AIR, bench_state=BenchState(last_wake_s={BY_AIR.connection: 100.0}))
    while not play.started and play.now_s < 100.0 + 2 * RULE.response_max_s:
        play.feed(Wake(BY_AIR.connection, play.at(), "alexa", 0.9, None))
        assert play.machine.state.reason == "shelf has just woken; waiting until it is quiet"
        play.wait(0.7)
    assert play.now_s - 100.0 == pytest.approx(RULE.response_max_s, abs=0.8)
    (fault,) = [action for action in play.actions if isinstance(action, FaultMet)]
    assert fault == FaultMet("shelf_link", "shelf keeps waking: still not quiet after 30.0 s; the trial starts anyway")


def test_a_stopped_player_is_waited_for_before_it_plays_again() -> None:
    play = Play(WIRED)
    play.starts("wired", 0.0)
    play.feed(Status("wired", play.at(), DeviceState.STARTED))
    play.wait(RETRY_S + 1.0)
    assert len(play.started) == 1, "it has not said that it ended"
    play.feed(StimulusEnded("wired", play.at(), "call.r1.t1.a1", False, 0.5))
    assert len(play.started) == 2


def test_a_sound_that_never_ends_is_given_up() -> None:
    play = Play(BY_AIR)
    play.starts("speaker")
    play.wait(TIMING.duration_s + SOUND_GUARD_S)
    assert play.attempts[0].cause == "sound_lost: speaker did not finish playing the stimulus"
    slow = Play(WIRED)
    slow.starts("wired", 0.0)
    for _ in range(20):  # a slow line gets on, and is not given up
        slow.wait(INJECTION_GUARD_S - 1.0)
        slow.feed(ListeningProved("wired", slow.at(), Proof.ACKNOWLEDGED, 1.0))
    assert not slow.attempts
    for _ in range(13):  # a heartbeat is no progress
        slow.wait(5.0)
        slow.feed(ListeningProved("wired", slow.at(), Proof.HEARTBEAT))
    assert slow.attempts[0].cause == "sound_lost: wired did not finish playing the stimulus"


WORDS = Transcript("shelf_link", Stamp(103.4), "what time is it")
TIME_INTENT = Intent("shelf_link", Stamp(103.4), "time")
TELLS_INTENTS = replace(BY_AIR, reports=(ObservationKind.INTENT, ObservationKind.WAKE))


@pytest.mark.parametrize(("target", "report"), [(BY_AIR, WORDS), (TELLS_INTENTS, TIME_INTENT)])
def test_a_command_by_air_waits_for_what_was_understood(target: Target, report: Observation) -> None:
    play = Play(target, kind=TrialKind.COMMAND)
    play.starts("speaker")
    begins_s = play.now_s
    play.wait(3.0)
    play.ends("speaker")
    play.wait(0.4)
    assert play.verdict is None, "it may still say what it heard: evidence_wait_s after the command"
    play.feed(report)
    assert play.verdict is not None
    assert play.now_s - begins_s == pytest.approx(3.4)
    row = play.attempts[0]
    assert (row.recognition, row.evidence) == (Recognition.UNKNOWN, EvidenceSource.DEVICE)


def test_microphone_time_of_the_sound_decides_the_window() -> None:
    play = Play(BY_AIR, settings=WakeSettings(window_after_s=4.0))
    play.starts("speaker")
    play.feed(StimulusHeard("mic", Stamp(play.now_s + 0.4), play.play_id, 0.9))
    play.wait(3.0)
    play.ends("speaker")
    play.wait(3.2)
    assert play.verdict is None
    play.wait(0.1)
    assert play.verdict is not None


def test_attempt_numbers_continue_from_an_earlier_run() -> None:
    before = AttemptFinished(
        "call.r1", 1, 1, Outcome.INTERRUPTED, Recognition.UNKNOWN, EvidenceSource.NONE, cause="engine_ended: killed"
    )
    play = Play(WIRED, before=(before,))
    assert play.started[0].attempt == 2


def test_pause_stop_and_skip() -> None:
    play = Play(WIRED, not_before_s=101.0)
    play.machine.hold()
    play.wait(5.0)
    assert not play.started
    assert play.machine.is_waiting_in_pause
    play.take(play.machine.release(play.now_s))
    assert play.started
    play.starts("wired", 0.0)
    play.take(play.machine.stop(play.now_s, "stopped: asked"))
    assert play.machine.finished
    assert play.verdict is None, "the trial stays open for a resume"
    assert play.attempts[0].cause == "stopped: asked"
    skipped = Play(WIRED)
    skipped.take(skipped.machine.skip(skipped.now_s, "enough"))
    assert (skipped.ended.outcome, skipped.attempts[0].outcome) == (Outcome.SKIPPED, Outcome.SKIPPED)


def test_a_player_that_refuses_stops_those_that_play() -> None:
    play = Play(BY_AIR, WIRED)
    play.take(play.machine.play_refused(play.now_s, play.play_id, "it is busy", ["speaker"]))
    assert play.attempts[0].cause == "sound_refused: it is busy"
    assert play.stops == 1
    play.ends("speaker", complete=False)
    play.wait(RETRY_S)
    assert len(play.started) == 2


SOURCES = st.sampled_from(["speaker", "wired", "shelf_link", "mic"])
ANYTHING = st.one_of(
    st.builds(lambda s: ("lost", s), SOURCES),
    st.builds(lambda s: ("back", s), SOURCES),
    st.builds(lambda s: ("starts", s), SOURCES),
    st.builds(lambda s, c: ("ends", s, c), SOURCES, st.booleans()),
    st.builds(lambda s, w: ("state", s, w), SOURCES, st.sampled_from(DeviceState)),
    st.builds(lambda s: ("wake", s), SOURCES),
    st.builds(lambda s: ("wait", s), st.floats(0.01, 20.0)),
)


@given(st.lists(ANYTHING, max_size=40))
def test_whatever_comes_in_whatever_order_every_attempt_ends_once_and_only_whole_ones_count(
    events: list[tuple[object, ...]],
) -> None:
    play = Play(BY_AIR, WIRED)
    ended: dict[str, set[str]] = {}
    for event in events:
        if play.machine.finished:
            break
        match event:
            case ("wait", float(seconds)):
                play.wait(seconds)
            case ("lost", str(source)):
                play.feed(LinkLost(source, play.at(), "gone"))
            case ("back", str(source)):
                play.feed(LinkBack(source, play.at()))
            case ("wake", str(source)):
                play.feed(Wake(source, play.at()))
            case ("state", str(source), DeviceState() as state):
                play.feed(Status(source, play.at(), state))
            case ("starts", str(source)) if play.started:
                play.feed(StimulusStarted(source, play.at(), play.play_id))
            case ("ends", str(source), bool(complete)) if play.started:
                if complete:
                    ended.setdefault(play.play_id, set()).add(source)
                play.feed(StimulusEnded(source, play.at(), play.play_id, complete))
            case _:
                pass
    numbers = [row.attempt for row in play.attempts]
    assert numbers == sorted(set(numbers)), "each attempt has one verdict"
    for row in play.attempts:
        if row.outcome is Outcome.COUNTED:
            assert {"speaker", "wired"} <= ended[f"call.r1.t1.a{row.attempt}"]
    if play.machine.finished:
        assert play.verdict is not None
        assert len(play.attempts) == len(play.started)
    else:
        assert play.machine.deadline_s is not None, "it must never hang"


def test_a_phrase_with_a_gap_in_it_is_said_again() -> None:
    play = Play(BY_AIR)
    play.starts("speaker")
    play.wait(1.2)
    play.feed(Overrun("speaker", play.at(), 1))
    assert play.attempts[0].outcome is Outcome.INTERRUPTED
    assert play.attempts[0].cause.startswith("stimulus_flawed")
    play.ends("speaker", complete=False)
    play.wait(RETRY_S)
    play.starts("speaker")
    play.feed(Overrun("microphone", play.at(), 3))
    play.wait(TIMING.duration_s)
    play.ends("speaker")
    play.wait(5.0)
    assert (play.ended.outcome, play.ended.deciding_attempt) == (Outcome.COUNTED, 2)
    assert [row.disturbed for row in play.attempts] == ["", ""]  # one block alone spoils no time


@pytest.mark.parametrize(
    ("kind", "late_s", "outcome"),
    [
        (TrialKind.WAKE, 0.05, Outcome.COUNTED),
        (TrialKind.WAKE, 0.3, Outcome.INTERRUPTED),
        (TrialKind.AMBIENT, 1.0, Outcome.COUNTED),  # ambient sound goes on through a gap
    ],
)
def test_a_sound_that_took_too_long_had_a_gap(kind: TrialKind, late_s: float, outcome: Outcome) -> None:
    play = Play(BY_AIR, kind=kind)
    play.starts("speaker")
    if kind is TrialKind.AMBIENT:
        play.feed(Overrun("speaker", play.at(), 1))
    play.wait(TIMING.duration_s + late_s)
    play.ends("speaker")
    play.wait(5.0)
    assert play.attempts[0].outcome is outcome


@pytest.mark.parametrize(("wakes", "outcome"), [(False, Outcome.INCONCLUSIVE), (True, Outcome.COUNTED)])
def test_a_miss_in_which_words_of_the_device_were_lost_is_inconclusive(wakes: bool, outcome: Outcome) -> None:
    play = Play(WIRED)
    play.starts("wired", 0.0)
    play.feed(Unread("wired", Stamp(play.now_s), "the line is too long: 99999 bytes", 3))
    if wakes:
        play.feed(Wake("wired", Stamp(play.now_s), "alexa", 0.9, 1.7))
    play.ends("wired", audio_s=3.0)
    assert play.ended.outcome is outcome
    assert play.ended.cause == ("" if wakes else "unread: wired: the line is too long: 99999 bytes")


@pytest.mark.parametrize(
    ("target", "report", "outcome"),
    [
        (BY_AIR, WORDS, Outcome.COUNTED),  # the wake event alone is missing, which decides nothing
        (BY_AIR, Wake("shelf_link", Stamp(101.8)), Outcome.INCONCLUSIVE),
        (BY_AIR, TIME_INTENT, Outcome.INCONCLUSIVE),  # its transcript may have said otherwise
        (TELLS_INTENTS, TIME_INTENT, Outcome.COUNTED),
    ],
)
def test_a_command_whose_words_were_lost_is_inconclusive(target: Target, report: Observation, outcome: Outcome) -> None:
    play = Play(target, kind=TrialKind.COMMAND)
    play.starts("speaker")
    play.feed(Unread("shelf_link", play.at(), "the line is too long"))
    play.wait(3.0)
    play.feed(report)
    play.ends("speaker")
    play.wait(5.0)
    assert play.ended.outcome is outcome


HISS = AmbientSource("hiss", noise=NoiseKind.PINK)
CASS = VoiceSpec("flite", "slt")


def soak(segments: int, segment_s: float = 60.0, every_s: float = 300.0, id: str = "soak") -> TrialTemplate:
    spec = AmbientSpec(segments * segment_s / 3600, (HISS,), segment_s, ProbeSpec(every_s, voice=CASS, tail_s=4.0))
    return TrialTemplate(id, "", kind=TrialKind.AMBIENT, ambient=spec, level_dbfs=-40.0)


def kinds(trials: tuple[Trial, ...]) -> str:
    """p for a probe, s for a segment, w for a wake trial."""
    letter = {TrialKind.PROBE: "p", TrialKind.AMBIENT: "s", TrialKind.WAKE: "w"}
    return "".join(letter[trial.listening.kind] for trial in trials if trial.listening)


def test_probes_lie_before_between_and_after_the_segments() -> None:
    trials = plan(scenario(trials=(soak(12),)), bench())
    assert kinds(trials) == "psssss" + "psssss" + "pss" + "p"
    assert [trial.id for trial in trials if trial.id.startswith("soak.p")] == [f"soak.p{n:04}" for n in (1, 2, 3, 4)]
    assert [trial.number for trial in trials] == list(range(1, len(trials) + 1))


def test_a_probe_says_the_phrase_as_it_is_declared_without_noise_and_at_most_twice() -> None:
    probe = plan(scenario(trials=(replace(soak(1), reprompt=RepromptRule(max_attempts=7)),)), bench())[0]
    assert probe.listening is not None
    assert (probe.listening.kind, probe.listening.phrase, probe.listening.probe_every_s) == (
        TrialKind.PROBE,
        probe.recipe.query.text if isinstance(probe.recipe.query, SpokenText) else "",
        300.0,
    )
    assert (probe.recipe.voice.name, probe.recipe.level_dbfs, probe.recipe.noise) == ("slt", -26.0, None)
    assert probe.recipe.tail_s == probe.listening.tail_s == 4.0
    assert probe.recipe.lead_in_s == probe.listening.settings.refractory_s
    assert probe.reprompt.max_attempts == 2


def test_a_probe_plays_a_recording() -> None:
    template = soak(1)
    assert template.ambient is not None
    spoken = replace(template.ambient, probe=ProbeSpec(300.0, recording="/said/ann.wav"))
    first, _, last = plan(scenario(trials=(replace(template, ambient=spoken),)), bench())
    assert first.recipe.query == last.recipe.query == Recording("/said/ann.wav")
    assert first.reference == known(first.listening).phrase != "", "what is said in it"


def test_probes_are_planned_only_when_declared() -> None:
    bare = replace(soak(3), ambient=replace(soak(3).ambient, probe=None))  # type: ignore[type-var]
    assert kinds(plan(scenario(trials=(bare,)), bench())) == "sss"


@given(
    st.integers(1, 12),
    st.integers(0, 25),
    st.sampled_from([60.0, 90.0, 150.0, 400.0]),
    st.integers(0, 99),
    st.booleans(),
)
def test_no_more_sound_than_declared_lies_between_two_probes(
    segments: int, calls: int, every_s: float, seed: int, two: bool
) -> None:
    wake = TrialTemplate("call", "", kind=TrialKind.WAKE, repeat=calls, lead_in_s=2.0)
    trials = (soak(segments, every_s=every_s), *((wake,) if calls else ()), *((soak(2, id="other"),) if two else ()))
    given_ = scenario(trials=trials, matrix=Matrix(order=Order.SHUFFLED, seed=seed))
    planned_trials = plan(given_, bench())
    assert planned_trials == plan(given_, bench()), "stable"
    assert len({trial.id for trial in planned_trials}) == len(planned_trials)
    since_s: float | None = None
    behind = False
    for trial in planned_trials:
        assert trial.listening is not None
        if trial.listening.kind is TrialKind.PROBE and trial.template != "soak":
            continue  # of another soak, and short
        lasts_s = trial.recipe.query.duration_s if isinstance(trial.recipe.query, Ambience) else OTHER_TRIAL_S
        if trial.listening.kind is TrialKind.PROBE and trial.template == "soak":
            since_s, behind = 0.0, False
            continue
        if trial.template == "soak":
            assert since_s is not None, "a segment before the first probe"
            behind = True
        if since_s is not None:
            since_s += lasts_s
            assert not behind or since_s <= max(every_s, 60.0)
    assert not behind, "the last segment has no probe after it"


def probe(*targets: object, **changes: object) -> Play:
    return Play(*targets, kind=TrialKind.PROBE, reprompt=RepromptRule(max_attempts=2), **changes)  # type: ignore[arg-type]


def by_air(play: Play, wakes: bool, started: bool = False) -> None:
    """The whole stimulus through the air."""
    if not started:
        play.starts("speaker")
    play.wait(1.8)
    if wakes:
        play.feed(Wake("shelf_link", play.at(), "alexa", 0.9))
    play.wait(1.2)
    play.ends("speaker")
    play.wait(1.5)


@pytest.mark.parametrize("heard_at_last", [True, False])
def test_a_probe_that_is_not_heard_is_said_once_more(heard_at_last: bool) -> None:
    play = probe(BY_AIR)
    by_air(play, wakes=False)
    assert (len(play.attempts), play.machine.phase) == (1, Phase.WAITING)
    assert play.machine.state.reason == "shelf did not wake to the probe: repeating it"
    play.wait(3.0)
    by_air(play, wakes=heard_at_last)
    last = Outcome.COUNTED if heard_at_last else Outcome.NO_WAKE
    assert [row.outcome for row in play.attempts] == [Outcome.NO_WAKE, last]
    assert (play.ended.outcome, play.ended.cause) == (last, "" if heard_at_last else "probe_unheard: shelf")


@pytest.mark.parametrize(
    ("arrives_s", "woke_s"),
    [
        (0.5, 0.5),  # before the phrase
        (3.0, 2.7),  # 1.1 s after its end, when the window is over
    ],
)
def test_an_event_that_is_not_near_the_phrase_is_no_answer_to_it(arrives_s: float, woke_s: float) -> None:
    play = probe(BY_AIR)
    play.starts("speaker")
    begins_s = play.now_s
    play.wait(arrives_s)
    play.feed(Wake("shelf_link", Stamp(begins_s + woke_s), "alexa", 0.9))
    play.wait(3.0 - arrives_s)
    play.ends("speaker")
    play.wait(2.0)
    assert [row.outcome for row in play.attempts] == [Outcome.NO_WAKE]


def test_every_device_has_to_wake_each_on_its_own_line() -> None:
    play = probe(BY_AIR, WIRED)
    play.starts("speaker")
    play.starts("wired", 70.0)
    play.feed(Wake("wired", play.at(), "alexa", 0.9, 70.5))  # in the lead-in of what it was given
    play.ends("wired", audio_s=73.0)
    by_air(play, wakes=True, started=True)
    assert [row.cause for row in play.attempts] == ["probe_unheard: wired"]


def test_an_interrupted_probe_is_no_miss() -> None:
    play = probe(BY_AIR)
    play.starts("speaker")
    play.feed(LinkLost("shelf_link", Stamp(play.now_s), "unplugged"))
    assert [row.outcome for row in play.attempts] == [Outcome.INTERRUPTED]


@pytest.mark.parametrize("kind", [TrialKind.WAKE, TrialKind.AMBIENT])
def test_ordinary_trials_count_without_a_wake_event(kind: TrialKind) -> None:
    play = Play(BY_AIR, kind=kind)
    by_air(play, wakes=False)
    play.wait(2.0)
    assert play.ended.outcome is Outcome.COUNTED
