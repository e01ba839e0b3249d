"""The libraries that benchmarks measure against, in a virtual environment of their own, made on first use.

python benchmarks/yardsticks.py      makes it, and prints the path of its interpreter
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
    """The interpreter of the environment, which is made if PINNED or Python has changed since.

    Raises subprocess.CalledProcessError if the libraries cannot be installed. Smallest benchmarks do without the
    network: they use the test environment, which has jiwer.
    """
    if SMALLEST:
        return Path(sys.executable)
    interpreter = FOLDER / "bin" / "python"
    with PINNED.open("rb") as pinned:
        # A benchmark that starts while another one makes the environment waits here, and then finds it made.
        fcntl.flock(pinned, fcntl.LOCK_EX)
        stamp, checksum = FOLDER / ".pinned", hashlib.sha256(pinned.read() + sys.version.encode()).hexdigest()
        if not stamp.exists() or stamp.read_text() != checksum:
            venv.create(FOLDER, clear=True, with_pip=True)
            subprocess.run(
                [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", PINNED],
                check=True,
            )
            stamp.write_text(checksum)
    return interpreter


def run(script: str, *arguments: str) -> str:
    """Runs a script in the environment, and returns what it prints."""
    command = [python(), "-c", script, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    print(python())
