/* model/program/kinds/number.c -- Python's arithmetic of ints and floats. */
#include <math.h>

#include "model/program/kinds/kinds.h"
#include "opscope/status.h"

static int overflow(void)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_OVERFLOW, "an integer of more than 64 bits");
}

static int by_zero(const char *what)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_ZERO_DIVISION, "%s by zero", what);
}

/* ---- ints ------------------------------------------------------------------------------------- */

#define INTS(function, operation)                                                                  \
    int function(struct opscope__heap *heap, const struct opscope__value *inputs,                  \
                 struct opscope__value *out)                                                       \
    {                                                                                              \
        (void)heap;                                                                                \
        int64_t result;                                                                            \
        if (operation(inputs[0].as.integer, inputs[1].as.integer, &result)) {                      \
            return overflow();                                                                     \
        }                                                                                          \
        *out = opscope__value_int(result);                                                         \
        return OPSCOPE_OK;                                                                         \
    }

INTS(opscope__int_add, __builtin_add_overflow)
INTS(opscope__int_sub, __builtin_sub_overflow)
INTS(opscope__int_mul, __builtin_mul_overflow)

/* C divides towards zero, Python towards minus infinity. */
int opscope__int_floordiv(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    int64_t a = inputs[0].as.integer, b = inputs[1].as.integer;
    if (b == 0) {
        return by_zero("integer division");
    }
    if (b == -1 && a == INT64_MIN) {
        return overflow();
    }
    *out = opscope__value_int(a / b - (a % b != 0 && (a < 0) != (b < 0)));
    return OPSCOPE_OK;
}

int opscope__int_mod(struct opscope__heap *heap, const struct opscope__value *inputs,
                     struct opscope__value *out)
{
    (void)heap;
    int64_t a = inputs[0].as.integer, b = inputs[1].as.integer;
    if (b == 0) {
        return by_zero("integer modulo");
    }
    int64_t rest = b == -1 ? 0 : a % b;
    *out = opscope__value_int(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    return OPSCOPE_OK;
}

int opscope__int_pow(struct opscope__heap *heap, const struct opscope__value *inputs,
                     struct opscope__value *out)
{
    (void)heap;
    int64_t base = inputs[0].as.integer, exponent = inputs[1].as.integer, result = 1;
    if (exponent < 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "an int to the power of %lld is no int: convert both to float",
                                   (long long)exponent);
    }
    for (; exponent > 0; exponent >>= 1) {
        if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
            return overflow();
        }
        if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) {
            return overflow();
        }
    }
    *out = opscope__value_int(result);
    return OPSCOPE_OK;
}

/* Rounded once, as Python does, also where an int has more bits than a double. */
int opscope__int_truediv(struct opscope__heap *heap, const struct opscope__value *inputs,
                         struct opscope__value *out)
{
    (void)heap;
    int64_t a = inputs[0].as.integer, b = inputs[1].as.integer;
    const int64_t exact = INT64_C(1) << 53;
    if (b == 0) {
        return by_zero("division");
    }
    if (-exact <= a && a <= exact && -exact <= b && b <= exact) {
        *out = opscope__value_float((double)a / (double)b);
        return OPSCOPE_OK;
    }
    /* A quotient of at least 64 bits, whose last one says whether a rest was left. */
    uint64_t top = a < 0 ? -(uint64_t)a : (uint64_t)a, bottom = b < 0 ? -(uint64_t)b : (uint64_t)b;
    int shift = 64 + (top != 0 ? __builtin_clzll(top) : 0), dropped = 0;
    unsigned __int128 shifted = (unsigned __int128)top << shift;
    unsigned __int128 quotient = shifted / bottom;
    bool has_rest = shifted % bottom != 0;
    for (; quotient > UINT64_MAX; quotient >>= 1, dropped++) {
        has_rest |= (quotient & 1) != 0;
    }
    double result = ldexp((double)((uint64_t)quotient | has_rest), dropped - shift);
    *out = opscope__value_float((a < 0) != (b < 0) ? -result : result);
    return OPSCOPE_OK;
}

int opscope__int_neg(struct opscope__heap *heap, const struct opscope__value *inputs,
                     struct opscope__value *out)
{
    (void)heap;
    if (inputs[0].as.integer == INT64_MIN) {
        return overflow();
    }
    *out = opscope__value_int(-inputs[0].as.integer);
    return OPSCOPE_OK;
}

int opscope__int_abs(struct opscope__heap *heap, const struct opscope__value *inputs,
                     struct opscope__value *out)
{
    if (inputs[0].as.integer < 0) {
        return opscope__int_neg(heap, inputs, out);
    }
    *out = inputs[0];
    return OPSCOPE_OK;
}

/* ---- floats ----------------------------------------------------------------------------------- */

#define FLOATS(function, expression)                                                               \
    int function(struct opscope__heap *heap, const struct opscope__value *inputs,                  \
                 struct opscope__value *out)                                                       \
    {                                                                                              \
        (void)heap;                                                                                \
        double a = inputs[0].as.real, b = inputs[1].as.real;                                       \
        *out = opscope__value_float(expression);                                                   \
        return OPSCOPE_OK;                                                                         \
    }

FLOATS(opscope__float_add, a + b)
FLOATS(opscope__float_sub, a - b)
FLOATS(opscope__float_mul, a *b)

int opscope__float_truediv(struct opscope__heap *heap, const struct opscope__value *inputs,
                           struct opscope__value *out)
{
    (void)heap;
    if (inputs[1].as.real == 0) {
        return by_zero("float division");
    }
    *out = opscope__value_float(inputs[0].as.real / inputs[1].as.real);
    return OPSCOPE_OK;
}

/* The rest with the sign of `b`, and the quotient that goes with it, as CPython computes them. */
static double divide(double a, double b, double *rest)
{
    double mod = fmod(a, b), quotient = (a - mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            quotient -= 1;
        }
    } else {
        mod = copysign(0, b);
    }
    *rest = mod;
    if (quotient == 0) {
        return copysign(0, a / b);
    }
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

int opscope__float_floordiv(struct opscope__heap *heap, const struct opscope__value *inputs,
                            struct opscope__value *out)
{
    (void)heap;
    double rest;
    if (inputs[1].as.real == 0) {
        return by_zero("float floor division");
    }
    *out = opscope__value_float(divide(inputs[0].as.real, inputs[1].as.real, &rest));
    return OPSCOPE_OK;
}

int opscope__float_mod(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    (void)heap;
    double rest;
    if (inputs[1].as.real == 0) {
        return by_zero("float modulo");
    }
    divide(inputs[0].as.real, inputs[1].as.real, &rest);
    *out = opscope__value_float(rest);
    return OPSCOPE_OK;
}

int opscope__float_pow(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    (void)heap;
    double a = inputs[0].as.real, b = inputs[1].as.real;
    if (a == 0 && b < 0 && !isinf(b)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_ZERO_DIVISION, "0.0 to a negative power");
    }
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "a negative float to a power that is not whole is complex");
    }
    double result = pow(a, b);
    if (isinf(result) && isfinite(a) && isfinite(b)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_OVERFLOW, "a power too large for a float");
    }
    *out = opscope__value_float(result);
    return OPSCOPE_OK;
}

int opscope__float_neg(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_float(-inputs[0].as.real);
    return OPSCOPE_OK;
}

int opscope__float_abs(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_float(fabs(inputs[0].as.real));
    return OPSCOPE_OK;
}
