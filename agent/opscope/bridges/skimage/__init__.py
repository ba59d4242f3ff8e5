"""scikit-image's compiled functions as operators: the list of its extension modules.

Tried with scikit-image 0.26. Not seen: classes that search paths (`graph.MCP`), whose methods a
program overrides.
"""

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "skimage"

PREFIXES = ("skimage",)

PROBE = ("from skimage.draw import line", "line(0, 0, 1, 1)")

LATE_MODULES = (
    *("skimage.draw._draw", "skimage.feature._canny_cy", "skimage.feature._cascade"),
    *("skimage.feature._haar", "skimage.feature._hessian_det_appx"),
    *("skimage.feature._hoghistogram", "skimage.feature._sift", "skimage.feature._texture"),
    *("skimage.feature.brief_cy", "skimage.feature.censure_cy", "skimage.feature.corner_cy"),
    *("skimage.feature.orb_cy", "skimage.filters._multiotsu"),
    *("skimage.filters.rank.bilateral_cy", "skimage.filters.rank.generic_cy"),
    *("skimage.filters.rank.percentile_cy", "skimage.graph._ncut_cy", "skimage.measure._ccomp"),
    *("skimage.measure._find_contours_cy", "skimage.measure._marching_cubes_lewiner_cy"),
    *("skimage.measure._moments_cy", "skimage.measure._pnpoly"),
    *("skimage.morphology._convex_hull", "skimage.morphology._extrema_cy"),
    *("skimage.morphology._flood_fill_cy", "skimage.morphology._grayreconstruct"),
    *("skimage.morphology._max_tree", "skimage.morphology._misc_cy"),
    *("skimage.morphology._skeletonize_3d_cy", "skimage.morphology._skeletonize_cy"),
    *("skimage.morphology._skeletonize_lee_cy", "skimage.morphology._skeletonize_various_cy"),
    *("skimage.restoration._denoise_cy", "skimage.restoration._inpaint"),
    *("skimage.restoration._nl_means_denoising", "skimage.restoration._rolling_ball_cy"),
    *("skimage.restoration._unwrap_1d", "skimage.restoration._unwrap_2d"),
    *("skimage.restoration._unwrap_3d", "skimage.segmentation._felzenszwalb_cy"),
    *("skimage.segmentation._quickshift_cy", "skimage.segmentation._slic"),
    *("skimage.segmentation._watershed_cy", "skimage.transform._hough_transform"),
    *("skimage.transform._radon_transform", "skimage.transform._warps_cy", "skimage.util._remap"),
)
"""Its extension modules; those that a release lacks are never imported."""

_modules = ExtensionModules(FRAMEWORK, LATE_MODULES)
attach, detach, facts, status, seen = _modules.functions
