/* torch/python/blocks.c -- follows record_function blocks by the operators of PyTorch's that begin
 * and end them: profiler::_record_function_enter_new and profiler::_record_function_exit.
 *
 * Python calls such an operator through an object (an OpOverloadPacket or an OpOverload) that has
 * the builtin to call in its attribute `_op`. A hook takes that place. It has the builtin's
 * attributes, hash and text, and is equal to it, because these objects hash themselves by `_op`,
 * and PyTorch keeps them in sets and looks builtins up. The object that the first operator returns,
 * and the second one takes, identifies the block.
 *
 * The GIL guards everything here: block_type, has_ended, the open blocks and the hooks. In
 * free-threaded Python the bridge does not attach (agent/opscope/bridges/torch/).
 */
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "base/atomics.h"
#include "bridges/torch/block.h"
#include "bridges/torch/stack.h"
#include "private/torch.h"
#include "recorder/cost.h"
#include "recorder/recorder.h"

struct hook {
    PyObject_HEAD
    PyObject *original;
    PyObject *weak_references;
    bool is_end;
};

static PyObject *hook_type;
static PyTypeObject *block_type; /* of the trial's block; NULL: no block was seen */
static bool has_ended;           /* the end of one was seen */
static PyObject *gone;           /* the callback of weak references */

/* Blocks that are open, newest last. */
static struct open_block {
    const void *block; /* only its address is used */
    PyObject *watch;   /* a weak reference; NULL: PyTorch's own, whose end always comes */
    uint64_t number;   /* counts up from 1 */
} *open_blocks;
static size_t open_count, open_room;
static uint64_t last_number;

static struct hook *hook_of(PyObject *object)
{
    return (struct hook *)(void *)object;
}

static bool is_hook(PyObject *object)
{
    return hook_type != NULL && (PyObject *)Py_TYPE(object) == hook_type;
}

/* ---- open blocks ------------------------------------------------------------------------------ */

/* The index of a block; SIZE_MAX: it is not open. */
static size_t find_open(const void *block)
{
    size_t i = open_count;
    while (i > 0 && open_blocks[i - 1].block != block) {
        i--;
    }
    return i - 1;
}

static size_t find_watched(const PyObject *watch)
{
    size_t i = open_count;
    while (i > 0 && open_blocks[i - 1].watch != watch) {
        i--;
    }
    return i - 1;
}

static void forget(size_t index)
{
    PyObject *watch = open_blocks[index].watch;
    open_count--;
    memmove(&open_blocks[index], &open_blocks[index + 1],
            (open_count - index) * sizeof *open_blocks);
    Py_XDECREF(watch);
}

/* A block is gone. */
static PyObject *block_gone(PyObject *self, PyObject *watch)
{
    (void)self;
    const size_t index = find_watched(watch);
    if (index != SIZE_MAX) {
        const void *block = open_blocks[index].block;
        forget(index);
        opscope__torch_block_end(block);
    }
    return Py_NewRef(Py_None);
}

static bool make_callback(void)
{
    static PyMethodDef definition = {"block_gone", block_gone, METH_O, NULL};
    if (gone == NULL) {
        gone = PyCFunction_New(&definition, NULL);
    }
    return gone != NULL;
}

