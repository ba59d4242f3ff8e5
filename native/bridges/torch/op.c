/* torch/op.c -- maps a range of PyTorch to its operator by name, overload and scope.
 *
 * This is a cache in front of the interning, shared by all threads. Cached operators are never
 * freed, so an entry is one pointer. The address of the operator's schema selects the entry; a
 * range without a schema (backward node, record_function) uses a hash of its name. Every look-up
 * compares the entry's name with the range's: a schema can be freed and its memory reused, and
 * other names are temporary strings.
 *
 * The overloads of an operator are counted together, as in torch.profiler; callbacks see the
 * overload. A cached operator is therefore a copy with the operator's id and the overload's name.
 */
#include "bridges/torch/op.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/hot.h"
#include "bridges/torch/count.h"
#include "bridges/torch/thread_state.h"
#include "opscope/recorder.h"
#include "recorder/cost.h"
#include "recorder/cost_compare.h"

enum { CACHE_LOG2 = 12, KNOWN_SLOTS = 1024 };

struct known_op {
    opscope_op op;
    uint32_t name_bytes;
    uint32_t overload_bytes;
    struct known_op *next; /* in the same slot */
    char texts[]; /* the name and the overload's, each with its NUL: beside the rest, so that
                     a look-up loads few cache lines */
};

/* Each entry: store_release by the thread that interned it, load_acquire by all. */
static const struct known_op *cache[1 << CACHE_LOG2];

static inline const struct known_op **place(uint64_t key)
{
    return &cache[key * 0x9e3779b97f4a7c15u >> (64 - CACHE_LOG2)];
}

/* The contents of a std::string. */
struct text {
    const char *start; /* NUL-terminated */
    uint64_t bytes;
};

static inline struct text text_of(const void *string, bool is_old)
{
    return (struct text){opscope__torch_text(string), opscope__torch_text_bytes(string, is_old)};
}

static inline uint64_t word_at(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return word;
}

static inline uint32_t half_word_at(const char *text)
{
    uint32_t word;
    memcpy(&word, text, sizeof word);
    return word;
}

static inline uint64_t hash_text(struct text text)
{
    uint64_t hash = text.bytes;
    uint64_t word = 0;
    for (; text.bytes >= sizeof word; text.bytes -= sizeof word, text.start += sizeof word) {
        hash = (hash ^ word_at(text.start)) * 0x9fb21c651e98df25u;
        hash ^= hash >> 32;
    }
    memcpy(&word, text.start, text.bytes);
    return (hash ^ word) * 0x9fb21c651e98df25u;
}

/* Inline, because a call of memcmp costs as much as the rest of the look-up. The last word compared
 * overlaps the one before. */
static inline bool is_text(const char *known, uint64_t known_bytes, struct text text)
{
    const uint64_t bytes = text.bytes;
    if (known_bytes != bytes) {
        return false;
    }
    if (bytes >= sizeof(uint64_t)) {
        const uint64_t last = bytes - sizeof(uint64_t);
        uint64_t difference = word_at(known + last) ^ word_at(text.start + last);
        for (uint64_t i = 0; i < last; i += sizeof(uint64_t)) {
            difference |= word_at(known + i) ^ word_at(text.start + i);
        }
        return difference == 0;
    }
    if (bytes >= sizeof(uint32_t)) {
        const uint64_t last = bytes - sizeof(uint32_t);
        return ((half_word_at(known) ^ half_word_at(text.start)) |
                (half_word_at(known + last) ^ half_word_at(text.start + last))) == 0;
    }
    return bytes == 0 || (known[0] == text.start[0] && known[bytes / 2] == text.start[bytes / 2] &&
                          known[bytes - 1] == text.start[bytes - 1]);
}

static inline bool is_op(const struct known_op *known, struct text name, struct text overload,
                         uint8_t scope)
{
    return known != NULL && known->op.scope == scope &&
           is_text(known->texts, known->name_bytes, name) &&
           is_text(known->op.overload_name, known->overload_bytes, overload);
}

