/* DLPack both ways: __dlpack__ and from_dlpack, with and without versions.
 *
 * A consumer renames the capsule and then owns its contents, so each capsule can be taken only
 * once; a capsule that is never taken frees its contents. Deleters run on any thread, without the
 * GIL.
 */
#include <stdlib.h>

#include "opscope/autograd.h"
#include "tensor/python/dlpack_abi.h"
#include "tensor/python/python.h"

static const char PLAIN[] = "dltensor";
static const char PLAIN_USED[] = "used_dltensor";
static const char VERSIONED[] = "dltensor_versioned";
static const char VERSIONED_USED[] = "used_dltensor_versioned";

static const struct {
    uint8_t code, bits;
} TYPES[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = {DLPACK_FLOAT, 32},   [OPSCOPE_FLOAT64] = {DLPACK_FLOAT, 64},
    [OPSCOPE_INT32] = {DLPACK_INT, 32},       [OPSCOPE_INT64] = {DLPACK_INT, 64},
    [OPSCOPE_UINT8] = {DLPACK_UINT, 8},       [OPSCOPE_BOOL] = {DLPACK_BOOL, 8},
    [OPSCOPE_BFLOAT16] = {DLPACK_BFLOAT, 16}, [OPSCOPE_FLOAT16] = {DLPACK_FLOAT, 16},
};

/* ---- export ------------------------------------------------------------------------------------ */

/* The contents of a capsule: either form, the tensor that it keeps, and its sizes and strides. */
struct exported {
    union {
        struct dlpack_managed plain;
        struct dlpack_versioned versioned;
    } as;
    opscope_tensor *core;
    int64_t numbers[2 * OPSCOPE_DIM_LIMIT];
};

static void delete_exported(struct exported *exported)
{
    opscope_tensor_release(exported->core);
    free(exported);
}

static void delete_plain(struct dlpack_managed *self)
{
    delete_exported(self->context);
}

static void delete_versioned(struct dlpack_versioned *self)
{
    delete_exported(self->context);
}

static void free_plain_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, PLAIN)) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, PLAIN);
        managed->deleter(managed);
    }
}

static void free_versioned_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, VERSIONED)) {
        struct dlpack_versioned *managed = PyCapsule_GetPointer(capsule, VERSIONED);
        managed->deleter(managed);
    }
}

static void describe(opscope_tensor *core, int64_t *numbers, struct dlpack_tensor *out)
{
    int dims = opscope_tensor_dims(core);
    opscope_dtype dtype = opscope_tensor_dtype(core);
    for (int i = 0; i < dims; i++) {
        numbers[i] = opscope_tensor_sizes(core)[i];
        numbers[dims + i] = opscope_tensor_strides(core)[i];
    }
    *out = (struct dlpack_tensor){
        .data = opscope_tensor_data(core),
        .device_type = DLPACK_CPU,
        .dims = dims,
        .type_code = TYPES[dtype].code,
        .type_bits = TYPES[dtype].bits,
        .type_lanes = 1,
        .sizes = numbers,
        .strides = numbers + dims,
    };
}

/* Takes the reference to `core`. */
static PyObject *make_capsule(opscope_tensor *core, bool versioned, bool is_copy)
{
    struct exported *exported = calloc(1, sizeof *exported);
    if (!exported) {
        opscope_tensor_release(core);
        return PyErr_NoMemory();
    }
    exported->core = core;
    PyObject *capsule;
    if (versioned) {
        struct dlpack_versioned *managed = &exported->as.versioned;
        managed->major = DLPACK_MAJOR;
        managed->minor = DLPACK_MINOR;
        managed->context = exported;
        managed->deleter = delete_versioned;
        managed->flags = (opscope_tensor_is_read_only(core) ? DLPACK_READ_ONLY : 0u) |
                         (is_copy ? DLPACK_COPIED : 0u);
        describe(core, exported->numbers, &managed->tensor);
        capsule = PyCapsule_New(managed, VERSIONED, free_versioned_capsule);
    } else {
        struct dlpack_managed *managed = &exported->as.plain;
        managed->context = exported;
        managed->deleter = delete_plain;
        describe(core, exported->numbers, &managed->tensor);
        capsule = PyCapsule_New(managed, PLAIN, free_plain_capsule);
    }
    if (!capsule) {
        delete_exported(exported);
    }
    return capsule;
}

