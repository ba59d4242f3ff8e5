"""Train a classifier of handwritten digits with scikit-learn and print its accuracy.

It is an ordinary program without any reference to Opscope. `python demo_digits.py [ROUNDS]` trains
ROUNDS (6) times on different splits; on an idle machine a round takes a few seconds.
"""

import sys

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main(rounds: int) -> None:
    images, digits = load_digits(return_X_y=True)
    for seed in range(rounds):
        x_train, x_test, y_train, y_test = train_test_split(
            images, digits, test_size=0.25, random_state=seed
        )
        for classifier in (
            LogisticRegression(max_iter=200),
            MLPClassifier(max_iter=500, tol=1e-3, random_state=seed),
        ):
            model = make_pipeline(StandardScaler(), PCA(n_components=32), classifier)
            model.fit(x_train, y_train)
            name = type(classifier).__name__
            accuracy = model.score(x_test, y_test)
            print(f"split {seed}: {name} accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
