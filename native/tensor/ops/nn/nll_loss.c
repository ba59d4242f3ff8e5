/* tensor/ops/nn/nll_loss.c -- core::nll_loss: the negative log likelihood of classes. */
#include "tensor/ops/nn/classes.h"

/* Writes losses to out (may be NULL), and their sum and the sum of the weights to sums. */
#define LOSSES(name, type)                                                                         \
    static void name(const struct opscope__classes *c, const char *scores, char *out,              \
                     double *sums)                                                                 \
    {                                                                                              \
        const int64_t *target = (const int64_t *)(const void *)c->target->data;                    \
        const type *weight =                                                                       \
            c->weight != NULL ? (const type *)(const void *)c->weight->data : NULL;                \
        for (int64_t i = 0; i < c->outer * c->inner; i++) {                                        \
            type loss = 0;                                                                         \
            if (target[i] >= 0) {                                                                  \
                int64_t row = i / c->inner, at = i % c->inner;                                     \
                const type share = weight != NULL ? weight[target[i]] : 1;                         \
                loss = -share * ((const type *)(const void *)                                      \
                                     scores)[(row * c->classes + target[i]) * c->inner + at];      \
                sums[1] += (double)share;                                                          \
            }                                                                                      \
            sums[0] += (double)loss;                                                               \
            if (out != NULL) {                                                                     \
                ((type *)(void *)out)[i] = loss;                                                   \
            }                                                                                      \
        }                                                                                          \
    }

LOSSES(losses_float32, float)
LOSSES(losses_float64, double)

static int number(opscope_dtype dtype, double value, opscope_tensor **out)
{
    int status = opscope__tensor_empty(0, NULL, dtype, out);
    if (status == OPSCOPE_OK) {
        opscope__fill(*out, &opscope__R(value));
    }
    return status;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *flat = NULL, *made = NULL, *total = NULL;
    const opscope_tensor *target = arguments[1].as.tensor;
    opscope_dtype dtype = (opscope_dtype)self->dtype;
    struct opscope__classes classes;
    enum opscope__loss how = OPSCOPE__LOSS_NONE;
    int status = opscope__loss_of(name, &arguments[4], &how);
    if (status == OPSCOPE_OK) {
        status = opscope__classes_of(name, self->dims, opscope__sizes(self), dtype, target,
                                     &arguments[2], arguments[3].as.integer, &classes);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__contiguous(self, &flat);
    if (status == OPSCOPE_OK && how == OPSCOPE__LOSS_NONE) {
        status = opscope__tensor_empty(target->dims, opscope__sizes(target), dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        double sums[2] = {0, 0};
        (dtype == OPSCOPE_FLOAT32 ? losses_float32 : losses_float64)(
            &classes, flat->data, made != NULL ? made->data : NULL, sums);
        if (how != OPSCOPE__LOSS_NONE) {
            status = number(dtype, how == OPSCOPE__LOSS_MEAN ? sums[0] / sums[1] : sums[0], &made);
        }
        if (status == OPSCOPE_OK && how == OPSCOPE__LOSS_MEAN) {
            status = number(dtype, sums[1], &total);
        }
        if (total != NULL) {
            opscope__call_save(call, total);
        }
    }
    outputs[0] = made;
    opscope_tensor_release(flat);
    opscope_tensor_release(total);
    opscope__classes_release(&classes);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    if (backward->wanted[0]) {
        opscope_tensor *grad = backward->gradients[0];
        if (backward->saved_count > 0) {
            grad = opscope__f2(&f, "div", grad, backward->saved[0]);
        }
        gradients[0] = opscope__keep(opscope__f(
            &f, "nll_loss_backward", opscope__T(grad), opscope__L(opscope__sizes(self), self->dims),
            backward->arguments[1], backward->arguments[2], backward->arguments[3]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(nll_loss) = {
    .schema =
        "nll_loss(Tensor input, Tensor target, Tensor? weight=None, *, int ignore_index=-100, "
        "str reduction='mean') -> Tensor",
    .doc = "Minus the log probability of each target, times the weight of its class. Log "
           "probabilities [batch, classes, ...] take integers [batch, ...] as targets, log "
           "probabilities [classes] take one integer. The mean is weighted; targets equal to "
           "ignore_index do not count. After log_softmax this is the cross entropy.",
    .samples = "t(3, 4), index(4, 3)\n"
               "t(3, 4, 2), index(4, 3, 2), c(4), reduction='none'\n"
               "t(4), index(4), c(4), reduction='sum'\n"
               "t(6, 2), i(6), c(2), ignore_index=0",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 6,
};
