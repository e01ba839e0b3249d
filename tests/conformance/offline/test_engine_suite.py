"""What every engine for offline evaluation keeps, whoever wrote it; rows are in engine_rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from harness.base.plugins import Group, names
from harness.base.ports import OfflineEngine, ScoresSound, SpotsPhrases, Understands
from harness.engines.offline_loading import engine_class, load_engine, task_of
from harness.model.errors import HarnessError, InputError, PluginError
from harness.model.offline import EngineKind, OfflineSpot, Said, ScoreTrack
from harness.offline.one_file import spots_of_track
from tests.conformance.offline.engine_rows import ELSEWHERE, RATE_HZ, ROWS, Row, in_room
from tests.heard import MAX_WRONG, word_error
from tests.known import known

Found = tuple[OfflineSpot, ...] | Said | None
pytestmark = pytest.mark.speech
BEFORE_S = 1.5


def some(*values: object) -> list[object]:
    """The first and the last; those between them in a soak."""
    return [values[0], *(pytest.param(parameter, marks=pytest.mark.soak) for parameter in values[1:-1]), values[-1]]


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row.name)
def row(request: pytest.FixtureRequest) -> Row:
    engine_row: Row = request.param
    try:
        engine_class(engine_row.engine).models()
    except PluginError as error:
        pytest.skip(str(error))
    return engine_row


given_in_pieces = pytest.mark.parametrize(
    "row", [row for row in ROWS if row.kind is EngineKind.WAKE], ids=lambda row: row.name, indirect=True
)


@pytest.fixture(scope="module")
def engine(row: Row) -> Iterator[OfflineEngine]:
    loaded = load_engine(task_of(f"{row.engine}:{row.model}", row.settings))
    yield loaded
    loaded.close()
    loaded.close()


@pytest.fixture(scope="module")
def samples(row: Row) -> np.ndarray:
    return in_room(row.said(), BEFORE_S)


@pytest.fixture(scope="module")
def first_result(engine: OfflineEngine, samples: np.ndarray) -> Found:
    """What it makes of the row's sound, the first that it hears."""
    return found(engine, samples)


def tracks(engine: ScoresSound, pieces: list[np.ndarray]) -> dict[str, list[ScoreTrack]]:
    stream = engine.begin()
    parts_by_phrase: dict[str, list[ScoreTrack]] = {}
    for number, piece in enumerate(pieces):
        stream.feed(piece)
        if number % 3 == 0:
            for track in stream.take(flush=False):
                parts_by_phrase.setdefault(track.phrase, []).append(track)
    for track in stream.take(flush=True):
        parts_by_phrase.setdefault(track.phrase, []).append(track)
    return {phrase: [part for part in parts if len(part.scores)] for phrase, parts in parts_by_phrase.items()}


def whole(parts: list[ScoreTrack]) -> ScoreTrack:
    """One track; the parts must follow on each other without a gap."""
    for before, after in pairwise(parts):
        assert after.first_end == before.first_end + len(before.scores) * before.step
        assert after.step == before.step
    scores = np.concatenate([part.scores for part in parts])
    return ScoreTrack(parts[0].phrase, scores, parts[0].first_end, parts[0].step)


def found(engine: OfflineEngine, samples: np.ndarray, cuts: list[int] | None = None) -> Found:
    """What the engine makes of a file, cut at these samples."""
    pieces = np.split(samples, cuts or [])
    if isinstance(engine, Understands):
        return engine.understand(samples)
    if isinstance(engine, SpotsPhrases):
        stream = engine.listen()
        spotted: list[OfflineSpot] = []
        for number, piece in enumerate(pieces):
            stream.feed(piece)
            if number % 3 == 0:
                spotted += stream.take(flush=False)
        return (*spotted, *stream.take(flush=True))
    assert isinstance(engine, ScoresSound)
    rule = known(engine.facts.rule)
    parts = tracks(engine, pieces)
    every = [spot for of_phrase in parts.values() if of_phrase for spot in spots_of_track(whole(of_phrase), rule)]
    return tuple(sorted(every, key=lambda spot: spot.end))


def positions(answer: Found) -> list[tuple[int, int]]:
    match answer:
        case None:
            return []
        case Said():
            return [(answer.start, answer.end)]
        case _:
            return [(spot.start, spot.end) for spot in answer]


def test_every_installed_engine_has_a_row_here() -> None:
    assert {row.engine for row in ROWS} | ELSEWHERE >= set(names(Group.OFFLINE_ENGINES))


def test_an_engine_describes_itself(engine: OfflineEngine, row: Row) -> None:
    facts = engine.facts
    assert facts.rate_hz == RATE_HZ
    assert facts.version
    assert facts.licence
    assert len(bytes.fromhex(facts.fingerprint)) == 32
    kinds = [isinstance(engine, protocol) for protocol in (ScoresSound, SpotsPhrases, Understands)]
    assert kinds.count(True) == 1
    assert facts.kind is row.kind
    assert (facts.kind is EngineKind.WAKE) == (not isinstance(engine, Understands))
    if isinstance(engine, ScoresSound):
        assert facts.rule is not None
        assert [point.number for point in facts.operating_points] == list(range(1, 21))
    thresholds = [point.threshold for point in facts.operating_points]
    assert thresholds == sorted(thresholds, reverse=True)


