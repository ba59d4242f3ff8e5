/* Runs every operator's samples from C, forward and, if it has a gradient, backward: the sanitizers
 * then check each kernel. The Python tests compare the results. */
#include "exact_memory.h"
#include "samples.h"
#include "tensors.h"

static opscope_tensor *make(void *user, int dims, const int64_t *sizes, opscope_dtype dtype,
                            int64_t bound)
{
    const bool *wants_grad = user;
    opscope_tensor *plain = empty(OPSCOPE_FLOAT64, dims, sizes);
    double *values = opscope_tensor_storage_data(plain);
    for (int64_t i = 0; i < opscope_tensor_count(plain); i++) {
        values[i] = bound > 0 ? (double)(i * 7 % bound)
                              : 0.5 + (double)(i * 5 % 16) / 32; /* valid for all operators */
    }
    opscope_tensor *out = DO("core::to", T(plain), I(dtype));
    opscope_tensor_release(plain);
    if (*wants_grad && bound == 0) {
        CHECK_EQUAL(opscope_tensor_set_requires_grad(out, true), OPSCOPE_OK);
    }
    return out;
}

/* A gradient of ones for each floating output. */
static bool backward(opscope_tensor *const *outputs, size_t count)
{
    bool is_done = true;
    for (size_t i = 0; i < count; i++) {
        if (outputs[i] != NULL && opscope_tensor_requires_grad(outputs[i])) {
            opscope_tensor *ones = DO("core::ones_like", T(outputs[i]));
            is_done = is_done && opscope_backward(&outputs[i], &ones, 1, true, false) == OPSCOPE_OK;
            opscope_tensor_release(ones);
        }
    }
    return is_done;
}

static bool runs(const opscope_operator *op, const char *line, bool wants_grad)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    struct sample_source source = {&wants_grad, make, NULL};
    struct sample sample;
    CHECK(sample_read(line, schema, &source, &sample));
    opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT] = {NULL};
    opscope_tensor_list list = {NULL, 0};
    bool is_done = (schema->output_is_list
                        ? opscope_call_list(op, sample.arguments, sample.count, &list)
                        : opscope_call(op, sample.arguments, sample.count, outputs)) == OPSCOPE_OK;
    if (is_done && wants_grad) {
        is_done = backward(outputs, OPSCOPE_OUTPUT_LIMIT) && backward(list.tensors, list.count);
    }
    for (int i = 0; i < OPSCOPE_OUTPUT_LIMIT; i++) {
        opscope_tensor_release(outputs[i]);
    }
    opscope_tensor_list_release(&list);
    sample_release(&sample);
    return is_done;
}

/* In-place forms write only if the result has the first argument's sizes and dtype: at least one
 * sample must. */
static void every_operator_has_samples_that_run(bool wants_grad)
{
    for (size_t i = 0; i < opscope_operator_count(); i++) {
        const opscope_operator *op = opscope_operator_at(i);
        const char *name = opscope_operator_name(op), *failed = NULL;
        const struct opscope__operator_spec *spec = opscope__operator_spec(op);
        bool is_inplace = name[strlen(name) - 1] == '_', any = false;
        bool has_gradient = !is_inplace && (spec->backward != NULL || spec->is_composite);
        for (const char *line = spec->samples; line != NULL; line = sample_next(line)) {
            bool ran = runs(op, line, wants_grad && has_gradient);
            any = any || ran;
            failed = ran || is_inplace ? failed : line;
        }
        if (!any || failed != NULL) {
            fprintf(stderr, "%s: %s\n%s\n", name, opscope_tensor_error(),
                    failed != NULL ? failed : "no sample runs");
            _exit(1);
        }
    }
}

static void a_line_gives_what_it_says(void)
{
    bool wants_grad = false;
    struct sample_source source = {&wants_grad, make, NULL};
    struct sample sample;
    const opscope_operator *op = opscope_operator_find("core::index_put");
    const char *line = "(t(4, 5) > 0) * t(9), 2.5, [index(4, 2), i(3)]\nt(1)";
    CHECK(sample_read(line, opscope__operator_schema(op), &source, &sample));
    CHECK_EQUAL(sample.count, 3);
    CHECK_EQUAL(sample.tensor_count, 3);
    CHECK_EQUAL(opscope_tensor_sizes(sample.arguments[0].as.tensor)[1], 5);
    CHECK(sample.arguments[1].as.real == 2.5);
    CHECK_EQUAL(sample.arguments[2].count, 2);
    CHECK_EQUAL(opscope_tensor_sizes(sample.arguments[2].as.tensors[1])[0], 3);
    sample_release(&sample);
    CHECK_TEXT(sample_next(line), "t(1)");
    CHECK(sample_next("t(1)\n") == NULL);
}

int main(void)
{
    opscope_allocator_set_default(&exact_memory);
    a_line_gives_what_it_says();
    every_operator_has_samples_that_run(false);
    every_operator_has_samples_that_run(true);
    return 0;
}
