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
int opscope_py_is_interrupted;
int opscope_py_is_closed;
int opscope_py_start_outside(const opscope_range *, void *, void **);
int opscope_py_end_outside(const opscope_range *, void *, void *);
void opscope_py_drop_outside(void *);
int opscope_py_task_outside(void *);
void opscope_py_usage_outside(const char *, void *);
size_t opscope_py_box_outside(void *, opscope_value *, size_t);
"""

# Stands before the start of the module, which is cffi's.
BACKEND = """
static PyObject *import_backend(void)
{
    PyObject *name = PyUnicode_FromString("opscope._cffi_backend");
    PyObject *own = name != NULL ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    return own != NULL || PyErr_Occurred() ? own : PyImport_ImportModule("_cffi_backend");
}

"""

# What C calls in their place, from outside of Python.
#
# A Ctrl-C that strikes within a callback is the program's. Within Python it could only be raised
# into the callback again; so it is set anew once the callback has been left.
#
# Threads that outlive the interpreter must not enter it: from its end on, nothing is called.
OUTSIDE = """
static int opscope_py_is_interrupted; /* set in Python, taken by pass_interrupt_on */
static int opscope_py_is_closed;      /* set once, at the interpreter's end */

static int opscope_py_start(const opscope_range *, void *, void **);
static int opscope_py_end(const opscope_range *, void *, void *);
static void opscope_py_drop(void *);
static int opscope_py_task(void *);
static void opscope_py_usage(const char *, void *);
static size_t opscope_py_box(void *, opscope_value *, size_t);

static int is_closed(void)
{
    return __atomic_load_n(&opscope_py_is_closed, __ATOMIC_RELAXED);
}

static void pass_interrupt_on(void)
{
    if (__atomic_load_n(&opscope_py_is_interrupted, __ATOMIC_RELAXED) &&
        __atomic_exchange_n(&opscope_py_is_interrupted, 0, __ATOMIC_RELAXED)) {
        PyErr_SetInterrupt();
    }
}

static int opscope_py_start_outside(const opscope_range *fn, void *user, void **context)
{
    int status = is_closed() ? OPSCOPE_OK : opscope_py_start(fn, user, context);
    pass_interrupt_on();
    return status;
}

static int opscope_py_end_outside(const opscope_range *fn, void *user, void *context)
{
    int status = is_closed() ? OPSCOPE_OK : opscope_py_end(fn, user, context);
    pass_interrupt_on();
    return status;
}

static void opscope_py_drop_outside(void *user)
{
    if (!is_closed()) {
        opscope_py_drop(user);
    }
}

static int opscope_py_task_outside(void *arg)
{
    return is_closed() ? OPSCOPE_ERR_LOST : opscope_py_task(arg);
}

static void opscope_py_usage_outside(const char *key, void *user)
{
    if (!is_closed()) {
        opscope_py_usage(key, user);
    }
    pass_interrupt_on();
}

static size_t opscope_py_box_outside(void *arg, opscope_value *values, size_t capacity)
{
    size_t count = is_closed() ? 0 : opscope_py_box(arg, values, capacity);
    pass_interrupt_on();
    return count;
}
"""


def declarations(header: str) -> str:
    """The text of a public header as cffi's cdef takes it."""
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", header, flags=re.MULTILINE)
    return re.sub(r"\bOPSCOPE_(?:API|BEGIN_DECLS|END_DECLS)\b", "", text)


def look_for_own_backend(path: Path) -> None:
    """Has the module's start look for cffi's extension under a name of our own first.

    Where opscope brings it along (agent/opscope/attachment/entry.py), the program's own cffi, maybe
    of another version, is to find nothing of it.
    """
    text = path.read_text()
    for old, new in (
        ('PyImport_ImportModule("_cffi_backend")', "import_backend()"),
        ("static PyObject *_cffi_init(", f"{BACKEND}static PyObject *_cffi_init("),
    ):
        if text.count(old) != 1:
            raise SystemExit(f"cffi writes another start of a module than this knows: {old}")
        text = text.replace(old, new)
    path.write_text(text)


def main(out: str, headers: list[str]) -> None:
    builder = cffi.FFI()
    for header in headers:
        builder.cdef(declarations(Path(header).read_text()))
    builder.cdef(PYTHON_ENTRY_POINTS)
    prelude = "\n".join(f'#include "opscope/{Path(header).name}"' for header in headers)
    builder.set_source("opscope._native", prelude + OUTSIDE, py_limited_api=True)
    builder.emit_c_code(out)
    look_for_own_backend(Path(out))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
