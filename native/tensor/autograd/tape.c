/* tensor/autograd/tape.c -- the tape's interface for callers of operators. */
#include "tensor/autograd/tape.h"

#include "tensor/autograd/view.h"

int opscope__tape_record(const struct opscope__step *step, opscope_tensor *const *outputs)
{
    size_t at = 0, within = 0;
    opscope_tensor *tensor;
    while (opscope__next_input(step->op, step->arguments, &at, &within, &tensor)) {
        int status = tensor != NULL ? opscope__view_refresh(tensor) : OPSCOPE_OK;
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    return opscope__record(step, outputs);
}
