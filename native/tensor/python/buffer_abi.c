/* Finds the functions of the buffer protocol in the running Python. */
#include "tensor/python/buffer_abi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct opscope__buffer_functions opscope__buffers;

int opscope__py_find_buffer_functions(void)
{
    static const char *const names[] = {"PyObject_CheckBuffer", "PyObject_GetBuffer",
                                        "PyBuffer_Release"};
    void *found[3];
    for (size_t i = 0; i < 3; i++) {
        found[i] = dlsym(RTLD_DEFAULT, names[i]);
        if (!found[i]) {
            PyErr_Format(PyExc_ImportError, "this Python has no %s", names[i]);
            return -1;
        }
    }
    /* dlsym returns functions as data pointers. */
    _Static_assert(sizeof found == sizeof opscope__buffers, "three pointers");
    memcpy(&opscope__buffers, found, sizeof found);
    return 0;
}
