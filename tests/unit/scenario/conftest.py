"""The drivers of this folder are installed for its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.scenario.bench_drivers import write_entry_points


@pytest.fixture(autouse=True)
def drivers(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    write_entry_points(folder)
    monkeypatch.syspath_prepend(str(folder))
    return folder
