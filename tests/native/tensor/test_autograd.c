/* The tape and the engine: accumulation, retain_graph, versions, in-place, threads; and the ranges.
 */
#include <pthread.h>

#include "opscope/debug_info.h"
#include "gradients.h"

static void gradients_add_up_over_uses_and_walks(void)
{
    opscope_tensor *x = leaf(1, SIZES(3));
    for (int walk = 1; walk <= 2; walk++) {
        opscope_tensor *square = DO("core::mul", T(x), T(x)),
                       *more = DO("core::add", T(square), T(x));
        opscope_tensor *loss = DO("core::sum", T(more));
        backward(loss);
        for (int i = 0; i < 3; i++) {
            CHECK_NEAR(at(opscope_tensor_grad(x), i), walk * (2 * at(x, i) + 1), 1e-14);
        }
        RELEASE(square, more, loss);
    }
    opscope_tensor_release(x);
}

static void a_second_walk_needs_retain_graph(void)
{
    opscope_tensor *x = leaf(1, SIZES(3)), *y = DO("core::exp", T(x)),
                   *loss = DO("core::sum", T(y));
    CHECK(opscope_backward(&loss, NULL, 1, true, false) == OPSCOPE_OK);
    CHECK(opscope_backward(&loss, NULL, 1, false, false) == OPSCOPE_OK);
    CHECK_NEAR(at(opscope_tensor_grad(x), 1), 2 * exp(at(x, 1)), 1e-14);
    CHECK(opscope_backward(&loss, NULL, 1, false, false) < 0);
    CHECK_HAS(opscope_tensor_error(), "core::SumBackward: backward a second time");
    CHECK(opscope_backward(&y, NULL, 1, false, false) < 0);
    CHECK_HAS(opscope_tensor_error(), "only for a tensor of one element, this one has sizes [3]");
    CHECK(opscope_backward(&loss, NULL, 1, false, true) < 0);
    opscope_tensor *plain = numbers(1, OPSCOPE_FLOAT64, 0, NULL);
    CHECK(opscope_backward(&plain, NULL, 1, false, false) < 0);
    CHECK_HAS(opscope_tensor_error(), "does not require grad");
    RELEASE(x, y, loss, plain);
}

static void a_saved_tensor_changed_in_place_is_found(void)
{
    opscope_tensor *x = leaf(1, SIZES(3)), *w = numbers(2, OPSCOPE_FLOAT64, SIZES(3));
    opscope_tensor *y = DO("core::mul", T(x), T(w)), *loss = DO("core::sum", T(y));
    opscope_tensor_release(DO("core::fill_", T(w), I(1)));
    CHECK(opscope_backward(&loss, NULL, 1, false, false) < 0);
    CHECK_HAS(opscope_tensor_error(), "core::MulBackward: a tensor of sizes [3] that it saved was "
                                      "changed in place since: it is at version 1, expected 0");
    CHECK(opscope_tensor_grad(x) == NULL);
    RELEASE(x, w, y, loss);
}

static void in_place_goes_on_the_tape(void)
{
    opscope_tensor *x = leaf(1, SIZES(4)), *y = DO("core::add", T(x), I(1));
    opscope_tensor *same = DO("core::mul_", T(y), T(y));
    opscope_tensor *again = DO("core::exp_", T(y));
    CHECK(same == y && again == y);
    opscope_tensor *loss = DO("core::sum", T(y));
    backward(loss);
    for (int i = 0; i < 4; i++) {
        double z = at(x, i) + 1;
        CHECK_NEAR(at(y, i), exp(z * z), 1e-14);
        CHECK_NEAR(at(opscope_tensor_grad(x), i), exp(z * z) * 2 * z, 1e-13);
    }
    CHECK_HAS(FAIL("core::add_", T(x), I(1)), "cannot write in place to a leaf that requires grad");
    bool before = opscope_grad_mode_set(false);
    opscope_tensor_release(DO("core::add_", T(x), I(1)));
    opscope_tensor_release(DO("core::add_", T(y), I(1)));
    opscope_grad_mode_set(before);
    RELEASE(x, y, same, again, loss);
}

