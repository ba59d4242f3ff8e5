/* tensor/registry.c -- the table of operators: chosen by the CPU, parsed once, found by name. */
#include "tensor/registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET_COUNT = 512, OPERATOR_LIMIT = 512 };

/* Written once under `once`, then read by all. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
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

static const opscope_op *intern(const char *format, const char *name, opscope_scope scope,
                                opscope_phase phase)
{
    char text[160];
    snprintf(text, sizeof text, format, name);
    const opscope_op *op;
    return opscope_op_intern(text, "", scope, phase, &op) == OPSCOPE_OK ? op : opscope_op_other();
}

/* An operator whose schema does not parse or for which there is no room is not in the table. */
static void add(const struct opscope__operator_spec *spec, bool is_inplace)
{
    struct opscope_operator *op = calloc(1, sizeof *op);
    if (op == NULL || table_count == OPERATOR_LIMIT ||
        opscope__schema_parse(spec->schema, &op->schema) != OPSCOPE_OK) {
        free(op);
        return;
    }
    op->spec = spec;
    op->is_inplace = is_inplace;
    op->range = intern(is_inplace ? "core::%s_" : "core::%s", op->schema.name, OPSCOPE_FUNCTION,
                       OPSCOPE_FORWARD);
    op->backward_range = intern("core::%s_backward", op->schema.name, OPSCOPE_BACKWARD_FUNCTION,
                                OPSCOPE_BACKWARD);
    op->name = op->range->name;
    struct opscope_operator **bucket = &buckets[hash_of(op->name)];
    op->next = *bucket;
    *bucket = op;
    table[table_count++] = op;
}

static const struct opscope__operator_spec *const *choose(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        return opscope__operators_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return opscope__operators_avx2;
    }
#endif
    return opscope__operators_baseline;
}

static void fill(void)
{
    for (const struct opscope__operator_spec *const *spec = choose(); *spec != NULL; spec++) {
        add(*spec, false);
        if ((*spec)->has_inplace) {
            add(*spec, true);
        }
    }
}

const opscope_operator *opscope_operator_find(const char *name)
{
    pthread_once(&once, fill);
    const struct opscope_operator *op = buckets[hash_of(name)];
    while (op != NULL && strcmp(op->name, name) != 0) {
        op = op->next;
    }
    return op;
}

size_t opscope_operator_count(void)
{
    pthread_once(&once, fill);
    return table_count;
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
