"""Probes: where they lie in a plan, and how the machine takes one that is not heard."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.observation import LinkLost, Wake
from harness.model.scenario import (
    AmbientSource,
    AmbientSpec,
    Matrix,
    Order,
    ProbeSpec,
    RepromptRule,
    TrialKind,
    TrialTemplate,
)
from harness.model.stimulus import Ambience, NoiseKind, Recording, SpokenText, VoiceSpec
from harness.model.time import Stamp
from harness.model.trial import Outcome, Trial
from harness.session.plan import OTHER_TRIAL_S, plan
from harness.session.take import Phase
from tests.unit.session.listening_material import BY_AIR, WIRED, Play
from tests.unit.session.material import bench, scenario

HISS = AmbientSource("hiss", noise=NoiseKind.PINK)
CASS = VoiceSpec("flite", "slt")


def soak(segments: int, segment_s: float = 60.0, every_s: float = 300.0, id: str = "soak") -> TrialTemplate:
    spec = AmbientSpec(segments * segment_s / 3600, (HISS,), segment_s, ProbeSpec(every_s, voice=CASS, tail_s=4.0))
    return TrialTemplate(id, "", kind=TrialKind.AMBIENT, ambient=spec, level_dbfs=-40.0)


def kinds(trials: tuple[Trial, ...]) -> str:
    """p for a probe, s for a segment, w for a wake trial."""
    letter = {TrialKind.PROBE: "p", TrialKind.AMBIENT: "s", TrialKind.WAKE: "w"}
    return "".join(letter[one.listening.kind] for one in trials if one.listening)


def test_probes_lie_before_between_and_after_the_segments() -> None:
    made = plan(scenario(trials=(soak(12),)), bench())
    assert kinds(made) == "psssss" + "psssss" + "pss" + "p"
    assert [one.id for one in made if one.id.startswith("soak.p")] == [f"soak.p{n:04}" for n in (1, 2, 3, 4)]
    assert [one.number for one in made] == list(range(1, len(made) + 1))


def test_a_probe_says_the_phrase_as_it_is_declared_and_without_noise() -> None:
    probe = plan(scenario(trials=(soak(1),)), bench())[0]
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
    assert first.listening is not None
    assert first.recipe.query == last.recipe.query == Recording("/said/ann.wav")
    assert first.reference == first.listening.phrase != "", "what is said in it"


def test_without_a_declaration_there_are_none() -> None:
    bare = replace(soak(3), ambient=replace(soak(3).ambient, probe=None))  # type: ignore[type-var]
    assert kinds(plan(scenario(trials=(bare,)), bench())) == "sss"


@settings(max_examples=60, deadline=None)
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
    made = plan(given_, bench())
    assert made == plan(given_, bench()), "stable"
    assert len({one.id for one in made}) == len(made)
    since_s: float | None = None
    behind = False
    for one in made:
        assert one.listening is not None
        if one.listening.kind is TrialKind.PROBE and one.template != "soak":
            continue  # of another soak, and short
        lasts_s = one.recipe.query.duration_s if isinstance(one.recipe.query, Ambience) else OTHER_TRIAL_S
        if one.listening.kind is TrialKind.PROBE and one.template == "soak":
            since_s, behind = 0.0, False
            continue
        if one.template == "soak":
            assert since_s is not None, "a segment before the first probe"
            behind = True
        if since_s is not None:
            since_s += lasts_s
            assert not behind or since_s <= max(every_s, 60.0)
    assert not behind, "the last segment has no probe after it"


def probe(*targets: object, **changes: object) -> Play:
    return Play(*targets, kind=TrialKind.PROBE, reprompt=RepromptRule(max_attempts=2), **changes)  # type: ignore[arg-type]


def by_air(play: Play, wakes: bool) -> None:
    """The whole stimulus through the air."""
    play.starts("speaker")
    play.wait(1.8)
    if wakes:
        play.feed(Wake("shelf_link", play.at(), "alexa", 0.9))
    play.wait(1.2)
    play.ends("speaker")
    play.wait(1.5)


def test_a_probe_that_is_heard_counts() -> None:
    play = probe(BY_AIR)
    by_air(play, wakes=True)
    assert play.verdict is not None
    assert (play.verdict.outcome, play.verdict.attempts) == (Outcome.COUNTED, 1)


def test_a_probe_that_is_not_heard_is_said_once_more() -> None:
    play = probe(BY_AIR)
    by_air(play, wakes=False)
    assert (len(play.attempts), play.machine.phase) == (1, Phase.WAITING)
    assert play.machine.state.reason == "shelf did not wake to the probe: once more"
    play.wait(3.0)
    by_air(play, wakes=True)
    assert play.verdict is not None
    assert [row.outcome for row in play.attempts] == [Outcome.NO_WAKE, Outcome.COUNTED]
    assert play.verdict.outcome is Outcome.COUNTED


def test_a_probe_that_is_never_heard_says_who_did_not_wake() -> None:
    play = probe(BY_AIR)
    for _ in range(2):
        by_air(play, wakes=False)
        play.wait(3.0)
    assert play.verdict is not None
    assert (play.verdict.outcome, play.verdict.cause) == (Outcome.NO_WAKE, "probe_unheard: shelf")
    assert [row.outcome for row in play.attempts] == [Outcome.NO_WAKE, Outcome.NO_WAKE]


def test_an_event_before_the_phrase_is_no_answer_to_it() -> None:
    play = probe(BY_AIR)
    play.starts("speaker")
    play.wait(0.5)
    play.feed(Wake("shelf_link", play.at(), "alexa", 0.9))
    play.wait(2.5)
    play.ends("speaker")
    play.wait(2.0)
    assert [row.outcome for row in play.attempts] == [Outcome.NO_WAKE]


def test_an_event_after_the_window_is_no_answer_either() -> None:
    play = probe(BY_AIR)
    play.starts("speaker")
    play.wait(3.0)
    play.feed(Wake("shelf_link", Stamp(play.now_s - 0.3), "alexa", 0.9))  # 1.1 s after the end of the phrase
    play.ends("speaker")
    play.wait(2.0)
    assert [row.outcome for row in play.attempts] == [Outcome.NO_WAKE]


def test_every_device_has_to_wake_each_on_its_own_line() -> None:
    play = probe(BY_AIR, WIRED)
    play.starts("speaker")
    play.starts("wired", 70.0)
    play.feed(Wake("wired", play.at(), "alexa", 0.9, 70.5))  # in the lead-in of what it was given
    play.ends("wired", audio_s=73.0)
    play.wait(1.8)
    play.feed(Wake("shelf_link", play.at(), "alexa", 0.9))
    play.wait(1.2)
    play.ends("speaker")
    play.wait(2.0)
    assert [row.cause for row in play.attempts] == ["probe_unheard: wired"]


def test_an_interrupted_probe_is_no_miss() -> None:
    play = probe(BY_AIR)
    play.starts("speaker")
    play.feed(LinkLost("shelf_link", Stamp(play.now_s), "unplugged"))
    assert [row.outcome for row in play.attempts] == [Outcome.INTERRUPTED]


@pytest.mark.parametrize("kind", [TrialKind.WAKE, TrialKind.AMBIENT])
def test_other_trials_need_nobody_to_wake(kind: TrialKind) -> None:
    play = Play(BY_AIR, kind=kind)
    by_air(play, wakes=False)
    play.wait(2.0)
    assert play.verdict is not None
    assert play.verdict.outcome is Outcome.COUNTED


def test_the_rule_of_a_probe_is_two_attempts() -> None:
    (made, *_) = plan(scenario(trials=(replace(soak(1), reprompt=RepromptRule(max_attempts=7)),)), bench())
    assert made.reprompt.max_attempts == 2
