"""Print the coefficients of ops/elementwise/tanh.c, which explains the formula.

With P(0) = Q(0) = 1, h(x) = x P(x²) / 2 Q(x²) approximates tanh(x / 2) such that the largest
relative error of tanh(x) = 2h / (1 + h²), over all x up to LIMIT, is minimal. Near h = 1 an error
of h has little effect on tanh(x). The algorithm is Remez's exchange, in decimals of 40 digits.
"""

from __future__ import annotations

import struct
from decimal import Decimal, localcontext
from itertools import groupby

LIMIT = 9  # beyond it tanh(x) is 1 in float32, or one bit less
NUMERATOR, DENOMINATOR = (2, 4), (2, 4, 6)  # the powers of x in P and Q, except the constant 1
_COUNT = len(NUMERATOR) + len(DENOMINATOR) + 1  # of unknowns: the error at the points is one
_GRID = 600


def half_tanh(x: Decimal) -> Decimal:
    """tanh(x / 2)."""
    power = x.exp()
    return (power - 1) / (power + 1)


def share(half: Decimal) -> Decimal:
    """The relative error of tanh(x) per relative error of tanh(x / 2)."""
    return (1 - half * half) / (1 + half * half)


def value(coefficients: list[Decimal], powers: tuple[int, ...], x: Decimal) -> Decimal:
    terms = (c * x**power for c, power in zip(coefficients, powers, strict=True))
    return sum(terms, Decimal(1))


def error_at(x: Decimal, p: list[Decimal], q: list[Decimal]) -> Decimal:
    """The relative error of tanh(x), to first order in the error of h."""
    half = half_tanh(x)
    h = x * value(p, NUMERATOR, x) / (2 * value(q, DENOMINATOR, x))
    return (h / half - 1) * share(half)


def solved(rows: list[list[Decimal]]) -> list[Decimal]:
    """Solves linear equations: each row has its coefficients, then the right-hand side."""
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for j, row in enumerate(rows):
            if j != i:
                rows[j] = [a - row[i] * b for a, b in zip(row, rows[i], strict=True)]
    return [row[-1] for row in rows]


def through(points: list[Decimal]) -> tuple[list[Decimal], list[Decimal]]:
    """The coefficients for errors of equal size and alternating sign at the points."""
    p, q = [Decimal(0)] * len(NUMERATOR), [Decimal(0)] * len(DENOMINATOR)
    error, before = Decimal(0), Decimal(1)
    while abs(error - before) > abs(error) / 10**12:
        before = error
        rows = []
        for i, x in enumerate(points):
            # x P - 2 half Q = 2 half Q (+-error / share), with the last Q from the previous round.
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
    """The nearest float32."""
    return float(struct.unpack("f", struct.pack("f", float(number)))[0])


def lines() -> list[str]:
    """The constants as lines of tanh.c."""
    p, q, error = fit()
    return [
        f"/* From fit_tanh.py, for a relative error of {error:.1e} before any rounding. */",
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