def test_engine_finds_the_phrase_at_its_position(
    engine: OfflineEngine, row: Row, samples: np.ndarray, first_result: Found
) -> None:
    answer = first_result
    begins, ends = BEFORE_S * RATE_HZ, len(samples) - RATE_HZ
    if isinstance(engine, Understands):
        assert isinstance(answer, Said)
        assert word_error(row.finds, answer.text) <= (MAX_WRONG if row.kind is EngineKind.TRANSCRIPT else 0)
        assert abs(answer.start - begins) < 0.3 * RATE_HZ
        assert abs(answer.end - ends) < 0.3 * RATE_HZ
    else:
        assert isinstance(answer, tuple)
        (spot,) = answer
        assert spot.phrase == row.finds
        assert spot.phrase in (engine.facts.phrases or (row.finds,))
        assert begins < spot.end <= ends + row.later_s * RATE_HZ


def test_a_fresh_state_has_no_memory(engine: OfflineEngine, samples: np.ndarray, first_result: Found) -> None:
    found(engine, in_room(np.random.default_rng(5).normal(0, 3000, RATE_HZ), noise=100))
    assert found(engine, samples) == first_result


@given_in_pieces
def test_abandoned_stream_leaves_no_state(engine: OfflineEngine, samples: np.ndarray, first_result: Found) -> None:
    left = samples[: int(0.6 * len(samples))]
    if isinstance(engine, SpotsPhrases):
        engine.listen().feed(left)
    else:
        assert isinstance(engine, ScoresSound)
        engine.begin().feed(left)
    assert found(engine, samples) == first_result


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.soak), 2])
@given_in_pieces
def test_pieces_of_any_size_give_the_same(
    engine: OfflineEngine, samples: np.ndarray, seed: int, first_result: Found
) -> None:
    generator = np.random.default_rng(seed)
    cuts = np.sort(generator.integers(0, len(samples), 60 if seed == 1 else 5))
    # Two cuts in one place make a piece without samples, neighbours a piece of one.
    cuts = sorted([*map(int, cuts), 1000, 1000, 1001, 20_000, 20_001, len(samples)])
    if isinstance(engine, ScoresSound):
        cut = {phrase: whole(parts) for phrase, parts in tracks(engine, np.split(samples, cuts)).items()}
        uncut = {phrase: whole(parts) for phrase, parts in tracks(engine, [samples]).items()}
        assert cut.keys() == uncut.keys()
        for phrase, track in uncut.items():
            assert (cut[phrase].first_end, cut[phrase].step) == (track.first_end, track.step)
            np.testing.assert_array_equal(cut[phrase].scores, track.scores)
    assert found(engine, samples, cuts) == first_result


@pytest.mark.parametrize("samples", [0, *some(1, 159, 160, 399, 1280, 16000, 80_000)])
def test_digital_silence_gives_no_detection(engine: OfflineEngine, samples: int) -> None:
    assert not found(engine, np.zeros(samples, np.int16))


@pytest.mark.parametrize("rms", [20.0, 1500.0])
def test_noise_gives_no_detection(engine: OfflineEngine, rms: float) -> None:
    noise = np.random.default_rng(11).normal(0, rms, RATE_HZ).astype(np.int16)
    assert not found(engine, noise)


def test_full_scale_extremes_do_not_break_the_engine(
    engine: OfflineEngine, samples: np.ndarray, first_result: Found
) -> None:
    extremes = np.tile(np.array([-32768, 32767], np.int16), RATE_HZ)
    for start, end in positions(found(engine, extremes)):
        assert 0 <= start <= end <= len(extremes)
    assert found(engine, samples) == first_result


@pytest.mark.parametrize("kept_s", [0.0, 0.15])
def test_positions_lie_within_the_file_also_at_its_end(
    engine: OfflineEngine, samples: np.ndarray, kept_s: float
) -> None:
    cut_off = samples[: len(samples) - RATE_HZ + round(kept_s * RATE_HZ)]
    for start, end in positions(found(engine, cut_off)):
        assert 0 <= start <= end <= len(cut_off)


def test_positions_shift_with_added_lead_in(engine: OfflineEngine, row: Row, first_result: Found) -> None:
    ((_, end),), ((_, later),) = positions(first_result), positions(found(engine, in_room(row.said(), BEFORE_S + 2)))
    assert abs(later - end - 2 * RATE_HZ) <= 0.3 * RATE_HZ


def test_an_unknown_model_is_refused_with_the_available_ones(row: Row) -> None:
    model, says = row.wrong
    with pytest.raises(HarnessError, match=says) as refusal:
        load_engine(task_of(f"{row.engine}:{model}", row.settings))
    assert refusal.value.exit_code == 2


def test_settings_are_refused_by_name_before_anything_is_loaded(row: Row) -> None:
    task = f"{row.engine}:{row.model}"
    with pytest.raises(InputError, match="has no setting 'no-such-setting'"):
        task_of(task, [("no-such-setting", "1")])
    for setting in engine_class(row.engine).settings:
        if setting.low is not None:
            with pytest.raises(InputError, match=setting.name):
                task_of(task, [(setting.name, str(setting.low - 1))])


def test_the_same_task_has_the_same_fingerprint(engine: OfflineEngine, row: Row) -> None:
    second = load_engine(task_of(f"{row.engine}:{row.model}", row.settings))
    assert second.facts.fingerprint == engine.facts.fingerprint
    second.close()
