/* tensor/ops/elementwise/remainder.c -- core::remainder: the remainder of a division rounded
 * down. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

/* Division by zero gives 0, as in NumPy; division by -1 avoids the one case that overflows. */
static inline int64_t floor_rest(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) {
        return 0;
    }
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline double float_rest(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

OPSCOPE__BINARY(remainder_float32, float, float, float_rest((double)a, (double)b))
OPSCOPE__BINARY(remainder_float64, double, double, float_rest(a, b))
OPSCOPE__BINARY(remainder_int32, int32_t, int32_t, floor_rest(a, b))
OPSCOPE__BINARY(remainder_int64, int64_t, int64_t, floor_rest(a, b))
OPSCOPE__BINARY(remainder_uint8, uint8_t, uint8_t, b == 0 ? 0 : a % b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__NUMBER_LOOPS(remainder)}, .cost = 8)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(opscope__sum_to(&f, grad, backward->inputs[0]));
    }
    if (backward->wanted[1]) {
        opscope_tensor *whole =
            opscope__f(&f, "floor_divide", backward->arguments[0], backward->arguments[1]);
        opscope_tensor *part = opscope__f1(&f, "neg", opscope__f2(&f, "mul", grad, whole));
        gradients[1] = opscope__keep(opscope__sum_to(&f, part, backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(remainder) = {
    .schema = "remainder(Tensor self, Tensor other) -> Tensor",
    .doc = "self minus other times their quotient rounded down; it has the sign of other. Sizes "
           "broadcast, dtypes promote as in PyTorch; either argument may be a number. Integers "
           "divided by 0 give 0.",
    .samples = "t(3, 4), p(4)\n"
               "i(3), 3",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 3,
    .has_inplace = true,
    .takes_numbers = true,
};
