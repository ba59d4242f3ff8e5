"""scikit-learn: forests, boosting, PCA, k-means, support vectors, neighbours and a pipeline."""

from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2000, 20))
    y = (x[:, :5].sum(axis=1) + generator.standard_normal(2000) > 0).astype(int)

    def step() -> None:
        forest = RandomForestClassifier(20, random_state=0).fit(x, y)
        forest.predict_proba(x)
        GradientBoostingRegressor(n_estimators=10, random_state=0).fit(x, x[:, 0]).predict(x)
        HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(x, y).predict(x)
        PCA(5).fit_transform(x)
        KMeans(8, n_init=2, random_state=0).fit(x).predict(x)
        SVC().fit(x[:800], y[:800]).predict(x[:800])
        KNeighborsClassifier().fit(x, y).predict(x)
        Lasso(0.01).fit(x, x[:, 0])
        pipeline = make_pipeline(StandardScaler(), LogisticRegression())
        cross_val_score(pipeline, x, y, cv=3)

    return step
