/* opscope/trace.h -- a timeline of this process: every range of every thread, for some seconds.
 *
 * The idea: during a trace, one more global callback writes each range into a file (shared memory,
 * or memory without a name), in the order in which a thread's ranges start. Each thread appends to
 * blocks of its own. It writes a record at the start of a range and adds the end later. A reader
 * therefore sees at any moment, even after the process was killed, which ranges had ended and which
 * were open. Without a trace there is no callback, and no cost.
 *
 * A full file takes no more records: later ones are counted as lost, and the existing ones stay.
 * The file is self-contained: it has names and labels before the first range that refers to them.
 * native/TRACE.md says how to read it; this header is the only declaration of its layout.
 *
 * Threads: start and stop from any; recording without a lock. Forks: the child is not traced. A
 * trace with a duration ends by itself.
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
    OPSCOPE_TRACE_SHAPES = 1 /* records the shapes of input arrays; makes a range more expensive */
};

typedef struct opscope_trace_options {
    int fd;         /* an empty file, open for reading and writing; the caller keeps it */
    uint64_t bytes; /* maximum size; 0: the default. The trace uses less if memory is short: at most
                       half of the free memory */
    uint64_t duration_ns; /* 0: until it is stopped; at most one hour */
    uint64_t serial;      /* goes into the header: the request that this trace answers */
    uint64_t flags;       /* opscope_trace_flags */
} opscope_trace_options;

typedef struct opscope_trace_status {
    bool running;
    uint64_t serial; /* of the running trace, or of the last one */
    uint64_t bytes;  /* the maximum size of its file */
    uint64_t used_bytes;
} opscope_trace_status;

/* ERR_BUSY while another trace runs; ERR_INVALID for options out of range; ERR_NO_SPACE or
 * ERR_NO_MEMORY if the file cannot have a megabyte; ERR_IO. */
OPSCOPE_API int opscope_trace_start(const opscope_trace_options *options);
/* Ends the trace: the file is complete when this returns. ERR_NOT_FOUND if none runs. */
OPSCOPE_API int opscope_trace_stop(void);
OPSCOPE_API void opscope_trace_read_status(opscope_trace_status *out);
/* While on, only a trace sees this thread's ranges, no other callback: for code that measures the
 * cost of its own ranges. */
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
    OPSCOPE_TRACE_CLOSED = 2 /* nothing more is added; ranges still open stay open */
};

/* At offset 0. Written before `state` becomes live, unless a field's comment differs. */
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
    uint64_t ticks_per_second; /* measured once per process: accurate to 0.01 % */
    uint64_t anchor_ticks; /* counter and wall clock, read at the same moment: at the start ... */
    uint64_t anchor_unix_ns;
    uint64_t end_anchor_ticks; /* ... and at the end; 0 before `state` is closed */
    uint64_t end_anchor_unix_ns;
    uint64_t duration_ns;    /* as requested; 0: until it is stopped */
    uint64_t limit_bytes;    /* of the file */
    uint64_t claimed_bytes;  /* atomic, relaxed: bytes of assigned blocks, after the header */
    uint64_t lost_count;     /* atomic, relaxed: records of threads that never had a block */
    uint64_t record_cost_ps; /* total cost of one range in picoseconds, measured at the start */
    uint64_t inside_cost_ps; /* the part of it between the two times of its record */
} opscope_trace_header;

/* At the start of each block. Blocks follow the header and each other without gaps. Owner: the
 * thread. */
typedef struct opscope_trace_block {
    uint64_t bytes;       /* atomic, release: of the whole block; 0: a unit not in use (yet) */
    uint64_t thread_id;   /* Opscope's id, as in opscope_range_info.forward_thread_id */
    uint64_t system_id;   /* the operating system's: gettid(2) */
    uint64_t lost_count;  /* relaxed: records that the thread lost since it got this block */
    uint64_t taken_ticks; /* from here ... */
    uint64_t ready_ticks; /* ... to here the thread was acquiring this block */
    char thread_name[16]; /* when it got this block */
} opscope_trace_block;

/* The meaning of the words that follow a record. Texts are sequences of NUL-terminated strings,
 * padded with NULs. */
enum opscope_trace_kind {
    OPSCOPE_TRACE_RANGE = 1,  /* nothing; or its sequence number and forward thread id
                                 (opscope_range_info), then, with shapes, the number of words of
                                 shapes, and those: for each input its rank and sizes, or -1 */
    OPSCOPE_TRACE_NAME = 2,   /* the name of `op`, its overload; `flags`: its scope */
    OPSCOPE_TRACE_LABELS = 3, /* key and value of each label in force in this thread from here on */
    OPSCOPE_TRACE_FORK = 4,   /* the number of the forked task */
    OPSCOPE_TRACE_TASK = 5,   /* the number of the task that runs; 0: forked outside of a trace */
    OPSCOPE_TRACE_ALLOCATION = 6 /* bytes that the innermost range allocated; start equals end */
};

enum opscope_trace_record_flags {
    OPSCOPE_TRACE_FAILED = 1,
    OPSCOPE_TRACE_ASYNC = 2,    /* may end on another thread, and between others in any order */
    OPSCOPE_TRACE_BACKWARD = 4, /* of the scope BACKWARD_FUNCTION */
    OPSCOPE_TRACE_CUT = 8,      /* some of its shapes are missing */
    OPSCOPE_TRACE_LOST = 16     /* it has ended at an unknown time */
};

/* Records follow each other from byte 64 of a block, in order of their starts, each with its words.
 * Owner: the thread that started the range; for an async range, the thread that ends it writes the
 * end. */
typedef struct opscope_trace_record {
    uint64_t start_ticks; /* atomic, release, written last: 0 ends the block's contents */
    uint64_t end_ticks;   /* atomic, release: 0 while the range is open, and for one that was never
                             closed */
    uint32_t op;
    uint8_t kind;  /* opscope_trace_kind; a reader skips kinds it does not know */
    uint8_t phase; /* opscope_phase: the operator's own, not that of enclosing ranges */
    uint8_t flags; /* opscope_trace_record_flags */
    uint8_t more;  /* number of 8-byte words that follow and belong to the record */
} opscope_trace_record;

OPSCOPE_END_DECLS

#endif
