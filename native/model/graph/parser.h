/* model/graph/parser.h -- the parser of graphs: its state, tokens and failures. */
#ifndef OPSCOPE_MODEL_GRAPH_PARSER_H
#define OPSCOPE_MODEL_GRAPH_PARSER_H

#include "model/graph/buffer.h"
#include "model/graph/graph.h"
#include "model/graph/name_map.h"

struct opscope__graph_parser {
    const char *start;
    const char *at;
    const char *end;
    struct opscope__model_graph *graph;
    struct opscope__graph_name_map values; /* by the names in the text */
    unsigned level;                        /* of types in types, or lists in lists */
    /* Stacks of what is read and not yet a part of the graph. */
    struct opscope__graph_buffer definitions;
    struct opscope__graph_buffer uses;
    struct opscope__graph_buffer types;
    struct opscope__graph_buffer constants;
};

struct opscope__graph_word {
    const char *at;
    size_t bytes; /* 0: something else is next */
};

/* ---- tokens (scan.c) ------------------------------------------------------------------------ */

/* All but `take` and `peek` report what they return false for. */

/* "line N, column M: ...", of that place in the text. Always false. */
bool opscope__graph_parser_fail(const struct opscope__graph_parser *parser, const char *at,
                                const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Names the place in the failure that a function of the graph, or of a document that began at
 * `parser->start`, reported last. Always false. */
bool opscope__graph_parser_place(const struct opscope__graph_parser *parser, const char *at);
/* "'x', where there should be ...": of the byte that is next. Always false. */
bool opscope__graph_parser_wanted(const struct opscope__graph_parser *parser, const char *wanted);
/* Skips white space and comments. */
void opscope__graph_parser_skip(struct opscope__graph_parser *parser);
/* Skips white space and comments, and the token if it is next. */
bool opscope__graph_parser_take(struct opscope__graph_parser *parser, const char *token);
bool opscope__graph_parser_need(struct opscope__graph_parser *parser, const char *token);
/* Skips white space and comments; the letters, digits, '_' and dots that are next, with `colons`
 * also those. Only parser_word goes behind them. */
struct opscope__graph_word opscope__graph_parser_peek(struct opscope__graph_parser *parser,
                                                      bool colons);
struct opscope__graph_word opscope__graph_parser_word(struct opscope__graph_parser *parser,
                                                      bool colons);
bool opscope__graph_word_is(struct opscope__graph_word word, const char *text);

/* ---- parts ---------------------------------------------------------------------------------- */

/* NULL: reported. */
const struct opscope__graph_type *opscope__graph_parse_type(struct opscope__graph_parser *parser);
bool opscope__graph_parse_constant(struct opscope__graph_parser *parser,
                                   struct opscope__graph_constant *out);

#endif