/* Names as PyTorch's own code builds them. */
static opscope_phase phase_of(const char *name, opscope_scope scope)
{
    static const struct {
        const char *start;
        opscope_phase phase;
    } known[] = {
        {"autograd::engine::evaluate_function", OPSCOPE_BACKWARD},
        {"Optimizer.", OPSCOPE_OPTIMIZER}, /* step#..., zero_grad#... */
        {"enumerate(DataLoader)", OPSCOPE_DATA},
        {"c10d::", OPSCOPE_COMM},
        {"_c10d_functional::", OPSCOPE_COMM},
        {"nccl:", OPSCOPE_COMM},
        {"gloo:", OPSCOPE_COMM},
        {"mpi:", OPSCOPE_COMM},
        {"ucc:", OPSCOPE_COMM},
        {"xccl:", OPSCOPE_COMM},
        {"record_param_comms", OPSCOPE_COMM},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(name, known[i].start, strlen(known[i].start)) == 0) {
            return known[i].phase;
        }
    }
    if (scope == OPSCOPE_BACKWARD_FUNCTION) {
        return OPSCOPE_BACKWARD;
    }
    return scope == OPSCOPE_USER_SCOPE ? OPSCOPE_OTHER : OPSCOPE_FORWARD;
}

/* ---- operators known, by overload ------------------------------------------------------------- */

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct known_op *known_ops[KNOWN_SLOTS]; /* lock; by the operator's id */
static uint64_t
    extra_cost_ps; /* store_relaxed before the bridge is attached, load_relaxed by all */

void opscope__torch_ops_lock(void)
{
    pthread_mutex_lock(&known_lock);
}

void opscope__torch_ops_unlock(void)
{
    pthread_mutex_unlock(&known_lock);
}

/* Attaching measures the cost of an operator's range. A range of a backward node costs more:
 * PyTorch builds its name from a C++ type's, only for callbacks. Measured with 2.13.0: 410 ns, and
 * 116 ns for an operator. */
static void set_extra(const opscope_op *op, uint64_t extra_ps)
{
    enum { NODE_FACTOR = 4 };
    /* Before a drawn range and after it, PyTorch makes its list of callbacks anew. Measured with
     * 2.13.0: 3 times the cost of a recorded range in a loop of small operators, 5 to 10 around
     * larger ones. To look for callbacks costs a twentieth, for ranges that are not drawn as well.
     */
    static const double DRAWN = 6.5, NOT_DRAWN = 0.05;
    opscope_recorder_extra_cost(op->id,
                                op->phase == OPSCOPE_BACKWARD ? NODE_FACTOR * extra_ps : extra_ps);
    if (opscope__torch_counts()) { /* so no callback is drawn while ranges are only counted */
        opscope__cost_bridge_counts(op->id);
        return;
    }
    opscope__cost_where_few(op->id, DRAWN * OPSCOPE__COST_COMPARE_PROB + NOT_DRAWN);
    if (op->scope == OPSCOPE_BACKWARD_FUNCTION && !opscope__torch_keeps_states()) {
        /* PyTorch makes its lists anew as soon as there is a callback, though it may not fire. */
        opscope__cost_extra_is_counted(op->id);
    }
}

void opscope__torch_ops_cost(uint64_t extra_ps)
{
    opscope__torch_ops_lock();
    opscope__store_relaxed(&extra_cost_ps, extra_ps); /* partner: the load in intern */
    for (size_t slot = 0; slot < KNOWN_SLOTS; slot++) {
        for (const struct known_op *known = known_ops[slot]; known != NULL; known = known->next) {
            set_extra(&known->op, extra_ps);
        }
    }
    opscope__torch_ops_unlock();
}

/* With the lock held: that overload of an operator; the first call makes it. NULL if memory ran
 * out. */