static int parse_pair(const char *name, PyObject *pair, int *first, int *second)
{
    if (!PyTuple_Check(pair)) {
        PyErr_Format(PyExc_TypeError, "__dlpack__(): %s must be a tuple of two ints, not %R", name,
                     (PyObject *)Py_TYPE(pair));
        return -1;
    }
    return PyArg_ParseTuple(pair, "ii", first, second) ? 0 : -1;
}

/* The protocol does not forbid a negative stride, but PyTorch ends the process on one. */
static int check_steps(const opscope_tensor *core)
{
    for (int i = 0; i < opscope_tensor_dims(core); i++) {
        if (opscope_tensor_strides(core)[i] < 0) {
            PyErr_Format(
                PyExc_BufferError,
                "__dlpack__(): dimension %d has a negative stride, which consumers do not support; "
                "use tensor.clone(), or ask for a copy (copy=True)",
                i);
            return -1;
        }
    }
    return 0;
}

static int check_device(PyObject *device)
{
    int type = DLPACK_CPU;
    int id = 0;
    if (device != Py_None && parse_pair("dl_device", device, &type, &id) < 0) {
        return -1;
    }
    if (type != DLPACK_CPU) {
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__(): device (%d, %d) was requested; tensors here "
                     "are on the CPU, (1, 0)",
                     type, id);
        return -1;
    }
    return 0;
}

static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None;
    PyObject *max_version = Py_None;
    PyObject *device = Py_None;
    PyObject *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream,
                                     &max_version, &device, &copy) ||
        check_device(device) < 0) {
        return NULL;
    }
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__(): the CPU has no streams");
        return NULL;
    }
    int major = 0;
    int minor = 0;
    if (max_version != Py_None && parse_pair("max_version", max_version, &major, &minor) < 0) {
        return NULL;
    }
    opscope_tensor *core = opscope__py_core(self);
    if (opscope_tensor_requires_grad(core)) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__(): the tensor requires grad, which would be "
                                           "lost; use tensor.detach()");
        return NULL;
    }
    if (opscope__py_tell_read(self) < 0) {
        return NULL;
    }
    if (copy == Py_True) {
        PyObject *copied = opscope__py_tensor_copied(self);
        if (!copied) {
            return NULL;
        }
        core = opscope_tensor_retain(opscope__py_core(copied));
        Py_DECREF(copied);
        return make_capsule(core, major >= 1, true);
    }
    if (check_steps(core) < 0) {
        return NULL;
    }
    if (opscope_tensor_is_read_only(core) && major < 1) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__(): a read-only tensor needs DLPack 1.0, "
                                           "which can say so (max_version=(1, 0))");
        return NULL;
    }
    return make_capsule(opscope_tensor_retain(core), major >= 1, false);
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", DLPACK_CPU, 0);
}

/* ---- import ------------------------------------------------------------------------------------ */

static void release_plain(void *user)
{
    struct dlpack_managed *managed = user;
    if (managed->deleter) {
        managed->deleter(managed);
    }
}

static void release_versioned(void *user)
{
    struct dlpack_versioned *managed = user;
    if (managed->deleter) {
        managed->deleter(managed);
    }
}

static int find_dtype(const struct dlpack_tensor *tensor, opscope_dtype *out)
{
    for (int i = 0; i < OPSCOPE_DTYPE_COUNT && tensor->type_lanes == 1; i++) {
        if (TYPES[i].code == tensor->type_code && TYPES[i].bits == tensor->type_bits) {
            *out = (opscope_dtype)i;
            return 0;
        }
    }
    PyErr_Format(PyExc_TypeError,
                 "from_dlpack(): elements of type code %d, %d bits, %d lanes have no dtype here",
                 tensor->type_code, tensor->type_bits, tensor->type_lanes);
    return -1;
}

