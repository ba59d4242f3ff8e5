/* opscope/trace.h -- a timeline of this process: every range of every thread, for some seconds.
 *
 * The idea: while a trace is taken, one more global callback writes each range into a file (shared
 * memory, or memory without a name), in the order in which a thread's ranges start. Each thread
 * appends to blocks of its own; a record is written at the start of its range and gets its end
 * later, so whoever reads sees at any moment, and after the process was killed, what had ended and
 * what was open. No trace: no callback, and nothing anywhere to pay for.
 *
 * A full file takes no more: later records are counted as lost, what is there stays. The file says
 * everything by itself: names and labels stand in it before the first range that has them.
 * native/TRACE.md tells how to read it; this file is the only place where the layout is declared.
 *
 * Threads: start and stop from any; recording without a lock. Forks: the child is not traced. A
 * trace that has a duration ends by itself.
 *
 *     int fd = memfd_create("trace", MFD_CLOEXEC);
 *     opscope_trace_options options = {.fd = fd, .bytes = 64u << 20};
 *     opscope_trace_start(&options);
 *     work();
 *     opscope_trace_stop();
 */
#ifndef OPSCOPE_TRACE_H
#define OPSCOPE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

/* ---- taking one ------------------------------------------------------------------------------ */

enum opscope_trace_limits {
    OPSCOPE_TRACE_LEAST_BYTES = 1048576,
    OPSCOPE_TRACE_MOST_BYTES = 1073741824,
    OPSCOPE_TRACE_DEFAULT_BYTES = 67108864
};

/* Bits of opscope_trace_options.flags, and of trace_flags in a segment's control block. */
enum opscope_trace_flags {
    OPSCOPE_TRACE_SHAPES = 1 /* of the arrays that a range takes; makes a range dearer */
};

typedef struct opscope_trace_options {
    int fd;               /* an empty file, open for reading and writing; stays the caller's */
    uint64_t bytes;       /* at most so large; 0: the default. Less where memory is short: no more
                             than half of what is free */
    uint64_t duration_ns; /* 0: until it is stopped; at most an hour */
    uint64_t serial;      /* goes into the header: which wish this answers */
    uint64_t flags;       /* opscope_trace_flags */
} opscope_trace_options;

typedef struct opscope_trace_status {
    bool running;
    uint64_t serial; /* of the trace that runs, or of the last one */
    uint64_t bytes;  /* the size its file may have */
    uint64_t used_bytes;
} opscope_trace_status;

/* ERR_BUSY while another trace is taken; ERR_INVALID for options out of range; ERR_NO_SPACE or
 * ERR_NO_MEMORY where the file cannot have a megabyte; ERR_IO. */
OPSCOPE_API int opscope_trace_start(const opscope_trace_options *options);
/* Ends it: the file is complete when this returns. ERR_NOT_FOUND where none runs. */
OPSCOPE_API int opscope_trace_stop(void);
OPSCOPE_API void opscope_trace_read_status(opscope_trace_status *out);
/* While on, this thread's ranges are seen by a trace and by no other callback: for who runs some to
 * measure what they cost. */
OPSCOPE_API void opscope_trace_alone(bool on);

/* ---- the file, version 1: all integers little-endian --------------------------------------------- */

enum opscope_trace_constants {
    OPSCOPE_TRACE_VERSION = 1,
    OPSCOPE_TRACE_HEADER_BYTES = 4096,
    OPSCOPE_TRACE_BLOCK_UNIT = 16384, /* blocks are multiples of it */
    OPSCOPE_TRACE_BLOCK_LIMIT = 262144
};

enum opscope_trace_state {
    OPSCOPE_TRACE_LIVE = 1,
    OPSCOPE_TRACE_CLOSED = 2 /* nothing is added any more; ranges still open stay so */
};

