"""The firmware, built once for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.boards import built


@pytest.fixture(scope="session")
def firmware_host_tests() -> Path:
    """The folder with the core's host tests and fuzz targets, compiled under the sanitizers."""
    return built("sane")


@pytest.fixture(scope="session")
def vh_spot() -> Path:
    return built("host") / "vh_spot"
