/* tests/native/bridges/torch/test_torch_ranges.c -- the PyTorch bridge on a fake PyTorch: when it
 * is registered, how the recorder counts its ranges, and how it handles ends on another thread and
 * missing ends. */
#include <pthread.h>

#include "attached.h"
#include "base/clock.h"
#include "bridges/torch/stack.h"
#include "ranges.h"
#include "read_segment.h"

static void it_refuses_an_unexpected_pytorch(void)
{
    const struct {
        enum fake_fault fault;
        const char *reason;
    } cases[] = {
        {FAKE_CALLS_NOBODY, "PyTorch called no callback for an operator"},
        {FAKE_FORGETS_ENDS, "starts and ends of ranges do not match"},
        {FAKE_FORGETS_CONTEXTS, "starts and ends of ranges do not match"},
    };
    struct calls calls = {0};
    opscope_handle handle = add_global(counting(&calls));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_fault = cases[i].fault;
        CHECK_TEXT(try_out(), cases[i].reason);
        CHECK(!opscope_torch_is_called());
        CHECK_EQUAL(fake_callback_count(), 0);
    }
    fake_fault = FAKE_SOUND;
    run_op("aten::add", "Tensor");
    CHECK_EQUAL(calls.starts, 0);
    (void)opscope_remove_callback(handle, false);
}

static void it_is_added_while_a_callback_wants_ranges_and_only_then(void)
{
    attach();
    CHECK_EQUAL(fake_callback_count(), 0);
    struct calls calls = {0};
    opscope_callback callback = counting(&calls);
    opscope_handle handle = add_global(callback);
    CHECK_EQUAL(fake_callback_count(), 1);
    run_op("aten::add", "Tensor");
    CHECK_EQUAL(calls.starts, 1);
    CHECK_EQUAL(calls.ends, 1);
    opscope_disable_callback(handle);
    CHECK_EQUAL(fake_callback_count(), 0);
    opscope_enable_callback(handle);
    CHECK_EQUAL(fake_callback_count(), 1);
    opscope_handle local = add_local(callback);
    (void)opscope_remove_callback(handle, true);
    CHECK_EQUAL(fake_callback_count(), 1);
    run_op("aten::add", "Tensor");
    CHECK_EQUAL(calls.starts, 2);
    (void)opscope_remove_callback(local, true);
    CHECK_EQUAL(fake_callback_count(), 0);
    handle = add_global(callback);
    opscope_torch_detach();
    CHECK_EQUAL(fake_callback_count(), 0);
    attach();
    CHECK_EQUAL(fake_callback_count(), 1);
    opscope_clear_callbacks();
    CHECK_EQUAL(fake_callback_count(), 0);
}

static void only_wanted_scopes_are_asked_of_pytorch(void)
{
    struct calls calls = {0};
    opscope_callback callback = counting(&calls);
    callback.scopes = 1u << OPSCOPE_BACKWARD_FUNCTION | 1u << OPSCOPE_USER_SCOPE;
    opscope_handle handle = add_global(callback);
    struct fake_function fn;
    for (uint8_t scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        fake_open(&fn, "name", NULL, scope);
        CHECK_EQUAL(fn.fired, (callback.scopes >> scope & 1u) != 0);
        fake_close(&fn);
    }
    CHECK_EQUAL(calls.starts, 2);
    (void)opscope_remove_callback(handle, true);
}

static void a_window_is_all_that_is_recorded(void)
{
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 10000000, .period_ns = 1000000000000000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_op("aten::add", "Tensor");
    CHECK_EQUAL(fake_callback_count(), 1); /* the one for outer ranges */
    CHECK_EQUAL(opscope_recorder_window_begin(2.0), OPSCOPE_OK);
    CHECK_EQUAL(fake_callback_count(), 2);
    run_op("aten::add", "Tensor");
    run_op("aten::add", "Scalar");
    struct fake_function over;
    fake_open(&over, "aten::mul", "", OPSCOPE_FUNCTION);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    CHECK_EQUAL(fake_callback_count(), 1);
    run_op("aten::add", "Tensor");
    fake_close(&over);
    struct segment *segment = stop_and_read();
    /* Overloads are one operator. */
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").samples, 2);
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").weight, 4 * ONE);
    CHECK_EQUAL(segment_sum_of(segment, "aten::mul").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "aten::mul").whole_ticks, 0);
    segment_free(segment);
}

