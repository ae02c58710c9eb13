// lamina._C: everything that Python sees of the library.
#include <cstring>
#include <string>

#include "lamina/border/autograd.h"
#include "lamina/border/construct.h"
#include "lamina/border/functions.h"
#include "lamina/border/generated.h"
#include "lamina/border/generator.h"
#include "lamina/border/hooks.h"
#include "lamina/border/operators.h"
#include "lamina/border/tensor_object.h"

namespace lamina::border {

namespace {

// Functions of submodules by module: {"nn.functional": {"relu": ...}}.
void add_submodule_functions(PyObject* module) {
  Ref all = owned(PyDict_New());
  for (PyMethodDef* m = generated_submodule_functions(); m->ml_name; ++m) {
    const char* dot = std::strrchr(m->ml_name, '.');
    if (!dot) continue;
    const std::string place(m->ml_name, dot);
    PyObject* functions = PyDict_GetItemString(all.get(), place.c_str());
    if (!functions) {
      Ref made = owned(PyDict_New());
      checked(PyDict_SetItemString(all.get(), place.c_str(), made.get()));
      functions = made.get();
    }
    m->ml_name = dot + 1;
    Ref name = owned(PyUnicode_FromString(("lamina." + place).c_str()));
    Ref function = owned(PyCFunction_NewEx(m, nullptr, name.get()));
    checked(PyDict_SetItemString(functions, m->ml_name, function.get()));
  }
  checked(PyModule_AddObjectRef(module, "_submodule_functions", all.get()));
}

void fill(PyObject* module) {
  add_exceptions(module);
  add_dtypes(module);
  add_devices(module);
  add_layouts(module);
  add_size(module);
  add_generator(module);
  add_storage_type(module);
  add_tensor_type(module);
  add_node_type(module);
  add_function_type(module);
  connect_anomaly_mode();
  add_grad_modes(module);
  // Operators first: a hand-written function of the same name replaces one.
  for (PyMethodDef* table :
       {generated_functions(), construct_functions, numpy_functions, functions, index_functions,
        operator_functions, generator_functions, autograd_functions, grad_mode_functions,
        hook_functions, forward_functions})
    checked(PyModule_AddFunctions(module, table));
  add_submodule_functions(module);
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "lamina._C",
                          "Lamina's C++ side.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

}  // namespace lamina::border

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&lamina::border::definition);
  if (!module) return nullptr;
  try {
    lamina::border::fill(module);
  } catch (...) {
    lamina::border::translate_exception();
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