/* At offset 0. Written before `state` becomes live, unless it says otherwise. */
typedef struct opscope_trace_header {
    char magic[8]; /* "OPTRACE" and a NUL */
    uint32_t version;
    uint32_t header_bytes;
    uint32_t block_unit;
    uint32_t record_bytes;
    uint32_t state; /* atomic, release: opscope_trace_state */
    uint32_t flags; /* opscope_trace_flags */
    uint64_t serial;
    uint8_t boot_id[16]; /* the process, as in a segment's header */
    uint64_t pid_namespace;
    uint64_t pid;
    uint64_t process_start;
    uint64_t uid;
    uint64_t clock_source;     /* opscope_clock_source */
    uint64_t ticks_per_second; /* measured once in a process: good to 0.01 % */
    uint64_t anchor_ticks;     /* counter and wall clock, read together: at the start ... */
    uint64_t anchor_unix_ns;
    uint64_t end_anchor_ticks; /* ... and at the end; 0 before `state` is closed */
    uint64_t end_anchor_unix_ns;
    uint64_t duration_ns;   /* as asked for; 0: until it is stopped */
    uint64_t limit_bytes;   /* of the file */
    uint64_t claimed_bytes; /* atomic, relaxed: of blocks given out, after the header */
    uint64_t lost_count;    /* atomic, relaxed: records of threads that never had a block */
    uint64_t
        record_cost_ps; /* what one range costs, picoseconds, measured at the start: all of it */
    uint64_t inside_cost_ps; /* the part of it between the two times that are taken */
} opscope_trace_header;

/* At the start of each block: blocks follow the header, and one another, without gaps. Owner: the
 * thread. */
typedef struct opscope_trace_block {
    uint64_t bytes;       /* atomic, release: of the whole block; 0: a unit not (yet) in use */
    uint64_t thread_id;   /* ours, as in opscope_range_info.forward_thread_id */
    uint64_t system_id;   /* the operating system's: gettid(2) */
    uint64_t lost_count;  /* relaxed: records of the thread lost since it has this block */
    uint64_t taken_ticks; /* from here ... */
    uint64_t ready_ticks; /* ... to here the thread was busy with getting this block */
    char thread_name[16]; /* when it got this block */
} opscope_trace_block;

/* What the words say that follow a record. Texts are rows of NUL-terminated strings, padded with
 * NULs. */
enum opscope_trace_kind {
    OPSCOPE_TRACE_RANGE =
        1, /* nothing; or its sequence number and forward thread id (opscope_range_info),
              then nothing, or where shapes were asked for the number of words of
              shapes, and those: for each input its rank and sizes, or -1 */
    OPSCOPE_TRACE_NAME = 2, /* the name of `op`, its overload; `flags`: its scope */
    OPSCOPE_TRACE_LABELS =
        3,                  /* key and value of each label that holds from here on in this thread */
    OPSCOPE_TRACE_FORK = 4, /* the number of the task that was forked */
    OPSCOPE_TRACE_TASK =
        5, /* the number of the task that runs; 0: forked when no trace was taken */
    OPSCOPE_TRACE_ALLOCATION = 6 /* bytes that the innermost range allocated; start is end */
};

enum opscope_trace_record_flags {
    OPSCOPE_TRACE_FAILED = 1,
    OPSCOPE_TRACE_ASYNC = 2,    /* may end on another thread, and between others in any order */
    OPSCOPE_TRACE_BACKWARD = 4, /* of the scope BACKWARD_FUNCTION */
    OPSCOPE_TRACE_CUT = 8,      /* not all of its shapes are here */
    OPSCOPE_TRACE_LOST = 16     /* it has ended, nobody knows when */
};

/* One after another from byte 64 of a block, in order of their starts, each followed by its words.
 * Owner: the thread that started it; the end of an async range is written by the thread that ends
 * it. */
typedef struct opscope_trace_record {
    uint64_t start_ticks; /* atomic, release, written last: 0 is the end of what the block holds */
    uint64_t end_ticks;   /* atomic, release: 0 while open, and for a range that was never closed */
    uint32_t op;
    uint8_t kind;  /* opscope_trace_kind; a reader skips kinds it does not know */
    uint8_t phase; /* opscope_phase: the operator's own, not of ranges around it */
    uint8_t flags; /* opscope_trace_record_flags */
    uint8_t more;  /* words of 8 bytes that follow and belong to it */
} opscope_trace_record;

OPSCOPE_END_DECLS

#endif
