"""Write the C source of the cffi module ``opscope._native`` from the public headers.

The headers are the declarations: this strips what cffi cannot read (preprocessor lines, the export
macro) and adds the entry points through which C calls Python. Usage: generate_cffi.py OUT HEADER...
"""

import re
import sys
from pathlib import Path

import cffi

# Called from C with the GIL taken by cffi; defined in opscope.record with def_extern.
PYTHON_ENTRY_POINTS = """
extern "Python" {
    int opscope_py_start(const opscope_range *, void *, void **);
    int opscope_py_end(const opscope_range *, void *, void *);
    void opscope_py_drop(void *);
    int opscope_py_task(void *);
    void opscope_py_usage(const char *, void *);
    void opscope_py_usage_metadata(const char *, const char *, const char *, void *);
    size_t opscope_py_box(void *, opscope_value *, size_t);
}
"""


def declarations(header: str) -> str:
    """The text of a public header as cffi's cdef takes it."""
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", header, flags=re.MULTILINE)
    return re.sub(r"\bOPSCOPE_(?:API|BEGIN_DECLS|END_DECLS)\b", "", text)


def main(out: str, headers: list[str]) -> None:
    builder = cffi.FFI()
    for header in headers:
        builder.cdef(declarations(Path(header).read_text()))
    builder.cdef(PYTHON_ENTRY_POINTS)
    prelude = "\n".join(f'#include "opscope/{Path(header).name}"' for header in headers)
    builder.set_source("opscope._native", prelude, py_limited_api=True)
    builder.emit_c_code(out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
