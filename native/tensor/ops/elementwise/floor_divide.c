/* tensor/ops/elementwise/floor_divide.c -- core::floor_divide: the quotient rounded down. */
#include "tensor/ops/elementwise/loops.h"

/* Division by zero gives 0, as in NumPy; division by -1 avoids the one case that overflows. */
static inline int64_t floor_quotient(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) {
        return b == 0 ? 0 : -a;
    }
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

/* Rounding a / b first would make 1 // 0.1 ten. The remainder is exact, so the quotient is computed
 * after subtracting it. */
static inline double float_quotient(double a, double b)
{
    if (b == 0) {
        return a / b;
    }
    double rest = fmod(a, b);
    double quotient = rint((a - rest) / b) - (rest != 0 && (rest < 0) != (b < 0) ? 1 : 0);
    return quotient == 0 ? copysign(0, a / b) : quotient;
}

OPSCOPE__BINARY(floor_divide_float32, float, float, float_quotient((double)a, (double)b))
OPSCOPE__BINARY(floor_divide_float64, double, double, float_quotient(a, b))
OPSCOPE__BINARY(floor_divide_int32, int32_t, int32_t, floor_quotient(a, b))
OPSCOPE__BINARY(floor_divide_int64, int64_t, int64_t, floor_quotient(a, b))
OPSCOPE__BINARY(floor_divide_uint8, uint8_t, uint8_t, b == 0 ? 0 : a / b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__NUMBER_LOOPS(floor_divide)}, .cost = 16)

const struct opscope__operator_spec OPSCOPE__OPERATOR(floor_divide) = {
    .schema = "floor_divide(Tensor self, Tensor other) -> Tensor",
    .doc =
        "self / other rounded down, from the exact quotient, as in Python. Sizes broadcast, dtypes promote as "
        "in PyTorch; either argument may be a number. Integers divided by 0 give 0.",
    .samples = "t(3, 4), p(4)\n"
               "i(3), 3",
    .forward = forward,
    .elementwise = &elementwise,
    .has_inplace = true,
    .takes_numbers = true,
};
