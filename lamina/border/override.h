// __torch_function__: objects and modes that take a call over before anything is computed.
//
// A call is offered to the modes of this thread, the innermost first, and then to every argument
// whose type defines __torch_function__, subclasses before their bases. Calls on plain Tensors
// without a mode never get here.
#pragma once

#include <initializer_list>

#include "lamina/border/python.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

// Modes that are entered, over all threads, and readers of events that want to see how arguments
// are matched: while there are none, nobody looks further.
extern int entered_function_modes;
bool has_mode();  // whether one is in force on this thread

// False for a plain Tensor without modes; where it is true, has_override says more.
inline bool maybe_overridden(PyObject* self) {
  return Py_TYPE(self) != tensor_type || entered_function_modes != 0;
}

// Does this object's type define __torch_function__, and is that enabled on this thread?
bool has_override(PyObject* object);

// What a taken-over call gave: a new reference, or null with an error.
struct Override {
  bool taken = false;
  PyObject* result = nullptr;
};

// Offers the call function(self, *args, **kwargs) to modes and arguments; `self` may be null.
// Lists and tuples among the arguments are looked into.
Override offer_call(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames);

// The same for an attribute of Tensor by name ("dim", "__getitem__"), and positional arguments.
Override offer_method(const char* name, std::initializer_list<PyObject*> args);

// The same for a function of the module, from a place where exceptions become results: throws
// TakenOver where the call was taken over.
void offer_function(const char* name, std::initializer_list<PyObject*> args);

// A method without arguments that is no operator; at no cost for a plain Tensor.
template <size_t n>
struct Name {
  char text[n];
  constexpr Name(const char (&s)[n]) {
    for (size_t i = 0; i < n; ++i) text[i] = s[i];
  }
};
template <Name name, auto function>
PyObject* overridable(PyObject* self, PyObject* argument) {
  if (maybe_overridden(self)) [[unlikely]] {
    const Override o =
        argument ? offer_method(name.text, {self, argument}) : offer_method(name.text, {self});
    if (o.taken) return o.result;
  }
  return function(self, argument);
}
// A method with any arguments, for functions that take them without ParsedArgs.
template <Name name, auto function>
PyObject* overridable_fast(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kw) {
  if (maybe_overridden(self)) [[unlikely]] {
    PyObject* method = PyDict_GetItemString(tensor_type->tp_dict, name.text);
    const Override o = offer_call(method, self, args, n, kw);
    if (o.taken) return o.result;
  }
  return function(self, args, n, kw);
}

// An attribute with its name in front of the functions of a PyGetSetDef; `made` lives on.
PyGetSetDef overridable_attribute(const PyGetSetDef& attribute);

extern PyMethodDef override_functions[];       // of the module
extern PyMethodDef tensor_override_methods[];  // of the Tensor type
void add_override_types(PyObject* module);

}  // namespace lamina::border
