"""scikit-learn's compiled functions as operators: the list of its extension modules.

Tried with scikit-learn 1.9. Not seen: what one compiled module calls in another, such as the
splitter of a tree within `sklearn::tree.DepthFirstTreeBuilder.build`.
"""

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "sklearn"

PREFIXES = ("sklearn",)

PROBE = ("from sklearn.utils import murmurhash3_32", "murmurhash3_32(1)")

_REDUCTIONS = "sklearn.metrics._pairwise_distances_reduction"
_BOOSTING = "sklearn.ensemble._hist_gradient_boosting"

# Without what only other C code calls (heaps, BLAS, random numbers).
LATE_MODULES = (
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

_modules = ExtensionModules(FRAMEWORK, LATE_MODULES)
attach = _modules.attach
detach = _modules.detach
facts = _modules.facts
status = _modules.status
seen = _modules.seen
