/* tensor/python/python.h -- declarations shared by the files of the extension module
 * opscope._tensor.
 *
 * The module uses CPython's limited API of 3.10 and lives in the main interpreter only, so its
 * types are plain globals, set once at import. It is not built for free-threaded Python
 * (without_gil.py): the GIL is the lock of each Tensor's core, of `wrapper` in the core tensor, of
 * the module's globals and of the lists that Graph, Program and Archive keep. Every function needs
 * the GIL unless it says otherwise; a function that returns a PyObject * or a negative int has set
 * an exception on failure.
 */
#ifndef OPSCOPE_TENSOR_PYTHON_H
#define OPSCOPE_TENSOR_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "opscope/tensor.h"
#include "tensor/core/schema.h"

/* ---- Tensor (wrap.c) ------------------------------------------------------------------------ */

typedef struct opscope__py_tensor {
    PyObject_HEAD
    opscope_tensor *core; /* one reference; not NULL after construction */
    PyObject *weak_references;
} opscope__py_tensor;

extern PyTypeObject *opscope__py_tensor_type; /* set by tensor_type.c */

static inline bool opscope__py_is_tensor(PyObject *object)
{
    return Py_TYPE(object) == opscope__py_tensor_type ||
           PyType_IsSubtype(Py_TYPE(object), opscope__py_tensor_type);
}

static inline opscope_tensor *opscope__py_core(PyObject *tensor)
{
    return ((opscope__py_tensor *)tensor)->core;
}

/* The Tensor of a core tensor: the existing one, or else a new one. Takes the reference, also on
 * failure. */
PyObject *opscope__py_tensor_wrap(opscope_tensor *core);
/* Makes `tensor` refer to another core tensor, which must have no Tensor yet; takes the
 * reference. */
void opscope__py_tensor_rebind(PyObject *tensor, opscope_tensor *core);
/* The core tensor of `object`, borrowed; TypeError naming `what` if it is no Tensor. */
opscope_tensor *opscope__py_tensor_of(PyObject *object, const char *what);
/* The core tensors of a tuple, borrowed; NULL for None, if allowed. The caller frees the array with
 * PyMem_Free. */
opscope_tensor **opscope__py_tensors_of(PyObject *tuple, const char *what, bool allow_none);

/* ---- exceptions (exception.c) ------------------------------------------------------------------ */

/* Sets the exception for a failed call of the core. Returns NULL. */
PyObject *opscope__py_raise(int status);
/* Sets an exception with a text of any bytes. */
void opscope__py_set_error(PyObject *type, const char *text);
/* Converts the current exception to a failure of the core, which carries it to the thread that
 * called the core; opscope__py_raise raises it there. Returns a negative status. */
int opscope__py_fail_with_exception(const char *text);

/* ---- dtype (dtype.c) -------------------------------------------------------------------------- */

/* The object of that dtype; a new reference. */
PyObject *opscope__py_dtype(opscope_dtype dtype);
bool opscope__py_is_dtype(PyObject *object);
opscope_dtype opscope__py_dtype_value(PyObject *object);
/* The struct module's format character for the dtype; NULL if it has none. */
const char *opscope__py_dtype_format(opscope_dtype dtype);
/* Reads such a format of `item_bytes` bytes; TypeError naming it if no dtype has it. */
int opscope__py_dtype_from_format(const char *format, Py_ssize_t item_bytes, opscope_dtype *out);

/* ---- calls (call.c) --------------------------------------------------------------------------- */

/* Calls `op` and wraps its outputs. If an output is the tensor of `self` (which may be NULL),
 * returns that object itself. */
PyObject *opscope__py_call(const opscope_operator *op, const opscope_argument *arguments,
                           size_t count, PyObject *self);
/* The same, but writes into `results`, a Tensor or a tuple of them, and returns `results`. */
PyObject *opscope__py_call_out(const opscope_operator *op, const opscope_argument *arguments,
                               size_t count, PyObject *results);
/* Creates the result type of `op`, for results with names. */
int opscope__py_prepare_results(const opscope_operator *op);

/* ---- arguments (bind.c) ------------------------------------------------------------------------ */

enum { OPSCOPE__PY_INLINE_COUNT = 32 };

