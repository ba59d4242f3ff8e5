/* tests/native/model/test_graph_edit.c -- nodes and values are added, replaced, moved, removed. */
#include "graph_texts.h"

static struct opscope__graph_node *node_at(const struct opscope__graph_block *block, int index)
{
    struct opscope__graph_node *node = block->first;
    for (; index > 0; index--) {
        node = node->next;
    }
    CHECK(node != NULL);
    return node;
}

static size_t use_count(const struct opscope__graph_value *value)
{
    size_t count = 0;
    for (const struct opscope__graph_use *use = value->first_use; use != NULL; use = use->next) {
        CHECK(use->value == value);
        count++;
    }
    return count;
}

static void all_uses_of_a_value_are_replaced(void)
{
    struct opscope__model_graph *graph = graph_of("graph(%x : int, %y : int):\n"
                                                  "  a::b(%x, %y, %x)\n"
                                                  "    block0():\n"
                                                  "      -> (%x)\n"
                                                  "  return (%x)\n");
    struct opscope__graph_value *x = graph->body->inputs.at[0], *y = graph->body->inputs.at[1];
    CHECK_EQUAL(use_count(x), 4);
    opscope__graph_replace_uses(x, x);
    CHECK_EQUAL(use_count(x), 4);
    opscope__graph_replace_use(&graph->body->outputs.at[0], y);
    CHECK_EQUAL(use_count(x), 3);
    opscope__graph_replace_uses(x, y);
    CHECK_EQUAL(use_count(x), 0);
    CHECK_EQUAL(use_count(y), 5);
    graph_is(graph, "graph(%x : int, %y : int):\n"
                    "  a::b(%y, %y, %y)\n"
                    "    block0():\n"
                    "      -> (%y)\n"
                    "  return (%y)\n");
    opscope__graph_release(graph);
}

static void inputs_are_set_again(void)
{
    struct opscope__model_graph *graph =
        graph_of("graph(%x : int):\n  a::b(%x, %x)\n  return (%x)\n");
    struct opscope__graph_value *x = graph->body->inputs.at[0], *four[] = {x, x, x, x};
    struct opscope__graph_node *node = graph->body->first;
    CHECK_EQUAL(opscope__graph_set_inputs(node, four, 4), OPSCOPE_OK);
    CHECK_EQUAL(use_count(x), 5);
    CHECK_EQUAL(opscope__graph_set_inputs(node, four, 1), OPSCOPE_OK);
    CHECK_EQUAL(opscope__graph_set_outputs(graph->body, four, 3), OPSCOPE_OK);
    CHECK_EQUAL(use_count(x), 4);
    graph_is(graph, "graph(%x : int):\n  a::b(%x)\n  return (%x, %x, %x)\n");
    opscope__graph_release(graph);
}

static void a_node_is_inserted_before_another(void)
{
    struct opscope__model_graph *graph = graph_of("graph():\n  a::b()\n  a::c()\n  return ()\n");
    CHECK(opscope__graph_insert_before(node_at(graph->body, 1), "x::y", 4) != NULL);
    CHECK(opscope__graph_insert_before(node_at(graph->body, 0), "x::z", 4) != NULL);
    CHECK(opscope__graph_append(graph->body, "x::last", 7) != NULL);
    CHECK(opscope__graph_append(graph->body, "xlast", 5) == NULL);
    graph_is(graph, "graph():\n  x::z()\n  a::b()\n  x::y()\n  a::c()\n  x::last()\n  return ()\n");
    opscope__graph_release(graph);
}

static void a_node_moves_also_into_another_block(void)
{
    struct opscope__model_graph *graph = graph_of("graph():\n"
                                                  "  a::b()\n"
                                                  "  a::c()\n"
                                                  "    block0():\n"
                                                  "      a::d()\n"
                                                  "        block0():\n"
                                                  "          -> ()\n"
                                                  "      -> ()\n"
                                                  "  return ()\n");
    struct opscope__graph_node *b = node_at(graph->body, 0), *c = node_at(graph->body, 1);
    struct opscope__graph_node *d = c->blocks[0]->first;
    CHECK_EQUAL(opscope__graph_move_before(c, d), OPSCOPE_ERR_INVALID);
    CHECK_TEXT(opscope_tensor_error(), "a::c moved into itself");
    CHECK_EQUAL(opscope__graph_move_before(c, c), OPSCOPE_OK);
    CHECK_EQUAL(opscope__graph_move_before(b, d), OPSCOPE_OK);
    CHECK_EQUAL(opscope__graph_move_before(d, c), OPSCOPE_OK);
    CHECK_EQUAL(d->blocks[0]->depth, 2);
    graph_is(graph, "graph():\n"
                    "  a::d()\n"
                    "    block0():\n"
                    "      -> ()\n"
                    "  a::c()\n"
                    "    block0():\n"
                    "      a::b()\n"
                    "      -> ()\n"
                    "  return ()\n");
    opscope__graph_release(graph);
}

