"""A person speaks in place of a loudspeaker: in simulated time, from a driver that plays when the prompt is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from harness.base.clocks import HostClock, ScaledClock
from harness.base.ports import Sink
from harness.devices.in_process.device import InProcessOptions, ScriptedPhrase, waveform_sha256
from harness.devices.in_process.driver import InProcess
from harness.model.feed import Misspoke, StateChanged, StateWord, TalkerPrompt
from harness.model.observation import (
    Observation,
    SpeechEnded,
    SpeechStarted,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
)
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Observed,
    OperatorAsked,
    Question,
    SessionStarted,
    StimulusSpoken,
    StimulusStored,
    TrialFinished,
)
from harness.model.scenario import (
    Axis,
    CloseDialogue,
    Defaults,
    Matrix,
    RepromptRule,
    Scenario,
    TrialKind,
    TrialTemplate,
)
from harness.model.stimulus import TALKER, SpokenText, StimulusRecipe, VoiceSpec
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.session import prompting
from harness.session.conductor import Conductor
from harness.session.plan import plan
from harness.session.prompting import in_a_line, prompt_for
from harness.session.take import SOUND_GUARD_S
from harness.wake.wake import WakeFigures
from tests.unit.session.house import House, assert_whole
from tests.unit.session.material import Here, MemoryLog, bench, scenario, sound_of

# The person and the device act in threads, at twenty times real time: a stall of 50 ms is a second.
pytestmark = pytest.mark.usefixtures("simulated_time")

ANN = VoiceSpec(TALKER, "ann")
SPEED = 20.0
SILENCE_S = 0.05


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's thread may be late on a busy machine."""
    monkeypatch.setattr(prompting, "WAIT_S", 600.0)


class Person:
    """Says what each prompt asks for, as a burst of noise, unless `speaks` says otherwise. The microphone hears it."""

    def __init__(self, house: House, speaks: Callable[[int], bool] = lambda number: True) -> None:
        self.asked: list[TalkerPrompt] = []
        self._house, self._speaks = house, speaks
        self._mouth = Mouth("mouth", InProcessOptions(), Here(house.clock))
        house.drivers.insert(0, self._mouth)  # who opens last hears the device

    def see(self, state: StateChanged) -> None:
        self._house.states.append(state)
        if state.prompt is None or state.until_s is None:  # None: it is heard
            return
        self.asked.append(state.prompt)
        if self._speaks(len(self.asked)):
            self._mouth.say(state.prompt.text, len(self.asked))


class Mouth(InProcess):
    """Sounds in the air as a loudspeaker does, and is reported as speech."""

    def open(self, sink: Sink) -> None:
        def heard(observation: Observation) -> None:
            match observation:
                case StimulusStarted(at=at):
                    sink(SpeechStarted("mic", at, -26.0))
                case StimulusEnded(at=at):
                    sink(SpeechEnded("mic", Stamp(at.at_s - SILENCE_S)))
                case _:
                    pass

        super().open(heard)

    def say(self, text: str, number: int) -> None:
        waveform = sound_of(StimulusRecipe(SpokenText(f"{text} {number}"), None, VoiceSpec())).waveform
        sha = waveform_sha256(waveform)
        self.script(sha, text.removeprefix("alexa, "))
        self.expect(sha, ScriptedPhrase("alexa", waveform.duration_s - SILENCE_S))
        self.play(f"said{number}", waveform)


def heard_by(conductor: Conductor, observation: Observation) -> None:
    """A microphone does not look for what a person says."""
    if not isinstance(observation, StimulusHeard) or not observation.play_id.startswith("said"):
        conductor.enqueue(observation)


def spoken(
    scenario: Scenario, speaks: Callable[[int], bool] = lambda number: True, **changes: Any
) -> tuple[House, Person]:
    clock = ScaledClock(SPEED, HostClock())
    run = House(plan(scenario, bench()), MemoryLog(clock), clock, **changes)
    person = Person(run, speaks)
    run.mic.open = lambda sink: InProcess.open(run.mic, partial(heard_by, run.conductor))  # type: ignore[method-assign]
    run.conductor._run.context = dataclasses.replace(run.conductor._run.context, on_state=person.see)
    return run, person


