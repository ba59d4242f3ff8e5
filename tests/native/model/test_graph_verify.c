/* tests/native/model/test_graph_verify.c -- which graphs the verifier accepts, and why not others.
 */
#include "graph_texts.h"

static void accept(const char *text)
{
    struct opscope__model_graph *graph = graph_of(text);
    if (opscope__graph_verify(graph) != OPSCOPE_OK) {
        fprintf(stderr, "%s%s\n", text, opscope_tensor_error());
    }
    CHECK_EQUAL(opscope__graph_verify(graph), OPSCOPE_OK);
    opscope__graph_release(graph);
}

static void refuse_graph(struct opscope__model_graph *graph, const char *reason)
{
    CHECK_EQUAL(opscope__graph_verify(graph), OPSCOPE_ERR_INVALID);
    CHECK_TEXT(opscope_tensor_error(), reason);
}

/* A graph of these lines, with a value of each type that they need. */
static void refuse(const char *lines, const char *reason)
{
    char text[2000];
    snprintf(text, sizeof text, "graph(%%x : Tensor, %%i : int, %%c : bool):\n%s\nreturn (%%x)\n",
             lines);
    struct opscope__model_graph *graph = graph_of(text);
    refuse_graph(graph, reason);
    opscope__graph_release(graph);
}

static void graphs_of_all_kinds_of_nodes_are_accepted(void)
{
    accept("graph():\n  return ()\n");
    accept("graph(%x : Tensor, %i : int, %c : bool):\n"
           "  %y : Tensor, %j : int = prim::Loop(%i, %c, %x, %i)\n"
           "    block0(%k : int, %u : Tensor, %v : int):\n"
           "      %w : Tensor = prim::If(%c)\n"
           "        block0():\n"
           "          -> (%u)\n"
           "        block1():\n"
           "          %z : Tensor = aten::add(%u, %x)\n"
           "          -> (%z)\n"
           "      -> (%c, %w, %k)\n"
           "  prim::If(%c)\n"
           "    block0():\n"
           "      prim::Print(%y, %j)\n"
           "      -> ()\n"
           "    block1():\n"
           "      -> ()\n"
           "  return (%y, %y)\n");
}

static void constants_fit_their_types(void)
{
    accept("graph():\n"
           "  %0 : int = prim::Constant[value=1]()\n"
           "  %1 : float = prim::Constant[value=1.0]()\n"
           "  %2 : bool = prim::Constant[value=True]()\n"
           "  %3 : str = prim::Constant[value=\"a\"]()\n"
           "  %4 : None = prim::Constant[value=None]()\n"
           "  %5 : Dtype = prim::Constant[value=\"float32\"]()\n"
           "  %6 : List[List[int]] = prim::Constant[value=[[1], []]]()\n"
           "  %7 : Optional[Tensor] = prim::Constant[value=None]()\n"
           "  %8 : Optional[int] = prim::Constant[value=3]()\n"
           "  return ()\n");
    refuse("%0 : int = prim::Constant[value=1.0]()", "%3 = prim::Constant: its value is no int");
    refuse("%y : Tensor = prim::Constant[value=1]()",
           "%y = prim::Constant: its value is no Tensor");
    refuse("%0 : List[int] = prim::Constant[value=[1, True]]()",
           "%3 = prim::Constant: its value is no List[int]");
    refuse("%0 : List[int] = prim::Constant[value=1]()",
           "%3 = prim::Constant: its value is no List[int]");
    refuse("%0 : int = prim::Constant[wrong=1]()",
           "%3 = prim::Constant: it has no attribute \"value\"");
    refuse("%0 : int = prim::Constant[value=1](%x)",
           "%3 = prim::Constant: a constant takes nothing and produces one value");
    refuse("prim::Constant[value=1]()",
           "prim::Constant(): a constant takes nothing and produces one value");
}

static void uses_follow_definitions(void)
{
    refuse("prim::If(%c)\nblock0():\n%y : Tensor = a::b()\n-> ()\nblock1():\n-> ()\na::c(%y)",
           "a::c(%y): %y is used where it is not defined");
    refuse("prim::If(%c)\nblock0():\n%y : Tensor = a::b()\n-> ()\nblock1():\na::c(%x, %y)\n-> ()",
           "a::c(%x): %y is used where it is not defined");
    refuse("%y : Tensor = a::b()\nblock0(%z : int):\n-> (%y)",
           "%y = a::b: %y is used where it is not defined");
    struct opscope__model_graph *graph =
        graph_of("graph():\n  %0 : int = a::b()\n  %1 : int = a::c(%0)\n  return (%1)\n");
    CHECK_EQUAL(opscope__graph_move_before(graph->body->last, graph->body->first), OPSCOPE_OK);
    refuse_graph(graph, "%0 = a::c: %1 is used where it is not defined");
    opscope__graph_release(graph);
    graph = graph_of("graph():\n  a::b()\n    block0(%0 : int):\n      -> ()\n  return ()\n");
    struct opscope__graph_value **inner = graph->body->first->blocks[0]->inputs.at;
    CHECK_EQUAL(opscope__graph_set_outputs(graph->body, inner, 1), OPSCOPE_OK);
    refuse_graph(graph, "graph: %0 is used where it is not defined");
    opscope__graph_release(graph);
}

