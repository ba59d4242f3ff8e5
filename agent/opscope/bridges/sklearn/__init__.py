"""scikit-learn's compiled functions as operators, and outer ranges around its estimators' methods.

Tried with scikit-learn 1.9. The operator of an outer range is called after the estimator's class:
`sklearn::PCA.fit`. Not seen: what one compiled module calls in another, such as the splitter of a
tree within `sklearn::tree.DepthFirstTreeBuilder.build`; methods that an estimator has only with
some parameters; estimators that other packages define.
"""

import sys
from collections.abc import Iterator
from types import FunctionType

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "sklearn"

PREFIXES = ("sklearn",)

PROBE = ("from sklearn.utils import murmurhash3_32", "murmurhash3_32(1)")

_REDUCTIONS = "sklearn.metrics._pairwise_distances_reduction"
_BOOSTING = "sklearn.ensemble._hist_gradient_boosting"

# Without what only other C code calls (heaps, BLAS, random numbers).
_EXTENSIONS = (
    *("sklearn._isotonic", "sklearn._loss._loss", "sklearn.cluster._dbscan_inner"),
    *("sklearn.cluster._hdbscan._linkage", "sklearn.cluster._hdbscan._reachability"),
    *("sklearn.cluster._hdbscan._tree", "sklearn.cluster._hierarchical_fast"),
    *("sklearn.cluster._k_means_common", "sklearn.cluster._k_means_elkan"),
    *("sklearn.cluster._k_means_lloyd", "sklearn.cluster._k_means_minibatch"),
    *("sklearn.datasets._svmlight_format_fast", "sklearn.decomposition._cdnmf_fast"),
    *("sklearn.decomposition._online_lda_fast", "sklearn.ensemble._gradient_boosting"),
    *(f"{_BOOSTING}._binning", f"{_BOOSTING}._gradient_boosting", f"{_BOOSTING}._predictor"),
    *(f"{_BOOSTING}.histogram", f"{_BOOSTING}.splitting"),
    *("sklearn.feature_extraction._hashing_fast", "sklearn.linear_model._cd_fast"),
    *("sklearn.linear_model._sag_fast", "sklearn.linear_model._sgd_fast"),
    *("sklearn.manifold._barnes_hut_tsne", "sklearn.manifold._utils"),
    *("sklearn.metrics._dist_metrics", f"{_REDUCTIONS}._argkmin"),
    *(f"{_REDUCTIONS}._argkmin_classmode", f"{_REDUCTIONS}._base"),
    *(f"{_REDUCTIONS}._radius_neighbors", f"{_REDUCTIONS}._radius_neighbors_classmode"),
    *("sklearn.metrics._pairwise_fast", "sklearn.metrics.cluster._expected_mutual_info_fast"),
    *("sklearn.neighbors._ball_tree", "sklearn.neighbors._kd_tree", "sklearn.neighbors._quad_tree"),
    *("sklearn.preprocessing._csr_polynomial_expansion",),
    *("sklearn.preprocessing._target_encoder_fast", "sklearn.svm._liblinear"),
    *("sklearn.svm._libsvm", "sklearn.svm._libsvm_sparse", "sklearn.tree._tree"),
    *("sklearn.tree._utils", "sklearn.utils._fast_dict", "sklearn.utils._isfinite"),
    *("sklearn.utils._random", "sklearn.utils._seq_dataset", "sklearn.utils.arrayfuncs"),
    *("sklearn.utils.murmurhash", "sklearn.utils.sparsefuncs_fast"),
)
"""Its extension modules; those that a release lacks are never imported."""

_ESTIMATORS = tuple(
    f"sklearn.{name}"
    for name in """
        calibration cluster compose covariance cross_decomposition decomposition
        discriminant_analysis dummy ensemble feature_extraction feature_selection gaussian_process
        impute isotonic kernel_approximation kernel_ridge linear_model manifold mixture
        model_selection multiclass multioutput naive_bayes neighbors neural_network pipeline
        preprocessing random_projection semi_supervised svm tree
    """.split()
)
_METHODS = ("fit", "fit_predict", "fit_transform", "partial_fit", "predict", "transform")

LATE_MODULES = (*_EXTENSIONS, *_ESTIMATORS)


def _methods(module: str) -> Iterator[tuple[type, str, str]]:
    """The methods of the estimators in a package."""
    seen: set[type] = {object}
    for value in list(vars(sys.modules[module]).values()):
        if not isinstance(value, type) or not hasattr(value, "get_params"):
            continue
        for owner in value.__mro__:
            if owner not in seen and owner.__module__.startswith("sklearn."):
                yield from _methods_of(owner)
            seen.add(owner)


def _methods_of(owner: type) -> Iterator[tuple[type, str, str]]:
    for method in _METHODS:
        function = vars(owner).get(method)
        if type(function) is FunctionType and not hasattr(function, "__isabstractmethod__"):
            yield owner, method, "sklearn::"


_modules = ExtensionModules(FRAMEWORK, _EXTENSIONS, methods=_methods, outer=_ESTIMATORS)
attach, detach, facts, status, seen = _modules.functions
