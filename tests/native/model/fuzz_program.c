/* tests/native/model/fuzz_program.c -- any bytes as the functions "forward" and "g" of a model,
 * separated by a NUL: a program that runs within its limits and releases all, or a reason; and
 * passes that leave a graph in order. */
#include <stdlib.h>

#include "graph_texts.h"
#include "model/program/passes.h"
#include "model/program/program.h"

enum { TENSOR_BYTES = 1 << 20, HEAP_BYTES = 1 << 20, ROUNDS = 200, INPUTS = 16, OUTPUTS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* ---- tensors that fit ---------------------------------------------------------------------------- */

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return bytes <= TENSOR_BYTES ? aligned_alloc(64, (bytes + 63) / 64 * 64 + 64) : NULL;
}

static void release(void *user, void *data, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(data);
}

static const opscope_allocator small = {"small", allocate, release, NULL};

static opscope_tensor *tensor(void)
{
    opscope_tensor *made;
    const int64_t sizes[] = {2, 3};
    CHECK_EQUAL(opscope_tensor_empty(2, sizes, OPSCOPE_FLOAT32, &small, &made), OPSCOPE_OK);
    for (int i = 0; i < 6; i++) {
        ((float *)opscope_tensor_data(made))[i] = (float)i;
    }
    return made;
}

/* ---- values of a type ----------------------------------------------------------------------------- */

static bool value_of(struct opscope__heap *heap, const struct opscope__graph_type *type,
                     struct opscope__value *out)
{
    struct opscope__sequence *parts;
    *out = opscope__value_none;
    switch ((enum opscope__graph_type_kind)type->kind) {
    case OPSCOPE__GRAPH_TENSOR:
        *out = opscope__value_tensor(tensor());
        return true;
    case OPSCOPE__GRAPH_INT:
        *out = opscope__value_int(2);
        return true;
    case OPSCOPE__GRAPH_FLOAT:
        *out = opscope__value_float(0.5);
        return true;
    case OPSCOPE__GRAPH_BOOL:
        *out = opscope__value_bool(true);
        return true;
    case OPSCOPE__GRAPH_STR:
        *out = opscope__value_text(opscope__text_new(heap, "\xC3\xA9", 2));
        return true;
    case OPSCOPE__GRAPH_DTYPE:
        *out = opscope__value_dtype(OPSCOPE_FLOAT64);
        return true;
    case OPSCOPE__GRAPH_OPTIONAL:
        return value_of(heap, type->parts[0], out);
    case OPSCOPE__GRAPH_LIST:
    case OPSCOPE__GRAPH_TUPLE:
        parts = opscope__sequence_new(heap, type->count);
        CHECK(parts != NULL);
        *out = type->kind == OPSCOPE__GRAPH_LIST ? opscope__value_list(parts)
                                                 : opscope__value_tuple(parts);
        for (uint32_t i = 0; i < type->count; i++) {
            struct opscope__value part;
            bool is_made = value_of(heap, type->parts[i], &part);
            CHECK_EQUAL(opscope__sequence_push(parts, part), OPSCOPE_OK);
            if (!is_made) {
                return false;
            }
        }
        return true;
    default:
        return type->kind == OPSCOPE__GRAPH_NONE;
    }
}

static int drop_line(void *user, const struct opscope__value *values, size_t count)
{
    (void)user;
    (void)values;
    return (int)(count & 0);
}

/* Twice: what the first run leaves behind must not reach the second. */
static void run(const struct opscope__program *program)
{
    const struct opscope__graph_block *body = opscope__program_graph(program)->body;
    const struct opscope__run_options options = {.rounds_limit = ROUNDS, .print = drop_line};
    struct opscope__heap heap = {.limit_bytes = HEAP_BYTES};
    struct opscope__value inputs[INPUTS], outputs[OUTPUTS];
    uint32_t made = 0;
    if (body->inputs.count > INPUTS || body->outputs.count > OUTPUTS) {
        return;
    }
    bool is_made = true;
    for (; is_made && made < body->inputs.count; made++) {
        is_made = body->inputs.at[made]->type->size < 100 &&
                  value_of(&heap, body->inputs.at[made]->type, &inputs[made]);
        if (body->inputs.at[made]->type->size >= 100) {
            break;
        }
    }
    for (int time = 0; is_made && time < 2; time++) {
        if (opscope__program_run(program, &heap, inputs, &options, outputs) != OPSCOPE_OK) {
            continue;
        }
        for (uint32_t i = 0; i < body->outputs.count; i++) {
            CHECK(opscope__value_is_of(&outputs[i], body->outputs.at[i].value->type));
            opscope__value_release(&outputs[i]);
        }
    }
    for (uint32_t i = 0; i < made; i++) {
        opscope__value_release(&inputs[i]);
    }
    CHECK_EQUAL(heap.live_bytes, 0);
}

/* Those whose bit is set; only a lack of memory may stop one. */
static void run_passes(struct opscope__model_graph *graph, size_t bits)
{
    if (opscope__graph_verify(graph) != OPSCOPE_OK) {
        return;
    }
    for (const struct opscope__graph_pass *pass = opscope__graph_passes; pass->name != NULL;
         pass++, bits /= 2) {
        size_t changed;
        if (bits % 2 == 1 && pass->run(graph, &changed) != OPSCOPE_OK) {
            CHECK(strstr(opscope_tensor_error(), "memory") != NULL ||
                  strstr(opscope_tensor_error(), "levels") != NULL);
        }
        graph_verify(graph);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *text = (const char *)data;
    const uint8_t *nul = bytes > 0 ? memchr(data, 0, bytes) : NULL;
    size_t first = nul != NULL ? (size_t)(nul - data) : bytes;
    struct opscope__graph_function functions[] = {{"forward", NULL}, {"g", NULL}};
    opscope_allocator_set_default(&small);
    size_t count = opscope__graph_parse(text, first, 1 << 22, &functions[0].graph) == OPSCOPE_OK;
    if (count == 1 && first < bytes) {
        count += opscope__graph_parse(text + first + 1, bytes - first - 1, 1 << 22,
                                      &functions[1].graph) == OPSCOPE_OK;
    }
    for (size_t i = 0; i < count; i++) {
        run_passes(functions[i].graph, bytes);
    }
    opscope_tensor *weight = tensor();
    const struct opscope__program_attribute attribute = {"w", weight};
    const struct opscope__program_source source = {.functions = functions,
                                                   .function_count = count,
                                                   .attributes = &attribute,
                                                   .attribute_count = 1,
                                                   .entry = "forward"};
    struct opscope__program *program = NULL;
    if (count > 0 && opscope__program_new(&source, &program) == OPSCOPE_OK) {
        run(program);
    }
    opscope__program_release(program);
    opscope_tensor_release(weight);
    for (size_t i = 0; i < count; i++) {
        opscope__graph_release(functions[i].graph);
    }
    return 0;
}
