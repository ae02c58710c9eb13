// Arguments of a Python call, matched against constant tables of signatures.
//
// Matching binds each argument (borrowed) to its parameter's slot and checks types only; conversion
// happens in the accessors, so that what is not used costs nothing and no slot needs memory.
// What opgen writes for one operator:
//
//   namespace {
//   constexpr Param kAdd0[] = {{"input", P::Tensor},
//                              {"other", P::TensorOrScalar},
//                              {"alpha", P::Scalar, kDefault | kKeyword},
//                              {"out", P::Tensor, kDefault | kNone | kKeyword}};
//   constexpr Signature kAddSignatures[] = {
//       make_signature(kAdd0, "Tensor input, Tensor other, *, Number alpha = 1, Tensor out =
//       None")};
//   constinit Parser add_parser("add", kAddSignatures);
//
//   PyObject* call_add(const ParsedArgs& r) {
//     switch (r.index()) {
//       case 0: {
//         const Tensor& self = r.tensor(0);
//         const Scalar alpha = r.scalar_or(2, 1);
//         if (r.has(3)) return wrap(without_gil(r.work(), [&] { return ops::add_out(...); }));
//         if (r.is_tensor(1)) {
//           const Tensor& other = r.tensor(1);
//           return wrap(without_gil(r.work(), [&] { return ops::add(self, other, alpha); }));
//         }
//         ...
//       }
//     }
//     return r.unreachable();
//   }
//   PyObject* add_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
//     LAMINA_BORDER_BEGIN
//     return call_add(ParsedArgs(add_parser, nullptr, args, n, names));
//     LAMINA_BORDER_END
//   }
//   PyObject* add_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
//     LAMINA_BORDER_BEGIN
//     return call_add(ParsedArgs(add_parser, self, args, n, names));
//     LAMINA_BORDER_END
//   }
//   }  // namespace
//
// and one pair of tables for the module and the type (METH_FASTCALL | METH_KEYWORDS), see
// generated.h: `generated_functions()`, `generated_methods()` end with a null entry.
// A method binds self to slot 0. The first parameter is called "input" in Python.
#pragma once

#include <optional>
#include <string>

#include "lamina/border/python.h"
#include "lamina/border/wrap.h"
#include "lamina/core/generator.h"
#include "lamina/core/scalar.h"

namespace lamina::border {

enum class ParamType : uint8_t {
  Tensor,
  TensorOrScalar,  // a tensor or a number
  Scalar,          // a number, or a tensor of one element
  Int,
  Double,
  Bool,
  String,
  IntList,  // list_size > 0: one int stands for that many
  DoubleList,
  BoolList,
  ScalarList,
  TensorList,
  OptTensorList,  // items may be None (indices)
  ScalarType,
  Device,
  Layout,
  MemoryFormat,
  Generator,
  Object,  // anything: the call decides
};
using P = ParamType;

enum ParamFlag : uint8_t {
  kDefault = 1,  // may be absent
  kNone = 2,     // may be None, which counts as absent: has(i) is false
  kKeyword = 4,  // by keyword only
};

struct Param {
  const char* name;
  ParamType type;
  uint8_t flags = 0;
  uint8_t list_size = 0;
};

struct Signature {
  const Param* params;
  uint8_t count;
  uint8_t positional;  // parameters that may be given by position
  const char* text;    // as errors show it: "Tensor input, *, Number alpha = 1"
};

template <size_t N>
constexpr Signature make_signature(const Param (&params)[N], const char* text) {
  uint8_t positional = 0;
  while (positional < N && !(params[positional].flags & kKeyword)) ++positional;
  return {params, static_cast<uint8_t>(N), positional, text};
}
// For a signature without parameters.
constexpr Signature make_signature(std::nullptr_t, const char* text) {
  return {nullptr, 0, 0, text};
}

class Parser {
 public:
  template <size_t N>
  constexpr Parser(const char* name, const Signature (&signatures)[N], const char* place = "")
      : name_(name), place_(place), signatures_(signatures), count_(static_cast<uint8_t>(N)) {}
  const char* name() const { return name_; }
  const char* place() const { return place_; }  // the submodule: "nn.functional", or ""
  const Signature* signatures() const { return signatures_; }
  int count() const { return count_; }
  // The interned names of a signature's parameters: keywords of compiled code are the same objects.
  PyObject* const* names(int signature);

 private:
  const char* name_;
  const char* place_;
  const Signature* signatures_;
  uint8_t count_;
  PyObject** names_ = nullptr;  // of all signatures, made at the first keyword
};

// The object that Python knows for a parser's function: a method of Tensor, or a function of the
// module or one of its submodules. Borrowed; null where there is none.
PyObject* public_function(const Parser& parser, bool method);  // module.cpp
PyObject* module_function(const char* name);

// Tensors of a list argument; up to eight without memory from the heap. Those of a tuple are
// borrowed: their objects live as long as the call. A list may change meanwhile; its tensors are
// counted.
class TensorBuffer {
 public:
  static constexpr size_t kInline = 8;
  explicit TensorBuffer(size_t n, bool borrowed = false);
  TensorBuffer(TensorBuffer&& o) noexcept;
  TensorBuffer(const TensorBuffer&) = delete;
  ~TensorBuffer() {
    if (!borrowed_) release();
  }
  // Item i, which must still be undefined.
  void put(size_t i, const Tensor& t) {
    new (data() + i) Tensor(borrowed_ ? Tensor::adopt(t.impl()) : t);
  }
  Tensor* data() { return heap_ ? heap_ : reinterpret_cast<Tensor*>(inline_); }
  const Tensor* data() const { return const_cast<TensorBuffer*>(this)->data(); }
  size_t size() const { return size_; }
  Tensor& operator[](size_t i) { return data()[i]; }
  const Tensor& operator[](size_t i) const { return data()[i]; }
  operator TensorList() const { return {data(), size_}; }

