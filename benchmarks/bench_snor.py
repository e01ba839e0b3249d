"""Lines a second of .sro conversion, through the library and through the verb, beside tools that only change case.

python benchmarks/bench_snor.py               under a minute
python benchmarks/bench_snor.py FILE          lines of yours
python benchmarks/bench_snor.py --memory GB   the verb's peak memory on a stream of that size; minutes
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sizes import sized
from timing import HARNESS, Times, quickest

from harness.transcripts.snor import SnorForm, convert

LINES = sized(200_000, 1000)
ROUNDS = sized(3, 1)
VERB = [*HARNESS, "snor"]
MEASURED_VERB = (
    "import atexit, resource, sys; from harness.cli import main; "
    "atexit.register(lambda: sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))); main()"
)
"""The same; writes its peak memory in kB to standard error when it ends."""


def sro_lines(count: int, seed: int = 4) -> Iterator[str]:
    """Lines of 10 words, which are as frequent as Zipf's law says. A tenth of the words bear a mark of the conventions.

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
        first_free = 0
        if kind < 0.1:
            words[:2], first_free = [f"<{words[0]}", f"{words[1]}>"], 2
        elif kind < 0.2:
            words[:3], first_free = ["(1)", f"(1 {words[1]}", f"{words[2]})"], 3
        for index in range(first_free, len(words)):
            if rng.random() < 0.1:
                words[index] = rng.choice(marked)(words[index])
        yield f"{' '.join(words)} (b{number:06x}sx)"


def convert_lines(lines: list[str], form: SnorForm) -> None:
    for line in lines:
        convert(line, form)


def pipe(command: list[str], path: Path) -> None:
    with path.open("rb") as file:
        subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, check=True)


def speed(path: Path) -> None:
    """Prints the table of speeds on the lines of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    works: dict[str, Callable[[], object]] = {
        "split, upper, join": lambda: [" ".join(line.upper().split()) for line in lines],
        **{f"library, {form}": partial(convert_lines, lines, form) for form in SnorForm},
        **{f"harness snor, {form}": partial(pipe, [*VERB, "--output-format", form], path) for form in SnorForm},
    }
    if shutil.which("sed"):
        works["sed, upper case"] = partial(pipe, ["sed", r"s/.*/\U&/"], path)
    if shutil.which("awk"):
        works["awk, upper case"] = partial(pipe, ["awk", "{ $1 = $1; print toupper($0) }"], path)
    rows: dict[str, Times] = {name: quickest(work, ROUNDS) for name, work in works.items()}
    base_s = rows["split, upper, join"].cpu_s
    print(f"{len(lines):,} lines; best of {ROUNDS}; times of split, upper, join in the same run")
    print(f"{'':24}{'lines/s, wall':>16}{'lines/s, processor':>20}{'times':>8}")
    for name, times in rows.items():
        lines_per_wall_s, lines_per_cpu_s = len(lines) / times.wall_s, len(lines) / times.cpu_s
        print(f"{name:24}{lines_per_wall_s:16,.0f}{lines_per_cpu_s:20,.0f}{times.cpu_s / base_s:8.1f}")


def memory(gigabytes: float) -> None:
    """Prints the verb's peak memory on so much text, with unique ids and with --repeated-ids."""
    texts = [line.rpartition("(")[0] for line in sro_lines(20_000)]
    for options in ([], ["--repeated-ids"]):
        command = [sys.executable, "-c", MEASURED_VERB, "snor", "--output-format", "lsn", *options]
        began_s = time.perf_counter()
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as verb:
            assert verb.stdin is not None
            assert verb.stderr is not None
            written_bytes = count = 0
            while written_bytes < gigabytes * 1e9:
                block = "".join(f"{text}(b{count + index:08x}sx)\n" for index, text in enumerate(texts)).encode()
                verb.stdin.write(block)
                written_bytes, count = written_bytes + len(block), count + len(texts)
            verb.stdin.close()
            peak_kb = int(verb.stderr.read())
        took_s = time.perf_counter() - began_s
        name = " ".join((f"{written_bytes / 1e9:.2f} GB, {count:,} lines", *options))
        print(f"{name}: peak {peak_kb / 1e3:.0f} MB, {took_s:.0f} s")


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
