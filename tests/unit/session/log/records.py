"""Hypothesis strategies for every kind of row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

from hypothesis import strategies as st

from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import Clip, Record, SoundRedacted, SoundsRemoved
from harness.model.stimulus import StimulusRecipe
from harness.model.time import MeasuredDuration, Stamp
from harness.model.transcript import Normalisation, Rewriting
from harness.model.understanding import Slot

# A lone surrogate is no character: it has no UTF-8, and drivers decode with replacement.
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
errors = st.floats(min_value=0, allow_nan=False, allow_infinity=False)

st.register_type_strategy(str, texts)
st.register_type_strategy(float, finite)
st.register_type_strategy(int, st.integers(-(2**53), 2**53))
st.register_type_strategy(Stamp, st.builds(Stamp, at_s=finite, error_s=errors))
st.register_type_strategy(MeasuredDuration, st.builds(MeasuredDuration, value_s=finite, error_s=errors))
st.register_type_strategy(Clip, st.builds(Clip, rate_hz=st.integers(1, 192_000), samples=st.integers(0, 2**40)))


def _judgments() -> st.SearchStrategy[Judgment]:
    submitted = st.tuples(st.just(JudgmentStatus.SUBMITTED), st.sampled_from(Category))
    others = st.tuples(
        st.sampled_from([status for status in JudgmentStatus if status is not JudgmentStatus.SUBMITTED]), st.none()
    )
    return (submitted | others).flatmap(
        lambda pair: st.builds(
            Judgment,
            status=st.just(pair[0]),
            category=st.just(pair[1]),
            confidence=st.none() | st.sampled_from((1, 2, 3)),
        )
    )


st.register_type_strategy(Judgment, _judgments())
_phrases = st.lists(texts, max_size=3).map(tuple)
# A phrase has words and one meaning.
_same = st.dictionaries(_phrases.filter(bool), _phrases, max_size=3).map(lambda pairs: tuple(pairs.items()))
st.register_type_strategy(Rewriting, st.builds(Rewriting, id=texts, base=st.sampled_from(Normalisation), same=_same))

# Half a place is refused.
st.register_type_strategy(Slot, st.builds(Slot, concept=texts, value=st.none() | texts, start=st.none(), end=st.none()))

KINDS: tuple[type, ...] = get_args(Record)
recipes = st.from_type(StimulusRecipe)


_stated = st.builds(str.__add__, st.just("it was "), texts)
for kind in (SoundsRemoved, SoundRedacted):
    st.register_type_strategy(kind, st.builds(kind, reason=_stated))


def rows_of(kind: type) -> st.SearchStrategy[Record]:
    return st.from_type(kind)


KILLS = 30

# Everything is imported once; each writer is a fork that opens the file for itself and says what was acknowledged.
_FORKS = """
def write(name, count, out):
    log = opened(folder)
    number = 0
    while count is None or number < count:
        save(log, f"{name}-{number}")
        os.write(out, f"{name}-{number}\\n".encode())
        number += 1

def fork(name, count, out):
    child = os.fork()
    if child == 0:
        try:
            write(name, count, out)
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(9)
    return child

folder, kind, writers, rows, kills = Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6])
if kind == "together":
    children = [fork(f"w{number}", rows, 1) for number in range(writers)]
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
chance = random.Random(7)
for kill in range(kills):
    into, out = os.pipe()
    children = [fork(f"k{kill}-{number}", None, out) for number in range(2)]
    os.close(out)
    said = os.read(into, 1)
    time.sleep(chance.uniform(0, 0.03))
    for child in children:
        os.kill(child, signal.SIGKILL)
    while piece := os.read(into, 65536):
        said += piece
    os.close(into)
    for child in children:
        os.waitpid(child, 0)
    sys.stdout.write(said.decode())
"""


def together(folder: Path, code: str, writers: int, rows: int) -> list[str]:
    """So many writers save so many rows each; the names of what was acknowledged.

    code: Python that defines `opened(folder)` and `save(log, name)`.
    """
    return _run(folder, code, "together", writers, rows)


def killed(folder: Path, code: str) -> list[str]:
    """KILLS times two writers save until they are killed; the names of what was acknowledged before, `k<kill>-…`."""
    return _run(folder, code, "kill", 0, 0)


def _run(folder: Path, code: str, kind: str, writers: int, rows: int) -> list[str]:
    script = f"import os, random, signal, sys, time\nfrom pathlib import Path\n{code}\n{_FORKS}"
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(folder), kind, str(writers), str(rows), str(KILLS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.split()
