/* tests/native/test_values.c -- inputs and outputs: boxed only if a callback that fires needs them,
 * visible only to that callback, and only while they exist. */
#include <pthread.h>

#include "ranges.h"

static int boxed; /* calls of a box */

static size_t box_three(void *arg, opscope_value *values, size_t capacity)
{
    boxed++;
    const opscope_value three[3] = {{.kind = OPSCOPE_VALUE_INT, .as.integer = 7},
                                    {.kind = OPSCOPE_VALUE_TEXT, .as.text = arg},
                                    {.kind = OPSCOPE_VALUE_NONE}};
    for (size_t i = 0; i < 3 && i < capacity; i++) {
        values[i] = three[i];
    }
    return 3;
}

struct seen {
    size_t inputs_at_start, outputs_at_start, inputs_at_end, outputs_at_end;
    char text[16];
};

static int see_start(const opscope_range *fn, void *user, void **context)
{
    struct seen *seen = user;
    (void)context;
    const opscope_value *inputs = opscope_fn_inputs(fn, &seen->inputs_at_start);
    (void)opscope_fn_outputs(fn, &seen->outputs_at_start);
    if (seen->inputs_at_start == 3) {
        CHECK_EQUAL(inputs[0].as.integer, 7);
        snprintf(seen->text, sizeof seen->text, "%s", inputs[1].as.text);
    }
    return OPSCOPE_OK;
}

static int see_end(const opscope_range *fn, void *user, void *context)
{
    struct seen *seen = user;
    (void)context;
    (void)opscope_fn_inputs(fn, &seen->inputs_at_end);
    const opscope_value *outputs = opscope_fn_outputs(fn, &seen->outputs_at_end);
    if (seen->outputs_at_end == 3) {
        snprintf(seen->text, sizeof seen->text, "%s", outputs[1].as.text);
    }
    return OPSCOPE_OK;
}

static opscope_callback seeing(struct seen *seen, bool inputs, bool outputs)
{
    return (opscope_callback){.start = see_start,
                              .end = see_end,
                              .user = seen,
                              .sampling_prob = 1.0,
                              .needs_inputs = inputs,
                              .needs_outputs = outputs};
}

static char text_in[] = "in", text_out[] = "out";
static const opscope_range_info info = {
    .sequence_nr = -1, .inputs = box_three, .inputs_arg = text_in};

static void run_one(const opscope_range_info *with)
{
    opscope_range range;
    opscope_range_open(&range, op_named("a"), with);
    opscope_range_outputs(&range, box_three, text_out);
    opscope_range_close(&range);
}

static void nothing_is_boxed_unless_a_callback_needs_it(void)
{
    struct seen seen = {0};
    boxed = 0;
    run_one(&info);
    add_global(seeing(&seen, false, false));
    run_one(&info);
    CHECK_EQUAL(boxed, 0);
    CHECK_EQUAL(seen.inputs_at_start + seen.outputs_at_end, 0);
    opscope_clear_callbacks();
}

static void only_who_asks_sees_them_each_in_its_time(void)
{
    struct seen in = {0}, out = {0}, none = {0};
    boxed = 0;
    add_global(seeing(&in, true, false));
    add_global(seeing(&none, false, false));
    add_local(seeing(&out, false, true));
    run_one(&info);
    CHECK_EQUAL(boxed, 2);
    CHECK_EQUAL(in.inputs_at_start, 3);
    CHECK_TEXT(in.text, "in");
    CHECK_EQUAL(in.inputs_at_end + in.outputs_at_start + in.outputs_at_end, 0);
    CHECK_EQUAL(out.outputs_at_end, 3);
    CHECK_TEXT(out.text, "out");
    CHECK_EQUAL(out.inputs_at_start + out.inputs_at_end + out.outputs_at_start, 0);
    CHECK_EQUAL(none.inputs_at_start + none.outputs_at_end, 0);
    opscope_clear_callbacks();
}

static void boxes_are_called_only_when_an_asking_callback_fires(void)
{
    struct seen seen = {0}, other = {0};
    boxed = 0;
    opscope_callback rare = seeing(&seen, true, true);
    rare.sampling_prob = 0.01;
    opscope_seed(5);
    add_global(rare);
    add_global(seeing(&other, false, false));
    for (int i = 0; i < 10000; i++) {
        run_one(&info);
    }
    CHECK(boxed > 100 && boxed < 300);
    opscope_clear_callbacks();
    opscope_seed(0);
}

static void a_range_without_values_has_none(void)
{
    struct seen seen = {0};
    add_global(seeing(&seen, true, true));
    run_one(&info);
    opscope_range range;
    opscope_range_open(&range, op_named("a"), NULL);
    CHECK_EQUAL(seen.inputs_at_start, 0);
    opscope_range_close(&range);
    CHECK_EQUAL(seen.inputs_at_end + seen.outputs_at_end, 0);
    opscope_clear_callbacks();
}

static void outputs_of_an_inner_range_are_not_its_outers(void)
{
    struct seen seen = {0};
    opscope_range outer;
    add_global(seeing(&seen, true, true));
    opscope_range_open(&outer, op_named("a"), &info);
    run_one(&info);
    CHECK_EQUAL(seen.outputs_at_end, 3);
    opscope_range_close(&outer);
    CHECK_EQUAL(seen.inputs_at_end, 0);
    CHECK_EQUAL(seen.outputs_at_end, 0);
    opscope_clear_callbacks();
}

