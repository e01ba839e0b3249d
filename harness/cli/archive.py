"""`harness admin pack` and `harness admin unpack`: a session as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.base.whole_file import temporary_paths_of
from harness.cli.options import argument, option, output_option, verb
from harness.cli.sessions import session_folder
from harness.cli.show import print_notes_and_seals
from harness.cli.streams import drawn_progress
from harness.model.errors import InputError
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.session.archive import PackManifest
    from harness.session.log.reader import LogFindings

_UNIT_BYTES = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A click callback: the bytes of `20GB`, `500M` or `1000`, in powers of 1000.

    Raises InputError for another text.
    """
    if value is None:
        return None
    text = value.strip().upper().removesuffix("B")
    unit_bytes = _UNIT_BYTES.get(text[-1:], 1)
    number = text if unit_bytes == 1 else text[:-1]
    if not number.isascii() or not number.isdecimal() or len(number) > 12 or not int(number):
        raise InputError(f"{plain_text(value, 40)!r} is not a size", remedy="Write a size such as 500MB or 20GB")
    return int(number) * unit_bytes


@verb("pack")
def pack(
    *,
    sessions: tuple[str, ...] = argument("SESSION...", required=True),
    out: Path | None = output_option(
        "Archive to write: FILE.tar.gz or FILE.zip.",
        metavar="FILE",
        show_default="SESSION.tar.gz in the current folder",
    ),
) -> None:
    """Pack each session into one file: log, clips, inputs and judgments, with the SHA-256 of each file.

    Checks the hash chain first, as `harness report show --check` does, and refuses a session that is damaged or
    running. The same session gives the same bytes.

    SESSION: its folder, or its name in ./sessions.
    """
    from harness.session import archive

    if out is not None and len(sessions) > 1:
        raise InputError(
            "-o names one file, but several sessions are given", remedy="Remove -o, or pack the sessions one by one"
        )
    folders = [session_folder(session) for session in sessions]
    targets = [out or Path(f"{folder.resolve().name}{archive.TAR}") for folder in folders]
    if len(set(targets)) < len(targets):
        raise InputError("two sessions have the same name", remedy="Pack the sessions one by one, with -o")
    for folder, target in zip(folders, targets, strict=True):
        with drawn_progress():
            manifest, findings = archive.pack(folder, target)
        click.echo(f"{plain_text(str(target))}: {_content(manifest)}, {target.stat().st_size} bytes")
        _print_findings(findings)
        for incomplete_path in temporary_paths_of(target):
            click.echo(
                f"note   {plain_text(str(incomplete_path))} is an incomplete archive. Remove it, "
                "unless `harness admin pack` is still writing it"
            )


@verb("unpack")
def unpack(
    *,
    file: Path = argument("FILE"),
    out: Path | None = output_option(
        "New folder for the session.",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        show_default="FILE without its suffix, in the current folder",
    ),
    max_size: int = option(
        "Refuse an archive whose files add up to more than this size.",
        default="20GB",
        callback=parse_size,
        metavar="SIZE",
    ),
    max_ratio: float = option(
        "Refuse an archive above 10 MB that expands by more than this factor.", within=(1, None), default=100.0
    ),
) -> None:
    """Unpack a packed session into a new folder, and check every file and the hash chain.

    Refuses an archive that is cut short, altered or hostile, and then leaves nothing behind.

    FILE: an archive that `harness admin pack` wrote.
    """
    from harness.session import archive

    target = out or Path(file.name.removesuffix(archive.suffix_of(file)))
    with drawn_progress():
        manifest, findings = archive.unpack(file, target, archive.UnpackLimits(max_size, max_ratio))
    click.echo(f"{plain_text(str(target))}: {_content(manifest)}, packed by version {plain_text(manifest.harness, 40)}")
    _print_findings(findings)


def _content(manifest: PackManifest) -> str:
    return f"{counted(manifest.rows, 'row')}, {counted(manifest.clips, 'clip')}, {counted(len(manifest.files), 'file')}"


def _print_findings(findings: LogFindings) -> None:
    """Prints the notes on a session's log, the seals that hold, and whether any is missing."""
    print_notes_and_seals(findings)
    if not findings.sealed:
        click.echo("note   not sealed: nothing proves that the rows are unchanged")
