"""What a cluster's workers are told of an evaluation, and what they must see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.model.offline import (
    EngineFacts,
    EngineKind,
    Evaluation,
    ListedFile,
    ListKind,
    RejectReason,
    SpotRule,
    Task,
)
from harness.offline.cluster_worker import ClusterOrder, likeness, probes_of, shortly
from harness.offline.pool import WorkerLimits


def test_an_order_comes_back_as_it_went() -> None:
    evaluation = Evaluation(Task("microwakeword", "/models/a.tflite", (("threshold", "0.5"),)), resample=True)
    order = ClusterOrder(
        "1f", "0.1.0", evaluation, WorkerLimits(hang_after_s=7), (("/a.wav",), ("s3://b/c", "é\n")), "00", True
    )
    assert ClusterOrder.of(order.told()) == order


def test_each_list_is_looked_for_by_the_first_file_that_is_here(tmp_path: Path) -> None:
    names = ["a.wav", "a.txt", "b.wav"]
    for name in names:
        (tmp_path / name).touch()
    a, text, b = (str(tmp_path / name) for name in names)
    gone = str(tmp_path / "gone.wav")
    files = [
        ListedFile(ListKind.REFERENCED, 0, "gone", gone, 1),
        ListedFile(ListKind.REFERENCED, 1, "twice", b, 2, rejected=RejectReason.TWICE),
        ListedFile(ListKind.REFERENCED, 2, "a", a, 3, text),
        ListedFile(ListKind.OOV, 0, "b", b, 1),
        ListedFile(ListKind.OOV, 1, "a", a, 2),
        # The second list of that kind.
        *(ListedFile(ListKind.OOV, 2 + at, f"{at}", f"{gone}{at}", 1 + at) for at in range(5)),
    ]
    probes = probes_of(files)
    assert probes == ((a,), (text,), (b,), (f"{gone}0", f"{gone}1", f"{gone}2"))
    order = ClusterOrder("1f", "0.1.0", Evaluation(Task("e", "m")), WorkerLimits(), probes)
    assert order.unseen().startswith(f"{gone}0 cannot be read there (")
    Path(f"{gone}2").touch()
    assert order.unseen() == ""


def test_engines_are_alike_whichever_of_equal_paths_they_take() -> None:
    facts = EngineFacts(EngineKind.WAKE, "1", 16000, ("boom",), "00", rule=SpotRule(0.5, 16000, 8000))
    assert likeness(facts) == likeness(replace(facts, settings=(("path", "streaming"),)))
    for other in (replace(facts, version="2"), replace(facts, fingerprint="01"), replace(facts, rule=None)):
        assert likeness(other) != likeness(facts)


def test_many_names_are_told_shortly() -> None:
    assert shortly(["a", "b"]) == "a, b"
    assert shortly(list("abcdef")) == "a, b, c and 3 more"
