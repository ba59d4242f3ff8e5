/* trace/life.c -- the life cycle of a trace: start, stop, deadline, forks, and its cost.
 * trace/range.c records the ranges.
 *
 * The trace lock serializes starts and stops. A range that finds the deadline passed takes it
 * within a callback, and therefore only tries to.
 */
#define _GNU_SOURCE
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "opscope/segment.h"
#include "record/callback.h"
#include "record/debug_info.h"
#include "record/observer.h"
#include "record/range.h"
#include "recorder/control.h"
#include "segment/identity.h"
#include "segment/sandbox.h"

enum { OP_LIMIT = 65536, COST_RANGES = 64, COST_RECORDS = 8 * COST_RANGES, PATH_BYTES = 288 };

static const uint64_t SECOND_NS = 1000000000, DURATION_LIMIT_NS = 3600000000000;

uint32_t opscope__trace_is_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opscope__trace *current; /* lock */
static opscope_trace_status last;      /* lock: the status of the previous trace */
static uint64_t serial_count;          /* lock */
/* Lock: the callback that a forked child inherits. */
static opscope_handle inherited;

/* Also the callback's drop. */
void opscope__trace_release(void *user)
{
    struct opscope__trace *trace = user;
    /* All that the other owner did happens before the memory is freed. */
    if (opscope__drop_reference(&trace->reference_count) == 1) {
        opscope__trace_unmap(trace);
        free(trace->op_is_named);
        free(trace);
    }
}

/* ---- the cost of a range --------------------------------------------------------------------- */

struct costs {
    uint64_t record_ps;
    uint64_t inside_ps;
};

/* Traces ranges into memory of its own, which no reader sees. */
static struct costs measure_costs(uint64_t ticks_per_second)
{
    struct costs costs = {0, 0};
    struct opscope__thread *thread = opscope__thread_self();
    opscope_trace_record *records = calloc(COST_RECORDS, sizeof *records);
    struct opscope__trace scratch = {.serial = UINT64_MAX,
                                     .deadline_ticks = UINT64_MAX,
                                     .is_scratch = true,
                                     .op_is_named = calloc(OP_LIMIT + 1, 1)};
    if (thread != NULL && records != NULL && scratch.op_is_named != NULL) {
        const opscope_op *op = opscope_op_other();
        const opscope_callback spec = {
            .start = opscope__trace_range_start, .end = opscope__trace_range_end, .user = &scratch};
        uint64_t *first = (uint64_t *)(void *)records;
        uint64_t *end = (uint64_t *)(void *)(records + COST_RECORDS);
        struct opscope__trace_thread state = {
            .next = first, .limit = end, .end = end, .serial = scratch.serial};
        struct opscope__trace_thread *before = thread->trace;
        scratch.op_is_named[op->id] = 1;
        memset(records, 1, COST_RECORDS * sizeof *records); /* touched before the measurement */
        thread->trace = &state;
        uint64_t ticks = opscope__range_cost_ticks(&spec, op, COST_RANGES);
        thread->trace = before;
        uint64_t inside = 0, count = (uint64_t)(state.next - first) / OPSCOPE__TRACE_RECORD_WORDS;
        for (uint64_t i = 0; i < count; i++) {
            inside += records[i].end_ticks - records[i].start_ticks;
        }
        const double ps = 1e12 / (double)ticks_per_second;
        costs.record_ps = (uint64_t)((double)ticks / COST_RANGES * ps);
        costs.inside_ps = count != 0 ? (uint64_t)((double)inside / (double)count * ps) : 0;
        if (costs.inside_ps > costs.record_ps) {
            costs.inside_ps = costs.record_ps; /* an interrupt during the measurement */
        }
    }
    free(scratch.op_is_named);
    free(records);
    return costs;
}

/* ---- stop ---------------------------------------------------------------------------------------- */

static opscope_trace_status status_of(const struct opscope__trace *trace, bool is_running)
{
    return (opscope_trace_status){
        .running = is_running,
        .serial = trace->request_serial,
        .bytes = trace->limit_bytes,
        .used_bytes = OPSCOPE_TRACE_HEADER_BYTES + opscope__load_relaxed(&trace->claimed_bytes)};
}

/* With the lock held. */
static void stop(void)
{
    struct opscope__trace *trace = current;
    opscope_trace_header *header = opscope__trace_header(trace);
    opscope__clock clock;
    current = NULL;
    opscope__store_release(&opscope__trace_is_on, 0);
    (void)opscope_remove_callback(trace->handle, false);
    opscope__clock_start(&clock);
    header->end_anchor_ticks = clock.anchor_ticks;
    header->end_anchor_unix_ns = clock.anchor_unix_ns;
    /* Partner: the reader of the file, which then sees all that was recorded before. */
    opscope__store_release(&header->state, OPSCOPE_TRACE_CLOSED);
    last = status_of(trace, false);
    opscope__trace_let_go(trace);
    opscope__trace_release(trace);
}

