/* The type Tensor: its life cycle, and the attributes for its shape, memory and dtype.
 *
 * A Tensor holds only one reference to a core tensor. The core tensor knows its Tensor as long as
 * one exists, so that `x.grad is x.grad`. operators.c adds the operators as methods; arithmetic,
 * indexing, buffers and autograd have their own files.
 */
#include "tensor/python/python.h"

#include <structmember.h>

#include "opscope/autograd.h"
#include "tensor/core/tensor.h"
#include "tensor/python/autograd.h"

/* Tensor(2, 3) and Tensor([1, 2]), as older PyTorch programs make float32 tensors. */
static PyObject *legacy_tensor(PyObject *args)
{
    PyObject *module = PyImport_ImportModule("opscope.tensor.composed.creation");
    PyObject *make = module ? PyObject_GetAttrString(module, "legacy_tensor") : NULL;
    PyObject *made = make ? PyObject_CallObject(make, args) : NULL;
    Py_XDECREF(make);
    Py_XDECREF(module);
    return made;
}

/* Tensor(other): the same storage off the tape, as a leaf. Used to create objects of subclasses. */
static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords; /* a subclass may take more */
    if (type == opscope__py_tensor_type &&
        (PyTuple_Size(args) != 1 || !opscope__py_is_tensor(PyTuple_GetItem(args, 0)))) {
        return legacy_tensor(args);
    }
    PyObject *source = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : Py_None;
    opscope_tensor *core =
        opscope__py_tensor_of(source, "Tensor(): make tensors with opscope.tensor.tensor(); data");
    opscope_tensor *alias;
    if (!core) {
        return NULL;
    }
    int status = opscope_tensor_detach(core, &alias);
    if (status != OPSCOPE_OK) {
        return opscope__py_raise(status);
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    opscope__py_tensor *self = (opscope__py_tensor *)allocate(type, 0);
    if (!self) {
        opscope_tensor_release(alias);
        return NULL;
    }
    self->core = alias;
    alias->wrapper = self;
    return (PyObject *)self;
}

static int tensor_init(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)self;
    (void)args;
    (void)keywords;
    return 0;
}

static void tensor_dealloc(PyObject *object)
{
    opscope__py_tensor *self = (opscope__py_tensor *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    /* First of all, because later steps may run code that asks for the Tensor. It is another one
     * if a callback has seen the core tensor before out= gave it to its Tensor. */
    if (self->core && self->core->wrapper == self) {
        self->core->wrapper = NULL;
    }
    if (self->weak_references) {
        PyObject_ClearWeakRefs(object);
    }
    opscope_tensor_release(self->core);
    if (type == opscope__py_tensor_type) {
        PyObject_GC_Del(object);
    } else {
        freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
        release(object);
    }
    Py_DECREF(type);
}

static Py_hash_t tensor_hash(PyObject *self)
{
    /* By identity, because == compares elements. Objects are aligned to 16 bytes. */
    Py_hash_t hash = (Py_hash_t)((uintptr_t)self >> 4);
    return hash == -1 ? -2 : hash;
}

/* ---- attributes --------------------------------------------------------------------------------- */

static PyObject *tuple_of(const int64_t *numbers, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SetItem(tuple, i, number);
        }
    }
    return tuple;
}

/* The classes Size and device, which are written in Python; NULL until opscope.tensor has set them.
 */
static PyObject *size_class, *cpu_device;

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    opscope_tensor *core = opscope__py_core(self);
    PyObject *sizes = tuple_of(opscope_tensor_sizes(core), opscope_tensor_dims(core));
    if (!sizes || !size_class) {
        return sizes;
    }
    PyObject *shape = PyObject_CallFunctionObjArgs(size_class, sizes, NULL);
    Py_DECREF(sizes);
    return shape;
}

static PyObject *get_strides(PyObject *self, void *unused)
{
    (void)unused;
    opscope_tensor *core = opscope__py_core(self);
    return tuple_of(opscope_tensor_strides(core), opscope_tensor_dims(core));
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return opscope__py_dtype(opscope_tensor_dtype(opscope__py_core(self)));
}

static PyObject *get_device(PyObject *self, void *unused)
{
    (void)self;
    (void)unused;
    return cpu_device ? Py_NewRef(cpu_device) : PyUnicode_InternFromString("cpu");
}

static PyObject *get_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(opscope_tensor_dims(opscope__py_core(self)));
}

