/* recorder/off_cpu.c -- see recorder/off_cpu.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* gettid */
#endif
#include "recorder/off_cpu.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "recorder/count.h"

/* Ranges, and gaps between two, that are longer than this part of a second may contain a stop. */
enum { KEYS = 256, LONG_PER_SECOND = 2000, NS_PER_SECOND = 1000000000 };

/* Written when the library is loaded, and by the only thread of a forked child. */
static pthread_t main_thread;
static bool has_main;

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

bool opscope__off_cpu_is_main(void)
{
    return has_main && pthread_equal(pthread_self(), main_thread) != 0;
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
 * is so little that it is no stop. */
static uint64_t read_clock(struct opscope__recorder_thread *state, uint64_t now)
{
    struct opscope__off_cpu *off = &state->off_cpu;
    const uint64_t cpu_ns = opscope__thread_cpu_ns();
    const uint64_t cpu_ticks = (uint64_t)((unsigned __int128)(cpu_ns - off->cpu_ns) *
                                          state->header->ticks_per_second / NS_PER_SECOND);
    const uint64_t passed = now - off->ticks;
    const bool is_known = off->ticks != 0;
    off->ticks = now;
    off->cpu_ns = cpu_ns;
    const uint64_t ticks = is_known && passed > cpu_ticks ? passed - cpu_ticks : 0;
    return ticks > opscope__load_relaxed(&opscope__recorder.long_ticks) / 2 ? ticks : 0;
}

static void note(struct opscope__off_cpu *off, const struct opscope__frame *frame, uint64_t clock,
                 uint64_t ticks, bool is_counted)
{
    off->next = (off->next + 1) % OPSCOPE__OFF_CPU_STOPS;
    off->stops[off->next] = (struct opscope__off_cpu_stop){
        .frame = frame, .clock = clock, .ticks = ticks, .is_counted = is_counted};
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

void OPSCOPE__COLD opscope__off_cpu_begin(struct opscope__recorder_thread *state,
                                          struct opscope__frame *around, uint64_t now)
{
    if (!state->is_main) {
        return;
    }
    const uint64_t ticks = read_clock(state, now);
    /* Outside of all ranges, or in an outer one, it is in no estimate. */
    if (ticks != 0 && around > &state->frames[0] && around->serial != OPSCOPE__OUTER) {
        note(&state->off_cpu, around, now - state->cost_ticks, ticks, false);
    }
}

void OPSCOPE__COLD opscope__off_cpu_end(struct opscope__recorder_thread *state,
                                        const struct opscope__frame *frame, uint64_t ticks,
                                        uint64_t now)
{
    if (!state->is_main) {
        return;
    }
    struct opscope__off_cpu *off = &state->off_cpu;
    const uint64_t own = ticks > frame->child_ticks ? ticks - frame->child_ticks : 0;
    const uint64_t last = read_clock(state, now);
    uint64_t self = last, inside = last;
    for (size_t i = 0; i < OPSCOPE__OFF_CPU_STOPS; i++) {
        struct opscope__off_cpu_stop *stop = &off->stops[i];
        if (stop->ticks != 0 && (int64_t)(stop->clock - frame->start_ticks) >= 0) {
            inside += stop->ticks;
            if (stop->frame == frame && !stop->is_counted) {
                self += stop->ticks;
                stop->is_counted = true;
            }
        }
    }
    if (last != 0) {
        note(off, frame, state->last_ticks, last, true);
    }
    self = self < own ? self : own;
    inside = inside < ticks ? inside : ticks;
    if (frame->weight != 0 && inside != 0) {
        const uint64_t total = opscope__count_weighted(inside, frame->weight);
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
