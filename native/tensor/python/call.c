/* Calls an operator of the core from Python: handles the GIL, and wraps results.
 *
 * bind.c binds the arguments.
 */
#include "tensor/python/python.h"

#include <string.h>

#include "tensor/core/registry.h"

/* A call with this many elements or more releases the GIL for other threads. */
enum { ELEMENTS_WORTH_RELEASING = 4096 };

/* The result types of operators with several outputs, by operator. Created once, never freed. */
static struct {
    const opscope_operator *op;
    PyTypeObject *type;
} *result_types;
static size_t result_type_count;

static bool is_long(const opscope_argument *arguments, size_t count)
{
    bool has_tensor = false;
    for (size_t i = 0; i < count; i++) {
        const opscope_argument *argument = &arguments[i];
        if (argument->kind == OPSCOPE_ARGUMENT_TENSOR) {
            has_tensor = true;
            if (opscope_tensor_count(argument->as.tensor) >= ELEMENTS_WORTH_RELEASING) {
                return true;
            }
        } else if (argument->kind == OPSCOPE_ARGUMENT_TENSORS) {
            return true;
        }
    }
    return !has_tensor; /* zeros, arange: the number of elements is known only after the call */
}

/* While a call runs without the GIL, another thread may make a Tensor refer to another core tensor
 * (`data`, out=), so the call keeps its arguments alive. */
static void keep(const opscope_argument *arguments, size_t count, bool release)
{
    for (size_t i = 0; i < count; i++) {
        bool is_list = arguments[i].kind == OPSCOPE_ARGUMENT_TENSORS;
        size_t length = is_list ? arguments[i].count : arguments[i].kind == OPSCOPE_ARGUMENT_TENSOR;
        for (size_t j = 0; j < length; j++) {
            opscope_tensor *tensor = is_list ? arguments[i].as.tensors[j] : arguments[i].as.tensor;
            if (release) {
                opscope_tensor_release(tensor);
            } else {
                opscope_tensor_retain(tensor);
            }
        }
    }
}

/* Takes the reference. */
static PyObject *wrap_output(opscope_tensor *output, PyObject *self)
{
    if (self && opscope__py_core(self) == output) {
        opscope_tensor_release(output);
        return Py_NewRef(self);
    }
    return opscope__py_tensor_wrap(output);
}

static PyTypeObject *result_type_of(const opscope_operator *op)
{
    for (size_t i = 0; i < result_type_count; i++) {
        if (result_types[i].op == op) {
            return result_types[i].type;
        }
    }
    return NULL;
}

static PyObject *wrap_outputs(const opscope_operator *op, opscope_tensor **outputs, size_t count,
                              PyObject *self)
{
    PyTypeObject *type = result_type_of(op);
    PyObject *result = type ? PyStructSequence_New(type) : PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; i < count; i++) {
        PyObject *output = wrap_output(outputs[i], self);
        if (!output || !result) {
            Py_XDECREF(output);
            Py_CLEAR(result);
        } else if (type) {
            PyStructSequence_SetItem(result, (Py_ssize_t)i, output);
        } else {
            PyTuple_SetItem(result, (Py_ssize_t)i, output);
        }
    }
    return result;
}

static PyObject *wrap_list(opscope_tensor_list *list)
{
    PyObject *result = PyTuple_New((Py_ssize_t)list->count);
    for (size_t i = 0; result && i < list->count; i++) {
        PyObject *output = opscope__py_tensor_wrap(opscope_tensor_retain(list->tensors[i]));
        if (!output) {
            Py_CLEAR(result);
        } else {
            PyTuple_SetItem(result, (Py_ssize_t)i, output);
        }
    }
    opscope_tensor_list_release(list);
    return result;
}

static PyObject *call_list(const opscope_operator *op, const opscope_argument *arguments,
                           size_t count)
{
    opscope_tensor_list list;
    int status = opscope_call_list(op, arguments, count, &list);
    return status == OPSCOPE_OK ? wrap_list(&list) : opscope__py_raise(status);
}

