/* opscope._tensor: the tensor core as a CPython extension module.
 *
 * An extension type instead of cffi, because the call from `a + b` to the core must be cheap. This
 * file assembles the parts; users import opscope.tensor.
 */
#include "tensor/python/buffer_abi.h"
#include "tensor/python/python.h"

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "opscope._tensor",
    .m_doc = "The tensor core in C; import opscope.tensor instead.",
    .m_size = -1, /* one interpreter: types are globals */
};

static PyMethodDef *const FUNCTIONS[] = {
    opscope__py_tensor_functions,   opscope__py_construct_functions,  opscope__py_buffer_functions,
    opscope__py_data_functions,     opscope__py_dlpack_functions,     opscope__py_library_functions,
    opscope__py_settings_functions, opscope__py_repeat_functions,     opscope__py_archive_functions,
    opscope__py_document_functions, opscope__py_graph_tree_functions, opscope__py_value_functions,
};

PyMODINIT_FUNC PyInit__tensor(void);

PyMODINIT_FUNC PyInit__tensor(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module) {
        return NULL;
    }
    bool failed = opscope__py_find_buffer_functions() < 0 || opscope__py_add_dtypes(module) < 0 ||
                  opscope__py_add_tensor(module) < 0 || opscope__py_add_operators(module) < 0 ||
                  opscope__py_add_autograd(module) < 0 || opscope__py_add_archive(module) < 0 ||
                  opscope__py_add_graph(module) < 0 || opscope__py_add_program(module) < 0;
    for (size_t i = 0; !failed && i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
        failed = PyModule_AddFunctions(module, FUNCTIONS[i]) < 0;
    }
    if (failed) {
        Py_CLEAR(module);
    }
    return module;
}
