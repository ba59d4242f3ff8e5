/* outer.h -- outer ranges around methods that are written in Python, such as an estimator's `fit`.
 *
 * The caller holds the GIL.
 */
#ifndef OPSCOPE_BRIDGES_OUTER_H
#define OPSCOPE_BRIDGES_OUTER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* Replaces the function `type.method`, which the type itself has, by an object that calls it in a
 * range, and looks like it. The operator is called `name`, or, if that ends in "::", `name` and the
 * class of the method's object and the method: `sklearn::PCA.fit`. A method that calls the same
 * method of its object, such as that of its base class, opens one range.
 *
 * ERR_INVALID: no Python function, or not the type's own; ERR_BUSY: attached before;
 * ERR_NO_MEMORY. */
int opscope__outer_attach(uint32_t owner, PyObject *type, const char *method, const char *name);
/* Restores every method of that owner that nobody has replaced since. */
void opscope__outer_detach(uint32_t owner);

#endif
