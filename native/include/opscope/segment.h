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
    OPSCOPE_SEGMENT_WEIGHT_LOG2 = 16        /* weights are in units of 2^-16 */
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

/* At offset 0. Fields are written once before `state` becomes live unless it says otherwise. */
typedef struct opscope_segment_header {
    char magic[8];        /* "OPSCOPE" and a NUL */
    uint32_t version;
    uint32_t header_bytes;
    uint32_t chunk_bytes;
    uint32_t chunk_limit;
    uint32_t chunk_count; /* atomic, release: chunks in use */
    uint32_t state;       /* atomic, release: opscope_segment_state */
    /* identity: a process is the same only if all of these are */
    uint8_t boot_id[16];
    uint8_t random_id[16];
    uint64_t pid_namespace;    /* inode of /proc/self/ns/pid; 0 unknown */
    uint64_t pid;              /* as seen in that namespace */
    uint64_t process_start;    /* field 22 of /proc/self/stat, in clock ticks since boot */
    uint64_t uid;              /* effective */
    /* clock */
    uint64_t clock_source;     /* opscope_clock_source */
    uint64_t ticks_per_second;
    uint64_t anchor_ticks;     /* counter and wall clock, read together */
    uint64_t anchor_unix_ns;
    uint64_t created_unix_ns;  /* when counting started: the counters' start time */
    /* sampling as it stands now; atomic, relaxed */
    uint64_t window_ns;        /* 0: by probability */
    uint64_t period_ns;
    uint64_t sampling_prob_ppt; /* 1e12 times the probability */
    /* health; atomic, relaxed, only ever growing */
    uint64_t dropped_count;    /* ranges that found no room and are in no cell */
    uint64_t window_count;
    uint64_t window_on_ns;     /* time inside windows, and since windows were on */
    uint64_t window_wall_ns;
    uint64_t callback_error_count;
    uint64_t record_cost_ps;   /* picoseconds a recorded range costs, measured at start */
    uint64_t folded_count;     /* ranges counted under the operator "other" for want of room */
} opscope_segment_header;

enum opscope_chunk_kind {
    OPSCOPE_CHUNK_DICTIONARY = 1,
    OPSCOPE_CHUNK_CELLS = 2,
    OPSCOPE_CHUNK_LINES = 3,
    OPSCOPE_CHUNK_METRICS = 4 /* values of 8 bytes, each of the metric of that number */
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
    uint16_t kind;   /* opscope_entry_kind; a reader skips kinds it does not know */
    uint16_t detail;
    uint32_t id;
    uint32_t bytes;  /* of the text that follows, without the padding */
    uint32_t reserved;
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

OPSCOPE_END_DECLS

#endif
