"""Published procedures that a scenario may follow."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from harness.model.frozen import frozen


class ProcedureName(StrEnum):
    """The published procedures that are known.

    AVS_SELF_TEST: the acoustic self-test for Alexa Built-in devices. ESP_SR: Espressif's test report.
    MLPERF_TINY: the streaming wake word benchmark.
    """

    AVS_SELF_TEST = "avs_self_test"
    ESP_SR = "esp_sr"
    MLPERF_TINY = "mlperf_tiny"


EDITIONS: Mapping[ProcedureName, tuple[str, ...]] = {
    ProcedureName.AVS_SELF_TEST: ("2023",),
    ProcedureName.ESP_SR: ("bc59cbc",),
    ProcedureName.MLPERF_TINY: ("streaming",),
}
"""The known editions of each procedure: a year, a commit of the document, or a name."""


@frozen
class Procedure:
    """A procedure in one of its editions."""

    name: ProcedureName
    edition: str
