"""A board as an engine: what it finds in files is what its own spotter finds in them, to the sample."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from harness.base.ports import OfflineEngine, SpotsPhrases
from harness.engines.offline_loading import load_engine, task_of
from harness.model.errors import DeviceError, EngineError, InputError
from harness.model.observation import StimulusStarted
from harness.model.offline import EngineKind, Evaluation, ListedFile, ListKind, OfflineSpot
from harness.model.stimulus import Waveform
from harness.offline import device_link
from harness.offline.device_engine import DeviceEngine
from harness.offline.device_link import DeviceLink, task_devices
from harness.offline.one_file import FilePlayer
from tests.conformance.boards import PosixBoard, QemuBoard, posix_board, qemu_board, qemu_installed
from tests.conformance.serial_bench import spoken, truth
from tests.conformance.wake_boards import RADIO, WIRED, two_posix_boards
from tests.known import known
from tests.seen import until

Pcm = npt.NDArray[np.int16]
BENCH = """\
bench: silicon
operator: absent
devices:
"""
DEVICE = "  {name}: {{profile: vh_board, connection: {{driver: serial, port: {port}}}}}\n"


def written(folder: Path, **ports: str) -> str:
    path = folder / "bench.yaml"
    path.write_text(BENCH + "".join(DEVICE.format(name=name, port=port) for name, port in ports.items()))
    return str(path)


def pcm(samples: npt.NDArray[np.floating]) -> Pcm:
    return np.clip(np.rint(samples * 32768), -32768, 32767).astype(np.int16)


def files() -> list[Pcm]:
    """Phrases loud and soft, noise alone, digital silence, a cut-off one, and a very short file."""
    loud = spoken().samples
    noise = np.random.default_rng(3).normal(0, 0.02, 48_000)
    return [
        pcm(loud),
        pcm(loud * 0.03),
        pcm(noise),
        np.zeros(32_000, np.int16),
        pcm(loud[:24_000]),
        pcm(loud[20_000:]),
        pcm(loud[:160]),
        pcm(np.concatenate([loud, loud * 0.2, noise])),
    ]


def spotted(engine: OfflineEngine, samples: Pcm, piece: int = 4000) -> list[tuple[int, str]]:
    assert isinstance(engine, SpotsPhrases)
    stream = engine.listen()
    spots: list[OfflineSpot] = []
    for start in range(0, len(samples), piece):
        stream.feed(samples[start : start + piece])
        spots += stream.take(flush=False)
    spots += stream.take(flush=True)
    return [(spot.end, spot.phrase) for spot in spots]


def true(folder: Path, samples: Pcm) -> list[tuple[int, str]]:
    waveform = Waveform((samples / 32768.0).astype(np.float32), 16_000)
    return [(sample, phrase) for sample, _, phrase in truth(folder, waveform)]


@contextmanager
def engine_of(task: str, *settings: tuple[str, str]) -> Iterator[OfflineEngine]:
    engine = load_engine(task_of(task, settings))
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def in_the_middle(engine: OfflineEngine, act: Callable[[], object]) -> Iterator[None]:
    """Does it half a second after the device's sound has begun: before it, the device restarts."""
    assert isinstance(engine, DeviceEngine)
    link = engine._link

    def wait_and_act() -> None:
        until(
            lambda: any(isinstance(observation, StimulusStarted) for observation in link._observations),
            otherwise="no sound began",
        )
        time.sleep(0.5)
        act()

    acting = threading.Thread(target=wait_and_act)
    acting.start()
    try:
        yield
    finally:
        acting.join()


@pytest.fixture(autouse=True)
def locks_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_RUNTIME", str(tmp_path / "run"))


@pytest.fixture
def board(tmp_path: Path) -> Iterator[PosixBoard]:
    with posix_board(tmp_path) as posix:
        yield posix


