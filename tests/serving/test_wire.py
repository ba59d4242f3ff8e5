"""Messages cut and joined without protobuf agree with protobuf."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.serving import wire
from opscope.serving.protocol import REPLIES, REQUESTS


def request(**fields: Any) -> Any:
    return REQUESTS["ModelInfer"](**fields)


@given(st.text(max_size=20), st.text(max_size=20), st.lists(st.binary(max_size=300), max_size=4))
def test_a_cut_request_is_the_whole_without_its_tensors(
    name: str, id: str, tensors: list[bytes]
) -> None:
    whole = request(model_name=name, id=id, raw_input_contents=tensors)
    whole.parameters["n"].int64_param = -3
    whole.parameters["d"].double_param = 0.5
    whole.inputs.add(name="x", datatype="FP32", shape=[1, 2**40])
    head, raw = wire.split_request(whole.SerializeToString())
    assert [bytes(one) for one in raw] == tensors
    whole.ClearField("raw_input_contents")
    assert request().FromString(head) == whole


@given(st.text(max_size=20), st.lists(st.binary(max_size=300), max_size=4))
def test_a_joined_reply_is_protobufs(name: str, tensors: list[bytes]) -> None:
    head = REPLIES["ModelInfer"](model_name=name).SerializeToString()
    read = REPLIES["ModelInfer"].FromString(wire.join_reply(head, tensors))
    assert read == REPLIES["ModelInfer"](model_name=name, raw_output_contents=tensors)


_MESSAGES = st.builds(
    lambda name, id, tensors: request(
        model_name=name, id=id, raw_input_contents=tensors
    ).SerializeToString(),
    st.sampled_from(["a", "b", "ab"]),
    st.sampled_from(["", "1", "x" * 3000]),
    st.lists(st.sampled_from([b"", b"0", b"1", b"22", b":\x01x", b"x" * 200]), max_size=2),
)


@given(st.lists(st.one_of(_MESSAGES, st.binary(max_size=12)), max_size=40))
def test_a_message_like_an_earlier_one_is_cut_alike(messages: list[bytes]) -> None:
    prefixes = wire.Prefixes()
    for message in messages + messages:
        try:
            wanted = wire.split_request(message)
        except ValueError:
            with pytest.raises(ValueError, match="message"):
                prefixes.split(message)
            continue
        head, raw = prefixes.split(message)
        assert (head, [bytes(one) for one in raw]) == (wanted[0], [bytes(one) for one in wanted[1]])
        assert all(one.obj is message for one in raw)


def test_known_beginnings_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    prefixes = wire.Prefixes()
    for size in range(1000):
        prefixes.split(request(raw_input_contents=[bytes(size)]).SerializeToString())
    assert len(prefixes._known) <= 256
    message = request(id="x" * 3000, raw_input_contents=[b"1"]).SerializeToString()
    monkeypatch.setattr(prefixes, "_known", {})
    prefixes.split(message)
    assert prefixes._known == {}


def test_a_known_beginning_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    prefixes = wire.Prefixes()
    first, second = (
        request(raw_input_contents=[value]).SerializeToString() for value in (b"1", b"2")
    )
    prefixes.split(first)
    monkeypatch.delattr(wire, "split_request")
    head, raw = prefixes.split(second)
    assert (head, bytes(raw[0])) == (b"", b"2")


def test_tensors_lie_in_the_message() -> None:
    message = request(raw_input_contents=[b"x" * 1000]).SerializeToString()
    (raw,) = wire.split_request(message)[1]
    assert raw.obj is message


@given(st.binary(max_size=60))
def test_any_bytes_are_cut_or_refused(data: bytes) -> None:
    try:
        head, raw = wire.split_request(data)
    except ValueError:
        return
    assert len(head) + sum(map(len, raw)) <= len(data)


@pytest.mark.parametrize(
    "data", [b"\x3a", b"\x3a\x05ab", b"\xff" * 11, b"\x09abc", b"\x3d\x01", b"\x3b"]
)
def test_a_damaged_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="message"):
        wire.split_request(data)


def test_the_compiled_protocol_is_that_of_its_source(tmp_path: Any) -> None:
    """Else: make protocol."""
    from importlib import resources

    from google.protobuf import descriptor_pb2
    from grpc_tools import protoc

    folder = resources.files("opscope.serving")
    out = tmp_path / "inference.binpb"
    assert protoc.main(["", f"-I{folder}", f"--descriptor_set_out={out}", "inference.proto"]) == 0
    read = descriptor_pb2.FileDescriptorSet.FromString
    assert read(out.read_bytes()) == read(folder.joinpath("inference.binpb").read_bytes())
