/* tensor/python/graph.h -- graphs of models in Python: declarations for the file that runs them. */
#ifndef OPSCOPE_TENSOR_PYTHON_GRAPH_H
#define OPSCOPE_TENSOR_PYTHON_GRAPH_H

#include "model/graph/graph.h"
#include "tensor/python/python.h"

/* The graph of a Graph, borrowed; NULL, without an exception, for another object. */
struct opscope__model_graph *opscope__py_graph_core(PyObject *object);
/* A Graph, which takes the graph, also on failure. */
PyObject *opscope__py_graph_wrap(struct opscope__model_graph *core);
/* The name of a value, or else its number. */
PyObject *opscope__py_graph_value_name(const struct opscope__graph_value *value);
/* A type as the text of graphs has it. */
PyObject *opscope__py_graph_type_text(const struct opscope__graph_type *type);

#endif
