/* tensor/ops/nn/cross_entropy.c -- core::cross_entropy: the loss of scores for classes. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/ops/nn/loss.h"

struct entropy {
    struct opscope__formula *f;
    const char *name;
    const opscope_argument *arguments; /* of the operator */
    opscope_tensor *logs;              /* log probabilities */
    int64_t dim, classes;
    double smoothing;
};

/* The weights of classes, in sizes that broadcast to the scores. */
static opscope_tensor *weight_like(const struct entropy *e)
{
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int dims = e->arguments[0].as.tensor->dims;
    for (int i = 0; i < dims; i++) {
        sizes[i] = i == e->dim ? e->classes : 1;
    }
    return opscope__f(e->f, "reshape", e->arguments[2], opscope__L(sizes, dims));
}

/* Minus the weighted sum over classes of `parts`, a tensor of the scores' sizes. */
static opscope_tensor *over_classes(const struct entropy *e, opscope_tensor *parts)
{
    if (e->arguments[2].kind != OPSCOPE_ARGUMENT_NONE) {
        parts = opscope__f2(e->f, "mul", parts, weight_like(e));
    }
    return opscope__f1(e->f, "neg",
                       opscope__f(e->f, "sum", opscope__T(parts), opscope__L(&e->dim, 1)));
}

/* For targets that are probabilities; the mean is over the batch. */
static opscope_tensor *of_probabilities(const struct entropy *e)
{
    opscope_tensor *target = e->arguments[1].as.tensor, *scores = e->arguments[0].as.tensor;
    if (!opscope__same_sizes(target, scores)) {
        e->f->status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: targets that are probabilities have the sizes of the scores: "
            "%s, not %s",
            e->name, opscope__shape_text(scores).text, opscope__shape_text(target).text);
    }
    if (e->smoothing > 0) {
        target = opscope__fr(e->f, "mul", target, 1 - e->smoothing);
        target = opscope__fr(e->f, "add", target, e->smoothing / (double)e->classes);
    }
    opscope_tensor *losses = over_classes(e, opscope__f2(e->f, "mul", e->logs, target));
    return opscope__reduced_loss(e->f, e->name, losses, &e->arguments[4]);
}

static opscope_tensor *likelihood(const struct entropy *e, opscope_tensor *logs,
                                  opscope_argument reduction)
{
    return opscope__f(e->f, "nll_loss", opscope__T(logs), e->arguments[1], e->arguments[2],
                      e->arguments[3], reduction);
}

/* The loss for equal probabilities of all classes, over targets that are not ignored. */
static opscope_tensor *smooth(const struct entropy *e)
{
    enum opscope__loss how = OPSCOPE__LOSS_NONE;
    opscope_tensor *ignored = opscope__f(e->f, "eq", e->arguments[1], e->arguments[3]);
    opscope_tensor *losses = over_classes(e, e->logs);
    losses =
        opscope__f(e->f, "masked_fill", opscope__T(losses), opscope__T(ignored), opscope__I(0));
    if (e->f->status != OPSCOPE_OK ||
        (e->f->status = opscope__loss_of(e->name, &e->arguments[4], &how)) != OPSCOPE_OK) {
        return NULL;
    }
    if (how == OPSCOPE__LOSS_NONE) {
        return losses;
    }
    losses = opscope__f1(e->f, "sum", losses);
    if (how == OPSCOPE__LOSS_MEAN) {
        /* The sum of the targets' weights: the likelihood with every log set to -1. */
        opscope_tensor *ones = opscope__f(e->f, "fill", opscope__T(e->logs), opscope__I(-1));
        losses = opscope__f2(e->f, "div", losses, likelihood(e, ones, opscope__S("sum")));
    }
    return losses;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct opscope__formula f = {0};
    opscope_tensor *scores = arguments[0].as.tensor;
    struct entropy e = {.f = &f,
                        .name = opscope__call_name(call),
                        .arguments = arguments,
                        .smoothing = arguments[5].as.real};
    if (scores->dims == 0 || !(e.smoothing >= 0 && e.smoothing <= 1)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "%s: scores of sizes %s, label_smoothing %g: expected sizes [batch, "
            "classes, ...] or [classes], and smoothing within 0 and 1",
            e.name, opscope__shape_text(scores).text, e.smoothing);
    }
    e.dim = scores->dims > 1 ? 1 : 0;
    e.classes = opscope__sizes(scores)[e.dim];
    e.logs = opscope__f(&f, "log_softmax", opscope__T(scores), opscope__I(e.dim));
    opscope_tensor *loss;
    if (opscope_dtype_is_floating((opscope_dtype)arguments[1].as.tensor->dtype)) {
        loss = of_probabilities(&e);
    } else {
        loss = likelihood(&e, e.logs, arguments[4]);
        if (e.smoothing > 0) {
            opscope_tensor *share =
                opscope__fr(&f, "mul", smooth(&e), e.smoothing / (double)e.classes);
            loss = opscope__f2(&f, "add", opscope__fr(&f, "mul", loss, 1 - e.smoothing), share);
        }
    }
    outputs[0] = opscope__keep(loss);
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cross_entropy) = {
    .schema =
        "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, *, int ignore_index=-100, "
        "str reduction='mean', float label_smoothing=0.0) -> Tensor",
    .doc = "nll_loss of log_softmax. Scores [batch, classes, ...] take integers [batch, ...] as "
           "targets, scores [classes] take one integer; or targets are probabilities, of the "
           "scores' sizes. label_smoothing moves that share of the target equally to all "
           "classes.",
    .samples = "t(3, 4), index(4, 3)\n"
               "t(3, 4, 2), index(4, 3, 2), c(4), reduction='sum'\n"
               "t(6, 2), i(6), c(2), ignore_index=0, label_smoothing=0.25\n"
               "t(3, 4, 2), index(4, 3, 2), None, reduction='none', label_smoothing=0.25\n"
               "t(3, 4), p(3, 4), c(4), label_smoothing=0.25",
    .forward = forward,
    .is_composite = true,
};
