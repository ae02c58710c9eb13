// The one place that includes Python.h, with owned references and the translation of exceptions.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>
#include <cstddef>
#include <utility>

#include "lamina/core/error.h"
#include "lamina/event/event.h"

namespace lamina::border {

// An owned reference.
class Ref {
 public:
  Ref() = default;
  Ref(const Ref&) = delete;
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  static Ref steal(PyObject* p) {
    Ref r;
    r.p_ = p;
    return r;
  }
  static Ref share(PyObject* p) {
    Py_XINCREF(p);
    return steal(p);
  }
  PyObject* get() const { return p_; }
  PyObject* leak() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// Thrown where the Python error indicator is already set.
struct PythonError {};

// Takes the Python error that is set with it through C++ code that may let go of the GIL, to
// translate_exception(). Call under the GIL.
[[noreturn]] void throw_carried_error();

// `object` where it is not null, else throws PythonError. For results of the C API.
inline PyObject* checked(PyObject* object) {
  if (!object) [[unlikely]]
    throw PythonError{};
  return object;
}
inline void checked(int status) {
  if (status < 0) [[unlikely]]
    throw PythonError{};
}
inline Ref owned(PyObject* object) { return Ref::steal(checked(object)); }

[[noreturn]] void raise_python(PyObject* type, const std::string& message);
[[noreturn]] inline void raise_type(const std::string& m) { raise_python(PyExc_TypeError, m); }
[[noreturn]] inline void raise_value(const std::string& m) { raise_python(PyExc_ValueError, m); }
[[noreturn]] inline void raise_runtime(const std::string& m) {
  raise_python(PyExc_RuntimeError, m);
}
[[noreturn]] inline void raise_index(const std::string& m) { raise_python(PyExc_IndexError, m); }

// Thrown where somebody else has taken the call over (override.h): holds the result.
struct TakenOver {
  PyObject* result;  // a new reference, or null with an error set
};

// Sets the Python error for the C++ exception in flight. Call inside a catch block.
void translate_exception() noexcept;
// What a function that Python calls returns for the exception in flight.
PyObject* result_of_exception(std::nullptr_t) noexcept;
inline int result_of_exception(int failed) noexcept {
  translate_exception();
  return failed;
}

// A function for METH_FASTCALL, as the tables of methods want it.
template <class F>
PyCFunction fast(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

// Puts methods and attributes into a type that is made already. Tables end with a null entry.
void add_descriptors(PyTypeObject* type, PyMethodDef* methods, PyGetSetDef* attributes);

// A static type to fill in; its memory lives as long as the process.
inline PyTypeObject blank_type() {
  PyTypeObject t{};
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(&t), 1);
  return t;
}

// Adds lamina.OutOfMemoryError and its kin to the module.
void add_exceptions(PyObject* module);

// Lets other Python threads run while this one computes, where the work is long enough to pay for
// it.
inline constexpr int64_t kLongWork = 32768;
class ReleaseGil {
 public:
  explicit ReleaseGil(int64_t work) : ReleaseGil(work >= kLongWork) {}
  explicit ReleaseGil(bool release) {
    if (!release) return;
    outside_.fetch_add(1, std::memory_order_relaxed);
    state_ = PyEval_SaveThread();
  }
  ReleaseGil(const ReleaseGil&) = delete;
  ~ReleaseGil() {
    if (!state_) return;
    PyEval_RestoreThread(state_);
    outside_.fetch_sub(1, std::memory_order_relaxed);
  }
  // Whether some thread may be changing tensors and graphs now although the caller holds the GIL.
  static bool anyone_outside() { return outside_.load(std::memory_order_relaxed) != 0; }

 private:
  static inline std::atomic<int> outside_{0};
  PyThreadState* state_ = nullptr;
};

template <class F>
auto without_gil(int64_t work, F&& f) {
  ReleaseGil released(work);
  return f();
}

}  // namespace lamina::border

// Around the body of every function that Python calls: C++ exceptions become Python's.
#define LAMINA_BORDER_BEGIN \
  try {                     \
    const ::lamina::event::BorderCall border_call;
#define LAMINA_BORDER_END_WITH(failed)                    \
  }                                                       \
  catch (...) {                                           \
    return ::lamina::border::result_of_exception(failed); \
  }
#define LAMINA_BORDER_END LAMINA_BORDER_END_WITH(nullptr)