static int make_tensor(const struct dlpack_tensor *tensor, bool read_only, void (*release)(void *),
                       void *user, opscope_tensor **out)
{
    opscope_dtype dtype;
    if (tensor->device_type != DLPACK_CPU) {
        PyErr_Format(PyExc_BufferError,
                     "from_dlpack(): the data is on device (%d, %d); only the "
                     "CPU, (1, 0), can be taken",
                     tensor->device_type, tensor->device_id);
        return -1;
    }
    if (tensor->dims < 0 || tensor->dims > OPSCOPE_DIM_LIMIT) {
        PyErr_Format(PyExc_ValueError, "from_dlpack(): %d dimensions; a tensor has at most %d",
                     tensor->dims, OPSCOPE_DIM_LIMIT);
        return -1;
    }
    if (find_dtype(tensor, &dtype) < 0) {
        return -1;
    }
    char *data = (char *)tensor->data + tensor->byte_offset;
    if ((uintptr_t)data % opscope_dtype_bytes(dtype) != 0) {
        PyErr_SetString(PyExc_BufferError,
                        "from_dlpack(): the memory is not aligned to its elements; copy it first");
        return -1;
    }
    int64_t strides[OPSCOPE_DIM_LIMIT];
    int64_t step = 1;
    for (int i = tensor->dims - 1; i >= 0; i--) {
        strides[i] = tensor->strides ? tensor->strides[i] : step;
        step *= tensor->sizes[i];
    }
    int status = opscope_tensor_from_memory(data, tensor->dims, tensor->sizes, strides, dtype,
                                            read_only, release, user, out);
    if (status != OPSCOPE_OK) {
        opscope__py_raise(status);
        return -1;
    }
    return 0;
}

static PyObject *take_capsule(PyObject *capsule)
{
    opscope_tensor *core;
    if (PyCapsule_IsValid(capsule, VERSIONED)) {
        struct dlpack_versioned *managed = PyCapsule_GetPointer(capsule, VERSIONED);
        if (managed->major > DLPACK_MAJOR) {
            return PyErr_Format(PyExc_BufferError, "from_dlpack(): DLPack %u.%u is not supported",
                                managed->major, managed->minor);
        }
        if (make_tensor(&managed->tensor, managed->flags & DLPACK_READ_ONLY, release_versioned,
                        managed, &core) < 0) {
            return NULL;
        }
        PyCapsule_SetName(capsule, VERSIONED_USED);
    } else if (PyCapsule_IsValid(capsule, PLAIN)) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, PLAIN);
        if (make_tensor(&managed->tensor, false, release_plain, managed, &core) < 0) {
            return NULL;
        }
        PyCapsule_SetName(capsule, PLAIN_USED);
    } else if (PyCapsule_IsValid(capsule, PLAIN_USED) ||
               PyCapsule_IsValid(capsule, VERSIONED_USED)) {
        PyErr_SetString(PyExc_ValueError, "from_dlpack(): this capsule was taken already; each "
                                          "capsule can be taken once");
        return NULL;
    } else {
        PyErr_SetString(PyExc_TypeError, "from_dlpack(): this capsule is not DLPack's");
        return NULL;
    }
    return opscope__py_tensor_wrap(core);
}

/* object.__dlpack__(max_version=(1, 0)), or without versions if the object does not accept the
 * argument. */
static PyObject *ask_for_capsule(PyObject *object)
{
    PyObject *export = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = PyTuple_New(0);
    PyObject *keywords = Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR, DLPACK_MINOR);
    PyObject *capsule = NULL;
    if (export && none && keywords) {
        capsule = PyObject_Call(export, none, keywords);
        if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            capsule = PyObject_Call(export, none, NULL);
        }
    }
    Py_XDECREF(keywords);
    Py_XDECREF(none);
    Py_XDECREF(export);
    return capsule;
}

static PyObject *from_dlpack(PyObject *module, PyObject *object)
{
    (void)module;
    if (PyCapsule_CheckExact(object)) {
        return take_capsule(object);
    }
    if (!PyObject_HasAttrString(object, "__dlpack__")) {
        PyErr_Format(PyExc_TypeError,
                     "from_dlpack() takes a capsule or an object with __dlpack__, not %R",
                     Py_TYPE(object));
        return NULL;
    }
    PyObject *capsule = ask_for_capsule(object);
    PyObject *tensor = NULL;
    if (capsule) {
        if (PyCapsule_CheckExact(capsule)) {
            tensor = take_capsule(capsule);
        } else {
            PyErr_SetString(PyExc_TypeError, "from_dlpack(): __dlpack__ returned no capsule");
        }
    }
    Py_XDECREF(capsule);
    return tensor;
}

PyMethodDef opscope__py_dlpack_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule that shares the tensor's memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\n(1, 0): the CPU."},
    {0},
};

PyMethodDef opscope__py_dlpack_functions[] = {
    {"from_dlpack", from_dlpack, METH_O,
     "from_dlpack(object, /)\n--\n\nA tensor over the memory of an object with __dlpack__, or of a "
     "DLPack capsule.\n\nValueError for a capsule that was taken already, BufferError for memory "
     "not on the CPU,\nTypeError for elements that have no dtype here."},
    {0},
};
