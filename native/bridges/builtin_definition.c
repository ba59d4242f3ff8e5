/* bridges/builtin_definition.c -- finds the definition, and verifies every assumption. Writes none.
 */
#include "bridges/builtin_definition.h"

#include <sys/mman.h>

PyMethodDef *opscope__builtin_definition(PyObject *builtin, const struct opscope__pages *pages)
{
    if (!PyCFunction_Check(builtin)) {
        return NULL;
    }
    PyMethodDef *definition = ((struct opscope__builtin_layout *)builtin)->definition;
    if (!opscope__pages_grant(pages, definition, sizeof *definition, PROT_READ | PROT_WRITE) ||
        definition->ml_meth != PyCFunction_GetFunction(builtin) ||
        definition->ml_flags != PyCFunction_GetFlags(builtin) ||
        !opscope__pages_grant(pages, definition->ml_name, 1, PROT_READ)) {
        return NULL;
    }
    PyObject *name = PyObject_GetAttrString(builtin, "__name__");
    if (name == NULL || PyUnicode_CompareWithASCIIString(name, definition->ml_name) != 0) {
        PyErr_Clear();
        definition = NULL;
    }
    Py_XDECREF(name);
    return definition;
}