static void lists_of_tensors_get_each_their_gradient(void)
{
    opscope_tensor *x = leaf(1, SIZES(2, 3)), *y = leaf(2, SIZES(2, 1)), *both[] = {x, y, x};
    const opscope_argument list = {OPSCOPE_ARGUMENT_TENSORS, 3, {.tensors = both}};
    opscope_tensor *joined = DO("core::cat", list, I(-1)),
                   *square = DO("core::mul", T(joined), T(joined));
    CHECK_SIZES(joined, 2, 7);
    CHECK(at(joined, 10) == at(y, 1) && at(joined, 12) == at(x, 4));
    opscope_tensor *loss = DO("core::sum", T(square));
    backward(loss);
    CHECK_NEAR(at(opscope_tensor_grad(x), 4), 4 * at(x, 4), 1e-14);
    CHECK_NEAR(at(opscope_tensor_grad(y), 1), 2 * at(y, 1), 1e-14);
    CHECK_HAS(FAIL("core::cat", list, I(0)), "differ in another dimension than 0");
    RELEASE(x, y, joined, square, loss);
}

static void no_grad_leaves_nothing_on_the_tape(void)
{
    opscope_tensor *x = leaf(1, SIZES(2));
    bool before = opscope_grad_mode_set(false);
    opscope_tensor *y = DO("core::exp", T(x));
    CHECK(before && !opscope_grad_mode());
    opscope_grad_mode_set(true);
    CHECK(!opscope_tensor_requires_grad(y) && opscope_tensor_grad_fn(y) == NULL);
    opscope_tensor *z = DO("core::exp", T(x)), *cut;
    CHECK_TEXT(opscope_node_name(opscope_tensor_grad_fn(z)), "core::ExpBackward");
    CHECK(opscope_tensor_detach(z, &cut) == OPSCOPE_OK);
    CHECK(!opscope_tensor_requires_grad(cut) &&
          opscope_tensor_storage_data(cut) == opscope_tensor_storage_data(z));
    CHECK(opscope_tensor_set_requires_grad(z, false) < 0);
    opscope_tensor *whole = numbers(1, OPSCOPE_INT64, SIZES(2));
    CHECK(opscope_tensor_set_requires_grad(whole, true) < 0);
    CHECK_HAS(opscope_tensor_error(), "only floating tensors have gradients");
    RELEASE(x, y, z, cut, whole);
}

static void grad_gives_gradients_without_touching_leaves(void)
{
    opscope_tensor *x = leaf(1, SIZES(3)), *w = leaf(2, SIZES(3)), *unused = leaf(3, SIZES(3));
    opscope_tensor *y = DO("core::mul", T(x), T(w)), *z = DO("core::exp", T(y));
    opscope_tensor *loss = DO("core::sum", T(z)), *out[3] = {NULL};
    opscope_tensor *inputs[] = {y, x, unused};
    CHECK(opscope_grad(&loss, NULL, 1, inputs, 3, true, false, false, out) < 0);
    CHECK_HAS(opscope_tensor_error(), "the roots do not depend on input 2");
    CHECK(opscope_grad(&loss, NULL, 1, inputs, 3, true, false, true, out) == OPSCOPE_OK);
    CHECK(out[2] == NULL && opscope_tensor_grad(x) == NULL && opscope_tensor_grad(w) == NULL);
    CHECK_NEAR(at(out[0], 1), at(z, 1), 1e-14);
    CHECK_NEAR(at(out[1], 1), at(z, 1) * at(w, 1), 1e-14);
    RELEASE(x, w, unused, y, z, loss, out[0], out[1]);
}

static int double_it(void *user, opscope_tensor *const *gradients, opscope_tensor **out)
{
    ++*(int *)user;
    out[0] = DO("core::mul", T(gradients[0]), I(2));
    return OPSCOPE_OK;
}

