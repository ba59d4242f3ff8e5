/* tests/tensor/use_tensors.c -- an example: computes with tensors and their gradients in C, without
 * Python.
 *
 * Prints the mean of the squares of 1, 2, 3 and 4, and the gradient of that mean.
 */
#include <opscope/autograd.h>
#include <opscope/tensor.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "%s\n", opscope_tensor_error());
    return 1;
}

/* Calls an operator of one or two tensors. */
static int call(const char *name, opscope_tensor *a, opscope_tensor *b, opscope_tensor **out)
{
    opscope_argument arguments[] = {
        {.kind = OPSCOPE_ARGUMENT_TENSOR, .as.tensor = a},
        {.kind = OPSCOPE_ARGUMENT_TENSOR, .as.tensor = b},
    };
    return opscope_call(opscope_operator_find(name), arguments, b ? 2 : 1, out);
}

int main(void)
{
    opscope_tensor *x, *squares, *mean;
    const int64_t size = 4;
    if (opscope_tensor_empty(1, &size, OPSCOPE_FLOAT32, NULL, &x) != OPSCOPE_OK) {
        return failed();
    }
    float *numbers = opscope_tensor_data(x);
    for (int i = 0; i < 4; i++) {
        numbers[i] = (float)(i + 1);
    }
    if (opscope_tensor_set_requires_grad(x, true) != OPSCOPE_OK ||
        call("core::mul", x, x, &squares) != OPSCOPE_OK ||
        call("core::mean", squares, NULL, &mean) != OPSCOPE_OK ||
        opscope_backward(&mean, NULL, 1, false, false) != OPSCOPE_OK) {
        return failed();
    }
    const float *gradient = opscope_tensor_data(opscope_tensor_grad(x));
    printf("%g\n", (double)*(const float *)opscope_tensor_data(mean));
    printf("%g %g %g %g\n", (double)gradient[0], (double)gradient[1], (double)gradient[2],
           (double)gradient[3]);
    opscope_tensor_release(mean);
    opscope_tensor_release(squares);
    opscope_tensor_release(x);
    return 0;
}
