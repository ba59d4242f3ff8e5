/* tests/native/model/program_texts.h -- programs for tests, made of texts. */
#ifndef OPSCOPE_TESTS_PROGRAM_TEXTS_H
#define OPSCOPE_TESTS_PROGRAM_TEXTS_H

#include "graph_texts.h"
#include "model/program/program.h"

enum { PROGRAM_FUNCTIONS = 300 };

/* A program of pairs of a name and a text, which NULL ends; the first is the entry. Returns a
 * status. */
static inline int program_new(const char *const *texts, struct opscope__program **out)
{
    struct opscope__graph_function functions[PROGRAM_FUNCTIONS];
    size_t count = 0;
    for (; texts[2 * count] != NULL; count++) {
        CHECK(count < PROGRAM_FUNCTIONS);
        functions[count] =
            (struct opscope__graph_function){texts[2 * count], graph_of(texts[2 * count + 1])};
    }
    const struct opscope__program_source source = {
        .functions = functions, .function_count = count, .entry = texts[0]};
    int status = opscope__program_new(&source, out);
    for (size_t i = 0; i < count; i++) {
        opscope__graph_release(functions[i].graph);
    }
    return status;
}

static inline struct opscope__program *program_of(const char *text)
{
    struct opscope__program *program = NULL;
    int status = program_new((const char *const[]){"forward", text, NULL}, &program);
    if (status != OPSCOPE_OK) {
        fprintf(stderr, "%s\n", opscope_tensor_error());
    }
    CHECK_EQUAL(status, OPSCOPE_OK);
    return program;
}

/* The reason why there is no program of a graph. */
static inline const char *program_refused(const char *text)
{
    struct opscope__program *program = NULL;
    CHECK(program_new((const char *const[]){"forward", text, NULL}, &program) < 0);
    CHECK(program == NULL);
    return opscope_tensor_error();
}

static inline struct opscope__value program_tensor(float number)
{
    opscope_tensor *tensor;
    CHECK_EQUAL(opscope_tensor_empty(0, NULL, OPSCOPE_FLOAT32, NULL, &tensor), OPSCOPE_OK);
    *(float *)opscope_tensor_data(tensor) = number;
    return opscope__value_tensor(tensor);
}

#endif
