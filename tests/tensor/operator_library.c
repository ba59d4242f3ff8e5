/* A library of operators as a third party writes it: opscope/operator.h, the C library, nothing
 * else.
 *
 *     cc -std=c11 -shared -fPIC -I$(python -c "import opscope; print(opscope.get_include())") \
 *         operator_library.c -o mine.so
 */
#include <opscope/operator.h>

#include <stdlib.h>
#include <string.h>

static const opscope_core *core;

/* ---- mine::scale: written by hand, element by element --------------------------------------------- */

static int scale_forward(opscope_operator_call *call, const opscope_argument *arguments,
                         opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor;
    double factor = arguments[1].kind == OPSCOPE_ARGUMENT_FLOAT ? arguments[1].as.real
                                                                : (double)arguments[1].as.integer;
    if (core->tensor_dtype(self) != OPSCOPE_FLOAT64 || !core->tensor_is_contiguous(self)) {
        return core->fail(OPSCOPE_ERROR_TYPE, "%s: takes contiguous float64, not %s",
                          core->call_name(call), core->dtype_name(core->tensor_dtype(self)));
    }
    int status = core->tensor_empty(core->tensor_dims(self), core->tensor_sizes(self),
                                    OPSCOPE_FLOAT64, NULL, outputs);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const double *from = core->tensor_data(self);
    double *to = core->tensor_data(*outputs);
    for (int64_t i = 0; i < core->tensor_count(self); i++) {
        to[i] = factor * from[i];
    }
    return OPSCOPE_OK;
}

/* Written with an operator of the core, so its work is a range within. */
static int scale_backward(const opscope_operator_backward *backward, opscope_tensor **gradients)
{
    opscope_argument factors[] = {{OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = backward->gradients[0]}},
                                  backward->arguments[1]};
    return core->call(core->operator_find("core::mul"), factors, 2, gradients);
}

/* ---- mine::square: composed, its backward reads the input ------------------------------------------ */

static int product(opscope_tensor *a, opscope_argument b, opscope_tensor **out)
{
    opscope_argument factors[] = {{OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = a}}, b};
    return core->call(core->operator_find("core::mul"), factors, 2, out);
}

static int square_forward(opscope_operator_call *call, const opscope_argument *arguments,
                          opscope_tensor **outputs)
{
    (void)call;
    return product(arguments[0].as.tensor, arguments[0], outputs);
}

static int square_backward(const opscope_operator_backward *backward, opscope_tensor **gradients)
{
    opscope_tensor *twice;
    int status = product(backward->inputs[0],
                         (opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = 2}}, &twice);
    if (status == OPSCOPE_OK) {
        status =
            product(backward->gradients[0],
                    (opscope_argument){OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = twice}}, gradients);
        core->tensor_release(twice);
    }
    return status;
}

/* ---- an allocator that counts for itself --------------------------------------------------------- */

static int64_t counts[3]; /* allocated, live, peak */

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    counts[0] += (int64_t)bytes;
    counts[1] += (int64_t)bytes;
    counts[2] = counts[1] > counts[2] ? counts[1] : counts[2];
    return aligned_alloc(64, (bytes + 64) & ~(size_t)63);
}

static void release(void *user, void *data, size_t bytes)
{
    (void)user;
    counts[1] -= (int64_t)bytes;
    free(data);
}

static const opscope_allocator counting = {"counting", allocate, release, NULL};

static int counts_forward(opscope_operator_call *call, const opscope_argument *arguments,
                          opscope_tensor **outputs)
{
    (void)call;
    (void)arguments;
    return core->tensor_from_memory(counts, 1, (int64_t[]){3}, (int64_t[]){1}, OPSCOPE_INT64, true,
                                    NULL, NULL, outputs);
}

static int says_yes(opscope_operator_call *call, const opscope_argument *arguments,
                    opscope_tensor **outputs)
{
    (void)call;
    (void)arguments;
    (void)outputs;
    return OPSCOPE_OK;
}

OPSCOPE_OPERATOR_LIBRARY(given)
{
    core = given;
    const opscope_operator_spec specs[] = {
        {.struct_bytes = sizeof(opscope_operator_spec),
         .schema = "mine::scale(Tensor self, Scalar factor=2) -> Tensor",
         .doc = "Each element times factor.",
         .samples = "t(3, 4), 1.5",
         .forward = scale_forward,
         .backward = scale_backward},
        {.struct_bytes = sizeof(opscope_operator_spec),
         .schema = "mine::square(Tensor self) -> Tensor",
         .forward = square_forward,
         .backward = square_backward,
         .saves_inputs = 1},
        {.struct_bytes = sizeof(opscope_operator_spec),
         .schema = "mine::counts() -> Tensor",
         .forward = counts_forward},
        {.struct_bytes = sizeof(opscope_operator_spec),
         .schema = "mine::nothing(Tensor self) -> (Tensor a, Tensor b)",
         .forward = says_yes},
    };
    int status = core->allocator_register(&counting);
    for (size_t i = 0; i < sizeof specs / sizeof *specs && status == OPSCOPE_OK; i++) {
        status = core->operator_register(&specs[i]);
    }
    return status;
}
