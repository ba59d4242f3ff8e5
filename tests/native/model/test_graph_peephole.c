/* tests/native/model/test_graph_peephole.c -- what is simplified by what is right before it: graphs
 * before and after, without their dead code. */
#include "graph_texts.h"
#include "model/graph/passes/dead_code.h"
#include "model/graph/passes/peephole.h"

static void peephole(const char *before, size_t changes, const char *after)
{
    struct opscope__model_graph *graph = graph_of(before);
    size_t changed = 0;
    graph_verify(graph);
    CHECK_EQUAL(opscope__graph_peephole(graph, &changed), OPSCOPE_OK);
    CHECK_EQUAL(changed, changes);
    graph_verify(graph);
    for (size_t removed = 1; removed > 0 && changes > 0;) {
        removed = opscope__graph_remove_dead_code(graph);
    }
    graph_is(graph, after);
    CHECK_EQUAL(opscope__graph_peephole(graph, &changed), OPSCOPE_OK);
    CHECK_EQUAL(changed, 0);
    opscope__graph_release(graph);
}

static void stays(const char *graph)
{
    peephole(graph, 0, graph);
}

/* How often a rule fits nodes that compute %r from %x. */
static size_t changes_of(const char *type, const char *nodes)
{
    const bool is_tensor = strcmp(type, "Tensor") == 0;
    char text[2000];
    snprintf(text, sizeof text, "graph(%%x : %s, %%c : bool):\n%s%s  return (%%%s)\n", type, nodes,
             is_tensor ? "  %z : Tensor = aten::relu(%r)\n" : "", is_tensor ? "z" : "r");
    struct opscope__model_graph *graph = graph_of(text);
    size_t changed = 0;
    graph_verify(graph);
    CHECK_EQUAL(opscope__graph_peephole(graph, &changed), OPSCOPE_OK);
    graph_verify(graph);
    const struct opscope__graph_block *body = graph->body;
    const struct opscope__graph_value *result =
        is_tensor ? body->last->inputs.at[0].value : body->outputs.at[0].value;
    CHECK((changed > 0) == (result == body->inputs.at[0])); /* all rules here give the input */
    opscope__graph_release(graph);
    return changed;
}

static void views_that_undo_each_other_are_their_input(void)
{
    static const char *const zero = "  %0 : int = prim::Constant[value=0]()\n"
                                    "  %1 : int = prim::Constant[value=1]()\n"
                                    "  %2 : int = prim::Constant[value=-1]()\n"
                                    "  %p : List[int] = prim::Constant[value=[1, 2, 0]]()\n"
                                    "  %q : List[int] = prim::Constant[value=[2, 0, 1]]()\n"
                                    "  %l : List[int] = prim::Constant[value=[0]]()\n"
                                    "  %m : List[int] = prim::Constant[value=[-1]]()\n";
    static const struct {
        const char *first, *second;
        size_t changes;
    } pairs[] = {{"core::t(%x)", "core::t(%a)", 1},
                 {"core::transpose(%x, %0, %1)", "core::transpose(%a, %0, %1)", 1},
                 {"core::transpose(%x, %0, %1)", "core::transpose(%a, %1, %0)", 1},
                 {"core::transpose(%x, %0, %1)", "core::transpose(%a, %0, %2)", 0},
                 {"core::permute(%x, %p)", "core::permute(%a, %q)", 1},
                 {"core::permute(%x, %p)", "core::permute(%a, %p)", 0},
                 {"core::permute(%x, %p)", "core::permute(%a, %m)", 0},
                 {"core::unsqueeze(%x, %0)", "core::squeeze(%a, %l)", 1},
                 {"core::unsqueeze(%x, %2)", "core::squeeze(%a, %m)", 1},
                 {"core::unsqueeze(%x, %1)", "core::squeeze(%a, %l)", 0},
                 {"core::unsqueeze(%x, %0)", "core::squeeze(%a, %p)", 0},
                 {"core::neg(%x)", "core::neg(%a)", 0}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char nodes[1000];
        snprintf(nodes, sizeof nodes, "%s  %%a : Tensor = %s\n  %%r : Tensor = %s\n", zero,
                 pairs[i].first, pairs[i].second);
        CHECK_EQUAL(changes_of("Tensor", nodes), pairs[i].changes);
    }
}

