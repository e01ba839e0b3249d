"""What supervised workers and the journal cost over the bare engine.

python benchmarks/bench_offline.py [overhead] [command] [workers] [tiny] [journal]      all of them without a name

The yardstick is the engine alone, in a loop of the same run over the same sounds, in one process, on their samples as
they lie in memory. Processor time is of all processes together; on a busy host it is the figure to look at.
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
HOURS_OF_LONG = sized(80, 4)
"""Files of the whole command: 3.33 h."""
SHORT, SHORT_S = sized(1200, 4), 3.0
TURNS = sized(7, 1)
TINY, TINY_S = sized(100_000, 100), 0.05
OUTCOMES = sized(1_000_000, 1000)
PLUGIN = Path(__file__).parent.parent / "tests" / "conformance" / "offline" / "loudness.py"


def main(what: Sequence[str]) -> None:
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if what == ["journal-child"]:
        journal_child()
        return
    with tempfile.TemporaryDirectory() as folder:
        of = (overhead, command, workers, tiny, journal)
        for name, measure in ((one.__name__, one) for one in of):
            if not what or name in what:
                measure(Path(folder))


def overhead(folder: Path) -> None:
    """Processor time of a run with one worker, from its engine's load to its last outcome, over the bare engine's.

    The two take turns, and what is told is the median of each and of the ratio in a turn: load that comes and goes
    is then in both.
    """
    for label, count, seconds in (("long files", LONG, LONG_S), ("short files", SHORT, SHORT_S)):
        files = sounds(folder, label[:5], count, seconds)
        turns = [(bare(files), *at_work(files, folder)) for _ in range(TURNS)]
        bare_s, start_s, ours_s = (statistics.median(times) for times in zip(*turns, strict=True))
        ratios = sorted(ours / alone for alone, _, ours in turns)
        audio_s = count * seconds
        print(
            f"{label}: {count} of {seconds:g} s: bare engine {bare_s:.2f} s ({audio_s / bare_s:.0f}x RT), "
            f"run {ours_s:.2f} s ({audio_s / ours_s:.0f}x RT), processor time; medians of {TURNS} turns; ratio "
            f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); start-up {start_s:.2f} s"
        )


def at_work(files: Sequence[ListedFile], folder: Path) -> tuple[float, float]:
    """Processor time of this process and its one worker: until the engine is loaded, and from then to the last
    outcome."""
    looks = [time.process_time()]

    def look() -> None:
        children = Path("/proc/self/task", str(threading.get_native_id()), "children").read_text().split()
        # The clock of another process's processor time, as clock_getcpuclockid(3) makes its number.
        looks.append(time.process_time() + sum(time.clock_gettime((~int(pid) << 3) | 2) for pid in children))

    def told(progress: RunProgress) -> None:
        if progress.done == len(files):
            look()

    played(files, 1, folder, loaded=look, on_progress=told)
    began_s, loaded_s, ended_s = looks[:3]
    return loaded_s - began_s, ended_s - loaded_s


def command(folder: Path) -> None:
    """The whole of `harness evaluate` on some three hours, and on a file of 3 s, which is start-up: processor time of
    all of its processes. The bare engine and the two take turns."""
    files = sounds(folder, "long", LONG, LONG_S)
    paths = [folder / f"again{number}.wav" for number in range(HOURS_OF_LONG)]
    for number, path in enumerate(paths):
        path.hardlink_to(files[number % LONG].path)
    (folder / "long.txt").write_text("".join(f"{path}\n" for path in paths))
    (folder / "short.txt").write_text(f"{sounds(folder, 'one', 1, SHORT_S)[0].path}\n")
    turns = [
        (bare(files) * HOURS_OF_LONG / LONG, commanded(folder, "short.txt"), commanded(folder, "long.txt"))
        for _ in range(TURNS)
    ]
    bare_s, start_s, whole_s = (statistics.median(times) for times in zip(*turns, strict=True))
    audio_s = HOURS_OF_LONG * LONG_S
    print(
        f"whole command on {audio_s / 3600:.2f} h: {whole_s:.2f} s of processor time ({audio_s / whole_s:.0f}x RT), "
        f"bare engine {bare_s:.2f} s ({audio_s / bare_s:.0f}x RT), start-up {start_s:.2f} s; all but the engine "
        f"{1 - bare_s / whole_s:.0%}; medians of {TURNS} turns"
    )


def commanded(folder: Path, listed: str) -> float:
    """Processor time of an evaluation by the command line, of all of its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    arguments = ("evaluate", "-t", TASK, "--oov", listed, "-l", "a.log", "--force")
    code = f"import sys; sys.argv = ['harness', *{arguments!r}]; from harness.cli import main; main()"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def workers(folder: Path) -> None:
    """Wall time of two workers against one, start-up aside."""
    files = sounds(folder, "long", LONG, LONG_S) * 4
    files = [ListedFile(ListKind.OOV, place, one.listed, one.path) for place, one in enumerate(files)]
    starts = [min(played(files[:jobs], jobs, folder)[0] for _ in range(2)) for jobs in (1, 2)]
    found = [min(played(files, jobs, folder) for _ in range(3)) for jobs in (1, 2)]
    one, two = (wall - start for (wall, _), start in zip(found, starts, strict=True))
    print(
        f"two workers: wall {two:.2f} s against {one:.2f} s of one: {one / two:.2f} times as fast; "
        f"processor {found[1][1]:.2f} s against {found[0][1]:.2f} s"
    )


