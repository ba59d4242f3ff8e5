/* model/graph/parse.c -- graphs, read from text: a recursive descent, one level for each block. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/document/build.h"
#include "model/graph/memory.h"
#include "model/graph/name.h"
#include "model/graph/parser.h"
#include "model/graph/text.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

/* "%name : Type", before there is a value for it. */
struct definition {
    struct opscope__graph_word name;
    const struct opscope__graph_type *type;
};

/* A name of digits alone is a number. */
static bool is_number(struct opscope__graph_word name)
{
    size_t digits = 0;
    while (digits < name.bytes && opscope__graph_is_digit(name.at[digits])) {
        digits++;
    }
    return digits == name.bytes;
}

static bool parse_name(struct opscope__graph_parser *parser, struct opscope__graph_word *out)
{
    if (!opscope__graph_parser_take(parser, "%")) {
        return opscope__graph_parser_wanted(parser, "a value");
    }
    const char *at = parser->at;
    *out = opscope__graph_parser_word(parser, false);
    if (out->at != at || out->bytes == 0 ||
        (!is_number(*out) && !opscope__graph_is_value_name(out->at, out->bytes))) {
        return opscope__graph_parser_fail(parser, at, "not the name of a value");
    }
    return true;
}

static bool parse_definition(struct opscope__graph_parser *parser)
{
    struct definition definition;
    if (!parse_name(parser, &definition.name) || !opscope__graph_parser_need(parser, ":")) {
        return false;
    }
    definition.type = opscope__graph_parse_type(parser);
    return definition.type != NULL &&
           opscope__graph_buffer_push(&parser->definitions, &definition, sizeof definition);
}

/* Gives a new value the name of its definition. */
static bool define(struct opscope__graph_parser *parser, const struct definition *definition,
                   struct opscope__graph_value *value)
{
    struct opscope__graph_word name = definition->name;
    if (value == NULL) {
        return opscope__graph_parser_place(parser, name.at);
    }
    if (opscope__graph_name_map_find(&parser->values, name.at, name.bytes) != NULL) {
        return opscope__graph_parser_fail(parser, name.at, "%%%s is defined twice",
                                          opscope__printable(name.at, name.bytes).text);
    }
    if (!is_number(name) &&
        opscope__graph_set_name(parser->graph, value, name.at, name.bytes) < 0) {
        return opscope__graph_parser_place(parser, name.at);
    }
    return opscope__graph_name_map_add(&parser->values, name.at, name.bytes, value);
}

/* Makes the definitions that were read outputs of the node, or inputs of the block if there is no
 * node. */
static bool define_all(struct opscope__graph_parser *parser, struct opscope__graph_node *node,
                       struct opscope__graph_block *block)
{
    size_t count = parser->definitions.bytes / sizeof(struct definition);
    const struct definition *definitions = (const void *)parser->definitions.at;
    for (size_t i = 0; i < count; i++) {
        if (!define(parser, &definitions[i],
                    node != NULL ? opscope__graph_add_output(node, definitions[i].type)
                                 : opscope__graph_add_input(block, definitions[i].type))) {
            return false;
        }
    }
    parser->definitions.bytes = 0;
    return true;
}

/* "(%a : Tensor, ...):" */
static bool parse_inputs(struct opscope__graph_parser *parser, struct opscope__graph_block *block)
{
    if (!opscope__graph_parser_need(parser, "(")) {
        return false;
    }
    if (!opscope__graph_parser_take(parser, ")")) {
        do {
            if (!parse_definition(parser)) {
                return false;
            }
        } while (opscope__graph_parser_take(parser, ","));
        if (!opscope__graph_parser_take(parser, ")")) {
            return opscope__graph_parser_wanted(parser, "',' or ')'");
        }
    }
    return opscope__graph_parser_need(parser, ":") && define_all(parser, NULL, block);
}

static bool parse_use(struct opscope__graph_parser *parser)
{
    struct opscope__graph_word name;
    if (!parse_name(parser, &name)) {
        return false;
    }
    struct opscope__graph_value *value =
        opscope__graph_name_map_find(&parser->values, name.at, name.bytes);
    if (value == NULL) {
        return opscope__graph_parser_fail(parser, name.at, "%%%s is not defined before",
                                          opscope__printable(name.at, name.bytes).text);
    }
    return opscope__graph_buffer_push(&parser->uses, &value, sizeof value);
}

