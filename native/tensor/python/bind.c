/* Binds Python arguments to an operator's parameters, as Python binds a call.
 *
 * Uses only the parsed schema: which argument belongs to which parameter, and how many are allowed.
 * bind_value.c converts each argument.
 */
#include "tensor/python/bind.h"

#include <string.h>

#include "tensor/core/registry.h"

/* Whether the positional arguments from `items` on are a list of ints, as in x.view(2, 3). */
static bool is_spread(const struct opscope__schema *schema, size_t position, PyObject *const *items,
                      size_t count)
{
    if (position + 1 != schema->positional_count ||
        schema->parameters[position].type != OPSCOPE__TYPE_INTS || count == 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!PyIndex_Check(items[i])) {
            return false;
        }
    }
    return count > 1 || schema->parameters[position].length == 0;
}

bool opscope__py_takes_out(const opscope_operator *op)
{
    return !op->is_inplace && !op->spec->is_view && !op->schema.output_is_list;
}

/* Whether the operator creates a tensor without a differentiable input: it then takes dtype, device
 * and requires_grad, and its result is a leaf. */
static bool makes_leaves(const opscope_operator *op)
{
    size_t count = op->schema.count;
    return !op->has_node && count > 0 &&
           op->schema.parameters[count - 1].type == OPSCOPE__TYPE_DTYPE;
}

/* For an operator that creates a tensor: 1 if it handles the keyword, -1 with an exception. */
static int bind_leaf_keyword(const opscope_operator *op, PyObject *name, PyObject *value,
                             struct opscope__py_binding *out)
{
    if (PyUnicode_CompareWithASCIIString(name, "device") == 0) {
        return opscope__py_check_device(opscope_operator_name(op), value) < 0 ? -1 : 1;
    }
    if (PyUnicode_CompareWithASCIIString(name, "requires_grad") != 0) {
        return 0;
    }
    int truth = PyObject_IsTrue(value);
    out->requires_grad = truth > 0;
    return truth < 0 ? -1 : 1;
}

/* NumPy's names of parameters, which PyTorch takes too. */
static const char *const OTHER_NAMES[][2] = {{"axis", "dim"}, {"keepdims", "keepdim"}};

/* The parameter of that name; the number of parameters if there is none. */
static size_t place_of(const struct opscope__schema *schema, PyObject *name)
{
    const char *other = NULL;
    for (size_t i = 0; i < sizeof OTHER_NAMES / sizeof *OTHER_NAMES; i++) {
        if (PyUnicode_CompareWithASCIIString(name, OTHER_NAMES[i][0]) == 0) {
            other = OTHER_NAMES[i][1];
        }
    }
    size_t position = 0;
    while (position < schema->count &&
           PyUnicode_CompareWithASCIIString(name, schema->parameters[position].name) != 0 &&
           !(other && strcmp(other, schema->parameters[position].name) == 0)) {
        position++;
    }
    return position;
}

static int bind_keywords(const opscope_operator *op, PyObject *const *values, PyObject *names,
                         uint32_t *given, struct opscope__py_binding *out)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    Py_ssize_t count = PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        size_t position = place_of(schema, name);
        if (position == schema->count && opscope__py_takes_out(op) &&
            PyUnicode_CompareWithASCIIString(name, "out") == 0) {
            out->results = values[i];
            continue;
        }
        int found = position == schema->count && makes_leaves(op)
                        ? bind_leaf_keyword(op, name, values[i], out)
                        : 0;
        if (found != 0) {
            if (found < 0) {
                return -1;
            }
            continue;
        }
        if (position == schema->count) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                         opscope_operator_name(op), name);
            return -1;
        }
        if (*given & 1u << position) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                         opscope_operator_name(op), name);
            return -1;
        }
        *given |= 1u << position;
        out->count = position >= out->count ? position + 1 : out->count;
        if (opscope__py_bind_value(op, &schema->parameters[position], values[i], out,
                                   &out->arguments[position]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int fill_defaults(const opscope_operator *op, uint32_t given,
                         struct opscope__py_binding *out)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    for (size_t i = 0; i < schema->count; i++) {
        if (given & 1u << i) {
            continue;
        }
        if (!schema->parameters[i].has_default) {
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s' is missing",
                         opscope_operator_name(op), schema->parameters[i].name);
            return -1;
        }
        if (i < out->count) {
            out->arguments[i] = schema->parameters[i].otherwise;
        }
    }
    return 0;
}

/* Binds the positional arguments; sets the bit of each parameter that they give. */
static int bind_positional(const opscope_operator *op, PyObject *self, PyObject *const *positional,
                           size_t count, uint32_t *given, struct opscope__py_binding *out)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    size_t position = 0;
    if (self) {
        out->arguments[0].kind = OPSCOPE_ARGUMENT_TENSOR;
        out->arguments[0].as.tensor = opscope__py_core(self);
        position = 1;
    }
    for (size_t i = 0; i < count; i++, position++) {
        if (is_spread(schema, position, positional + i, count - i)) {
            if (opscope__py_bind_integers(out, &out->arguments[position], positional + i,
                                          count - i) < 0) {
                return -1;
            }
            position++;
            break;
        }
        if (position == schema->positional_count) {
            PyErr_Format(PyExc_TypeError, "%s() takes %zu positional arguments, %zu were given",
                         opscope_operator_name(op), schema->positional_count,
                         count + (self ? 1 : 0));
            return -1;
        }
        if (opscope__py_bind_value(op, &schema->parameters[position], positional[i], out,
                                   &out->arguments[position]) < 0) {
            return -1;
        }
    }
    *given = (1u << position) - 1;
    out->count = position;
    return 0;
}

int opscope__py_bind(const opscope_operator *op, PyObject *self, PyObject *const *positional,
                     Py_ssize_t count, PyObject *keyword_names, struct opscope__py_binding *out)
{
    out->integer_count = out->tensor_count = out->kept_count = out->block_count = 0;
    out->results = NULL;
    out->requires_grad = false;
    uint32_t given = 0;
    if (bind_positional(op, self, positional, (size_t)count, &given, out) < 0 ||
        (keyword_names && bind_keywords(op, positional + count, keyword_names, &given, out) < 0) ||
        fill_defaults(op, given, out) < 0) {
        opscope__py_unbind(out);
        return -1;
    }
    return 0;
}

void opscope__py_unbind(struct opscope__py_binding *binding)
{
    while (binding->kept_count > 0) {
        Py_DECREF(binding->kept[--binding->kept_count]);
    }
    while (binding->block_count > 0) {
        PyMem_Free(binding->blocks[--binding->block_count]);
    }
}
