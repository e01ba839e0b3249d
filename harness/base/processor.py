"""The processor that this process runs on.

Words and scores of neural models depend on the processor, so logs record it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path

HostFacts = tuple[tuple[str, str], ...]
"""(name, value) of each fact. The facts of several hosts may contain a name more than once."""
_VECTORS = {
    "avx": "AVX",
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx_vnni": "AVX-VNNI",
    "avx512_vnni": "AVX-512 VNNI",
    "amx_int8": "AMX",
    "neon": "NEON",
    "asimd": "NEON",
    "asimddp": "dot product",
    "i8mm": "I8MM",
    "sve": "SVE",
}
"""Flag in /proc/cpuinfo → name of the instruction set, for those by which libraries of neural models choose code."""


def host_facts(cpuinfo: str | None = None) -> HostFacts:
    """Processor, instruction set, and the threads that numerical libraries may use in this process.

    cpuinfo: the text of /proc/cpuinfo, which is read by default. An engine may set fewer threads for itself.
    """
    if cpuinfo is None:
        try:
            cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            cpuinfo = ""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    flags = fields.get("flags", fields.get("Features", "")).split()
    vectors = dict.fromkeys(name for flag, name in _VECTORS.items() if flag in flags)
    return (
        ("processor", fields.get("model name") or fields.get("Model") or platform.machine()),
        ("instruction set", ", ".join((platform.machine(), *vectors))),
        ("threads", os.environ.get("OMP_NUM_THREADS") or str(len(os.sched_getaffinity(0)))),
    )


def values_by_name(facts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """One text for each name, with the values of several hosts in order of first occurrence."""
    values: dict[str, dict[str, None]] = {}  # a dict in place of a set, since it keeps the order
    for name, value in facts:
        values.setdefault(name, {})[value] = None
    return {name: "; ".join(values_of_name) for name, values_of_name in values.items()}
