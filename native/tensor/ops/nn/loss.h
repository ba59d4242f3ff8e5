/* tensor/ops/nn/loss.h -- shared by losses: reduces the loss of each element to one number. */
#ifndef OPSCOPE_TENSOR_OPS_NN_LOSS_H
#define OPSCOPE_TENSOR_OPS_NN_LOSS_H

#include <string.h>

#include "tensor/dispatch/formula.h"

enum opscope__loss { OPSCOPE__LOSS_NONE, OPSCOPE__LOSS_SUM, OPSCOPE__LOSS_MEAN };

static inline int opscope__loss_of(const char *name, const opscope_argument *reduction,
                                   enum opscope__loss *out)
{
    static const char *const words[] = {"none", "sum", "mean"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(reduction->as.text, words[i]) == 0) {
            *out = (enum opscope__loss)i;
            return OPSCOPE_OK;
        }
    }
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                               "%s: reduction is \"%s\"; expected \"none\", \"sum\" or \"mean\"",
                               name, reduction->as.text);
}

/* The losses of the elements, reduced by the argument `reduction`. */
static inline opscope_tensor *opscope__reduced_loss(struct opscope__formula *formula,
                                                    const char *name, opscope_tensor *losses,
                                                    const opscope_argument *reduction)
{
    enum opscope__loss how = OPSCOPE__LOSS_NONE;
    if (formula->status == OPSCOPE_OK) {
        formula->status = opscope__loss_of(name, reduction, &how);
    }
    return how == OPSCOPE__LOSS_NONE
               ? losses
               : opscope__f1(formula, how == OPSCOPE__LOSS_SUM ? "sum" : "mean", losses);
}

#endif
