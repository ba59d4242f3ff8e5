/* marks/range.c -- each thread's stack of open marks, and the operators of their names.
 *
 * Nothing here takes a lock, except the one within opscope_op_intern, and no function needs the
 * GIL: a stack belongs to its thread. In a forked child, the stacks of the threads that do not
 * exist there leak.
 *
 * Callbacks of a program may mark ranges themselves while a push or a pop is under way: so a push
 * takes its entry before its range opens, and a pop gives it back after its range has closed.
 */
#include "bridges/marks/range.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "base/hot.h"
#include "opscope/range_inline.h"
#include "opscope/recorder.h"
#include "record/demand.h"
#include "record/range.h"
#include "recorder/cost_trial.h"
#include "recorder/recorder.h"

enum { KIND_COUNT = OPSCOPE_MARKS_KIND_COUNT, TRIAL = KIND_COUNT };
/* A power of two; half of the places stay free. */
enum { PLACES = 2 * OPSCOPE__MARKS_NAME_LIMIT };

static const char *const prefixes[] = {"nvtx::", "itt::", ""};

/* A typical cost of the machines measured so far. */
static const uint64_t USUAL_PS = 15000;

struct entry {
    const void *domain;
    opscope_range range;
    uint8_t kind;
    enum { OPEN, CLOSING, CLOSED } state;
};

/* Owner: the thread. */
struct stack {
    uint32_t count;
    bool is_losing; /* within lose_all(): callbacks' marks are not followed */
    struct entry entries[OPSCOPE__MARKS_OPEN_LIMIT];
};

static _Thread_local struct stack *stack;

static bool is_followed[KIND_COUNT + 1]; /* relaxed: a late reader misses one range */
static uint64_t cost_ps;                 /* relaxed: written before the first range */

/* ---- names ------------------------------------------------------------------------------------- */

/* Open addressing by the hash of the name. A place is filled once, with release. */
static struct names {
    const opscope_op *ops[PLACES];
    uint32_t count; /* relaxed: only a limit */
} known[KIND_COUNT + 1];

struct name {
    const char *text;
    size_t bytes;
    uint32_t hash;
};

/* The part of the text that fits, without half a character. */
static struct name name_of(int kind, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        text = "unnamed";
    }
    const size_t most = OPSCOPE__MARKS_NAME_BYTES - strlen(prefixes[kind]) - 1;
    struct name name = {.text = text, .hash = 0x811c9dc5u}; /* FNV-1a */
    while (name.bytes < most && text[name.bytes] != '\0') {
        name.hash = (name.hash ^ (unsigned char)text[name.bytes++]) * 0x01000193u;
    }
    if (name.bytes == most) {
        while (name.bytes > 0 && ((unsigned char)text[name.bytes] & 0xC0) == 0x80) {
            name.bytes--;
        }
    }
    name.hash ^= name.hash >> 16;
    return name;
}

static bool has_name(const opscope_op *op, int kind, const struct name *name)
{
    const char *own = op->name + strlen(prefixes[kind]);
    return strncmp(own, name->text, name->bytes) == 0 && own[name->bytes] == '\0';
}

static OPSCOPE__COLD const opscope_op *intern(int kind, const struct name *name, bool *is_known)
{
    const opscope_op *op = opscope_op_other();
    const size_t prefix = strlen(prefixes[kind]);
    char text[OPSCOPE__MARKS_NAME_BYTES];
    memcpy(text, prefixes[kind], prefix);
    memcpy(text + prefix, name->text, name->bytes);
    text[prefix + name->bytes] = '\0';
    *is_known = opscope_op_intern(text, "", OPSCOPE_USER_SCOPE, OPSCOPE_OTHER, &op) == OPSCOPE_OK;
    if (*is_known) {
        opscope_recorder_extra_cost(op->id, opscope__load_relaxed(&cost_ps));
    }
    return op;
}