static void a_probability_is_drawn_by_pytorch_and_for_operators_only(void)
{
    empty_directory();
    const opscope_recorder_options options = {.directory = directory, .sampling_prob = 0.125};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    uint64_t fired = 0;
    struct fake_function fn;
    for (int i = 0; i < 4000; i++) {
        fake_open(&fn, "aten::add", "Tensor", OPSCOPE_FUNCTION);
        fired += fn.fired;
        fake_close(&fn);
        fake_open(&fn, "AddBackward0", NULL, OPSCOPE_BACKWARD_FUNCTION);
        CHECK_EQUAL(fn.fired, 0);
        fake_close(&fn);
    }
    CHECK(fired > 300 && fired < 700);
    struct segment *segment = stop_and_read();
    /* Each range that PyTorch drew is recorded, with its weight. */
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").samples, fired);
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").weight, 8 * fired * ONE);
    segment_free(segment);
}

static void with_another_callback_nothing_is_missed(void)
{
    struct calls calls = {0}, few = {0};
    opscope_callback callback = counting(&few);
    callback.sampling_prob = 0.1;
    opscope_handle sampled = add_global(callback);
    opscope_handle always = add_global(counting(&calls));
    for (int i = 0; i < 4000; i++) {
        run_op("aten::add", "Tensor");
    }
    CHECK_EQUAL(calls.starts, 4000);
    CHECK_EQUAL(calls.ends, 4000);
    CHECK(few.starts > 200 && few.starts < 600);
    (void)opscope_remove_callback(always, true);
    (void)opscope_remove_callback(sampled, true);
}

/* The counter of an aarch64 processor may tick only every 40 ns, more than an operator here takes.
 */
static void run_op_for_a_tick(const char *name)
{
    struct fake_function fn;
    fake_open(&fn, name, "", OPSCOPE_FUNCTION);
    const uint64_t start = opscope__ticks();
    while (opscope__ticks() == start) {
    }
    fake_close(&fn);
}

static void phases_and_self_times_are_told_apart(void)
{
    static const struct {
        const char *name;
        uint8_t scope;
        int phase;
    } cases[] = {
        {"aten::mm", OPSCOPE_FUNCTION, OPSCOPE_FORWARD},
        {"AddmmBackward0", OPSCOPE_BACKWARD_FUNCTION, OPSCOPE_BACKWARD},
        {"autograd::engine::evaluate_function: MulBackward0", OPSCOPE_FUNCTION, OPSCOPE_BACKWARD},
        {"Optimizer.step#Adam.step", OPSCOPE_USER_SCOPE, OPSCOPE_OPTIMIZER},
        {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", OPSCOPE_USER_SCOPE,
         OPSCOPE_DATA},
        {"c10d::allreduce_", OPSCOPE_FUNCTION, OPSCOPE_COMM},
        {"gloo:all_reduce", OPSCOPE_USER_SCOPE, OPSCOPE_COMM},
        {"nccl:all_reduce", OPSCOPE_USER_SCOPE, OPSCOPE_COMM},
        {"mine", OPSCOPE_USER_SCOPE, OPSCOPE_OTHER},
    };
    start_recorder("");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fake_function outer;
        fake_open(&outer, cases[i].name, NULL, cases[i].scope);
        run_op_for_a_tick("aten::inner");
        fake_close(&outer);
    }
    struct segment *segment = stop_and_read();
    int inner_phases[OPSCOPE_PHASE_COUNT] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t op = segment_op(segment, cases[i].name);
        struct totals outer = segment_sum(segment, op, cases[i].phase, ANY);
        CHECK_EQUAL(outer.samples, 1);
        CHECK(outer.self_ticks < outer.total_ticks);
        inner_phases[cases[i].phase <= OPSCOPE_FORWARD ? OPSCOPE_FORWARD : cases[i].phase]++;
    }
    uint32_t inner = segment_op(segment, "aten::inner");
    for (int phase = 0; phase < OPSCOPE_PHASE_COUNT; phase++) {
        CHECK_EQUAL(segment_sum(segment, inner, phase, ANY).samples, inner_phases[phase]);
    }
    segment_free(segment);
}

static void an_operator_that_throws_counts_as_an_error(void)
{
    start_recorder("");
    struct fake_function fn;
    fake_open(&fn, "aten::mm", "", OPSCOPE_FUNCTION);
    fake_close_by_exception(&fn);
    run_op("aten::mm", "");
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "aten::mm").samples, 2);
    CHECK_EQUAL(segment_sum_of(segment, "aten::mm").error_weight, ONE);
    segment_free(segment);
}

