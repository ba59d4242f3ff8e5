/* tests/native/model/test_graph_merge_equal.c -- which nodes are merged: graphs before and after.
 */
#include "graph_texts.h"
#include "model/graph/passes/merge_equal.h"

static void merge(const char *before, size_t wanted, const char *after)
{
    struct opscope__model_graph *graph = graph_of(before);
    size_t merged = 1000;
    graph_verify(graph);
    CHECK_EQUAL(opscope__graph_merge_equal(graph, &merged), OPSCOPE_OK);
    graph_verify(graph);
    graph_is(graph, after);
    CHECK_EQUAL(merged, wanted);
    opscope__graph_release(graph);
}

static void keep(const char *text)
{
    merge(text, 0, text);
}

static void equal_nodes_are_merged_and_then_what_they_make_equal(void)
{
    merge("graph(%x : Tensor):\n"
          "  %a : int = prim::Constant[value=1]()\n"
          "  %b : int = prim::Constant[value=1]()\n"
          "  %c : int = prim::Constant[value=2]()\n"
          "  %d : Tensor = aten::add(%x, %x, %a)\n"
          "  %e : Tensor = aten::add(%x, %x, %b)\n"
          "  %f : Tensor = aten::add(%x, %x, %c)\n"
          "  %g : Tensor = aten::mul(%d, %e)\n"
          "  %h : Tensor = aten::mul(%e, %f)\n"
          "  return (%g, %h)\n",
          2,
          "graph(%x : Tensor):\n"
          "  %a : int = prim::Constant[value=1]()\n"
          "  %c : int = prim::Constant[value=2]()\n"
          "  %d : Tensor = aten::add(%x, %x, %a)\n"
          "  %f : Tensor = aten::add(%x, %x, %c)\n"
          "  %g : Tensor = aten::mul(%d, %d)\n"
          "  %h : Tensor = aten::mul(%d, %f)\n"
          "  return (%g, %h)\n");
}

static void attributes_and_types_make_nodes_differ(void)
{
    keep("graph():\n"
         "  %a : float = prim::Constant[value=0.0]()\n"
         "  %b : float = prim::Constant[value=-0.0]()\n"
         "  %c : int = prim::Constant[value=1]()\n"
         "  %d : Optional[int] = prim::Constant[value=1]()\n"
         "  %e : bool = prim::Constant[value=True]()\n"
         "  %f : str = prim::Constant[value=\"a\"]()\n"
         "  %g : str = prim::Constant[value=\"b\"]()\n"
         "  return (%a, %b, %c, %d, %e, %f, %g)\n");
    merge("graph():\n"
          "  %a : float = prim::Constant[value=nan]()\n"
          "  %b : float = prim::Constant[value=nan]()\n"
          "  return (%a, %b)\n",
          1,
          "graph():\n"
          "  %a : float = prim::Constant[value=nan]()\n"
          "  return (%a, %a)\n");
}

static void inner_blocks_take_from_outer_ones_only(void)
{
    merge("graph(%x : int, %c : bool):\n"
          "  %a : int = aten::neg(%x)\n"
          "  %y : int = prim::If(%c)\n"
          "    block0():\n"
          "      %b : int = aten::neg(%x)\n"
          "      %d : int = aten::abs(%x)\n"
          "      %e : int = aten::mul(%b, %d)\n"
          "      -> (%e)\n"
          "    block1():\n"
          "      %f : int = aten::abs(%x)\n"
          "      -> (%f)\n"
          "  %g : int = aten::abs(%x)\n"
          "  return (%a, %y, %g)\n",
          1,
          "graph(%x : int, %c : bool):\n"
          "  %a : int = aten::neg(%x)\n"
          "  %y : int = prim::If(%c)\n"
          "    block0():\n"
          "      %d : int = aten::abs(%x)\n"
          "      %e : int = aten::mul(%a, %d)\n"
          "      -> (%e)\n"
          "    block1():\n"
          "      %f : int = aten::abs(%x)\n"
          "      -> (%f)\n"
          "  %g : int = aten::abs(%x)\n"
          "  return (%a, %y, %g)\n");
}

static void a_graph_that_changes_values_merges_immutable_ones_alone(void)
{
    merge("graph(%x : Tensor, %i : int):\n"
          "  %a : Tensor = aten::relu(%x)\n"
          "  %m : int = aten::size(%x, %i)\n"
          "  %p : int = aten::add(%i, %i)\n"
          "  %b : Tensor = aten::add_(%x, %a)\n"
          "  %c : Tensor = aten::relu(%x)\n"
          "  %n : int = aten::size(%x, %i)\n"
          "  %q : int = aten::add(%i, %i)\n"
          "  %d : Tensor = aten::mul(%a, %c)\n"
          "  return (%d, %m, %n, %p, %q)\n",
          1,
          "graph(%x : Tensor, %i : int):\n"
          "  %a : Tensor = aten::relu(%x)\n"
          "  %m : int = aten::size(%x, %i)\n"
          "  %p : int = aten::add(%i, %i)\n"
          "  %b : Tensor = aten::add_(%x, %a)\n"
          "  %c : Tensor = aten::relu(%x)\n"
          "  %n : int = aten::size(%x, %i)\n"
          "  %d : Tensor = aten::mul(%a, %c)\n"
          "  return (%d, %m, %n, %p, %p)\n");
}