static const struct known_op *overload_of(const opscope_op *op, struct text name,
                                          struct text overload)
{
    struct known_op **slot = &known_ops[op->id % KNOWN_SLOTS];
    for (const struct known_op *known = *slot; known != NULL; known = known->next) {
        if (known->op.id == op->id &&
            is_text(known->op.overload_name, known->overload_bytes, overload)) {
            return known;
        }
    }
    struct known_op *made = malloc(sizeof *made + name.bytes + 1 + overload.bytes + 1);
    if (made == NULL) {
        return NULL;
    }
    *made = (struct known_op){.op = *op,
                              .name_bytes = (uint32_t)name.bytes,
                              .overload_bytes = (uint32_t)overload.bytes,
                              .next = *slot};
    memcpy(made->texts, name.start, name.bytes + 1);
    made->op.overload_name =
        memcpy(made->texts + name.bytes + 1, overload.start, overload.bytes + 1);
    *slot = made;
    return made;
}

/* ---- finding ---------------------------------------------------------------------------------- */

static const opscope_op *OPSCOPE__COLD intern(const struct known_op **slot, struct text name,
                                              struct text overload, opscope_scope scope)
{
    const opscope_op *op;
    if (opscope_op_intern(name.start, "", scope, phase_of(name.start, scope), &op) != OPSCOPE_OK) {
        return opscope_op_other(); /* no name, no room, or no memory */
    }
    set_extra(op, opscope__load_relaxed(&extra_cost_ps));
    if (strlen(name.start) != name.bytes || strlen(overload.start) != overload.bytes) {
        return op; /* a name that contains a NUL is known by the part before it */
    }
    opscope__torch_ops_lock();
    const struct known_op *known = overload_of(op, name, overload);
    opscope__torch_ops_unlock();
    if (known == NULL) {
        return op;
    }
    opscope__store_release(slot, known);
    return &known->op;
}

static inline const opscope_op *find(const struct known_op **slot, struct text name,
                                     struct text overload, uint8_t scope)
{
    const struct known_op *known = opscope__load_acquire(slot);
    return __builtin_expect(is_op(known, name, overload, scope), 1)
               ? &known->op
               : intern(slot, name, overload, (opscope_scope)scope);
}

/* Twice in the code, so that the size of a string is a constant. */
static inline __attribute__((always_inline)) const opscope_op *op_of(
    const struct opscope__torch_function *fn, uint8_t scope, bool is_old)
{
    if (opscope__torch_has_schema(fn)) {
        const char *schema = opscope__torch_schema(fn);
        return find(place((uintptr_t)schema), text_of(schema, is_old),
                    text_of(schema + opscope__torch_string_bytes(is_old), is_old), scope);
    }
    const struct text name = text_of((const char *)fn + opscope__torch.layout.name, is_old);
    return find(place(hash_text(name)), name, (struct text){"", 0}, scope);
}

static __attribute__((noinline)) const opscope_op *op_with_old_strings(
    const struct opscope__torch_function *fn, uint8_t scope)
{
    return op_of(fn, scope, true);
}

const opscope_op *OPSCOPE__HOT opscope__torch_op(const struct opscope__torch_function *fn,
                                                 uint8_t scope)
{
    return __builtin_expect(opscope__torch.has_old_strings, 0) ? op_with_old_strings(fn, scope)
                                                               : op_of(fn, scope, false);
}

const opscope_op *opscope__torch_op_by_name(const struct opscope__torch_function *fn, uint8_t scope)
{
    const char *texts[] = {opscope__torch.name(fn), opscope__torch.overload_name != NULL
                                                        ? opscope__torch.overload_name(fn)
                                                        : ""};
    const struct text name = {texts[0], strlen(texts[0])};
    const struct text overload = {texts[1], strlen(texts[1])};
    return find(place(hash_text(name) ^ hash_text(overload)), name, overload, scope);
}

const opscope_op *opscope__torch_op_named(const char *name, size_t bytes, uint8_t scope)
{
    const struct text text = {name, bytes};
    return find(place(hash_text(text)), text, (struct text){"", 0}, scope);
}
