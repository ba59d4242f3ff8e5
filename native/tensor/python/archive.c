/* Archives of models: open_archive(path) with the type Archive, write_archive(...), and
 * strided(...) for tensors over what an archive has mapped. opscope.tensor.archive is what users
 * import. */
#include "tensor/python/python.h"

#include "opscope/archive.h"
#include "tensor/python/buffer_abi.h"

typedef struct {
    PyObject_HEAD
    opscope_archive *core; /* never NULL once made */
} archive_object;

static PyTypeObject *archive_type;

/* A failure of the operating system is an OSError, any other as of an operator. */
static PyObject *raise_failure(int status)
{
    PyObject *type = status == OPSCOPE_ERR_NOT_FOUND    ? PyExc_FileNotFoundError
                     : status == OPSCOPE_ERR_PERMISSION ? PyExc_PermissionError
                     : status == OPSCOPE_ERR_IO || status == OPSCOPE_ERR_NO_SPACE ||
                             status == OPSCOPE_ERR_READ_ONLY
                         ? PyExc_OSError
                         : NULL;
    if (type == NULL) {
        return opscope__py_raise(status);
    }
    opscope__py_set_error(type, opscope_tensor_error());
    return NULL;
}

/* The text of a name, which the file may have in any encoding. */
static PyObject *text_of(const char *name)
{
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "backslashreplace");
}

/* ---- the type ------------------------------------------------------------------------------- */

static PyObject *open_archive(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *encoded;
    if (!PyUnicode_FSConverter(path, &encoded)) {
        return NULL;
    }
    opscope_archive *core = NULL;
    int status;
    Py_BEGIN_ALLOW_THREADS status = opscope_archive_open(PyBytes_AsString(encoded), &core);
    Py_END_ALLOW_THREADS Py_DECREF(encoded);
    if (status != OPSCOPE_OK) {
        return raise_failure(status);
    }
    archive_object *self = PyObject_New(archive_object, archive_type);
    if (self == NULL) {
        opscope_archive_close(core);
        return NULL;
    }
    self->core = core;
    return (PyObject *)self;
}

static void archive_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    opscope_archive_close(((archive_object *)self)->core);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *archive_folder(PyObject *self, void *unused)
{
    (void)unused;
    return text_of(opscope_archive_folder(((archive_object *)self)->core));
}

static PyObject *archive_entries(PyObject *self, PyObject *unused)
{
    (void)unused;
    opscope_archive *core = ((archive_object *)self)->core;
    PyObject *entries = PyDict_New();
    for (size_t i = 0; entries != NULL && i < opscope_archive_count(core); i++) {
        opscope_archive_entry entry;
        opscope_archive_entry_at(core, i, &entry);
        PyObject *name = text_of(entry.name);
        PyObject *facts = Py_BuildValue("KKKI", (unsigned long long)entry.bytes,
                                        (unsigned long long)entry.file_bytes,
                                        (unsigned long long)entry.offset, entry.crc);
        if (name == NULL || facts == NULL || PyDict_SetItem(entries, name, facts) < 0) {
            Py_CLEAR(entries);
        }
        Py_XDECREF(name);
        Py_XDECREF(facts);
    }
    return entries;
}

static PyObject *archive_read(PyObject *self, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (text == NULL) {
        return NULL;
    }
    const void *data = NULL;
    size_t bytes = 0;
    int status;
    Py_BEGIN_ALLOW_THREADS status =
        opscope_archive_read(((archive_object *)self)->core, text, &data, &bytes);
    Py_END_ALLOW_THREADS if (status == OPSCOPE_ERR_NOT_FOUND)
    {
        opscope__py_set_error(PyExc_KeyError, opscope_tensor_error());
        return NULL;
    }
    return status != OPSCOPE_OK ? raise_failure(status)
                                : PyBytes_FromStringAndSize(data, (Py_ssize_t)bytes);
}

static PyObject *archive_tensor(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *dtype;
    if (!PyArg_ParseTuple(args, "sO:tensor", &name, &dtype)) {
        return NULL;
    }
    if (!opscope__py_is_dtype(dtype)) {
        PyErr_SetString(PyExc_TypeError, "dtype must be an opscope.tensor.dtype");
        return NULL;
    }
    opscope_tensor *core;
    const int status = opscope_archive_tensor(((archive_object *)self)->core, name,
                                              opscope__py_dtype_value(dtype), &core);
    if (status == OPSCOPE_ERR_NOT_FOUND) {
        opscope__py_set_error(PyExc_KeyError, opscope_tensor_error());
        return NULL;
    }
    return status != OPSCOPE_OK ? raise_failure(status) : opscope__py_tensor_wrap(core);
}

static PyMethodDef archive_methods[] = {
    {"entries", archive_entries, METH_NOARGS,
     "entries($self)\n--\n\nFor each entry, by name: its bytes, those in the file, the offset of "
     "its data, its CRC-32."},
    {"read", archive_read, METH_O,
     "read($self, name, /)\n--\n\nThe content of an entry, checked by its CRC-32. KeyError without "
     "it."},
    {"tensor", archive_tensor, METH_VARARGS,
     "tensor($self, name, dtype, /)\n--\n\nA tensor of one dimension over a stored entry, mapped "
     "from the file."},
    {0},
};

