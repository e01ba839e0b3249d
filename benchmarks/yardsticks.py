"""The libraries that benchmarks measure against, in a virtual environment of their own, made on first use.

python benchmarks/yardsticks.py      makes it
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import venv
from pathlib import Path

from sizes import SMALLEST

FOLDER = Path(__file__).parent / ".venv"
PINNED = Path(__file__).parent / "yardsticks.txt"


def python() -> Path:
    """The interpreter that has them; subprocess.CalledProcessError when they cannot be installed.

    Smallest benchmarks do without the network: they use the test environment, which has jiwer.
    """
    if SMALLEST:
        return Path(sys.executable)
    found = FOLDER / "bin" / "python"
    with PINNED.open("rb") as pinned:
        # Whoever comes while another makes it waits, and then finds it made.
        fcntl.flock(pinned, fcntl.LOCK_EX)
        stamp, wanted = FOLDER / ".pinned", hashlib.sha256(pinned.read() + sys.version.encode()).hexdigest()
        if not stamp.exists() or stamp.read_text() != wanted:
            venv.create(FOLDER, clear=True, with_pip=True)
            subprocess.run(
                [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", PINNED], check=True
            )
            stamp.write_text(wanted)
    return found


def run(script: str, *arguments: str) -> str:
    """What a script prints that is run there."""
    done = subprocess.run([python(), "-c", script, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


if __name__ == "__main__":
    print(python())
