/* tests/native/bridges/torch/test_torch_layouts.c -- the layout of PyTorch's ranges: found by its
 * functions, verified by the trial. A wrong one is never used, and does no harm; without a layout
 * the bridge still has names, counts and times. */
#include "attached.h"
#include "bridges/torch/header.h"
#include "bridges/torch/layout.h"
#include "ranges.h"
#include "read_segment.h"

/* All that follows the name. */
enum { SHORTER = 0x20 - sizeof(struct fake_string) };

static const struct opscope__torch_layout known = {.scope = 0x60,
                                                   .name = 0xa0,
                                                   .has_schema = 0xc0 - SHORTER,
                                                   .sequence_nr = 0xc8 - SHORTER,
                                                   .inputs = 0xd0 - SHORTER,
                                                   .input_count = 0xd8 - SHORTER,
                                                   .outputs = 0x118 - SHORTER,
                                                   .forward_thread_id = 0x130 - SHORTER,
                                                   .is_async = 0x140 - SHORTER};
enum { FIELDS = sizeof known / sizeof(uint16_t) };

static void it_is_found(void)
{
    attach();
    CHECK(memcmp(&opscope__torch.layout, &known, sizeof known) == 0);
    CHECK(!opscope__torch.is_basic);
    opscope_torch_detach();
}

static void libraries_are_found_by_the_start_of_their_files_names(void)
{
    CHECK(opscope__torch_library("libtorch_cpu.so") != NULL);
    CHECK(opscope__torch_library("libc.so") != NULL); /* libc.so.6 */
    CHECK(opscope__torch_library("libc.s") == NULL);
    CHECK(opscope__torch_library("libnowhere.so") == NULL);
}

static bool is_used_after_a_trial_with(struct opscope__torch_layout layout)
{
    CHECK(opscope_torch_trial_begin("") == NULL);
    opscope__torch.layout = layout;
    run_trial();
    CHECK(opscope_torch_trial_end() == NULL);
    const bool is_used = opscope_torch_fault(OPSCOPE_TORCH_FIELDS) == NULL;
    CHECK_EQUAL(opscope__torch.is_basic, !is_used);
    run_op("aten::add", "Tensor");
    opscope_torch_detach();
    return is_used;
}

/* Each field and all after it, or it alone, elsewhere. */
static void a_wrong_one_is_not_used_and_does_no_harm(void)
{
    static const int shifts[] = {-8, 8, 16, -1, 1, 0x70};
    struct calls calls = {0};
    opscope_handle handle = add_global(counting(&calls));
    for (size_t field = 0; field < FIELDS; field++) {
        for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
            for (int is_alone = 0; is_alone < 2; is_alone++) {
                uint16_t offsets[FIELDS];
                struct opscope__torch_layout layout;
                memcpy(offsets, &known, sizeof offsets);
                for (size_t j = field; j < (is_alone ? field + 1 : FIELDS); j++) {
                    offsets[j] = (uint16_t)(offsets[j] + shifts[i]);
                }
                memcpy(&layout, offsets, sizeof layout);
                CHECK(!is_used_after_a_trial_with(layout));
            }
        }
    }
    CHECK(is_used_after_a_trial_with(known));
    CHECK_EQUAL(calls.starts, 2 * 6 * FIELDS + 1);
    (void)opscope_remove_callback(handle, true);
}

static void functions_that_read_otherwise_give_none(void)
{
    struct opscope__torch_layout layout;
    for (int fault = FAKE_NAME_FOLLOWS_POINTERS; fault < FAKE_FAULTS; fault++) {
        fake_fault = (enum fake_fault)fault;
        CHECK(opscope__torch_find_layout(&layout) != NULL);
    }
    fake_fault = FAKE_SOUND;
    CHECK(opscope__torch_find_layout(&layout) == NULL);
    CHECK(memcmp(&layout, &known, sizeof known) == 0);
}

static void a_range_that_disagrees_takes_the_layout_away(void)
{
    static const enum fake_fault faults[] = {FAKE_SCOPE_ELSEWHERE, FAKE_OUTPUTS_ELSEWHERE,
                                             FAKE_FORWARD_ELSEWHERE, FAKE_SEQUENCE_ELSEWHERE};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        fake_fault = faults[i];
        CHECK(try_out() == NULL);
        CHECK(opscope_torch_fault(OPSCOPE_TORCH_FIELDS) != NULL);
        opscope_torch_detach();
        fake_fault = FAKE_SOUND;
    }
    CHECK(opscope_torch_trial_begin("") == NULL);
    run_op("aten::empty", "memory_format");
    CHECK(opscope_torch_trial_end() == NULL);
    CHECK(opscope_torch_fault(OPSCOPE_TORCH_FIELDS) != NULL);
    opscope_torch_detach();
}

/* ---- without a layout ------------------------------------------------------------------------- */