static OPSCOPE__COLD const opscope_op *add(int kind, const struct name *name, uint32_t place)
{
    static const struct name other = {.text = "other", .bytes = 5};
    struct names *names = &known[kind];
    const bool is_full = opscope__load_relaxed(&names->count) >= OPSCOPE__MARKS_NAME_LIMIT;
    bool is_known;
    const opscope_op *op = intern(kind, is_full ? &other : name, &is_known);
    while (is_known && !is_full) {
        const opscope_op *found = NULL;
        /* Partner: the load in op_of(). */
        if (opscope__replace_release(&names->ops[place], &found, op)) {
            (void)opscope__add_relaxed(&names->count, 1);
            break;
        }
        if (found == op) {
            break; /* another thread has added the name meanwhile */
        }
        place = (place + 1) % PLACES;
    }
    return op;
}

static const opscope_op *op_of(int kind, const char *text)
{
    const struct name name = name_of(kind, text);
    uint32_t place = name.hash % PLACES;
    for (;;) {
        const opscope_op *op = opscope__load_acquire(&known[kind].ops[place]); /* partner: add() */
        if (op == NULL) {
            return add(kind, &name, place);
        }
        if (has_name(op, kind, &name)) {
            return op;
        }
        place = (place + 1) % PLACES;
    }
}

void opscope__marks_narrow(const wchar_t *wide, char *text, size_t bytes)
{
    char *end = text + bytes - 4; /* room for a character and the end */
    for (; *wide != 0 && text < end; wide++) {
        uint32_t code = (uint32_t)*wide;
        if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
            code = '?';
        }
        if (code < 0x80) {
            *text++ = (char)code;
        } else if (code < 0x800) {
            *text++ = (char)(0xC0 | code >> 6);
            *text++ = (char)(0x80 | (code & 0x3F));
        } else if (code < 0x10000) {
            *text++ = (char)(0xE0 | code >> 12);
            *text++ = (char)(0x80 | (code >> 6 & 0x3F));
            *text++ = (char)(0x80 | (code & 0x3F));
        } else {
            *text++ = (char)(0xF0 | code >> 18);
            *text++ = (char)(0x80 | (code >> 12 & 0x3F));
            *text++ = (char)(0x80 | (code >> 6 & 0x3F));
            *text++ = (char)(0x80 | (code & 0x3F));
        }
    }
    *text = '\0';
}

/* ---- threads ----------------------------------------------------------------------------------- */

/* Removes all entries: the ends of their ranges will not come. */
static OPSCOPE__COLD void lose_all(struct stack *own)
{
    own->is_losing = true;
    for (uint32_t i = own->count; i-- > 0;) {
        struct entry *entry = &own->entries[i];
        if (entry->state == OPEN && entry->range.snapshot != NULL) {
            if (opscope__range_lose(&entry->range)) {
                opscope__recorder_count_lost();
            }
            opscope__range_close_slow(&entry->range);
        }
        entry->state = CLOSED;
    }
    own->count = 0;
    own->is_losing = false;
}

static void thread_ends(void)
{
    struct stack *own = stack;
    if (own != NULL) {
        lose_all(own);
        stack = NULL;
        free(own);
    }
}

static void nothing(void)
{
}

static const struct opscope__demand_listener listener = {
    .changed = nothing, .fork_prepare = nothing, .fork_done = nothing, .thread_ends = thread_ends};

static OPSCOPE__COLD struct stack *make_stack(void)
{
    (void)opscope_thread_id(); /* makes the thread known to the library, which tells of its end */
    stack = malloc(sizeof *stack); /* large: only the pages in use are touched */
    if (stack != NULL) {
        stack->count = 0;
        stack->is_losing = false;
    }
    return stack;
}

/* ---- ranges ------------------------------------------------------------------------------------ */

/* The entry of a new range on this thread, not observed yet; NULL if it is not followed. */
static struct entry *take(int kind, const void *domain, int *before)
{
    struct stack *own = stack != NULL ? stack : make_stack();
    if (own == NULL || own->is_losing) {
        return NULL;
    }
    if (own->count == OPSCOPE__MARKS_OPEN_LIMIT) {
        lose_all(own); /* most likely pops are missing */
    }
    *before = (int)own->count;
    struct entry *entry = &own->entries[own->count++];
    entry->domain = domain;
    entry->range.snapshot = NULL;
    entry->kind = (uint8_t)kind;
    entry->state = OPEN;
    return entry;
}

