/* python_call.c -- boxes the arguments and the result of a call, and preserves its exception. */
#include "bridges/python_call.h"

static void put(opscope_value *values, size_t capacity, size_t index, PyObject *object)
{
    if (index < capacity) {
        values[index] =
            (opscope_value){.kind = OPSCOPE_VALUE_OBJECT, .type = "python", .as.object = object};
    }
}

static size_t put_tuple(opscope_value *values, size_t capacity, size_t count, PyObject *tuple)
{
    Py_ssize_t size = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < size; i++) {
        put(values, capacity, count++, PyTuple_GetItem(tuple, i));
    }
    return count;
}

/* Another thread may hold the dict too. The limited API has no such locks, and the GIL no need of
 * them. */
#ifdef Py_GIL_DISABLED
#define LOCK_OBJECT(object) Py_BEGIN_CRITICAL_SECTION(object)
#define UNLOCK_OBJECT() Py_END_CRITICAL_SECTION()
#else
#define LOCK_OBJECT(object) (void)0
#define UNLOCK_OBJECT() (void)0
#endif

size_t opscope__python_arguments_box(void *arg, opscope_value *values, size_t capacity)
{
    const struct opscope__python_arguments *call = arg;
    size_t count = 0;
    if (call->self != NULL) {
        put(values, capacity, count++, call->self);
    }
    size_t vector_count = call->vector_count;
    if (call->names != NULL) {
        vector_count += (size_t)PyTuple_Size(call->names);
    }
    for (size_t i = 0; i < vector_count; i++) {
        put(values, capacity, count++, call->vector[i]);
    }
    if (call->tuple != NULL) {
        count = put_tuple(values, capacity, count, call->tuple);
    }
    if (call->keywords != NULL) {
        PyObject *name;
        PyObject *value;
        Py_ssize_t position = 0;
        LOCK_OBJECT(call->keywords);
        while (PyDict_Next(call->keywords, &position, &name, &value)) {
            put(values, capacity, count++, value);
        }
        UNLOCK_OBJECT();
    }
    return count;
}

static size_t box_result(void *arg, opscope_value *values, size_t capacity)
{
    PyObject *result = arg;
    if (PyTuple_CheckExact(result)) {
        return put_tuple(values, capacity, 0, result);
    }
    put(values, capacity, 0, result);
    return 1;
}

PyObject *opscope__python_range_close_rare(opscope_range *range, PyObject *result)
{
    if (result != NULL) {
        opscope_range_outputs(range, box_result, result);
        opscope__range_close_slow(range);
        return result;
    }
    /* A callback in Python must neither see nor clear the exception in flight. */
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    opscope_range_fail(range);
    opscope__range_close_slow(range);
    PyErr_Restore(type, value, traceback);
    return NULL;
}
