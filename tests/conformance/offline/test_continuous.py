"""Out-of-vocabulary files as one sound: state and refractory time go on, and a spot is its file's."""

from __future__ import annotations

import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from harness.model.errors import InputError
from harness.model.offline import FileOutcome, ListedFile, ListKind, RejectReason
from harness.offline.continuous import ContinuousListening
from harness.offline.one_file import FilePlayer
from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.loudness import RATE_HZ, Loudness, LoudnessScores, LoudnessSpots, LoudnessWords, Wrong
from tests.conformance.offline.offline_runs import Played, evaluation_of, listed

pytestmark = pytest.mark.usefixtures("loudness_plugin")


def heard(engine: Loudness, files: Sequence[ListedFile]) -> list[FileOutcome]:
    listening = ContinuousListening(engine, evaluation_of(continuous=True))
    found = [outcome for file in files for outcome in listening.hear(file)]
    return found + listening.finish()


def places(outcome: FileOutcome) -> list[tuple[float, float]]:
    return [(one.start / RATE_HZ, one.end / RATE_HZ) for one in outcome.spots]


def cut(path: Path, at_s: Sequence[float], folder: Path) -> list[Path]:
    """A file cut into several."""
    with wave.open(str(path)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    found = []
    for number, part in enumerate(np.split(samples, [round(at * RATE_HZ) for at in at_s])):
        found.append(folder / f"part{number}.wav")
        with wave.open(str(found[-1]), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE_HZ)
            file.writeframes(part.tobytes())
    return found


@pytest.mark.parametrize("kind", [LoudnessScores, LoudnessSpots])
def test_cut_anywhere_a_sound_has_the_spots_that_it_has_in_one_piece(
    sounds: Sounds, tmp_path: Path, kind: type[Loudness]
) -> None:
    whole = sounds("whole.wav", 40, [3.0, 3.9, 9.95, 20.0, 20.7, 31.0, 39.9])
    engine = kind("boom", {})
    one = FilePlayer(engine, evaluation_of()).play(listed(oov=[whole])[0])
    assert len(one.spots) > 3
    for cuts in ([10.0], [3.1], [9.96, 10.1, 10.2], [0.01, 20.003, 20.5001], [30.0, 39.95]):
        found = heard(engine, listed(oov=cut(whole, cuts, tmp_path)))
        assert [outcome.number for outcome in found] == list(range(len(cuts) + 1))
        before = np.cumsum([0, *(outcome.samples for outcome in found)])
        joined = [
            spot.end + int(begin) for outcome, begin in zip(found, before, strict=False) for spot in outcome.spots
        ]
        assert joined == [spot.end for spot in one.spots]
        assert all(0 <= spot.start <= spot.end <= outcome.samples for outcome in found for spot in outcome.spots)


def test_a_spot_is_of_the_file_in_which_it_ends_and_begins_no_earlier(sounds: Sounds, tmp_path: Path) -> None:
    parts = cut(sounds("whole.wav", 10, [5.0]), [4.9], tmp_path)
    found = heard(LoudnessScores("boom", {}), listed(oov=parts))
    assert places(found[0]) == []
    assert places(found[1]) == [(0.0, pytest.approx(0.11))]


def test_the_refractory_time_goes_on_over_the_border(sounds: Sounds) -> None:
    files = listed(oov=[sounds("a.wav", 5, [4.5]), sounds("b.wav", 5, [0.2]), sounds("c.wav", 5, [2.0])])
    engine = LoudnessScores("boom", {})
    assert [len(one.spots) for one in heard(engine, files)] == [1, 0, 1]
    afresh = [FilePlayer(engine, evaluation_of()).play(file) for file in files]
    assert [len(one.spots) for one in afresh] == [1, 1, 1]


def test_files_that_are_no_use_are_passed_over(sounds: Sounds, tmp_path: Path) -> None:
    paths = [
        sounds("a.wav", 5, [4.5]),
        tmp_path / "none.wav",
        sounds("r.wav", 5, rate_hz=8000),
        sounds("b.wav", 5, [0.2]),
    ]
    found = heard(LoudnessScores("boom", {}), listed(oov=paths))
    assert [one.rejected for one in found] == [None, RejectReason.UNREADABLE, RejectReason.RATE, None]
    assert [len(one.spots) for one in found] == [1, 0, 0, 0]


def test_a_recogniser_has_no_state_to_carry_on() -> None:
    with pytest.raises(InputError, match="understands one file at a time"):
        ContinuousListening(LoudnessWords("boom", {}), evaluation_of("loudness_words", continuous=True))


def test_a_crash_begins_the_list_again_without_the_file_that_did_it(sounds: Sounds, tmp_path: Path) -> None:
    oov = [sounds(f"{number}.wav", 10, [9.5 if number == 1 else 0.2]) for number in range(8)]
    oov[2] = sounds("bad.wav", 2, wrong=Wrong.ABORT)
    files = listed([sounds("in.wav", 2, [1.5])], oov)
    played = Played(evaluation_of(continuous=True), files, tmp_path / "a.jsonl")
    assert (played.ran.done, played.ran.rejected) == (9, 1)
    assert played.outcome(2, ListKind.OOV).rejected is RejectReason.CRASH
    # The file after it goes on where the one before it ended, within the refractory time.
    spots = [len(played.outcome(number, ListKind.OOV).spots) for number in range(8)]
    assert spots == [1, 1, 0, 0, 1, 1, 1, 1]
