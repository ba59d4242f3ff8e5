/* python/backend.c -- finds cffi's extension for the cffi module. The text is a part of that
 * module's source, before its initialisation. */

static PyObject *import_backend(void)
{
    PyObject *name = PyUnicode_FromString("opscope._cffi_backend");
    PyObject *own = name != NULL ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    return own != NULL || PyErr_Occurred() ? own : PyImport_ImportModule("_cffi_backend");
}
