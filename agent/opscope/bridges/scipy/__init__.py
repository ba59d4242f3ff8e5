"""SciPy's compiled functions as operators: the list of its extension modules.

Tried with SciPy 1.13, 1.15, 1.17 and 1.18. The ufuncs of `scipy.special` belong to NumPy's bridge,
which sees those of every package. Not seen: what SciPy's C code calls from C, and objects of HiGHS
(pybind11 classes).
"""

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "scipy"

PREFIXES = ("scipy",)

PROBE = ("from scipy.fft import rfft", "rfft([1.0, 2.0])")

# Without tests, functions for other C code (cython_blas), and the parts of backends and options.
LATE_MODULES = (
    *("scipy.cluster._hierarchy", "scipy.cluster._optimal_leaf_ordering", "scipy.cluster._vq"),
    *("scipy.cluster.hierarchy._hierarchy", "scipy.cluster.hierarchy._optimal_leaf_ordering"),
    *("scipy.cluster.vq._vq", "scipy.fft._duccfft.pyduccfft", "scipy.fft._pocketfft.pypocketfft"),
    *("scipy.fftpack.convolve", "scipy.integrate._dop", "scipy.integrate._lsoda"),
    *("scipy.integrate._odepack", "scipy.integrate._quadpack", "scipy.integrate._vode"),
    *("scipy.interpolate._bspl", "scipy.interpolate._dfitpack", "scipy.interpolate._dierckx"),
    *("scipy.interpolate._fitpack", "scipy.interpolate._interpnd", "scipy.interpolate._ppoly"),
    *("scipy.interpolate._rbfinterp_pythran", "scipy.interpolate._rgi_cython"),
    *("scipy.interpolate.dfitpack", "scipy.interpolate.interpnd"),
    *("scipy.io._fast_matrix_market._fmm_core", "scipy.io.matlab._mio5_utils"),
    *("scipy.linalg._batched_linalg", "scipy.linalg._cythonized_array_utils"),
    *("scipy.linalg._decomp_interpolative", "scipy.linalg._decomp_lu_cython"),
    *("scipy.linalg._decomp_update", "scipy.linalg._fblas", "scipy.linalg._flapack"),
    *("scipy.linalg._flinalg", "scipy.linalg._internal_matfuncs", "scipy.linalg._interpolative"),
    *("scipy.linalg._linalg_pythran", "scipy.linalg._matfuncs_expm"),
    *("scipy.linalg._matfuncs_schur_sqrtm", "scipy.linalg._matfuncs_sqrtm_triu"),
    *("scipy.linalg._solve_toeplitz", "scipy.ndimage._nd_image", "scipy.ndimage._ni_label"),
    *("scipy.ndimage._rank_filter_1d", "scipy.odr.__odrpack", "scipy.optimize.__nnls"),
    *("scipy.optimize._bglu_dense", "scipy.optimize._cobyla", "scipy.optimize._cython_nnls"),
    *("scipy.optimize._direct", "scipy.optimize._group_columns", "scipy.optimize._lbfgsb"),
    *("scipy.optimize._lsap", "scipy.optimize._lsq.givens_elimination", "scipy.optimize._minpack"),
    *("scipy.optimize._minpack2", "scipy.optimize._moduleTNC", "scipy.optimize._pava_pybind"),
    *("scipy.optimize._slsqp", "scipy.optimize._slsqplib", "scipy.optimize._trlib._trlib"),
    *("scipy.optimize._zeros", "scipy.signal._max_len_seq_inner"),
    *("scipy.signal._peak_finding_utils", "scipy.signal._sigtools", "scipy.signal._sosfilt"),
    *("scipy.signal._spectral", "scipy.signal._spline", "scipy.signal._upfirdn_apply"),
    *("scipy.sparse._csparsetools", "scipy.sparse._sparsetools", "scipy.sparse.csgraph._flow"),
    *("scipy.sparse.csgraph._matching", "scipy.sparse.csgraph._min_spanning_tree"),
    *("scipy.sparse.csgraph._reordering", "scipy.sparse.csgraph._shortest_path"),
    *("scipy.sparse.csgraph._tools", "scipy.sparse.csgraph._traversal"),
    *("scipy.sparse.linalg._dsolve._superlu", "scipy.sparse.linalg._eigen.arpack._arpack"),
    *("scipy.sparse.linalg._eigen.arpack._arpacklib", "scipy.sparse.linalg._isolve._iterative"),
    *("scipy.sparse.linalg._propack", "scipy.sparse.linalg._propack._cpropack"),
    *("scipy.sparse.linalg._propack._dpropack", "scipy.sparse.linalg._propack._spropack"),
    *("scipy.sparse.linalg._propack._zpropack", "scipy.spatial._ckdtree"),
    *("scipy.spatial._distance_pybind", "scipy.spatial._distance_wrap", "scipy.spatial._hausdorff"),
    *("scipy.spatial._qhull", "scipy.spatial._voronoi"),
    *("scipy.spatial.transform._rigid_transform_cy", "scipy.spatial.transform._rotation"),
    *("scipy.spatial.transform._rotation_cy", "scipy.special._comb", "scipy.special._specfun"),
    *("scipy.stats._ansari_swilk_statistics", "scipy.stats._biasedurn", "scipy.stats._mvn"),
    *("scipy.stats._qmc_cy", "scipy.stats._qmvnt_cy", "scipy.stats._rcont.rcont"),
    *("scipy.stats._sobol", "scipy.stats._statlib", "scipy.stats._stats"),
    *("scipy.stats._stats_pythran", "scipy.stats._unuran.unuran_wrapper"),
)
"""Its extension modules; those that a release lacks are never imported."""

# In SciPy 1.18, as in releases before it.
_PREFIXES = {
    "scipy.cluster.hierarchy._hierarchy": "scipy::cluster.",
    "scipy.cluster.hierarchy._optimal_leaf_ordering": "scipy::cluster.",
    "scipy.cluster.vq._vq": "scipy::cluster.",
}

_modules = ExtensionModules(FRAMEWORK, LATE_MODULES, prefixes=_PREFIXES)
attach, detach, facts, status, seen = _modules.functions
