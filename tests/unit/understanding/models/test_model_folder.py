"""A model's folder is whole or not there; damaged, foreign and newer ones are refused with the file named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.model.errors import InputError, PluginError
from harness.model.understanding import Corpus
from harness.understanding.models.model_folder import MODEL_FILE, VERSION, load_model, save_model
from harness.understanding.models.training import LoadedUnderstander, train
from tests.unit.understanding.models.learned_from import tea


def silent(line: str) -> None:
    pass


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
    said = loaded.understander.predict(texts)
    assert said == trained.understander.predict(texts)
    assert said[1].intents == ()
    facts = trained.facts
    assert (facts.seed, facts.settings, facts.utterances) == (4, (("iterations", "15"),), 60)
    assert facts.intents == ("ask", "brew", "stop")
    assert dict(facts.held_out).keys() == {"emr", "slot_f1", "sfa"}
    assert dict(facts.packages).keys() >= {"python", "python-crfsuite", "scikit-learn"}


def test_one_that_is_there_is_replaced_only_on_demand(folder: Path, trained: LoadedUnderstander) -> None:
    (folder / "note").write_text("mine")
    with pytest.raises(InputError, match="there already"):
        save_model(trained.name, trained.understander, folder, trained.facts)
    assert (folder / "note").read_text() == "mine"
    save_model(trained.name, trained.understander, folder, trained.facts, force=True)
    assert not (folder / "note").exists()
    assert [one.name for one in folder.parent.iterdir()] == ["model"]


def test_force_spares_what_is_no_model(tmp_path: Path, trained: LoadedUnderstander) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    with pytest.raises(InputError, match="left alone"):
        save_model(trained.name, trained.understander, home, trained.facts, force=True)
    assert (home / "letter").read_text() == "dear"


class Unwritable:
    """An understander whose disk is full."""

    def save(self, folder: Path) -> None:
        (folder / "half").write_text("a")
        raise OSError(28, "No space left on device")


def test_a_failed_writing_leaves_the_model_as_it_was(folder: Path, trained: LoadedUnderstander) -> None:
    before = sorted((one.name, one.read_bytes()) for one in folder.iterdir())
    with pytest.raises(Exception, match="No space left"):
        save_model("crf", Unwritable(), folder, trained.facts, force=True)  # type: ignore[arg-type]
    assert sorted((one.name, one.read_bytes()) for one in folder.iterdir()) == before
    assert [one.name for one in folder.parent.iterdir()] == ["model"]


def test_every_changed_file_is_named(folder: Path) -> None:
    names = sorted(one.name for one in folder.iterdir() if one.name != MODEL_FILE)
    assert len(names) == 6
    for name in names:
        whole = (folder / name).read_bytes()
        for damaged in (whole[:-1], whole[:10] + bytes([whole[10] ^ 1]) + whole[11:], b""):
            (folder / name).write_bytes(damaged)
            with pytest.raises(InputError) as caught:
                load_model(folder)
            assert str(caught.value.place) == str(folder / name)
        (folder / name).unlink()
        with pytest.raises(InputError) as caught:
            load_model(folder)
        assert str(caught.value.place) == str(folder / name)
        (folder / name).write_bytes(whole)
    load_model(folder)


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("kind", "a cake", "no model of an understander"),
        ("version", VERSION + 1, "reads up to"),
        ("version", "1", "reads up to"),
        ("understander", 3, "which understander"),
        ("seed", "one", "facts are damaged"),
        ("intents", [1], "facts are damaged"),
        ("settings", [["a"]], "facts are damaged"),
        ("cpu_s", None, "facts are damaged"),
        ("files", {"../../etc/passwd": "0"}, "outside"),
        ("files", ["a"], "which files"),
    ],
)
def test_a_foreign_or_newer_model_file_is_refused(folder: Path, key: str, value: object, what: str) -> None:
    path = folder / MODEL_FILE
    found = json.loads(path.read_text())
    if value is None:
        del found[key]
    else:
        found[key] = value
    path.write_text(json.dumps(found))
    with pytest.raises(InputError, match=what) as caught:
        load_model(folder)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[1]", b"{", b"[" * 100_000])
def test_a_model_file_that_is_none_is_refused(folder: Path, content: bytes) -> None:
    (folder / MODEL_FILE).write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_model(folder)
    assert MODEL_FILE in str(caught.value)


def test_a_model_of_a_plugin_that_is_not_installed_lists_those_that_are(folder: Path) -> None:
    path = folder / MODEL_FILE
    path.write_text(path.read_text().replace('"understander": "crf"', '"understander": "crg"'))
    with pytest.raises(PluginError, match="Did you mean 'crf'"):
        load_model(folder)


def test_a_folder_without_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model here"):
        load_model(tmp_path)
