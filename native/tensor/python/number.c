/* Arithmetic, comparison and bitwise operators on tensors: each calls one operator of the core.
 *
 * The shortest path from `a + b` to the core: no binding, no keywords. For an operand that is
 * neither a tensor nor a number it returns NotImplemented, so that the other operand may try.
 */
#include "tensor/python/python.h"

/* sign(X): slot suffix, operator. */
#define BINARY(X)                                                                                  \
    X(add, "core::add")                                                                            \
    X(subtract, "core::sub")                                                                       \
    X(multiply, "core::mul")                                                                       \
    X(true_divide, "core::div")                                                                    \
    X(floor_divide, "core::floor_divide")                                                          \
    X(remainder, "core::remainder")                                                                \
    X(matrix_multiply, "core::matmul")                                                             \
    X(and, "core::bitwise_and")                                                                    \
    X(or, "core::bitwise_or")                                                                      \
    X(xor, "core::bitwise_xor")                                                                    \
    X(lshift, "core::bitwise_left_shift")                                                          \
    X(rshift, "core::bitwise_right_shift")

#define INPLACE(X)                                                                                 \
    X(inplace_add, "core::add_")                                                                   \
    X(inplace_subtract, "core::sub_")                                                              \
    X(inplace_multiply, "core::mul_")                                                              \
    X(inplace_true_divide, "core::div_")                                                           \
    X(inplace_floor_divide, "core::floor_divide_")                                                 \
    X(inplace_remainder, "core::remainder_")                                                       \
    X(inplace_and, "core::bitwise_and_")                                                           \
    X(inplace_or, "core::bitwise_or_")                                                             \
    X(inplace_xor, "core::bitwise_xor_")                                                           \
    X(inplace_lshift, "core::bitwise_left_shift_")                                                 \
    X(inplace_rshift, "core::bitwise_right_shift_")

#define UNARY(X)                                                                                   \
    X(negative, "core::neg")                                                                       \
    X(absolute, "core::abs")                                                                       \
    X(invert, "core::bitwise_not")

#define POWER(X)                                                                                   \
    X(power, "core::pow")                                                                          \
    X(inplace_power, "core::pow_")

/* In the order of Py_LT to Py_GE. */
#define COMPARISON(X)                                                                              \
    X(lt, "core::lt")                                                                              \
    X(le, "core::le")                                                                              \
    X(eq, "core::eq")                                                                              \
    X(ne, "core::ne")                                                                              \
    X(gt, "core::gt")                                                                              \
    X(ge, "core::ge")

/* clang-format off */
#define INDEX(slot, name) OP_##slot,
enum {
    BINARY(INDEX) INPLACE(INDEX) UNARY(INDEX) POWER(INDEX) COMPARISON(INDEX) OP_COUNT
};

#define OPERATOR_NAME(slot, name) [OP_##slot] = name,
static const char *const NAMES[OP_COUNT] = {
    BINARY(OPERATOR_NAME) INPLACE(OPERATOR_NAME) UNARY(OPERATOR_NAME) POWER(OPERATOR_NAME)
        COMPARISON(OPERATOR_NAME)};
/* clang-format on */

static const opscope_operator *operators[OP_COUNT];

void opscope__py_find_number_operators(void)
{
    for (int i = 0; i < OP_COUNT; i++) {
        operators[i] = opscope_operator_find(NAMES[i]);
    }
}

static PyObject *call(int index, PyObject *left, PyObject *right, PyObject *self)
{
    opscope_argument arguments[2];
    int found = opscope__py_operand(left, &arguments[0]);
    if (found == true) {
        found = opscope__py_operand(right, &arguments[1]);
    }
    if (found < 0) {
        return NULL;
    }
    if (!found || !operators[index]) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return opscope__py_call(operators[index], arguments, 2, self);
}

#define BINARY_SLOT(slot, name)                                                                    \
    static PyObject *slot_##slot(PyObject *left, PyObject *right)                                  \
    {                                                                                              \
        return call(OP_##slot, left, right, NULL);                                                 \
    }
BINARY(BINARY_SLOT)

#define INPLACE_SLOT(slot, name)                                                                   \
    static PyObject *slot_##slot(PyObject *self, PyObject *other)                                  \
    {                                                                                              \
        return call(OP_##slot, self, other, self);                                                 \
    }
INPLACE(INPLACE_SLOT)

#define POWER_SLOT(slot, name)                                                                     \
    static PyObject *slot_##slot(PyObject *left, PyObject *right, PyObject *modulus)               \
    {                                                                                              \
        if (modulus != Py_None) {                                                                  \
            Py_RETURN_NOTIMPLEMENTED;                                                              \
        }                                                                                          \
        return call(OP_##slot, left, right, OP_##slot == OP_power ? NULL : left);                  \
    }
POWER(POWER_SLOT)

#define UNARY_SLOT(slot, name)                                                                     \
    static PyObject *slot_##slot(PyObject *self)                                                   \
    {                                                                                              \
        opscope_argument argument = {.kind = OPSCOPE_ARGUMENT_TENSOR,                              \
                                     .as.tensor = opscope__py_core(self)};                         \
        if (!operators[OP_##slot]) {                                                               \
            PyErr_SetString(PyExc_TypeError, "there is no operator " name);                        \
            return NULL;                                                                           \
        }                                                                                          \
        return opscope__py_call(operators[OP_##slot], &argument, 1, NULL);                         \
    }
UNARY(UNARY_SLOT)

static PyObject *slot_positive(PyObject *self)
{
    return Py_NewRef(self);
}

static PyObject *compare(PyObject *left, PyObject *right, int operation)
{
    _Static_assert(Py_LT == 0 && Py_GE == 5, "COMPARISON is in Python's order");
    return call(OP_lt + operation, left, right, NULL);
}

#define SLOT(slot, name) {Py_nb_##slot, (void *)slot_##slot},
PyType_Slot opscope__py_number_slots[] = {
    BINARY(SLOT) INPLACE(SLOT) UNARY(SLOT) POWER(SLOT){Py_nb_positive, (void *)slot_positive},
    {Py_nb_bool, (void *)opscope__py_truth},
    {Py_nb_int, (void *)opscope__py_as_int},
    {Py_nb_float, (void *)opscope__py_as_float},
    {Py_nb_index, (void *)opscope__py_as_index},
    {Py_tp_richcompare, (void *)compare},
    {0, NULL},
};