static void count_it(void *user)
{
    *(int *)user += 100;
}

static void a_node_of_the_callers_own(void)
{
    int calls = 0;
    opscope_tensor *x = leaf(1, SIZES(3)), *y = numbers(2, OPSCOPE_FLOAT64, SIZES(3));
    CHECK(opscope_autograd_record("my::DoubleBackward", &x, 1, &y, 1, double_it, count_it,
                                  &calls) == OPSCOPE_OK);
    opscope_tensor *loss = DO("core::sum", T(y));
    backward(loss);
    CHECK(at(opscope_tensor_grad(x), 2) == 2);
    CHECK_EQUAL(calls, 101);
    RELEASE(x, y, loss);
    CHECK_EQUAL(calls, 101);
}

static void a_long_tape_is_walked_and_freed_without_deep_calls(void)
{
    opscope_tensor *x = leaf(1, SIZES(1)), *y = opscope_tensor_retain(x);
    for (int i = 0; i < 200000; i++) {
        opscope_tensor *next = DO("core::add", T(y), I(1));
        opscope_tensor_release(y);
        y = next;
    }
    backward(y);
    CHECK(at(opscope_tensor_grad(x), 0) == 1);
    RELEASE(x, y);
}

/* Under a sanitizer an operator takes much longer, and the sanitizer itself detects leaks. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { OPERATORS = 20000 };
#else
enum { OPERATORS = 1000000 };
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { OPERATORS = 20000 };
#else
enum { OPERATORS = 1000000 };
#endif

static long resident_pages(void)
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident;
}

static int keep_gradient(void *user, opscope_tensor *gradient, opscope_tensor **out)
{
    (void)user;
    (void)gradient;
    (void)out;
    return OPSCOPE_OK;
}

/* Ten operators forward, and their backward: one of every kind that saves tensors. */
static void step(opscope_tensor *x, opscope_tensor *w)
{
    opscope_tensor *y = DO("core::mm", T(x), T(w)), *z = DO("core::neg", T(y));
    opscope_tensor *row = DO("core::select", T(z), I(0), I(1)),
                   *same = DO("core::mul_", T(row), I(2));
    opscope_tensor *more = DO("core::exp", T(z)), *square = DO("core::mul", T(more), T(more));
    opscope_tensor *sum = DO("core::sum", T(square)), *part = DO("core::sum", T(row));
    opscope_tensor *loss = DO("core::add", T(sum), T(part));
    opscope_hook *hook;
    CHECK(opscope_tensor_register_hook(more, keep_gradient, NULL, NULL, &hook) == OPSCOPE_OK);
    CHECK(opscope_tensor_retain_grad(y) == OPSCOPE_OK);
    FAIL("core::add", T(z), T(more), R(0.5), I(1));
    backward(loss);
    opscope_hook_release(hook);
    RELEASE(y, z, row, same, more, square, sum, part, loss);
}

