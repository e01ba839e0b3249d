"""Wake, command and ambient templates become trials."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.bench import Bench, Device, ObservationKind
from harness.model.errors import InputError, UnmetNeed
from harness.model.scenario import AmbientSource, AmbientSpec, Axis, Matrix, Order, Route, TrialKind, TrialTemplate
from harness.model.stimulus import Ambience, NoiseKind, NoiseSpec, Recording, SpokenText, VoiceSpec
from harness.session.plan import plan
from harness.session.soak import segments
from tests.unit.session.material import PROFILE, bench, equipment, scenario

CALL = TrialTemplate("call", "", kind=TrialKind.WAKE, lead_in_s=2.0, tail_s=1.5)
ANN, BOB = VoiceSpec(name="ann"), VoiceSpec(name="bob")
MATRIX = Matrix(
    axes=(
        Axis("voice", (ANN, BOB), ("ann", "bob")),
        Axis("gap_ms", (100, 200, 300), ("100", "200", "300")),
        Axis("position", ("front", "back"), ("front", "back")),
        Axis("noise", (None, NoiseSpec(NoiseKind.PINK, 10.0)), ("quiet", "pink 10 dB")),
    )
)
TV = AmbientSource("tv", recordings=("/a.wav", "/b.wav"), durations_s=(25.0, 50.0), share=2.0)
HISS = AmbientSource("hiss", noise=NoiseKind.PINK)
TALK = AmbientSource("talk", texts=("good morning to you", "we went home early"), voices=(ANN, BOB))


def boards() -> Bench:
    """A shelf that hears by air, and a board that takes sound over its wire."""
    wired = Device("wired", PROFILE, replace(equipment("wired"), injects=True))
    return replace(bench(), devices=(Device("shelf", PROFILE, equipment("shelf_link")), wired))


def test_everybody_who_reports_wake_events_listens_each_by_its_own_way() -> None:
    (made,) = plan(scenario(trials=(CALL,)), boards())
    assert made.listening is not None
    assert [(one.device, one.connection, one.player, one.injected) for one in made.listening.targets] == [
        ("shelf", "shelf_link", "speaker", False),
        ("wired", "wired", "wired", True),
    ]
    assert (made.device, made.loudspeaker, made.players) == ("shelf", "speaker", ("speaker", "wired"))
    assert made.recipe.query == SpokenText("alexa")
    assert made.recipe.wake_phrase is None
    assert (made.recipe.lead_in_s, made.recipe.tail_s) == (2.0, 1.5)
    assert made.recipe.rate_hz == 48_000, "a loudspeaker plays it too"


def test_the_rate_is_the_boards_when_nothing_goes_through_the_air() -> None:
    (made,) = plan(scenario(trials=(replace(CALL, devices=("wired",)),)), boards())
    assert made.recipe.rate_hz == 16_000
    (by_air,) = plan(scenario(trials=(replace(CALL, devices=("wired",), route=Route.LOUDSPEAKER),)), boards())
    assert by_air.recipe.rate_hz == 48_000
    assert by_air.players == ("speaker",)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UnmetNeed, match="injects sound into 'shelf'"):
        plan(scenario(trials=(replace(CALL, route=Route.INJECTION),)), boards())
    with pytest.raises(InputError, match="'nobody', which is not on bench"):
        plan(scenario(trials=(replace(CALL, devices=("nobody",)),)), boards())
    silent = replace(PROFILE, reports=frozenset({ObservationKind.TRANSCRIPT}))
    with pytest.raises(UnmetNeed, match="no device of bench 'lab' reports any"):
        plan(scenario(trials=(CALL,)), bench(silent))
    other = replace(PROFILE, wake_phrases=("computer",))
    two = replace(boards(), devices=(*boards().devices, Device("c", other, equipment("c"))))
    with pytest.raises(InputError, match="do not wake to one phrase"):
        plan(scenario(trials=(CALL,)), two)
    (made,) = plan(scenario(trials=(replace(CALL, phrase="hey you"),)), two)
    assert made.recipe.query == SpokenText("hey you")


def test_only_axes_that_make_a_difference_multiply() -> None:
    def count(template: TrialTemplate) -> int:
        return len(plan(scenario(trials=(template,), matrix=MATRIX), boards()))

    wired = replace(CALL, devices=("wired",))
    assert count(CALL) == 2 * 2 * 2, "voice, position and noise; a wake phrase has no gap"
    assert count(wired) == 2 * 2, "a wire has no position"
    assert count(replace(wired, recordings=("/one.wav",))) == 2, "a recording has a voice of its own"
    assert count(replace(CALL, kind=TrialKind.COMMAND, query="q0")) == 2 * 3 * 2 * 2
    soak = replace(CALL, kind=TrialKind.AMBIENT, ambient=AmbientSpec(0.1, (HISS,), 60.0))
    assert count(soak) == 6, "six minutes are six minutes"


def test_a_command_is_the_phrase_and_the_query() -> None:
    (made,) = plan(scenario(trials=(replace(CALL, kind=TrialKind.COMMAND, query="q0", gap_ms=120),)), boards())
    assert (made.recipe.wake_phrase, made.recipe.query) == (SpokenText("alexa"), SpokenText("what time is it"))
    assert (made.query_id, made.reference, made.recipe.gap_ms) == ("q0", "what time is it", 120)
    assert made.listening is not None
    assert made.listening.phrase == "alexa"


def test_recordings_are_taken_in_turn() -> None:
    template = replace(CALL, recordings=("/a.wav", "/b.wav"), repeat=3, devices=("wired",))
    made = plan(scenario(trials=(template,)), boards())
    assert [trial.recipe.query for trial in made] == [Recording("/a.wav"), Recording("/b.wav"), Recording("/a.wav")]
    assert [trial.id for trial in made] == ["call.r1", "call.r2", "call.r3"]


def soak(hours: float, *sources: AmbientSource, segment_s: float = 60.0) -> TrialTemplate:
    ambient = AmbientSpec(hours, sources, segment_s)
    return TrialTemplate("soak", "", kind=TrialKind.AMBIENT, ambient=ambient, level_dbfs=-30.0)


def test_an_ambient_soak_is_cut_into_segments_of_one_source_each() -> None:
    made = plan(scenario(trials=(soak(1.0, TV, HISS, TALK),)), boards())
    assert [trial.id for trial in made[:2]] == ["soak.r1.s0001", "soak.r1.s0002"]
    assert len(made) == 60
    listening = [trial.listening for trial in made if trial.listening]
    counts = {name: sum(one.source == name for one in listening) for name in ("tv", "hiss", "talk")}
    assert counts == {"tv": 30, "hiss": 15, "talk": 15}, "by their shares"
    assert [one.source for one in listening] != sorted(one.source for one in listening), "shuffled"
    assert all(one.phrase == "" for one in listening)
    assert all(trial.recipe.level_dbfs == -30.0 and trial.recipe.noise is None for trial in made)
    again = plan(scenario(trials=(soak(1.0, TV, HISS, TALK),)), boards())
    assert again == made
    assert plan(scenario(trials=(soak(1.0, TV, HISS, TALK),)), boards(), seed=99) != made


@settings(max_examples=100, deadline=None)
@given(
    st.floats(0.001, 3.0),
    st.floats(1.0, 600.0),
    st.lists(st.floats(0.2, 300.0), min_size=1, max_size=5),
    st.floats(0.1, 10.0),
)
def test_the_time_asked_for_is_the_time_played_and_recordings_go_on_where_they_were(
    hours: float, segment_s: float, durations_s: list[float], share: float
) -> None:
    paths = tuple(f"/{n}.wav" for n in range(len(durations_s)))
    tv = AmbientSource("tv", recordings=paths, durations_s=tuple(durations_s))
    spec = AmbientSpec(hours, (tv, replace(HISS, share=share)), segment_s)
    made = list(segments(spec, "seed"))
    assert len(made) == spec.segments
    assert [one.number for one in made] == list(range(1, len(made) + 1))
    assert sum(one.ambience.duration_s for one in made) == pytest.approx(hours * 3600, abs=0.1)
    assert all(one.ambience.duration_s <= segment_s + 1e-6 for one in made)
    pieces = [piece for one in made for piece in one.ambience.pieces]
    by_path = dict(zip(paths, durations_s, strict=True))
    for piece, following in pairwise(pieces):
        end_s, length_s = piece.offset_s + piece.duration_s, by_path[piece.path]
        if following.offset_s == 0.0:
            assert end_s >= length_s - 0.002, "a recording is played to its end before another one begins"
        else:
            assert following.path == piece.path
            assert following.offset_s == pytest.approx(end_s, abs=1e-4)
            assert following.offset_s < length_s - 5e-4, "nothing is left of it to play"
    for one in made:
        if one.ambience.pieces:
            assert sum(p.duration_s for p in one.ambience.pieces) == pytest.approx(one.ambience.duration_s, abs=1e-3)


def test_noise_is_new_in_every_segment_and_every_text_gets_its_turn() -> None:
    made = plan(scenario(trials=(soak(0.5, HISS, TALK, segment_s=20.0),)), boards())
    ambiences = [trial.recipe.query for trial in made]
    hiss = [one.seed for one in ambiences if isinstance(one, Ambience) and one.noise]
    assert len(set(hiss)) == len(hiss) == 45
    sayings = [saying for one in ambiences if isinstance(one, Ambience) for saying in one.sayings]
    assert {(saying.text, saying.voice) for saying in sayings} == {(t, v) for t in TALK.texts for v in (ANN, BOB)}


def test_wake_and_ambient_trials_are_mixed_when_the_order_is_shuffled() -> None:
    matrix = Matrix((Axis("voice", (ANN, BOB), ("ann", "bob")),), order=Order.SHUFFLED)
    made = plan(scenario(trials=(replace(CALL, repeat=10), soak(0.2, HISS, segment_s=30.0)), matrix=matrix), boards())
    kinds = [trial.listening.kind for trial in made if trial.listening]
    assert (kinds.count(TrialKind.WAKE), kinds.count(TrialKind.AMBIENT)) == (20, 24)
    assert sum(a is not b for a, b in pairwise(kinds)) > 5
    assert [trial.number for trial in made] == list(range(1, 45))
