/* blas/slots.c -- a trampoline for each function, from pools.
 *
 * C on x86-64 and aarch64 passes an integer or a pointer in the next free one of the registers for
 * these, or else in the next eight bytes of the stack; a floating-point number in a register of its
 * own kind. So one signature forwards all: as many words as the longest routine has, and two
 * doubles, whose registers also hold floats. (CBLAS passes at most two by value.) Words beyond a
 * routine's own come from its caller's frame; the trampoline passes them on and never uses them.
 * The register of the third double is free: in it, a trampoline passes on the address of its slot
 * to the code that all share. trial.c verifies all this before the first slot is replaced.
 *
 * With no callback that wants operators, a trampoline is two compares and a jump: the compiler
 * makes a jump of the call, because the arguments already are where the function expects them.
 */
#include "bridges/blas/slots.h"

#include "base/atomics.h"
#include "base/hot.h"
#include "bridges/each.h"
#include "opscope/recorder.h"
#include "record/callback.h"
#include "recorder/cost.h"

#define WORDS_6 w0, w1, w2, w3, w4, w5
#define WORDS_8 WORDS_6, w6, w7
#define WORDS_16 WORDS_8, w8, w9, w10, w11, w12, w13, w14, w15
#define WORDS_28 WORDS_16, w16, w17, w18, w19, w20, w21, w22, w23, w24, w25, w26, w27
#define PARAMETERS_6 uint64_t w0, uint64_t w1, uint64_t w2, uint64_t w3, uint64_t w4, uint64_t w5
#define PARAMETERS_8 PARAMETERS_6, uint64_t w6, uint64_t w7
#define PARAMETERS_16                                                                              \
    PARAMETERS_8, uint64_t w8, uint64_t w9, uint64_t w10, uint64_t w11, uint64_t w12,              \
        uint64_t w13, uint64_t w14, uint64_t w15
#define PARAMETERS_28                                                                              \
    PARAMETERS_16, uint64_t w16, uint64_t w17, uint64_t w18, uint64_t w19, uint64_t w20,           \
        uint64_t w21, uint64_t w22, uint64_t w23, uint64_t w24, uint64_t w25, uint64_t w26,        \
        uint64_t w27
#define NUMBERS double x0, double x1

#if defined(__aarch64__)
#define IN_REGISTERS(list) list##_8
#else
#define IN_REGISTERS(list) list##_6
#endif
#if defined(__has_attribute) && __has_attribute(musttail)
#define JUMP __attribute__((musttail)) return
#else
#define JUMP return
#endif

typedef uint64_t (*jump_target)(IN_REGISTERS(PARAMETERS), NUMBERS, double x2);
typedef uint64_t (*short_function)(PARAMETERS_16, NUMBERS);
typedef uint64_t (*long_function)(PARAMETERS_28, NUMBERS);

enum { SHORT_WORDS = 16, LONG_WORDS = 28, SHORT_COUNT = 512, LONG_COUNT = 64 };

/* Written before the trampoline's address is known to anyone, and never taken back; `op` when the
 * first range opens. */
struct slot {
    opscope__slot_function original; /* NULL: free */
    struct opscope__blas_symbol symbol;
    const opscope_op *op; /* NULL: not interned yet */
};

static struct slot short_slots[SHORT_COUNT];
static struct slot long_slots[LONG_COUNT];
static uint64_t cost_ps; /* written before the first slot is taken */

/* ---- hot path ------------------------------------------------------------------------------- */

/* A slot's address in a register for doubles. */
union place {
    struct slot *slot;
    double number;
};
_Static_assert(sizeof(union place) == sizeof(double), "a register has all of an address");

/* A call in flight. */
struct call {
    opscope_range range;
    opscope_range_info info;
    size_t count;
    int64_t sizes[OPSCOPE__BLAS_SIZES];
};

static size_t box_sizes(void *arg, opscope_value *values, size_t capacity)
{
    const struct call *call = arg;
    for (size_t i = 0; i < call->count && i < capacity; i++) {
        values[i] = (opscope_value){.kind = OPSCOPE_VALUE_INT, .as.integer = call->sizes[i]};
    }
    return call->count;
}