static void dropout_outside_of_training_is_its_input(void)
{
    static const char *const nodes = "  %%p : float = prim::Constant[value=%s]()\n"
                                     "  %%t : bool = prim::Constant[value=%s]()\n"
                                     "  %%r : Tensor = core::dropout(%%x, %%p, %%t)\n";
    static const struct {
        const char *p, *training;
        size_t changes;
    } cases[] = {{"0.5", "False", 1}, {"0.5", "True", 0}, {"2.0", "False", 0}, {"nan", "False", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[500];
        snprintf(text, sizeof text, nodes, cases[i].p, cases[i].training);
        CHECK_EQUAL(changes_of("Tensor", text), cases[i].changes);
    }
}

static void conversions_to_the_same_type_are_their_input(void)
{
    CHECK_EQUAL(changes_of("int", "  %r : int = py::int(%x)\n"), 1);
    CHECK_EQUAL(changes_of("float", "  %r : float = py::float(%x)\n"), 1);
    CHECK_EQUAL(changes_of("int", "  %r : float = py::float(%x)\n"), 0);
    CHECK_EQUAL(changes_of("bool", "  %a : bool = py::not(%x)\n  %r : bool = py::not(%a)\n"), 1);
}

static void parts_of_tuples_and_lists_that_were_just_made_are_known(void)
{
    peephole("graph(%x : Tensor, %y : Tensor):\n"
             "  %t : Tuple[Tensor, Tensor] = prim::TupleConstruct(%x, %y)\n"
             "  %a : Tensor, %b : Tensor = prim::TupleUnpack(%t)\n"
             "  %c : Tensor = prim::TupleIndex[index=1](%t)\n"
             "  %l : List[Tensor] = prim::ListConstruct(%a, %c)\n"
             "  %d : Tensor, %e : Tensor = prim::ListUnpack(%l)\n"
             "  %z : Tensor = aten::add(%d, %b)\n"
             "  %w : Tensor = aten::mul(%z, %e)\n"
             "  return (%w)\n",
             5,
             "graph(%x : Tensor, %y : Tensor):\n"
             "  %z : Tensor = aten::add(%x, %y)\n"
             "  %w : Tensor = aten::mul(%z, %y)\n"
             "  return (%w)\n");
}

static void a_tensor_that_is_returned_stays_one_of_its_own(void)
{
    stays("graph(%x : Tensor):\n"
          "  %a : Tensor = core::t(%x)\n"
          "  %b : Tensor = core::t(%a)\n"
          "  return (%b)\n");
}

static void lists_are_not_followed_where_something_may_change_them(void)
{
    stays("graph(%x : Tensor, %y : Tensor):\n"
          "  %l : List[Tensor] = prim::ListConstruct(%x, %y)\n"
          "  aten::append(%l, %x)\n"
          "  %d : Tensor, %e : Tensor = prim::ListUnpack(%l)\n"
          "  return (%d, %e)\n");
}

static void an_if_whose_condition_is_known_is_its_branch(void)
{
    peephole("graph(%x : Tensor):\n"
             "  %c : bool = prim::Constant[value=False]()\n"
             "  %r : Tensor = prim::If(%c)\n"
             "    block0():\n"
             "      -> (%x)\n"
             "    block1():\n"
             "      %n : bool = prim::Constant[value=True]()\n"
             "      %s : Tensor = prim::If(%n)\n"
             "        block0():\n"
             "          %a : Tensor = aten::relu(%x)\n"
             "          -> (%a)\n"
             "        block1():\n"
             "          -> (%x)\n"
             "      %b : Tensor = aten::neg(%s)\n"
             "      -> (%b)\n"
             "  return (%r)\n",
             2,
             "graph(%x : Tensor):\n"
             "  %a : Tensor = aten::relu(%x)\n"
             "  %b : Tensor = aten::neg(%a)\n"
             "  return (%b)\n");
}

int main(void)
{
    RUN(views_that_undo_each_other_are_their_input);
    RUN(dropout_outside_of_training_is_its_input);
    RUN(conversions_to_the_same_type_are_their_input);
    RUN(parts_of_tuples_and_lists_that_were_just_made_are_known);
    RUN(a_tensor_that_is_returned_stays_one_of_its_own);
    RUN(lists_are_not_followed_where_something_may_change_them);
    RUN(an_if_whose_condition_is_known_is_its_branch);
    return 0;
}
