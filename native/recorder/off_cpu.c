/* recorder/off_cpu.c -- see recorder/off_cpu.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* gettid */
#endif
#include "recorder/off_cpu.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "recorder/count.h"
#include "recorder/range_clock.h"

/* Ranges, and gaps between two, that are longer than this part of a second may contain a stop. */
enum { KEYS = 256, LONG_PER_SECOND = 2000, NS_PER_SECOND = 1000000000 };

/* Written when the library is loaded, and by the only thread of a forked child. */
static pthread_t main_thread;
static bool has_main;

/* A stop that the last readings of the CPU clock found. */
struct stop {
    const struct opscope__frame *frame; /* of whose self time it is a part */
    uint64_t clock;                     /* the thread's, at the end */
    uint64_t ticks;                     /* 0: none */
    bool is_counted;                    /* as self time of that frame */
};
enum { STOPS = 8 };

/* Owner: the main thread. */
static struct {
    uint64_t ticks, cpu_ns; /* the processor's counter and the thread's CPU time, as last read; 0:
                               not read yet */
    size_t next;            /* before the oldest of these */
    struct stop stops[STOPS];
} last;

/* Of one segment. The main thread writes, the window's reads. Keys of an earlier segment are
 * overwritten only while nobody reads that one: the driver of its windows has ended. */
static struct {
    uint64_t epoch;                      /* of the segment; release: `count` is of this one */
    uint64_t count;                      /* of keys; release: these are whole */
    struct opscope__off_cpu_of of[KEYS]; /* sums: relaxed, each independent of other memory */
} found;

void opscope__off_cpu_note_main(void)
{
    has_main = syscall(SYS_gettid) == getpid();
    main_thread = pthread_self();
}

static bool is_main(void)
{
    return has_main && pthread_equal(pthread_self(), main_thread) != 0;
}

bool opscope__off_cpu_begin_segment(void)
{
    if (!is_main()) {
        return false;
    }
    memset(&last, 0, sizeof last);
    return true;
}

void opscope__off_cpu_measure(struct opscope__recorder *recorder)
{
    const uint64_t per_second =
        opscope__load_relaxed(&recorder->poll_period_ticks) * OPSCOPE__POLLS_PER_SECOND;
    /* Partner: threads that record, which may see it slightly late. */
    opscope__store_relaxed(&recorder->long_ticks, per_second / LONG_PER_SECOND);
}

/* ---- on the main thread ----------------------------------------------------------------------- */

/* What passed since the last reading and was not CPU time, in ticks; 0 if there was none, or if it
 * is so little that it is no stop. Sets `now`, of the processor's counter, to the end of the
 * reading: the kernel counts the thread's CPU time for it, and if that is used up, stops it there.
 */
static uint64_t read_clock(const opscope_segment_header *header, uint64_t *now)
{
    const uint64_t cpu_ns = opscope__thread_cpu_ns();
    *now = opscope__ticks();
    const uint64_t cpu_ticks = (uint64_t)((unsigned __int128)(cpu_ns - last.cpu_ns) *
                                          header->ticks_per_second / NS_PER_SECOND);
    const uint64_t passed = *now - last.ticks;
    const bool is_known = last.ticks != 0;
    last.ticks = *now;
    last.cpu_ns = cpu_ns;
    const uint64_t ticks = is_known && passed > cpu_ticks ? passed - cpu_ticks : 0;
    return ticks > opscope__load_relaxed(&opscope__recorder.long_ticks) / 2 ? ticks : 0;
}

static void note(const struct opscope__frame *frame, uint64_t clock, uint64_t ticks,
                 bool is_counted)
{
    last.next = (last.next + 1) % STOPS;
    last.stops[last.next] =
        (struct stop){.frame = frame, .clock = clock, .ticks = ticks, .is_counted = is_counted};
}

