/* tensor/composite.c -- the in-place form of an operator that is written with others. */
#include "tensor/call.h"
#include "tensor/convert.h"
#include "tensor/formula.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

int opscope__call_composite_inplace(struct opscope__call *call, const opscope_argument *arguments,
                                    opscope_tensor **outputs)
{
    const char *name = call->op->name;
    const opscope_tensor *target = arguments[0].as.tensor;
    struct opscope__formula f = {0};
    opscope_tensor *result = NULL;
    f.status = call->op->spec->forward(call, arguments, &result);
    opscope__own(&f, result);
    if (f.status == OPSCOPE_OK && !opscope__same_sizes(target, result)) {
        f.status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: the result has sizes %s, but the written tensor %s; they must be equal", name,
            opscope__shape_text(result).text, opscope__shape_text(target).text);
    } else if (f.status == OPSCOPE_OK) {
        f.status =
            opscope__check_store(name, (opscope_dtype)target->dtype, (opscope_dtype)result->dtype);
    }
    /* What was called is on the tape; so must the write be. */
    outputs[0] = opscope__keep(opscope__f(&f, "copy_", arguments[0], opscope__T(result)));
    return opscope__formula_end(&f, outputs, 1);
}
