from __future__ import annotations

import pytest

from harness.base.processor import host_facts, values_by_name

SERVER = """\
processor\t: 0
model\t\t: 167
model name\t: Intel(R) Xeon(R) Processor
flags\t\t: fpu sse2 avx f16c avx2 avx512f avx512bw avx512_vnni

processor\t: 1
model name\t: Intel(R) Xeon(R) Processor
flags\t\t: fpu sse2 avx f16c avx2 avx512f avx512bw avx512_vnni
"""
DESKTOP = "model name\t: AMD Ryzen 5 3600\nflags\t\t: sse2 avx avx2\n"
RASPBERRY = """\
processor\t: 0
Features\t: fp asimd evtstrm crc32 cpuid asimddp

Serial\t\t: 10000000abcdef
Model\t\t: Raspberry Pi 5 Model B Rev 1.0
"""


@pytest.mark.parametrize(
    ("described", "processor", "vectors"),
    [
        (SERVER, "Intel(R) Xeon(R) Processor", ["AVX", "AVX2", "AVX-512", "AVX-512 VNNI"]),
        (DESKTOP, "AMD Ryzen 5 3600", ["AVX", "AVX2"]),
        (RASPBERRY, "Raspberry Pi 5 Model B Rev 1.0", ["NEON", "dot product"]),
    ],
)
def test_a_processor_is_named_with_its_vector_instructions(
    described: str, processor: str, vectors: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    facts = dict(host_facts(described))
    assert (facts["processor"], facts["threads"]) == (processor, "3")
    assert facts["instruction set"].split(", ")[1:] == vectors


def test_the_processor_of_this_host_is_described() -> None:
    assert [name for name, value in host_facts() if value] == ["processor", "instruction set", "threads"]
    assert dict(host_facts(""))["processor"], "the architecture stands in for an unknown model"


def test_facts_of_several_hosts_have_one_text_for_each_name() -> None:
    assert values_by_name((("processor", "a"), ("threads", "1"), ("processor", "b"), ("processor", "a"))) == {
        "processor": "a; b",
        "threads": "1",
    }
