"""pandas: groups, joins, rolling windows, sorting, and reading of text."""

import io
from collections.abc import Callable

import numpy as np
import pandas as pd


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    count = 100_000
    frame = pd.DataFrame(
        {
            "key": generator.integers(0, 500, count),
            "name": generator.choice(["red", "green", "blue", "white"], count),
            "value": generator.standard_normal(count),
            "weight": generator.random(count),
            "time": pd.date_range("2024-01-01", periods=count, freq="min"),
        }
    )
    other = pd.DataFrame({"key": np.arange(500), "rate": generator.random(500)})
    text = frame.head(20_000).to_csv(index=False)

    def step() -> None:
        frame.groupby("key")["value"].agg(["mean", "std", "min", "max"])
        frame.groupby(["name", "key"]).agg({"value": "sum", "weight": "median"})
        frame.groupby("name")["value"].transform("rank")
        merged = frame.merge(other, on="key", how="left")
        merged["rate"].rolling(50).mean()
        frame["value"].rolling(100).median()
        frame["value"].ewm(span=20).mean()
        frame.sort_values(["name", "value"])
        frame.drop_duplicates(["key", "name"])
        frame.pivot_table(index="key", columns="name", values="value", aggfunc="mean")
        frame["name"].value_counts()
        frame["name"].str.upper().str.contains("RE")
        frame.set_index("time")["value"].resample("h").mean()
        read = pd.read_csv(io.StringIO(text), parse_dates=["time"])
        read.to_csv(index=False)
        frame["value"].fillna(0.0).astype("float32").describe()
        frame["key"].isin([1, 2, 3]).sum()
        pd.concat([frame, frame]).reset_index(drop=True)

    return step