static int stop_one(bool only_requested)
{
    int status = OPSCOPE_ERR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    if (current != NULL && (current->is_requested || !only_requested)) {
        stop();
        status = OPSCOPE_OK;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int opscope_trace_stop(void)
{
    return stop_one(false);
}

static void expire(const struct opscope__trace *trace)
{
    if (pthread_mutex_trylock(&lock) == 0) {
        if (current == trace) {
            stop();
        }
        pthread_mutex_unlock(&lock);
    }
}

static void poll(void)
{
    if (!opscope__load_acquire(&opscope__trace_is_on)) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (current != NULL && opscope__ticks() >= current->deadline_ticks) {
        stop();
    }
    pthread_mutex_unlock(&lock);
}

/* ---- start --------------------------------------------------------------------------------------- */

static const struct opscope__leaf leaf = {.sees_private_threads = true};

static bool is_valid(const opscope_trace_options *options)
{
    return options->fd >= 0 && (options->flags & ~(uint64_t)OPSCOPE_TRACE_SHAPES) == 0 &&
           options->duration_ns <= DURATION_LIMIT_NS &&
           (options->bytes == 0 || (options->bytes >= OPSCOPE_TRACE_LEAST_BYTES &&
                                    options->bytes <= OPSCOPE_TRACE_MOST_BYTES));
}

static void fill_header(struct opscope__trace *trace, const opscope_trace_options *options)
{
    opscope_trace_header *header = opscope__trace_header(trace);
    opscope__identity identity;
    opscope__clock clock;
    opscope__identity_read(&identity);
    opscope__clock_start(&clock);
    const struct costs costs = measure_costs(clock.ticks_per_second);
    memcpy(header->magic, "OPTRACE", sizeof header->magic);
    header->version = OPSCOPE_TRACE_VERSION;
    header->header_bytes = OPSCOPE_TRACE_HEADER_BYTES;
    header->block_unit = OPSCOPE_TRACE_BLOCK_UNIT;
    header->record_bytes = sizeof(opscope_trace_record);
    header->flags = (uint32_t)options->flags;
    header->serial = options->serial;
    memcpy(header->boot_id, identity.boot_id, sizeof header->boot_id);
    header->pid_namespace = identity.pid_namespace;
    header->pid = identity.pid;
    header->process_start = identity.process_start;
    header->uid = identity.uid;
    header->clock_source = clock.source;
    header->ticks_per_second = clock.ticks_per_second;
    header->duration_ns = options->duration_ns;
    header->limit_bytes = trace->limit_bytes;
    header->record_cost_ps = costs.record_ps;
    header->inside_cost_ps = costs.inside_ps;
    opscope__clock_start(&clock); /* again: the measurement took a while */
    header->anchor_ticks = clock.anchor_ticks;
    header->anchor_unix_ns = clock.anchor_unix_ns;
    trace->deadline_ticks =
        options->duration_ns == 0
            ? UINT64_MAX
            : clock.anchor_ticks + (uint64_t)((unsigned __int128)options->duration_ns *
                                              clock.ticks_per_second / SECOND_NS);
    /* Partner: the reader of the file, which ignores the header until then. */
    opscope__store_release(&header->state, OPSCOPE_TRACE_LIVE);
}

/* With the lock held. */
static int start(const opscope_trace_options *options)
{
    struct opscope__trace *trace = calloc(1, sizeof *trace);
    if (trace == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    trace->reference_count = 2;
    trace->expire = expire;
    trace->request_serial = options->serial;
    trace->op_is_named = calloc(OP_LIMIT + 1, 1);
    int status =
        trace->op_is_named != NULL
            ? opscope__trace_map(trace, options->fd,
                                 options->bytes != 0 ? options->bytes : OPSCOPE_TRACE_DEFAULT_BYTES)
            : OPSCOPE_ERR_NO_MEMORY;
    if (status == OPSCOPE_OK) {
        const bool has_shapes = (options->flags & OPSCOPE_TRACE_SHAPES) != 0;
        const opscope_callback callback = {
            .start = has_shapes ? opscope__trace_range_start_shapes : opscope__trace_range_start,
            .end = opscope__trace_range_end,
            .user = trace,
            .drop = opscope__trace_release,
            .sampling_prob = 1.0,
            .needs_inputs = has_shapes};
        trace->serial = ++serial_count;
        fill_header(trace, options);
        status = opscope__add_global_leaf(&callback, &leaf, &trace->handle);
    }
    if (status != OPSCOPE_OK) {
        trace->reference_count = 1;
        opscope__trace_release(trace);
        return status;
    }
    current = trace;
    opscope__store_release(&opscope__trace_is_on, 1);
    return OPSCOPE_OK;
}

static int start_one(const opscope_trace_options *options, bool is_requested)
{
    if (!is_valid(options)) {
        return OPSCOPE_ERR_INVALID;
    }
    opscope__process_start();
    poll();
    pthread_mutex_lock(&lock);
    int status = current == NULL ? start(options) : OPSCOPE_ERR_BUSY;
    if (status == OPSCOPE_OK) {
        current->is_requested = is_requested;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int opscope_trace_start(const opscope_trace_options *options)
{
    return start_one(options, false);
}

void opscope_trace_alone(bool on)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread != NULL) {
        thread->is_private = on;
        opscope__hot_invalidate();
    }
}

void opscope_trace_read_status(opscope_trace_status *out)
{
    pthread_mutex_lock(&lock);
    *out = current != NULL ? status_of(current, true) : last;
    pthread_mutex_unlock(&lock);
}

/* ---- requests from other processes ----------------------------------------------------------- */

static int start_in(int directory_fd, const char *name, opscope_trace_options *options)
{
    (void)unlinkat(directory_fd, name, 0); /* a file that was never fetched */
    options->fd =
        openat(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (options->fd < 0) {
        return errno == ENOSPC || errno == EDQUOT ? OPSCOPE_ERR_NO_SPACE : OPSCOPE_ERR_IO;
    }
    int status = is_valid(options) ? opscope__trace_share(directory_fd, options->fd, options->bytes,
                                                          &options->bytes)
                                   : OPSCOPE_ERR_INVALID;
    if (status == OPSCOPE_OK) {
        status = start_one(options, true);
    }
    if (status != OPSCOPE_OK) {
        (void)unlinkat(directory_fd, name, 0);
    }
    close(options->fd);
    return status;
}

static int start_for_other(const char *segment_path, uint64_t serial, uint64_t duration_ns,
                           uint64_t bytes, uint64_t flags)
{
    char path[PATH_BYTES];
    if (duration_ns == 0) {
        return stop_one(true); /* the requester ends the trace early */
    }
    if (opscope__sandbox_is_new()) {
        return OPSCOPE_ERR_PERMISSION;
    }
    int length = snprintf(path, sizeof path, "%s.trace", segment_path);
    if (length < 0 || (size_t)length >= sizeof path) {
        return OPSCOPE_ERR_INVALID;
    }
    char *name = strrchr(path, '/') + 1; /* the path is absolute */
    name[-1] = '\0';
    int directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory_fd < 0) {
        return OPSCOPE_ERR_IO;
    }
    opscope_trace_options options = {.bytes = bytes != 0 ? bytes : OPSCOPE_TRACE_DEFAULT_BYTES,
                                     .duration_ns = duration_ns,
                                     .serial = serial,
                                     .flags = flags};
    int status = start_in(directory_fd, name, &options);
    close(directory_fd);
    return status;
}

/* ---- forks --------------------------------------------------------------------------------------- */

static void lock_for_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* The file belongs to the parent: the child must not write to it. */
static void fork_child(void)
{
    struct opscope__trace *trace = current;
    if (trace != NULL) {
        opscope__trace_let_go(trace);
        inherited = trace->handle;
        current = NULL;
        opscope__store_release(&opscope__trace_is_on, 0);
        last = (opscope_trace_status){0};
    }
}

static void fork_done(bool is_child)
{
    if (is_child && inherited != 0) {
        (void)opscope_remove_callback(inherited, false);
        inherited = 0;
    }
}

/* ---- observers of the layers below ----------------------------------------------------------- */

static void labels_changed(const opscope_debug_info *chain)
{
    (void)chain;
    struct opscope__trace_thread *state = opscope__hot.thread->trace;
    if (state != NULL) {
        state->labels_are_stale = true;
        state->limit = state->next;
    }
}

static void free_thread(struct opscope__thread *thread)
{
    free(thread->trace);
}

static const struct opscope__observer observer = {.thread_freed = free_thread,
                                                  .fork_prepare = lock_for_fork,
                                                  .fork_child = fork_child,
                                                  .fork_unlock = unlock_after_fork,
                                                  .fork_done = fork_done};
static const struct opscope__debug_info_listener listener = {.changed = labels_changed};
static const struct opscope__trace_control control = {start_for_other, poll};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_TRACE, &observer);
    opscope__debug_info_listen(&listener);
    opscope__trace_control = &control;
}
