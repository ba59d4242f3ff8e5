"""The server that tutorials show: Flask, HTTP/1, JSON with base64, one request at a time.

Run as a program with a model's archive and a port; answers `POST /predict` with {"image": BASE64}.
"""

from __future__ import annotations

import base64
import sys
from typing import Any


def main(archive: str, port: int) -> None:
    import logging

    import flask
    import numpy as np

    from opscope import tensor as ot
    from opscope.tensor import jit

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    model = jit.load(archive)
    app = flask.Flask("naive")

    @app.post("/predict")
    def predict() -> Any:
        content = base64.b64decode(flask.request.get_json()["image"])
        image = np.frombuffer(content, np.float32).reshape(1, 1, 8, 8)
        with ot.no_grad():
            scores = model(ot.tensor(image))
        return flask.jsonify({"scores": scores.tolist()})

    app.run("127.0.0.1", port, threaded=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
