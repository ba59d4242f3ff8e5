/* model/program/kinds/function.c -- functions of floats, as round() and Python's math have them. */
#include <math.h>

#include "model/program/kinds/kinds.h"
#include "opscope/status.h"

int opscope__int_of_float(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    double whole = trunc(inputs[0].as.real);
    if (isnan(whole)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "cannot convert float NaN to integer");
    }
    if (isinf(whole)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_OVERFLOW,
                                   "cannot convert float infinity to integer");
    }
    if (whole < -0x1p63 || whole >= 0x1p63) {
        return opscope_tensor_fail(OPSCOPE_ERROR_OVERFLOW, "an integer of more than 64 bits");
    }
    *out = opscope__value_int((int64_t)whole);
    return OPSCOPE_OK;
}

#define TO_INT(function, rounded)                                                                  \
    int function(struct opscope__heap *heap, const struct opscope__value *inputs,                  \
                 struct opscope__value *out)                                                       \
    {                                                                                              \
        const struct opscope__value whole = opscope__value_float(rounded(inputs[0].as.real));      \
        return opscope__int_of_float(heap, &whole, out);                                           \
    }

/* Half to even, as rint() does in the usual rounding mode and round() always. */
static double half_to_even(double real)
{
    double down = floor(real), over = real - down;
    if (over != 0.5) {
        return over < 0.5 ? down : down + 1;
    }
    return fmod(down, 2) == 0 ? down : down + 1;
}

TO_INT(opscope__float_round, half_to_even)
TO_INT(opscope__float_floor, floor)
TO_INT(opscope__float_ceil, ceil)

static int domain(const char *function)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s of a number outside its domain", function);
}

int opscope__float_sqrt(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    (void)heap;
    if (inputs[0].as.real < 0) {
        return domain("sqrt");
    }
    *out = opscope__value_float(sqrt(inputs[0].as.real));
    return OPSCOPE_OK;
}

int opscope__float_exp(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    (void)heap;
    double result = exp(inputs[0].as.real);
    if (isinf(result) && !isinf(inputs[0].as.real)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_OVERFLOW, "an exp too large for a float");
    }
    *out = opscope__value_float(result);
    return OPSCOPE_OK;
}

int opscope__float_log(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    (void)heap;
    if (inputs[0].as.real <= 0) {
        return domain("log");
    }
    *out = opscope__value_float(log(inputs[0].as.real));
    return OPSCOPE_OK;
}
