/* tests/native/model/test_graph_random.c -- random graphs with nested blocks are valid, return from
 * their text, and do the same after each pass. */
#include "model/graph/passes/dead_code.h"
#include "model/graph/passes/fuse_elementwise.h"
#include "model/graph/passes/merge_equal.h"
#include "random_graph.h"
#include "run_graph.h"

enum { GRAPHS = 3000, RUNS = 8 };

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

/* The results of one graph with several inputs are equal before and after; how many nodes fewer it
 * has. */
static size_t check_pass(struct opscope__model_graph *graph, uint64_t seed,
                         size_t (*pass)(struct opscope__model_graph *graph))
{
    char *before = graph_text(graph);
    uint64_t results[RUNS];
    for (uint64_t i = 0; i < RUNS; i++) {
        results[i] = run_graph(graph, seed + i);
    }
    size_t fewer = pass(graph);
    graph_verify(graph);
    graph_returns(graph);
    for (uint64_t i = 0; i < RUNS; i++) {
        if (run_graph(graph, seed + i) != results[i]) {
            fprintf(stderr, "%s\nbecomes\n\n%s", before, graph_text(graph));
        }
        CHECK(run_graph(graph, seed + i) == results[i]);
    }
    free(before);
    opscope__graph_release(graph);
    return fewer;
}

/* Of how many nodes of all graphs the pass makes fewer. */
static size_t does_the_same_after(size_t (*pass)(struct opscope__model_graph *graph))
{
    size_t fewer = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        fewer += check_pass(random_graph(seed), seed * 31, pass);
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

static bool is_elementwise(const char *kind)
{
    return strcmp(kind, "aten::add") == 0 || strcmp(kind, "aten::mul.Tensor") == 0 ||
           strcmp(kind, "aten::relu") == 0 || strcmp(kind, "aten::neg") == 0;
}

static size_t fuse(struct opscope__model_graph *graph)
{
    size_t fused = 0;
    CHECK_EQUAL(opscope__graph_fuse_elementwise(graph, is_elementwise, &fused), OPSCOPE_OK);
    return fused;
}

static void a_graph_with_fused_nodes_does_the_same(void)
{
    CHECK(does_the_same_after(fuse) > GRAPHS / 20);
}

static size_t run_both(struct opscope__model_graph *graph)
{
    return merge_equal(graph) + opscope__graph_remove_dead_code(graph) + merge_equal(graph);
}

static void a_graph_does_the_same_after_both_passes(void)
{
    CHECK(does_the_same_after(run_both) > GRAPHS);
}

/* Each trip makes a tensor of its own, and the list has those of two trips. */
static void tensors_of_different_trips_stay_separate(void)
{
    for (uint64_t seed = 0; seed < 32; seed += RUNS) {
        check_pass(graph_of("graph(%x : Tensor, %y : Tensor, %n : int, %m : int, %c : bool):\n"
                            "  %a : Tensor = aten::relu(%x)\n"
                            "  %i : int = aten::item(%a)\n"
                            "  %b : List[Tensor] = prim::ListConstruct(%x, %y)\n"
                            "  %v : Tensor, %l : List[Tensor] = prim::Loop(%n, %c, %x, %b)\n"
                            "    block0(%k : int, %p : Tensor, %q : List[Tensor]):\n"
                            "      %d : Tensor = aten::relu(%x)\n"
                            "      %r : List[Tensor] = prim::ListConstruct(%p, %d)\n"
                            "      -> (%c, %d, %r)\n"
                            "  return (%l, %i)\n"),
                   seed, merge_equal);
    }
}

int main(void)
{
    RUN(what_is_printed_is_read_as_the_same_graph);
    RUN(a_graph_without_its_dead_code_does_the_same);
    RUN(a_graph_with_equal_nodes_merged_does_the_same);
    RUN(a_graph_with_fused_nodes_does_the_same);
    RUN(a_graph_does_the_same_after_both_passes);
    RUN(tensors_of_different_trips_stay_separate);
    return 0;
}