static PyObject *get_itemsize(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(opscope_dtype_bytes(opscope_tensor_dtype(opscope__py_core(self))));
}

static PyObject *get_version(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(opscope_tensor_version(opscope__py_core(self)));
}

static PyObject *get_read_only(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(opscope_tensor_is_read_only(opscope__py_core(self)));
}

PyGetSetDef opscope__py_tensor_attributes[] = {
    {"shape", get_shape, NULL, "Its sizes.", NULL},
    {"strides", get_strides, NULL, "Steps between neighbours in each dimension, in elements.",
     NULL},
    {"dtype", get_dtype, NULL, "The type of its elements.", NULL},
    {"device", get_device, NULL, "The device of its memory, the cpu.", NULL},
    {"ndim", get_ndim, NULL, "The number of its dimensions.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"is_read_only", get_read_only, NULL, "Whether it is read-only.", NULL},
    {"_version", get_version, NULL, "The number of writes in place to its storage.", NULL},
    {0},
};

/* ---- methods -------------------------------------------------------------------------------------- */

/* The item at `dim` of a tuple; the tuple itself without a dim. Takes the tuple. */
static PyObject *tuple_or_item(PyObject *tuple, PyObject *args)
{
    if (!tuple || PyTuple_Size(args) == 0) {
        return tuple;
    }
    Py_ssize_t count = PyTuple_Size(tuple);
    Py_ssize_t dim;
    PyObject *result = NULL;
    if (PyArg_ParseTuple(args, "n", &dim)) {
        if (dim < -count || dim >= count) {
            PyErr_Format(PyExc_IndexError, "dimension %zd is out of range for a tensor of %zd", dim,
                         count);
        } else {
            result = Py_NewRef(PyTuple_GetItem(tuple, dim < 0 ? dim + count : dim));
        }
    }
    Py_DECREF(tuple);
    return result;
}

static PyObject *size(PyObject *self, PyObject *args)
{
    return tuple_or_item(get_shape(self, NULL), args);
}

static PyObject *stride(PyObject *self, PyObject *args)
{
    return tuple_or_item(get_strides(self, NULL), args);
}

static PyObject *numel(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(opscope_tensor_count(opscope__py_core(self)));
}

static PyObject *element_size(PyObject *self, PyObject *unused)
{
    (void)unused;
    return get_itemsize(self, NULL);
}

static PyObject *dim(PyObject *self, PyObject *unused)
{
    (void)unused;
    return get_ndim(self, NULL);
}

static PyObject *storage_offset(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(opscope_tensor_offset(opscope__py_core(self)));
}

static PyObject *is_contiguous(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(opscope_tensor_is_contiguous(opscope__py_core(self)));
}

static PyObject *is_floating_point(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(opscope_dtype_is_floating(opscope_tensor_dtype(opscope__py_core(self))));
}

static PyObject *data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(opscope_tensor_data(opscope__py_core(self)));
}

static PyObject *storage_data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(opscope_tensor_storage_data(opscope__py_core(self)));
}

static PyObject *storage_bytes(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSize_t(opscope_tensor_storage_bytes(opscope__py_core(self)));
}

PyMethodDef opscope__py_tensor_methods[] = {
    {"size", size, METH_VARARGS, "size($self, dim=None, /)\n--\n\nIts sizes, or that of `dim`."},
    {"stride", stride, METH_VARARGS,
     "stride($self, dim=None, /)\n--\n\nIts strides in elements, or that of `dim`."},
    {"numel", numel, METH_NOARGS, "numel($self)\n--\n\nThe number of its elements."},
    {"element_size", element_size, METH_NOARGS,
     "element_size($self)\n--\n\nThe number of bytes of one element."},
    {"dim", dim, METH_NOARGS, "dim($self)\n--\n\nThe number of its dimensions."},
    {"storage_offset", storage_offset, METH_NOARGS,
     "storage_offset($self)\n--\n\nElements from the start of its storage to its first one."},
    {"is_contiguous", is_contiguous, METH_NOARGS,
     "is_contiguous($self)\n--\n\nWhether its elements lie in memory in order, without gaps."},
    {"is_floating_point", is_floating_point, METH_NOARGS,
     "is_floating_point($self)\n--\n\nWhether its elements are floating point numbers."},
    {"data_ptr", data_ptr, METH_NOARGS, "data_ptr($self)\n--\n\nAddress of its first element."},
    {"_storage_data_ptr", storage_data_ptr, METH_NOARGS, NULL},
    {"_storage_bytes", storage_bytes, METH_NOARGS, NULL},
    {0},
};

