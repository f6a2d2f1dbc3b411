"""Where the nodes of a graph are drawn: linked ones attract each other, near ones push each other away."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, hypot, pi, sin, sqrt

LENGTH = 60.0
"""Units between two that are linked."""
ROUNDS = 80
_GOLDEN = pi * (3 - sqrt(5))


def lay_out(count: int, links: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """A place for each node, from (40, 40) on. The same graph gives the same places."""
    x = [LENGTH * 0.6 * sqrt(at + 0.5) * cos(at * _GOLDEN) for at in range(count)]
    y = [LENGTH * 0.6 * sqrt(at + 0.5) * sin(at * _GOLDEN) for at in range(count)]
    for step in range(ROUNDS):
        _move(x, y, links, LENGTH * (1 - step / ROUNDS))
    left, top = min(x, default=0.0), min(y, default=0.0)
    return [(a - left + 40, b - top + 40) for a, b in zip(x, y, strict=True)]


def _move(x: list[float], y: list[float], links: Sequence[tuple[int, int]], most: float) -> None:
    """One step; no node goes farther than `most`."""
    dx, dy = [0.0] * len(x), [0.0] * len(x)
    _push(x, y, dx, dy)
    for start, end in links:
        a, b = x[end] - x[start], y[end] - y[start]
        pull = hypot(a, b) / LENGTH / 4
        dx[start] += a * pull
        dy[start] += b * pull
        dx[end] -= a * pull
        dy[end] -= b * pull
    for at, (a, b) in enumerate(zip(dx, dy, strict=True)):
        a -= x[at] * 0.02  # what has no links stays in sight
        b -= y[at] * 0.02
        far = hypot(a, b)
        scale = min(far, most) / far if far else 0.0
        x[at] += a * scale
        y[at] += b * scale


def _push(x: list[float], y: list[float], dx: list[float], dy: list[float]) -> None:
    """Only those in the squares around a node push it."""
    size = LENGTH * 2
    squares: dict[tuple[int, int], list[int]] = {}
    for at in range(len(x)):
        squares.setdefault((int(x[at] // size), int(y[at] // size)), []).append(at)
    for (column, row), members in squares.items():
        near = [
            other
            for i in (column - 1, column, column + 1)
            for j in (row - 1, row, row + 1)
            for other in squares.get((i, j), ())
        ]
        for at in members:
            for other in near:
                a, b = x[at] - x[other], y[at] - y[other]
                square = a * a + b * b
                if other != at and square < size * size:
                    push = LENGTH * LENGTH / (square + 1)
                    dx[at] += a * push
                    dy[at] += b * push
