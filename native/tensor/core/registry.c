/* tensor/core/registry.c -- the table of operators: selects the specs for the CPU, parses them
 * once, finds them by name. */
#include "tensor/core/registry.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "tensor/core/tensor.h"

enum { BUCKET_COUNT = 512, OPERATOR_LIMIT = 512 };

/* Filled under `once`, extended under `lock`, read by any thread at any time: an operator is
 * complete before a bucket or the count refers to it. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opscope_operator *buckets[BUCKET_COUNT];
static struct opscope_operator *table[OPERATOR_LIMIT];
static size_t table_count;

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    }
    return hash % BUCKET_COUNT;
}

static const opscope_op *intern(const char *name, const char *end, opscope_scope scope,
                                opscope_phase phase)
{
    char text[160];
    snprintf(text, sizeof text, "%s%s%s", strstr(name, "::") != NULL ? "" : "core::", name, end);
    const opscope_op *op;
    return opscope_op_intern(text, "", scope, phase, &op) == OPSCOPE_OK ? op : opscope_op_other();
}

/* The name of the node's range: "core::LogSoftmaxBackward" for "log_softmax",
 * "mine::Scale2DBackward" for "mine::scale2d", as PyTorch forms them. No operator may have such a
 * name (library.c), so that a node and the operators it calls have separate rows. */
static const opscope_op *intern_node(const char *name)
{
    char camel[128];
    const char *colons = strstr(name, "::");
    size_t count = colons != NULL ? (size_t)(colons - name) + 2 : 0;
    memcpy(camel, name, count);
    bool begins = true;
    for (const char *c = name + count; *c != '\0' && count < sizeof camel - 1; c++) {
        if (*c != '_') {
            camel[count++] = begins ? (char)toupper((unsigned char)*c) : *c;
        }
        begins = !isalpha((unsigned char)*c);
    }
    camel[count] = '\0';
    return intern(camel, OPSCOPE__NODE_NAME_END, OPSCOPE_BACKWARD_FUNCTION, OPSCOPE_BACKWARD);
}

/* Whether the node computes gradients. An operator without a backward still leaves a node, which
 * fails when a walk reaches it: a missing formula must not turn a gradient of a gradient into
 * zero. */
static bool is_gradient(const char *name)
{
    static const char end[] = "_backward";
    size_t length = strlen(name), tail = sizeof end - 1;
    return length > tail && strcmp(name + length - tail, end) == 0;
}

/* NULL if the schema does not parse or the table is full. */
static const opscope_operator *add(const struct opscope__operator_spec *spec, bool is_inplace)
{
    struct opscope_operator *op = calloc(1, sizeof *op);
    if (op == NULL || table_count == OPERATOR_LIMIT ||
        opscope__schema_parse(spec->schema, &op->schema) != OPSCOPE_OK) {
        free(op);
        return NULL;
    }
    op->spec = spec;
    op->is_inplace = is_inplace;
    op->has_node = spec->backward != NULL || is_gradient(op->schema.name);
    op->range = intern(op->schema.name, is_inplace ? "_" : "", OPSCOPE_FUNCTION, OPSCOPE_FORWARD);
    op->node_range = op->has_node ? intern_node(op->schema.name) : NULL;
    op->name = op->range->name;
    struct opscope_operator **bucket = &buckets[hash_of(op->name)];
    op->next = *bucket;
    table[table_count] = op;
    /* Partners: the acquiring loads of readers. */
    opscope__store_release(bucket, op);
    opscope__store_release(&table_count, table_count + 1);
    return op;
}

struct level {
    const char *name;
    const struct opscope__operator_spec *const *operators;
};

static const struct level LEVELS[] = {
    {"baseline", opscope__operators_baseline},
#if defined(OPSCOPE__HAS_X86_LEVELS)
    {"avx2", opscope__operators_avx2},
    {"avx512", opscope__operators_avx512},
#endif
};

/* Written under `once`. */
static const struct level *level;

static size_t highest_level(void)
{
#if defined(OPSCOPE__HAS_X86_LEVELS)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        return 2;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return 1;
    }
#endif
    return 0;
}

/* The environment may ask for a lower level than the CPU's, so that one machine can test all. */
static const struct level *choose(void)
{
    const char *wanted = getenv("OPSCOPE_TENSOR_CPU_LEVEL");
    size_t highest = highest_level();
    for (size_t i = 0; i < highest && wanted != NULL; i++) {
        if (strcmp(LEVELS[i].name, wanted) == 0) {
            return &LEVELS[i];
        }
    }
    return &LEVELS[highest];
}

/* Zen 4 stores 512 bits in two steps: where memory is the limit, 256 bits are faster there, an
 * addition of 1e5 to 4e6 float32 by a fifth. Elsewhere 512 bits are, by a tenth if the operands are
 * not aligned. */
#if defined(OPSCOPE__HAS_X86_LEVELS)
static bool halves_vectors(void)
{
    return level->operators == opscope__operators_avx512 && __builtin_cpu_is("amdfam19h");
}
#endif

/* Whether memory limits the operator, and not its instructions. */
static bool is_simple(const struct opscope__operator_spec *spec)
{
    enum { SIMPLE_COST = 3 };
    return spec->elementwise != NULL && spec->elementwise->cost <= SIMPLE_COST;
}

static void fill(void)
{
    opscope__shapes_start();
    level = choose();
    /* The lists of all levels have the same order. */
    const struct opscope__operator_spec *const *simple = level->operators;
#if defined(OPSCOPE__HAS_X86_LEVELS)
    simple = halves_vectors() ? opscope__operators_avx2 : simple;
#endif
    for (size_t i = 0; level->operators[i] != NULL; i++) {
        const struct opscope__operator_spec *spec = level->operators[i];
        spec = is_simple(spec) ? simple[i] : spec;
        (void)add(spec, false);
        if (spec->has_inplace) {
            (void)add(spec, true);
        }
    }
}

const char *opscope__registry_level(void)
{
    pthread_once(&once, fill);
    return level->name;
}

const opscope_operator *opscope__registry_add(const struct opscope__operator_spec *spec)
{
    pthread_once(&once, fill);
    pthread_mutex_lock(&lock);
    const opscope_operator *op = add(spec, false);
    pthread_mutex_unlock(&lock);
    return op;
}

const opscope_operator *opscope_operator_find(const char *name)
{
    pthread_once(&once, fill);
    const struct opscope_operator *op = opscope__load_acquire(&buckets[hash_of(name)]);
    while (op != NULL && strcmp(op->name, name) != 0) {
        op = op->next;
    }
    return op;
}

const char *opscope__operator_node_name(const opscope_operator *op)
{
    return op->node_range != NULL ? op->node_range->name : NULL;
}

size_t opscope_operator_count(void)
{
    pthread_once(&once, fill);
    return opscope__load_acquire(&table_count);
}

const opscope_operator *opscope_operator_at(size_t index)
{
    return index < opscope_operator_count() ? table[index] : NULL;
}

const char *opscope_operator_name(const opscope_operator *op)
{
    return op->name;
}

const struct opscope__operator_spec *opscope__operator_spec(const opscope_operator *op)
{
    return op->spec;
}

const struct opscope__schema *opscope__operator_schema(const opscope_operator *op)
{
    return &op->schema;
}