def test_device_engine_finds_the_same_spots_as_its_spotter(board: PosixBoard, tmp_path: Path) -> None:
    with engine_of(f"device:{written(tmp_path, kitchen=board.port)}#kitchen") as engine:
        assert engine.facts.kind is EngineKind.WAKE
        assert engine.facts.phrases == ("alexa",)
        assert engine.facts.version.startswith("voice-harness stub")
        expected = [true(tmp_path, sound) for sound in files()]
        assert [len(spots) for spots in expected].count(0) >= 3
        assert sum(map(len, expected)) >= 6
        assert [spotted(engine, sound) for sound in files()] == expected
        sounds = [files()[0], files()[4], files()[0]]
        assert [spotted(engine, sound) for sound in sounds] == [expected[0], expected[4], expected[0]], (
            "nothing is left of a file"
        )


def test_the_pieces_of_a_long_file_are_one_stream(board: PosixBoard, tmp_path: Path) -> None:
    long = np.tile(pcm(spoken().samples), 9)  # pieces end within phrases
    with engine_of("device:vh_board", ("port", board.port), ("encoding", "pcm16")) as engine:
        assert spotted(engine, long, 70_001) == true(tmp_path, long)


def test_after_silence_a_file_is_not_confused_with_the_one_before(board: PosixBoard, tmp_path: Path) -> None:
    task = f"device:{written(tmp_path, kitchen=board.port)}#kitchen"
    with engine_of(task, ("between", "silence"), ("gap-ms", "3000"), ("sensitivity", "50")) as engine:
        phrase, cut = pcm(spoken().samples), pcm(spoken().samples[:24_500])
        spots = [spotted(engine, sound) for sound in (phrase, cut, phrase)]
    assert [len(file_spots) for file_spots in spots] == [2, 1, 2]
    assert spots[1][0][0] <= len(cut), "what it tells in the gap is the file's, on its last sample"
    assert abs(spots[0][0][0] - spots[2][0][0]) <= 640, "its frames lie otherwise than after a restart"


def test_sensitivity_lasts_over_restarts(board: PosixBoard, tmp_path: Path) -> None:
    task = f"device:{written(tmp_path, kitchen=board.port)}#kitchen"
    noise = np.random.default_rng(1).normal(0, 0.005, len(spoken().samples))
    noisy = pcm(spoken().samples * 0.1 + noise)
    with engine_of(task, ("sensitivity", "0")) as strict:
        assert [len(spotted(strict, noisy)) for _ in range(3)] == [1, 1, 1]
    with engine_of(task) as usual:
        assert len(spotted(usual, noisy)) == 2


def test_device_restart_fails_its_file_and_spares_the_next(board: PosixBoard, tmp_path: Path) -> None:
    task = f"device:{written(tmp_path, kitchen=board.port)}#kitchen"
    samples = pcm(spoken().samples)
    with (
        engine_of(task, ("pace", "realtime")) as engine,
        pytest.raises(EngineError, match="restarted in the middle"),
        in_the_middle(engine, board.reset),
    ):
        spotted(engine, samples)
    with engine_of(task) as engine:
        assert spotted(engine, samples) == true(tmp_path, samples)


def test_a_cable_that_is_pulled_is_an_error_and_the_next_file_waits_for_it(tmp_path: Path) -> None:
    samples = pcm(spoken().samples)
    with posix_board(tmp_path, cable=True) as board:
        cable = known(board.cable)
        with engine_of(f"device:{written(tmp_path, kitchen=board.port)}#kitchen", ("pace", "realtime")) as engine:
            with pytest.raises(EngineError, match="lost in the middle of a file"), in_the_middle(engine, cable.unplug):
                spotted(engine, samples)
            back = threading.Timer(0.3, cable.replug)
            back.start()
            short = samples[:32_000]
            assert spotted(engine, short) == true(tmp_path, short)
            back.join()


def test_file_is_replayed_after_the_cable_was_pulled(tmp_path: Path) -> None:
    samples = pcm(spoken().samples)[:32_000]
    wav = tmp_path / "phrase.wav"
    soundfile.write(wav, samples, 16_000, subtype="PCM_16")
    with posix_board(tmp_path, cable=True) as board:
        cable = known(board.cable)

        def pull() -> None:
            cable.unplug()
            cable.replug()

        task = task_of(f"device:{written(tmp_path, kitchen=board.port)}#kitchen", [("pace", "realtime")])
        engine = load_engine(task)
        try:
            with in_the_middle(engine, pull):
                outcome = FilePlayer(engine, Evaluation(task)).play(ListedFile(ListKind.INV, 0, wav.name, str(wav)))
        finally:
            engine.close()
    assert (outcome.rejected, outcome.error) == (None, "")
    assert [(spot.end, spot.phrase) for spot in outcome.spots] == true(tmp_path, samples)


