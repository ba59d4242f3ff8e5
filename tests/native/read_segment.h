/* tests/native/read_segment.h -- reads a segment file as another process does: from disk, with the
 * layout of opscope/segment.h, and sums its cells. It checks only what it relies on; not for
 * untrusted bytes. */
#ifndef OPSCOPE_TESTS_READ_SEGMENT_H
#define OPSCOPE_TESTS_READ_SEGMENT_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "opscope/recorder.h"
#include "opscope/segment.h"

enum { SEGMENT_TABLES = 1024, SEGMENT_LINE_CHUNKS = 256 };

struct segment {
    char *bytes;
    size_t size;
    const opscope_segment_header *header;
    /* By table, and by number of the first line / 256. */
    const opscope_chunk *lines[SEGMENT_TABLES][SEGMENT_LINE_CHUNKS];
};

/* The sums of the selected cells. */
struct totals {
    uint64_t cells;
    uint64_t samples;
    uint64_t weight;
    uint64_t whole_ticks;
    uint64_t total_ticks;
    uint64_t self_ticks;
    uint64_t error_weight;
    uint64_t bytes;
    uint64_t histogram_weight;
};

enum { ANY = -1 };
static const uint64_t ONE = (uint64_t)1 << OPSCOPE_SEGMENT_WEIGHT_LOG2;

static inline const opscope_chunk *segment_chunk(const struct segment *segment, uint32_t index)
{
    return (const void *)(segment->bytes + OPSCOPE_SEGMENT_HEADER_BYTES +
                          (size_t)index * OPSCOPE_SEGMENT_CHUNK_BYTES);
}

