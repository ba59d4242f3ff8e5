/* tests/native/model/graph_texts.h -- graphs for tests: read from text, and printed. */
#ifndef OPSCOPE_TESTS_GRAPH_TEXTS_H
#define OPSCOPE_TESTS_GRAPH_TEXTS_H

#include <stdlib.h>

#include "../check.h"
#include "model/graph/text.h"
#include "model/graph/verify.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

static inline int graph_read(const char *text, size_t bytes, struct opscope__model_graph **out)
{
    /* A copy without a NUL behind it, so that the sanitizers see what is read beyond its end. */
    char *exact = malloc(bytes > 0 ? bytes : 1);
    CHECK(exact != NULL);
    memcpy(exact, text, bytes);
    int status = opscope__graph_parse(exact, bytes, OPSCOPE__GRAPH_USUAL_BYTES, out);
    free(exact);
    return status;
}

static inline struct opscope__model_graph *graph_of(const char *text)
{
    struct opscope__model_graph *graph = NULL;
    int status = graph_read(text, strlen(text), &graph);
    if (status != OPSCOPE_OK) {
        fprintf(stderr, "%.2000s\n%s\n", text, opscope_tensor_error());
    }
    CHECK_EQUAL(status, OPSCOPE_OK);
    return graph;
}

/* To be freed. */
static inline char *graph_text(struct opscope__model_graph *graph)
{
    char *text = NULL;
    size_t bytes = 0;
    CHECK_EQUAL(opscope__graph_print(graph, &text, &bytes), OPSCOPE_OK);
    CHECK_EQUAL(strlen(text), bytes);
    return text;
}

static inline void graph_is(struct opscope__model_graph *graph, const char *wanted)
{
    char *text = graph_text(graph);
    CHECK_TEXT(text, wanted);
    free(text);
}

/* What is printed is read as a graph that is printed as the same text. */
static inline void graph_returns(struct opscope__model_graph *graph)
{
    char *text = graph_text(graph);
    struct opscope__model_graph *again = graph_of(text);
    graph_is(again, text);
    opscope__graph_release(again);
    free(text);
}

/* Ends the test if the graph is wrong. */
static inline void graph_verify(struct opscope__model_graph *graph)
{
    if (opscope__graph_verify(graph) != OPSCOPE_OK) {
        fprintf(stderr, "%s\n%s\n", opscope_tensor_error(), graph_text(graph));
        _exit(1);
    }
}

#endif