def by_ann(count: int = 2, **changes: Any) -> Scenario:
    return scenario(count, **{"defaults": Defaults(voice=ANN), **changes})


def test_a_query_that_a_person_says_is_scored_as_one_that_is_played() -> None:
    run, person = spoken(by_ann())
    run.played()
    assert_whole(run.log, run.trials)
    assert [prompt.text for prompt in person.asked] == ["alexa, what time is it", "alexa, set an alarm for one"]
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.RESPONDED] * 2
    stored = {row.sha256: row.clip for row in run.log.of(StimulusStored)}
    starts = [row.observation for row in run.log.of(Observed) if isinstance(row.observation, StimulusStarted)]
    for speech, finished, started in zip(run.log.of(StimulusSpoken), run.log.of(AttemptFinished), starts, strict=True):
        assert (speech.talker, started.source) == ("ann", "talker:ann")
        clip = stored[speech.stimulus_sha256]
        assert clip.start_s == started.at.at_s
        assert speech.query_end_s - speech.query_start_s == pytest.approx(0.8, abs=0.1)
        assert speech.duration_s == pytest.approx(clip.duration_s) == pytest.approx(1.4, abs=0.15)
        assert finished.latency.value_s > 0
    # The person's speech is the stimulus, not an answer of the device.
    first_s = run.log.of(StimulusSpoken)[0]
    assert all(
        row.observation.at.at_s > starts[0].at.at_s + first_s.query_end_s - 0.1
        for row in run.log.of(Observed)
        if isinstance(row.observation, SpeechStarted)
    )


def test_a_wake_phrase_that_a_person_says_is_matched_by_its_measured_end() -> None:
    template = TrialTemplate("call", "", kind=TrialKind.WAKE, repeat=3)
    run, person = spoken(scenario(1, trials=(template,), defaults=Defaults(voice=ANN)))
    run.log.append(SessionStarted("s", "kitchen", "", "a" * 64, "lab", "b" * 64, 0, "", (), run.trials))
    run.played()
    assert [prompt.text for prompt in person.asked] == ["alexa"] * 3
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.COUNTED] * 3
    figures = WakeFigures()
    for entry in run.log.entries():
        figures.add(entry)
    (device,) = figures.snapshot().devices
    assert device.hits == 3
    assert not figures.unmatched("dut")
    spans = {row.stimulus_sha256: row.query_end_s for row in run.log.of(StimulusSpoken)}
    plays = figures.plays("dut")
    assert [play.row.query_end_s for play in plays] == [spans[play.row.stimulus_sha256] for play in plays]
    assert all(play.reading.delay is not None and 0 <= play.reading.delay.value_s < 1 for play in plays)


def test_a_person_who_says_nothing_is_asked_again_within_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompting, "WAIT_S", 2.0)

    def second(number: int) -> bool:
        monkeypatch.setattr(prompting, "WAIT_S", 600.0)  # from the second prompt on
        return number == 2

    run, person = spoken(by_ann(1), speaks=second)
    run.played()
    assert [prompt.again for prompt in person.asked] == ["", "Nothing was heard. Once more, please."]
    assert [row.attempt for row in run.log.of(AttemptStarted)] == [1]
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.RESPONDED]


def test_a_trial_that_nobody_says_is_skipped_and_does_not_count() -> None:
    rule = RepromptRule(speak_within_s=2.0, max_prompts=2)
    run, person = spoken(by_ann(1, defaults=Defaults(voice=ANN, reprompt=rule)), speaks=lambda number: False)
    run.played()
    (finished,) = run.log.of(TrialFinished)
    assert (finished.outcome, finished.deciding_attempt) == (Outcome.SKIPPED, None)
    assert finished.cause == "invalid: ann was asked 2 times and said nothing"
    prompts = [row for row in run.log.of(OperatorAsked) if row.about is Question.SPEECH]
    assert len(prompts) == len(person.asked) == 2
    assert not run.log.of(StimulusSpoken)


