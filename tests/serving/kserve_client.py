"""What KServe's clients get from a model server; runs in an environment that has `kserve` alone.

Usage: kserve_client.py HTTP GRPC, two addresses of a server with the model `double` in versions 1
and 2. Prints JSON.
"""

import asyncio
import json
import sys
from typing import Any

import numpy as np
from kserve import (  # pyright: ignore[reportMissingImports]
    InferenceRESTClient,
    InferInput,
    InferRequest,
)
from kserve.inference_client import (  # pyright: ignore[reportMissingImports]
    InferenceGRPCClient,
    RESTConfig,
)

X = np.arange(8, dtype=np.float32).reshape(2, 4)


def request(binary: bool, number: str) -> InferRequest:
    made = InferInput("x", [2, 4], "FP32")
    made.set_data_from_numpy(X, binary_data=binary)
    return InferRequest("double", [made], request_id=number, model_version="1")


def said(answer: Any) -> dict[str, Any]:
    return {
        "model": answer.model_name,
        "id": answer.id,
        "outputs": {one.name: one.as_numpy().tolist() for one in answer.outputs},
    }


async def over_http(address: str) -> dict[str, Any]:
    base, client = f"http://{address}", InferenceRESTClient(RESTConfig(protocol="v2"))
    found: dict[str, Any] = {
        "live": await client.is_server_live(base),
        "ready": await client.is_server_ready(base),
        "model_ready": await client.is_model_ready(base, "double"),
    }
    for binary in (True, False):
        answer = await client.infer(base, request(binary, f"b{binary}"), model_name="double")
        found[f"infer binary={binary}"] = said(answer)
    await client.close()
    return found


async def over_grpc(address: str) -> dict[str, Any]:
    client = InferenceGRPCClient(address)
    found: dict[str, Any] = {
        "live": await client.is_server_live(),
        "ready": await client.is_server_ready(),
        "model_ready": await client.is_model_ready("double"),
        "infer": said(await client.infer(request(True, "g1"))),
    }
    try:
        await client.infer(InferRequest("missing", request(True, "g2").inputs))
    except Exception as error:
        found["missing"] = str(error)
    await client.close()
    return found


async def main(http: str, grpc: str) -> None:
    print(json.dumps({"http": await over_http(http), "grpc": await over_grpc(grpc)}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
