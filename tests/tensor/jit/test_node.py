"""Models in Node.js: the addon of native/node, built against the installed package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import opscope
from opscope import tensor as ot
from opscope.segments import layout
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import read_header, read_segment
from opscope.tensor import jit, nn
from tests.model_runs import NODE_SOURCE, Run, node, node_runner


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return node_runner(tmp_path_factory.mktemp("node"))


def collatz(
    x: ot.Tensor, n: int, names: list[str], scale: float | None
) -> tuple[ot.Tensor, int, str]:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    if scale is not None:
        x = x * scale
    return x, steps, names[0] + "!"


def cnn() -> tuple[nn.Module, ot.Tensor]:
    ot.manual_seed(3)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(4 * 4 * 4, 10),
    ).eval()  # fmt: skip
    return net, ot.randn([2, 1, 8, 8])


@pytest.fixture
def scripted(tmp_path: Path) -> Path:
    jit.save(jit.script(collatz), tmp_path / "collatz.pt", extra_files={"note": "hello"})
    return tmp_path / "collatz.pt"


def test_a_traced_network_gives_the_results_of_python(run: Run, tmp_path: Path) -> None:
    net, images = cnn()
    model = jit.freeze(jit.trace(net, images))
    jit.save(model, tmp_path / "cnn.pt", model_id="digits")
    found = run(
        """
const model = await opscope.load(args[0]);
const data = Float32Array.from(JSON.parse(args[1]));
const result = await model.forward({ data, shape: [2, 1, 8, 8] });
const sync = model.forwardSync({ data, shape: [2, 1, 8, 8] });
const { data: numbers, shape, dtype } = result;
say({ id: model.id, inputs: model.inputs, data: [...numbers], shape, dtype,
      same: result.data.every((each, at) => each === sync.data[at]) });
""",
        tmp_path / "cnn.pt",
        json.dumps(np.asarray(images).ravel().tolist()),
    )
    assert found["id"] == "digits" and found["same"]
    assert [each["type"] for each in found["inputs"]] == ["Tensor"]
    assert (found["shape"], found["dtype"]) == ([2, 10], "float32")
    # Without a BLAS, sums of products are in another order.
    assert found["data"] == pytest.approx(np.asarray(model(images)).ravel().tolist(), abs=1e-6)


def test_a_blas_that_is_not_there_is_an_exception(run: Run) -> None:
    program = (
        "try { opscope.loadBlas('/none.so'); } catch (error) { say([error.code, error.message]); }"
    )
    code, message = run(program)
    assert code == "ERR_OPSCOPE"
    assert "/none.so" in message


def test_a_script_takes_values_of_all_types_both_ways_through_control_flow(
    run: Run, scripted: Path
) -> None:
    found = run(
        """
const model = opscope.loadSync(args[0]);
const x = { data: new Float64Array([1, 2]) };
say([model.inputs.map((each) => each.type), await model.forward(x, 6, ['a'], 2.5),
     await model.forward(x, 1n, ['b', 'c'], null), model.extraFile('note').toString()]);
""",
        scripted,
    )
    types, scaled, plain, note = found
    assert types == ["Tensor", "int", "List[str]", "Optional[float]"]
    assert list(scaled[0]["data"].values()) == [2.5, 5.0] and scaled[1:] == [8, "a!"]
    assert list(plain[0]["data"].values()) == [1.0, 2.0] and plain[1:] == [0, "b!"]
    assert note == "hello"


@pytest.mark.parametrize(
    ("inputs", "name", "text"),
    [
        ("3, 1, ['a'], null", "TypeError", "input x: a tensor is {data, shape}"),
        ("x, 1.5, ['a'], null", "TypeError", "input n must be int, not number"),
        ("x, 1, [2], null", "TypeError", "input names[0] must be str, not number"),
        ("x, 1, ['a'], 'b'", "TypeError", "input scale must be float, not string"),
        ("x, 1, ['a']", "TypeError", "the model takes 4 inputs, not 3"),
        ("x, 1, [], null", "RangeError", "index 0 of a list of length 0"),
        ("{ data: x.data, shape: [3] }, 1, ['a'], null", "RangeError", "shape [3] has 3 elements"),
        ("{ data: x.data, dtype: 'int32' }, 1, ['a'], null", "TypeError", "is not int32"),
        ("gone, 1, ['a'], null", "RangeError", "shape [2] has 2 elements, and data 0"),
        (
            "{ data: new Float32Array(new SharedArrayBuffer(8)) }, 1, ['a'], null",
            "TypeError",
            "must neither be shared nor resizable",
        ),
        ("{ data: new Uint16Array(2) }, 1, ['a'], null", "TypeError", "bfloat16 or float16"),
        ("{ data: null }, 1, ['a'], null", "TypeError", "a tensor is {data, shape}"),
    ],
)
def test_wrong_inputs_are_exceptions(
    run: Run, scripted: Path, inputs: str, name: str, text: str
) -> None:
    found = run(
        f"""
