"""Many processes that write one file at once, some of which are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(folder), kind, str(writers), str(rows), str(KILLS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.split()
