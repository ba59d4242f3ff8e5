/* tensor/python/buffer_abi.h -- CPython's buffer protocol, for the limited API of 3.10.
 *
 * The protocol entered the limited API with 3.11; its layout, slot numbers and functions are the
 * same in 3.10 (PEP 3118, Include/cpython/object.h), and are declared here as 3.11 does. A module
 * of the stable ABI of 3.10 may not ask the linker for the functions, so the module looks them up.
 */
#ifndef OPSCOPE_TENSOR_PYTHON_BUFFER_ABI_H
#define OPSCOPE_TENSOR_PYTHON_BUFFER_ABI_H

#include <Python.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030b0000

typedef struct {
    void *buf;
    PyObject *obj; /* owned */
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
} Py_buffer;

enum {
    PyBUF_WRITABLE = 0x1,
    PyBUF_FORMAT = 0x4,
    PyBUF_ND = 0x8,
    PyBUF_STRIDES = 0x10 | PyBUF_ND,
    PyBUF_C_CONTIGUOUS = 0x20 | PyBUF_STRIDES,
    PyBUF_F_CONTIGUOUS = 0x40 | PyBUF_STRIDES,
    PyBUF_RECORDS = PyBUF_STRIDES | PyBUF_WRITABLE | PyBUF_FORMAT,
    PyBUF_RECORDS_RO = PyBUF_STRIDES | PyBUF_FORMAT
};

#endif

#ifndef Py_bf_getbuffer
#define Py_bf_getbuffer 1
#define Py_bf_releasebuffer 2
#endif

struct opscope__buffer_functions {
    int (*check)(PyObject *object);
    int (*get)(PyObject *object, Py_buffer *view, int flags);
    void (*release)(Py_buffer *view);
};
/* Set by opscope__py_find_buffer_functions and constant from then on. */
extern struct opscope__buffer_functions opscope__buffers;

/* Returns -1 with ImportError set if this Python lacks one of them. */
int opscope__py_find_buffer_functions(void);

#endif