static void ranges_that_may_move_end_on_any_thread(void)
{
    start_recorder("");
    struct fake_function function, async, here;
    for (int i = 0; i < 1000; i++) { /* more than a thread can have open */
        fake_open(&function, "forward", NULL, OPSCOPE_TORCHSCRIPT_FUNCTION);
        fake_open_async(&async, "gloo:all_reduce");
        fake_open(&here, "aten::add", "Tensor", OPSCOPE_FUNCTION);
        fake_close(&here);
        if (i % 100 == 0) {
            close_on_another_thread(&function);
            close_on_another_thread(&async);
        } else {
            fake_close(&async);
            fake_close(&function);
        }
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "forward").samples, 1000);
    CHECK_EQUAL(segment_sum_of(segment, "gloo:all_reduce").samples, 1000);
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").samples, 1000);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    segment_free(segment);
}

static const char *seen_name, *seen_overload;
static uint32_t seen_id;

static int look(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    (void)context;
    seen_name = fn->op->name;
    seen_overload = fn->op->overload_name;
    seen_id = fn->op->id;
    run_op("aten::empty", "memory_format"); /* not recorded: a callback runs it */
    return OPSCOPE_OK;
}

static void callbacks_see_the_overload_of_an_operator_that_is_counted_as_one(void)
{
    opscope_handle handle = add_global((opscope_callback){
        .start = look, .end = count_end, .user = &(struct calls){0}, .sampling_prob = 1.0});
    run_op("aten::sub", "Tensor");
    CHECK_TEXT(seen_name, "aten::sub");
    CHECK_TEXT(seen_overload, "Tensor");
    const uint32_t id = seen_id;
    run_op("aten::sub", "Scalar");
    CHECK_TEXT(seen_overload, "Scalar");
    CHECK_EQUAL(seen_id, id);
    CHECK_TEXT(opscope_op_by_id(id)->overload_name, "");
    run_op("aten::sub", "");
    CHECK_TEXT(seen_overload, "");
    CHECK_EQUAL(seen_id, id);
    /* Names in memory that is reused. */
    char name[64];
    for (int i = 0; i < 5000; i++) {
        (void)snprintf(name, sizeof name, "batch %d of this epoch's many", i);
        run_op(name, NULL);
        CHECK_TEXT(seen_name, name);
    }
    (void)opscope_remove_callback(handle, true);
}

/* PyTorch 2.10 begins a range of its own in the call that begins a block under a dispatch mode. */
static void a_block_that_begins_inside_a_range_of_its_call_is_left_out(void)
{
    struct calls calls = {0};
    opscope_handle handle = add_global(counting(&calls));
    struct fake_function around, within, block;
    run_op("aten::add", "Tensor"); /* makes the stack */
    fake_open(&around, "around", NULL, OPSCOPE_FUNCTION);
    struct opscope__torch_block_call *call = &opscope__torch_block_call;
    *call = (struct opscope__torch_block_call){.name = 1, .top = opscope__torch_stack->top};
    fake_open(&within, "within", NULL, OPSCOPE_FUNCTION);
    CHECK_EQUAL(calls.starts, 3);
    fake_open(&block, "block", NULL, OPSCOPE_USER_SCOPE);
    CHECK_EQUAL(calls.starts, 3);
    CHECK(call->has_left && call->began_ticks != 0);
    fake_close(&within);
    fake_close(&block);
    CHECK_EQUAL(calls.ends, 2);
    *call = (struct opscope__torch_block_call){.name = 1, .top = opscope__torch_stack->top};
    fake_open(&block, "block", NULL, OPSCOPE_USER_SCOPE);
    CHECK_EQUAL(calls.starts, 4);
    CHECK(!call->has_left);
    fake_close(&block);
    fake_close(&around);
    CHECK_EQUAL(calls.ends, 4);
    *call = (struct opscope__torch_block_call){0};
    (void)opscope_remove_callback(handle, true);
}

int main(void)
{
    make_directory();
    RUN(it_refuses_an_unexpected_pytorch);
    RUN(it_is_added_while_a_callback_wants_ranges_and_only_then);
    RUN(only_wanted_scopes_are_asked_of_pytorch);
    RUN(a_window_is_all_that_is_recorded);
    RUN(a_probability_is_drawn_by_pytorch_and_for_operators_only);
    RUN(with_another_callback_nothing_is_missed);
    RUN(phases_and_self_times_are_told_apart);
    RUN(an_operator_that_throws_counts_as_an_error);
    RUN(ranges_that_may_move_end_on_any_thread);
    RUN(a_block_that_begins_inside_a_range_of_its_call_is_left_out);
    RUN(callbacks_see_the_overload_of_an_operator_that_is_counted_as_one);
    remove_directory();
    return 0;
}
