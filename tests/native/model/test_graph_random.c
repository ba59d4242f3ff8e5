/* tests/native/model/test_graph_random.c -- random graphs with nested blocks are valid, return from
 * their text, and do the same after each pass. */
#include "model/graph/passes/dead_code.h"
#include "model/graph/passes/merge_equal.h"
#include "random_graph.h"
#include "run_graph.h"

enum { GRAPHS = 3000, RUNS = 6 };

static void what_is_printed_is_read_as_the_same_graph(void)
{
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct opscope__model_graph *graph = random_graph(seed);
        graph_verify(graph);
        char *text = graph_text(graph);
        struct opscope__model_graph *again = graph_of(text);
        graph_verify(again);
        graph_is(again, text);
        CHECK(run_graph(graph, seed) == run_graph(again, seed));
        free(text);
        opscope__graph_release(again);
        opscope__graph_release(graph);
    }
}

static size_t merge_equal(struct opscope__model_graph *graph)
{
    size_t merged = 0;
    CHECK_EQUAL(opscope__graph_merge_equal(graph, &merged), OPSCOPE_OK);
    return merged;
}

/* Of how many nodes of all graphs the pass makes fewer. */
static size_t does_the_same_after(size_t (*pass)(struct opscope__model_graph *graph))
{
    size_t fewer = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        struct opscope__model_graph *graph = random_graph(seed);
        char *before = graph_text(graph);
        uint64_t results[RUNS];
        for (uint64_t i = 0; i < RUNS; i++) {
            results[i] = run_graph(graph, seed * 31 + i);
        }
        fewer += pass(graph);
        graph_verify(graph);
        graph_returns(graph);
        for (uint64_t i = 0; i < RUNS; i++) {
            if (run_graph(graph, seed * 31 + i) != results[i]) {
                fprintf(stderr, "%s\nbecomes\n\n%s", before, graph_text(graph));
            }
            CHECK(run_graph(graph, seed * 31 + i) == results[i]);
        }
        free(before);
        opscope__graph_release(graph);
    }
    return fewer;
}

static void a_graph_without_its_dead_code_does_the_same(void)
{
    CHECK(does_the_same_after(opscope__graph_remove_dead_code) > GRAPHS);
}

static void a_graph_with_equal_nodes_merged_does_the_same(void)
{
    CHECK(does_the_same_after(merge_equal) > GRAPHS / 2);
}

static size_t run_both(struct opscope__model_graph *graph)
{
    return merge_equal(graph) + opscope__graph_remove_dead_code(graph) + merge_equal(graph);
}

static void a_graph_does_the_same_after_both_passes(void)
{
    CHECK(does_the_same_after(run_both) > GRAPHS);
}

int main(void)
{
    RUN(what_is_printed_is_read_as_the_same_graph);
    RUN(a_graph_without_its_dead_code_does_the_same);
    RUN(a_graph_with_equal_nodes_merged_does_the_same);
    RUN(a_graph_does_the_same_after_both_passes);
    return 0;
}
