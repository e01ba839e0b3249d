"""`harness annotate import`: labels from a file of intents, by id."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.annotate.project_options import import_lines, open_project, project_argument


@click.command("import")
@project_argument
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--map", "mapping", metavar="FILE|media", help="Names of labels there → names here: CSV `from,to`.")
def command(project: Path, file: Path, mapping: str | None) -> None:
    """Take labels from a file, by the ids of the utterances; they count as those of the annotator `imported`.

    FILE: a CSV file `id,intent` with labels joined by #, as the public intent files of MEDIA are (--map media makes
    their French labels those of the seed's English tables), or annotated utterances as JSONL or BIO. All of it is
    taken or, when a label is unknown or against the rules, nothing. docs/annotation.md

    Exit status: 0 done · 2 wrong usage or input, nothing is taken · 3 the project cannot be read or written.
    """
    from harness.annotation.making import import_file
    from harness.understanding.files.label_set_file import load_label_map

    names = {} if mapping is None else load_label_map(mapping)
    room = open_project(project)
    try:
        for line in import_lines(import_file(room, file, names)):
            click.echo(line)
    finally:
        room.close()