def tiny(folder: Path) -> None:
    """What a file costs that has next to no sound, with an engine that does next to nothing."""
    site = folder / "site"
    told = site / "loudness-1.0.dist-info"
    told.mkdir(parents=True)
    shutil.copy(PLUGIN, site / "loudness_plugin.py")
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: loudness\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text("[harness.offline_engines]\nloudness = loudness_plugin:LoudnessScores\n")
    os.environ["PYTHONPATH"] = str(site)
    sys.path.insert(0, str(site))
    path = sounds(folder, "tiny", 1, TINY_S)[0].path
    files = [ListedFile(ListKind.OOV, number, f"{number}.wav", path) for number in range(TINY)]
    bare_s = bare(files[:2000], "loudness:boom", read=True) * TINY / 2000
    wall_s, cpu_s = played(files, 2, folder, "loudness:boom")
    print(
        f"{TINY:,} tiny files: {1e6 * cpu_s / TINY:.0f} µs of processor time each, of which reading and the engine "
        f"{1e6 * bare_s / TINY:.0f} µs; wall {wall_s:.1f} s; most memory of this process {peak_mb():.0f} MB"
    )


def journal(folder: Path) -> None:
    """Memory and time for a million outcomes in any order."""
    subprocess.run([sys.executable, __file__, "journal-child"], check=True)


def journal_child() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        numbers = np.random.default_rng(1).permutation(OUTCOMES)
        start_mb = peak_mb()
        with Journal.create(path, header_of(OUTCOMES)(FACTS)) as writing:
            began_s = time.process_time()
            for at in range(0, OUTCOMES, 100):
                some = [FileOutcome(ListKind.OOV, int(one), 48000, 16000, 16000) for one in numbers[at : at + 100]]
                writing.append_lines(b"".join(outcome_line(one, f"/audio/part/{one.number}.wav") for one in some))
            write_s = time.process_time() - began_s
            writing.close(JournalMark.COMPLETE)
        began_s = time.process_time()
        found = JournalFile(path)
        scan_s = time.process_time() - began_s
        held = sum(one.nbytes for one in (found.keys, found.offsets, found.lengths))
        assert all(one.outcome.number == place for place, one in enumerate(found.outcomes()))
        order_s = time.process_time() - began_s - scan_s
        print(
            f"{OUTCOMES:,} outcomes ({path.stat().st_size / 1e6:.0f} MB): written in {write_s:.1f} s, looked through "
            f"in {scan_s:.1f} s, told in list order in {order_s:.1f} s (processor); index {held / 1e6:.0f} MB, most "
            f"memory {peak_mb() - start_mb:.0f} MB over the {start_mb:.0f} MB before"
        )


def sounds(folder: Path, name: str, count: int, seconds: float) -> list[ListedFile]:
    """Files of noise that comes and goes, with digital silence in it; all the same sound from another place."""
    rng = np.random.default_rng(3)
    length = round(seconds * RATE_HZ)
    noise = rng.normal(0, 1500, length + 1000 * count) * (np.sin(np.arange(length + 1000 * count) / 9000) > -0.5)
    found = []
    for number in range(count):
        path = folder / f"{name}{number}.wav"
        if not path.exists():
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(RATE_HZ)
                file.writeframes(noise[1000 * number :][:length].astype(np.int16).tobytes())
        found.append(ListedFile(ListKind.OOV, number, path.name, str(path)))
    return found


def bare(files: Sequence[ListedFile], task: str = TASK, *, read: bool = False) -> float:
    """Processor time of the engine alone."""
    engine = load_engine(task_of(task))

    def samples(path: str) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
        with wave.open(path) as file:
            return np.frombuffer(file.readframes(file.getnframes()), np.int16)

    held = None if read else [samples(one.path) for one in files]
    began_s = time.process_time()
    for place, one in enumerate(files):
        spots_in(compute_scores(engine, [samples(one.path) if held is None else held[place]]), engine.facts.rule)
    return time.process_time() - began_s


def played(
    files: Sequence[ListedFile],
    jobs: int,
    folder: Path,
    task: str = TASK,
    *,
    loaded: Callable[[], None] = lambda: None,
    on_progress: Callable[[RunProgress], None] = do_nothing,
) -> tuple[float, float]:
    """Wall time, and processor time of all processes. loaded: called when an engine is."""
    evaluation, header = Evaluation(task_of(task)), header_of(len(files))
    began_s, cpu_s = time.monotonic(), cpu()

    def opened(facts: EngineFacts) -> Journal:
        loaded()
        return Journal.create(folder / "a.jsonl", header(facts))

    run(
        evaluation,
        files,
        jobs=jobs,
        journal=opened,
        on_progress=on_progress,
        stop=threading.Event(),
        limits=WorkerLimits(nice=0),
    )
    return time.monotonic() - began_s, cpu() - cpu_s


def header_of(files: int) -> Callable[[EngineFacts], JournalHeader]:
    lists = (ListFacts("out.txt", "", ListKind.OOV, files),)
    # Made here: looking an engine up takes 10 ms, which are nothing of a run's.
    evaluation = Evaluation(task_of(TASK))
    return lambda facts: JournalHeader(evaluation, CountingRules(), facts, lists, files, time.time())


def cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


FACTS = EngineFacts(EngineKind.WAKE, "1", RATE_HZ, ("okay nabu",), "")

if __name__ == "__main__":
    main(sys.argv[1:])
