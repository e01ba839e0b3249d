"""`harness admin schema`: the JSON Schemas of our files, for editors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.cli.options import option, output_option, verb
from harness.model.choices import FileKind
from harness.model.errors import InputError, Place


@verb("schema")
def command(
    *,
    kind: str | None = option(
        "Print the schema of this file type only.", type=click.Choice([kind.value for kind in FileKind])
    ),
    out: Path | None = output_option("Folder to write KIND.schema.json into.", folder=True),
) -> None:
    """Print or write the JSON Schemas for editors.

    In an editor with a YAML language server, begin a file with
    `# yaml-language-server: $schema=scenario.schema.json`.
    """
    from harness.cli.json_schema import json_schema  # here, since it imports every file format

    kinds = [FileKind(kind)] if kind else list(FileKind)
    schemas = {file_kind.value: json_schema(file_kind) for file_kind in kinds}
    if out is None:
        click.echo(json.dumps(schemas[kind] if kind else schemas, indent=2))
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, schema in schemas.items():
            path = out / f"{name}.schema.json"
            path.write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
            click.echo(f"wrote {path}")
    except OSError as error:
        raise InputError(
            f"the schemas cannot be written: {error}",
            place=Place(str(out)),
            remedy="Choose a folder that you can write to",
        ) from error
