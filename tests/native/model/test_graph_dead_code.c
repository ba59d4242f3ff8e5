/* tests/native/model/test_graph_dead_code.c -- which nodes nothing needs: graphs before and after.
 */
#include "graph_texts.h"
#include "model/graph/passes/dead_code.h"

static void dead_code(const char *before, size_t removed, const char *after)
{
    struct opscope__model_graph *graph = graph_of(before);
    graph_verify(graph);
    CHECK_EQUAL(opscope__graph_remove_dead_code(graph), removed);
    graph_verify(graph);
    graph_is(graph, after);
    CHECK_EQUAL(opscope__graph_remove_dead_code(graph), 0);
    opscope__graph_release(graph);
}

static void nodes_without_uses_are_removed_with_what_only_they_use(void)
{
    dead_code("graph(%x : Tensor, %c : bool):\n"
              "  %y : Tensor = aten::relu(%x)\n"
              "  %z : Tensor, %t : Tensor = aten::max(%y)\n"
              "  %w : Tensor = aten::neg(%z)\n"
              "  %u : Tensor = aten::__and__(%z, %z)\n"
              "  return (%t)\n",
              2,
              "graph(%x : Tensor, %c : bool):\n"
              "  %y : Tensor = aten::relu(%x)\n"
              "  %z : Tensor, %t : Tensor = aten::max(%y)\n"
              "  return (%t)\n");
}

static void control_flow_goes_if_nothing_in_it_has_an_effect(void)
{
    dead_code("graph(%x : Tensor, %c : bool, %n : int):\n"
              "  %one : int = prim::Constant[value=1]()\n"
              "  %y : Tensor = prim::Loop(%n, %c, %x)\n"
              "    block0(%i : int, %v : Tensor):\n"
              "      %w : Tensor = aten::add(%v, %x, %one)\n"
              "      -> (%c, %w)\n"
              "  prim::If(%c)\n"
              "    block0():\n"
              "      %d : Tensor = aten::relu(%x)\n"
              "      prim::Print(%x)\n"
              "      -> ()\n"
              "    block1():\n"
              "      %e : Tensor = aten::relu(%x)\n"
              "      -> ()\n"
              "  return (%x)\n",
              4,
              "graph(%x : Tensor, %c : bool, %n : int):\n"
              "  prim::If(%c)\n"
              "    block0():\n"
              "      prim::Print(%x)\n"
              "      -> ()\n"
              "    block1():\n"
              "      -> ()\n"
              "  return (%x)\n");
}

static void nodes_with_effects_stay(void)
{
    static const char graph[] = "graph(%x : Tensor, %m : a.Net):\n"
                                "  %0 : Tensor = aten::add_(%x, %x)\n"
                                "  %1 : Tensor = aten::add_.Tensor(%x, %x)\n"
                                "  %2 : Tensor = aten::add.out(%x, %x, %x)\n"
                                "  %3 : Tensor = aten::sum_out(%x, %x)\n"
                                "  %4 : Tensor = aten::__iand__(%x, %x)\n"
                                "  %5 : Tensor = prim::CallMethod[name=\"forward\"](%m, %x)\n"
                                "  %6 : Tensor = mine::operator(%x)\n"
                                "  %7 : Tensor = aten::rand_like(%x)\n"
                                "  aten::unknown(%x)\n"
                                "  return ()\n";
    /* The numbers of the values are those of a print. */
    struct opscope__model_graph *kept = graph_of(graph);
    char *text = graph_text(kept);
    dead_code(graph, 0, text);
    free(text);
    opscope__graph_release(kept);
}

int main(void)
{
    RUN(nodes_without_uses_are_removed_with_what_only_they_use);
    RUN(control_flow_goes_if_nothing_in_it_has_an_effect);
    RUN(nodes_with_effects_stay);
    return 0;
}
