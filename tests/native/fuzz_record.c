/* tests/native/fuzz_record.c -- any sequence of the record layer's operations on one thread.
 *
 * The bytes are operations: callbacks are added and removed, ranges open and close in any order,
 * debug info and states are pushed and left, the switch changes, the recorder starts, changes and
 * stops. For any order: each start gets one end, with its context; each callback is dropped once
 * and never called afterwards; the labels are those of the open scopes.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opscope/debug_info.h"
#include "opscope/record.h"
#include "opscope/recorder.h"

enum { SLOTS = 16, DEPTH = 24, NAMES = 4 };

struct input {
    const uint8_t *at, *end;
};

static unsigned take(struct input *input, unsigned below)
{
    return input->at < input->end ? *input->at++ % below : 0;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

struct callback {
    uint64_t open; /* starts minus ends */
    bool runs_operators;
};
static uint64_t alive_count;
static opscope_handle handles[SLOTS];

static int on_start(const opscope_range *fn, void *user, void **context)
{
    struct callback *callback = user;
    size_t count;
    callback->open++;
    *context = (void *)(uintptr_t)fn;
    (void)opscope_fn_inputs(fn, &count);
    assert(count == 0 || count == 3);
    if (callback->runs_operators) {
        assert(opscope_range_begin(fn->op, fn->info) == NULL);
    }
    return OPSCOPE_OK;
}

static int on_failing_start(const opscope_range *fn, void *user, void **context)
{
    (void)on_start(fn, user, context);
    return OPSCOPE_ERR_CALLBACK;
}

static int on_end(const opscope_range *fn, void *user, void *context)
{
    struct callback *callback = user;
    size_t count;
    assert(context == (const void *)fn || context == NULL);
    assert(callback->open-- > 0);
    (void)opscope_fn_outputs(fn, &count);
    assert(count == 0 || count == 3);
    return OPSCOPE_OK;
}

static void on_drop(void *user)
{
    struct callback *callback = user;
    assert(callback->open == 0);
    alive_count--;
    free(callback);
}

static void add_callback(struct input *input)
{
    static const double probs[] = {1.0, 1.0, 0.5, 0.0};
    struct callback *user = calloc(1, sizeof *user);
    unsigned slot = take(input, SLOTS), flags = take(input, 256);
    assert(user != NULL);
    user->runs_operators = flags & 1;
    opscope_callback callback = {.start = flags & 2 ? on_failing_start : on_start,
                                 .end = on_end,
                                 .user = user,
                                 .drop = on_drop,
                                 .sampling_prob = probs[flags >> 2 & 3],
                                 .scopes = flags & 16 ? 3 : 0,
                                 .needs_inputs = flags & 32,
                                 .needs_outputs = flags & 64,
                                 .needs_ids = flags & 128};
    alive_count++;
    int status = take(input, 2) ? opscope_add_thread_local_callback(&callback, &handles[slot])
                                : opscope_add_global_callback(&callback, &handles[slot]);
    if (status != OPSCOPE_OK) {
        assert(status == OPSCOPE_ERR_FULL);
        on_drop(user);
    }
}

