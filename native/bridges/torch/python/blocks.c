/* torch/python/blocks.c -- follows record_function blocks by the operators of PyTorch's that begin
 * and end them: profiler::_record_function_enter_new and profiler::_record_function_exit.
 *
 * Python calls such an operator through an object (an OpOverloadPacket or an OpOverload) that has
 * the builtin to call in its attribute `_op`. A hook takes that place. It has the builtin's
 * attributes, hash and text, and is equal to it, because these objects hash themselves by `_op`,
 * and PyTorch keeps them in sets and looks builtins up. The object that the first operator returns,
 * and the second one takes, identifies the block.
 *
 * The GIL guards everything here.
 */
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomics.h"
#include "bridges/torch/range.h"
#include "private/torch.h"

struct hook {
    PyObject_HEAD
    PyObject *original;
    bool is_end;
};

static PyObject *hook_type;
static const void *last_begun; /* the block that began last; only its address is used */
static bool has_ended;         /* its end was seen */

static struct hook *hook_of(PyObject *object)
{
    return (struct hook *)(void *)object;
}

static bool is_hook(PyObject *object)
{
    return hook_type != NULL && (PyObject *)Py_TYPE(object) == hook_type;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static PyObject *begin_block(const struct hook *hook, PyObject *args, PyObject *names)
{
    /* Partner: the release in torch/attach.c. */
    const bool is_followed = opscope__load_acquire(&opscope__torch_follows_blocks);
    PyObject *block = PyObject_Call(hook->original, args, names);
    if (block == NULL) {
        return NULL;
    }
    last_begun = block;
    has_ended = false;
    PyObject *name = is_followed && PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    const char *text = name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (text != NULL) {
        opscope__torch_block_start(block, text);
    } else {
        PyErr_Clear();
    }
    return block;
}

static PyObject *end_block(const struct hook *hook, PyObject *args, PyObject *names)
{
    const PyObject *block = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    if (block != NULL) {
        has_ended |= block == last_begun;
        opscope__torch_block_end(block);
    }
    return PyObject_Call(hook->original, args, names);
}

static PyObject *hook_call(PyObject *self, PyObject *args, PyObject *names)
{
    const struct hook *hook = hook_of(self);
    return hook->is_end ? end_block(hook, args, names) : begin_block(hook, args, names);
}

/* ---- otherwise it is like the builtin ------------------------------------------------------------- */

static Py_hash_t hook_hash(PyObject *self)
{
    return PyObject_Hash(hook_of(self)->original);
}

static PyObject *hook_text(PyObject *self)
{
    return PyObject_Repr(hook_of(self)->original);
}

static PyObject *hook_get(PyObject *self, PyObject *name)
{
    return PyObject_GetAttr(hook_of(self)->original, name);
}

static int hook_set(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(hook_of(self)->original, name, value);
}

static PyObject *hook_compare(PyObject *self, PyObject *other, int how)
{
    PyObject *with = is_hook(other) ? hook_of(other)->original : other;
    return PyObject_RichCompare(hook_of(self)->original, with, how);
}

static bool make_type(void)
{
    static PyType_Slot slots[] = {
        {Py_tp_call, hook_call},
        {Py_tp_hash, hook_hash},
        {Py_tp_repr, hook_text},
        {Py_tp_getattro, hook_get},
        {Py_tp_setattro, hook_set},
        {Py_tp_richcompare, hook_compare},
        {0, NULL},
    };
    static PyType_Spec spec = {.name = "opscope._native.block_hook",
                               .basicsize = (int)sizeof(struct hook),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    if (hook_type == NULL) {
        hook_type = PyType_FromSpec(&spec);
    }
    return hook_type != NULL;
}

/* ---- placing hooks ----------------------------------------------------------------------------- */

static PyObject *operator_of(uintptr_t operator_id)
{
    return (PyObject *)operator_id;
}

/* A hook is never freed, as PyTorch finds builtins by their address: it is kept for the next time.
 */
enum { HOOK_LIMIT = 8 };
static PyObject *hooks[HOOK_LIMIT];

/* Takes the reference to `original`. */
static PyObject *hook_for(PyObject *original, bool is_end)
{
    size_t place = 0;
    while (place < HOOK_LIMIT && hooks[place] != NULL) {
        if (hook_of(hooks[place])->original == original) {
            Py_DECREF(original);
            return hooks[place];
        }
        place++;
    }
    PyObject *made = place < HOOK_LIMIT && make_type()
                         ? PyType_GenericAlloc((PyTypeObject *)(void *)hook_type, 0)
                         : NULL;
    if (made == NULL) {
        Py_DECREF(original);
        return NULL;
    }
    hook_of(made)->original = original;
    hook_of(made)->is_end = is_end;
    hooks[place] = made;
    return made;
}

uintptr_t opscope_torch_hook_block(uintptr_t operator_id, bool is_end)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *operator_ = operator_of(operator_id);
    PyObject *hook = PyObject_GetAttrString(operator_, "_op");
    if (hook != NULL && !is_hook(hook)) {
        hook = hook_for(hook, is_end);
    }
    if (hook != NULL && PyObject_SetAttrString(operator_, "_op", hook) != 0) {
        hook = NULL;
    }
    PyErr_Clear();
    PyGILState_Release(gil);
    return (uintptr_t)hook;
}

void opscope_torch_unhook_block(uintptr_t operator_id)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *operator_ = operator_of(operator_id);
    PyObject *hook = PyObject_GetAttrString(operator_, "_op");
    if (hook != NULL && is_hook(hook)) {
        (void)PyObject_SetAttrString(operator_, "_op", hook_of(hook)->original);
    }
    PyErr_Clear();
    PyGILState_Release(gil);
}

bool opscope_torch_sees_blocks(void)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    const bool found = has_ended;
    PyGILState_Release(gil);
    return found;
}
