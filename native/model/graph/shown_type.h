/* model/graph/shown_type.h -- types in the texts of failures. */
#ifndef OPSCOPE_MODEL_GRAPH_SHOWN_TYPE_H
#define OPSCOPE_MODEL_GRAPH_SHOWN_TYPE_H

#include "model/graph/type.h"

/* A long type is cut. */
struct opscope__graph_shown_type {
    char text[84];
};
struct opscope__graph_shown_type opscope__graph_show_type(const struct opscope__graph_type *type);

#endif