def test_misread_prompt_is_repeated_and_does_not_count() -> None:
    run, person = spoken(by_ann(1))
    with run.running():
        run.until(lambda: run.log.of(StimulusSpoken))
        (started,) = run.log.of(AttemptStarted)
        assert run.ask(Misspoke("m0", "ann", started.trial_id, 7))[0] is False
        assert run.ask(Misspoke("m1", "ann", started.trial_id, 1)) == (True, "")
        run.until(lambda: run.log.of(TrialFinished))
    wrong, right = run.log.of(AttemptFinished)[0], run.log.of(AttemptFinished)[-1]
    assert (wrong.outcome, wrong.cause) == (Outcome.INTERRUPTED, "misspoken: by ann")
    assert (right.attempt, right.outcome) == (2, Outcome.RESPONDED)
    assert person.asked[1].again == "Once more, please."
    sounds = {row.stimulus_sha256 for row in run.log.of(StimulusSpoken)}
    assert len(sounds) == 2


def test_a_person_repeats_what_the_device_missed_and_closes_its_dialogue() -> None:
    options = InProcessOptions(wake_miss_share=0.6)
    closing = Defaults(voice=ANN, close_dialogue=CloseDialogue(say="never mind"))
    run, person = spoken(by_ann(3, defaults=closing), options=options)
    run.played()
    assert_whole(run.log, run.trials)
    assert len(run.log.of(StimulusSpoken)) == len(run.log.of(AttemptStarted)) > 3
    assert {row.outcome for row in run.log.of(AttemptFinished)} >= {Outcome.NO_WAKE}
    assert "never mind" in [prompt.text for prompt in person.asked]


@pytest.mark.parametrize(
    ("lost", "speak_within_s", "asked_for_s"),
    [("dut_link", None, SOUND_GUARD_S), ("dut_link", SOUND_GUARD_S + 15, SOUND_GUARD_S + 15), ("mic", None, 0.0)],
)
def test_closing_words_are_asked_for_until_they_are_said_or_cannot_be_heard(
    lost: str, speak_within_s: float | None, asked_for_s: float
) -> None:
    rule = RepromptRule(speak_within_s=speak_within_s)
    closing = Defaults(voice=ANN, close_dialogue=CloseDialogue(say="never mind"), reprompt=rule)
    run, person = spoken(by_ann(2, defaults=closing), speaks=lambda number: number != 2)
    driver = next(driver for driver in run.drivers if driver.id == lost)
    with run.running():
        run.until(lambda: len(person.asked) == 2)
        asked_s = run.clock.now_s()
        driver.lose_link("the plug is pulled")
        run.until(lambda: run.conductor._run.prompt is None)
        assert run.clock.now_s() - asked_s == pytest.approx(asked_for_s, abs=2.0)
        driver.mend_link()
    assert [prompt.text for prompt in person.asked[1:3]] == ["never mind", "alexa, set an alarm for one"]
    assert_whole(run.log, run.trials)


def test_people_and_voices_share_a_matrix() -> None:
    voices = Axis("voice", (ANN, VoiceSpec()), ("ann", "espeak"))
    run, person = spoken(scenario(1, matrix=Matrix((voices,))))
    run.played()
    assert len(person.asked) == len(run.log.of(StimulusSpoken)) == 1
    starts = [row.observation.source for row in run.log.of(Observed) if isinstance(row.observation, StimulusStarted)]
    assert starts == ["talker:ann", "speaker"]
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.RESPONDED] * 2
    assert run.saw(StateWord.ASKING)


def test_a_prompt_names_the_place_in_the_language_of_the_talker() -> None:
    places = tuple(Axis(name, (value,), (text,)) for name, value, text in PLACES)  # type: ignore[arg-type]
    voice = VoiceSpec(TALKER, "ann", language="de-DE")
    (trial,) = plan(scenario(1, matrix=Matrix(places), defaults=Defaults(voice=voice)), bench())
    prompt = prompt_for(trial, "wie spät ist es")
    assert prompt == TalkerPrompt("ann", "wie spät ist es", "Bitte sagen", "Bitte Position einnehmen: mark 2, 1 m, 30°")
    assert in_a_line(prompt) == 'ann: Bitte Position einnehmen: mark 2, 1 m, 30°. Bitte sagen: "wie spät ist es"'


PLACES = (("position", "mark_2", "mark_2"), ("distance_m", 1.0, "1"), ("angle_deg", 30.0, "30"))
