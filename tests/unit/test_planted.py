"""The faults that are planted to test the simulated nights."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.nights.planted import FAULTS, ROOT, Planted, plant


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_planted_fault_fits_the_source(fault: Planted) -> None:
    for path, text in fault.edited().items():
        compile(text, str(path), "exec")
    if fault.unit_test:
        file, _, test = fault.unit_test.partition("::")
        assert f"def {test}(" in (ROOT / "tests" / "unit" / file).read_text(encoding="utf-8")


def test_a_fault_is_planted_in_a_copy() -> None:
    fault = FAULTS[0]
    ((path, text),) = fault.edited().items()
    program = f"import pathlib, harness; print(pathlib.Path(harness.__path__[0]) / {fault.edits[0][0]!r})"
    program += f"; assert {text!r} == pathlib.Path({str(path)!r}.replace({str(ROOT)!r}, '.')).read_text()"
    status, output = plant(fault, (sys.executable, "-c", program))
    assert status == 0, output
    assert Path(output.strip()).parent != path.parent
    assert path.read_text(encoding="utf-8") != text


def test_a_fault_that_does_not_fit_is_refused() -> None:
    fault = FAULTS[0]
    file, old, _ = fault.edits[0]
    twice = Planted(fault.name, "", fault.area, f"@ {file}\n-{old.splitlines()[1]}x\n", "")
    with pytest.raises(ValueError, match="holds this 0 times"):
        twice.edited()
