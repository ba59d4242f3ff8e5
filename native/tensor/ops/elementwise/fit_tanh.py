"""Print the coefficients of ops/tanh.c, which explains the formula that has them.

With P(0) = Q(0) = 1, h(x) = x P(x²) / 2 Q(x²) is made so near to tanh(x / 2) that the largest
relative error of tanh(x) = 2h / (1 + h²), for any x up to LIMIT, is as small as it can be. Where h
is near 1, an error of it hardly shows in that. Remez's exchange, in decimals of 40 digits.
"""

from __future__ import annotations

import struct
from decimal import Decimal, localcontext
from itertools import groupby

LIMIT = 9  # beyond it tanh(x) is 1 in float32, or less by one bit
NUMERATOR, DENOMINATOR = (2, 4), (2, 4, 6)  # the powers of x in P and Q, but for 1
_COUNT = len(NUMERATOR) + len(DENOMINATOR) + 1  # of unknowns: the error at the points is one
_GRID = 600


def half_tanh(x: Decimal) -> Decimal:
    """tanh(x / 2)."""
    power = x.exp()
    return (power - 1) / (power + 1)


def share(half: Decimal) -> Decimal:
    """How much of an error of tanh(x / 2) comes through to tanh(x), both relative."""
    return (1 - half * half) / (1 + half * half)


def value(coefficients: list[Decimal], powers: tuple[int, ...], x: Decimal) -> Decimal:
    terms = (c * x**power for c, power in zip(coefficients, powers, strict=True))
    return sum(terms, Decimal(1))


def error_at(x: Decimal, p: list[Decimal], q: list[Decimal]) -> Decimal:
    """Of tanh(x), relative, as far as it is proportional to that of h."""
    half = half_tanh(x)
    h = x * value(p, NUMERATOR, x) / (2 * value(q, DENOMINATOR, x))
    return (h / half - 1) * share(half)


def solved(rows: list[list[Decimal]]) -> list[Decimal]:
    """The unknowns of linear equations: each row has its factors, then their sum."""
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for j, row in enumerate(rows):
            if j != i:
                rows[j] = [a - row[i] * b for a, b in zip(row, rows[i], strict=True)]
    return [row[-1] for row in rows]


def through(points: list[Decimal]) -> tuple[list[Decimal], list[Decimal]]:
    """The coefficients that make the errors at the points equal but for their signs."""
    p, q = [Decimal(0)] * len(NUMERATOR), [Decimal(0)] * len(DENOMINATOR)
    error, before = Decimal(0), Decimal(1)
    while abs(error - before) > abs(error) / 10**12:
        before = error
        rows = []
        for i, x in enumerate(points):
            # x P - 2 half Q = 2 half Q (+-error / share), the last Q the one of the round before.
            twice = 2 * half_tanh(x)
            bend = (-1) ** i * twice * value(q, DENOMINATOR, x) / share(twice / 2)
            row = [x * x**power for power in NUMERATOR]
            row += [-twice * x**power for power in DENOMINATOR]
            rows.append([*row, -bend, twice - x])
        *both, error = solved(rows)
        p, q = both[: len(NUMERATOR)], both[len(NUMERATOR) :]
    return p, q


def fit() -> tuple[list[Decimal], list[Decimal], Decimal]:
    """The coefficients of P and Q, and the largest error."""
    with localcontext() as context:
        context.prec = 40
        grid = [Decimal(LIMIT * (i + 1)) / _GRID for i in range(_GRID)]
        points = [grid[(2 * i + 1) * _GRID // (2 * _COUNT)] for i in range(_COUNT)]
        while True:
            p, q = through(points)
            errors = {x: error_at(x, p, q) for x in grid}
            runs = [list(run) for _, run in groupby(grid, key=lambda x: errors[x] > 0)]
            extremes = [max(run, key=lambda x: abs(errors[x])) for run in runs]
            if len(extremes) != _COUNT:
                raise ArithmeticError(f"{len(extremes)} extremes of the error, not {_COUNT}")
            if extremes == points:
                return p, q, max(map(abs, errors.values()))
            points = extremes


def float32(number: Decimal) -> float:
    """The nearest one."""
    return float(struct.unpack("f", struct.pack("f", float(number)))[0])


def lines() -> list[str]:
    """Those that stand in tanh.c."""
    p, q, error = fit()
    return [
        f"/* Of fit_tanh.py, for a relative error of {error:.1e} before any rounding. */",
        *(
            f"static const float p{n} = {float32(c):.9g}f;"
            for n, c in zip(NUMERATOR, p, strict=True)
        ),
        *(
            f"static const float q{n} = {float32(c):.9g}f;"
            for n, c in zip(DENOMINATOR, q, strict=True)
        ),
        f"static const float limit = {LIMIT};",
    ]


if __name__ == "__main__":
    print(*lines(), sep="\n")
