/* tensor/ops/nn/nll_loss_backward.c -- core::nll_loss_backward: the gradient through nll_loss. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/nn/classes.h"

#define PUT(name, type)                                                                            \
    static void name(const struct opscope__classes *c, const char *grad, bool is_one, char *out)   \
    {                                                                                              \
        const int64_t *target = (const int64_t *)(const void *)c->target->data;                    \
        const type *weight =                                                                       \
            c->weight != NULL ? (const type *)(const void *)c->weight->data : NULL;                \
        for (int64_t i = 0; i < c->outer * c->inner; i++) {                                        \
            if (target[i] >= 0) {                                                                  \
                int64_t row = i / c->inner, at = i % c->inner;                                     \
                ((type *)(void *)out)[(row * c->classes + target[i]) * c->inner + at] =            \
                    -(weight != NULL ? weight[target[i]] : 1) *                                    \
                    ((const type *)(const void *)grad)[is_one ? 0 : i];                            \
            }                                                                                      \
        }                                                                                          \
    }

PUT(put_float32, float)
PUT(put_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *grad = arguments[0].as.tensor, *flat = NULL, *made = NULL;
    opscope_dtype dtype = (opscope_dtype)grad->dtype;
    int dims = (int)arguments[1].count;
    const int64_t *sizes = arguments[1].as.integers;
    struct opscope__classes classes;
    int status = opscope__tensor_empty(dims, sizes, dtype, &made);
    if (status == OPSCOPE_OK) {
        status = opscope__classes_of(name, dims, sizes, dtype, arguments[2].as.tensor,
                                     &arguments[3], arguments[4].as.integer, &classes);
    }
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(made);
        return status;
    }
    if (grad->dims != 0 && !opscope__same_sizes(grad, arguments[2].as.tensor)) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: a gradient of sizes %s; expected one number, or sizes %s as the target", name,
            opscope__shape_text(grad).text, opscope__shape_text(arguments[2].as.tensor).text);
    } else {
        status = opscope__contiguous(grad, &flat);
    }
    if (status == OPSCOPE_OK) {
        opscope__fill(made, &opscope__I(0));
        (dtype == OPSCOPE_FLOAT32 ? put_float32 : put_float64)(&classes, flat->data,
                                                               grad->dims == 0, made->data);
        outputs[0] = opscope_tensor_retain(made);
    }
    opscope_tensor_release(made);
    opscope_tensor_release(flat);
    opscope__classes_release(&classes);
    return status;
}

/* Weights are constants, as in nll_loss. */
static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument *arguments = backward->arguments;
    const opscope_argument apart = {OPSCOPE_ARGUMENT_TEXT, 0, {.text = "none"}};
    opscope_tensor *losses = opscope__f(&f, "nll_loss", opscope__T(backward->gradients[0]),
                                        arguments[2], arguments[3], arguments[4], apart);
    gradients[0] = opscope__keep(opscope__sum_to(&f, losses, backward->inputs[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(nll_loss_backward) = {
    .schema =
        "nll_loss_backward(Tensor grad_output, int[] sizes, Tensor target, Tensor? weight=None, "
        "int ignore_index=-100) -> Tensor",
    .doc =
        "Zeros of those sizes with minus grad_output, times its weight, in the class of each target: the "
        "gradient through nll_loss. grad_output is one number or has the sizes of target.",
    .samples = "t(3), [3, 4], index(4, 3)\n"
               "t(), [3, 4, 2], index(4, 3, 2), c(4), 1",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 6,
};
