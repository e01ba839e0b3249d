"""What supervised workers and the journal cost over the bare engine.

python benchmarks/bench_offline.py [overhead] [command] [workers] [tiny] [journal]      all of them without a name

The yardstick is the engine alone, in a loop of the same run over the same sounds, in one process, with their samples
already in memory. Processor time is of all processes together; on a busy host wall time means little.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import wave
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sizes import sized
from timing import HARNESS, Times, children_cpu_s, timed, total_cpu_s

from harness.engines.offline_loading import load_engine, task_of
from harness.model.offline import CountingRules, EngineFacts, EngineKind, Evaluation, FileOutcome, ListedFile, ListKind
from harness.offline.journal import Journal, JournalFile
from harness.offline.journal_lines import JournalHeader, JournalMark, ListFacts, outcome_line
from harness.offline.one_file import compute_scores, spots_in
from harness.offline.pool import WorkerLimits
from harness.offline.run import RunProgress, do_nothing, run

RATE_HZ = 16000
TASK = "microwakeword:okay_nabu"
LONG, LONG_S = sized(24, 2), sized(150.0, 5.0)
COMMAND_FILES = sized(80, 4)
"""Long files of the whole command: 3.33 h."""
SHORT, SHORT_S = sized(1200, 4), 3.0
TURNS = sized(7, 1)
TINY, TINY_S = sized(100_000, 100), 0.05
OUTCOMES = sized(1_000_000, 1000)
PLUGIN = Path(__file__).parent.parent / "tests" / "conformance" / "offline" / "loudness.py"


def main(names: Sequence[str]) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if names == ["journal-child"]:
        measure_journal()
        return
    with tempfile.TemporaryDirectory() as folder:
        for measure in (overhead, command, workers, tiny, journal):
            if not names or measure.__name__ in names:
                measure(Path(folder))


def overhead(folder: Path) -> None:
    """Prints the processor time of a run with one worker, from its engine's load to its last outcome, and the engine's.

    The two take turns, and the medians of each and of the ratio in a turn count: load that comes and goes is in both.
    """
    for label, count, seconds in (("long files", LONG, LONG_S), ("short files", SHORT, SHORT_S)):
        files = write_sounds(folder, label[:5], count, seconds)
        turns = [(bare_cpu_s(files), *start_and_work_cpu_s(files, folder)) for _ in range(TURNS)]
        bare_s, start_s, ours_s = (statistics.median(times) for times in zip(*turns, strict=True))
        ratios = sorted(ours / alone for alone, _, ours in turns)
        audio_s = count * seconds
        print(
            f"{label}: {count} of {seconds:g} s: bare engine {bare_s:.2f} s ({audio_s / bare_s:.0f}x RT), "
            f"run {ours_s:.2f} s ({audio_s / ours_s:.0f}x RT), processor time; medians of {TURNS} turns; ratio "
            f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); start-up {start_s:.2f} s"
        )


def start_and_work_cpu_s(files: Sequence[ListedFile], folder: Path) -> tuple[float, float]:
    """Runs the files with one worker. Returns processor time until its engine is loaded, and from then to the end.

    Both are of this process and the worker; the end is the last outcome, since a worker takes a while to leave.
    """
    readings_s = [time.process_time()]

    def read_clocks() -> None:
        children = Path("/proc/self/task", str(threading.get_native_id()), "children").read_text().split()
        # The clock of another process's processor time, as clock_getcpuclockid(3) makes its number.
        readings_s.append(time.process_time() + sum(time.clock_gettime((~int(pid) << 3) | 2) for pid in children))

    def on_progress(progress: RunProgress) -> None:
        if progress.done == len(files):
            read_clocks()

    evaluate(files, 1, folder, on_loaded=read_clocks, on_progress=on_progress)
    began_s, loaded_s, ended_s = readings_s[:3]
    return loaded_s - began_s, ended_s - loaded_s


def command(folder: Path) -> None:
    """Prints the processor time of `harness evaluate` on some three hours, and of its start-up, which is a file of 3 s.

    All processes of the command count. The bare engine and the two commands take turns.
    """
    files = write_sounds(folder, "long", LONG, LONG_S)
    paths = [folder / f"again{number}.wav" for number in range(COMMAND_FILES)]
    for number, path in enumerate(paths):
        path.hardlink_to(files[number % LONG].path)
    (folder / "long.txt").write_text("".join(f"{path}\n" for path in paths))
    [short_file] = write_sounds(folder, "one", 1, SHORT_S)
    (folder / "short.txt").write_text(f"{short_file.path}\n")
    turns = [
        (
            bare_cpu_s(files) * COMMAND_FILES / LONG,
            command_cpu_s(folder, "short.txt"),
            command_cpu_s(folder, "long.txt"),
        )
        for _ in range(TURNS)
    ]
    bare_s, start_s, whole_s = (statistics.median(times) for times in zip(*turns, strict=True))
    audio_s = COMMAND_FILES * LONG_S
    print(
        f"whole command on {audio_s / 3600:.2f} h: {whole_s:.2f} s of processor time ({audio_s / whole_s:.0f}x RT), "
        f"bare engine {bare_s:.2f} s ({audio_s / bare_s:.0f}x RT), start-up {start_s:.2f} s; all but the engine "
        f"{1 - bare_s / whole_s:.0%}; medians of {TURNS} turns"
    )


def command_cpu_s(folder: Path, list_name: str) -> float:
    """Processor time of an evaluation by the command line, of all of its processes."""
    began_s = children_cpu_s()
    arguments = ("evaluate", "-t", TASK, "--oov", list_name, "-l", "a.log", "--force")
    subprocess.run([*HARNESS, *arguments], cwd=folder, check=True, capture_output=True)
    return children_cpu_s() - began_s


def workers(folder: Path) -> None:
    """Prints the wall time of two workers and that of one, without their start-up."""
    sounds = write_sounds(folder, "long", LONG, LONG_S) * 4
    files = [ListedFile(ListKind.OOV, number, file.listed, file.path) for number, file in enumerate(sounds)]
    at_work: dict[int, Times] = {}
    for jobs in (1, 2):
        # With one file for each worker, a run is little more than start-up.
        start_s = min(evaluate(files[:jobs], jobs, folder).wall_s for _ in range(2))
        times = min((evaluate(files, jobs, folder) for _ in range(3)), key=lambda times: times.wall_s)
        at_work[jobs] = Times(times.wall_s - start_s, times.cpu_s)
    one_worker, two_workers = at_work[1], at_work[2]
    print(
        f"two workers: wall {two_workers.wall_s:.2f} s against {one_worker.wall_s:.2f} s of one: "
        f"{one_worker.wall_s / two_workers.wall_s:.2f} times as fast; processor {two_workers.cpu_s:.2f} s against "
        f"{one_worker.cpu_s:.2f} s"
    )


def tiny(folder: Path) -> None:
    """Prints what a file costs that has next to no sound, with an engine that does next to nothing."""
    site = folder / "site"
    package = site / "loudness-1.0.dist-info"
    package.mkdir(parents=True)
    shutil.copy(PLUGIN, site / "loudness_plugin.py")
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: loudness\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[harness.offline_engines]\nloudness = loudness_plugin:LoudnessScores\n")
    os.environ["PYTHONPATH"] = str(site)
    sys.path.insert(0, str(site))
    [sound] = write_sounds(folder, "tiny", 1, TINY_S)
    files = [ListedFile(ListKind.OOV, number, f"{number}.wav", sound.path) for number in range(TINY)]
    bare_s = bare_cpu_s(files[:2000], "loudness:boom", read=True) * TINY / 2000
    times = evaluate(files, 2, folder, "loudness:boom")
    print(
        f"{TINY:,} tiny files: {1e6 * times.cpu_s / TINY:.0f} µs of processor time each, of which reading and the "
        f"engine {1e6 * bare_s / TINY:.0f} µs; wall {times.wall_s:.1f} s; most memory of this process "
        f"{peak_mb():.0f} MB"
    )


def journal(folder: Path) -> None:
    """Measures the journal in a process of its own, since its peak memory counts."""
    subprocess.run([sys.executable, __file__, "journal-child"], check=True)


def measure_journal() -> None:
    """Prints memory and time for a million outcomes in any order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        numbers = np.random.default_rng(1).permutation(OUTCOMES)
        start_mb = peak_mb()
        with Journal.create(path, header_of(OUTCOMES)(FACTS)) as writing:
            _, write_s = timed(lambda: append_outcomes(writing, numbers))
            writing.close(JournalMark.COMPLETE)
        reading, scan_s = timed(lambda: JournalFile(path))
        index_bytes = reading.keys.nbytes + reading.offsets.nbytes + reading.lengths.nbytes
        in_order, order_s = timed(
            lambda: all(line.outcome.number == number for number, line in enumerate(reading.outcomes()))
        )
        assert in_order
        print(
            f"{OUTCOMES:,} outcomes ({path.stat().st_size / 1e6:.0f} MB): written in {write_s:.1f} s, looked through "
            f"in {scan_s:.1f} s, listed in {order_s:.1f} s (processor); index {index_bytes / 1e6:.0f} MB, "
            f"most memory {peak_mb() - start_mb:.0f} MB over the {start_mb:.0f} MB before"
        )