/* "(%a, ...)": inputs of the node, or what the block returns if there is no node. */
static bool parse_uses(struct opscope__graph_parser *parser, struct opscope__graph_node *node,
                       struct opscope__graph_block *block)
{
    if (!opscope__graph_parser_need(parser, "(")) {
        return false;
    }
    if (opscope__graph_parser_take(parser, ")")) {
        return true;
    }
    const char *at = parser->at;
    do {
        if (!parse_use(parser)) {
            return false;
        }
    } while (opscope__graph_parser_take(parser, ","));
    if (!opscope__graph_parser_take(parser, ")")) {
        return opscope__graph_parser_wanted(parser, "',' or ')'");
    }
    size_t count = parser->uses.bytes / sizeof(void *);
    struct opscope__graph_value *const *values = (void *)parser->uses.at;
    int status = node != NULL ? opscope__graph_set_inputs(node, values, count)
                              : opscope__graph_set_outputs(block, values, count);
    parser->uses.bytes = 0;
    return status == OPSCOPE_OK || opscope__graph_parser_place(parser, at);
}

static bool parse_attribute(struct opscope__graph_parser *parser, struct opscope__graph_node *node)
{
    struct opscope__graph_constant value;
    struct opscope__graph_word name = opscope__graph_parser_word(parser, false);
    if (name.bytes == 0) {
        return opscope__graph_parser_wanted(parser, "the name of an attribute");
    }
    if (!opscope__graph_parser_need(parser, "=") ||
        !opscope__graph_parse_constant(parser, &value)) {
        return false;
    }
    uint32_t before = node->attribute_count;
    if (opscope__graph_set_attribute(node, name.at, name.bytes, value) < 0) {
        return opscope__graph_parser_place(parser, name.at);
    }
    return node->attribute_count > before ||
           opscope__graph_parser_fail(parser, name.at, "the attribute %s is given twice",
                                      opscope__printable(name.at, name.bytes).text);
}

