/* opscope/segment.h -- the shared-memory file of one observed process, byte for byte. Version 1.
 *
 * The idea: a header of one page, then chunks of equal size in the order they came into use. The
 * process appends; nothing moves and nothing is reused, so a reader may look at any moment. All
 * integers are little-endian. native/SEGMENT.md says how to read it; this file is the only place
 * where the layout is declared.
 *
 * Who writes: the process named in the header, one thread per table of cells, everything else under
 * the recorder's lock. A reader trusts nothing: it checks every number against the file's size.
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
    OPSCOPE_SEGMENT_CHUNK_LIMIT = 1023, /* with the header just under 16 MiB */
    OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES = 64,
    OPSCOPE_SEGMENT_OCTAVES = 64,
    OPSCOPE_SEGMENT_BUCKETS_PER_OCTAVE = 8, /* OpenTelemetry's scale 3, Prometheus's schema 3 */
    OPSCOPE_SEGMENT_SECOND_LOG2 = 40,       /* histogram durations are in units of 2^-40 s */
    OPSCOPE_SEGMENT_WEIGHT_LOG2 = 16,       /* weights are in units of 2^-16 */
    OPSCOPE_SEGMENT_CONTROL_OFFSET = 1024,  /* of the control block and of the answer to it: */
    OPSCOPE_SEGMENT_ANSWER_OFFSET = 1536    /* in the header's page */
};

enum opscope_clock_source {
    OPSCOPE_CLOCK_TSC = 1,      /* invariant time-stamp counter of x86 */
    OPSCOPE_CLOCK_CNTVCT = 2,   /* virtual counter of ARM */
    OPSCOPE_CLOCK_MONOTONIC = 3 /* clock_gettime(CLOCK_MONOTONIC), in nanoseconds */
};

enum opscope_segment_state {
    OPSCOPE_SEGMENT_LIVE = 1,
    OPSCOPE_SEGMENT_CLOSED = 2 /* the recorder stopped; nothing will be added */
};

/* How a reader tells whether anybody can still write into the file. */
enum opscope_segment_liveness {
    OPSCOPE_LIVENESS_PID = 0, /* by boot id, pid namespace, pid and start time */
    OPSCOPE_LIVENESS_LOCK = 1 /* by the exclusive flock(2) that lives as long as the mapping does */
};

/* At offset 0. Fields are written once before `state` becomes live unless it says otherwise. */
typedef struct opscope_segment_header {
    char magic[8]; /* "OPSCOPE" and a NUL */
    uint32_t version;
    uint32_t header_bytes;
    uint32_t chunk_bytes;
    uint32_t chunk_limit;
    uint32_t chunk_count; /* atomic, release: chunks in use */
    uint32_t state;       /* atomic, release: opscope_segment_state */
    /* identity: a process is the same only if all of these are */
    uint8_t boot_id[16];
    uint8_t random_id[16];
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid; 0 unknown */
    uint64_t pid;           /* as seen in that namespace */
    uint64_t process_start; /* field 22 of /proc/self/stat, in clock ticks since boot */
    uint64_t uid;           /* effective */
    /* clock */
    uint64_t clock_source; /* opscope_clock_source */
    uint64_t ticks_per_second;
    uint64_t anchor_ticks; /* counter and wall clock, read together */
    uint64_t anchor_unix_ns;
    uint64_t created_unix_ns; /* when counting started: the counters' start time */
    /* sampling as it stands now; atomic, relaxed */
    uint64_t window_ns; /* 0: by probability */
    uint64_t period_ns;
    uint64_t sampling_prob_ppt; /* 1e12 times the probability */
    /* health; atomic, relaxed, only ever growing */
    uint64_t dropped_count; /* ranges that found no room and are in no cell */
    uint64_t window_count;
    uint64_t window_on_ns; /* time inside windows, and since windows were on */
    uint64_t window_wall_ns;
    uint64_t callback_error_count;
    uint64_t record_cost_ps; /* picoseconds a recorded range costs, measured at start; those of some
                                operators more: extra_cost_ps */
    uint64_t folded_count;   /* ranges counted under the operator "other" for want of room */
    uint64_t liveness;       /* opscope_segment_liveness; written once */
    /* the overhead governor (record/governor.h); atomic, relaxed */
    uint64_t overhead_budget_ppb; /* share of CPU time that recording may take, times 1e9; 0: any */
    uint64_t overhead_ppb;        /* what it took of late */
    uint64_t adaptation_count;    /* times the sampling was changed to keep to it */
    uint64_t is_disabled;         /* 1: turned off by the control block; atomic, relaxed */
} opscope_segment_header;

/* Which settings of a control block are given; the others are as the process was configured. */
enum opscope_control_given {
    OPSCOPE_CONTROL_ENABLED = 1,
    OPSCOPE_CONTROL_SAMPLING = 2, /* by probability; not together with windows */
    OPSCOPE_CONTROL_WINDOWS = 4,
    OPSCOPE_CONTROL_MAX_OVERHEAD = 8,
    OPSCOPE_CONTROL_LABELS = 16,
    OPSCOPE_CONTROL_ALL = 31,
    OPSCOPE_CONTROL_ALONE = 32 /* what the process inherited from its parent, or from the
                                  directory's settings file, holds no more */
};

