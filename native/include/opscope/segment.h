/* opscope/segment.h -- the shared-memory file of one observed process, byte for byte. Version 1.
 *
 * The idea: a header of one page, then chunks of equal size in the order they came into use. The
 * process only appends; it never moves or reuses an entry, so a reader may read at any moment. All
 * integers are little-endian. native/SEGMENT.md says how to read the file; this header is the only
 * declaration of its layout.
 *
 * Who writes: the process named in the header. One thread writes each table of cells; everything
 * else is written under the recorder's lock. A reader trusts nothing: it checks every number
 * against the file's size.
 */
#ifndef OPSCOPE_SEGMENT_H
#define OPSCOPE_SEGMENT_H

#include <stdint.h>

#include "opscope/export.h"

OPSCOPE_BEGIN_DECLS

enum opscope_segment_constants {
    OPSCOPE_SEGMENT_VERSION = 1,
    OPSCOPE_SEGMENT_HEADER_BYTES = 4096,
    OPSCOPE_SEGMENT_CHUNK_BYTES = 16384,
    OPSCOPE_SEGMENT_CHUNK_LIMIT = 1023, /* with the header, just under 16 MiB */
    OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES = 64,
    OPSCOPE_SEGMENT_OCTAVES = 64,
    OPSCOPE_SEGMENT_BUCKETS_PER_OCTAVE = 8, /* OpenTelemetry's scale 3, Prometheus's schema 3 */
    OPSCOPE_SEGMENT_SECOND_LOG2 = 40,       /* histogram durations are in units of 2^-40 s */
    OPSCOPE_SEGMENT_WEIGHT_LOG2 = 16,       /* weights are in units of 2^-16 */
    OPSCOPE_SEGMENT_CONTROL_OFFSET = 1024,  /* of the control block and of its answer: */
    OPSCOPE_SEGMENT_ANSWER_OFFSET = 1536    /* both lie in the header's page */
};

enum opscope_clock_source {
    OPSCOPE_CLOCK_TSC = 1,      /* invariant time-stamp counter of x86 */
    OPSCOPE_CLOCK_CNTVCT = 2,   /* virtual counter of ARM */
    OPSCOPE_CLOCK_MONOTONIC = 3 /* clock_gettime(CLOCK_MONOTONIC), in nanoseconds */
};

enum opscope_segment_state {
    OPSCOPE_SEGMENT_LIVE = 1,
    OPSCOPE_SEGMENT_CLOSED = 2 /* the recorder stopped; it adds nothing more */
};

/* How a reader finds out whether a process can still write into the file. */
enum opscope_segment_liveness {
    OPSCOPE_LIVENESS_PID = 0, /* by boot id, pid namespace, pid and start time */
    OPSCOPE_LIVENESS_LOCK = 1 /* by an exclusive flock(2), held as long as the mapping exists */
};

/* At offset 0. Fields are written once, before `state` becomes live, unless their comment
 * differs. */
typedef struct opscope_segment_header {
    char magic[8]; /* "OPSCOPE" and a NUL */
    uint32_t version;
    uint32_t header_bytes;
    uint32_t chunk_bytes;
    uint32_t chunk_limit;
    uint32_t chunk_count; /* atomic, release: chunks in use */
    uint32_t state;       /* atomic, release: opscope_segment_state */
    /* identity: the same process has all of these equal */
    uint8_t boot_id[16];
    uint8_t random_id[16];
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid; 0 unknown */
    uint64_t pid;           /* as seen in that namespace */
    uint64_t process_start; /* field 22 of /proc/self/stat, in clock ticks since boot */
    uint64_t uid;           /* effective */
    /* clock */
    uint64_t clock_source; /* opscope_clock_source */
    uint64_t ticks_per_second;
    uint64_t anchor_ticks; /* counter and wall clock, read at the same moment */
    uint64_t anchor_unix_ns;
    uint64_t created_unix_ns; /* when counting started: the start time of the counters */
    /* current sampling; atomic, relaxed */
    uint64_t window_ns; /* 0: by probability */
    uint64_t period_ns;
    uint64_t sampling_prob_ppt; /* 1e12 times the probability */
    /* health; atomic, relaxed; these only grow */
    uint64_t dropped_count; /* ranges that are in no cell: there was no room, or they did not
                               end inside the range around them on their thread */
    uint64_t window_count;
    uint64_t window_on_ns; /* time inside windows, and time since windows were turned on */
    uint64_t window_wall_ns;
    uint64_t callback_error_count;
    uint64_t record_cost_ps; /* cost of recording a range in picoseconds, measured at the start;
                                operators with an extra_cost_ps cost more */
    uint64_t folded_count;   /* ranges counted under operator "other", because there was no room */
    uint64_t liveness;       /* opscope_segment_liveness; written once */
    /* the overhead governor (recorder/governor.h); atomic, relaxed */
    uint64_t
        overhead_budget_ppb;   /* maximum share of CPU time for recording, times 1e9; 0: no limit */
    uint64_t overhead_ppb;     /* recent overhead, the same share */
    uint64_t adaptation_count; /* how often the governor changed the sampling */
    uint64_t is_disabled;      /* 1: the control block turned recording off; atomic, relaxed */
    uint64_t cost_factor_ppm;  /* cost of a range within this program, as a multiple of the cost
                                  measured at the start, times 1e6; 0: 1. Atomic, relaxed */
    uint64_t uncounted_cost_ps; /* cost of recording ranges that are in no cell: those at the
                                   beginning and after the end of windows. Atomic, relaxed */
    uint64_t discarded_count;   /* number of ended processes' segments that this process removed,
                                   uncounted, to make room for its own; written once */
    uint64_t window_thread_ns;  /* CPU time of the thread that opens windows. Atomic, relaxed */
    uint64_t window_end_ticks;  /* counter at the end of the last window; 0: none yet. Atomic,
                                   relaxed */
    uint64_t main_table; /* number + 1 of the main thread's table, which no other thread uses; 0: it
                            has none, or its off-CPU time is not known. Atomic, relaxed */
} opscope_segment_header;

