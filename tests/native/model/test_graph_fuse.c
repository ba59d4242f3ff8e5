/* tests/native/model/test_graph_fuse.c -- which elementwise nodes are fused: graphs before and
 * after. */
#include "graph_texts.h"
#include "model/graph/passes/fuse_elementwise.h"

static bool is_elementwise(const char *kind)
{
    return strcmp(kind, "aten::add") == 0 || strcmp(kind, "aten::relu") == 0 ||
           strcmp(kind, "aten::neg") == 0;
}

static void fuse(const char *before, size_t groups, const char *after)
{
    struct opscope__model_graph *graph = graph_of(before);
    size_t fused = 0;
    graph_verify(graph);
    CHECK_EQUAL(opscope__graph_fuse_elementwise(graph, is_elementwise, &fused), OPSCOPE_OK);
    CHECK_EQUAL(fused, groups);
    graph_verify(graph);
    graph_is(graph, after);
    graph_returns(graph);
    CHECK_EQUAL(opscope__graph_fuse_elementwise(graph, is_elementwise, &fused), OPSCOPE_OK);
    CHECK_EQUAL(fused, 0);
    opscope__graph_release(graph);
}

static void a_chain_is_one_node_with_the_last_one_s_name_and_place(void)
{
    fuse("graph(%x : Tensor, %n : float):\n"
         "  %a : Tensor = aten::add(%x, %x, %n)\n"
         "  %b : Tensor = aten::relu(%a), scope: net # net.py:3\n"
         "  %c : Tensor = aten::add(%b, %x, %n), scope: net # net.py:4\n"
         "  %d : Tensor = aten::matmul(%c, %x)\n"
         "  return (%d)\n",
         1,
         "graph(%x : Tensor, %n : float):\n"
         "  %c : Tensor = prim::Fused(%x, %n), scope: net # net.py:4\n"
         "    block0(%3 : Tensor, %4 : float):\n"
         "      %5 : Tensor = aten::add(%3, %3, %4)\n"
         "      %6 : Tensor = aten::relu(%5), scope: net # net.py:3\n"
         "      %7 : Tensor = aten::add(%6, %3, %4), scope: net # net.py:4\n"
         "      -> (%7)\n"
         "  %d : Tensor = aten::matmul(%c, %x)\n"
         "  return (%d)\n");
}

static void what_others_use_stays_outside(void)
{
    /* %a is returned, and %c is one node alone. */
    static const char graph[] = "graph(%x : Tensor):\n"
                                "  %a : Tensor = aten::relu(%x)\n"
                                "  %b : Tensor = aten::neg(%a)\n"
                                "  %c : Tensor = aten::matmul(%b, %a)\n"
                                "  %d : Tensor = aten::neg(%c)\n"
                                "  return (%a, %d)\n";
    fuse(graph, 0, graph);
}

static void a_node_with_two_uses_in_the_group_is_in_it_once(void)
{
    fuse("graph(%x : Tensor):\n"
         "  %a : Tensor = aten::relu(%x)\n"
         "  %b : Tensor = aten::neg(%a)\n"
         "  %c : Tensor = aten::add(%a, %b)\n"
         "  return (%c)\n",
         1,
         "graph(%x : Tensor):\n"
         "  %c : Tensor = prim::Fused(%x)\n"
         "    block0(%2 : Tensor):\n"
         "      %3 : Tensor = aten::relu(%2)\n"
         "      %4 : Tensor = aten::neg(%3)\n"
         "      %5 : Tensor = aten::add(%3, %4)\n"
         "      -> (%5)\n"
         "  return (%c)\n");
}

static void no_node_moves_over_one_that_may_change_its_input(void)
{
    static const char graph[] = "graph(%x : Tensor):\n"
                                "  %a : Tensor = aten::relu(%x)\n"
                                "  %y : Tensor = aten::add_(%x, %x)\n"
                                "  %b : Tensor = aten::neg(%a)\n"
                                "  return (%b)\n";
    fuse(graph, 0, graph);
}

