/* tests/native/model/test_graph_text.c -- graphs as text, and back. */
#include <locale.h>
#include <math.h>

#include "graph_texts.h"

static void is_printed_as(const char *text, const char *wanted)
{
    struct opscope__model_graph *graph = graph_of(text);
    graph_is(graph, wanted);
    graph_returns(graph);
    opscope__graph_release(graph);
}

static void stays(const char *text)
{
    is_printed_as(text, text);
}

static const char *const control_flow =
    "graph(%x : Tensor, %flag : bool, %n : int):\n"
    "  %3 : Tensor = aten::add(%x, %x, %n), scope: net.head # net.py:3:4\n"
    "  %y.1 : Tensor, %5 : int = prim::If(%flag) # net.py:4:0\n"
    "    block0():\n"
    "      %6 : Tensor = prim::Loop(%n, %flag, %3)\n"
    "        block0(%7 : int, %8 : Tensor):\n"
    "          %9 : Tensor = aten::relu(%8)\n"
    "          -> (%flag, %9)\n"
    "      -> (%6, %n)\n"
    "    block1():\n"
    "      -> (%x, %n)\n"
    "  prim::Print(%5)\n"
    "  return (%y.1)\n";

static void a_graph_with_nested_blocks_stays_as_it_is(void)
{
    stays(control_flow);
    stays("graph():\n  return ()\n");
}

static void types_of_every_kind_stay_as_they_are(void)
{
    stays("graph(%a : Tensor, %b : int, %c : float, %d : bool, %e : str, %f : None, %g : Dtype,"
          " %h : List[Tensor], %i : Tuple[], %j : Tuple[int, Tuple[str], List[Optional[float]]],"
          " %k : __torch__.models.Net_1, %l : Optional[a.b]):\n  return ()\n");
}

static void attributes_of_every_kind_stay_as_they_are(void)
{
    stays("graph():\n"
          "  %0 : int = prim::Constant[value=-9223372036854775808]()\n"
          "  %1 : bool = prim::Constant[value=True, other=False]()\n"
          "  %2 : None = prim::Constant[value=None]()\n"
          "  %3 : str = prim::Constant[value=\"a\\\"\\\\\\n\\u0001\xC3\xA9\"]()\n"
          "  %4 : List[int] = prim::Constant[value=[1, 2]]()\n"
          "  %5 : List[List[str]] = prim::Constant[value=[[], [\"a\", \"b\"]]]()\n"
          "  return ()\n");
}

static void a_string_may_contain_a_nul(void)
{
    struct opscope__model_graph *graph =
        graph_of("graph():\n  a::b[s=\"x\\u0000y\"]()\n  return ()\n");
    const struct opscope__graph_constant *s = opscope__graph_attribute(graph->body->first, "s");
    CHECK(s != NULL && s->count == 3 && memcmp(s->as.text, "x\0y", 4) == 0);
    CHECK(opscope__graph_attribute(graph->body->first, "t") == NULL);
    graph_returns(graph);
    opscope__graph_release(graph);
}

static double float_again(double real)
{
    struct opscope__model_graph *graph = opscope__graph_new(OPSCOPE__GRAPH_USUAL_BYTES);
    struct opscope__graph_node *node = opscope__graph_append(graph->body, "a::b", 4);
    struct opscope__graph_constant value = {.kind = OPSCOPE__GRAPH_CONSTANT_FLOAT, .as.real = real};
    CHECK_EQUAL(opscope__graph_set_attribute(node, "f", 1, value), OPSCOPE_OK);
    char *text = graph_text(graph);
    struct opscope__model_graph *again = graph_of(text);
    const struct opscope__graph_constant *f = opscope__graph_attribute(again->body->first, "f");
    CHECK(f != NULL && f->kind == OPSCOPE__GRAPH_CONSTANT_FLOAT);
    double result = f->as.real;
    free(text);
    opscope__graph_release(again);
    opscope__graph_release(graph);
    return result;
}

static void floats_return_bit_for_bit(void)
{
    static const double reals[] = {
        0.0,    -0.0, 1.0,      -1.5,     0.1,       1e20, 1e300, 0x1p-1074, 0x1.fffffffffffffp1023,
        1e-320, 1e15, 123456.0, INFINITY, -INFINITY, 1e5,  1e17,  2.0 / 3};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        double again = float_again(reals[i]);
        CHECK(memcmp(&again, &reals[i], sizeof again) == 0);
    }
    CHECK(isnan(float_again(NAN)) && isnan(float_again(-NAN)));
    uint64_t bits = 1;
    for (int i = 0; i < 2000; i++) {
        double real, again;
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(&real, &bits, sizeof real);
        again = float_again(real);
        CHECK(isnan(real) ? isnan(again) : memcmp(&again, &real, sizeof real) == 0);
    }
}

