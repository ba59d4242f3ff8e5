"""Gradient boosting with XGBoost and LightGBM: training and prediction."""

from collections.abc import Callable

import lightgbm
import numpy as np
import xgboost


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((5000, 30))
    y = (x[:, :5].sum(axis=1) > 0).astype(int)

    def step() -> None:
        by_rows = xgboost.DMatrix(x, label=y)
        booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, by_rows, 20)
        booster.predict(by_rows)
        xgboost.XGBRegressor(n_estimators=10, n_jobs=1).fit(x, x[:, 0]).predict(x)
        lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1).fit(x, y).predict(x)

    return step
