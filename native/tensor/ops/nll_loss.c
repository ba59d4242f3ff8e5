/* tensor/ops/nll_loss.c -- core::nll_loss: the mean negative log likelihood. */
#include "tensor/ops/picking.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *flat = NULL, *indices = NULL, *made = NULL;
    const opscope_tensor *target = arguments[1].as.tensor;
    if (self->dims != 2 || target->dims != 1 || opscope__sizes(target)[0] != opscope__sizes(self)[0] ||
        (self->dtype != OPSCOPE_FLOAT32 && self->dtype != OPSCOPE_FLOAT64)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: expected floats of sizes [rows, classes] and a class for each "
                                   "row, got %s of sizes %s and sizes %s",
                                   name, opscope_dtype_name((opscope_dtype)self->dtype),
                                   opscope__shape_text(self).text, opscope__shape_text(target).text);
    }
    int64_t rows = opscope__sizes(self)[0], classes = opscope__sizes(self)[1];
    int status = opscope__indices(name, target, classes, &indices);
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(self, &flat);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(0, NULL, (opscope_dtype)self->dtype, &made);
    }
    if (status == OPSCOPE_OK) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++) {
            int64_t at = i * classes + ((const int64_t *)(const void *)indices->data)[i];
            sum -= self->dtype == OPSCOPE_FLOAT32 ? (double)((const float *)(void *)flat->data)[at]
                                                  : ((const double *)(void *)flat->data)[at];
        }
        opscope__fill(made, &opscope__R(sum / (double)rows));
        outputs[0] = made;
    }
    opscope_tensor_release(indices);
    opscope_tensor_release(flat);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *self = backward->inputs[0];
    if (backward->wanted[0]) {
        int64_t rows = opscope__sizes(self)[0], classes = opscope__sizes(self)[1];
        opscope_tensor *numbers = opscope__f(&f, "arange", opscope__I(0), opscope__I(rows));
        numbers = opscope__f(&f, "mul", opscope__T(numbers), opscope__I(classes));
        opscope_tensor *places = opscope__f2(&f, "add", numbers, backward->inputs[1]);
        opscope_tensor *share = opscope__fr(&f, "mul", grad, -1.0 / (double)rows);
        share = opscope__f(&f, "expand", opscope__T(share), opscope__L(((int64_t[]){rows}), 1));
        opscope_tensor *flat = opscope__f(&f, "index_add_backward", opscope__T(share),
                                          opscope__L(((int64_t[]){rows * classes}), 1), opscope__I(0),
                                          opscope__T(places));
        gradients[0] = opscope__keep(opscope__f(&f, "reshape", opscope__T(flat),
                                                opscope__L(opscope__sizes(self), 2)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(nll_loss) = {
    .schema = "nll_loss(Tensor self, Tensor target) -> Tensor",
    .doc = "Minus the mean over rows of the log probability of the row's class: [rows, classes] "
           "and integers [rows] give one number. After log_softmax this is the cross entropy.",
    .samples = "t(3, 4), index(4, 3)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
};