static void names_are_unique(void)
{
    struct opscope__model_graph *graph =
        graph_of("graph(%x : int):\n  %y : int = a::b()\n  return ()\n");
    struct opscope__graph_value *y = graph->body->first->outputs.at[0];
    CHECK_EQUAL(opscope__graph_set_name(graph, y, "x", 1), OPSCOPE_OK);
    refuse_graph(graph, "%x = a::b: %x is the name of two values");
    CHECK_EQUAL(opscope__graph_set_name(graph, y, "1", 1), OPSCOPE_ERR_INVALID);
    opscope__graph_release(graph);
}

static void the_blocks_of_if_agree(void)
{
    refuse("prim::If(%i)\nblock0():\n-> ()\nblock1():\n-> ()",
           "prim::If(%i): its input is not one bool");
    refuse("prim::If()\nblock0():\n-> ()\nblock1():\n-> ()",
           "prim::If(): its input is not one bool");
    refuse("prim::If(%c)\nblock0():\n-> ()", "prim::If(%c): 1 blocks, not 2");
    refuse("prim::If(%c)\nblock0():\n-> ()\nblock1(%k : int):\n-> ()",
           "prim::If(%c): block1 takes values");
    refuse("%y : int = prim::If(%c)\nblock0():\n-> (%i)\nblock1():\n-> ()",
           "%y = prim::If: 0 values that block1 returns, where it produces 1");
    refuse("%y : int = prim::If(%c)\nblock0():\n-> (%x)\nblock1():\n-> (%i)",
           "%y = prim::If: value 0 of those that block0 returns is Tensor, where it produces int");
}

static void a_loop_carries_the_same_types_everywhere(void)
{
    refuse("prim::Loop(%c, %i)\nblock0(%k : int):\n-> (%c)",
           "prim::Loop(%c): its first inputs are not an int and a bool");
    refuse("prim::Loop(%i)\nblock0(%k : int):\n-> (%c)",
           "prim::Loop(%i): its first inputs are not an int and a bool");
    refuse("prim::Loop(%i, %c)", "prim::Loop(%i): 0 blocks, not 1");
    refuse("prim::Loop(%i, %c)\nblock0():\n-> (%c)",
           "prim::Loop(%i): its block does not take an int first");
    refuse("prim::Loop(%i, %c)\nblock0(%k : int):\n-> ()",
           "prim::Loop(%i): its block does not return a bool first");
    refuse("prim::Loop(%i, %c, %x)\nblock0(%k : int):\n-> (%c)",
           "prim::Loop(%i): 1 values that it carries, where it produces 0");
    refuse("%y : Tensor = prim::Loop(%i, %c, %x)\nblock0(%k : int, %l : int):\n-> (%c, %x)",
           "%y = prim::Loop: value 0 of those that its block carries is int, where it produces "
           "Tensor");
    refuse("%y : Tensor = prim::Loop(%i, %c, %x)\nblock0(%k : int, %l : Tensor):\n-> (%c, %k)",
           "%y = prim::Loop: value 0 of those that its block returns is int, where it produces "
           "Tensor");
}

static void links_that_disagree_are_found(void)
{
    struct opscope__model_graph *graph =
        graph_of("graph(%x : int, %y : int):\n  a::b(%x)\n  a::c(%y)\n  return (%x)\n");
    struct opscope__graph_value *x = graph->body->inputs.at[0], *y = graph->body->inputs.at[1];
    struct opscope__graph_node *b = graph->body->first, *c = graph->body->last;
    b->inputs.at[0].value = y;
    refuse_graph(graph, "graph: a use of %x is of another value");
    b->inputs.at[0].value = x;
    b->inputs.at[0].node = c;
    refuse_graph(graph, "a::b(%x): use 0 is of another node or block");
    b->inputs.at[0].node = b;
    y->first_use = NULL;
    refuse_graph(graph, "a::c(%y): the value of use 0 does not know of it");
    y->first_use = &c->inputs.at[0];
    c->inputs.count = 0;
    refuse_graph(graph, "graph: it uses values 2 times, its values know of 3 uses");
    c->inputs.count = 1;
    c->previous = NULL;
    refuse_graph(graph, "a::b(%x): it is not where its block has it");
    c->previous = b;
    x->index = 1;
    refuse_graph(graph, "graph: %x is produced elsewhere");
    x->index = 0;
    x->type = NULL;
    refuse_graph(graph, "graph: %x has no type");
    x->type = y->type;
    CHECK_EQUAL(opscope__graph_verify(graph), OPSCOPE_OK);
    opscope__graph_release(graph);
}

static void a_value_of_another_graph_is_found(void)
{
    struct opscope__model_graph *one = graph_of("graph(%x : int):\n  return (%x)\n");
    struct opscope__model_graph *other = graph_of("graph(%y : int):\n  a::b()\n  return ()\n");
    CHECK_EQUAL(opscope__graph_set_inputs(other->body->first, one->body->inputs.at, 1), OPSCOPE_OK);
    refuse_graph(other, "graph: it uses values 1 times, its values know of 0 uses");
    refuse_graph(one, "graph: it uses values 1 times, its values know of 2 uses");
    opscope__graph_release(other);
    opscope__graph_release(one);
}

int main(void)
{
    RUN(graphs_of_all_kinds_of_nodes_are_accepted);
    RUN(constants_fit_their_types);
    RUN(uses_follow_definitions);
    RUN(names_are_unique);
    RUN(the_blocks_of_if_agree);
    RUN(a_loop_carries_the_same_types_everywhere);
    RUN(links_that_disagree_are_found);
    RUN(a_value_of_another_graph_is_found);
    return 0;
}