static void *end_it(void *range)
{
    opscope_range_close(range);
    return NULL;
}

static void outputs_of_a_range_ended_elsewhere_are_not_those_of_the_next_in_its_place(void)
{
    struct seen seen = {0};
    opscope_range_info async = info;
    opscope_range range;
    pthread_t thread;
    async.is_async = true;
    add_global(seeing(&seen, false, true));
    opscope_range_open(&range, op_named("a"), &async);
    opscope_range_outputs(&range, box_three, text_out);
    CHECK_EQUAL(pthread_create(&thread, NULL, end_it, &range), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(seen.outputs_at_end, 0); /* the opener's thread has them */
    opscope_range_open(&range, op_named("a"), &async);
    opscope_range_close(&range);
    CHECK_EQUAL(seen.outputs_at_end, 0);
    opscope_clear_callbacks();
}

static size_t box_many(void *arg, opscope_value *values, size_t capacity)
{
    boxed++;
    size_t count = *(size_t *)arg;
    for (size_t i = 0; i < count && i < capacity; i++) {
        values[i] = (opscope_value){.kind = OPSCOPE_VALUE_INT, .as.integer = (int64_t)i};
    }
    return count;
}

static int check_many(const opscope_range *fn, void *user, void **context)
{
    size_t count;
    const opscope_value *inputs = opscope_fn_inputs(fn, &count);
    (void)context;
    CHECK_EQUAL(count, *(size_t *)user);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQUAL(inputs[i].as.integer, i);
    }
    return OPSCOPE_OK;
}

static void there_may_be_any_number_of_them(void)
{
    size_t count = 0;
    opscope_range_info many = {.inputs = box_many, .inputs_arg = &count};
    add_global((opscope_callback){
        .start = check_many, .user = &count, .sampling_prob = 1.0, .needs_inputs = true});
    static const size_t counts[] = {0, 1, 16, 17, 1000, 3, 100000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        count = counts[i];
        run_one(&many);
    }
    opscope_clear_callbacks();
}

static size_t box_with_operators(void *arg, opscope_value *values, size_t capacity)
{
    run_one(&info); /* would overwrite the values being filled */
    return box_three(arg, values, capacity);
}

static void operators_that_a_box_calls_are_not_recorded(void)
{
    struct seen seen = {0};
    struct calls calls = {0};
    opscope_range_info calling = {.inputs = box_with_operators, .inputs_arg = text_in};
    boxed = 0;
    add_global(seeing(&seen, true, false));
    add_global(counting(&calls));
    run_one(&calling);
    CHECK_EQUAL(calls.ends, 1);
    CHECK_EQUAL(boxed, 1);
    CHECK_TEXT(seen.text, "in");
    opscope_clear_callbacks();
}

static const size_t list_count = 3;

static size_t box_list(void *arg, opscope_value *values, size_t capacity)
{
    run_one(&info); /* not recorded */
    return box_many(arg, values, capacity);
}

static size_t box_a_list(void *arg, opscope_value *values, size_t capacity)
{
    if (capacity > 0) {
        values[0] = (opscope_value){.kind = OPSCOPE_VALUE_LIST,
                                    .items = box_list,
                                    .as.object = (void *)(uintptr_t)&list_count};
    }
    (void)arg;
    return 1;
}

static int check_list(const opscope_range *fn, void *user, void **context)
{
    size_t count;
    opscope_value items[2] = {{.kind = OPSCOPE_VALUE_NONE}, {.kind = OPSCOPE_VALUE_NONE}};
    const opscope_value *inputs = opscope_fn_inputs(fn, &count);
    (void)context;
    ++*(int *)user;
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(opscope_value_items(&inputs[0], items, 1), list_count);
    CHECK_EQUAL(items[0].kind, OPSCOPE_VALUE_INT);
    CHECK_EQUAL(items[1].kind, OPSCOPE_VALUE_NONE); /* there was room for one */
    CHECK_EQUAL(opscope_value_items(&inputs[0], NULL, 0), list_count);
    CHECK_EQUAL(opscope_value_items(&items[0], items, 2), 0); /* not a list */
    return OPSCOPE_OK;
}

static void a_list_is_boxed_only_when_it_is_read(void)
{
    opscope_range_info listed = {.inputs = box_a_list};
    int started = 0;
    add_global((opscope_callback){
        .start = check_list, .user = &started, .sampling_prob = 1.0, .needs_inputs = true});
    boxed = 0;
    run_one(&listed);
    CHECK_EQUAL(started, 1);
    CHECK_EQUAL(boxed, 2); /* once for each time the callback asked for items */
    opscope_clear_callbacks();
}

int main(void)
{
    RUN(nothing_is_boxed_unless_a_callback_needs_it);
    RUN(only_who_asks_sees_them_each_in_its_time);
    RUN(boxes_are_called_only_when_an_asking_callback_fires);
    RUN(a_range_without_values_has_none);
    RUN(outputs_of_an_inner_range_are_not_its_outers);
    RUN(outputs_of_a_range_ended_elsewhere_are_not_those_of_the_next_in_its_place);
    RUN(there_may_be_any_number_of_them);
    RUN(operators_that_a_box_calls_are_not_recorded);
    RUN(a_list_is_boxed_only_when_it_is_read);
    return 0;
}