/* A chain of blocks in blocks of that many levels below the body; its innermost block. */
static struct opscope__graph_block *make_chain(struct opscope__graph_block *block, int levels)
{
    for (; levels > 0; levels--) {
        struct opscope__graph_node *node = opscope__graph_append(block, "a::b", 4);
        CHECK(node != NULL);
        block = opscope__graph_add_block(node);
        CHECK(block != NULL);
    }
    return block;
}

static void a_move_keeps_to_the_limit_of_depth(void)
{
    struct opscope__model_graph *graph = opscope__graph_new(OPSCOPE__GRAPH_USUAL_BYTES);
    struct opscope__graph_block *inner = make_chain(graph->body, 40);
    struct opscope__graph_node *place = opscope__graph_append(inner, "x::y", 4);
    make_chain(graph->body, 24);
    CHECK_EQUAL(opscope__graph_move_before(graph->body->last, place), OPSCOPE_ERR_INVALID);
    CHECK_TEXT(opscope_tensor_error(), "blocks in blocks of more than 64 levels");
    CHECK_EQUAL(opscope__graph_move_before(graph->body->last->blocks[0]->first, place), OPSCOPE_OK);
    CHECK_EQUAL(place->previous->blocks[0]->depth, 42);
    graph_returns(graph);
    opscope__graph_release(graph);
}

static void only_a_node_without_uses_is_removed(void)
{
    struct opscope__model_graph *graph = graph_of("graph(%x : int):\n"
                                                  "  %y : int = a::b(%x)\n"
                                                  "  %z : int = a::c(%y)\n"
                                                  "    block0():\n"
                                                  "      %w : int = a::d(%x, %y)\n"
                                                  "      -> (%w, %y)\n"
                                                  "  return (%x)\n");
    struct opscope__graph_node *b = node_at(graph->body, 0), *c = node_at(graph->body, 1);
    CHECK_EQUAL(opscope__graph_remove(b), OPSCOPE_ERR_INVALID);
    CHECK_TEXT(opscope_tensor_error(), "a::b cannot be removed: its output 0 is used");
    CHECK_EQUAL(opscope__graph_remove(c), OPSCOPE_OK);
    CHECK_EQUAL(use_count(b->outputs.at[0]), 0);
    CHECK_EQUAL(use_count(graph->body->inputs.at[0]), 2);
    CHECK_EQUAL(opscope__graph_remove(b), OPSCOPE_OK);
    graph_is(graph, "graph(%x : int):\n  return (%x)\n");
    opscope__graph_release(graph);
}

static void values_are_numbered_in_the_order_of_the_text(void)
{
    struct opscope__model_graph *graph = graph_of("graph(%a : int):\n"
                                                  "  %b : int = x::y()\n"
                                                  "    block0(%c : int):\n"
                                                  "      -> ()\n"
                                                  "  %d : int, %e : int = x::y()\n"
                                                  "  return ()\n");
    CHECK_EQUAL(opscope__graph_number(graph), 5);
    CHECK_EQUAL(graph->body->inputs.at[0]->number, 0);
    CHECK_EQUAL(graph->body->first->outputs.at[0]->number, 1);
    CHECK_EQUAL(graph->body->first->blocks[0]->inputs.at[0]->number, 2);
    CHECK_EQUAL(graph->body->last->outputs.at[1]->number, 4);
    opscope__graph_release(graph);
}

static void types_of_shared_parts_do_not_grow_without_limit(void)
{
    struct opscope__model_graph *graph = opscope__graph_new(OPSCOPE__GRAPH_USUAL_BYTES);
    const struct opscope__graph_type *type = opscope__graph_simple_type(OPSCOPE__GRAPH_INT);
    for (int levels = 1; levels < 15; levels++) {
        const struct opscope__graph_type *pair[] = {type, type};
        type = opscope__graph_type_of(graph, OPSCOPE__GRAPH_TUPLE, pair, 2);
        CHECK(type != NULL && type->size == (2u << levels) - 1);
    }
    const struct opscope__graph_type *pair[] = {type, type};
    CHECK(opscope__graph_type_equal(pair[0], pair[1]));
    CHECK(opscope__graph_type_of(graph, OPSCOPE__GRAPH_TUPLE, pair, 2) != NULL);
    const struct opscope__graph_type *three[] = {type, type, type};
    CHECK(opscope__graph_type_of(graph, OPSCOPE__GRAPH_TUPLE, three, 3) == NULL);
    CHECK_TEXT(opscope_tensor_error(), "a type of more than 65536 parts");
    opscope__graph_release(graph);
}

int main(void)
{
    RUN(all_uses_of_a_value_are_replaced);
    RUN(inputs_are_set_again);
    RUN(a_node_is_inserted_before_another);
    RUN(a_node_moves_also_into_another_block);
    RUN(a_move_keeps_to_the_limit_of_depth);
    RUN(only_a_node_without_uses_is_removed);
    RUN(values_are_numbered_in_the_order_of_the_text);
    RUN(types_of_shared_parts_do_not_grow_without_limit);
    return 0;
}
