"""A talker's utterances: what is kept, what is asked for again, and the list that a scenario reads."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from harness.base.ports import Sink
from harness.cli.sound import command
from harness.model.errors import InputError, InputProblems, SoundError
from harness.model.observation import LinkLost, Observation, Overrun, SpeechEnded, SpeechStarted
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.scenario.assets import read_list
from harness.session.talker import SpokenPrompt, Talker, TalkerFolder, UnusableUtterance, read_prompts
from tests.files import file_with

RATE_HZ = 16000


@dataclass
class Steps:
    """A clock that goes on by a little whenever it is read."""

    at_s: float = 100.0

    def now_s(self) -> float:
        self.at_s += 0.2
        return self.at_s

    def wall_s(self) -> float:
        return self.at_s

    def real_s(self, duration_s: float) -> float:
        return 0.0


@dataclass
class Room:
    """A microphone in a room in which everything has been said already; the speech has this peak."""

    observations: list[Observation]
    peak: float = 0.3
    floor_dbfs: float | None = -60.0
    closed: threading.Event = field(default_factory=threading.Event)

    def open(self, sink: Sink) -> None:
        for observation in self.observations:
            sink(observation)

    def close(self) -> None:
        self.closed.set()

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        samples = np.full(round((end_s - start_s) * RATE_HZ), self.peak, dtype=np.float32)
        return Waveform(samples, RATE_HZ), start_s

    def noise_floor_dbfs(self) -> float | None:
        return self.floor_dbfs


def began(at_s: float) -> SpeechStarted:
    return SpeechStarted("mic", Stamp(at_s), -30.0)


def ended(at_s: float) -> SpeechEnded:
    return SpeechEnded("mic", Stamp(at_s))


def heard(room: Room, wait_s: float = 10.0) -> SpokenPrompt:
    with Talker(room, Steps()) as talker:
        try:
            return talker.utterance(wait_s)
        finally:
            assert not room.closed.is_set()


def test_an_utterance_with_a_short_pause_is_one_with_its_end() -> None:
    room = Room([ended(99.0), began(101.0), ended(101.6), began(102.0), ended(102.9)])
    utterance = heard(room)
    assert utterance.sound.duration_s == pytest.approx(2.5)
    assert utterance.phrase_end_s == pytest.approx(2.2)
    assert utterance.snr_db == pytest.approx(60 - 10.46, abs=0.1)
    assert room.closed.is_set()


def test_snr_is_unknown_without_a_noise_floor() -> None:
    assert heard(Room([began(101.0), ended(102.0)], peak=0.001, floor_dbfs=None)).snr_db is None


@pytest.mark.parametrize(
    ("room", "why"),
    [
        (Room([]), "nothing was heard within 2 s"),
        (Room([began(99.0), ended(99.5)]), "nothing was heard"),  # before the prompt was shown
        (Room([began(101.0), ended(102.0)], peak=1.0), "too loud"),
        (Room([began(101.0), ended(102.0)], peak=0.001, floor_dbfs=-65.0), "too quiet: 5 dB"),
        (Room([began(101.0), Overrun("mic", Stamp(101.5), 480), ended(102.0)]), "samples were lost"),
        (Room([began(101.0)]), "longer than 3 s"),
    ],
)
def test_unusable_utterance_is_requested_again(room: Room, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.session.talker.MAX_UTTERANCE_S", 3.0)
    with pytest.raises(UnusableUtterance, match=why):
        heard(room, 2.0)
    assert room.closed.is_set()


def test_a_lost_microphone_ends_the_recording() -> None:
    with pytest.raises(SoundError, match="unplugged"):
        heard(Room([began(101.0), LinkLost("mic", Stamp(101.2), "unplugged")]))


def utterance() -> SpokenPrompt:
    return SpokenPrompt(Waveform(np.full(16000, 0.1, dtype=np.float32), RATE_HZ), 0.7, -20.0, -60.0)


def test_recorded_utterances_continue_an_existing_list(tmp_path: Path) -> None:
    folder = tmp_path / "people"
    first = TalkerFolder(folder, "ann", {"distance": "3 m"})
    assert first.keep("=SUM(A1), said she", utterance()) == "ann_0001.wav"
    assert TalkerFolder(folder, "ben", {"distance": "1 m"}).keep("alexa", utterance()) == "ben_0001.wav"
    reopened = TalkerFolder(folder, "ann", {"distance": "3 m"})
    assert reopened.missing(["alexa"]) == ["alexa"]
    (folder / "ann_0002.wav").write_bytes(b"kept, but killed before its row")
    assert reopened.keep("alexa", utterance()) == "ann_0003.wav"
    reopened = TalkerFolder(folder, "ann", {"distance": "3 m "})
    assert reopened.missing(["alexa"]) == []
    assert reopened.missing(["alexa", "stop", "alexa"]) == ["stop", "alexa"], "it is to be read twice"
    assert TalkerFolder(folder, "ann", {"distance": "1 m"}).missing(["alexa"]) == ["alexa"], "at each distance"
    rows = read_list(folder / "list.csv")
    assert [path for path, _, _ in rows] == ["ann_0001.wav", "ben_0001.wav", "ann_0003.wav"]
    assert rows[1][1].phrase_end_s == 0.7
    assert rows[1][1].traits == (("phrase", "alexa"), ("talker", "ben"), ("distance", "1 m"))
    assert soundfile.info(folder / "ann_0003.wav").duration == 1.0


def test_columns_of_the_list_stay_what_they_are(tmp_path: Path) -> None:
    TalkerFolder(tmp_path, "ann", {}).keep("alexa", utterance())
    with pytest.raises(InputError, match=r"list\.csv:2: the list has the columns"):
        TalkerFolder(tmp_path, "ann", {"distance": "1 m"})


@pytest.mark.parametrize(
    ("talker", "column"), [("Ann B", "room"), ("../ann", "room"), ("ann", "voice"), ("ann", "A b")]
)
def test_names_that_no_list_can_have_are_refused(tmp_path: Path, talker: str, column: str) -> None:
    with pytest.raises(InputError):
        TalkerFolder(tmp_path, talker, {column: "1"})


def test_prompts_are_read_line_by_line(tmp_path: Path) -> None:
    path = file_with(tmp_path / "prompts.txt", "\ufeff# Spanish\n\n ¿Qué  hora es? \nalexa\n")
    assert read_prompts(path) == ("¿Qué hora es?", "alexa")
    path.write_bytes(b"good\nca\xe9\n")
    with pytest.raises(InputProblems) as refused:
        read_prompts(path)
    assert [(problem.place.line, problem.place.column) for problem in refused.value.problems if problem.place] == [
        (2, 3)
    ]
    for nothing in (path, tmp_path / "none.txt"):
        path.write_text("# nothing\n")
        with pytest.raises(InputError):
            read_prompts(nothing)


def test_a_command_without_a_microphone_records_nothing(tmp_path: Path) -> None:
    prompts = file_with(tmp_path / "prompts.txt", "alexa\n")
    for options in ([], ["--column", "distance"], ["--column", "a=1", "--column", "a=2"]):
        result = CliRunner().invoke(
            command, ["record", str(prompts), "-o", str(tmp_path / "o"), "--talker", "a", *options]
        )
        assert isinstance(result.exception, InputError)
    assert not (tmp_path / "o").exists()