static void attach_without_layout(void)
{
    CHECK(opscope_torch_trial_begin("") == NULL);
    opscope__torch.layout = (struct opscope__torch_layout){0};
    run_trial();
    CHECK(opscope_torch_trial_end() == NULL);
    CHECK(opscope__torch.is_basic);
}

static void names_counts_errors_and_phases_are_recorded_without_a_layout(void)
{
    attach_without_layout();
    start_recorder("");
    struct fake_function outer, fn, async;
    CHECK_EQUAL(fake_callback_count(), OPSCOPE_SCOPE_COUNT);
    fake_open(&outer, "Optimizer.step#Adam.step", NULL, OPSCOPE_USER_SCOPE);
    CHECK_EQUAL(outer.fired, 1);
    run_op("aten::add", "Tensor");
    run_op("aten::add", "Scalar");
    fake_open(&fn, "aten::mm", "", OPSCOPE_FUNCTION);
    fake_close_by_exception(&fn);
    fake_open(&fn, "forward", NULL, OPSCOPE_TORCHSCRIPT_FUNCTION);
    fake_open_async(&async, "gloo:all_reduce");
    close_on_another_thread(&fn);
    close_on_another_thread(&async);
    fake_close(&outer);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").samples, 2);
    CHECK_EQUAL(segment_sum_of(segment, "aten::mm").error_weight, ONE);
    CHECK_EQUAL(segment_sum_of(segment, "forward").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "gloo:all_reduce").samples, 1);
    const uint32_t add = segment_op(segment, "aten::add");
    CHECK_EQUAL(segment_sum(segment, add, OPSCOPE_OPTIMIZER, ANY).samples, 2);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    segment_free(segment);
    CHECK_EQUAL(fake_callback_count(), 0);
    opscope_torch_detach();
}

static size_t seen_inputs, seen_outputs;

static int look(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    (void)context;
    (void)opscope_fn_inputs(fn, &seen_inputs);
    CHECK_TEXT(fn->op->overload_name, "Tensor");
    return OPSCOPE_OK;
}

static int look_at_end(const opscope_range *fn, void *user, void *context)
{
    (void)user;
    (void)context;
    (void)opscope_fn_outputs(fn, &seen_outputs);
    return OPSCOPE_OK;
}

static void there_are_overloads_but_no_values_without_a_layout(void)
{
    attach_without_layout();
    seen_inputs = seen_outputs = 99;
    opscope_handle handle = add_global((opscope_callback){.start = look,
                                                          .end = look_at_end,
                                                          .sampling_prob = 1.0,
                                                          .needs_inputs = true,
                                                          .needs_outputs = true});
    run_op("aten::add", "Tensor");
    CHECK_EQUAL(seen_inputs, 0);
    CHECK_EQUAL(seen_outputs, 0);
    (void)opscope_remove_callback(handle, true);
    opscope_torch_detach();
}

/* ---- the header ---------------------------------------------------------------------------------- */

static uint64_t digest(const char *text)
{
    char copy[2048];
    (void)snprintf(copy, sizeof copy, "%s", text);
    return opscope__torch_header_digest(copy);
}

#define DECLARED(fields)                                                                           \
    "enum class RecordScope : uint8_t { // kinds\n FUNCTION = 0, USER };"                          \
    "class RecordFunctionCallback { private: StartCallback start_; EndCallback end_; double p; };" \
    "struct StepCallbacks { StartEndPairs callbacks_; uint64_t thread_id_{0}; };"                  \
    "struct RecordFunction { private: StepCallbacks step_callbacks_;" fields " }; int more;"

static void the_header_is_known_by_its_declarations_alone(void)
{
    const uint64_t known_digest = digest(DECLARED("bool a{false}; int b;"));
    CHECK(known_digest != 0);
    CHECK(digest(DECLARED("/* first */ bool a{ false };\n\n int b; // second\n")) == known_digest);
    CHECK(digest(DECLARED("int b; bool a{false};")) != known_digest);
    CHECK(digest("struct RecordFunction { int other; };") == 0);
    CHECK(digest("") == 0);
    CHECK(digest(DECLARED("bool a; /* no end")) != known_digest);
    CHECK(opscope__torch_header_is_known("/nowhere/record_function.h"));
    CHECK(!opscope__torch_header_is_known("/proc/self/status"));
}

int main(void)
{
    make_directory();
    RUN(it_is_found);
    RUN(libraries_are_found_by_the_start_of_their_files_names);
    RUN(a_wrong_one_is_not_used_and_does_no_harm);
    RUN(functions_that_read_otherwise_give_none);
    RUN(a_range_that_disagrees_takes_the_layout_away);
    opscope__torch.layout = known;
    RUN(names_counts_errors_and_phases_are_recorded_without_a_layout);
    RUN(there_are_overloads_but_no_values_without_a_layout);
    RUN(the_header_is_known_by_its_declarations_alone);
    remove_directory();
    return 0;
}
