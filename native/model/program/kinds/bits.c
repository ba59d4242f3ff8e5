/* model/program/kinds/bits.c -- the operators of bits, and of bools. */
#include "model/program/kinds/kinds.h"
#include "opscope/status.h"

#define BITS(function, make, expression)                                                           \
    int function(struct opscope__heap *heap, const struct opscope__value *inputs,                  \
                 struct opscope__value *out)                                                       \
    {                                                                                              \
        (void)heap;                                                                                \
        *out = make(expression);                                                                   \
        return OPSCOPE_OK;                                                                         \
    }

BITS(opscope__int_and, opscope__value_int, inputs[0].as.integer &inputs[1].as.integer)
BITS(opscope__int_or, opscope__value_int, inputs[0].as.integer | inputs[1].as.integer)
BITS(opscope__int_xor, opscope__value_int, inputs[0].as.integer ^ inputs[1].as.integer)
BITS(opscope__int_invert, opscope__value_int, ~inputs[0].as.integer)
BITS(opscope__bool_and, opscope__value_bool, inputs[0].as.integer &inputs[1].as.integer)
BITS(opscope__bool_or, opscope__value_bool, inputs[0].as.integer | inputs[1].as.integer)
BITS(opscope__bool_xor, opscope__value_bool, inputs[0].as.integer ^ inputs[1].as.integer)
BITS(opscope__bool_not, opscope__value_bool, !inputs[0].as.integer)

static int check_count(int64_t count)
{
    return count < 0 ? opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "negative shift count")
                     : OPSCOPE_OK;
}

int opscope__int_lshift(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    (void)heap;
    int64_t number = inputs[0].as.integer, count = inputs[1].as.integer, result = 0;
    int status = check_count(count);
    if (status == OPSCOPE_OK && number != 0 &&
        (count > 62 || __builtin_mul_overflow(number, INT64_C(1) << count, &result))) {
        /* -1 << 63 is the one shift by more than 62 that fits. */
        if (number != -1 || count != 63) {
            return opscope_tensor_fail(OPSCOPE_ERROR_OVERFLOW, "an integer of more than 64 bits");
        }
        result = INT64_MIN;
    }
    if (status == OPSCOPE_OK) {
        *out = opscope__value_int(result);
    }
    return status;
}

/* Of a negative number, the bits before its first one are ones, as gcc and clang shift. */
int opscope__int_rshift(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    (void)heap;
    int64_t count = inputs[1].as.integer;
    int status = check_count(count);
    if (status == OPSCOPE_OK) {
        *out = opscope__value_int(inputs[0].as.integer >> (count < 63 ? count : 63));
    }
    return status;
}