/* At OPSCOPE_SEGMENT_CONTROL_OFFSET: what an operator wants of the process while it runs. Zero
 * until somebody does. Owner: the controller, another process, which holds an fcntl lock on these
 * bytes meanwhile. The process reads it within a second and trusts none of it (record/control.h).
 */
typedef struct opscope_control {
    uint64_t serial; /* odd while being written; goes up with each change of anything here */
    uint64_t settings_serial;   /* goes up with each change of the settings, up to label_keys */
    uint64_t given;             /* bits: opscope_control_given */
    uint64_t enabled;           /* 0 or 1 */
    uint64_t sampling_prob_ppt; /* 1e12 times the probability */
    uint64_t window_ns;         /* 0: windows as long and as far apart as configured */
    uint64_t period_ns;
    uint64_t max_overhead_ppb; /* share of CPU time, times 1e9; 0: off */
    char label_keys[160];      /* at most two, by commas, ended by a NUL */
    uint64_t trace_serial;     /* goes up with each wish for a trace (record/trace.h) */
    uint64_t trace_duration_ns;
    uint64_t trace_bytes;
    uint64_t trace_flags;
} opscope_control;

/* At OPSCOPE_SEGMENT_ANSWER_OFFSET: what became of that. Owner: the process. */
typedef struct opscope_control_answer {
    uint64_t settings_serial; /* atomic, release: of the settings looked at last */
    uint64_t
        settings_status;   /* 0: they are in force; else minus an opscope_status: none was taken */
    uint64_t refused;      /* bits: the settings that could not be taken */
    uint64_t trace_serial; /* atomic, release: of the wish looked at last */
    uint64_t trace_status; /* 0, or minus an opscope_status */
} opscope_control_answer;

enum opscope_chunk_kind {
    OPSCOPE_CHUNK_DICTIONARY = 1,
    OPSCOPE_CHUNK_CELLS = 2,
    OPSCOPE_CHUNK_LINES = 3,
    OPSCOPE_CHUNK_METRICS = 4, /* values of 8 bytes, each of the metric of that number */
    OPSCOPE_CHUNK_EXEMPLARS = 5
};

/* At the start of each chunk, padded to 64 bytes. */
typedef struct opscope_chunk {
    uint32_t kind;  /* opscope_chunk_kind; a reader skips kinds it does not know */
    uint32_t table; /* cells and lines: the table they belong to */
    uint32_t first; /* cells and lines: number in the table of the first one here. Numbers of lines
                       have gaps: a chunk's first is a multiple of 256 */
    uint32_t used;  /* atomic, release: bytes of entries, or count of cells, lines or values */
} opscope_chunk;

enum opscope_entry_kind {
    OPSCOPE_ENTRY_OP = 1,     /* id: operator; name NUL overload NUL; `detail`: its scope */
    OPSCOPE_ENTRY_LABELS = 2, /* id: label set; key NUL value NUL for each label */
    OPSCOPE_ENTRY_USAGE = 3,  /* key NUL: an API this process used */
    OPSCOPE_ENTRY_NOTE = 4,   /* key NUL value NUL: a fact about the process; the last one holds */
    OPSCOPE_ENTRY_METRIC = 5  /* id: metric; name NUL label NUL; `detail`: its kind */
};

/* How values of several processes make one: counters add up and stay when a process ends; gauges
 * add up over those that live; of peaks the largest of those counts. */
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
    uint32_t extra_cost_ps; /* of an operator: what recording a range of it costs beyond
                               record_cost_ps */
} opscope_entry;

/* Ranges of one operator, phase and label set, on one table. Owner: the table's thread; all fields
 * only grow, each with a relaxed store. A cell is visible once the chunk's `used` covers it. */
typedef struct opscope_cell {
    uint64_t key;             /* operator id | phase << 32 | label set << 40 */
    uint64_t sample_count;    /* ranges recorded */
    uint64_t weight;          /* sum of their weights: estimates the calls */
    uint64_t whole_ticks;     /* the part of total_ticks whose self time is known */
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

/* A range that took long, and the trace in which it ran. Owner: the thread of the table, which
 * writes them around and around, so that a reader may find one half written: it is whole only if
 * `check` is, over the words before it, check = (check ^ word) * FACTOR modulo 2^64, from SEED. */
typedef struct opscope_exemplar {
    uint64_t key;         /* as of a cell */
    uint64_t ticks;       /* how long */
    uint64_t end_ticks;   /* when it ended, about */
    uint8_t trace_id[16]; /* as of W3C's trace context */
    uint8_t span_id[8];
    uint64_t reserved;
    uint64_t check;
} opscope_exemplar;

#define OPSCOPE_EXEMPLAR_SEED 0x6f7073636f706521
#define OPSCOPE_EXEMPLAR_FACTOR 0x9e3779b97f4a7c15

OPSCOPE_END_DECLS

#endif