/* Only what the program calls takes room for a name. */
static __attribute__((noinline, cold)) const opscope_op *intern(struct slot *slot)
{
    char name[OPSCOPE__BLAS_NAME_BYTES];
    opscope__blas_op_name(&slot->symbol, name);
    const opscope_op *op = opscope_op_other();
    if (opscope_op_intern(name, "", OPSCOPE_FUNCTION, OPSCOPE_OTHER, &op) == OPSCOPE_OK) {
        opscope_recorder_extra_cost(op->id, cost_ps);
    }
    opscope__store_release(&slot->op, op); /* partner: op_of(); all threads find the same one */
    return op;
}

static const opscope_op *op_of(struct slot *slot)
{
    const opscope_op *op = opscope__load_acquire(&slot->op); /* partner: intern() */
    return op != NULL ? op : intern(slot);
}

/* Whether no callback wants this thread's ranges: the countdown then has its largest value. This
 * does not decrement it, because calls too short for a range must not count. */
static inline bool is_idle(void)
{
    const struct opscope__hot *hot = &opscope__hot;
    /* Relaxed: as in opscope__range_is_skipped(). */
    return __builtin_expect(hot->version == opscope__load_relaxed(&opscope__version), 1) &&
           __builtin_expect(hot->skip[OPSCOPE_FUNCTION] > UINT64_MAX / 2, 1);
}

/* Whether a callback observes the call; then close its range. */
static bool open_range(struct call *call, struct slot *slot, const uint64_t *words)
{
    static const opscope_op any = {.scope = OPSCOPE_FUNCTION};
    call->count = opscope__blas_sizes(&slot->symbol, words, call->sizes);
    if (call->count == 0 || opscope__range_is_skipped(&any)) {
        return false;
    }
    call->info = (opscope_range_info){.sequence_nr = -1, .inputs = box_sizes, .inputs_arg = call};
    opscope__range_open_slow(&call->range, op_of(slot), &call->info);
    return call->range.snapshot != NULL;
}

/* Whether the call may get a range, judged by the words in registers alone: calls of 20 ns must not
 * pay for a copy of the words on the stack. */
static inline bool may_open(IN_REGISTERS(PARAMETERS), const struct slot *slot)
{
    const uint64_t words[] = {IN_REGISTERS(WORDS)};
    return !opscope__blas_is_small(&slot->symbol, words, sizeof words / sizeof *words);
}

/* Updates the thread's snapshot, and then goes on to the function: a thread that only makes small
 * calls would never be idle. In a function of its own, so that what calls it saves no register. */
static __attribute__((noinline)) uint64_t catch_up(IN_REGISTERS(PARAMETERS), NUMBERS, double place)
{
    const struct slot *slot = ((union place){.number = place}).slot;
    (void)opscope_has_callbacks();
    JUMP((jump_target)slot->original)(IN_REGISTERS(WORDS), x0, x1, place);
}

static inline bool is_late(void)
{
    /* Relaxed: as in opscope__range_is_skipped(). */
    return opscope__hot.version != opscope__load_relaxed(&opscope__version);
}

/* For all trampolines of a pool: a call that may get a range, and any call while a callback wants
 * operators. The latter declares only the words in registers, and ends in a jump, as a trampoline
 * does: the other words stay on the stack, where the function that it jumps to expects them. If a
 * compiler made a call of the jump, the trial would fail. */
