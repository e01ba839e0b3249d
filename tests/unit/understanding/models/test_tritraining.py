"""Tri-training teaches what two agree on, and ends; a model's folder is whole or not there."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.annotation.desk import AnnotationDesk
from harness.annotation.ledger import Ledger
from harness.annotation.proposal_batch import training_material, vote_batch
from harness.annotation.report import annotation_report
from harness.annotation.worklist import Worklist
from harness.model.annotation import (
    IMPORTED,
    Accepted,
    AnnotationProject,
    AnnotationRow,
    Label,
    Labelled,
    LabelProposal,
    LabelSet,
    Proposed,
    Struck,
)
from harness.model.choices import EpisodesEnding
from harness.model.errors import InputError, PluginError
from harness.model.understanding import Corpus, Utterance
from harness.understanding.models.model_folder import MODEL_FILE, VERSION, load_model, save_model
from harness.understanding.models.training import LoadedUnderstander, train
from harness.understanding.models.tritraining import TriRule, TriTraining, classifier_maker, sampled_indices, tri_train
from harness.understanding.models.votes import Intents, vote
from tests.unit.annotation.sittings import (
    LABEL_SET,
    SPOKEN_LABELS,
    AddsWell,
    DropsTheSecond,
    Knowing,
    SwapsTwo,
    review,
    spoken,
)
from tests.unit.understanding.models.learned_from import silent, tea


@pytest.mark.parametrize("wrong", [Knowing, DropsTheSecond, SwapsTwo, AddsWell])
def test_simulated_reviewer_strikes_exactly_the_wrong_proposals(wrong: type[Knowing]) -> None:
    utterances = spoken(240)
    gold = {utterance.id: utterance.intents or () for utterance in utterances}
    rows: list[AnnotationRow] = [
        Labelled(f"i{utterance.id}", IMPORTED, utterance.id, gold[utterance.id]) for utterance in utterances[:60]
    ]
    used = training_material(
        utterances,
        {utterance.id: gold[utterance.id] for utterance in utterances[:60]},
        frozenset(gold),
        LABEL_SET,
        seed=3,
        share=0.2,
    )
    training = tri_train(
        used.train, used.held_out, used.unlabelled, lambda seed: wrong({}, seed=seed), SPOKEN_LABELS,
        refusal=LABEL_SET.refusal,
    )  # fmt: skip
    rows.append(vote_batch(training, used, id_="b", classifier="wrong", wall_s=1.0))
    proposed = {outcome.utterance: outcome.intents for outcome in training.voted}
    mistaken = {id_ for id_, intents in proposed.items() if intents is not None and intents != gold[id_]}
    assert bool(mistaken) is (wrong in (DropsTheSecond, SwapsTwo))

    project = AnnotationProject("p", len(utterances), page_size=7)
    bare = [replace(utterance, intents=None) for utterance in utterances]
    struck = review(AnnotationDesk(Worklist("ann", project, LABEL_SET, bare, rows, rows.extend)), gold)

    assert struck == mistaken
    ledger = Ledger(LABEL_SET, rows)
    final = {utterance.id: ledger.status_of(utterance.id, 1).intents for utterance in utterances}
    assert final == gold
    report = annotation_report(utterances, rows, gold)
    in_rows = Counter(type(row) for row in rows for _ in getattr(row, "utterances", "1"))
    without = [id_ for id_, intents in proposed.items() if intents is None]
    assert (report.labelled_before, report.proposed, report.final) == (60, 180, 240)
    assert (report.struck, report.accepted) == (in_rows[Struck], in_rows[Accepted]) == (
        len(mistaken), 180 - len(mistaken) - len(without),
    )  # fmt: skip
    assert report.without_consensus == report.refused == len(without)
    assert bool(without) is (wrong is AddsWell)
    assert (report.for_person.count, report.for_person.total) == (len(mistaken) + len(without), 180)
    assert (report.by_hand, report.by_review, report.by_import) == (
        len(mistaken) + len(without), 180 - len(mistaken) - len(without), 60,
    )  # fmt: skip
    assert report.by_hand == len(
        {row.utterance for row in rows if isinstance(row, Labelled) and row.annotator == "ann"}
    )
    assert sum(counts.intents_given for counts in report.splits.values()) == sum(map(len, gold.values()))
    # That all three agree is no proof: here they always do.
    assert report.unanimous == report.consensus
    assert report.unanimous_struck == len(mistaken)


def test_undone_decisions_are_not_counted() -> None:
    utterances = spoken(12)
    gold = {utterance.id: utterance.intents or () for utterance in utterances}
    voted = vote(
        [utterance.id for utterance in utterances],
        [SwapsTwo({}, seed=1).probabilities([utterance.text for utterance in utterances])] * 3,
        SPOKEN_LABELS,
        0.5,
        LABEL_SET.refusal,
    )
    rows: list[AnnotationRow] = [
        Proposed("b", "t", tuple(LabelProposal(outcome.utterance, outcome.intents, outcome.votes) for outcome in voted))
    ]
    desk = AnnotationDesk(
        Worklist("ann", AnnotationProject("p", 12, page_size=50), LABEL_SET, utterances, rows, rows.extend)
    )
    desk.strike_number(1)
    desk.accept_page()
    assert annotation_report(utterances, rows, {}).struck == 1
    desk.undo()
    report = annotation_report(utterances, rows, {})
    assert (report.struck, report.accepted, report.unreviewed) == (0, 0, 12)
    review(desk, gold)
    assert annotation_report(utterances, rows, gold).struck == sum(
        outcome.intents is not None and outcome.intents != gold[outcome.utterance] for outcome in voted
    )


@pytest.mark.parametrize("may_be_empty", [True, False])
def test_votes_match_a_slow_reference_implementation(may_be_empty: bool) -> None:
    draw = np.random.default_rng(4)
    three = [draw.random((300, 2)) for _ in range(3)]
    excluded = "a and b are mutually exclusive"

    def refusal(intents: Intents) -> str:
        return excluded if len(intents) == 2 else "" if intents or may_be_empty else "empty"

    outcomes = vote([str(number) for number in range(300)], three, ["b", "a"], 0.5, refusal)
    for row, outcome in enumerate(outcomes):
        sets = [tuple(sorted(label for label, p in zip("ba", table[row], strict=True) if p > 0.5)) for table in three]
        if not may_be_empty:
            best = ["ba"[int(table[row].argmax())] for table in three]
            sets = [labels or (label,) for labels, label in zip(sets, best, strict=True)]
        most, votes = Counter(sets).most_common(1)[0]
        assert outcome.votes == tuple(sets)
        stands = not refusal(most)
        assert outcome.intents == (most if votes >= 2 and stands else None)
        assert bool(outcome.refused) is (votes >= 2 and not stands)
        assert outcome.unanimous is (votes == 3 and stands)
        assert may_be_empty or () not in outcome.votes


def test_where_empty_is_not_allowed_no_agreement_on_it_is_refused_or_taught() -> None:
    """Many labels and few examples: one-vs-rest gives most texts no label above the threshold."""
    labels = [f"l{number}" for number in range(12)]
    label_set = LabelSet("t", "T", tuple(Label(label) for label in labels))
    utterances = [Utterance(f"u{n}", (f"w{n % 12}", f"x{n % 7}", f"y{n}"), (labels[n % 12],)) for n in range(120)]
    parts = utterances[:24], utterances[24:36], utterances[36:]
    training = tri_train(
        *parts, classifier_maker("tfidf"), labels, rule=TriRule(threshold=0.9), refusal=label_set.refusal
    )
    assert not [outcome for outcome in training.voted if outcome.refused or () in outcome.votes]
    allowed = replace(label_set, may_be_empty=True)
    empty = tri_train(*parts, classifier_maker("tfidf"), labels, rule=TriRule(threshold=0.9), refusal=allowed.refusal)
    assert sum(outcome.intents == () for outcome in empty.voted) > 20


def test_every_label_is_in_every_sample_and_samples_differ() -> None:
    sets: list[Intents] = [("rare",), *[("often",)] * 500, ("rare", "rarer"), *[("often", "odd")] * 3]
    samples = [sampled_indices(sets, 0.5, f"seed {number}") for number in range(20)]
    for sample in samples:
        assert len(sample) == len(set(sample)) == round(0.5 * len(sets))
        assert {label for index in sample for label in sets[index]} == {"rare", "rarer", "often", "odd"}
    assert len({tuple(sample) for sample in samples}) == 20
    assert sampled_indices(sets, 0.5, "seed 3") == samples[3]


def test_third_model_learns_what_the_other_two_agree_on() -> None:
    classifiers: list[Knowing] = []

    class Third(Knowing):
        """Two that know, and one that hears everything in everything."""

        def said(self, spoken: list[str]) -> list[str]:
            return list(SPOKEN_LABELS) if classifiers.index(self) == 2 else spoken

    def make(seed: int) -> Knowing:
        classifiers.append(Third({}, seed=seed))
        return classifiers[-1]

    utterances = spoken(90)
    train, held_out, rest = utterances[:40], utterances[40:60], utterances[60:]
    training = tri_train(train, held_out, rest, make, SPOKEN_LABELS, refusal=LABEL_SET.refusal)
    texts = {utterance.text: utterance.intents for utterance in rest}
    taught = dict(classifiers[2].seen[1][training.best.samples[2] :])
    assert taught == texts
    # The other two learn nothing: each would need the third's word.
    assert training.best.episodes[1].taught == (0, 0, len(texts))
    for classifier in classifiers:
        for training_texts in classifier.seen:
            assert not {text for text, _ in training_texts} & {utterance.text for utterance in held_out}
    assert all(outcome.intents == texts[" ".join(u.words)] for outcome, u in zip(training.voted, rest, strict=True))
    assert training.best.ending is EpisodesEnding.SETTLED


def test_models_that_cycle_are_stopped() -> None:
    class Turning(Knowing):
        """Says now this, now that."""

        def said(self, spoken: list[str]) -> list[str]:
            return [SPOKEN_LABELS[len(self.seen) % 2]]

    utterances = spoken(60)
    training = tri_train(
        utterances[:30], utterances[30:40], utterances[40:], lambda seed: Turning({}, seed=seed), SPOKEN_LABELS
    )
    assert training.best.ending is EpisodesEnding.CIRCLING
    assert len(training.best.episodes) == 4


def _mumbled(count: int, seed: int) -> list[Utterance]:
    """Utterances whose words only hint at their intents."""
    draw = random.Random(seed)
    return [
        replace(utterance, words=tuple(word for word in utterance.words if draw.random() < 0.7) or ("um",))
        for utterance in spoken(count, seed)
    ]


def _trained(seed: int, triads: int = 1) -> TriTraining:
    utterances = _mumbled(260, 5)
    return tri_train(
        utterances[:80], utterances[80:130], utterances[130:], classifier_maker("tfidf"), SPOKEN_LABELS,
        rule=TriRule(seed, triads), refusal=LABEL_SET.refusal,
    )  # fmt: skip


def test_the_same_seed_gives_the_same_and_another_one_another() -> None:
    first = _trained(1)
    assert first == _trained(1)
    assert first.voted != _trained(2).voted


def test_the_best_of_several_triads_is_kept() -> None:
    training = _trained(1, triads=4)
    assert len(training.triads) == 4
    assert training.best.exact.count == max(triad.exact.count for triad in training.triads)
    assert training.figures.exact == training.best.exact
    assert training.triads[0].episodes == _trained(1).best.episodes


def test_an_utterance_cannot_be_in_two_parts_and_shared_texts_are_told() -> None:
    utterances = spoken(40)
    make = classifier_maker("tfidf")
    for parts in (
        (utterances[:20], utterances[19:30], utterances[30:]),
        (utterances[:20], utterances[20:30], utterances[29:]),
    ):
        with pytest.raises(ValueError, match="occurs twice"):
            tri_train(*parts, make, SPOKEN_LABELS)
    copies = [replace(utterance, id=f"again {utterance.id}") for utterance in utterances[:3]]
    training = tri_train(
        utterances[:20], [*utterances[20:30], copies[0]], [*utterances[30:], *copies[1:]], make, SPOKEN_LABELS
    )
    assert (training.known_texts, training.shared_texts) == (2, 1)
    with pytest.raises(ValueError, match="not labelled"):
        tri_train([replace(utterances[0], intents=None)], utterances[1:3], utterances[3:], make, SPOKEN_LABELS)


def test_too_little_is_refused_with_what_is_needed() -> None:
    utterances = spoken(100)
    gold = {utterance.id: utterance.intents or () for utterance in utterances}

    def of(count: int, labels: dict[str, Intents] = gold, **more: object) -> object:
        final = {utterance.id: labels[utterance.id] for utterance in utterances[:count]}
        return training_material(utterances, final, frozenset(gold), LABEL_SET, **{"seed": 1, "share": 0.2, **more})  # type: ignore[arg-type]

    with pytest.raises(InputError, match=r"29 utterances are labelled.*at least 30"):
        of(29)
    with pytest.raises(InputError, match="the same labels"):
        of(50, dict.fromkeys(gold, ("ask",)))
    with pytest.raises(InputError, match="every utterance is labelled"):
        of(100)
    with pytest.raises(InputError, match="0 of 50 labelled utterances are held out"):
        of(50, split="dev")
    of(30)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> LoadedUnderstander:
    learned, others = tea(tmp_path_factory.mktemp("tea"), train=60, test=20)
    data, held_out = Corpus("tea", tuple(learned)), Corpus("tea", tuple(others))
    return train("crf", (("iterations", "15"),), 4, data, held_out, silent)


@pytest.fixture
def folder(trained: LoadedUnderstander, tmp_path: Path) -> Path:
    path = tmp_path / "model"
    save_model(trained.name, trained.understander, path, trained.facts)
    return path


def test_a_model_comes_back_with_its_facts(folder: Path, trained: LoadedUnderstander) -> None:
    loaded = load_model(folder)
    assert loaded.facts == trained.facts
    assert loaded.name == "crf"
    texts = [("brew", "some", "green", "tea"), ()]
    predictions = loaded.understander.predict(texts)
    assert predictions == trained.understander.predict(texts)
    assert predictions[1].intents == ()
    facts = trained.facts
    assert (facts.seed, facts.settings, facts.utterances) == (4, (("iterations", "15"),), 60)
    assert facts.intents == ("ask", "brew", "stop")
    assert dict(facts.held_out).keys() == {"emr", "slot_f1", "sfa"}
    assert dict(facts.packages).keys() >= {"python", "python-crfsuite", "scikit-learn"}


def test_existing_model_is_replaced_only_with_force(folder: Path, trained: LoadedUnderstander) -> None:
    (folder / "note").write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        save_model(trained.name, trained.understander, folder, trained.facts)
    assert (folder / "note").read_text() == "mine"
    save_model(trained.name, trained.understander, folder, trained.facts, force=True)
    assert not (folder / "note").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_force_does_not_replace_a_folder_without_a_model(tmp_path: Path, trained: LoadedUnderstander) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    with pytest.raises(InputError, match="is not replaced"):
        save_model(trained.name, trained.understander, home, trained.facts, force=True)
    assert (home / "letter").read_text() == "dear"


class Unwritable:
    """An understander whose disk is full."""

    def save(self, folder: Path) -> None:
        (folder / "half").write_text("a")
        raise OSError(28, "No space left on device")


def test_a_failed_writing_leaves_the_model_as_it_was(folder: Path, trained: LoadedUnderstander) -> None:
    before = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
    with pytest.raises(Exception, match="No space left"):
        save_model("crf", Unwritable(), folder, trained.facts, force=True)  # type: ignore[arg-type]
    assert sorted((path.name, path.read_bytes()) for path in folder.iterdir()) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_every_changed_file_is_named(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir() if path.name != MODEL_FILE)
    assert len(names) == 6
    for name in names:
        whole = (folder / name).read_bytes()
        for damaged in (whole[:-1], whole[:10] + bytes([whole[10] ^ 1]) + whole[11:], b"", None):
            (folder / name).unlink()
            if damaged is not None:
                (folder / name).write_bytes(damaged)
            with pytest.raises(InputError) as caught:
                load_model(folder)
            assert str(caught.value.place) == str(folder / name)
        (folder / name).write_bytes(whole)
    load_model(folder)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("kind", "a cake", "not an understander model"),
        ("version", VERSION + 1, "reads up to"),
        ("version", "1", "reads up to"),
        ("understander", 3, "not name an understander"),
        ("seed", "one", "description is damaged"),
        ("intents", [1], "description is damaged"),
        ("settings", [["a"]], "description is damaged"),
        ("cpu_s", None, "description is damaged"),
        ("files", {"../../etc/passwd": "0"}, "outside"),
        ("files", ["a"], "not list the files"),
    ],
)
def test_a_foreign_or_newer_model_file_is_refused(folder: Path, key: str, value: object, message: str) -> None:
    path = folder / MODEL_FILE
    content = json.loads(path.read_text())
    if value is None:
        del content[key]
    else:
        content[key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message) as caught:
        load_model(folder)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"[1]", b"{", b"[" * 100_000])
def test_missing_or_invalid_model_file_is_refused(folder: Path, content: bytes | None) -> None:
    (folder / MODEL_FILE).unlink()
    if content is not None:
        (folder / MODEL_FILE).write_bytes(content)
    with pytest.raises(InputError, match=MODEL_FILE if content is not None else "contains no model"):
        load_model(folder)


def test_a_model_of_a_plugin_that_is_not_installed_lists_those_that_are(folder: Path) -> None:
    path = folder / MODEL_FILE
    path.write_text(path.read_text().replace('"understander": "crf"', '"understander": "crg"'))
    with pytest.raises(PluginError, match="Did you mean 'crf'"):
        load_model(folder)