def test_device_that_stays_lost_ends_the_run(
    board: PosixBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_link, "BACK_WITHIN_S", 0.5)
    wav = tmp_path / "phrase.wav"
    soundfile.write(wav, pcm(spoken().samples), 16_000, subtype="PCM_16")
    task = task_of(f"device:{written(tmp_path, kitchen=board.port)}#kitchen", [("pace", "realtime")])
    engine = load_engine(task)
    try:
        with pytest.raises(DeviceError, match="kitchen is gone") as gone, in_the_middle(engine, board.kill):
            FilePlayer(engine, Evaluation(task)).play(ListedFile(ListKind.INV, 0, wav.name, str(wav)))
    finally:
        engine.close()
    assert "--resume" in gone.value.remedy


def test_a_line_that_loses_bytes_changes_no_spot(tmp_path: Path) -> None:
    samples = pcm(spoken().samples)
    with posix_board(tmp_path, cable=True) as board:
        assert board.cable is not None
        with engine_of(f"device:{written(tmp_path, kitchen=board.port)}#kitchen") as engine:
            board.cable.corrupt(3e-4, seed=4)
            assert spotted(engine, samples) == true(tmp_path, samples)
            board.cable.corrupt(0)


def test_a_frozen_board_is_an_error_with_a_remedy(board: PosixBoard, tmp_path: Path) -> None:
    task = f"device:{written(tmp_path, kitchen=board.port)}#kitchen"
    with engine_of(task, ("pace", "realtime")) as engine:
        with pytest.raises(EngineError, match=r"not answered for 3\.\d\d s"), in_the_middle(engine, board.freeze):
            spotted(engine, pcm(spoken().samples))
        board.thaw()
        assert spotted(engine, pcm(spoken().samples)[:16_000]) == []


def test_two_devices_serve_two_engines_and_no_third(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with posix_board(tmp_path / "a") as board, posix_board(tmp_path / "b") as other:
        model = f"{written(tmp_path, a=board.port, b=other.port)}#a,b"
        assert DeviceEngine.most_jobs(model) == 2
        with engine_of(f"device:{model}") as first, engine_of(f"device:{model}") as second:
            spots = [spotted(device_engine, pcm(spoken().samples)) for device_engine in (first, second)]
            assert spots[0] == spots[1]
            assert first.facts.fingerprint == second.facts.fingerprint
            with pytest.raises(InputError, match="Use -j 2"):
                DeviceEngine(model, {})


def test_a_board_at_a_broker_finds_the_same(tmp_path: Path) -> None:
    with two_posix_boards(tmp_path) as boards:
        bench = boards.bench(tmp_path)
        samples = [files()[0], files()[1]]
        with engine_of(f"device:{bench}#{RADIO}") as radio, engine_of(f"device:{bench}#{WIRED}") as wired:
            for sound in samples:
                assert spotted(radio, sound) == spotted(wired, sound) == true(tmp_path, sound)


def test_a_tflm_dialogue_cannot_be_restarted(board: PosixBoard, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be restarted"):
        DeviceEngine("tflm_test_over_serial", {"port": board.port, "between": "restart"})


@pytest.mark.soak
@pytest.mark.skipif(not qemu_installed(), reason="needs qemu-system-arm and gcc-arm-none-eabi")
def test_a_cortex_m4_finds_the_same(tmp_path: Path) -> None:
    with qemu_board(tmp_path) as board:
        m4: QemuBoard = board
        with engine_of(f"device:{written(tmp_path, m4=m4.port)}#m4") as engine:
            assert [spotted(engine, sound) for sound in files()] == [true(tmp_path, sound) for sound in files()]


def test_links_are_closed_twice_without_harm(board: PosixBoard) -> None:
    link = DeviceLink(task_devices("vh_board", {"port": board.port})[0])
    link.close()
    link.close()
