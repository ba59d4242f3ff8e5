"""Texts of any size: a program that passes them to opscope continues unchanged."""

from tests.record.programs import run_python


def test_no_size_of_a_label_raises_into_the_program() -> None:
    """One message to the logger."""
    code = """
import opscope
def first(**labels):
    with opscope.debug_info(**labels): return opscope.get_debug_info()
cases = [
    first(k="x" * 65_535), first(k="x" * 65_536), first(k="é" * 65_536), first(k=10**50_000),
    first(k="\\udc80" * 65_536),
]
print([len(labels["k"].encode()) for labels in cases], set(cases[2]["k"]))
print(first(**{"k" * 65_535: 1}) == {"k" * 65_535: "1"}, first(**{"k" * 65_536: "x"}, other=1))
print(len(first(**{f"k{i}": "x" * 70_000 for i in range(200)})))
with opscope.record_function("x" * (1 << 20)), opscope.record_function(10**5000): pass
opscope.log_api_usage_once("x" * (1 << 20))
for i in range(10_000): opscope.log_api_usage_once(f"key {i}")
opscope.set_api_usage_metadata_handler(lambda context, mapping: print(len(mapping["k"])))
opscope.log_api_usage_metadata("x" * (1 << 20), {"k": 10**5000})
"""
    done = run_python(code, None, "-Werror")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[65535, 65535, 65534, 41527, 65535] {'é'}",
        "True {'other': '1'}",
        "200",
        str(len(hex(10**5000))),
    ]
    assert done.stderr.count("less than 64 KiB") == 1 == len(done.stderr.splitlines())
