"""Places of recordings other than lists: folders, patterns, archives, standard input, and manifests with columns.

Each becomes a list, with what is known of every file as columns: its folder, or the columns of a manifest.
"""

from __future__ import annotations

import glob
import hashlib
import io
import math
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.base.places import similar_path
from harness.base.text_file import shown
from harness.model.errors import InputError, Place, nearest
from harness.model.frozen import frozen
from harness.model.offline import LabelledPhrase
from harness.sound.manifests import AUDIO, MANIFESTS, TEXT, column_of, read_manifest

SOUND_ENDINGS = (".wav", ".flac", ".aiff", ".aif", ".w64", ".caf", ".au", ".sph", ".rf64", ".bw64")
OTHER_SOUND_ENDINGS = (".mp3", ".ogg", ".opus", ".m4a", ".webm")
"""Endings of sounds that no engine can play. They are collected too, so that the log reports them as rejected."""
FOLDER = "folder"
"""Name of the column that collected files have without a manifest."""
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
PHRASE_END = "phrase_end_s"
"""Column of a manifest: where the phrase ends, in seconds."""
_MANIFEST_REMEDY = f"Name the column of the sound files {AUDIO[0]} or {', '.join(AUDIO[1:])}"


@frozen
class CollectedFiles:
    """The recordings at a place, such as a folder or a manifest.

    - place: its name, as given.
    - names: names of the recordings.
    - columns: for each column by name, the value for each recording; "" for none.
    - folder: where relative names are looked up after the current folder; None for the current folder only.
    - labels: for each recording, its labelled phrases; () without labels.
    - texts: for each recording, its reference; () if there are none.
    """

    place: str
    names: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]
    folder: str | None = None
    labels: tuple[tuple[LabelledPhrase, ...], ...] = ()
    texts: tuple[str, ...] = ()

    def content(self) -> bytes:
        """The names as the content of a list: one in each line."""
        return "".join(f"{name}\n" for name in self.names).encode("utf-8", "surrogateescape")

    def sha256(self) -> str | None:
        """Hash of the names, labels and texts; None if there are only names, where the hash of the list is enough."""
        if not self.labels and not self.texts:
            return None
        # Texts are left out if there are none, so that journals of versions without texts can still be resumed.
        details = repr(self.labels) + (repr(self.texts) if self.texts else "")
        return hashlib.sha256(self.content() + details.encode("utf-8", "surrogatepass")).hexdigest()


def collect_files(place: str, encoding: str | None = None) -> CollectedFiles:
    """The recordings of a folder, a sound file, a pattern, a .zip, a manifest, or `-`. Raises InputError for none.

    encoding: encoding of a manifest; None for UTF-8.
    """
    if place == "-":
        lines = io.TextIOWrapper(sys.stdin.buffer, "utf-8-sig", errors="surrogateescape", newline="\n")
        return _files_of_names(place, [line.rstrip("\r\n") for line in lines if line.strip()])
    lower = place.lower()
    path = Path(place)
    if path.is_dir():
        return _files_of_names(place, list(_sounds_below(place)))
    if path.is_file():
        if _is_sound(place):
            return _files_of_names(place, [place])
        if lower.endswith(".zip"):
            return _files_of_zip(place)
        if lower.endswith(MANIFESTS):
            return _files_of_manifest(place, encoding)
    if lower.endswith(_TAR):
        remedy = f"Unpack the archive with `tar xf {place}`, then use the folder"
        raise InputError("sound files in a tar archive cannot be read directly", place=Place(place), remedy=remedy)
    if glob.has_magic(place):
        names = [name for entry in sorted(glob.glob(place, recursive=True)) for name in _sounds_of_match(entry)]
        if not names:
            raise InputError("no sound file matches this pattern", place=Place(place), remedy="Check it with `ls`")
        return _files_of_names(place, names)
    if path.is_file():
        manifests = ", ".join(MANIFESTS)
        remedy = "Use -i or --oov for a list of files. "
        remedy += f"This option takes a folder, a sound file, a .zip of sound files, or a manifest ({manifests})"
        raise InputError("this is neither a folder nor a sound file", place=Place(place), remedy=remedy)
    raise InputError("there is no such file or folder", place=Place(place), remedy=similar_path(path))


