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
#include "lamina/border/override.h"
#include "lamina/border/tensor_object.h"

namespace lamina::border {

namespace {

PyObject* this_module = nullptr;  // borrowed: it lives as long as the process
std::string shown_module = "lamina";
PyObject* submodule_tables = nullptr;  // {"nn.functional": {"relu": ...}}

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
  submodule_tables = all.get();
}

// "lamina.dtype" with another module in front; the texts live as long as the types.
void move_type(PyTypeObject* type, const std::string& from, const std::string& to) {
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
    auto* object = reinterpret_cast<PyObject*>(type);
    Ref module = Ref::steal(PyObject_GetAttrString(object, "__module__"));
    const char* text =
        module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
    PyErr_Clear();
    if (!text || (from != text && !std::string(text).starts_with(from + "."))) return;
    Ref name = owned(wrap(to + (text + from.size())));
    checked(PyObject_SetAttrString(object, "__module__", name.get()));
  } else if (std::string(type->tp_name).starts_with(from + ".")) {
    type->tp_name = (new std::string(to + (type->tp_name + from.size())))->c_str();
    PyType_Modified(type);
  }
}

// _set_public_module("torch"): under which name types say that they are found.
PyObject* set_public_module(PyObject*, PyObject* name) {
  LAMINA_BORDER_BEGIN
  const std::string to(to_string_view(name));
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(PyModule_GetDict(this_module), &position, &key, &value))
    if (PyType_Check(value)) move_type(reinterpret_cast<PyTypeObject*>(value), shown_module, to);
  shown_module = to;
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
// Packages tell torch that they are used; nobody counts here.
PyObject* log_nothing(PyObject*, PyObject*) { Py_RETURN_NONE; }
PyMethodDef module_functions[] = {
    {"_set_public_module", set_public_module, METH_O, nullptr},
    {"_log_api_usage_once", log_nothing, METH_VARARGS, nullptr},
    {},
};

void fill(PyObject* module) {
  this_module = module;
  add_exceptions(module);
  add_dtypes(module);
  add_devices(module);
  add_layouts(module);
  add_size(module);
  add_generator(module);
  add_storage_type(module);
  add_tensor_type(module);
  add_override_types(module);
  add_python_dispatch(module);
  add_node_type(module);
  add_function_type(module);
  connect_anomaly_mode();
  add_grad_modes(module);
  // Operators first: a hand-written function of the same name replaces one.
  for (PyMethodDef* table :
       {module_functions, generated_functions(), construct_functions, numpy_functions, functions,
        index_functions, operator_functions, override_functions, python_dispatch_functions,
        generator_functions, autograd_functions, grad_mode_functions, hook_functions,
        forward_functions, storage_functions, dlpack_functions, module_slot_functions,
        trace_functions, transform_functions})
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

const char* public_module() { return shown_module.c_str(); }

PyObject* module_function(const char* name) {
  return PyDict_GetItemString(PyModule_GetDict(this_module), name);
}

PyObject* public_function(const Parser& parser, bool method) {
  if (method) return PyDict_GetItemString(tensor_type->tp_dict, parser.name());
  if (!*parser.place()) return module_function(parser.name());
  PyObject* table = PyDict_GetItemString(submodule_tables, parser.place());
  return table ? PyDict_GetItemString(table, parser.name()) : nullptr;
}

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