/* The settings that a control block gives; the others keep their configured values. */
enum opscope_control_given {
    OPSCOPE_CONTROL_ENABLED = 1,
    OPSCOPE_CONTROL_SAMPLING = 2, /* by probability; excludes OPSCOPE_CONTROL_WINDOWS */
    OPSCOPE_CONTROL_WINDOWS = 4,
    OPSCOPE_CONTROL_MAX_OVERHEAD = 8,
    OPSCOPE_CONTROL_LABELS = 16,
    OPSCOPE_CONTROL_ALL = 31,
    OPSCOPE_CONTROL_ALONE = 32 /* cancels what the process inherited from its parent or from the
                                  directory's settings file */
};

/* At OPSCOPE_SEGMENT_CONTROL_OFFSET: settings that a controller requests while the process runs.
 * Zero until the first request. Owner: the controller, another process, which holds an fcntl lock
 * on these bytes while it writes. The process reads the block within a second and trusts none of it
 * (recorder/control.h). */
typedef struct opscope_control {
    uint64_t serial;            /* odd during a write; increases with each change of any field */
    uint64_t settings_serial;   /* increases with each change of the settings, the fields up to
                                   label_keys */
    uint64_t given;             /* bits: opscope_control_given */
    uint64_t enabled;           /* 0 or 1 */
    uint64_t sampling_prob_ppt; /* 1e12 times the probability */
    uint64_t window_ns;         /* 0: window and period as configured */
    uint64_t period_ns;
    uint64_t max_overhead_ppb; /* maximum share of CPU time, times 1e9; 0: no limit */
    char label_keys[160];      /* at most two, separated by commas, NUL-terminated */
    uint64_t trace_serial;     /* increases with each request for a trace (trace/trace.h) */
    uint64_t trace_duration_ns;
    uint64_t trace_bytes;
    uint64_t trace_flags;
} opscope_control;

/* At OPSCOPE_SEGMENT_ANSWER_OFFSET: the answer to the control block. Owner: the process. */
typedef struct opscope_control_answer {
    uint64_t settings_serial; /* atomic, release: of the settings read last */
    uint64_t settings_status; /* 0: the settings are in force; else minus an opscope_status: none
                                 were applied */
    uint64_t refused;         /* bits: the refused settings */
    uint64_t trace_serial;    /* atomic, release: of the request read last */
    uint64_t trace_status;    /* 0, or minus an opscope_status */
} opscope_control_answer;

enum opscope_chunk_kind {
    OPSCOPE_CHUNK_DICTIONARY = 1,
    OPSCOPE_CHUNK_CELLS = 2,
    OPSCOPE_CHUNK_LINES = 3,
    OPSCOPE_CHUNK_METRICS = 4, /* values of 8 bytes, indexed by the metric's number */
    OPSCOPE_CHUNK_EXEMPLARS = 5,
    OPSCOPE_CHUNK_VARIANCES = 6,
    OPSCOPE_CHUNK_OFF_CPU = 7
};

/* At the start of each chunk, padded to 64 bytes. */
typedef struct opscope_chunk {
    uint32_t kind;  /* opscope_chunk_kind; a reader skips kinds it does not know */
    uint32_t table; /* cells and lines: the table they belong to */
    uint32_t first; /* cells and lines: number in the table of the first one here. The numbers of
                       lines have gaps: a chunk's first is a multiple of 256 */
    uint32_t used;  /* atomic, release: bytes of entries, or count of cells, lines or values */
} opscope_chunk;

enum opscope_entry_kind {
    OPSCOPE_ENTRY_OP = 1,     /* id: operator; name NUL overload NUL; `detail`: its scope */
    OPSCOPE_ENTRY_LABELS = 2, /* id: label set; key NUL value NUL for each label */
    OPSCOPE_ENTRY_USAGE = 3,  /* key NUL: an API this process used */
    OPSCOPE_ENTRY_NOTE = 4, /* key NUL value NUL: a fact about the process; the last one is valid */
    OPSCOPE_ENTRY_METRIC = 5 /* id: metric; name NUL label NUL; `detail`: its kind */
};

