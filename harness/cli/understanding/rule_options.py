"""Options that say how frames are read and counted, as score and cascade have them."""

from __future__ import annotations

import click

from harness.model.errors import InputError
from harness.model.understanding import Chunking
from harness.understanding.figures import PRESETS, ZeroDivision

_ZEROS = {"0": "zero", "1": "one", "seed": "seed"}


def zero_of(ctx: click.Context, param: click.Parameter, value: str) -> ZeroDivision:
    """What --zero names."""
    return PRESETS[_ZEROS[value]]


def attributes_of(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The names in --attributes."""
    return tuple(one.strip() for one in (value or "").split(",") if one.strip())


def chunking_of(ctx: click.Context, param: click.Parameter, value: str) -> Chunking:
    """What --chunking names."""
    return Chunking(value)


def separator_of(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The text of --separator; InputError for an empty one, which would be before anything."""
    if not value:
        raise InputError("--separator is empty", remedy="Leave it out, or write the sign before specifiers")
    return value


chunking_option = click.option(
    "--chunking",
    type=click.Choice([one.value for one in Chunking]),
    default=Chunking.CONLLEVAL.value,
    show_default=True,
    callback=chunking_of,
    help="How BIO tags are read as slots: conlleval lets an I- begin one, iob2 does not.",
)
separator_option = click.option(
    "--separator",
    default="-",
    show_default=True,
    callback=separator_of,
    help="Before the specifier of a concept.",
)
attributes_option = click.option(
    "--attributes",
    metavar="A,B,…",
    callback=attributes_of,
    help="Concepts without specifiers that have the separator themselves.",
)
zero_option = click.option(
    "--zero",
    type=click.Choice(list(_ZEROS)),
    default="0",
    show_default=True,
    callback=zero_of,
    help="What 0/0 is; seed: 1 for precision.",
)
labels_option = click.option(
    "--labels", metavar="LABELS.yaml|A,B,…", help="All declared intents, which macro is then over."
)
by_option = click.option(
    "--by", multiple=True, metavar="COLUMN", help="Figures by a group; without it by every one of gold."
)
