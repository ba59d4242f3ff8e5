/* marks/moving.c -- the table of marked ranges that may end on any thread.
 *
 * The table needs no lock of its own. So a fork at any moment leaves the child a table that works;
 * a place that another thread was filling or freeing then is lost to the child.
 *
 * The id of a range is the number of its place, plus a multiple of LIMIT that grows with each range
 * in the place: ids are never reused. `state` says who may use a place:
 *   CLOSED        nobody, if it is on the free list; else the thread that took it or closes it
 *   id | OPENING  the thread that opens a task there; nothing can end the task yet
 *   id            the thread that replaces the id by CLOSED, to close the range
 */
#include "bridges/marks/moving.h"

#include <stdbool.h>

#include "base/atomics.h"
#include "bridges/marks/range.h"
#include "opscope/range_inline.h"
#include "recorder/recorder.h"

enum { LIMIT = OPSCOPE__MARKS_MOVING_LIMIT };
/* Of tasks: so many that the few tries of a task nearly always find a free one. */
enum { TASK_PLACES = 4 * LIMIT, TRIES = 16 };
enum { WORDS = 4 };

static const uint64_t CLOSED = 0;
static const uint64_t OPENING = (uint64_t)1 << 63; /* with an id */

/* What identifies a task. Relaxed: a reader then finds out whether the range is still the same. */
struct key {
    uint64_t words[WORDS];
};

struct moving {
    uint64_t state;
    uint64_t last_id; /* owner: the thread that took the place */
    uint32_t next;    /* on the free list: number of the next place, from 1; 0: none; relaxed */
    struct key key;   /* of a task; else unused */
    opscope_range range;
} __attribute__((aligned(64)));

static struct moving places[LIMIT];
static uint32_t used_count; /* relaxed: places below were taken before */
/* Number of the first free place, from 1; above it, a count of changes, so that a thread notices
 * that the list changed and became the same again. */
static uint64_t free_list;

/* Open addressing by the hash of the key: ids of ranges. An id whose range has closed is as good as
 * none. */
static uint64_t tasks[TASK_PLACES];

static const opscope_range_info info = {.sequence_nr = -1, .is_async = true};

/* ---- places ------------------------------------------------------------------------------------ */

/* A place of the caller's alone, with a new id; NULL: all are in use. */
static struct moving *take(void)
{
    struct moving *taken = NULL;
    for (;;) {
        uint64_t head = opscope__load_acquire(&free_list); /* partner: put_back() */
        const uint32_t number = (uint32_t)head;
        if (number == 0) {
            break;
        }
        const uint64_t rest = opscope__load_relaxed(&places[number - 1].next);
        /* Partner: put_back(). */
        if (opscope__replace_acq_rel(&free_list, &head, ((head >> 32) + 1) << 32 | rest)) {
            taken = &places[number - 1];
            break;
        }
    }
    uint32_t count = opscope__load_relaxed(&used_count);
    while (taken == NULL && count < LIMIT) {
        if (opscope__replace_relaxed(&used_count, &count, count + 1)) {
            taken = &places[count];
            taken->last_id = count;
        }
    }
    if (taken != NULL) {
        taken->last_id += LIMIT;
    }
    return taken;
}

static void put_back(struct moving *taken)
{
    const uint64_t number = (uint64_t)(taken - places) + 1;
    uint64_t head = opscope__load_relaxed(&free_list);
    uint64_t first;
    do {
        opscope__store_relaxed(&taken->next, (uint32_t)head);
        first = ((head >> 32) + 1) << 32 | number;
    } while (!opscope__replace_acq_rel(&free_list, &head, first)); /* partner: take() */
}

static struct moving *place_of(uint64_t id)
{
    return &places[id % LIMIT];
}

/* Whether a range with that id is open or opens just now. */
static bool is_in_use(uint64_t id)
{
    return id != 0 && (opscope__load_relaxed(&place_of(id)->state) & ~OPENING) == id;
}

/* ---- ranges ------------------------------------------------------------------------------------ */

/* Opens a range in the caller's place. Returns its id; 0: no callback observes it, and the place is
 * free again. */
