from __future__ import annotations

from pathlib import Path

import pytest

from harness.lab.assistant.faults import Faults
from harness.lab.assistant.settings import AssistantSettings, Deed, FaultRule, ReportKind, read_settings
from harness.model.errors import InputError

GOOD = """
assistant: kitchen
voice: {engine: flite, name: slt}
memory_s: 4
reports: []
seed: 7
faults:
  - {do: mishear, when: moons, times: 1, as: what are the names of the movies of Mars}
  - {do: late, late_s: 3.5, probability: 0.25}
  - {do: miss_wake, wakes: [2, 5]}
  - {do: wrong_value, slot: duration, as: 15 minutes}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_written_is_what_is_set(tmp_path: Path) -> None:
    settings = read_settings(written(tmp_path, GOOD))
    assert (settings.device, settings.memory_s, settings.reports) == ("kitchen", 4, frozenset())
    assert settings.voice.name == "slt"
    mishear, late, miss, wrong = settings.faults
    assert (mishear.deed, mishear.times, mishear.heard_as) == (
        Deed.MISHEAR,
        1,
        "what are the names of the movies of Mars",
    )
    assert (late.late_s, late.probability) == (3.5, 0.25)
    assert miss.wakes == {2, 5}
    assert (wrong.deed, wrong.slot, wrong.heard_as) == (Deed.WRONG_VALUE, "duration", "15 minutes")
    assert read_settings(written(tmp_path, "assistant: a")).reports == frozenset(ReportKind)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("assistant: a\nmemori_s: 3", "memory_s"),
        ("memory_s: 3", "assistant"),
        ("assistant: a/b", "assistant"),
        ("assistant: a\nmemory_s: yes", "a number"),
        ("assistant: a\nreports: [wakes]", "wake"),
        ("assistant: a\nfaults: [{do: dance}]", "mishear"),
        ("assistant: a\nfaults: [{do: mishear}]", "as"),
        ("assistant: a\nfaults: [{do: silent, as: x}]", "mishear"),
        ("assistant: a\nfaults: [{do: other_intent}]", "other_intent"),
        ("assistant: a\nfaults: [{do: lose_slot, as: x}]", "wrong_value"),
        ("assistant: a\nfaults: [{do: silent, slot: x}]", "lose_slot"),
        ("assistant: a\nfaults: [{do: silent, when: '('}]", "regular expression"),
        ("assistant: a\nfaults: [{do: silent, late_s: 3}]", "late"),
        ("assistant: a\nfaults: [{do: miss_wake, when: x}]", "no text"),
        ("assistant: a\nfaults: [{do: silent, probability: 2}]", "at most 1"),
        ("assistant: a\nvoice: {engine: flit, name: rms}", "'flite'"),
        ("assistant: a\nwake_engine: microwakewrd", "'microwakeword'"),
        ("assistant: a\nrecogniser: whisper", "faster_whisper"),
        ("assistant: a\nrings: 0", "1"),
        ("assistant: a\nassistant: b", "twice"),
        ("", "empty"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(written(tmp_path, text))
    assert word in str(caught.value)
    assert "settings.yaml:" in str(caught.value)


def test_a_mishearing_for_one_time_happens_once_even_over_a_restart() -> None:
    import re

    rules = (FaultRule(Deed.MISHEAR, when=re.compile("moons", re.I), times=1, heard_as="movies"),)
    faults = Faults(rules, 0)
    assert faults.worsen(1, "what time is it").text == "what time is it"
    assert faults.worsen(2, "Moons of Mars").text == "movies"
    assert faults.worsen(3, "Moons of Mars").text == "Moons of Mars"
    assert Faults(rules, 0, faults.used).worsen(1, "moons").text == "moons"


def test_chance_is_the_same_for_the_same_seed_and_about_as_often_as_said() -> None:
    rules = (FaultRule(Deed.SILENT, probability=0.3),)
    runs = [[Faults(rules, seed).worsen(1, "x").deeds for seed in range(400)] for _ in range(2)]
    assert runs[0] == runs[1]
    assert 80 < sum(map(len, runs[0])) < 160


def test_wakes_are_missed_by_number_and_deeds_add_up() -> None:
    faults = Faults(
        (
            FaultRule(Deed.MISS_WAKE, wakes=frozenset({2})),
            FaultRule(Deed.LATE, late_s=2),
            FaultRule(Deed.LATE, late_s=5, wakes=frozenset({3})),
            FaultRule(Deed.TWO_PART_ANSWER, wakes=frozenset({3})),
        ),
        0,
    )
    assert [faults.misses(wake) for wake in (1, 2, 3)] == [False, True, False]
    assert faults.worsen(1, "x").late_s == 2
    worse = faults.worsen(3, "x")
    assert (worse.late_s, worse.deeds) == (5, {Deed.LATE, Deed.TWO_PART_ANSWER})


def test_the_defaults_are_well_behaved() -> None:
    settings = AssistantSettings()
    assert settings.faults == ()
    assert settings.reports == frozenset(ReportKind)
