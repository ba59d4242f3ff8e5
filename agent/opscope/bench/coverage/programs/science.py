"""SciPy: optimization, FFT, sparse and dense solutions, signals, special functions, space."""

from collections.abc import Callable

import numpy as np
from scipy import fft, integrate, interpolate, linalg, optimize, signal, sparse, spatial, special
from scipy.sparse.linalg import cg, spsolve


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    many = generator.standard_normal(100_000)
    square = generator.standard_normal((250, 250))
    points = generator.standard_normal((1500, 3))
    size = 4000
    chain = sparse.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(size, size)).tocsr()
    grid = sparse.kronsum(chain[:60, :60], chain[:60, :60]).tocsc()
    sections = signal.butter(6, 0.1, output="sos")
    kernel = generator.standard_normal(500)
    knots = np.linspace(0.0, 10.0, 500)

    def rosenbrock(x: np.ndarray) -> float:
        return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())

    def step() -> None:
        optimize.minimize(rosenbrock, np.zeros(10), method="L-BFGS-B", options={"maxiter": 20})
        optimize.linear_sum_assignment(square)
        for _ in range(5):
            fft.fft(many)
            fft.dctn(square)
        linalg.lu_solve(linalg.lu_factor(square), square)
        linalg.eigh(square + square.T)
        linalg.svd(square)
        linalg.expm(square[:100, :100] * 0.01)
        spsolve(grid, np.ones(grid.shape[0]))
        cg(chain, np.ones(size), maxiter=50)
        chain @ chain
        signal.sosfiltfilt(sections, many)
        signal.fftconvolve(many, kernel)
        signal.lfilter([0.1, 0.2], [1.0, -0.5], many)
        signal.find_peaks(many, distance=20)
        signal.medfilt(many, 5)
        special.gammaln(np.abs(many) + 1.0)
        special.jv(1.5, np.abs(many[:20_000]))
        special.erf(many)
        spatial.distance.cdist(points, points)
        spatial.cKDTree(points).query(points, 5)
        spatial.ConvexHull(points)
        interpolate.CubicSpline(knots, np.sin(knots))(np.abs(many) % 10.0)
        integrate.solve_ivp(lambda t, y: [y[1], -y[0]], (0.0, 20.0), [0.0, 1.0], rtol=1e-6)

    return step
