"""Write the C source of the cffi module `opscope._native` from its headers.

The headers are the declarations: this strips the parts that cffi cannot parse (preprocessor lines,
the export macro) and adds the entry points through which C calls Python.
Usage: generate_cffi.py OUT HEADER...
"""

import re
import sys
from pathlib import Path

import cffi

# C calls these; cffi takes the GIL. opscope.record defines them with def_extern.
PYTHON_ENTRY_POINTS = """
extern "Python" {
    int opscope_py_start(const opscope_range *, void *, void **);
    int opscope_py_end(const opscope_range *, void *, void *);
    void opscope_py_drop(void *);
    int opscope_py_task(void *);
    void opscope_py_usage(const char *, void *);
    void opscope_py_usage_metadata(const char *, const char *, const char *, void *);
    size_t opscope_py_box(void *, opscope_value *, size_t);
    int opscope_py_extra_files(opscope_extra_files *, void *);
}
int opscope_py_has_raised;
int opscope_py_is_closed;
int opscope_py_start_outside(const opscope_range *, void *, void **);
int opscope_py_end_outside(const opscope_range *, void *, void *);
void opscope_py_drop_outside(void *);
int opscope_py_task_outside(void *);
void opscope_py_usage_outside(const char *, void *);
void opscope_py_usage_metadata_outside(const char *, const char *, const char *, void *);
size_t opscope_py_box_outside(void *, opscope_value *, size_t);
int opscope_py_extra_files_outside(opscope_extra_files *, void *);
void opscope_py_follow_forks(int);

typedef ... opscope_metric;
opscope_metric *opscope_py_metric(const char *, const char *, int);
void opscope_py_metric_add(opscope_metric *, int64_t);
uint64_t opscope_metric_read(opscope_metric *);
"""

# Precedes the module's initialisation, which is cffi's code.
BACKEND = '#include "python/backend.c"\n\n'


def declarations(header: str) -> str:
    """The text of a public header in the form that cffi's cdef parses."""
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", header, flags=re.MULTILINE)
    return re.sub(r"\bOPSCOPE_(?:API|BEGIN_DECLS|END_DECLS)\b", "", text)


def prefer_own_backend(path: Path) -> None:
    """Makes the module import cffi's extension under Opscope's own name first.

    Opscope may bring its own copy (agent/opscope/attachment/entry.py). The program's own cffi,
    possibly of another version, must not find that copy.
    """
    text = path.read_text()
    for old, new in (
        ('PyImport_ImportModule("_cffi_backend")', "import_backend()"),
        ("static PyObject *_cffi_init(", f"{BACKEND}static PyObject *_cffi_init("),
    ):
        if text.count(old) != 1:
            raise SystemExit(f"unexpected module initialisation in the output of cffi: {old}")
        text = text.replace(old, new)
    path.write_text(text)


def main(out: str, headers: list[str]) -> None:
    builder = cffi.FFI()
    for header in headers:
        builder.cdef(declarations(Path(header).read_text()))
    builder.cdef(PYTHON_ENTRY_POINTS)
    names = ("/".join(Path(header).parts[-2:]) for header in headers)
    includes = "\n".join(
        f'#include "{name}"' for name in (*names, "python/outside.c", "python/metric.c")
    )
    builder.set_source("opscope._native", includes, py_limited_api=True)
    builder.emit_c_code(out)
    prefer_own_backend(Path(out))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
