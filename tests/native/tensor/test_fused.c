/* Fused elementwise operators: the bits of the operators one by one, and what is not fused. */
#include <stdlib.h>

#include "tensor/core/registry.h"
#include "tensor/kernels/fused.h"
#include "tensors.h"

enum { CHAINS = 300, NUMBERS = 2 };

/* Operators that keep to floats, whatever they are given. */
static const char *const names[] = {"core::add",     "core::sub",  "core::mul",     "core::div",
                                    "core::maximum", "core::exp",  "core::tanh",    "core::relu",
                                    "core::sigmoid", "core::neg",  "core::sin",     "core::gelu",
                                    "core::abs",     "core::sqrt", "core::addcmul", "core::floor"};
enum { OPERATORS = sizeof names / sizeof *names };

static const struct opscope__elementwise *spec_of(const char *name)
{
    return opscope__operator_spec(opscope_operator_find(name))->elementwise;
}

static uint32_t state = 12345;

static size_t below(size_t limit)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % limit;
}

/* A chain as a plan, and how to call its operators. */
struct chain {
    struct opscope__fused fused;
    const char *names[OPSCOPE__FUSED_STEP_LIMIT];
};

static void add_step(struct chain *chain, size_t tensor_inputs)
{
    struct opscope__fused *fused = &chain->fused;
    const size_t at = fused->step_count;
    struct opscope__fused_step *step = &fused->steps[at];
    const char *name;
    do {
        name = names[below(OPERATORS)];
    } while (spec_of(name) == NULL);
    step->spec = spec_of(name);
    for (size_t k = 0; k < step->spec->operands; k++) {
        const bool is_step = at > 0 && (k == 0 || below(2) == 0);
        /* The first operand is a full tensor or a result; the others may be a number. */
        const size_t inputs = k == 0 ? tensor_inputs : fused->input_count;
        step->operands[k] = (struct opscope__fused_source){
            is_step, (uint8_t)(is_step ? at - 1 - below(at < 3 ? at : 3) : below(inputs))};
    }
    for (size_t k = 0; k < step->spec->numbers; k++) {
        step->numbers[k] = (uint8_t)(fused->input_count - 1 - below(NUMBERS));
    }
    chain->names[at] = name;
    fused->step_count++;
}

static opscope_tensor *one_by_one(const struct chain *chain, const opscope_argument *inputs)
{
    opscope_tensor *results[OPSCOPE__FUSED_STEP_LIMIT];
    const struct opscope__fused *fused = &chain->fused;
    for (size_t i = 0; i < fused->step_count; i++) {
        const struct opscope__fused_step *step = &fused->steps[i];
        opscope_argument arguments[8];
        size_t count = 0;
        for (size_t k = 0; k < step->spec->operands; k++) {
            const struct opscope__fused_source *source = &step->operands[k];
            arguments[count++] =
                source->is_step ? T(results[source->index]) : inputs[source->index];
        }
        for (size_t k = 0; k < step->spec->numbers; k++) {
            arguments[count++] = inputs[step->numbers[k]];
        }
        results[i] = call(chain->names[i], arguments, count);
    }
    for (size_t i = 0; i + 1 < fused->step_count; i++) {
        opscope_tensor_release(results[i]);
    }
    return results[fused->step_count - 1];
}

static bool has_equal_bits(const opscope_tensor *one, const opscope_tensor *other)
{
    return opscope_tensor_dtype(one) == opscope_tensor_dtype(other) &&
           opscope_tensor_count(one) == opscope_tensor_count(other) &&
           memcmp(opscope_tensor_data(one), opscope_tensor_data(other),
                  (size_t)opscope_tensor_count(one) *
                      opscope_dtype_bytes(opscope_tensor_dtype(one))) == 0;
}

static void random_chains_have_the_bits_of_their_operators_one_by_one(void)
{
    static const int64_t rows[] = {1, 3, 64, 1000, 20000};
    size_t ran_count = 0;
    for (size_t i = 0; i < CHAINS; i++) {
        const opscope_dtype dtype = below(2) == 0 ? OPSCOPE_FLOAT32 : OPSCOPE_FLOAT64;
        const int64_t size = rows[below(5)];
        opscope_tensor *a = numbers(i, dtype, SIZES(size, 7));
        opscope_tensor *b = numbers(i + 1, dtype, SIZES(size, 7));
        opscope_tensor *one = numbers(i + 2, dtype, 0, NULL);
        const opscope_argument inputs[] = {T(a), T(b), T(one), R(0.75), I(2)};
        struct chain chain = {.fused = {.input_count = 5}};
        const size_t steps = 1 + below(12);
        while (chain.fused.step_count < steps) {
            add_step(&chain, 2);
        }
        if (opscope__fused_plan(&chain.fused)) {
            opscope_tensor *fused = NULL;
            CHECK(opscope__fused_fits(&chain.fused, inputs));
            CHECK_EQUAL(opscope__fused_run(&chain.fused, inputs, NULL, &fused), OPSCOPE_OK);
            opscope_tensor *wanted = one_by_one(&chain, inputs);
            CHECK(has_equal_bits(fused, wanted));
            opscope_tensor_release(wanted);
            opscope_tensor_release(fused);
            ran_count++;
        }
        opscope_tensor_release(a);
        opscope_tensor_release(b);
        opscope_tensor_release(one);
    }
    CHECK(ran_count > CHAINS / 2);
}