def _files_of_names(place: str, names: Sequence[str]) -> CollectedFiles:
    """The recordings with their folders as a column.

    Raises InputError for no names, or for one that no list can hold.
    """
    if not names:
        raise InputError(
            "no sound files were found", place=Place(place), remedy=f"Supported: {', '.join(SOUND_ENDINGS)}"
        )
    for name in names:
        if "\n" in name:
            raise InputError(f"the name {name!r} contains a line break", place=Place(place), remedy="Rename the file")
    top = place if Path(place).is_dir() else ""
    folders = (os.path.relpath(os.path.dirname(name), top) if top else os.path.dirname(name) for name in names)
    return CollectedFiles(place, tuple(names), {FOLDER: tuple("" if folder == "." else folder for folder in folders)})


def _sounds_of_match(name: str) -> Iterator[str]:
    """The sounds for one match of a pattern: the file itself if it is a sound, or all sounds below the folder."""
    if os.path.isdir(name):
        yield from _sounds_below(name)
    elif _is_sound(name):
        yield name


def _sounds_below(folder: str) -> Iterator[str]:
    """The sound files below a folder, in the order of their names. A folder that is reached again by a link is left
    out."""
    visited: set[str] = set()
    for top, subfolders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(top)
        if real in visited:
            subfolders.clear()  # os.walk then does not enter them
            continue
        visited.add(real)
        subfolders.sort()
        yield from (os.path.join(top, name) for name in sorted(files) if _is_sound(name))


def _is_sound(name: str) -> bool:
    return name.lower().endswith((*SOUND_ENDINGS, *OTHER_SOUND_ENDINGS))


def _files_of_zip(place: str) -> CollectedFiles:
    """The sounds in an archive. Their names are addresses by which they can be read in place."""
    try:
        with zipfile.ZipFile(place) as archive:
            inside = sorted(name for name in archive.namelist() if _is_sound(name))
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(
            f"this archive cannot be read: {error}", place=Place(place), remedy="Create the archive again"
        ) from error
    files = _files_of_names(place, inside)
    names = tuple(f"zip://{name}::file://{os.path.abspath(place)}" for name in inside)
    return CollectedFiles(place, names, files.columns)


def _files_of_manifest(place: str, encoding: str | None) -> CollectedFiles:
    """The recordings of a manifest, with its other columns. Raises InputError for a row without a recording."""
    table = read_manifest(place, encoding)
    audio, text = column_of(table.header, AUDIO), column_of(table.header, TEXT)
    if audio is None:
        raise InputError("no column lists the sound files", place=Place(place, table.line), remedy=_MANIFEST_REMEDY)
    for row in table.rows:
        if not row.cells.get(audio):
            remedy = "Add the name of the sound file, or remove the row"
            raise InputError(f"the column {audio} is empty", place=Place(place, row.line), remedy=remedy)
    files = _files_of_names(place, [row.cells[audio] for row in table.rows])
    columns = {name: tuple(row.cells.get(name, "") for row in table.rows) for name in table.header}
    texts = columns[text] if text is not None else ()
    other_columns = {name: values for name, values in columns.items() if name and name != audio}
    folder = os.path.dirname(os.path.abspath(place))
    return CollectedFiles(place, files.names, files.columns | other_columns, folder, texts=texts)


def demand_phrase_ends(files: CollectedFiles) -> None:
    """Raises InputError for a cell of PHRASE_END that is not a time in seconds. An empty cell means that its end is not
    known."""
    for name, text in zip(files.names, files.columns.get(PHRASE_END, ()), strict=False):
        try:
            end_s = float(text or 0)
        except ValueError:
            end_s = math.nan
        if not (math.isfinite(end_s) and end_s >= 0):
            problem = f"the {PHRASE_END} of {shown(name)} is not a time in seconds: {shown(text)}"
            raise InputError(problem, place=Place(files.place), remedy="Write seconds, or leave the cell empty")


def demand_columns(column_names: Sequence[str], required: Sequence[str]) -> None:
    """Raises InputError for a required column that no place has."""
    for name in required:
        if name not in column_names:
            columns = sorted(set(column_names))
            remedy = nearest(name, columns, listed="Columns") if column_names else "Use --in with folders or a manifest"
            raise InputError(f"no recording has the column {name!r}", remedy=remedy)