/* A call's arguments in the core's form, and the memory they need. */
struct opscope__py_binding {
    size_t count;
    PyObject *results;                  /* the value of "out=", borrowed; or NULL */
    bool requires_grad;                 /* the result becomes a leaf that requires grad */
    size_t integer_count, tensor_count; /* numbers of used items in the arrays below */
    size_t kept_count, block_count;
    opscope_argument arguments[OPSCOPE_ARGUMENT_LIMIT];
    int64_t integers[OPSCOPE__PY_INLINE_COUNT];
    opscope_tensor *tensors[OPSCOPE__PY_INLINE_COUNT];
    PyObject *kept[OPSCOPE_ARGUMENT_LIMIT]; /* strong references */
    void *blocks[OPSCOPE_ARGUMENT_LIMIT];   /* from PyMem_Malloc, for longer lists */
};

/* Binds as Python binds a call; `self`, if not NULL, is the first argument. After success the
 * caller calls opscope__py_unbind. */
int opscope__py_bind(const opscope_operator *op, PyObject *self, PyObject *const *positional,
                     Py_ssize_t count, PyObject *keyword_names, struct opscope__py_binding *out);
/* RuntimeError unless the device is None or "cpu". (construct.c) */
int opscope__py_check_device(const char *name, PyObject *device);
/* Whether the operator can be called with out=. */
bool opscope__py_takes_out(const opscope_operator *op);
void opscope__py_unbind(struct opscope__py_binding *binding);
/* Converts a Tensor, int, float or bool to an argument; false without an exception for anything
 * else. -1 with an exception for an int beyond 64 bits. */
int opscope__py_operand(PyObject *object, opscope_argument *out);

/* tensor(data) without options (construct.c). */
PyObject *opscope__py_tensor_copied(PyObject *data);

/* ---- parts of the module, each added by its file ------------------------------------------------- */

int opscope__py_add_dtypes(PyObject *module);
int opscope__py_add_tensor(PyObject *module);
int opscope__py_add_operators(PyObject *module);
/* A dict of the operators of a library by name; adds them to the module's table. (operators.c) */
PyObject *opscope__py_operators(const opscope_operator *const *operators, size_t count);
int opscope__py_add_autograd(PyObject *module);
int opscope__py_add_archive(PyObject *module);
int opscope__py_add_graph(PyObject *module);
int opscope__py_add_program(PyObject *module);

extern PyType_Slot opscope__py_number_slots[];
extern PyType_Slot opscope__py_index_slots[];
extern PyType_Slot opscope__py_buffer_slots[];
/* Methods and module functions; each array ends with a zero entry. */
extern PyMethodDef opscope__py_tensor_methods[];
extern PyMethodDef opscope__py_value_methods[];
extern PyMethodDef opscope__py_value_functions[];
extern PyMethodDef opscope__py_data_methods[];
extern PyMethodDef opscope__py_dlpack_methods[];
extern PyMethodDef opscope__py_autograd_methods[];
extern PyMethodDef opscope__py_tensor_functions[];
extern PyMethodDef opscope__py_construct_functions[];
extern PyMethodDef opscope__py_buffer_functions[];
extern PyMethodDef opscope__py_dlpack_functions[];
extern PyMethodDef opscope__py_library_functions[];
extern PyMethodDef opscope__py_settings_functions[];
extern PyMethodDef opscope__py_repeat_functions[];
extern PyMethodDef opscope__py_data_functions[];
extern PyMethodDef opscope__py_archive_functions[];
extern PyMethodDef opscope__py_document_functions[];
extern PyMethodDef opscope__py_graph_tree_functions[];
extern PyGetSetDef opscope__py_tensor_attributes[];
extern PyGetSetDef opscope__py_data_attributes[];
extern PyGetSetDef opscope__py_autograd_attributes[];
/* Finds the operators that slots call; a missing one stays NULL. */
void opscope__py_find_number_operators(void);
void opscope__py_find_index_operators(void);

/* Is called before elements are read as Python values, and calls the listener of
 * set_read_listener. -1 with the listener's exception. (value.c) */
int opscope__py_tell_read(PyObject *tensor);
bool opscope__py_has_read_listener(void);
int opscope__py_truth(PyObject *self); /* nb_bool (value.c) */
PyObject *opscope__py_as_int(PyObject *self);
PyObject *opscope__py_as_float(PyObject *self);
PyObject *opscope__py_as_index(PyObject *self);
/* The element at `data` as a Python number. */
PyObject *opscope__py_element(const void *data, opscope_dtype dtype);
/* Writes a Python number as an element; TypeError or OverflowError if it does not fit. */
int opscope__py_set_element(void *data, opscope_dtype dtype, PyObject *number);

#endif
