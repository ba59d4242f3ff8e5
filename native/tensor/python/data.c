/* The memory of a Tensor: replaced by another's (`data`), viewed as bytes, or mapped from a file.
 *
 * Used for parameters that change their dtype, for pickles, and for batches from a worker process.
 * buffer.c handles memory of other Python objects.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "opscope/autograd.h"
#include "tensor/autograd/grad.h"
#include "tensor/python/python.h"

/* ---- data ---------------------------------------------------------------------------------------- */

static PyObject *get_data(PyObject *self, void *unused)
{
    (void)unused;
    opscope_tensor *alias;
    int status = opscope_tensor_detach(opscope__py_core(self), &alias);
    return status == OPSCOPE_OK ? opscope__py_tensor_wrap(alias) : opscope__py_raise(status);
}

/* Makes `self` refer to another core tensor; earlier results still refer to the old one. */
static int set_data(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    opscope_tensor *own = opscope__py_core(self), *alias = NULL;
    opscope_tensor *other = value ? opscope__py_tensor_of(value, "data") : NULL;
    if (!other) {
        if (!value) {
            PyErr_SetString(PyExc_AttributeError, "data cannot be deleted");
        }
        return -1;
    }
    if (!opscope_tensor_is_leaf(own)) {
        PyErr_SetString(PyExc_RuntimeError, "data: can be set for a leaf only");
        return -1;
    }
    int status = opscope_tensor_detach(other, &alias);
    if (status == OPSCOPE_OK) {
        status = opscope_tensor_set_requires_grad(alias, opscope_tensor_requires_grad(own));
    }
    opscope_tensor *grad = opscope_tensor_grad(own);
    bool keeps_grad = grad && opscope_tensor_dtype(grad) == opscope_tensor_dtype(alias) &&
                      opscope_tensor_dims(grad) == opscope_tensor_dims(alias) &&
                      memcmp(opscope_tensor_sizes(grad), opscope_tensor_sizes(alias),
                             (size_t)opscope_tensor_dims(grad) * sizeof(int64_t)) == 0;
    if (status == OPSCOPE_OK && keeps_grad) {
        status = opscope_tensor_set_grad(alias, grad);
    }
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(alias);
        opscope__py_raise(status);
        return -1;
    }
    opscope__py_tensor_rebind(self, alias);
    return 0;
}

static PyObject *detach_in_place(PyObject *self, PyObject *unused)
{
    (void)unused;
    opscope_tensor *own = opscope__py_core(self), *alias;
    if (own->grad && own->grad->base) {
        PyErr_SetString(PyExc_RuntimeError,
                        "detach_(): a view shares its history with its base; use detach()");
        return NULL;
    }
    int status = opscope_tensor_detach(own, &alias);
    if (status != OPSCOPE_OK) {
        return opscope__py_raise(status);
    }
    opscope__py_tensor_rebind(self, alias);
    return Py_NewRef(self);
}

PyMethodDef opscope__py_data_methods[] = {
    {"detach_", detach_in_place, METH_NOARGS,
     "detach_($self)\n--\n\nTakes the tensor off the tape: a leaf that requires no grad. RuntimeError for a view."},
    {0},
};

PyGetSetDef opscope__py_data_attributes[] = {
    {"data", get_data, set_data,
     "The same memory off the tape. Setting it gives this tensor another's memory, sizes and dtype; "
     "requires_grad stays, and a grad that no longer fits is dropped.",
     NULL},
    {0},
};

/* ---- bytes ------------------------------------------------------------------------------------------ */

static void release_tensor(void *user)
{
    opscope_tensor_release(user);
}

static PyObject *as_bytes(PyObject *module, PyObject *object)
{
    (void)module;
    opscope_tensor *core = opscope__py_tensor_of(object, "as_bytes(): the argument");
    if (!core) {
        return NULL;
    }
    if (!opscope_tensor_is_contiguous(core)) {
        PyErr_SetString(PyExc_ValueError, "as_bytes(): the tensor is not contiguous");
        return NULL;
    }
    const int64_t stride = 1, size = opscope_tensor_count(core) *
                                     (int64_t)opscope_dtype_bytes(opscope_tensor_dtype(core));
    opscope_tensor *bytes;
    int status = opscope_tensor_from_memory(opscope_tensor_data(core), 1, &size, &stride,
                                            OPSCOPE_UINT8, opscope_tensor_is_read_only(core),
                                            release_tensor, opscope_tensor_retain(core), &bytes);
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(core);
        return opscope__py_raise(status);
    }
    return opscope__py_tensor_wrap(bytes);
}

/* ---- the memory of a file -------------------------------------------------------------------- */

/* The arguments for munmap. */
struct mapping {
    void *data;
    size_t bytes;
};

static void unmap(void *user)
{
    struct mapping *mapping = user;
    munmap(mapping->data, mapping->bytes);
    free(mapping);
}

static PyObject *map_file(PyObject *module, PyObject *args)
{
    (void)module;
    int fd;
    long long offset, bytes;
    if (!PyArg_ParseTuple(args, "iLL:map_file", &fd, &offset, &bytes)) {
        return NULL;
    }
    struct mapping *mapping = malloc(sizeof *mapping);
    if (!mapping) {
        return PyErr_NoMemory();
    }
    mapping->bytes = (size_t)bytes;
    mapping->data =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    if (mapping->data == MAP_FAILED) {
        free(mapping);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    const int64_t size = bytes, stride = 1;
    opscope_tensor *core;
    int status = opscope_tensor_from_memory(mapping->data, 1, &size, &stride, OPSCOPE_UINT8, false,
                                            unmap, mapping, &core);
    if (status != OPSCOPE_OK) {
        unmap(mapping);
        return opscope__py_raise(status);
    }
    return opscope__py_tensor_wrap(core);
}

PyMethodDef opscope__py_data_functions[] = {
    {"as_bytes", as_bytes, METH_O,
     "as_bytes(tensor, /)\n--\n\nThe memory of a contiguous tensor as uint8, one dimension."},
    {"map_file", map_file, METH_VARARGS,
     "map_file(fd, offset, bytes, /)\n--\n\nThe bytes of a file, shared and writable, as a uint8 "
     "tensor. The descriptor may be closed afterwards. OSError if it cannot be mapped."},
    {0},
};
