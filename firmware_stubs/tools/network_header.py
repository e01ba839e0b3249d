"""Writes the network of the spotter as a C header, and reads it again.

    python firmware_stubs/tools/network_header.py HEADER

prints a header anew from its own numbers: the same bytes, unless somebody has changed it by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from small_network import BANDS, FIRST, KERNEL, SECOND, SPAN, THIRD, Layer

NAMES = ("first", "second", "third", "output")


def table(c_type: str, name: str, values: Iterable[int], count: int) -> str:
    """A C array, in lines of at most 118 characters."""
    lines, line = [], "   "
    for value in values:
        element = f" {int(value)},"
        if len(line) + len(element) > 118:
            lines.append(line)
            line = "   "
        line += element
    return f"static const {c_type} vh_spotter_{name}[{count}] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def sigmoid() -> list[int]:
    """65535 / (1 + exp(−x)) for x = −16, −15.75 … 16."""
    return [round(65535 / (1 + np.exp(-(i - 64) / 4))) for i in range(129)]


def text(layers: list[Layer], seed: int, data: str) -> str:
    """The header: weights by filter (one after the other, oldest input first), biases, multipliers.

    data: what the network was trained on, for the comment.
    """
    parts = [
        f"""/* Made by tools/train_spotter.py, seed {seed}: {data}.
 * Training speech, all synthetic: espeak-ng (7 accents, 8 other languages, four fifths of its variants),
 * flite (awb, kal16, rms) and hibari; random rates, pitches, tilts, rooms, noises, levels of -42 to -14 dBFS.
 * See README.md. */
#ifndef VH_SPOTTER_TABLES_H
#define VH_SPOTTER_TABLES_H

#include <stdint.h>

#define VH_SPOTTER_TABLES_SHAPE \\
    ({KERNEL}u * 1000000u + {FIRST}u * 100000u + {SECOND}u * 1000u + {SPAN}u * 100u + {THIRD}u)
"""
    ]
    for name, layer in zip(NAMES, layers, strict=True):
        weights = layer.weights.T.reshape(-1)
        parts.append(table("int8_t", f"{name}_weights", weights.tolist(), weights.size))
        parts.append(table("int32_t", f"{name}_biases", layer.biases.tolist(), layer.biases.size))
        parts.append(table("int32_t", f"{name}_multipliers", layer.multipliers.tolist(), layer.multipliers.size))
    parts.append(table("uint16_t", "sigmoid", sigmoid(), 129))
    parts.append("#endif")
    return "\n".join(parts)


def read(header: str) -> tuple[list[Layer], int, str]:
    """The layers of a header, its seed, and what the network was trained on."""
    origin = re.search(r"seed (\d+): (.*)\.\n", header)
    assert origin is not None, "no header of ours"
    tables = {
        name: np.array(numbers.replace("\n", " ").strip().rstrip(",").split(","), np.int64)
        for name, numbers in re.findall(r"vh_spotter_(\w+)\[\d+\] = \{(.*?)\};", header, re.DOTALL)
    }
    inputs = (KERNEL * BANDS, KERNEL * FIRST, SPAN * SECOND, THIRD)
    layers = [
        Layer(
            tables[f"{name}_weights"].reshape(-1, width).T.astype(np.int8),
            tables[f"{name}_biases"],
            tables[f"{name}_multipliers"],
        )
        for name, width in zip(NAMES, inputs, strict=True)
    ]
    return layers, int(origin[1]), origin[2]


def main() -> None:
    sys.stdout.write(text(*read(Path(sys.argv[1]).read_text(encoding="ascii"))) + "\n")


if __name__ == "__main__":
    main()
