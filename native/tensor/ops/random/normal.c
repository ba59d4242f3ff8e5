/* tensor/ops/random/normal.c -- core::normal: random numbers from normal distributions. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct opscope__formula f = {0};
    const opscope_argument *mean = &arguments[0], *std = &arguments[1], *size = &arguments[2];
    opscope_argument dtype = arguments[3];
    bool has_tensor = mean->kind == OPSCOPE_ARGUMENT_TENSOR || std->kind == OPSCOPE_ARGUMENT_TENSOR;
    if (has_tensor == (size->kind != OPSCOPE_ARGUMENT_NONE)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_TYPE, "%s: size is needed where mean and std are numbers, and only there",
            opscope__call_name(call));
    }
    double deviation = std->kind == OPSCOPE_ARGUMENT_FLOAT ? std->as.real
                       : std->kind == OPSCOPE_ARGUMENT_INT ? (double)std->as.integer
                                                           : 0;
    if (deviation < 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: std is %g; a standard deviation is 0 or more",
                                   opscope__call_name(call), deviation);
    }
    opscope_tensor *drawn;
    if (has_tensor) {
        /* The sizes and dtype of the two broadcast together. */
        opscope_tensor *like = opscope__f(&f, "add", *mean, *std);
        dtype =
            like == NULL || dtype.kind != OPSCOPE_ARGUMENT_NONE ? dtype : opscope__I(like->dtype);
        drawn = like == NULL
                    ? NULL
                    : opscope__f(&f, "randn", opscope__L(opscope__sizes(like), like->dims), dtype);
    } else {
        drawn = opscope__f(&f, "randn", *size, dtype);
    }
    drawn = opscope__f(&f, "mul", opscope__T(drawn), *std);
    outputs[0] = opscope__keep(opscope__f(&f, "add", opscope__T(drawn), *mean));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(normal) = {
    .schema =
        "normal(Tensor mean=0, Tensor std=1, int[]? size=None, *, dtype? dtype=None) -> Tensor",
    .doc =
        "Numbers drawn from the normal distributions of these means and standard deviations: tensors, which "
        "broadcast, or numbers and a size. Repeatable after manual_seed.",
    .samples = "t(3, 4), 0.0\n"
               "1.5, 0.0, [3, 4]\n"
               "1.5, 0.0, [2], dtype=float64",
    .forward = forward,
    .takes_numbers = true,
    .is_composite = true,
};
