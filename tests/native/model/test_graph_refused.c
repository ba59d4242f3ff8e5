/* tests/native/model/test_graph_refused.c -- which texts are no graphs, and the reasons. */
#include "graph_texts.h"

static void refuse(const char *text, const char *reason)
{
    struct opscope__model_graph *graph = NULL;
    CHECK_EQUAL(graph_read(text, strlen(text), &graph), OPSCOPE_ERR_INVALID);
    CHECK_TEXT(opscope_tensor_error(), reason);
    CHECK(graph == NULL);
}

/* The node `line` inside a graph; its column is counted from there. */
static void refuse_node(const char *line, const char *reason)
{
    char text[4000];
    snprintf(text, sizeof text, "graph(%%x : Tensor):\n%s\nreturn ()\n", line);
    refuse(text, reason);
}

static void texts_that_end_too_early_are_refused(void)
{
    refuse("", "line 1, column 1: the text ends, where there should be 'graph'");
    refuse("graph", "line 1, column 6: the text ends, where there should be '('");
    refuse("graph(", "line 1, column 7: the text ends, where there should be a value");
    refuse("graph(%x", "line 1, column 9: the text ends, where there should be ':'");
    refuse("graph(%x :", "line 1, column 11: the text ends, where there should be a type");
    refuse("graph(%x : int", "line 1, column 15: the text ends, where there should be ',' or ')'");
    refuse("graph():\n", "line 2, column 1: the text ends, where there should be 'return'");
    refuse("graph():\n  %1 : int =",
           "line 2, column 13: the text ends, where there should be a node");
    refuse("graph():\nreturn (", "line 2, column 9: the text ends, where there should be a value");
    refuse("graph():\na::b[k=\"", "line 2, column 8: a text without an end");
    refuse("graph():\na::b[k=",
           "line 2, column 8: the text ends, where there should be a constant");
}

static void nodes_that_only_resemble_nodes_are_refused(void)
{
    refuse_node("%1 : int = add(%x)", "line 2, column 12: a kind that is not \"namespace::name\"");
    refuse_node("%1 = a::b(%x)", "line 2, column 4: '=', where there should be ':'");
    refuse_node("%1 : int a::b()", "line 2, column 10: 'a', where there should be ',' or '='");
    refuse_node("%1 : tensor = a::b()", "line 2, column 6: no type is named \"tensor\"");
    refuse_node("%1 : List[int, int] = a::b()", "line 2, column 6: a List of 2 types, not of one");
    refuse_node("%1 : List[int = a::b()",
                "line 2, column 15: '=', where there should be ',' or ']'");
    refuse_node("% 1 : int = a::b()", "line 2, column 2: not the name of a value");
    refuse_node("%1a : int = a::b()", "line 2, column 2: not the name of a value");
    refuse_node("a::b(%y)", "line 2, column 7: %y is not defined before");
    refuse_node("%y : int = a::b(%y)", "line 2, column 18: %y is not defined before");
    refuse_node("%x : int = a::b()", "line 2, column 2: %x is defined twice");
    refuse_node("a::b(%x", "line 3, column 1: 'r', where there should be ',' or ')'");
    refuse_node("a::b(), skope: a", "line 2, column 9: 's', where there should be 'scope'");
    refuse_node("a::b(), scope: \x01", "line 2, column 16: a scope that is not one word of text");
    refuse_node("a::b() # \x01", "line 2, column 10: a location that is not one line of text");
    refuse_node("a::b() # \xFF", "line 2, column 10: a location that is not one line of text");
    refuse_node("a::b()\nblock1():", "line 3, column 1: block1, where there should be block0");
    refuse_node("a::b()\nblock0():\nreturn ()",
                "line 4, column 1: 'r', where there should be '->'");
    refuse_node("-> ()", "line 2, column 1: '-', where there should be 'return'");
    refuse("graph():\nreturn () x", "line 2, column 11: something behind the graph");
}

static void attributes_that_are_no_constants_are_refused(void)
{
    refuse_node("a::b[k=true]()", "line 2, column 8: 't', where there should be a constant");
    refuse_node("a::b[k=01]()", "line 2, column 8: not a number as JSON writes it");
    refuse_node("a::b[k=[1, \"\\x\"]]()", "line 2, column 13: an escape that JSON does not have");
    refuse_node("a::b[k=9223372036854775808]()",
                "line 2, column 8: an integer that does not fit 64 bits");
    refuse_node("a::b[k=1e999]()", "line 2, column 8: a number too large for a double");
    refuse_node("a::b[k=1, k=2]()", "line 2, column 11: the attribute k is given twice");
    refuse_node("a::b[a.b=1]()",
                "line 2, column 6: an attribute's name that is not of letters, digits and '_'");
    refuse_node("a::b[]()",
                "line 2, column 6: ']', where there should be the name of an attribute");
}

/* "<start><open><open>...": too deep at the 65th. */
static void refuse_depth(const char *start, const char *open, const char *reason)
{
    char text[4000];
    size_t bytes = (size_t)snprintf(text, sizeof text, "%s", start);
    for (int i = 0; i < 100; i++) {
        bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "%s", open);
    }
    refuse(text, reason);
}

static void depth_is_limited(void)
{
    refuse_depth("graph(%x :\n", "List[", "line 2, column 321: a type of more than 64 levels");
    refuse_depth("graph():\na::b[k=\n", "[", "line 3, column 65: a list of more than 64 levels");
    refuse_depth("graph():\na::b()\n", "block0(): a::b()\n",
                 "line 66, column 1: blocks in blocks of more than 64 levels");
}

static void memory_and_counts_are_limited(void)
{
    enum { NODES = 10000 };
    static const char start[] = "graph():\n", node[] = "a::b()\n";
    char *text = malloc(sizeof start + NODES * sizeof node), *at = text;
    CHECK(text != NULL);
    at += sprintf(at, "%s", start);
    for (int i = 0; i < NODES; i++) {
        at += sprintf(at, "%s", node);
    }
    struct opscope__model_graph *graph = NULL;
    CHECK_EQUAL(opscope__graph_parse(text, (size_t)(at - text), 100000, &graph),
                OPSCOPE_ERR_INVALID);
    const char *reason = strstr(opscope_tensor_error(), ": ");
    CHECK_TEXT(reason, ": the graph needs more than its 100000 bytes of memory");
    CHECK_EQUAL(opscope__graph_parse(text, OPSCOPE__GRAPH_TEXT_LIMIT + 1u, 100000, &graph),
                OPSCOPE_ERR_INVALID);
    CHECK_TEXT(opscope_tensor_error(), "67108865 bytes, more than the 67108864 that are read");
    at = text + sprintf(text, "%sa::b[", start);
    for (int i = 0; i <= OPSCOPE__GRAPH_ATTRIBUTE_LIMIT; i++) {
        at += sprintf(at, "a%d=0, ", i);
    }
    CHECK_EQUAL(graph_read(text, (size_t)(at - text), &graph), OPSCOPE_ERR_INVALID);
    CHECK(strstr(opscope_tensor_error(), "a node of more than 64 attributes") != NULL);
    CHECK(graph == NULL && opscope__graph_new(10) == NULL);
    free(text);
}

int main(void)
{
    RUN(texts_that_end_too_early_are_refused);
    RUN(nodes_that_only_resemble_nodes_are_refused);
    RUN(attributes_that_are_no_constants_are_refused);
    RUN(depth_is_limited);
    RUN(memory_and_counts_are_limited);
    return 0;
}