static uint64_t open_in(struct moving *taken, opscope_marks_kind kind, const char *name)
{
    const uint64_t id = taken->last_id;
    const opscope_op *op = opscope__marks_wanted(kind, name);
    taken->range.snapshot = NULL;
    if (op != NULL) {
        opscope__range_open_slow(&taken->range, op, &info);
    }
    if (taken->range.snapshot == NULL) {
        opscope__store_relaxed(&taken->state, CLOSED);
        put_back(taken);
        return 0;
    }
    opscope__store_release(&taken->state, id); /* partner: opscope__marks_end() */
    return id;
}

uint64_t opscope__marks_start(opscope_marks_kind kind, const char *name)
{
    if (!opscope__marks_is_followed(kind)) {
        return 0;
    }
    struct moving *taken = take();
    if (taken == NULL) {
        opscope__recorder_count_lost();
        return 0;
    }
    return open_in(taken, kind, name);
}

uint64_t opscope__marks_start_wide(opscope_marks_kind kind, const wchar_t *name)
{
    char text[OPSCOPE__MARKS_NAME_BYTES] = "";
    if (name != NULL && opscope__marks_is_followed(kind)) {
        opscope__marks_narrow(name, text, sizeof text);
    }
    return opscope__marks_start(kind, text);
}

/* The program may give any number. */
void opscope__marks_end(uint64_t id)
{
    struct moving *ending = place_of(id);
    uint64_t state = id;
    if (id == 0 || (id & OPENING) != 0) {
        return;
    }
    /* Partners: the store in open_in(), and the same on another thread. */
    if (opscope__replace_acq_rel(&ending->state, &state, CLOSED)) {
        opscope_range_close(&ending->range);
        put_back(ending);
    }
}

/* ---- tasks ------------------------------------------------------------------------------------- */

static struct key key_of(const void *domain, const struct opscope__itt_id *id)
{
    return (struct key){{(uintptr_t)domain, id->words[0], id->words[1], id->words[2]}};
}

static bool has_key(const struct moving *task, const struct key *key)
{
    bool is_same = true;
    for (int i = 0; i < WORDS; i++) {
        is_same = opscope__load_relaxed(&task->key.words[i]) == key->words[i] && is_same;
    }
    return is_same;
}

static uint32_t hash_of(const struct key *key)
{
    uint64_t hash = 0;
    for (int i = 0; i < WORDS; i++) {
        hash = (hash ^ key->words[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

/* The id of a task's range that is in use; 0: there is none. */
static uint64_t find(const struct key *key)
{
    const uint32_t hash = hash_of(key);
    for (uint32_t i = 0; i < TRIES; i++) {
        /* Partner: enter(). If the range ends meanwhile and its place gets another key, the range
         * is no longer in use. */
        const uint64_t id = opscope__load_acquire(&tasks[(hash + i) % TASK_PLACES]);
        if (id != 0 && has_key(place_of(id), key) && is_in_use(id)) {
            return id;
        }
    }
    return 0;
}

/* Makes the caller's place known as that of the task; false: there is no room. */
static bool enter(struct moving *taken, const struct key *key)
{
    const uint32_t hash = hash_of(key);
    for (int i = 0; i < WORDS; i++) {
        opscope__store_relaxed(&taken->key.words[i], key->words[i]);
    }
    opscope__store_relaxed(&taken->state, taken->last_id | OPENING);
    for (uint32_t i = 0; i < TRIES; i++) {
        uint64_t *place = &tasks[(hash + i) % TASK_PLACES];
        uint64_t found = opscope__load_acquire(place); /* partner: below */
        /* Partners: the loads above and in find(). */
        if (!is_in_use(found) && opscope__replace_release(place, &found, taken->last_id)) {
            return true;
        }
    }
    opscope__store_relaxed(&taken->state, CLOSED);
    return false;
}

void opscope__marks_begin_task(const void *domain, const struct opscope__itt_id *id,
                               const char *name)
{
    if (!opscope__marks_is_followed(OPSCOPE_MARKS_ITT)) {
        return;
    }
    const struct key key = key_of(domain, id);
    const bool is_null = (id->words[0] | id->words[1] | id->words[2]) == 0;
    struct moving *taken = is_null || find(&key) != 0 ? NULL : take();
    if (taken != NULL && enter(taken, &key)) {
        (void)open_in(taken, OPSCOPE_MARKS_ITT, name);
        return;
    }
    if (taken != NULL) {
        put_back(taken);
    }
    opscope__recorder_count_lost();
}

void opscope__marks_end_task(const void *domain, const struct opscope__itt_id *id)
{
    const struct key key = key_of(domain, id);
    opscope__marks_end(find(&key));
}
