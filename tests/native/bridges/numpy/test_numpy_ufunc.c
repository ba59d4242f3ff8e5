/* tests/native/bridges/numpy/test_numpy_ufunc.c -- a ufunc whose pointer CPython does not call
 * leaves nothing behind. It uses a fake Python, because no real one behaves this way. */
#include "bridges/numpy/pointers.h"
#include "bridges/python_call.h"
#include "check.h"

/* More than the bridge's table can hold. */
enum { FAILED_COUNT = 2000 };

struct ufunc {
    PyObject head;
    opscope__vectorcall slot;
};

/* ---- as much of Python and of the rest of the bridge as ufunc.c uses ------------------------------ */

void _Py_IncRef(PyObject *object);
void _Py_DecRef(PyObject *object);

PyObject _Py_NoneStruct = {.ob_refcnt = 1};
static bool slot_is_called; /* true if CPython calls the pointer in the slot */

void _Py_IncRef(PyObject *object)
{
    object->ob_refcnt++;
}

void _Py_DecRef(PyObject *object)
{
    object->ob_refcnt--;
}

void _Py_Dealloc(PyObject *object)
{
    CHECK(object == NULL); /* nothing is freed here */
}

void PyErr_Clear(void)
{
}

PyObject *PyObject_CallFunctionObjArgs(PyObject *ufunc, ...)
{
    return slot_is_called ? ((struct ufunc *)(void *)ufunc)->slot(ufunc, NULL, 0, NULL) : NULL;
}

opscope__vectorcall *opscope__ufunc_vectorcall(PyObject *ufunc, const struct opscope__pages *pages)
{
    (void)pages;
    return &((struct ufunc *)(void *)ufunc)->slot;
}

opscope__vectorcall *opscope__ufunc_known_vectorcall(PyObject *ufunc)
{
    return opscope__ufunc_vectorcall(ufunc, NULL);
}

size_t opscope__python_arguments_box(void *call, opscope_value *values, size_t capacity)
{
    (void)call;
    (void)values;
    (void)capacity;
    return 0;
}

PyObject *opscope__python_range_close_rare(opscope_range *range, PyObject *result)
{
    opscope__range_close_slow(range);
    return result;
}

/* ---- what is attached ------------------------------------------------------------------------------ */

static PyObject *numpys(PyObject *ufunc, PyObject *const *args, size_t nargsf, PyObject *names)
{
    (void)ufunc;
    (void)args;
    (void)nargsf;
    (void)names;
    return &_Py_NoneStruct;
}

static PyObject *strangers(PyObject *ufunc, PyObject *const *args, size_t nargsf, PyObject *names)
{
    return numpys(ufunc, args, nargsf, names);
}

static int attach(struct ufunc *ufunc)
{
    const opscope_numpy_target target = {
        .kind = OPSCOPE_NUMPY_UFUNC, .object = (uintptr_t)ufunc, .name = "numpy::test"};
    return opscope__ufunc_attach(&target, NULL);
}

static void check_is_as_before(const struct ufunc *ufunc, opscope__vectorcall before)
{
    CHECK(ufunc->slot == before);
    CHECK(ufunc->head.ob_refcnt == 1);
}

int main(void)
{
    static struct ufunc failed[FAILED_COUNT];
    struct ufunc good = {.head = {.ob_refcnt = 1}, .slot = numpys};

    slot_is_called = false;
    for (size_t i = 0; i < FAILED_COUNT; i++) {
        failed[i] = (struct ufunc){.head = {.ob_refcnt = 1}, .slot = strangers};
        CHECK(attach(&failed[i]) == OPSCOPE_ERR_UNSUPPORTED);
        check_is_as_before(&failed[i], strangers);
        CHECK(opscope__ufunc_method_op((PyObject *)&failed[i], 0, "reduce") == NULL);
    }

    slot_is_called =
        true; /* later ones are neither refused as different nor because the table is full */
    CHECK(attach(&good) == OPSCOPE_OK);
    CHECK(good.slot != numpys);
    CHECK(good.head.ob_refcnt == 2);
    CHECK(opscope__ufunc_method_op((PyObject *)&good, 0, "reduce") != NULL);
    opscope__ufunc_detach();
    check_is_as_before(&good, numpys);
    return 0;
}
