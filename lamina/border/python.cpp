#include "lamina/border/python.h"

#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace lamina::border {

namespace {

PyObject* out_of_memory_error = nullptr;
PyObject* linalg_error = nullptr;

PyObject* python_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return out_of_memory_error ? out_of_memory_error : PyExc_MemoryError;
    case ErrorKind::Overflow:
      return PyExc_OverflowError;
    case ErrorKind::LinAlg:
      return linalg_error ? linalg_error : PyExc_RuntimeError;
    default:
      return PyExc_RuntimeError;
  }
}

// A Python error inside a C++ exception. What it holds is given back under the GIL.
class CarriedError {
 public:
  CarriedError() : state_(std::make_shared<State>()) {
    PyErr_Fetch(&state_->type, &state_->value, &state_->trace);
  }
  void restore() const {
    PyErr_Restore(std::exchange(state_->type, nullptr), std::exchange(state_->value, nullptr),
                  std::exchange(state_->trace, nullptr));
  }

 private:
  struct State {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      if (!type || !Py_IsInitialized()) return;
      const PyGILState_STATE gil = PyGILState_Ensure();
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(trace);
      PyGILState_Release(gil);
    }
  };
  std::shared_ptr<State> state_;
};

}  // namespace

void throw_carried_error() { throw CarriedError(); }

void raise_python(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw PythonError{};
}

void translate_exception() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_SystemError, "border: an error was raised and not described");
  } catch (const CarriedError& e) {
    e.restore();
  } catch (const Error& e) {
    PyErr_SetString(python_type(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::length_error& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "border: an unknown C++ exception");
  }
}

PyObject* result_of_exception(std::nullptr_t) noexcept {
  try {
    throw;
  } catch (const TakenOver& taken) {
    return taken.result;
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

void add_descriptors(PyTypeObject* type, PyMethodDef* methods, PyGetSetDef* attributes) {
  for (PyMethodDef* m = methods; m->ml_name; ++m)
    checked(
        PyDict_SetItemString(type->tp_dict, m->ml_name, owned(PyDescr_NewMethod(type, m)).get()));
  for (PyGetSetDef* a = attributes; a->name; ++a)
    checked(PyDict_SetItemString(type->tp_dict, a->name, owned(PyDescr_NewGetSet(type, a)).get()));
  PyType_Modified(type);
}

void add_exceptions(PyObject* module) {
  out_of_memory_error = checked(PyErr_NewExceptionWithDoc(
      "lamina.OutOfMemoryError", "Raised where memory of a device cannot be had.",
      PyExc_RuntimeError, nullptr));
  checked(PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error));
  linalg_error = checked(PyErr_NewExceptionWithDoc(
      "lamina.linalg.LinAlgError",
      "Raised for matrices that are singular, not positive definite, or that an iteration does not "
      "converge on.",
      PyExc_RuntimeError, nullptr));
  checked(PyModule_AddObjectRef(module, "_LinAlgError", linalg_error));
}

}  // namespace lamina::border