const model = await opscope.load(args[0]);
const x = {{ data: new Float32Array(2) }};
const gone = {{ data: new Float32Array(2), shape: [2] }};
structuredClone(gone.data, {{ transfer: [gone.data.buffer] }});
try {{ await model.forward({inputs}); say(['none', '', '']); }}
catch (error) {{ say([error.name, error.message, error.code]); }}
""",
        scripted,
    )
    assert found[0] == name
    assert text in found[1]
    assert found[2] == "ERR_OPSCOPE"


def test_halves_go_both_ways(run: Run, tmp_path: Path) -> None:
    def twice(x: ot.Tensor) -> ot.Tensor:
        return (x.to(ot.float32) * 2).to(ot.bfloat16)

    jit.save(jit.trace(twice, ot.ones(2).to(ot.bfloat16)), tmp_path / "halves.pt")
    found = run(
        """
const model = await opscope.load(args[0]);
const x = { data: Uint16Array.of(0x3f80, 0x4000), dtype: 'bfloat16' };
const { data, dtype } = await model.forward(x);
say([dtype, data.constructor.name, [...data]]);
""",
        tmp_path / "halves.pt",
    )
    assert found == ["bfloat16", "Uint16Array", [0x4000, 0x4080]]


def test_a_path_with_a_nul_is_no_other_path(run: Run, scripted: Path) -> None:
    found = run(
        """
const said = [];
for (const file of [args[0] + '\\0.old', 3, undefined]) {
  try { await opscope.load(file); said.push(''); } catch (error) { said.push(error.message); }
}
say(said);
""",
        scripted,
    )
    assert found == ["a path is a string without NUL"] * 3


def test_a_file_that_is_wrong_or_missing_is_an_exception_with_its_name(
    run: Run, scripted: Path, tmp_path: Path
) -> None:
    (tmp_path / "cut.pt").write_bytes(scripted.read_bytes()[:400])
    found = run(
        """
const said = [];
for (const file of args) {
  try { await opscope.load(file); } catch (error) { said.push([error.code, error.message]); }
}
say(said);
""",
        tmp_path / "cut.pt",
        tmp_path / "none.pt",
    )
    assert [code for code, _ in found] == ["ERR_OPSCOPE", "ERR_OPSCOPE"]
    assert "cut.pt" in found[0][1] and "none.pt: No such file" in found[1][1]


def test_many_runs_proceed_at_once_while_the_event_loop_goes_on(run: Run, scripted: Path) -> None:
    found = run(
        """
