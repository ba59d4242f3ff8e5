/* tests/native/control_block.h -- the controller's side of the control block: writes it, and waits
 * for the answer. */
#ifndef OPSCOPE_TESTS_CONTROL_BLOCK_H
#define OPSCOPE_TESTS_CONTROL_BLOCK_H

#include <fcntl.h>
#include <unistd.h>

#include "opscope/recorder.h"
#include "ranges.h"
#include "read_segment.h"

static inline int open_own(void)
{
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    CHECK(status.running);
    int fd = open(status.path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static inline void read_at(int fd, void *into, size_t bytes, size_t offset)
{
    CHECK_EQUAL(pread(fd, into, bytes, (off_t)offset), (ssize_t)bytes);
}

static inline void write_at(int fd, const void *from, size_t bytes, size_t offset)
{
    CHECK_EQUAL(pwrite(fd, from, bytes, (off_t)offset), (ssize_t)bytes);
}

/* Writes the settings of `change`, as a controller does; returns their serial. */
static inline uint64_t ask(int fd, const opscope_control *change)
{
    opscope_control now, next = *change;
    read_at(fd, &now, sizeof now, OPSCOPE_SEGMENT_CONTROL_OFFSET);
    uint64_t odd = now.serial | 1;
    write_at(fd, &odd, sizeof odd, OPSCOPE_SEGMENT_CONTROL_OFFSET);
    next.settings_serial = now.settings_serial + 1;
    write_at(fd, (const char *)&next + sizeof next.serial, sizeof next - sizeof next.serial,
             OPSCOPE_SEGMENT_CONTROL_OFFSET + sizeof next.serial);
    odd++;
    write_at(fd, &odd, sizeof odd, OPSCOPE_SEGMENT_CONTROL_OFFSET);
    return next.settings_serial;
}

static inline opscope_control_answer answer_of(int fd)
{
    opscope_control_answer answer;
    read_at(fd, &answer, sizeof answer, OPSCOPE_SEGMENT_ANSWER_OFFSET);
    return answer;
}

static inline opscope_segment_header header_of(int fd)
{
    opscope_segment_header header;
    read_at(fd, &header, sizeof header, 0);
    return header;
}

/* Waits for the answer to that serial, running ranges meanwhile. */
static inline opscope_control_answer await(int fd, uint64_t serial)
{
    opscope_control_answer answer;
    do {
        run_ranges(op_named("meanwhile"), 100);
        answer = answer_of(fd);
    } while (answer.settings_serial != serial);
    return answer;
}

static inline void ask_and_await(int fd, const opscope_control *change)
{
    opscope_control_answer answer = await(fd, ask(fd, change));
    CHECK_EQUAL(answer.settings_status, 0);
    CHECK_EQUAL(answer.refused, 0);
}

static const opscope_control all = {.given = OPSCOPE_CONTROL_SAMPLING,
                                    .sampling_prob_ppt = 1000000000000};
static const opscope_control off = {.given = OPSCOPE_CONTROL_ENABLED};
static const opscope_control seldom = {.given = OPSCOPE_CONTROL_SAMPLING, .sampling_prob_ppt = 1};
static const opscope_control windows = {
    .given = OPSCOPE_CONTROL_WINDOWS, .window_ns = 10000000, .period_ns = 1000000000000000};

static inline void start_with(double prob, uint64_t window_ns, uint64_t period_ns)
{
    empty_directory();
    opscope_recorder_options options = {.directory = directory,
                                        .label_keys = "model",
                                        .sampling_prob = prob,
                                        .window_ns = window_ns,
                                        .period_ns = period_ns};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
}

static inline uint64_t samples_of(const char *name)
{
    struct segment *segment = read_own();
    uint64_t samples = segment_sum_of(segment, name).samples;
    segment_free(segment);
    return samples;
}

#endif