static bool parse_attributes(struct opscope__graph_parser *parser, struct opscope__graph_node *node)
{
    if (!opscope__graph_parser_take(parser, "[")) {
        return true;
    }
    do {
        if (!parse_attribute(parser, node)) {
            return false;
        }
    } while (opscope__graph_parser_take(parser, ","));
    return opscope__graph_parser_take(parser, "]") ||
           opscope__graph_parser_wanted(parser, "',' or ']'");
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* ", scope: net.head" */
static bool parse_scope(struct opscope__graph_parser *parser, struct opscope__graph_node *node)
{
    const char *behind = parser->at;
    if (!opscope__graph_parser_take(parser, ",")) {
        parser->at = behind; /* A comment may be next. */
        return true;
    }
    if (!opscope__graph_parser_need(parser, "scope") || !opscope__graph_parser_need(parser, ":")) {
        return false;
    }
    while (parser->at < parser->end && is_blank(*parser->at)) {
        parser->at++;
    }
    const char *at = parser->at;
    while (parser->at < parser->end && !is_blank(*parser->at) && *parser->at != '\n') {
        parser->at++;
    }
    return opscope__graph_set_scope(node, at, (size_t)(parser->at - at)) == OPSCOPE_OK ||
           opscope__graph_parser_place(parser, at);
}

/* A comment behind the node on the same line. */
static bool parse_location(struct opscope__graph_parser *parser, struct opscope__graph_node *node)
{
    const char *at = parser->at, *end = parser->end;
    while (at < end && is_blank(*at)) {
        at++;
    }
    if (at == end || *at != '#') {
        return true;
    }
    at++;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    end = newline != NULL ? newline : end;
    parser->at = end;
    while (at < end && is_blank(*at)) {
        at++;
    }
    while (end > at && is_blank(end[-1])) {
        end--;
    }
    return at == end || opscope__graph_set_location(node, at, (size_t)(end - at)) == OPSCOPE_OK ||
           opscope__graph_parser_place(parser, at);
}

static bool parse_nodes(struct opscope__graph_parser *parser, struct opscope__graph_block *block);

/* Whether "block0" or the like is next; `*number`: which. */
static bool is_block(struct opscope__graph_parser *parser, struct opscope__graph_word *number)
{
    static const char block[] = "block";
    *number = opscope__graph_parser_peek(parser, true);
    if (number->bytes < sizeof block || memcmp(number->at, block, sizeof block - 1) != 0) {
        return false;
    }
    number->at += sizeof block - 1;
    number->bytes -= sizeof block - 1;
    return is_number(*number);
}

static bool parse_blocks(struct opscope__graph_parser *parser, struct opscope__graph_node *node)
{
    struct opscope__graph_word number;
    while (is_block(parser, &number)) {
        char wanted[20];
        snprintf(wanted, sizeof wanted, "%u", node->block_count);
        if (!opscope__graph_word_is(number, wanted)) {
            return opscope__graph_parser_fail(
                parser, parser->at, "block%s, where there should be block%s",
                opscope__printable(number.at, number.bytes).text, wanted);
        }
        struct opscope__graph_block *block = opscope__graph_add_block(node);
        if (block == NULL) {
            return opscope__graph_parser_place(parser, parser->at);
        }
        parser->at = number.at + number.bytes;
        if (!parse_inputs(parser, block) || !parse_nodes(parser, block) ||
            !opscope__graph_parser_need(parser, "->") || !parse_uses(parser, NULL, block)) {
            return false;
        }
    }
    return true;
}

static bool parse_node(struct opscope__graph_parser *parser, struct opscope__graph_block *block)
{
    if (*parser->at == '%') {
        do {
            if (!parse_definition(parser)) {
                return false;
            }
        } while (opscope__graph_parser_take(parser, ","));
        if (!opscope__graph_parser_take(parser, "=")) {
            return opscope__graph_parser_wanted(parser, "',' or '='");
        }
    }
    struct opscope__graph_word kind = opscope__graph_parser_word(parser, true);
    if (kind.bytes == 0) {
        return opscope__graph_parser_wanted(parser, "a node");
    }
    struct opscope__graph_node *node = opscope__graph_append(block, kind.at, kind.bytes);
    if (node == NULL) {
        return opscope__graph_parser_place(parser, kind.at);
    }
    return parse_attributes(parser, node) && parse_uses(parser, node, NULL) &&
           parse_scope(parser, node) && parse_location(parser, node) &&
           define_all(parser, node, NULL) && parse_blocks(parser, node);
}

/* Up to "return" or "->". */
static bool parse_nodes(struct opscope__graph_parser *parser, struct opscope__graph_block *block)
{
    for (;;) {
        struct opscope__graph_word word = opscope__graph_parser_peek(parser, true);
        if (parser->at == parser->end || *parser->at == '-' ||
            opscope__graph_word_is(word, "return")) {
            return true;
        }
        if (!parse_node(parser, block)) {
            return false;
        }
    }
}

static bool parse_graph(struct opscope__graph_parser *parser)
{
    struct opscope__graph_block *body = parser->graph->body;
    if (!opscope__graph_parser_need(parser, "graph") || !parse_inputs(parser, body) ||
        !parse_nodes(parser, body) || !opscope__graph_parser_need(parser, "return") ||
        !parse_uses(parser, NULL, body)) {
        return false;
    }
    opscope__graph_parser_skip(parser);
    return parser->at == parser->end ||
           opscope__graph_parser_fail(parser, parser->at, "something behind the graph");
}

int opscope__graph_parse(const char *text, size_t bytes, size_t bytes_limit,
                         struct opscope__model_graph **out)
{
    if (bytes > OPSCOPE__GRAPH_TEXT_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%zu bytes, more than the %d that are read",
                                   bytes, OPSCOPE__GRAPH_TEXT_LIMIT);
    }
    const char *start = bytes > 0 ? text : "";
    struct opscope__graph_parser parser = {.start = start,
                                           .at = start,
                                           .end = start + bytes,
                                           .graph = opscope__graph_new(bytes_limit)};
    if (parser.graph == NULL) {
        return opscope__graph_failed();
    }
    bool done = parse_graph(&parser);
    opscope__graph_name_map_free(&parser.values);
    free(parser.definitions.at);
    free(parser.uses.at);
    free(parser.types.at);
    free(parser.constants.at);
    if (!done) {
        opscope__graph_release(parser.graph);
        return opscope__graph_failed();
    }
    *out = parser.graph;
    return OPSCOPE_OK;
}
