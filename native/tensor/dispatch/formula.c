/* tensor/dispatch/formula.c -- sequences of operator calls. */
#include "tensor/dispatch/formula.h"

#include <stdio.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"

opscope_tensor *opscope__own(struct opscope__formula *formula, opscope_tensor *tensor)
{
    if (tensor == NULL) {
        return NULL;
    }
    if (formula->count == OPSCOPE__FORMULA_LIMIT) {
        opscope_tensor_release(tensor);
        formula->status = opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "a formula of too many steps");
        return NULL;
    }
    formula->made[formula->count++] = tensor;
    return tensor;
}

void opscope__do_all(struct opscope__formula *formula, const char *name,
                     const opscope_argument *arguments, size_t count, opscope_tensor **outputs)
{
    for (int i = 0; i < OPSCOPE_OUTPUT_LIMIT; i++) {
        outputs[i] = NULL;
    }
    if (formula->status != OPSCOPE_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (arguments[i].kind == OPSCOPE_ARGUMENT_TENSOR && arguments[i].as.tensor == NULL) {
            return;
        }
    }
    char full[64];
    snprintf(full, sizeof full, "core::%s", name);
    const opscope_operator *op = opscope_operator_find(full);
    if (op == NULL) {
        formula->status = opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "no operator %s", full);
        return;
    }
    formula->status = opscope_call(op, arguments, count, outputs);
    for (int i = 0; i < OPSCOPE_OUTPUT_LIMIT; i++) {
        outputs[i] = opscope__own(formula, outputs[i]);
    }
}

opscope_tensor *opscope__do(struct opscope__formula *formula, const char *name,
                            const opscope_argument *arguments, size_t count)
{
    opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT];
    opscope__do_all(formula, name, arguments, count, outputs);
    return outputs[0];
}

opscope_tensor *opscope__keep(opscope_tensor *tensor)
{
    return tensor != NULL ? opscope_tensor_retain(tensor) : NULL;
}

opscope_tensor *opscope__sum_to(struct opscope__formula *formula, opscope_tensor *gradient,
                                const opscope_tensor *like)
{
    if (gradient == NULL || opscope__same_sizes(gradient, like)) {
        return gradient;
    }
    return opscope__f(formula, "sum_to_size", opscope__T(gradient),
                      opscope__L(opscope__sizes(like), like->dims));
}

opscope_tensor *opscope__unreduce(struct opscope__formula *formula, opscope_tensor *tensor,
                                  const opscope_tensor *like, const opscope_argument *dim)
{
    uint32_t set;
    bool all = dim->kind == OPSCOPE_ARGUMENT_NONE;
    int64_t kept[OPSCOPE_DIM_LIMIT];
    if (formula->status != OPSCOPE_OK || tensor == NULL) {
        return NULL;
    }
    formula->status = opscope__dim_set("backward", all ? NULL : dim->as.integers,
                                       all ? 0 : dim->count, like->dims, &set);
    for (int i = 0; i < like->dims && formula->status == OPSCOPE_OK; i++) {
        kept[i] = (set >> i & 1) != 0 ? 1 : opscope__sizes(like)[i];
    }
    opscope_tensor *full =
        opscope__f(formula, "reshape", opscope__T(tensor), opscope__L(kept, like->dims));
    return opscope__f(formula, "expand", opscope__T(full),
                      opscope__L(opscope__sizes(like), like->dims));
}

int opscope__zero_backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "fill", opscope__T(grad), opscope__I(0)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

int opscope__formula_end(struct opscope__formula *formula, opscope_tensor **results, size_t count)
{
    for (size_t i = 0; i < formula->count; i++) {
        opscope_tensor_release(formula->made[i]);
    }
    for (size_t i = 0; i < count && formula->status != OPSCOPE_OK; i++) {
        opscope_tensor_release(results[i]);
        results[i] = NULL;
    }
    return formula->status;
}

int opscope__formula_chain(struct opscope__formula *formula,
                           const struct opscope__backward *backward, opscope_tensor *slope,
                           opscope_tensor **gradients)
{
    gradients[0] = opscope__keep(opscope__f2(formula, "mul", backward->gradients[0], slope));
    return opscope__formula_end(formula, gradients, backward->input_count);
}