static void blocks_are_fused_by_themselves(void)
{
    fuse("graph(%x : Tensor, %c : bool):\n"
         "  %a : Tensor = aten::relu(%x)\n"
         "  %r : Tensor = prim::If(%c)\n"
         "    block0():\n"
         "      %b : Tensor = aten::neg(%a)\n"
         "      %d : Tensor = aten::relu(%b)\n"
         "      -> (%d)\n"
         "    block1():\n"
         "      -> (%x)\n"
         "  return (%r)\n",
         1,
         "graph(%x : Tensor, %c : bool):\n"
         "  %a : Tensor = aten::relu(%x)\n"
         "  %r : Tensor = prim::If(%c)\n"
         "    block0():\n"
         "      %d : Tensor = prim::Fused(%a)\n"
         "        block0(%5 : Tensor):\n"
         "          %6 : Tensor = aten::neg(%5)\n"
         "          %7 : Tensor = aten::relu(%6)\n"
         "          -> (%7)\n"
         "      -> (%d)\n"
         "    block1():\n"
         "      -> (%x)\n"
         "  return (%r)\n");
}

static void values_that_are_no_tensors_or_numbers_are_left_alone(void)
{
    static const char graph[] = "graph(%x : Tensor, %n : Optional[float], %i : int):\n"
                                "  %a : Tensor = aten::add(%x, %x, %n)\n"
                                "  %b : Tensor = aten::relu(%a)\n"
                                "  %j : int = aten::add(%i, %i)\n"
                                "  %k : int = aten::neg(%j)\n"
                                "  return (%b, %k)\n";
    fuse(graph, 0, graph);
}

/* A chain of that many nodes, each of which adds an input of its own. */
static size_t groups_of_chain(size_t nodes, bool has_own_inputs)
{
    static char text[1 << 16];
    size_t at = (size_t)sprintf(text, "graph(%%x : Tensor");
    for (size_t i = 0; i < nodes; i++) {
        at += (size_t)sprintf(text + at, ", %%i%zu : Tensor", i);
    }
    at += (size_t)sprintf(text + at, "):\n  %%v0 : Tensor = aten::neg(%%x)\n");
    for (size_t i = 1; i < nodes; i++) {
        at += (size_t)sprintf(text + at, "  %%v%zu : Tensor = aten::add(%%v%zu, %%i%zu)\n", i,
                              i - 1, has_own_inputs ? i : 0);
    }
    sprintf(text + at, "  return (%%v%zu)\n", nodes - 1);
    struct opscope__model_graph *graph = graph_of(text);
    size_t fused = 0;
    CHECK_EQUAL(opscope__graph_fuse_elementwise(graph, is_elementwise, &fused), OPSCOPE_OK);
    graph_verify(graph);
    opscope__graph_release(graph);
    return fused;
}

static void a_group_has_so_many_nodes_and_inputs_at_most(void)
{
    CHECK_EQUAL(groups_of_chain(OPSCOPE__GRAPH_FUSED_NODES, false), 1);
    CHECK_EQUAL(groups_of_chain(2 * OPSCOPE__GRAPH_FUSED_NODES, false), 2);
    CHECK_EQUAL(groups_of_chain(2 * OPSCOPE__GRAPH_FUSED_NODES + 2, false), 3);
    CHECK_EQUAL(groups_of_chain(OPSCOPE__GRAPH_FUSED_INPUTS, true), 1);
    CHECK_EQUAL(groups_of_chain(2 * OPSCOPE__GRAPH_FUSED_INPUTS, true), 3);
}

int main(void)
{
    RUN(a_chain_is_one_node_with_the_last_one_s_name_and_place);
    RUN(what_others_use_stays_outside);
    RUN(a_node_with_two_uses_in_the_group_is_in_it_once);
    RUN(no_node_moves_over_one_that_may_change_its_input);
    RUN(blocks_are_fused_by_themselves);
    RUN(values_that_are_no_tensors_or_numbers_are_left_alone);
    RUN(a_group_has_so_many_nodes_and_inputs_at_most);
    return 0;
}