/* Where the machine has one of these locales, in which 1.5 is written "1,5". */
static void the_locale_of_the_program_changes_no_number(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "fr_FR.utf8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)setlocale(LC_NUMERIC, names[i]);
    }
    stays("graph():\n  a::b[f=[1.5, -2.25e-10, 3.0, 1e+100]]()\n  return ()\n");
    (void)setlocale(LC_NUMERIC, "C");
}

static void numbers_and_white_space_mean_nothing(void)
{
    is_printed_as("# first\n\n graph ( %7:Tensor,%x : List [ int ] ) : # of inputs\r\n"
                  "%007 : Tensor=aten::relu (\t%7 )#  a.py:1  \r\n"
                  "%9 : int = a::b[ k = [ 1,2 ] ](), scope: s.t # \n\n# not a location\n"
                  "return(%007,%9)# last",
                  "graph(%0 : Tensor, %x : List[int]):\n"
                  "  %2 : Tensor = aten::relu(%0) # a.py:1\n"
                  "  %3 : int = a::b[k=[1, 2]](), scope: s.t\n"
                  "  return (%2, %3)\n");
    stays("graph():\n  a::b() # # x, scope: y\n  return ()\n");
    stays("graph():\n  a::b(), scope: #\n  block::b()\n  return::b.c()\n  return ()\n");
}

static void a_long_graph_stays_as_it_is(void)
{
    enum { NODES = 5000, LINE = 60 };
    char *text = malloc((NODES + 2) * LINE), *at = text;
    CHECK(text != NULL);
    at += sprintf(at, "graph(%%v.0 : Tensor):\n");
    for (int i = 1; i <= NODES; i++) {
        at += sprintf(at, "  %%v.%d : Tensor = aten::add(%%v.%d, %%v.%d)\n", i, i - 1, i / 2);
    }
    sprintf(at, "  return (%%v.%d)\n", NODES);
    stays(text);
    free(text);
}

static void a_text_says_the_same_as_the_edits(void)
{
    struct opscope__model_graph *graph = opscope__graph_new(OPSCOPE__GRAPH_USUAL_BYTES);
    const struct opscope__graph_type *tensor = opscope__graph_simple_type(OPSCOPE__GRAPH_TENSOR);
    const struct opscope__graph_type *list =
        opscope__graph_type_of(graph, OPSCOPE__GRAPH_LIST, &tensor, 1);
    struct opscope__graph_value *x = opscope__graph_add_input(graph->body, tensor);
    CHECK_EQUAL(opscope__graph_set_name(graph, x, "x", 1), OPSCOPE_OK);
    struct opscope__graph_node *node =
        opscope__graph_append(graph->body, "prim::ListConstruct", strlen("prim::ListConstruct"));
    struct opscope__graph_value *both[] = {x, x};
    CHECK_EQUAL(opscope__graph_set_inputs(node, both, 2), OPSCOPE_OK);
    struct opscope__graph_value *y = opscope__graph_add_output(node, list);
    CHECK_EQUAL(opscope__graph_set_location(node, "a.py:1:2", 8), OPSCOPE_OK);
    CHECK_EQUAL(opscope__graph_set_scope(node, "net", 3), OPSCOPE_OK);
    CHECK_EQUAL(opscope__graph_set_outputs(graph->body, &y, 1), OPSCOPE_OK);
    graph_is(graph, "graph(%x : Tensor):\n"
                    "  %1 : List[Tensor] = prim::ListConstruct(%x, %x), scope: net # a.py:1:2\n"
                    "  return (%1)\n");
    opscope__graph_release(graph);
}

int main(void)
{
    RUN(a_graph_with_nested_blocks_stays_as_it_is);
    RUN(types_of_every_kind_stay_as_they_are);
    RUN(attributes_of_every_kind_stay_as_they_are);
    RUN(a_string_may_contain_a_nul);
    RUN(floats_return_bit_for_bit);
    RUN(the_locale_of_the_program_changes_no_number);
    RUN(numbers_and_white_space_mean_nothing);
    RUN(a_long_graph_stays_as_it_is);
    RUN(a_text_says_the_same_as_the_edits);
    return 0;
}
