/* tensor/ops/shape/roll.c -- core::roll: shifts elements cyclically. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

/* Shifts along one dimension by `shift` positions. */
static opscope_tensor *rolled(struct opscope__formula *f, opscope_tensor *tensor, const char *name,
                              int64_t shift, int64_t dim_argument)
{
    int dim = 0;
    if (f->status == OPSCOPE_OK) {
        f->status = opscope__wrap_dim(name, dim_argument, tensor->dims, &dim);
    }
    if (f->status == OPSCOPE_OK && tensor->dims == 0) {
        f->status = opscope_tensor_fail(OPSCOPE_ERROR_INDEX,
                                        "%s: a tensor without dimensions has no dims", name);
    }
    if (f->status != OPSCOPE_OK || opscope__sizes(tensor)[dim] == 0) {
        return tensor;
    }
    int64_t size = opscope__sizes(tensor)[dim], cut = size - (shift % size + size) % size;
    opscope_tensor *both[] = {opscope__f(f, "slice", opscope__T(tensor), opscope__I(dim),
                                         opscope__I(cut), opscope__I(size)),
                              opscope__f(f, "slice", opscope__T(tensor), opscope__I(dim),
                                         opscope__I(0), opscope__I(cut))};
    const opscope_argument list = {OPSCOPE_ARGUMENT_TENSORS, 2, {.tensors = both}};
    return opscope__f(f, "cat", list, opscope__I(dim));
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    struct opscope__formula f = {0};
    opscope_tensor *self = arguments[0].as.tensor, *tensor = self;
    uint32_t count = arguments[1].count;
    if (count == 0 || count > 8 ||
        (arguments[2].count != count && !(arguments[2].count == 0 && count == 1))) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: %u shifts for %u dims (sizes %s); expected as many, up to 8, or one shift "
            "and no dims",
            name, count, arguments[2].count, opscope__shape_text(self).text);
    }
    if (arguments[2].count == 0) {
        tensor = opscope__f(&f, "reshape", opscope__T(self), opscope__L(((int64_t[]){-1}), 1));
        tensor = f.status == OPSCOPE_OK ? rolled(&f, tensor, name, arguments[1].as.integers[0], 0)
                                        : NULL;
        tensor = opscope__f(&f, "reshape", opscope__T(tensor),
                            opscope__L(opscope__sizes(self), self->dims));
    }
    for (uint32_t i = 0; i < arguments[2].count && tensor != NULL; i++) {
        tensor = rolled(&f, tensor, name, arguments[1].as.integers[i], arguments[2].as.integers[i]);
    }
    outputs[0] = opscope__keep(tensor == self ? opscope__f1(&f, "clone", self) : tensor);
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(roll) = {
    .schema = "roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor",
    .doc = "A copy with the elements shifted cyclically along each of dims by its shift. "
           "Without dims, shifts the elements in row-major order.",
    .samples = "t(3, 4), [1]\n"
               "t(3, 4), [1, -2], [0, 1]\n"
               "t(3, 4), [7], [1]",
    .forward = forward,
    .is_composite = true,
};