/* False if memory ran out. */
static bool has_room(void)
{
    if (open_count < open_room) {
        return true;
    }
    const size_t room = open_room != 0 ? 2 * open_room : 64;
    struct open_block *grown = realloc(open_blocks, room * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    open_blocks = grown;
    open_room = room;
    return true;
}

/* The same. The weak reference comes first: making it may collect garbage, and finalizers may begin
 * and end blocks. */
static bool remember(PyObject *block, bool is_watched)
{
    PyObject *watch = NULL;
    if (is_watched) {
        watch = make_callback() ? PyWeakref_NewRef(block, gone) : NULL;
        if (watch == NULL) {
            return false;
        }
    }
    if (!has_room()) {
        Py_XDECREF(watch);
        return false;
    }
    open_blocks[open_count++] = (struct open_block){block, watch, ++last_number};
    return true;
}

/* A new block has this address. True if an inner hook has followed it already, since `number` was
 * the last one. An older block of this address was not watched, and is gone without an end. */
static bool is_followed_already(const void *block, uint64_t number)
{
    const size_t index = find_open(block);
    if (index == SIZE_MAX || open_blocks[index].number > number) {
        return index != SIZE_MAX;
    }
    forget(index);
    opscope__torch_block_lose(block);
    return false;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* The block that a call ends; borrowed. By name, it is the only argument, "record" or "_0". */
static PyObject *block_of(PyObject *args, PyObject *names)
{
    if (PyTuple_Size(args) > 0) {
        return PyTuple_GetItem(args, 0);
    }
    Py_ssize_t at = 0;
    PyObject *name = NULL, *block = NULL;
    return names != NULL && PyDict_Next(names, &at, &name, &block) ? block : NULL;
}

/* The name of the block that a call begins; borrowed. */
static PyObject *name_of(PyObject *args, PyObject *names)
{
    if (PyTuple_Size(args) > 0) {
        return PyTuple_GetItem(args, 0);
    }
    return names != NULL ? PyDict_GetItemString(names, "name") : NULL;
}

/* PyTorch's own blocks, of an optimizer or a DataLoader, are not watched: its code ends them, and a
 * weak reference costs a third of what following a block does in a step of training. Many open
 * blocks mean that some are gone without an end: new ones are watched then, so that the list does
 * not grow. */
enum { UNWATCHED_LIMIT = 64 };

static void follow(PyObject *block, PyObject *name, uint64_t start_ticks)
{
    Py_ssize_t bytes = 0;
    const char *text = name != NULL ? PyUnicode_AsUTF8AndSize(name, &bytes) : NULL;
    if (text == NULL) {
        PyErr_Clear();
        return;
    }
    const opscope_op *op = opscope__torch_block_op(text, (size_t)bytes);
    const bool is_watched = !opscope__torch_is_own_block(op) || open_count >= UNWATCHED_LIMIT;
    if (remember(block, is_watched)) {
        opscope__torch_block_start(block, op, start_ticks);
    } else {
        PyErr_Clear();
    }
}

/* A hash of the name, which no switch to another greenlet leaves without its object; 0: unknown. */
static uint64_t hash_of(PyObject *name)
{
    if (name == NULL || !PyUnicode_Check(name)) {
        return 0;
    }
    /* The hash of a subclass is the program's code; so this is of the name as an exact str. */
    PyObject *text = PyUnicode_FromObject(name);
    if (text == NULL) {
        PyErr_Clear();
        return 0;
    }
    const uint64_t hash = (uint64_t)PyObject_Hash(text);
    Py_DECREF(text);
    return hash;
}

/* PyTorch begins a block's range inside the operator: after it has parsed the call, and before it
 * makes the object that it returns, which takes from 0.6 us to 4 us. The range here begins in the
 * middle of the innermost call, so it differs from PyTorch's by less than a microsecond in our
 * measurements. */
static PyObject *begin_block(const struct hook *hook, PyObject *args, PyObject *names)
{
    /* Partner: the release in torch/attach.c. */
    const bool is_followed = opscope__load_acquire(&opscope__torch_follows_blocks);
    const uint64_t start = opscope__cost_probe_clock();
    const uint64_t number = last_number;
    if (is_followed) {
        opscope__torch_block_will_begin();
    }
    PyObject *name = name_of(args, names);
    const struct opscope__torch_block_call around = opscope__torch_block_call;
    const uint64_t hash = hash_of(name);
    /* A mode may also begin blocks of its own, with other names. */
    opscope__torch_block_call = (struct opscope__torch_block_call){
        .name = hash,
        .top = opscope__torch_stack != NULL ? opscope__torch_stack->top : NULL,
        .is_again = hash != 0 && hash == around.name};
    PyObject *block = PyObject_Call(hook->original, args, names);
    const struct opscope__torch_block_call call = opscope__torch_block_call;
    const uint64_t now = opscope__cost_probe_clock();
    const uint64_t middle = now > start ? start + (now - start) / 2 : now;
    const uint64_t began = call.began_ticks != 0 ? call.began_ticks : middle;
    opscope__torch_block_call = around;
    if (call.is_again) {
        opscope__torch_block_call.began_ticks = began;
        opscope__torch_block_call.has_left |= call.has_left;
        return block;
    }
    if (block == NULL) {
        return NULL;
    }
    if (block_type == NULL) {
        block_type = Py_TYPE(block);
    }
    const bool is_left_to_us =
        call.has_left || (is_followed && opscope__load_relaxed(&opscope__torch_follows_blocks));
    /* A mode may return anything; and an inner hook may have followed the block already. */
    if (is_left_to_us && Py_TYPE(block) == block_type && !is_followed_already(block, number)) {
        follow(block, name, began);
        opscope__cost_outer(opscope__cost_probe_clock() - now, true);
    } else if (call.has_left) {
        opscope__recorder_count_lost();
    }
    return block;
}

/* PyTorch ends a block's range inside the operator, after it has parsed the call (4 us). So the
 * range ends here when the operator has returned. */
static PyObject *end_block(const struct hook *hook, PyObject *args, PyObject *names)
{
    const PyObject *block = block_of(args, names); /* the caller's arguments keep it alive */
    has_ended |= block != NULL && Py_TYPE(block) == block_type;
    opscope__torch_block_will_end(block);
    PyObject *result = PyObject_Call(hook->original, args, names);
    const size_t index = block != NULL ? find_open(block) : SIZE_MAX;
    if (index != SIZE_MAX) {
        const uint64_t start = opscope__cost_probe_clock();
        PyObject *type = NULL, *value = NULL, *traceback = NULL;
        if (result == NULL) {
            PyErr_Fetch(&type, &value, &traceback); /* the callbacks of the end may be in Python */
        }
        forget(index);
        opscope__torch_block_end(block);
        if (result == NULL) {
            PyErr_Restore(type, value, traceback);
        }
        opscope__cost_outer(opscope__cost_probe_clock() - start, false);
    }
    return result;
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
    const bool is_own = PyUnicode_CompareWithASCIIString(name, "__copy__") == 0 ||
                        PyUnicode_CompareWithASCIIString(name, "__deepcopy__") == 0;
    return is_own ? PyObject_GenericGetAttr(self, name)
                  : PyObject_GetAttr(hook_of(self)->original, name);
}

/* copy.copy() and copy.deepcopy() of a builtin return it. */
static PyObject *hook_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
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
    static PyMethodDef methods[] = {{"__copy__", hook_copy, METH_NOARGS, NULL},
                                    {"__deepcopy__", hook_copy, METH_O, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyMemberDef members[] = {
        {"__weaklistoffset__", T_PYSSIZET, offsetof(struct hook, weak_references), READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_call, hook_call},    {Py_tp_hash, hook_hash},    {Py_tp_repr, hook_text},
        {Py_tp_getattro, hook_get}, {Py_tp_setattro, hook_set}, {Py_tp_richcompare, hook_compare},
        {Py_tp_methods, methods},   {Py_tp_members, members},   {0, NULL},
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
