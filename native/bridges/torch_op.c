/* torch_op.c -- from a range of PyTorch's to its operator: by name, overload and scope.
 *
 * A cache in front of the interning, shared by all threads: operators are never freed, so an entry is
 * one pointer. Where to look comes from the address of the operator's schema, or from the name
 * itself where there is none (backward nodes, record_function). What is found is compared with the
 * name each time: schemas go and their memory is used again, and names are strings of the moment.
 *
 * Overloads of an operator are counted as one, as torch.profiler does; callbacks see which one it is.
 * So an operator with an overload is a copy of the one without, of the same id.
 */
#include "bridges/torch_range.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/hot.h"

enum { CACHE_LOG2 = 12, OVERLOAD_SLOTS = 1024 };

/* Each entry: store_release by whoever interned it, load_acquire by all. */
static const opscope_op *cache[1 << CACHE_LOG2];

static inline const opscope_op **place(uint64_t key)
{
    return &cache[key * 0x9e3779b97f4a7c15u >> (64 - CACHE_LOG2)];
}

static inline uint64_t hash_text(const char *text, uint64_t length)
{
    uint64_t hash = length;
    uint64_t word;
    for (; length >= sizeof word; length -= sizeof word, text += sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = (hash ^ word) * 0x9fb21c651e98df25u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, length);
    return (hash ^ word) * 0x9fb21c651e98df25u;
}

static inline bool is_op(const opscope_op *op, const char *name, const char *overload, uint8_t scope)
{
    return op != NULL && op->scope == scope && op->overload_name[0] == overload[0] &&
           strcmp(op->name, name) == 0 &&
           (overload[0] == '\0' || strcmp(op->overload_name, overload) == 0);
}

/* Names as PyTorch's own code forms them. */
opscope_phase opscope__torch_phase(const char *name, opscope_scope scope)
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

/* ---- overloads -------------------------------------------------------------------------------- */

struct overload {
    opscope_op op;
    struct overload *next;
};

static pthread_mutex_t overloads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct overload *overloads[OVERLOAD_SLOTS]; /* lock; by id of the operator */

void opscope__torch_ops_lock(void)
{
    pthread_mutex_lock(&overloads_lock);
}

void opscope__torch_ops_unlock(void)
{
    pthread_mutex_unlock(&overloads_lock);
}

/* With the lock held: that overload of an operator, made at the first call. */
static const opscope_op *overload_of(const opscope_op *op, const char *name)
{
    struct overload **slot = &overloads[op->id % OVERLOAD_SLOTS];
    for (const struct overload *known = *slot; known != NULL; known = known->next) {
        if (known->op.id == op->id && strcmp(known->op.overload_name, name) == 0) {
            return &known->op;
        }
    }
    struct overload *made = malloc(sizeof *made);
    char *copy = strdup(name);
    if (made == NULL || copy == NULL) {
        free(made);
        free(copy);
        return op;
    }
    *made = (struct overload){.op = *op, .next = *slot};
    made->op.overload_name = copy;
    *slot = made;
    return &made->op;
}

/* ---- finding ---------------------------------------------------------------------------------- */

static const opscope_op *OPSCOPE__SELDOM intern(const opscope_op **slot, const char *name,
                                                const char *overload, opscope_scope scope)
{
    const opscope_op *op;
    if (opscope_op_intern(name, "", scope, opscope__torch_phase(name, scope), &op) != OPSCOPE_OK) {
        return opscope_op_other(); /* no name, no room, no memory */
    }
    if (overload[0] != '\0') {
        opscope__torch_ops_lock();
        op = overload_of(op, overload);
        opscope__torch_ops_unlock();
    }
    opscope__store_release(slot, op);
    return op;
}

const opscope_op *OPSCOPE__HOT opscope__torch_op(const struct opscope__torch_function *fn)
{
    const uint8_t scope = opscope__torch_scope(fn);
    const char *name;
    const char *overload = "";
    const opscope_op **slot;
    if (opscope__torch_has_schema(fn)) {
        const void *schema = opscope__torch_schema(fn);
        name = opscope__torch_text(schema);
        overload = opscope__torch_overload(schema);
        slot = place((uintptr_t)schema);
    } else {
        const char *string = (const char *)fn + opscope__torch.layout.name;
        name = opscope__torch_text(string);
        slot = place(hash_text(name, OPSCOPE__TORCH_FIELD(uint64_t, string, sizeof name)));
    }
    const opscope_op *op = opscope__load_acquire(slot);
    return __builtin_expect(is_op(op, name, overload, scope), 1)
               ? op
               : intern(slot, name, overload, (opscope_scope)scope);
}