def append_outcomes(writing: Journal, numbers: np.ndarray) -> None:
    """Appends outcomes of files with these numbers, a hundred at a time."""
    for first in range(0, len(numbers), 100):
        outcomes = [
            FileOutcome(ListKind.OOV, int(number), 48000, 16000, 16000) for number in numbers[first : first + 100]
        ]
        writing.append_lines(
            b"".join(outcome_line(outcome, f"/audio/part/{outcome.number}.wav") for outcome in outcomes)
        )


def write_sounds(folder: Path, name: str, count: int, seconds: float) -> list[ListedFile]:
    """Makes those of the files that are missing: noise that comes and goes, with digital silence.

    Each file has the same noise from another position on.
    """
    rng = np.random.default_rng(3)
    length = round(seconds * RATE_HZ)
    noise = rng.normal(0, 1500, length + 1000 * count) * (np.sin(np.arange(length + 1000 * count) / 9000) > -0.5)
    files = []
    for number in range(count):
        path = folder / f"{name}{number}.wav"
        if not path.exists():
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(RATE_HZ)
                file.writeframes(noise[1000 * number :][:length].astype(np.int16).tobytes())
        files.append(ListedFile(ListKind.OOV, number, path.name, str(path)))
    return files


def bare_cpu_s(files: Sequence[ListedFile], task: str = TASK, *, read: bool = False) -> float:
    """Processor time of the engine alone, or with that of reading the files."""
    engine = load_engine(task_of(task))
    sounds = (samples_of(file) for file in files)
    if not read:
        sounds = list(sounds)
    began_s = time.process_time()
    for samples in sounds:
        spots_in(compute_scores(engine, [samples]), engine.facts.rule)
    return time.process_time() - began_s