/* ---- functions ------------------------------------------------------------------------------------ */

/* For built-in operators, callbacks get inputs as addresses of core tensors. */
static PyObject *from_address(PyObject *module, PyObject *number)
{
    (void)module;
    opscope_tensor *core = PyLong_AsVoidPtr(number);
    if (!core) {
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return opscope__py_tensor_wrap(opscope_tensor_retain(core));
}

/* Makes shapes objects of the class, and `device` that object. */
static PyObject *set_types(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *size, *device;
    if (!PyArg_ParseTuple(args, "OO:set_types", &size, &device)) {
        return NULL;
    }
    Py_XDECREF(size_class);
    Py_XDECREF(cpu_device);
    size_class = Py_NewRef(size);
    cpu_device = Py_NewRef(device);
    Py_RETURN_NONE;
}

PyMethodDef opscope__py_tensor_functions[] = {
    {"set_types", set_types, METH_VARARGS, NULL},
    {"from_address", from_address, METH_O, NULL},
    {0},
};

/* ---- the type --------------------------------------------------------------------------------------- */

static PyMemberDef tensor_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(opscope__py_tensor, weak_references), READONLY,
     NULL},
    {0},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc, "A multidimensional array: sizes and strides over a storage that views share."},
    {Py_tp_new, (void *)tensor_new},
    {Py_tp_init, (void *)tensor_init},
    {Py_tp_dealloc, (void *)tensor_dealloc},
    {Py_tp_traverse, (void *)opscope__py_tensor_traverse},
    {Py_tp_clear, (void *)opscope__py_tensor_clear},
    {Py_tp_hash, (void *)tensor_hash},
    {Py_tp_members, tensor_members},
    {0, NULL},
};

/* Appends the slots of `part` to `all`, which has room for them. */
static size_t append_slots(PyType_Slot *all, size_t count, const PyType_Slot *part)
{
    while (part->slot != 0) {
        all[count++] = *part++;
    }
    return count;
}

static int add_methods(PyMethodDef *methods)
{
    for (; methods->ml_name; methods++) {
        PyObject *descriptor = PyDescr_NewMethod(opscope__py_tensor_type, methods);
        if (!descriptor || PyObject_SetAttrString((PyObject *)opscope__py_tensor_type,
                                                  methods->ml_name, descriptor) < 0) {
            Py_XDECREF(descriptor);
            return -1;
        }
        Py_DECREF(descriptor);
    }
    return 0;
}

static int add_attributes(PyGetSetDef *attributes)
{
    for (; attributes->name; attributes++) {
        PyObject *descriptor = PyDescr_NewGetSet(opscope__py_tensor_type, attributes);
        if (!descriptor || PyObject_SetAttrString((PyObject *)opscope__py_tensor_type,
                                                  attributes->name, descriptor) < 0) {
            Py_XDECREF(descriptor);
            return -1;
        }
        Py_DECREF(descriptor);
    }
    return 0;
}

int opscope__py_add_tensor(PyObject *module)
{
    PyType_Slot slots[96];
    size_t count = append_slots(slots, 0, tensor_slots);
    count = append_slots(slots, count, opscope__py_number_slots);
    count = append_slots(slots, count, opscope__py_index_slots);
    count = append_slots(slots, count, opscope__py_buffer_slots);
    slots[count] = (PyType_Slot){0, NULL};
    PyType_Spec spec = {
        .name = "opscope.tensor.Tensor",
        .basicsize = sizeof(opscope__py_tensor),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    opscope__py_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!opscope__py_tensor_type || add_methods(opscope__py_tensor_methods) < 0 ||
        add_methods(opscope__py_value_methods) < 0 || add_methods(opscope__py_data_methods) < 0 ||
        add_methods(opscope__py_dlpack_methods) < 0 ||
        add_methods(opscope__py_autograd_methods) < 0 ||
        add_attributes(opscope__py_tensor_attributes) < 0 ||
        add_attributes(opscope__py_data_attributes) < 0 ||
        add_attributes(opscope__py_autograd_attributes) < 0) {
        return -1;
    }
    opscope__py_find_number_operators();
    opscope__py_find_index_operators();
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)opscope__py_tensor_type);
}