 private:
  void release() noexcept;
  size_t size_;
  bool borrowed_ = false;
  Tensor* heap_ = nullptr;
  alignas(Tensor) unsigned char inline_[kInline * sizeof(Tensor)];
};

class ParsedArgs {
 public:
  static constexpr int kMaxParams = 24;

  // Picks the first signature that fits; raises TypeError where none does. `self` (may be null) is
  // bound to slot 0.
  ParsedArgs(Parser& parser, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
             PyObject* kwnames);
  ParsedArgs(const ParsedArgs&) = delete;

  int index() const { return index_; }
  const Parser& parser() const { return *parser_; }
  // Given, and not None.
  bool has(int i) const { return slots_[i] != nullptr; }
  bool is_tensor(int i) const { return slots_[i] && border::is_tensor(slots_[i]); }
  PyObject* object(int i) const { return slots_[i]; }  // borrowed; null when absent

  const Tensor& tensor(int i) const { return unwrap(slots_[i]); }
  // An undefined tensor when absent.
  const Tensor& optional_tensor(int i) const {
    return slots_[i] ? unwrap(slots_[i]) : undefined_tensor();
  }
  Scalar scalar(int i) const;
  Scalar scalar_or(int i, Scalar absent) const { return slots_[i] ? scalar(i) : absent; }
  std::optional<Scalar> optional_scalar(int i) const;
  int64_t integer(int i) const;
  int64_t integer_or(int i, int64_t absent) const { return slots_[i] ? integer(i) : absent; }
  std::optional<int64_t> optional_integer(int i) const;
  double real(int i) const;
  double real_or(int i, double absent) const { return slots_[i] ? real(i) : absent; }
  std::optional<double> optional_real(int i) const;
  bool boolean(int i) const;
  bool boolean_or(int i, bool absent) const {
    PyObject* o = slots_[i];
    return o == Py_True ? true : o == Py_False ? false : o ? boolean(i) : absent;
  }
  std::optional<bool> optional_boolean(int i) const;
  std::string_view string(int i) const;
  std::string_view string_or(int i, std::string_view absent) const {
    return slots_[i] ? string(i) : absent;
  }
  std::optional<std::string_view> optional_string(int i) const;
  Sizes int_list(int i) const;
  Sizes int_list_or(int i, IntList absent) const { return slots_[i] ? int_list(i) : Sizes(absent); }
  std::optional<Sizes> optional_int_list(int i) const;
  SmallVector<double, 6> double_list(int i) const;
  std::optional<SmallVector<double, 6>> optional_double_list(int i) const;
  SmallVector<bool, 8> bool_list(int i) const;
  SmallVector<Scalar, 4> scalar_list(int i) const;
  TensorBuffer tensor_list(int i) const;
  // Items that are None are undefined tensors.
  TensorBuffer optional_tensor_list(int i) const;
  ScalarType scalar_type(int i) const;
  ScalarType scalar_type_or(int i, ScalarType absent) const {
    return slots_[i] ? scalar_type(i) : absent;
  }
  std::optional<ScalarType> optional_scalar_type(int i) const;
  Device device(int i) const;
  Device device_or(int i, Device absent) const { return slots_[i] ? device(i) : absent; }
  std::optional<Device> optional_device(int i) const;
  Layout layout_or(int i, Layout absent) const;
  std::optional<Layout> optional_layout(int i) const;
  MemoryFormat memory_format_or(int i, MemoryFormat absent) const;
  std::optional<MemoryFormat> optional_memory_format(int i) const;
  // Null when absent.
  Generator generator(int i) const;

  // About how many elements the call touches: decides whether the GIL is released. Lists count
  // once they have been read.
  int64_t work() const { return work_; }
  // For the end of a switch over index(): raises that the parser is broken.
  PyObject* unreachable() const;

 private:
  friend struct Matcher;
  explicit ParsedArgs(Parser& parser) : parser_(&parser) {}  // nothing is bound
  int64_t convert_item(int i, PyObject* o) const;
  const Parser* parser_;
  // The arguments that form the list in slot varargs_slot_ when a list of ints was given as
  // x.view(2, 3).
  PyObject* const* varargs_ = nullptr;
  int32_t varargs_count_ = 0;
  int8_t varargs_slot_ = -1;
  int8_t index_ = -1;
  bool subclass_ = false;  // some tensor is no plain Tensor
  // Elements of the largest tensor, of all tensors in lists, and of what a creation will write.
  mutable int64_t work_ = 0;
  PyObject* slots_[kMaxParams];
};

}  // namespace lamina::border
