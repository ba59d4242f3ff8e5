/* tensor/ops/reduce/prod.c -- core::prod: the product over dimensions. */
#include "tensor/ops/reduce/reduction.h"

OPSCOPE__FOLD(prod_float32, float, double, double, 1, s *a, s *a, float, s)
OPSCOPE__FOLD(prod_float64, double, double, double, 1, s *a, s *a, double, s)
OPSCOPE__FOLD(prod_int32, int32_t, int64_t, int64_t, 1, s *a, s *a, int64_t, s)
OPSCOPE__FOLD(prod_int64, int64_t, int64_t, int64_t, 1, s *a, s *a, int64_t, s)
OPSCOPE__FOLD(prod_uint8, uint8_t, int64_t, int64_t, 1, s *a, s *a, int64_t, s)

static const struct opscope__reduction reductions[OPSCOPE_DTYPE_COUNT] =
    OPSCOPE__FOLDS(prod, 0x3FF0000000000000u, 1);

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__reduce_arguments(call, reductions, opscope__widened, arguments, NULL, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    gradients[0] =
        opscope__keep(opscope__f(&f, "prod_backward", opscope__T(backward->gradients[0]),
                                 opscope__T(backward->inputs[0]), backward->arguments[1]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(prod) = {
    .schema = "prod(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .doc = "The product over the dimensions in dim (all if it is absent or empty). Integers and "
           "bools multiply in int64.",
    .samples = "t(3, 4)\n"
               "t(3, 4), [0]\n"
               "t(2, 3, 4), [0, 2], True\n"
               "t(3, 4).round(), [1]",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
};
