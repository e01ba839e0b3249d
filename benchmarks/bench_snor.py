"""Lines a second of .sro conversion, through the library and through the verb, beside tools that only change case.

python benchmarks/bench_snor.py               under a minute
python benchmarks/bench_snor.py FILE          lines of yours
python benchmarks/bench_snor.py --memory GB   the verb's peak memory on a stream of that size; minutes
"""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sizes import sized

from harness.transcripts.snor import SnorForm, convert

LINES = sized(200_000, 1000)
ROUNDS = sized(3, 1)
VERB = [sys.executable, "-c", "from harness.cli import main; main()", "snor"]


def sro_lines(count: int, seed: int = 4) -> Iterator[str]:
    """Lines of 10 words, a tenth of which bear one of the conventions' marks; words are as frequent as Zipf's law says.

    One line in ten has a deletion of two words, one in ten an edit cue.
    """
    rng = random.Random(seed)
    letters = "etaoinshrdlucmfw"
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(3000)]
    weights = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    marked: list[Callable[[str], str]] = [
        lambda word: f"{word},",
        lambda word: f"{word}.",
        lambda word: f"{word[0]}:{word[1:]}",
        lambda word: f"<{word}>",
        lambda word: f"*{word}*",
        lambda word: f"{word[:2]}-",
        lambda word: f"[uh] {word}",
        lambda word: f". {word}",
    ]
    for number in range(count):
        words = rng.choices(vocabulary, weights, k=10)
        kind = rng.random()
        first = 0
        if kind < 0.1:
            words[0], words[1], first = f"<{words[0]}", f"{words[1]}>", 2
        elif kind < 0.2:
            words[0], words[1], words[2], first = "(1)", f"(1 {words[1]}", f"{words[2]})", 3
        for index in range(first, len(words)):
            if rng.random() < 0.1:
                words[index] = rng.choice(marked)(words[index])
        yield f"{' '.join(words)} (b{number:06x}sx)"


def best_s(run: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds of the best of some rounds, our children's included."""
    walls, processors = [], []
    for _ in range(ROUNDS):
        began, busy = time.perf_counter(), _busy_s()
        run()
        walls.append(time.perf_counter() - began)
        processors.append(_busy_s() - busy)
    return min(walls), min(processors)


def _busy_s() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


def piped(command: list[str], path: Path) -> Callable[[], object]:
    def run() -> None:
        with path.open("rb") as file:
            subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, check=True)

    return run


def speed(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    rows: dict[str, tuple[float, float]] = {}
    rows["split, upper, join"] = best_s(lambda: [" ".join(line.upper().split()) for line in lines])
    for form in SnorForm:
        rows[f"library, {form}"] = best_s(lambda form=form: [convert(line, form) for line in lines])  # type: ignore[misc]
    for form in SnorForm:
        rows[f"harness snor, {form}"] = best_s(piped([*VERB, "--output-format", form], path))
    if shutil.which("sed"):
        rows["sed, upper case"] = best_s(piped(["sed", r"s/.*/\U&/"], path))
    if shutil.which("awk"):
        rows["awk, upper case"] = best_s(piped(["awk", "{ $1 = $1; print toupper($0) }"], path))
    yardstick = rows["split, upper, join"][1]
    print(f"{len(lines):,} lines; best of {ROUNDS}; times of split, upper, join in the same run")
    print(f"{'':24}{'lines/s, wall':>16}{'lines/s, processor':>20}{'times':>8}")
    for name, (wall_s, busy_s) in rows.items():
        print(f"{name:24}{len(lines) / wall_s:16,.0f}{len(lines) / busy_s:20,.0f}{busy_s / yardstick:8.1f}")


def memory(gigabytes: float) -> None:
    texts = [line.rpartition("(")[0] for line in sro_lines(20_000)]
    for options in ([], ["--repeated-ids"]):
        code = (
            "import atexit, resource, sys; from harness.cli import main; "
            "atexit.register(lambda: sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))); main()"
        )
        command = [sys.executable, "-c", code, "snor", "--output-format", "lsn", *options]
        began = time.perf_counter()
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as verb:
            assert verb.stdin is not None
            assert verb.stderr is not None
            written = count = 0
            while written < gigabytes * 1e9:
                block = "".join(f"{text}(b{count + index:08x}sx)\n" for index, text in enumerate(texts)).encode()
                verb.stdin.write(block)
                written, count = written + len(block), count + len(texts)
            verb.stdin.close()
            peak_kb = int(verb.stderr.read())
        took_s = time.perf_counter() - began
        what = f"{written / 1e9:.2f} GB, {count:,} lines{' '.join(['', *options])}"
        print(f"{what}: peak {peak_kb / 1e3:.0f} MB, {took_s:.0f} s")


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        memory(float(sys.argv[2]))
        return
    if sys.argv[1:]:
        speed(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.sro"
        path.write_text("".join(f"{line}\n" for line in sro_lines(LINES)), encoding="utf-8")
        speed(path)


if __name__ == "__main__":
    main()
