"""Tensors are not copied between the socket's bytes and the model, nor between it and the reply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot
from opscope.serving import datatypes, tensors, wire
from opscope.serving.batcher import Rule
from opscope.serving.http_connection import _block
from opscope.serving.loaded_model import LoadedModel
from opscope.serving.protocol import REQUESTS
from opscope.serving.request import InferRequest
from tests.serving.running import config_of

FP32 = datatypes.named("FP32")
ROWS = 4096


def address(buffer: Any) -> int:
    return int(np.frombuffer(buffer, np.uint8).ctypes.data)


def copies() -> tuple[int, int, int]:
    return tensors.Copies.to_batch, tensors.Copies.to_align, tensors.Copies.from_spread


def message(padding: int) -> bytes:
    values = np.arange(ROWS * 4, dtype=np.float32)
    made = REQUESTS["ModelInfer"](id="i" * padding, raw_input_contents=[values.tobytes()])
    return bytes(made.SerializeToString())


def aligned_message() -> bytes:
    """Python's bytes begin at a multiple of 16: the length of the id decides."""
    for padding in range(1, 9):
        found = message(padding)
        if address(wire.split_request(found)[1][0]) % 4 == 0:
            return found
    raise AssertionError


def test_a_grpc_requests_tensor_is_the_messages_own_bytes() -> None:
    found = aligned_message()
    before = copies(), ot.memory_stats()["allocation.all.allocated"]
    (raw,) = wire.split_request(found)[1]
    tensor = tensors.from_raw("x", FP32, (ROWS, 4), raw)
    assert address(found) < tensor.data_ptr() < address(found) + len(found)
    assert tensor.is_read_only
    assert (copies(), ot.memory_stats()["allocation.all.allocated"]) == before


def test_one_that_is_not_aligned_is_copied_once_and_counted() -> None:
    raw = memoryview(bytes(4 * ROWS + 1))[1:]
    before = copies()
    tensors.from_raw("x", FP32, (ROWS,), raw)
    assert copies() == (before[0], before[1] + 4 * ROWS, before[2])


@pytest.mark.parametrize("header", [0, 1, 63, 64, 1000])
def test_an_http_body_is_received_where_its_tensor_is_aligned(header: int) -> None:
    body = _block(header + 16 * ROWS, header)
    tensor = tensors.from_raw("x", FP32, (ROWS, 4), body[header:])
    assert tensor.data_ptr() == address(body) + header
    assert tensor.data_ptr() % 64 == 0


def test_a_request_that_runs_alone_allocates_what_the_model_does_and_copies_nothing() -> None:
    given = []

    def model(x: Any) -> Any:
        given.append(x.data_ptr())
        return x * 2.0

    loaded = LoadedModel("m", "1", model, config_of(Rule(max_batch_size=ROWS)))
    (raw,) = wire.split_request(aligned_message())[1]
    x = tensors.from_raw("x", FP32, (ROWS, 4), raw)
    before = copies(), ot.memory_stats()
    (reply,) = loaded.run([InferRequest([x], ())])
    after = ot.memory_stats()
    assert given == [x.data_ptr()]
    assert copies() == before[0]
    name = "allocation.all.allocated"
    assert after[name] - before[1][name] == 1  # the result
    name = "allocated_bytes.all.allocated"
    assert after[name] - before[1][name] == 16 * ROWS
    assert not isinstance(reply, Exception)
    content = tensors.content(reply.outputs["y"])
    assert address(content) == reply.outputs["y"].data_ptr()


def test_a_batch_of_several_copies_each_request_once_and_no_answer() -> None:
    outputs = []

    def model(x: Any) -> Any:
        outputs.append(x * 2.0)
        return outputs[0]

    loaded = LoadedModel("m", "1", model, config_of(Rule(max_batch_size=ROWS)))
    requests = [InferRequest([ot.full((n, 4), float(n))], ()) for n in (1, 2, 3)]
    before = copies(), ot.memory_stats()["allocation.all.allocated"]
    replies: Any = loaded.run(requests)
    assert ot.memory_stats()["allocation.all.allocated"] - before[1] == 2  # the batch, the result
    assert copies() == (before[0][0] + 6 * 16, *before[0][1:])
    starts = [one.outputs["y"].data_ptr() - outputs[0].data_ptr() for one in replies]
    assert starts == [0, 16, 48]
    assert [one.outputs["y"].tolist()[0][0] for one in replies] == [2.0, 4.0, 6.0]


def test_a_model_that_writes_into_its_input_gets_its_own(tmp_path: Any) -> None:
    from opscope.serving import loaded_model
    from opscope.serving.model_config import describe
    from opscope.tensor import jit

    def write(x: Any) -> Any:
        return x.mul_(2.0)

    model = jit.trace(write, ot.ones(2, 4))
    config = describe(
        model,
        [ot.ones(2, 4)],
        input_names=["x"],
        output_names=["y"],
        rule=Rule(max_batch_size=4),
    )
    jit.save(model, tmp_path / "m.pt", extra_files={"serving.json": config.to_json()})
    loaded = loaded_model.load("m", "1", str(tmp_path / "m.pt"))
    x = tensors.from_raw("x", FP32, (1, 4), np.ones(4, np.float32).tobytes())
    assert x.is_read_only
    for _ in range(2):
        (reply,) = loaded.run([InferRequest([x], ())])
        assert not isinstance(reply, Exception), reply
        assert reply.outputs["y"].tolist() == [[2.0] * 4]


def test_every_datatype_comes_back_as_it_was_sent() -> None:
    for name, size in (("BOOL", 1), ("UINT8", 1), ("INT32", 4), ("INT64", 8), ("FP16", 2)):
        datatype = datatypes.named(name)
        raw = bytes(range(2)) * (2 * size)
        tensor = tensors.from_raw("x", datatype, (4,), raw)
        assert bytes(tensors.content(tensors.batch([tensor, tensor]))) == 2 * raw
        assert datatypes.of(tensor) is datatype
    raw = bytes(range(8))
    tensor = tensors.from_raw("x", datatypes.named("BF16"), (4,), raw)
    assert bytes(tensors.content(tensors.batch([tensor, tensor]))) == 2 * raw
