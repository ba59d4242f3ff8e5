"""Opscope's own API usage: each key is logged once in a process, at the first use."""

from tests.record.programs import output_of

HANDLER = "import opscope\nkeys = []\nopscope.set_api_usage_handler(keys.append)\n"


def test_the_tensor_core_says_which_of_its_parts_are_used() -> None:
    code = """
import opscope.tensor as ot
print(keys)
from opscope.tensor import nn, optim
from opscope.tensor.data import DataLoader, Dataset

class Mine(optim.Adam):
    pass

class Numbers(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return index

class Model(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)

keys.clear()
for _ in range(3):
    model = Model()
    optim.SGD(model.parameters())
    Mine(model.parameters())
    DataLoader(Numbers())
print(keys)
"""
    assert output_of(HANDLER + code) == [
        "['opscope.tensor.import']",
        "['opscope.tensor.nn.Module', 'opscope.tensor.optim.SGD', 'opscope.tensor.optim.Adam', "
        "'opscope.tensor.DataLoader']",
    ]


def test_opscope_says_which_of_its_names_are_used() -> None:
    code = """
from opscope import debug_info, record_function
for _ in range(3):
    with debug_info(a=1), opscope.record_function("x"), opscope.recording(False):
        pass
opscope.get_debug_info()
print(keys)
"""
    assert output_of(HANDLER + code) == [
        "['opscope.debug_info', 'opscope.record_function', 'opscope.recording']"
    ]


def test_compiled_models_say_how_they_were_made() -> None:
    code = """
import opscope.tensor as ot
from opscope.tensor import jit, nn
layer = nn.Linear(2, 2)
keys.clear()
for _ in range(2):
    jit.trace(layer, ot.ones(1, 2))
    jit.script(layer)
print(keys)
"""
    assert output_of(HANDLER + code) == [
        "['opscope.tensor.jit.trace', 'opscope.tensor.jit.script']"
    ]
