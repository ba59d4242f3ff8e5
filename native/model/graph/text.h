/* model/graph/text.h -- graphs as text that people read, and back.
 *
 *   graph(%x : Tensor, %flag : bool):
 *     %2 : int = prim::Constant[value=1]()
 *     %3 : Tensor = aten::add(%x, %x, %2), scope: net.head # net.py:3:4
 *     %y : Tensor = prim::If(%flag) # net.py:4:0
 *       block0():
 *         -> (%3)
 *       block1():
 *         %5 : Tensor = aten::relu(%3)
 *         -> (%5)
 *     return (%y)
 *
 * A value without a name is printed as its number; a number in a text that is read is only the
 * value's name in that text. Attributes are None, True, False, integers, floats (always with '.',
 * 'e', inf or nan), strings as JSON escapes them, and lists. Floats are read back bit for bit,
 * except that all NaNs are one. White space separates and means nothing else, except that a
 * comment goes from '#' to the end of the line; behind a node, it is the node's location.
 *
 * What was printed is read as an equal graph and printed again as the same bytes.
 */
#ifndef OPSCOPE_MODEL_GRAPH_TEXT_H
#define OPSCOPE_MODEL_GRAPH_TEXT_H

#include "model/graph/graph.h"

enum { OPSCOPE__GRAPH_TEXT_LIMIT = 1 << 26 };

/* `*text` is to be freed with free(); a NUL, which `*bytes` does not count, ends it. Numbers the
 * values. */
OPSCOPE_API int opscope__graph_print(struct opscope__model_graph *graph, char **text,
                                     size_t *bytes);
/* A failure is "line N, column M: ...", columns counted in bytes. The graph is not verified, except
 * that each name is defined once, before its uses. `bytes_limit`: of the graph. */
OPSCOPE_API int opscope__graph_parse(const char *text, size_t bytes, size_t bytes_limit,
                                     struct opscope__model_graph **out);

#endif