const model = await opscope.load(args[0]);
let turns = 0;
const timer = setInterval(() => { turns += 1; }, 0);
const x = { data: new Float32Array(1) };
const turned = new Promise((resolve) => setTimeout(resolve, 1));
const all = Array.from({ length: 50 }, (_, at) => model.forward(x, 2 ** (at % 30), ['a'], null));
model.close();
await turned;
const steps = (await Promise.all(all)).map((each) => each[1]);
clearInterval(timer);
let closed = '';
try { model.forwardSync(x, 1, ['a'], null); } catch (error) { closed = error.message; }
say([steps, turns > 0, closed]);
""",
        scripted,
    )
    assert found == [[at % 30 for at in range(50)], True, "the model is closed"]


def test_results_of_the_models_own_memory_and_of_inputs_are_copies(
    run: Run, tmp_path: Path
) -> None:
    class Returns(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(ot.ones([2]))

        def forward(self, x: ot.Tensor) -> tuple[ot.Tensor, ot.Tensor, ot.Tensor]:
            return x, self.weight, x.reshape([2, 1]).t()

    jit.save(jit.script(Returns()), tmp_path / "own.pt")
    found = run(
        """
const model = await opscope.load(args[0]);
const x = { data: new Float32Array([3, 4]) };
const first = await model.forward(x);
for (const each of first) each.data.fill(9);
say([[...x.data], (await model.forward(x)).map((each) => [...each.data])]);
""",
        tmp_path / "own.pt",
    )
    assert found == [[3, 4], [[3, 4], [1, 1], [3, 4]]]


def test_runs_leave_nothing_behind(run: Run, tmp_path: Path) -> None:
    jit.save(jit.trace(nn.ReLU(), ot.ones([16, 256])), tmp_path / "net.pt")
    grown = run(
        """
const model = await opscope.load(args[0]);
const x = { data: new Float32Array(16 * 256), shape: [16, 256] };
const many = async (count) => {
  for (let at = 0; at < count; at += 1) {
    await model.forward(x);
    if (at % 500 === 0) { gc(); await new Promise(setImmediate); }
  }
  gc();
  return process.memoryUsage().rss;
};
const before = await many(2000);
say((await many(10000)) - before);
""",
        tmp_path / "net.pt",
    )
    assert grown < 64 << 20  # the results of all runs are 160 MiB


def test_operators_are_recorded_by_model_without_python(
    run: Run, scripted: Path, tmp_path: Path
) -> None:
    place = tmp_path / "segments"
    loaded = run(
        """
opscope.record({ directory: args[1], service: 'shop', sampling: 1 });
const model = await opscope.load(args[0]);
const x = { data: new Float32Array(3) };
for (let at = 0; at < 20; at += 1) await model.forward(x, 1, ['a'], 2.0);
const maps = require('node:fs').readFileSync('/proc/self/maps', 'utf8');
say([model.id, maps.includes('libpython')]);
""",
        scripted,
        place,
    )
    model_id, has_python = loaded
    assert not has_python
    (path,) = place.glob("*.seg")
    raw = path.read_bytes()

    def read(offset: int, size: int) -> bytes:
        return raw[offset : offset + size]

    segment = read_segment(read, read_header(read), Dictionary())
    assert segment.dictionary.notes["service.name"] == "shop"
    samples = {
        (
            segment.dictionary.ops[key & layout.KEY_OP_MASK],
            segment.dictionary.labels[key >> layout.KEY_LABELS_SHIFT],
        ): values[0]
        for key, values in zip(
            segment.rows.keys.tolist(), segment.rows.values.tolist(), strict=True
        )
    }
    assert samples["core::mul", (("model_id", model_id),)] == 20


def test_the_addon_is_built_by_one_command(tmp_path: Path) -> None:
    """What `npm install` runs, in a copy of the folder."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    copy = tmp_path / "node"
    shutil.copytree(NODE_SOURCE, copy)
    environ = {key: value for key, value in os.environ.items() if key != "OPSCOPE_NODE_OUT"}
    environ["OPSCOPE_HOME"] = str(Path(opscope.get_include()).parent)
    done = subprocess.run(
        [node(), "build.js"], cwd=copy, env=environ, capture_output=True, text=True
    )
    if "node_api.h is in none of" in done.stderr:
        pytest.skip("needs the headers of Node.js")
    assert done.returncode == 0, done.stderr
    loads = "console.log(Object.keys(require('./')).join())"
    said = subprocess.run([node(), "-e", loads], cwd=copy, capture_output=True, text=True)
    assert said.stdout.strip() == "load,loadSync,loadBlas,record,Model"
