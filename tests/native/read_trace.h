/* tests/native/read_trace.h -- takes a trace into a memfd and reads it as another process does:
 * from the file, with the layout of opscope/trace.h. It checks only what it relies on; not for
 * untrusted bytes. Needs _GNU_SOURCE. */
#ifndef OPSCOPE_TESTS_READ_TRACE_H
#define OPSCOPE_TESTS_READ_TRACE_H

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "opscope/trace.h"
#include "ranges.h"

static int trace_fd = -1;

static inline void make_trace_file(void)
{
    if (trace_fd >= 0) {
        close(trace_fd);
    }
    trace_fd = memfd_create("trace", MFD_CLOEXEC);
    CHECK(trace_fd >= 0);
}

static inline int start_trace_with(uint64_t bytes, uint64_t duration_ns, uint64_t flags)
{
    opscope_trace_options options = {
        .fd = trace_fd, .bytes = bytes, .duration_ns = duration_ns, .serial = 7, .flags = flags};
    return opscope_trace_start(&options);
}

static inline void start_trace(void)
{
    make_trace_file();
    CHECK_EQUAL(start_trace_with(8u << 20, 0, 0), OPSCOPE_OK);
}

struct trace {
    char *bytes;
    uint64_t size;
    const opscope_trace_header *header;
};

static inline struct trace trace_read(void)
{
    struct stat info;
    struct trace trace;
    CHECK_EQUAL(fstat(trace_fd, &info), 0);
    trace.size = (uint64_t)info.st_size;
    CHECK(trace.size >= OPSCOPE_TRACE_HEADER_BYTES);
    trace.bytes = aligned_alloc(64, trace.size);
    CHECK(trace.bytes != NULL);
    for (uint64_t done = 0; done < trace.size;) {
        ssize_t bytes = pread(trace_fd, trace.bytes + done, trace.size - done, (off_t)done);
        CHECK(bytes > 0);
        done += (uint64_t)bytes;
    }
    trace.header = (const void *)trace.bytes;
    CHECK(memcmp(trace.header->magic, "OPTRACE", 8) == 0);
    CHECK_EQUAL(trace.header->version, OPSCOPE_TRACE_VERSION);
    CHECK_EQUAL(trace.header->record_bytes, sizeof(opscope_trace_record));
    CHECK_EQUAL(trace.header->limit_bytes, trace.size);
    return trace;
}

static inline struct trace stop_and_read_trace(void)
{
    CHECK_EQUAL(opscope_trace_stop(), OPSCOPE_OK);
    struct trace trace = trace_read();
    CHECK_EQUAL(trace.header->state, OPSCOPE_TRACE_CLOSED);
    return trace;
}

static inline void trace_free(struct trace *trace)
{
    free(trace->bytes);
}

/* The block after `block` (NULL: the first), or NULL. */
static inline const opscope_trace_block *trace_block(const struct trace *trace,
                                                     const opscope_trace_block *block)
{
    const char *end = trace->bytes + OPSCOPE_TRACE_HEADER_BYTES + trace->header->claimed_bytes;
    const char *at = block != NULL ? (const char *)block + block->bytes
                                   : trace->bytes + OPSCOPE_TRACE_HEADER_BYTES;
    end = end < trace->bytes + trace->size ? end : trace->bytes + trace->size;
    while (at < end) {
        const opscope_trace_block *next = (const void *)at;
        if (next->bytes != 0) {
            CHECK(next->bytes % OPSCOPE_TRACE_BLOCK_UNIT == 0);
            CHECK(at + next->bytes <= trace->bytes + trace->size);
            return next;
        }
        at += OPSCOPE_TRACE_BLOCK_UNIT;
    }
    return NULL;
}

static inline const uint64_t *record_words(const opscope_trace_record *record)
{
    return (const uint64_t *)(const void *)(record + 1);
}

static inline const void *record_end(const opscope_trace_record *record)
{
    return record_words(record) + record->more;
}

static inline int64_t record_sequence_nr(const opscope_trace_record *record)
{
    return record->more >= 2 ? (int64_t)record_words(record)[0] : -1;
}

static inline uint64_t record_forward_thread_id(const opscope_trace_record *record)
{
    return record->more >= 2 ? record_words(record)[1] : 0;
}

/* The record after `record` (NULL: the first) of a block, or NULL. */
static inline const opscope_trace_record *trace_record(const opscope_trace_block *block,
                                                       const opscope_trace_record *record)
{
    const opscope_trace_record *next =
        record != NULL ? record_end(record) : (const void *)(block + 1);
    const char *end = (const char *)block + block->bytes;
    return (const char *)(next + 1) <= end && next->start_ticks != 0 ? next : NULL;
}

/* Iterates over all records: for (struct record_at at = {0}; next_record(&trace, &at);) */
struct record_at {
    const opscope_trace_block *block;
    const opscope_trace_record *record;
};

static inline bool next_record(const struct trace *trace, struct record_at *at)
{
    at->block = at->block == NULL ? trace_block(trace, NULL) : at->block;
    while (at->block != NULL) {
        at->record = trace_record(at->block, at->record);
        if (at->record != NULL) {
            CHECK((const char *)record_end(at->record) <=
                  (const char *)at->block + at->block->bytes);
            return true;
        }
        at->block = trace_block(trace, at->block);
    }
    return false;
}

static inline const char *record_text(const opscope_trace_record *record)
{
    return (const char *)(record + 1);
}

/* The trace's id of the operator with that name; 0: not named. */
static inline uint32_t trace_op(const struct trace *trace, const char *name)
{
    for (struct record_at at = {0}; next_record(trace, &at);) {
        if (at.record->kind == OPSCOPE_TRACE_NAME && strcmp(record_text(at.record), name) == 0) {
            return at.record->op;
        }
    }
    return 0;
}

/* The number of records of that kind and operator (0: any); *ended: the number with an end. */
static inline uint64_t trace_count(const struct trace *trace, int kind, uint32_t op,
                                   uint64_t *ended)
{
    uint64_t count = 0;
    *ended = 0;
    for (struct record_at at = {0}; next_record(trace, &at);) {
        if (at.record->kind == kind && (op == 0 || at.record->op == op)) {
            count++;
            *ended += at.record->end_ticks != 0;
        }
    }
    return count;
}

static inline uint64_t trace_ranges(const struct trace *trace, const char *name)
{
    uint64_t ended;
    uint32_t op = trace_op(trace, name);
    return op != 0 ? trace_count(trace, OPSCOPE_TRACE_RANGE, op, &ended) : 0;
}

/* The only range of that name. */
static inline const opscope_trace_record *trace_range(const struct trace *trace, const char *name)
{
    const opscope_trace_record *found = NULL;
    uint32_t op = trace_op(trace, name);
    for (struct record_at at = {0}; next_record(trace, &at);) {
        if (at.record->kind == OPSCOPE_TRACE_RANGE && at.record->op == op) {
            CHECK(found == NULL);
            found = at.record;
        }
    }
    CHECK(found != NULL);
    return found;
}

static inline uint64_t trace_lost(const struct trace *trace)
{
    uint64_t lost = trace->header->lost_count;
    for (const opscope_trace_block *block = NULL; (block = trace_block(trace, block)) != NULL;) {
        lost += block->lost_count;
    }
    return lost;
}

#endif