def samples_of(file: ListedFile) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    with wave.open(file.path) as wave_file:
        return np.frombuffer(wave_file.readframes(wave_file.getnframes()), np.int16)


def evaluate(
    files: Sequence[ListedFile],
    jobs: int,
    folder: Path,
    task: str = TASK,
    *,
    on_loaded: Callable[[], None] = lambda: None,
    on_progress: Callable[[RunProgress], None] = do_nothing,
) -> Times:
    """Runs the files through so many workers. Returns wall time, and processor time of all processes.

    on_loaded: called when the first engine is loaded.
    """
    evaluation, header = Evaluation(task_of(task)), header_of(len(files))
    began_s, cpu_began_s = time.monotonic(), total_cpu_s()

    def create_journal(facts: EngineFacts) -> Journal:
        on_loaded()
        return Journal.create(folder / "a.jsonl", header(facts))

    run(
        evaluation,
        files,
        jobs=jobs,
        journal=create_journal,
        on_progress=on_progress,
        stop=threading.Event(),
        limits=WorkerLimits(nice=0),
    )
    return Times(time.monotonic() - began_s, total_cpu_s() - cpu_began_s)


def header_of(files: int) -> Callable[[EngineFacts], JournalHeader]:
    """Returns what makes the header of a journal, once the facts about the engine are known."""
    lists = (ListFacts("out.txt", "", ListKind.OOV, files),)
    # Not in the function below: looking an engine up takes 10 ms, which would count as the run's.
    evaluation = Evaluation(task_of(TASK))
    return lambda facts: JournalHeader(evaluation, CountingRules(), facts, lists, files, time.time())


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


FACTS = EngineFacts(EngineKind.WAKE, "1", RATE_HZ, ("okay nabu",), "")

if __name__ == "__main__":
    main(sys.argv[1:])
