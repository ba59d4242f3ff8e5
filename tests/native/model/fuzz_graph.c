/* tests/native/model/fuzz_graph.c -- any bytes as a graph: one that is printed and read again as
 * the same text, also after passes, or a reason with its place. */
#include "graph_texts.h"
#include "model/graph/passes/dead_code.h"
#include "model/graph/passes/merge_equal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct opscope__model_graph *graph = NULL;
    /* Half of the inputs soon reach the limit. */
    size_t limit = bytes % 2 == 0 ? 1 << 24 : 1 << 12;
    int status = opscope__graph_parse((const char *)data, bytes, limit, &graph);
    CHECK((status == OPSCOPE_OK) == (graph != NULL));
    if (status != OPSCOPE_OK) {
        CHECK_EQUAL(status, OPSCOPE_ERR_INVALID);
        CHECK(strncmp(opscope_tensor_error(), "line ", 5) == 0);
        return 0;
    }
    graph_returns(graph);
    if (opscope__graph_verify(graph) == OPSCOPE_OK) {
        size_t merged;
        CHECK_EQUAL(opscope__graph_merge_equal(graph, &merged), OPSCOPE_OK);
        graph_verify(graph);
        opscope__graph_remove_dead_code(graph);
        graph_verify(graph);
        graph_returns(graph);
    }
    opscope__graph_release(graph);
    return 0;
}
