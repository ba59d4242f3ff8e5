/* record/op.c -- the operators of this process: interned by name, overload, scope and phase; never
 * freed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "opscope/record.h"
#include "record/observer.h"

enum { OP_LIMIT = 65536, SLOT_LIMIT = 2 * OP_LIMIT, SLOTS_AT_FIRST = 1024 };

/* Filled in order of ids; `op_count` publishes each entry. */
static const opscope_op *ops[OP_LIMIT + 1];
static uint32_t
    op_count; /* store_release under the lock; load_acquire by readers without the lock */
/* Lock: open addressing; values are ids, 0 is free. Only the first slot_count entries are in use,
 * so a few hundred operators do not touch all pages of the table during a program's start. */
static uint32_t slots[SLOT_LIMIT];
static uint32_t slot_count =
    SLOTS_AT_FIRST; /* a power of two; at least half of the slots are free */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_registry(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_registry(void)
{
    pthread_mutex_unlock(&lock);
}

/* FNV-1a, 64 bits. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    } while (*text++ != '\0');
    return hash;
}

/* The slot where the search for an operator starts. */
static uint32_t first_slot(const char *name, const char *overload_name, unsigned scope)
{
    uint64_t hash = hash_text(hash_text(0xcbf29ce484222325u + scope, name), overload_name);
    return (uint32_t)(hash >> 32) & (slot_count - 1);
}

static uint32_t next_slot(uint32_t slot)
{
    return (slot + 1) & (slot_count - 1);
}

/* With the lock held: doubles the slots if one more operator would fill more than half of them. */
static void grow_slots(void)
{
    if (2 * (op_count + 1) <= slot_count || slot_count == SLOT_LIMIT) {
        return;
    }
    memset(slots, 0, slot_count * sizeof *slots);
    slot_count *= 2;
    for (uint32_t id = 1; id <= op_count; id++) {
        uint32_t slot = first_slot(ops[id]->name, ops[id]->overload_name, ops[id]->scope);
        while (slots[slot] != 0) {
            slot = next_slot(slot);
        }
        slots[slot] = id;
    }
}

static char *copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

/* With the lock held: makes a new operator in `slot`. */
static int make(const char *name, const char *overload_name, opscope_scope scope,
                opscope_phase phase, uint32_t slot, const opscope_op **out)
{
    if (op_count == OP_LIMIT) {
        return OPSCOPE_ERR_FULL;
    }
    opscope_op *op = malloc(sizeof *op);
    char *name_copy = copy_text(name);
    char *overload_copy = copy_text(overload_name);
    if (op == NULL || name_copy == NULL || overload_copy == NULL) {
        free(op);
        free(name_copy);
        free(overload_copy);
        return OPSCOPE_ERR_NO_MEMORY;
    }
    uint32_t id = op_count + 1;
    *op = (opscope_op){.name = name_copy,
                       .overload_name = overload_copy,
                       .id = id,
                       .scope = (uint8_t)scope,
                       .phase = (uint8_t)phase};
    ops[id] = op;
    slots[slot] = id;
    opscope__store_release(&op_count, id); /* partner: opscope_op_by_id */
    *out = op;
    return OPSCOPE_OK;
}

/* With the lock held. */
static int intern(const char *name, const char *overload_name, opscope_scope scope,
                  opscope_phase phase, const opscope_op **out)
{
    grow_slots();
    uint32_t slot = first_slot(name, overload_name, scope);
    for (; slots[slot] != 0; slot = next_slot(slot)) {
        const opscope_op *op = ops[slots[slot]];
        if (op->scope == scope && op->phase == phase && strcmp(op->name, name) == 0 &&
            strcmp(op->overload_name, overload_name) == 0) {
            *out = op;
            return OPSCOPE_OK;
        }
    }
    return make(name, overload_name, scope, phase, slot, out);
}

/* With the lock held: makes "other" first, so that its id is 1. */
static int start(void)
{
    const opscope_op *other;
    return op_count != 0 ? OPSCOPE_OK
                         : intern("other", "", OPSCOPE_USER_SCOPE, OPSCOPE_OTHER, &other);
}

int opscope_op_intern(const char *name, const char *overload_name, opscope_scope scope,
                      opscope_phase phase, const opscope_op **out)
{
    if (name == NULL || name[0] == '\0' || overload_name == NULL ||
        (unsigned)scope >= OPSCOPE_SCOPE_COUNT || (unsigned)phase >= OPSCOPE_UNKNOWN) {
        return OPSCOPE_ERR_INVALID;
    }
    opscope__process_start();
    lock_registry();
    int status = start();
    if (status == OPSCOPE_OK) {
        status = intern(name, overload_name, scope, phase, out);
    }
    unlock_registry();
    return status;
}

const opscope_op *opscope_op_by_id(uint32_t id)
{
    return id >= 1 && id <= opscope_op_count() ? ops[id] : NULL;
}

uint32_t opscope_op_count(void)
{
    return opscope__load_acquire(&op_count);
}

const opscope_op *opscope_op_other(void)
{
    const opscope_op *other = opscope_op_by_id(1);
    if (other == NULL &&
        opscope_op_intern("other", "", OPSCOPE_USER_SCOPE, OPSCOPE_OTHER, &other) != OPSCOPE_OK) {
        static const opscope_op without_memory = {"other", "", 1, OPSCOPE_OTHER,
                                                  OPSCOPE_USER_SCOPE};
        return &without_memory;
    }
    return other;
}

static const struct opscope__observer observer = {.fork_prepare = lock_registry,
                                                  .fork_unlock = unlock_registry};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_OPERATORS, &observer);
}