static void nodes_with_effects_are_not_merged(void)
{
    keep("graph(%x : Tensor):\n"
         "  %a : Tensor = aten::rand_like(%x)\n"
         "  %b : Tensor = aten::rand_like(%x)\n"
         "  %c : Tensor = aten::mul(%a, %b)\n"
         "  return (%c)\n");
    keep("graph(%i : int):\n"
         "  %a : int = mine::next(%i)\n"
         "  %b : int = mine::next(%i)\n"
         "  return (%a, %b)\n");
    keep("graph():\n"
         "  %a : bool = aten::is_grad_enabled()\n"
         "  aten::set_grad_enabled(%a)\n"
         "  %c : bool = aten::is_grad_enabled()\n"
         "  return (%a, %c)\n");
}

static void tensors_that_are_returned_stay_separate(void)
{
    keep("graph(%x : Tensor):\n"
         "  %a : Tensor = aten::relu(%x)\n"
         "  %b : Tensor = aten::relu(%x)\n"
         "  return (%a, %b)\n");
    keep("graph(%x : Tensor):\n"
         "  %a : Tensor = aten::relu(%x)\n"
         "  %b : Tensor = aten::relu(%x)\n"
         "  %c : Tensor = aten::t(%b)\n"
         "  %d : List[Tensor] = prim::ListConstruct(%a, %c)\n"
         "  return (%d)\n");
    merge("graph(%x : Tensor):\n"
          "  %a : Tensor = aten::relu(%x)\n"
          "  %b : Tensor = aten::relu(%x)\n"
          "  %c : Tensor = aten::neg(%b)\n"
          "  %d : Tensor = aten::relu(%x)\n"
          "  %e : Tensor = aten::relu(%x)\n"
          "  %f : Tensor = aten::neg(%e)\n"
          "  return (%a, %c, %d, %f)\n",
          2,
          "graph(%x : Tensor):\n"
          "  %a : Tensor = aten::relu(%x)\n"
          "  %c : Tensor = aten::neg(%a)\n"
          "  %d : Tensor = aten::relu(%x)\n"
          "  %f : Tensor = aten::neg(%a)\n"
          "  return (%a, %c, %d, %f)\n");
}

static void a_tensor_that_a_loop_may_return_is_made_in_each_trip(void)
{
    merge("graph(%x : Tensor, %n : int, %c : bool):\n"
          "  %a : Tensor = aten::relu(%x)\n"
          "  %b : Tensor = aten::neg(%a)\n"
          "  %v : Tensor = prim::Loop(%n, %c, %b)\n"
          "    block0(%i : int, %p : Tensor):\n"
          "      %d : Tensor = aten::relu(%x)\n"
          "      %e : Tensor = aten::relu(%x)\n"
          "      %f : Tensor = aten::mul(%e, %p)\n"
          "      %g : List[Tensor] = prim::ListConstruct(%d, %f)\n"
          "      %h : Tensor = aten::cat(%g)\n"
          "      -> (%c, %h)\n"
          "  return (%v)\n",
          1,
          "graph(%x : Tensor, %n : int, %c : bool):\n"
          "  %a : Tensor = aten::relu(%x)\n"
          "  %b : Tensor = aten::neg(%a)\n"
          "  %v : Tensor = prim::Loop(%n, %c, %b)\n"
          "    block0(%i : int, %p : Tensor):\n"
          "      %d : Tensor = aten::relu(%x)\n"
          "      %f : Tensor = aten::mul(%d, %p)\n"
          "      %g : List[Tensor] = prim::ListConstruct(%d, %f)\n"
          "      %h : Tensor = aten::cat(%g)\n"
          "      -> (%c, %h)\n"
          "  return (%v)\n");
}

static void an_attribute_of_a_module_is_read_once(void)
{
    merge("graph(%m : a.Net, %x : Tensor):\n"
          "  %a : a.Linear = prim::GetAttr[name=\"fc\"](%m)\n"
          "  %b : Tensor = prim::GetAttr[name=\"weight\"](%a)\n"
          "  %c : a.Linear = prim::GetAttr[name=\"fc\"](%m)\n"
          "  %d : Tensor = prim::GetAttr[name=\"bias\"](%c)\n"
          "  %e : Tensor = aten::linear(%x, %b, %d)\n"
          "  return (%e)\n",
          1,
          "graph(%m : a.Net, %x : Tensor):\n"
          "  %a : a.Linear = prim::GetAttr[name=\"fc\"](%m)\n"
          "  %b : Tensor = prim::GetAttr[name=\"weight\"](%a)\n"
          "  %d : Tensor = prim::GetAttr[name=\"bias\"](%a)\n"
          "  %e : Tensor = aten::linear(%x, %b, %d)\n"
          "  return (%e)\n");
}

int main(void)
{
    RUN(equal_nodes_are_merged_and_then_what_they_make_equal);
    RUN(attributes_and_types_make_nodes_differ);
    RUN(inner_blocks_take_from_outer_ones_only);
    RUN(a_graph_that_changes_values_merges_immutable_ones_alone);
    RUN(nodes_with_effects_are_not_merged);
    RUN(tensors_that_are_returned_stay_separate);
    RUN(a_tensor_that_a_loop_may_return_is_made_in_each_trip);
    RUN(an_attribute_of_a_module_is_read_once);
    return 0;
}