static void a_million_operators_leave_memory_where_it_was(void)
{
    opscope_allocator_stats before, after;
    opscope_tensor *x = leaf(1, SIZES(2, 3)), *w = leaf(2, SIZES(3, 3));
    for (int i = 0; i < 1000; i++) {
        step(x, w);
    }
    opscope_allocator_read_stats(opscope_allocator_cpu(), &before);
    long pages = resident_pages();
    for (int i = 0; i < OPERATORS / 10; i++) {
        step(x, w);
    }
    opscope_allocator_read_stats(opscope_allocator_cpu(), &after);
    CHECK_EQUAL(after.live_bytes, before.live_bytes);
    CHECK(after.allocation_count > before.allocation_count);
    CHECK(OPERATORS < 1000000 || resident_pages() - pages < 64);
    RELEASE(x, w);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct seen {
    char name[64];
    opscope_scope scope;
    int64_t sequence_nr;
    uint64_t forward_thread;
    size_t inputs;
    bool labelled;
    bool failed;
};

static struct seen seen[32];
static int seen_count;

static int note(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    struct seen *into = &seen[seen_count < 31 ? seen_count++ : 31];
    *context = into;
    snprintf(into->name, sizeof into->name, "%s", fn->op->name);
    into->scope = (opscope_scope)fn->op->scope;
    into->sequence_nr = fn->info != NULL ? fn->info->sequence_nr : -2;
    into->forward_thread = fn->info != NULL ? fn->info->forward_thread_id : 0;
    into->labelled = opscope_debug_info_get("model_id") != NULL;
    opscope_fn_inputs(fn, &into->inputs);
    return OPSCOPE_OK;
}

static int note_end(const opscope_range *fn, void *user, void *context)
{
    (void)user;
    ((struct seen *)context)->failed = opscope_range_failed(fn);
    return OPSCOPE_OK;
}

static void *walk_elsewhere(void *root)
{
    opscope_debug_info_guard guard;
    CHECK(opscope_debug_info_push("model_id", "m", &guard) == OPSCOPE_OK);
    backward(root);
    opscope_debug_info_pop(&guard);
    return NULL;
}

static void every_call_and_every_node_is_one_range(void)
{
    opscope_tensor *x = leaf(1, SIZES(3)), *plain = numbers(2, OPSCOPE_FLOAT64, SIZES(4));
    opscope_handle handle;
    const opscope_callback callback = {
        .start = note, .end = note_end, .sampling_prob = 1, .needs_inputs = true};
    CHECK(opscope_add_global_callback(&callback, &handle) == OPSCOPE_OK);
    opscope_tensor *y = DO("core::neg", T(x)), *loss = DO("core::sum", T(y));
    FAIL("core::add", T(x), T(plain), R(2));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, walk_elsewhere, loss) == 0);
    pthread_join(thread, NULL);
    CHECK(opscope_remove_callback(handle, true) == OPSCOPE_OK);

    static const struct {
        const char *name;
        size_t inputs;
    } wanted[] = {{"core::neg", 1},         {"core::sum", 1},     {"core::add", 3},
                  {"core::SumBackward", 1}, {"core::reshape", 2}, {"core::expand", 2},
                  {"core::NegBackward", 1}, {"core::neg", 1}};
    CHECK_EQUAL(seen_count, sizeof wanted / sizeof *wanted);
    for (int i = 0; i < seen_count; i++) {
        CHECK_TEXT(seen[i].name, wanted[i].name);
        CHECK_EQUAL(seen[i].inputs, wanted[i].inputs);
        CHECK_EQUAL(seen[i].failed, i == 2);
        CHECK_EQUAL(seen[i].labelled, i > 2);
        bool is_backward = i == 3 || i == 6;
        CHECK_EQUAL(seen[i].scope, is_backward ? OPSCOPE_BACKWARD_FUNCTION : OPSCOPE_FUNCTION);
        CHECK_EQUAL(seen[i].forward_thread, is_backward ? opscope_thread_id() : 0);
    }
    CHECK(seen[0].sequence_nr >= 0 && seen[6].sequence_nr == seen[0].sequence_nr);
    CHECK(seen[3].sequence_nr == seen[1].sequence_nr && seen[7].sequence_nr == -1);
    RELEASE(x, plain, y, loss);
}

int main(void)
{
    RUN(gradients_add_up_over_uses_and_walks);
    RUN(a_second_walk_needs_retain_graph);
    RUN(a_saved_tensor_changed_in_place_is_found);
    RUN(in_place_goes_on_the_tape);
    RUN(lists_of_tensors_get_each_their_gradient);
    RUN(no_grad_leaves_nothing_on_the_tape);
    RUN(grad_gives_gradients_without_touching_leaves);
    RUN(a_node_of_the_callers_own);
    RUN(a_long_tape_is_walked_and_freed_without_deep_calls);
    RUN(a_million_operators_leave_memory_where_it_was);
    RUN(every_call_and_every_node_is_one_range);
    return 0;
}
