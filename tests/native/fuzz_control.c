/* tests/native/fuzz_control.c -- any bytes in the control block, while ranges run.
 *
 * For any contents, the answer says that the settings are in force or refused; the settings in
 * force are valid; and the recorder records ranges, or not, accordingly.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opscope/record.h"
#include "opscope/recorder.h"
#include "recorder/control.h"
#include "recorder/state.h"

static const opscope_op *op;

static void start(void)
{
    char directory[64];
    snprintf(directory, sizeof directory, "/tmp/opscope-fuzz-control-%d", (int)getpid());
    const opscope_recorder_options options = {
        .directory = directory, .label_keys = "a", .sampling_prob = 1.0};
    assert(opscope_op_intern("op", "", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &op) == OPSCOPE_OK);
    assert(opscope_recorder_start(&options) == OPSCOPE_OK);
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    unlink(status.path);
    rmdir(directory);
}

static void run_ranges(int count)
{
    for (int i = 0; i < count; i++) {
        opscope_range range;
        opscope_range_open(&range, op, NULL);
        opscope_range_close(&range);
    }
}

static void check(const opscope_control_answer *answer)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    const opscope_segment_header *header = opscope__segment_header(&recorder->segment);
    assert(answer->settings_status == 0 || answer->settings_status == 1);
    assert((answer->settings_status == 0) == (answer->refused == 0));
    assert(opscope__sampling_check(&recorder->wanted.sampling) == OPSCOPE_OK);
    assert(recorder->wanted.max_overhead_ppb <= 1000000000);
    assert(memchr(recorder->wanted.label_keys, '\0', OPSCOPE__LABEL_KEYS_BYTES) != NULL);
    assert(recorder->is_off == opscope__settings_are_off(&recorder->wanted));
    assert(header->is_disabled == !recorder->wanted.is_enabled);
    assert(header->window_ns == recorder->sampling.window_ns);
    if (recorder->is_off ||
        recorder->sampling.window_ns == 0) { /* else as the driver has set it now */
        assert(opscope_has_callbacks() == !recorder->is_off);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint64_t serial;
    if (op == NULL) {
        start();
    }
    opscope_control change = {0};
    memcpy(&change.given, data,
           size < sizeof change - offsetof(opscope_control, given)
               ? size
               : sizeof change - offsetof(opscope_control, given));
    /* Unknown bits would refuse nearly every input. */
    change.given &= size % 8 == 0 ? UINT64_MAX : 63;
    change.trace_serial = 0;
    change.settings_serial = ++serial;
    char *page = opscope__recorder.segment.base;
    opscope_control *block = (void *)(page + OPSCOPE_SEGMENT_CONTROL_OFFSET);
    const opscope_control_answer *answer = (const void *)(page + OPSCOPE_SEGMENT_ANSWER_OFFSET);
    opscope__store_release(&block->serial, 2 * serial - 1);
    memcpy((char *)block + sizeof block->serial, (char *)&change + sizeof change.serial,
           sizeof change - sizeof change.serial);
    opscope__store_release(&block->serial, 2 * serial);
    do { /* the window driver may be polling */
        opscope__control_apply();
    } while (opscope__load_acquire(&answer->settings_serial) != serial);
    run_ranges(3); /* the first one in the process makes the driver */
    check(answer);
    return 0;
}