static void change_callback(struct input *input)
{
    opscope_handle handle = handles[take(input, SLOTS)];
    int status = OPSCOPE_OK;
    switch (take(input, 4)) {
    case 0:
        status = opscope_remove_callback(handle, false);
        break;
    case 1:
        status = opscope_remove_callback(handle, true);
        break;
    case 2:
        status = opscope_disable_callback(handle);
        break;
    default:
        status = opscope_enable_callback(handle);
    }
    assert(status == OPSCOPE_OK || status == OPSCOPE_ERR_NOT_FOUND ||
           status == OPSCOPE_ERR_WOULD_DEADLOCK);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

struct open_range {
    opscope_range in_place;
    opscope_range *range; /* NULL: none */
    bool is_open;
};
static struct open_range ranges[SLOTS];
static const opscope_op *ops[NAMES];

static size_t box(void *arg, opscope_value *values, size_t capacity)
{
    (void)arg;
    for (size_t i = 0; i < 3 && i < capacity; i++) {
        values[i] = (opscope_value){.kind = OPSCOPE_VALUE_INT, .as.integer = 1};
    }
    return 3;
}

static void close_range(struct open_range *open, bool failed)
{
    if (!open->is_open) {
        return;
    }
    if (open->range != NULL && failed) {
        opscope_range_fail(open->range);
        opscope_range_outputs(open->range, box, NULL);
    }
    if (open->range == &open->in_place) {
        opscope_range_close(open->range);
    } else if (open->range != NULL) {
        opscope_range_end(open->range);
    }
    open->is_open = false;
}

static void open_range(struct input *input)
{
    static const opscope_range_info infos[] = {{.sequence_nr = -1},
                                               {.inputs = box},
                                               {.is_async = true},
                                               {.inputs = box, .is_async = true}};
    struct open_range *open = &ranges[take(input, SLOTS)];
    const opscope_op *op = ops[take(input, NAMES)];
    unsigned kind = take(input, 10);
    const opscope_range_info *info = kind < 8 ? &infos[kind % 4] : NULL;
    close_range(open, false);
    open->is_open = true;
    if (kind % 2) {
        open->range = &open->in_place;
        opscope_range_open(open->range, op, info);
    } else {
        open->range = opscope_range_begin(op, info);
    }
}

/* ---- scopes: guards and entered states, left in the opposite order --------------------------- */

struct scope {
    opscope_debug_info_guard guard;
    opscope_state *previous; /* NULL: a guard */
    const opscope_debug_info *outer;
};
static struct scope scopes[DEPTH];
static unsigned depth;
static opscope_state *states[SLOTS];

static void leave_scope(void)
{
    if (depth == 0) {
        return;
    }
    struct scope *scope = &scopes[--depth];
    if (scope->previous != NULL) {
        opscope_state_leave(scope->previous);
    } else {
        opscope_debug_info_pop(&scope->guard);
    }
    assert(opscope_debug_info_current() == scope->outer);
}

static void push_label(struct input *input)
{
    static const char *const words[] = {"model_id", "tier", "a", "resnet", "bert", ""};
    const char *key = words[take(input, 3)], *value = words[take(input, 6)];
    if (depth == DEPTH) {
        return;
    }
    struct scope *scope = &scopes[depth++];
    *scope = (struct scope){.outer = opscope_debug_info_current()};
    assert(opscope_debug_info_push(key, value, &scope->guard) == OPSCOPE_OK);
    assert(strcmp(opscope_debug_info_get(key), value) == 0);
}

static void use_state(struct input *input)
{
    opscope_state **state = &states[take(input, SLOTS)];
    if (*state == NULL) {
        assert(opscope_state_capture(state) == OPSCOPE_OK);
    } else if (take(input, 2) || depth == DEPTH) {
        opscope_state_release(*state);
        *state = NULL;
    } else {
        struct scope *scope = &scopes[depth++];
        *scope = (struct scope){.outer = opscope_debug_info_current()};
        assert(opscope_state_enter(*state, &scope->previous) == OPSCOPE_OK);
    }
}

/* ---- the recorder ---------------------------------------------------------------------------- */

static char directory[64]; /* made by the recorder, removed after each input */

static void use_recorder(struct input *input)
{
    static const char *const keys[] = {"", "model_id", "model_id,tier", "a,b,c"};
    const opscope_recorder_options options = {.directory = directory,
                                              .label_keys = keys[take(input, 4)],
                                              .sampling_prob = take(input, 4) / 2.0,
                                              .window_ns = take(input, 2) * 100000u,
                                              .period_ns = 200000000};
    opscope_recorder_status status;
    switch (take(input, 7)) {
    case 0:
        (void)opscope_recorder_start(&options);
        break;
    case 1:
        (void)opscope_recorder_stop(true);
        break;
    case 2:
        (void)opscope_recorder_set_sampling(options.sampling_prob, options.window_ns,
                                            options.period_ns);
        break;
    case 3:
        (void)opscope_recorder_note("key", options.label_keys);
        break;
    case 4:
        (void)opscope_recorder_window_begin(take(input, 8));
        break;
    case 5:
        (void)opscope_recorder_window_end();
        break;
    default:
        opscope_recorder_read_status(&status);
        assert(status.folded_count == 0);
    }
}

/* ---- one input ------------------------------------------------------------------------------- */

static void start(void)
{
    static const char *const names[NAMES] = {"a", "b", "c", "d"};
    snprintf(directory, sizeof directory, "/tmp/opscope-fuzz-%d", (int)getpid());
    for (int i = 0; i < NAMES; i++) {
        assert(opscope_op_intern(names[i], "", (opscope_scope)i, (opscope_phase)i, &ops[i]) == 0);
    }
    opscope_seed(1);
}

static void end_all(void)
{
    while (depth > 0) {
        leave_scope();
    }
    for (int i = 0; i < SLOTS; i++) {
        close_range(&ranges[i], false);
        if (states[i] != NULL) {
            opscope_state_release(states[i]);
            states[i] = NULL;
        }
    }
    (void)opscope_recorder_stop(true);
    (void)rmdir(directory);
    opscope_clear_callbacks();
    (void)opscope_recording_set(true);
    assert(!opscope_has_callbacks()); /* refreshes the snapshot, so that removed callbacks are
                                         dropped */
    assert(alive_count == 0);
    assert(opscope_debug_info_current() == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, data + bytes};
    if (ops[0] == NULL) {
        start();
    }
    while (input.at < input.end) {
        switch (take(&input, 10)) {
        case 0:
            add_callback(&input);
            break;
        case 1:
            change_callback(&input);
            break;
        case 2:
        case 3:
            open_range(&input);
            break;
        case 4:
        case 5:
            close_range(&ranges[take(&input, SLOTS)], take(&input, 2));
            break;
        case 6:
            push_label(&input);
            break;
        case 7:
            leave_scope();
            break;
        case 8:
            use_state(&input);
            break;
        default:
            if (take(&input, 4)) {
                use_recorder(&input);
            } else {
                (void)opscope_recording_set(take(&input, 2));
            }
        }
    }
    end_all();
    return 0;
}
