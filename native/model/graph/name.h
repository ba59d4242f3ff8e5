/* model/graph/name.h -- which texts are names in a graph, so that its text form can be read. */
#ifndef OPSCOPE_MODEL_GRAPH_NAME_H
#define OPSCOPE_MODEL_GRAPH_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Each takes a text with its number of bytes. */

/* Letters, digits and '_', no digit first: an attribute. */
bool opscope__graph_is_identifier(const char *text, size_t bytes);
/* Two or more identifiers separated by dots: a class. */
bool opscope__graph_is_dotted(const char *text, size_t bytes);
/* Letters, digits, '_' and dots, no digit and no dot first: a value. */
bool opscope__graph_is_value_name(const char *text, size_t bytes);
/* "namespace::name": an identifier, and letters, digits, '_' and dots: a node's kind. */
bool opscope__graph_is_kind(const char *text, size_t bytes);
/* One or more characters of UTF-8, no white space and no control characters: a scope. */
bool opscope__graph_is_scope(const char *text, size_t bytes);
/* One or more characters of UTF-8, no control characters, no space first or last: a location. */
bool opscope__graph_is_location(const char *text, size_t bytes);

/* One byte of the texts above. */
static inline bool opscope__graph_is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static inline bool opscope__graph_is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

#endif
