"""The whole wake scenario for boards on two emulated Cortex-M4, one on a serial line and one at a broker.

About ten minutes of two processors: `make soak`. The small scenario of tests/conformance/test_wake_truth.py runs in CI.
"""

from pathlib import Path

import pytest

from tests.conformance.boards import qemu_installed
from tests.conformance.engine_runs import Runs, runs
from tests.conformance.test_wake_truth import FULL, agree, is_large_enough, run_to_its_end
from tests.conformance.wake_boards import two_qemu_boards

__all__ = ["runs"]


@pytest.mark.soak
@pytest.mark.skipif(not qemu_installed(), reason="needs qemu-system-arm and gcc-arm-none-eabi")
@pytest.mark.timeout(3600)
def test_over_200_phrases_and_half_an_hour_on_two_cortex_m4(runs: Runs, tmp_path: Path) -> None:
    with two_qemu_boards(tmp_path) as boards:
        folder = run_to_its_end(runs, FULL, boards.bench(tmp_path), 3000)
        found = agree(folder, boards, tmp_path)
    is_large_enough(found)