static void add(struct opscope__recorder_thread *state, uint64_t key, uint64_t self_ticks,
                uint64_t total_ticks)
{
    if (opscope__load_relaxed(&found.epoch) != state->epoch) {
        opscope__store_relaxed(&found.count, 0);
        opscope__store_release(&found.epoch, state->epoch); /* partner: opscope__off_cpu_read */
    }
    const uint64_t count = opscope__load_relaxed(&found.count);
    uint64_t at = 0;
    while (at < count && found.of[at].key != key) {
        at++;
    }
    if (at == KEYS) { /* the rest cannot be told: the reader must know of none */
        opscope__store_relaxed(&state->header->main_table, 0);
        return;
    }
    struct opscope__off_cpu_of *of = &found.of[at];
    if (at == count) {
        of->key = key;
        opscope__store_relaxed(&of->self_ticks, 0);
        opscope__store_relaxed(&of->total_ticks, 0);
        opscope__store_relaxed(&of->count, 0);
        opscope__store_release(&found.count, count + 1); /* partner: opscope__off_cpu_read */
    }
    opscope__store_relaxed(&of->self_ticks, of->self_ticks + self_ticks);
    opscope__store_relaxed(&of->total_ticks, of->total_ticks + total_ticks);
    opscope__store_relaxed(&of->count, of->count + (self_ticks != 0));
}

int OPSCOPE__COLD opscope__off_cpu_begin(struct opscope__recorder_thread *state,
                                         struct opscope__frame *frame)
{
    if (!is_main()) {
        return OPSCOPE_OK;
    }
    uint64_t now;
    const uint64_t ticks = read_clock(state->header, &now);
    const struct opscope__frame *around = frame - 1;
    frame->start_ticks = opscope__range_clock_begin(state, now);
    /* Outside of all ranges, or in an outer one, it is in no estimate. */
    if (ticks != 0 && around > &state->frames[0] && around->serial != OPSCOPE__OUTER) {
        note(around, frame->start_ticks, ticks, false);
    }
    return OPSCOPE_OK;
}

uint64_t OPSCOPE__COLD opscope__off_cpu_end(const struct opscope__recorder_thread *state,
                                            uint64_t *now)
{
    return is_main() ? read_clock(state->header, now) : 0;
}

void OPSCOPE__COLD opscope__off_cpu_ended(struct opscope__recorder_thread *state,
                                          const struct opscope__frame *frame, uint64_t ticks,
                                          uint64_t found_now)
{
    if (!is_main()) {
        return;
    }
    const uint64_t own = ticks > frame->child_ticks ? ticks - frame->child_ticks : 0;
    uint64_t self = found_now, inside = found_now;
    for (size_t i = 0; i < STOPS; i++) {
        struct stop *stop = &last.stops[i];
        if (stop->ticks != 0 && (int64_t)(stop->clock - frame->start_ticks) > 0) {
            inside += stop->ticks;
            if (stop->frame == frame && !stop->is_counted) {
                self += stop->ticks;
                stop->is_counted = true;
            }
        }
    }
    if (found_now != 0) {
        note(frame, state->last_ticks, found_now, true);
    }
    self = self < own ? self : own;
    inside = inside < ticks ? inside : ticks;
    if (frame->weight != 0 && inside != 0) {
        const uint64_t total = opscope__count_weighted(inside, frame->weight);
        self = opscope__count_knows_self(state, frame, ticks) ? self : 0;
        add(state, frame->key, opscope__count_weighted(self, frame->weight), total);
        if (frame[-1].serial == OPSCOPE__OUTER) {
            add(state, frame[-1].key, 0, total);
        }
    }
}

/* ---- on any thread ---------------------------------------------------------------------------- */

bool opscope__off_cpu_read(uint32_t epoch, size_t i, struct opscope__off_cpu_of *out)
{
    /* Partner of both: add(). */
    if (opscope__load_acquire(&found.epoch) != epoch || i >= opscope__load_acquire(&found.count)) {
        return false;
    }
    const struct opscope__off_cpu_of *of = &found.of[i];
    *out = (struct opscope__off_cpu_of){.key = of->key,
                                        .self_ticks = opscope__load_relaxed(&of->self_ticks),
                                        .total_ticks = opscope__load_relaxed(&of->total_ticks),
                                        .count = opscope__load_relaxed(&of->count)};
    return true;
}