#define DEFINE_CALL(kind, words)                                                                   \
    static uint64_t seen_##kind(PARAMETERS_##words, NUMBERS, double place)                         \
    {                                                                                              \
        struct slot *slot = ((union place){.number = place}).slot;                                 \
        const kind##_function original = (kind##_function)slot->original;                          \
        const uint64_t array[] = {WORDS_##words};                                                  \
        struct call call;                                                                          \
        if (!open_range(&call, slot, array)) {                                                     \
            return original(WORDS_##words, x0, x1);                                                \
        }                                                                                          \
        const uint64_t result = original(WORDS_##words, x0, x1);                                   \
        opscope__range_close_slow(&call.range);                                                    \
        return result;                                                                             \
    }                                                                                              \
    static __attribute__((noinline)) uint64_t awake_##kind(IN_REGISTERS(PARAMETERS), NUMBERS,      \
                                                           double place)                           \
    {                                                                                              \
        const struct slot *slot = ((union place){.number = place}).slot;                           \
        const opscope__slot_function target = may_open(IN_REGISTERS(WORDS), slot)                  \
                                                  ? (opscope__slot_function)seen_##kind            \
                                              : is_late() ? (opscope__slot_function)catch_up       \
                                                          : slot->original;                        \
        JUMP((jump_target)target)(IN_REGISTERS(WORDS), x0, x1, place);                             \
    }
DEFINE_CALL(short, 16)
DEFINE_CALL(long, 28)

/* ---- pools ------------------------------------------------------------------------------------ */

#define DEFINE_TRAMPOLINE(kind, n)                                                                 \
    static OPSCOPE__IN_ONE_LINE uint64_t kind##_##n(IN_REGISTERS(PARAMETERS), NUMBERS, double x2)  \
    {                                                                                              \
        if (!is_idle()) {                                                                          \
            const union place place = {.slot = &kind##_slots[n]};                                  \
            JUMP awake_##kind(IN_REGISTERS(WORDS), x0, x1, place.number);                          \
        }                                                                                          \
        JUMP((jump_target)kind##_slots[n].original)(IN_REGISTERS(WORDS), x0, x1, x2);              \
    }
#define DEFINE_SHORT(n) DEFINE_TRAMPOLINE(short, n)
#define DEFINE_LONG(n) DEFINE_TRAMPOLINE(long, n)
#define EACH_SHORT(X) OPSCOPE__EACH_256(X, 0) OPSCOPE__EACH_256(X, 1)
#define EACH_LONG(X)                                                                               \
    OPSCOPE__EACH_16(X, 0) OPSCOPE__EACH_16(X, 1) OPSCOPE__EACH_16(X, 2) OPSCOPE__EACH_16(X, 3)
EACH_SHORT(DEFINE_SHORT)
EACH_LONG(DEFINE_LONG)

#define SHORT(n) (opscope__slot_function) short_##n,
#define LONG(n) (opscope__slot_function) long_##n,
static const opscope__slot_function short_trampolines[SHORT_COUNT] = {EACH_SHORT(SHORT)};
static const opscope__slot_function long_trampolines[LONG_COUNT] = {EACH_LONG(LONG)};

static const struct pool {
    struct slot *slots;
    const opscope__slot_function *trampolines;
    size_t count;
    uint8_t words;
} pools[] = {
    {short_slots, short_trampolines, SHORT_COUNT, SHORT_WORDS},
    {long_slots, long_trampolines, LONG_COUNT, LONG_WORDS},
};
enum { POOL_COUNT = sizeof pools / sizeof *pools };

static bool is_same(const struct opscope__blas_symbol *a, const struct opscope__blas_symbol *b)
{
    return a->routine == b->routine && a->type == b->type && a->is_cblas == b->is_cblas &&
           a->has_64_bit == b->has_64_bit;
}

opscope__slot_function opscope__blas_trampoline(const struct opscope__blas_symbol *symbol,
                                                opscope__slot_function original,
                                                const opscope_op *op)
{
    const struct pool *pool = pools;
    while (pool < pools + POOL_COUNT && symbol->routine->words > pool->words) {
        pool++;
    }
    const size_t count = pool < pools + POOL_COUNT ? pool->count : 0;
    for (size_t i = 0; i < count; i++) {
        struct slot *slot = &pool->slots[i];
        if (slot->original == NULL) {
            *slot = (struct slot){.original = original, .symbol = *symbol, .op = op};
        }
        if (slot->original == original && is_same(&slot->symbol, symbol)) {
            return pool->trampolines[i];
        }
    }
    return NULL;
}

void opscope__blas_set_cost(uint64_t extra_ps)
{
    cost_ps = extra_ps;
}