static int fail_results(const opscope_operator *op, size_t wanted)
{
    PyErr_Format(PyExc_TypeError, "%s(): out must be %s", opscope_operator_name(op),
                 wanted == 1 ? "a Tensor" : "a tuple of Tensors");
    return -1;
}

PyObject *opscope__py_call_out(const opscope_operator *op, const opscope_argument *arguments,
                               size_t count, PyObject *results)
{
    size_t wanted = opscope__operator_schema(op)->output_count;
    opscope_tensor *targets[OPSCOPE_OUTPUT_LIMIT];
    PyObject *objects[OPSCOPE_OUTPUT_LIMIT];
    bool is_tuple = PyTuple_Check(results);
    size_t given = is_tuple ? (size_t)PyTuple_Size(results) : 1;
    bool fits = given == wanted;
    for (size_t i = 0; i < wanted && fits; i++) {
        objects[i] = is_tuple ? PyTuple_GetItem(results, (Py_ssize_t)i) : results;
        fits = opscope__py_is_tensor(objects[i]);
    }
    if (!fits) {
        fail_results(op, wanted);
        return NULL;
    }
    for (size_t i = 0; i < wanted; i++) {
        targets[i] = opscope_tensor_retain(opscope__py_core(objects[i]));
    }
    keep(arguments, count, false);
    PyThreadState *state = PyEval_SaveThread();
    int status = opscope_call_out(op, arguments, count, targets);
    PyEval_RestoreThread(state);
    keep(arguments, count, true);
    for (size_t i = 0; i < wanted; i++) {
        /* The old one stays alive until here: the arguments may be it. */
        opscope__py_tensor_rebind(objects[i], targets[i]);
    }
    return status == OPSCOPE_OK ? Py_NewRef(results) : opscope__py_raise(status);
}

PyObject *opscope__py_call(const opscope_operator *op, const opscope_argument *arguments,
                           size_t count, PyObject *self)
{
    if (opscope__operator_schema(op)->output_is_list) {
        return call_list(op, arguments, count);
    }
    opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT] = {NULL};
    int status;
    if (is_long(arguments, count)) {
        keep(arguments, count, false);
        PyThreadState *state = PyEval_SaveThread();
        status = opscope_call(op, arguments, count, outputs);
        PyEval_RestoreThread(state);
        keep(arguments, count, true);
    } else {
        status = opscope_call(op, arguments, count, outputs);
    }
    if (status != OPSCOPE_OK) {
        return opscope__py_raise(status);
    }
    size_t output_count = opscope__operator_schema(op)->output_count;
    return output_count == 1 ? wrap_output(outputs[0], self)
                             : wrap_outputs(op, outputs, output_count, self);
}

int opscope__py_prepare_results(const opscope_operator *op)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    if (schema->output_count < 2 || *schema->output_names[0] == '\0') {
        return 0;
    }
    void *grown = PyMem_Realloc(result_types, (result_type_count + 1) * sizeof *result_types);
    if (!grown) {
        PyErr_NoMemory();
        return -1;
    }
    result_types = grown;
    PyStructSequence_Field fields[OPSCOPE_OUTPUT_LIMIT + 1] = {{NULL, NULL}};
    for (size_t i = 0; i < schema->output_count; i++) {
        fields[i] = (PyStructSequence_Field){schema->output_names[i], NULL};
    }
    char name[64];
    PyOS_snprintf(name, sizeof name, "opscope.tensor.%s_result",
                  strstr(opscope_operator_name(op), "::") + 2);
    PyTypeObject *type = PyStructSequence_NewType(&(PyStructSequence_Desc){
        .name = name, .fields = fields, .n_in_sequence = (int)schema->output_count});
    if (!type) {
        return -1;
    }
    result_types[result_type_count].op = op;
    result_types[result_type_count].type = type;
    result_type_count++;
    return 0;
}