/* How to merge the values of several processes: counters add up, including those of ended
 * processes; gauges add up over live processes; peaks give the largest value of live processes. */
typedef enum opscope_metric_kind {
    OPSCOPE_METRIC_COUNTER = 1,
    OPSCOPE_METRIC_GAUGE = 2,
    OPSCOPE_METRIC_PEAK = 3
} opscope_metric_kind;

/* In a dictionary chunk, one after another, each followed by its text, padded to 8 bytes. */
typedef struct opscope_entry {
    uint16_t kind; /* opscope_entry_kind; a reader skips kinds it does not know */
    uint16_t detail;
    uint32_t id;
    uint32_t bytes;         /* of the text that follows, without the padding */
    uint32_t extra_cost_ps; /* of an operator: the cost of recording a range of it beyond
                               record_cost_ps */
} opscope_entry;

/* Ranges of one operator, phase and label set, in one table. Owner: the table's thread; all fields
 * only grow, each with a relaxed store. A cell is visible once the chunk's `used` covers it. */
typedef struct opscope_cell {
    uint64_t key;             /* operator id | phase << 32 | label set << 40 */
    uint64_t sample_count;    /* ranges recorded */
    uint64_t weight;          /* sum of their weights: estimates the number of calls */
    uint64_t whole_ticks;     /* the part of total_ticks from ranges with known self time */
    uint64_t total_ticks;     /* sum of weight times duration */
    uint64_t self_ticks;      /* sum of weight times self time, over the same ranges */
    uint64_t error_weight;    /* sum of the weights of ranges that failed */
    uint64_t bytes;           /* weighted bytes allocated, where known */
    uint16_t octave_line[64]; /* number + 1 of the octave's line in the table; 0: none yet */
} opscope_cell;

/* Eight buckets of a histogram: one octave. Owner and stores as in the cell. */
typedef struct opscope_line {
    uint64_t weight[8];
} opscope_line;

/* A slow range, and the trace that contains it. Owner: the table's thread, which writes them as a
 * ring, so a reader may find one half written. An exemplar is whole only if its `check` is correct
 * over the words before it: check = (check ^ word) * FACTOR modulo 2^64, from SEED. */
typedef struct opscope_exemplar {
    uint64_t key;         /* as in a cell */
    uint64_t ticks;       /* duration */
    uint64_t end_ticks;   /* approximate end time */
    uint8_t trace_id[16]; /* as in W3C's trace context */
    uint8_t span_id[8];
    uint64_t reserved;
    uint64_t check;
} opscope_exemplar;

/* The uncertainty of the estimates for one key, over all tables of the process. Windows sample; as
 * each window closes, the squared deviations of its contributions are added here. A key without an
 * entry was recorded by probability or always: the variance of its calls is then weight^2 /
 * sample_count - weight. Operator 0 has the sums over all operators of a phase, without labels.
 * Owner: the window thread, with relaxed stores, as a window closes. `window_count` and
 * `calls_squared` only grow. A variance falls by what becomes known: recorder/variance.h. The
 * variance of what came between two readings is the difference without the parts `..._owed`, plus
 * these parts of both: what was owed at the first may have come since, and what is owed at the
 * second is missing. The doubles are IEEE 754, little-endian. */
typedef struct opscope_variance {
    uint64_t key;          /* as in a cell */
    uint64_t window_count; /* windows with a range of this key */
    double calls;          /* variance of the sum of weights, weights as plain numbers */
    double total_ticks;    /* variance of total_ticks, ticks squared */
    double self_ticks;     /* variance of the self time, ticks squared */
    double calls_squared;  /* sum over the windows of the squares of their weights' sums */
    double calls_owed;     /* the part of `calls` that may fall: for work that no window represents
                              yet, and as long as windows are few */
    double self_owed;      /* the same part of `self_ticks` */
} opscope_variance;

/* The part of a key's estimates in which the main thread had no processor within long ranges: stops
 * by the kernel, or waiting (recorder/off_cpu.h). For all keys with an opscope_variance, while the
 * header has a main table. Owner and stores as there; ticks and count only grow.
 *
 * The self time of an outer range is its total_ticks, without the outer ranges directly inside and
 * the windows' estimates for the others. Its entry is about these estimates instead. */
typedef struct opscope_off_cpu {
    uint64_t key;
    uint64_t count;     /* of recorded ranges with such self time; 0 of an outer range */
    double self_ticks;  /* of the self time; of an outer range, of the estimates inside */
    double total_ticks; /* of the cell's total_ticks; of an outer range, the estimates inside */
    double exact_ticks; /* of an outer range: of outer ones directly inside; else 0 */
    double variance; /* of the self time without self_ticks, ticks squared; 0 of an outer range */
    double owed;     /* the part of `variance` that may fall */
} opscope_off_cpu;

#define OPSCOPE_EXEMPLAR_SEED 0x6f7073636f706521
#define OPSCOPE_EXEMPLAR_FACTOR 0x9e3779b97f4a7c15

OPSCOPE_END_DECLS

#endif