static const struct opscope__fused_source first = {.index = 0}, second = {.index = 1};

static struct opscope__fused add_then_mul(void)
{
    struct opscope__fused fused = {.step_count = 2, .input_count = 3};
    fused.steps[0] = (struct opscope__fused_step){
        .spec = spec_of("core::add"), .operands = {first, second}, .numbers = {2}};
    fused.steps[1] = (struct opscope__fused_step){
        .spec = spec_of("core::mul"), .operands = {{.is_step = true, .index = 0}, first}};
    CHECK(opscope__fused_plan(&fused));
    return fused;
}

static void other_layouts_shapes_and_dtypes_are_left_to_the_operators(void)
{
    const struct opscope__fused fused = add_then_mul();
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(4, 6));
    opscope_tensor *others[] = {
        DO("core::t", T(a)),                             /* other sizes, and strided */
        DO("core::slice", T(a), I(1), I(0), I(3), I(1)), /* strided */
        DO("core::slice", T(a), I(0), I(0), I(1), I(1)), /* broadcasts along rows */
        numbers(2, OPSCOPE_FLOAT64, SIZES(4, 6)),        /* another dtype */
        DO("core::to", T(a), I(OPSCOPE_INT64)),          /* no floats */
        numbers(3, OPSCOPE_FLOAT32, SIZES(1, 1, 1))};    /* more dimensions than the output */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(!opscope__fused_fits(&fused, (opscope_argument[]){T(a), T(others[i]), I(1)}));
        CHECK(!opscope__fused_fits(&fused, (opscope_argument[]){T(others[i]), T(a), I(1)}));
        opscope_tensor_release(others[i]);
    }
    CHECK(!opscope__fused_fits(&fused, (opscope_argument[]){T(a), T(a), T(a)}));
    CHECK(!opscope__fused_fits(&fused, (opscope_argument[]){R(1), R(2), I(1)}));
    CHECK(!opscope__fused_fits(&fused, (opscope_argument[]){T(a), N, I(1)}));
    opscope_tensor_release(a);
}

static void tensors_without_elements_give_one_without(void)
{
    const struct opscope__fused fused = add_then_mul();
    opscope_tensor *a = empty(OPSCOPE_FLOAT32, SIZES(0, 3)), *out = NULL;
    const opscope_argument inputs[] = {T(a), T(a), I(1)};
    CHECK(opscope__fused_fits(&fused, inputs));
    CHECK_EQUAL(opscope__fused_run(&fused, inputs, NULL, &out), OPSCOPE_OK);
    CHECK_EQUAL(opscope_tensor_count(out), 0);
    CHECK_EQUAL(opscope_tensor_sizes(out)[1], 3);
    opscope_tensor_release(out);
    opscope_tensor_release(a);
}

static void plans_that_cannot_be_are_refused(void)
{
    struct opscope__fused fused = add_then_mul();
    fused.steps[1].operands[0].index = 1; /* itself */
    CHECK(!opscope__fused_plan(&fused));
    fused = add_then_mul();
    fused.steps[0].operands[1].index = 3; /* no such input */
    CHECK(!opscope__fused_plan(&fused));
    fused = add_then_mul();
    fused.steps[0].numbers[0] = 3;
    CHECK(!opscope__fused_plan(&fused));
    fused = add_then_mul();
    fused.steps[0].spec = spec_of("core::lt"); /* gives bools */
    CHECK(!opscope__fused_plan(&fused));
    fused.step_count = 0;
    CHECK(!opscope__fused_plan(&fused));
}

static void as_many_results_live_at_once_as_there_are_places(void)
{
    struct opscope__fused fused = {.input_count = 1};
    /* A tree: all leaves are alive until the sums begin. */
    for (size_t leaves = 1; leaves <= OPSCOPE__FUSED_LIVE_LIMIT + 1; leaves++) {
        fused.step_count = 0;
        for (size_t i = 0; i < leaves; i++) {
            fused.steps[fused.step_count++] =
                (struct opscope__fused_step){.spec = spec_of("core::neg"), .operands = {first}};
        }
        for (size_t i = 1; i < leaves; i++) {
            const uint8_t last = (uint8_t)(i == 1 ? 0 : fused.step_count - 1);
            fused.steps[fused.step_count++] = (struct opscope__fused_step){
                .spec = spec_of("core::mul"), .operands = {{true, last}, {true, (uint8_t)i}}};
        }
        CHECK(opscope__fused_plan(&fused) == (leaves <= OPSCOPE__FUSED_LIVE_LIMIT));
    }
}

int main(void)
{
    RUN(random_chains_have_the_bits_of_their_operators_one_by_one);
    RUN(other_layouts_shapes_and_dtypes_are_left_to_the_operators);
    RUN(tensors_without_elements_give_one_without);
    RUN(plans_that_cannot_be_are_refused);
    RUN(as_many_results_live_at_once_as_there_are_places);
    return 0;
}