/* Whether a callback wants the next range. */
static bool is_wanted(int kind)
{
    static const opscope_op any = {.scope = OPSCOPE_USER_SCOPE};
    return opscope__load_relaxed(&is_followed[kind]) && !opscope__range_is_skipped(&any);
}

static int push(int kind, const void *domain, const char *name)
{
    int before = 0;
    struct entry *entry = take(kind, domain, &before);
    if (entry != NULL && is_wanted(kind)) {
        opscope__range_open_slow(&entry->range, op_of(kind, name), NULL);
    }
    return before;
}

static int pop(int kind, const void *domain)
{
    struct stack *own = stack;
    if (own == NULL || own->is_losing) {
        return 0;
    }
    uint32_t at = own->count;
    while (at > 0 && (own->entries[at - 1].state != OPEN || own->entries[at - 1].kind != kind ||
                      own->entries[at - 1].domain != domain)) {
        at--;
    }
    if (at > 0) {
        struct entry *entry = &own->entries[at - 1];
        entry->state = CLOSING;
        opscope_range_close(&entry->range);
        entry->state = CLOSED;
        while (own->count > 0 && own->entries[own->count - 1].state == CLOSED) {
            own->count--;
        }
    }
    return (int)own->count;
}

int opscope__marks_push(opscope_marks_kind kind, const void *domain, const char *name)
{
    return push((int)kind, domain, name);
}

int opscope__marks_push_wide(opscope_marks_kind kind, const void *domain, const wchar_t *name)
{
    int before = 0;
    struct entry *entry = take((int)kind, domain, &before);
    if (entry != NULL && is_wanted((int)kind)) {
        char text[OPSCOPE__MARKS_NAME_BYTES] = "";
        if (name != NULL) {
            opscope__marks_narrow(name, text, sizeof text);
        }
        opscope__range_open_slow(&entry->range, op_of((int)kind, text), NULL);
    }
    return before;
}

int opscope__marks_pop(opscope_marks_kind kind, const void *domain)
{
    return pop((int)kind, domain);
}

void opscope__marks_follow(opscope_marks_kind kind, bool follows)
{
    opscope__store_relaxed(&is_followed[kind], follows);
}

bool opscope__marks_is_followed(opscope_marks_kind kind)
{
    return opscope__load_relaxed(&is_followed[kind]);
}

const opscope_op *opscope__marks_wanted(opscope_marks_kind kind, const char *name)
{
    return is_wanted((int)kind) ? op_of((int)kind, name) : NULL;
}

/* ---- cost -------------------------------------------------------------------------------------- */

static uint64_t measure(void)
{
    enum { TURNS = 10, CALLS = 20 };
    opscope__cost_trial trial;
    if (!opscope__cost_trial_begin(&trial)) {
        return 0;
    }
    for (int turn = 0; turn < TURNS; turn++) {
        opscope__cost_trial_set(&trial, turn % 2 != 0);
        (void)push(TRIAL, NULL, "other"); /* also warms the caches */
        (void)pop(TRIAL, NULL);
        if (!opscope__cost_trial_start(&trial)) {
            break;
        }
        for (int i = 0; i < CALLS; i++) {
            (void)push(TRIAL, NULL, "other");
            (void)pop(TRIAL, NULL);
        }
        opscope__cost_trial_stop(&trial);
    }
    return opscope__cost_trial_end(&trial, CALLS);
}

void opscope__marks_measure(void)
{
    if (opscope__load_relaxed(&cost_ps) != 0) {
        return;
    }
    opscope__demand_listen(&listener);
    opscope__store_relaxed(&is_followed[TRIAL], true);
    const uint64_t extra_ps = measure();
    opscope__store_relaxed(&is_followed[TRIAL], false);
    opscope__store_relaxed(&cost_ps, extra_ps != 0 ? extra_ps : USUAL_PS);
}
