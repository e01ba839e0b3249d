#include <Python.h>

/* An empty module for each kernel, which is so built and installed as any extension is; ctypes calls its functions. */
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", "The kernel, for ctypes.", 0, NULL, NULL,
                                        NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModule_Create(&definition); }