static inline const void *segment_items(const opscope_chunk *chunk)
{
    return (const char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES;
}

static inline struct segment *segment_read(const char *path)
{
    struct segment *segment = calloc(1, sizeof *segment);
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(segment != NULL && fd >= 0 && fstat(fd, &info) == 0);
    segment->size = (size_t)info.st_size;
    CHECK(segment->size >= OPSCOPE_SEGMENT_HEADER_BYTES && segment->size <= 16u << 20);
    segment->bytes = aligned_alloc(64, segment->size);
    CHECK(segment->bytes != NULL);
    for (size_t done = 0; done < segment->size;) {
        ssize_t bytes = pread(fd, segment->bytes + done, segment->size - done, (off_t)done);
        CHECK(bytes > 0);
        done += (size_t)bytes;
    }
    close(fd);
    segment->header = (const void *)segment->bytes;
    CHECK(memcmp(segment->header->magic, "OPSCOPE", 8) == 0);
    CHECK_EQUAL(segment->header->version, OPSCOPE_SEGMENT_VERSION);
    CHECK(OPSCOPE_SEGMENT_HEADER_BYTES +
              (size_t)segment->header->chunk_count * OPSCOPE_SEGMENT_CHUNK_BYTES <=
          segment->size);
    for (uint32_t i = 0; i < segment->header->chunk_count; i++) {
        const opscope_chunk *chunk = segment_chunk(segment, i);
        if (chunk->kind == OPSCOPE_CHUNK_LINES) {
            CHECK(chunk->table < SEGMENT_TABLES && chunk->first % 256 == 0);
            segment->lines[chunk->table][chunk->first / 256] = chunk;
        }
    }
    return segment;
}

static inline void segment_free(struct segment *segment)
{
    free(segment->bytes);
    free(segment);
}

/* The `index`th entry of that kind in the dictionary; NULL past the last. */
static inline const opscope_entry *segment_entry(const struct segment *segment,
                                                 enum opscope_entry_kind kind, uint32_t index)
{
    for (uint32_t i = 0; i < segment->header->chunk_count; i++) {
        const opscope_chunk *chunk = segment_chunk(segment, i);
        const char *items = segment_items(chunk);
        for (uint32_t at = 0; chunk->kind == OPSCOPE_CHUNK_DICTIONARY && at < chunk->used;) {
            const opscope_entry *entry = (const void *)(items + at);
            if (entry->kind == kind && index-- == 0) {
                return entry;
            }
            at += (uint32_t)sizeof *entry + (entry->bytes + 7) / 8 * 8;
        }
    }
    return NULL;
}

static inline const char *entry_text(const opscope_entry *entry)
{
    return (const char *)(entry + 1);
}

static inline uint32_t segment_entry_count(const struct segment *segment,
                                           enum opscope_entry_kind kind)
{
    uint32_t count = 0;
    while (segment_entry(segment, kind, count) != NULL) {
        count++;
    }
    return count;
}

/* The entry whose text is `bytes` of `text`, including NULs; the last of several; NULL if there is
 * none. */
static inline const opscope_entry *segment_find(const struct segment *segment,
                                                enum opscope_entry_kind kind, const char *text,
                                                size_t bytes)
{
    const opscope_entry *found = NULL, *entry;
    for (uint32_t i = 0; (entry = segment_entry(segment, kind, i)) != NULL; i++) {
        if (entry->bytes == bytes && memcmp(entry_text(entry), text, bytes) == 0) {
            found = entry;
        }
    }
    return found;
}

/* Sums the cells of that operator (0: any), phase and label set (ANY). */
static inline struct totals segment_sum(const struct segment *segment, uint32_t op, int phase,
                                        int labels)
{
    struct totals totals = {0};
    for (uint32_t i = 0; i < segment->header->chunk_count; i++) {
        const opscope_chunk *chunk = segment_chunk(segment, i);
        if (chunk->kind != OPSCOPE_CHUNK_CELLS) {
            continue;
        }
        const opscope_cell *cells = segment_items(chunk);
        for (uint32_t c = 0; c < chunk->used; c++) {
            const opscope_cell *cell = &cells[c];
            if ((op != 0 && (uint32_t)cell->key != op) ||
                (phase != ANY && (int)(cell->key >> 32 & 0xff) != phase) ||
                (labels != ANY && (int)(cell->key >> 40) != labels)) {
                continue;
            }
            totals.cells++;
            totals.samples += cell->sample_count;
            totals.weight += cell->weight;
            totals.whole_ticks += cell->whole_ticks;
            totals.total_ticks += cell->total_ticks;
            totals.self_ticks += cell->self_ticks;
            totals.error_weight += cell->error_weight;
            totals.bytes += cell->bytes;
            for (int octave = 0; octave < OPSCOPE_SEGMENT_OCTAVES; octave++) {
                uint32_t number = cell->octave_line[octave];
                if (number == 0) {
                    continue;
                }
                number--;
                const opscope_chunk *lines = segment->lines[chunk->table][number / 256];
                CHECK(lines != NULL && number % 256 < lines->used);
                const opscope_line *line = segment_items(lines);
                line += number % 256;
                for (int bucket = 0; bucket < 8; bucket++) {
                    totals.histogram_weight += line->weight[bucket];
                }
            }
        }
    }
    return totals;
}

static inline uint32_t segment_op(const struct segment *segment, const char *name)
{
    const opscope_entry *entry;
    for (uint32_t i = 0; (entry = segment_entry(segment, OPSCOPE_ENTRY_OP, i)) != NULL; i++) {
        if (strcmp(entry_text(entry), name) == 0) {
            return entry->id;
        }
    }
    return 0;
}

static inline struct totals segment_sum_of(const struct segment *segment, const char *name)
{
    uint32_t op = segment_op(segment, name);
    return op != 0 ? segment_sum(segment, op, ANY, ANY) : (struct totals){0};
}

/* ---- a directory for the test -------------------------------------------------------------- */

static char directory[64];

static inline void make_directory(void)
{
    strcpy(directory, "/tmp/opscope-test-XXXXXX");
    CHECK(mkdtemp(directory) != NULL);
}

/* The number of segment files; *path is one of them. */
static inline int list_directory(char *path, size_t capacity)
{
    int count = 0;
    DIR *listing = opendir(directory);
    CHECK(listing != NULL);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (strstr(entry->d_name, ".seg") != NULL) {
            snprintf(path, capacity, "%s/%s", directory, entry->d_name);
            count++;
        }
    }
    closedir(listing);
    return count;
}

static inline void empty_directory(void)
{
    char path[512];
    while (list_directory(path, sizeof path) > 0) {
        CHECK_EQUAL(unlink(path), 0);
    }
}

static inline void remove_directory(void)
{
    empty_directory();
    CHECK_EQUAL(rmdir(directory), 0);
}

/* Starts the recorder with p = 1 in an empty directory. */
static inline void start_recorder(const char *label_keys)
{
    empty_directory();
    opscope_recorder_options options = {
        .directory = directory, .label_keys = label_keys, .sampling_prob = 1.0};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
}

/* The current segment of this process. */
static inline struct segment *read_own(void)
{
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    CHECK(status.running);
    return segment_read(status.path);
}

/* Stops the recorder and reads its segment. */
static inline struct segment *stop_and_read(void)
{
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    CHECK_EQUAL(opscope_recorder_stop(false), OPSCOPE_OK);
    struct segment *segment = segment_read(status.path);
    CHECK_EQUAL(segment->header->state, OPSCOPE_SEGMENT_CLOSED);
    return segment;
}

#endif
