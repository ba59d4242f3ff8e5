"""Images: filters, edges, labels and sizes with scikit-image, scipy.ndimage and OpenCV."""

from collections.abc import Callable

import cv2
import numpy as np
from scipy import ndimage
from skimage import exposure, feature, filters, measure, morphology, segmentation, transform


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    cv2.setNumThreads(1)
    image = ndimage.gaussian_filter(generator.random((400, 400)), 3.0)
    image = (image - image.min()) / (image.max() - image.min())
    colours = (generator.random((400, 400, 3)) * 255).astype(np.uint8)

    def step() -> None:
        filters.gaussian(image, 2.0)
        filters.sobel(image)
        filters.median(image)
        feature.canny(image, sigma=2.0)
        transform.resize(image, (300, 500), anti_aliasing=True)
        transform.rotate(image, 20.0)
        mask = image > filters.threshold_otsu(image)
        labels = measure.label(mask)
        measure.regionprops_table(labels, image, properties=("area", "mean_intensity"))
        morphology.opening(mask, morphology.disk(3))
        segmentation.watershed(-image, labels)
        exposure.equalize_adapthist(image)
        ndimage.zoom(image, 1.5)
        ndimage.median_filter(image, 5)
        ndimage.distance_transform_edt(mask)
        for _ in range(5):
            grey = cv2.cvtColor(colours, cv2.COLOR_BGR2GRAY)
            cv2.GaussianBlur(colours, (9, 9), 2.0)
            cv2.Canny(grey, 50, 150)
            cv2.resize(colours, (900, 700), interpolation=cv2.INTER_CUBIC)
            cv2.medianBlur(colours, 5)
            cv2.bilateralFilter(colours, 7, 50, 50)

    return step
