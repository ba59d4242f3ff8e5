/* recorder/window_ranges.c -- applies the parts of a window to the recorder: whether ranges are
 * recorded, and with which weight. recorder/window_cycle.c decides when. */
#include "base/atomics.h"
#include "base/clock.h"
#include "recorder/cost.h"
#include "recorder/off_cpu.h"
#include "recorder/state.h"
#include "recorder/variance.h"

void opscope__recorder_begin_serial(bool is_whole)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    uint64_t before = opscope__load_relaxed(&recorder->serial), serial;
    do {
        serial = ((before >> 1) + 1) << 1 | is_whole;
    } while (!opscope__replace_relaxed(&recorder->serial, &before, serial));
    opscope__store_relaxed(&recorder->whole_serial, is_whole ? serial : 0);
}

void opscope__recorder_set_weights(uint64_t known_weight, uint64_t new_weight)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__store_relaxed(&recorder->weights[0], known_weight);
    opscope__store_relaxed(&recorder->weights[1], new_weight);
}

void opscope__recorder_count_few(bool is_on)
{
    const opscope_handle handle = opscope__recorder.count_handle;
    (void)(is_on ? opscope_enable_callback(handle) : opscope_disable_callback(handle));
}

bool opscope__recorder_wants_comparison(uint64_t window_number)
{
    opscope__segment_lock();
    const bool is_wanted = opscope__cost_wants_comparison(window_number);
    opscope__segment_unlock();
    return is_wanted;
}

void opscope__recorder_add_cost_ns(double ns)
{
    opscope__segment_lock();
    if (opscope__recorder.segment.base != NULL) {
        opscope__add_relaxed(
            &opscope__segment_header(&opscope__recorder.segment)->uncounted_cost_ps,
            (uint64_t)(ns * 1000.0));
    }
    opscope__segment_unlock();
}

void opscope__recorder_compare_cost(const struct opscope__cost_comparison *window)
{
    opscope__segment_lock();
    opscope__cost_add_comparison(window);
    opscope__segment_unlock();
}

void opscope__recorder_window_open(void)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__recorder_set_weights(0, 0);
    opscope__recorder_tell_tables();
    opscope__off_cpu_measure(recorder);
    opscope__store_relaxed(&recorder->is_open, 1);
    opscope__recorder_begin_serial(true);
    (void)opscope_enable_callback(recorder->handle);
}

void opscope__recorder_window_close(uint64_t on_ns, uint64_t wall_ns)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__store_relaxed(&recorder->closed_ticks, opscope__ticks());
    opscope__recorder_begin_serial(
        false); /* first: ranges open now will miss some of those inside them */
    (void)opscope_disable_callback(recorder->handle);
    opscope__store_relaxed(&recorder->is_open, 0);
    opscope__segment_lock();
    if (recorder->segment.base != NULL) {
        opscope_segment_header *header = opscope__segment_header(&recorder->segment);
        opscope__add_relaxed(&header->window_count, 1);
        opscope__add_relaxed(&header->window_on_ns, on_ns);
        opscope__add_relaxed(&header->window_wall_ns, wall_ns);
        /* Partner: the reader of the file; independent of other memory. */
        opscope__store_relaxed(&header->window_end_ticks, opscope__ticks());
    }
    opscope__segment_unlock();
}

void opscope__recorder_window_thread(uint64_t cpu_ns)
{
    opscope__segment_lock();
    if (opscope__recorder.segment.base != NULL) {
        opscope__add_relaxed(&opscope__segment_header(&opscope__recorder.segment)->window_thread_ns,
                             cpu_ns);
    }
    opscope__segment_unlock();
}

void opscope__recorder_window_vary(const struct opscope__variance_window *window)
{
    opscope__segment_lock();
    opscope__variance_window(&opscope__recorder.segment, window);
    opscope__segment_unlock();
}

void opscope__recorder_read_cost(struct opscope__cost *out)
{
    opscope__segment_lock();
    opscope__cost_read(&opscope__recorder.segment, out);
    opscope__segment_unlock();
}
