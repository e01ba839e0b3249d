#include <Python.h>

/* An empty module, so that a kernel is built and installed like any extension. ctypes calls its functions. */
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", "The kernel, for ctypes.", 0, NULL, NULL,
                                        NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModule_Create(&definition); }