static PyGetSetDef archive_attributes[] = {
    {"folder", archive_folder, NULL, "The folder that all entries lie in, or \"\".", NULL},
    {0},
};

static PyType_Slot archive_slots[] = {
    {Py_tp_doc, "An open archive, mapped; see opscope/archive.h."},
    {Py_tp_dealloc, (void *)archive_dealloc},
    {Py_tp_methods, archive_methods},
    {Py_tp_getset, archive_attributes},
    {0},
};

static PyType_Spec archive_spec = {
    .name = "opscope._tensor.Archive",
    .basicsize = sizeof(archive_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = archive_slots,
};

int opscope__py_add_archive(PyObject *module)
{
    archive_type = (PyTypeObject *)PyType_FromSpec(&archive_spec);
    return archive_type == NULL
               ? -1
               : PyModule_AddObjectRef(module, "Archive", (PyObject *)archive_type);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Adds one (name, buffer). Returns a status; `*failed` with an exception set where Python failed.
 */
static int add_entry(opscope_archive_writer *writer, PyObject *entry, bool *failed)
{
    const char *name;
    Py_buffer content;
    *failed =
        !PyArg_ParseTuple(entry, "sy*;entries are pairs of a name and bytes", &name, &content);
    if (*failed) {
        return OPSCOPE_ERR_INVALID;
    }
    int status;
    Py_BEGIN_ALLOW_THREADS status =
        opscope_archive_writer_add(writer, name, content.buf, (size_t)content.len);
    Py_END_ALLOW_THREADS opscope__buffers.release(&content);
    return status;
}

static PyObject *write_archive(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path, *entries;
    const char *folder;
    if (!PyArg_ParseTuple(args, "O&sO!:write_archive", PyUnicode_FSConverter, &path, &folder,
                          &PyList_Type, &entries)) {
        return NULL;
    }
    opscope_archive_writer *writer = NULL;
    int status = opscope_archive_writer_open(PyBytes_AsString(path), folder, &writer);
    Py_DECREF(path);
    bool failed = false;
    for (Py_ssize_t i = 0; status == OPSCOPE_OK && i < PyList_Size(entries); i++) {
        PyObject *entry = Py_NewRef(PyList_GetItem(entries, i));
        status = add_entry(writer, entry, &failed);
        Py_DECREF(entry);
    }
    if (status == OPSCOPE_OK) {
        /* The hook may be Python's, which takes the GIL. */
        Py_BEGIN_ALLOW_THREADS status = opscope_archive_writer_finish(writer);
        Py_END_ALLOW_THREADS
    } else {
        opscope_archive_writer_cancel(writer);
    }
    if (status != OPSCOPE_OK) {
        return failed ? NULL : raise_failure(status);
    }
    Py_RETURN_NONE;
}

/* ---- views ---------------------------------------------------------------------------------- */

static int read_numbers(PyObject *tuple, int64_t *out)
{
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count > OPSCOPE_DIM_LIMIT) {
        PyErr_Format(PyExc_ValueError, "%zd dimensions; at most %d", count, OPSCOPE_DIM_LIMIT);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (out[i] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return (int)count;
}

static PyObject *strided(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *base, *sizes, *strides;
    long long offset;
    if (!PyArg_ParseTuple(args, "OO!O!L:strided", &base, &PyTuple_Type, &sizes, &PyTuple_Type,
                          &strides, &offset)) {
        return NULL;
    }
    int64_t core_sizes[OPSCOPE_DIM_LIMIT], core_strides[OPSCOPE_DIM_LIMIT];
    opscope_tensor *of = opscope__py_tensor_of(base, "base");
    const int dims = of != NULL ? read_numbers(sizes, core_sizes) : -1;
    const int stride_count = dims >= 0 ? read_numbers(strides, core_strides) : -1;
    if (stride_count < 0) {
        return NULL;
    }
    if (dims != stride_count) {
        PyErr_SetString(PyExc_ValueError, "sizes and strides have different lengths");
        return NULL;
    }
    opscope_tensor *core;
    const int status = opscope_tensor_as_strided(of, dims, core_sizes, core_strides, offset, &core);
    return status != OPSCOPE_OK ? opscope__py_raise(status) : opscope__py_tensor_wrap(core);
}

PyMethodDef opscope__py_archive_functions[] = {
    {"open_archive", open_archive, METH_O,
     "open_archive(path, /)\n--\n\nMaps a zip file. OSError where it cannot be opened, ValueError "
     "with the reason for a damaged one."},
    {"write_archive", write_archive, METH_VARARGS,
     "write_archive(path, folder, entries, /)\n--\n\nReplaces the file by an archive of these "
     "(name, bytes) in a folder. On failure the old file is unchanged."},
    {"strided", strided, METH_VARARGS,
     "strided(base, sizes, strides, offset, /)\n--\n\nA tensor over the storage of `base`, by "
     "numbers of elements; no range, and not on the tape. ValueError if it does not lie inside."},
    {0},
};
