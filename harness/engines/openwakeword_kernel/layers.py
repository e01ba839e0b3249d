"""The embedding's layers, as its graph has them: a chain of convolutions, each with its activation, and pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from harness.engines.tflite_file import Graph, Op, Operator

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """weights: [taps in time, taps beside, inputs, outputs]; beside: zeros on both sides of the columns. What comes
    out is the greatest of x, slope · x and least."""

    weights: Array
    bias: Array
    beside: int
    slope: float = 1.0
    least: float = -np.inf


@dataclass(frozen=True, slots=True)
class Pool:
    """The greatest of so many rows and columns."""

    rows: int
    columns: int


def layers(graph: Graph) -> tuple[Convolution | Pool, ...]:
    """The chain of a graph; ValueError when it is none, or has something else in it."""
    found: list[Convolution | Pool] = []
    beside, last = 0, graph.inputs[0]
    for operator in graph.operators:
        if operator.inputs[0] != last:
            raise ValueError("its layers are no chain")
        last = operator.outputs[0]
        previous = found[-1] if found else None
        match operator.code:
            case Op.PAD:
                beside = int(_constant(graph, operator.inputs[1]).reshape(-1, 2)[2, 0])
            case Op.CONV_2D:
                found.append(_convolution(graph, operator, beside))
                beside = 0
            case Op.MAX_POOL_2D:
                found.append(Pool(operator.whole(4), operator.whole(3)))
            case Op.LEAKY_RELU if isinstance(previous, Convolution):
                found[-1] = replace(previous, slope=operator.number(0))
            case Op.MAXIMUM if isinstance(previous, Convolution):
                found[-1] = replace(previous, least=float(_constant(graph, operator.inputs[1])))
            case _:
                raise ValueError(f"its operator {operator.code} is not known")
    return tuple(found)


def with_next(chain: tuple[Convolution | Pool, ...]) -> Iterator[tuple[Convolution | Pool, Convolution | Pool | None]]:
    """Each layer, and the one that follows it."""
    yield from zip(chain, (*chain[1:], None), strict=True)


def _convolution(graph: Graph, operator: Operator, beside: int) -> Convolution:
    weights = np.asarray(_constant(graph, operator.inputs[1]), np.float32).transpose(1, 2, 3, 0)
    if operator.byte(0) == 0:  # padded so that the size stays: the translation has seen that it is only beside
        beside += weights.shape[1] // 2
    bias = np.ascontiguousarray(_constant(graph, operator.inputs[2]), np.float32)
    return Convolution(np.ascontiguousarray(weights), bias, beside)


def _constant(graph: Graph, index: int) -> npt.NDArray[np.generic]:
    value = graph.tensors[index].values
    if value is None:
        raise ValueError("it works its weights out")
    return value
