#include "lamina/border/arg_parser.h"

#include <bit>
#include <cstring>
#include <string>

#include "lamina/border/convert.h"
#include "lamina/border/override.h"
#include "lamina/border/trace.h"
#include "lamina/border/types.h"
#include "lamina/transforms/batched.h"

namespace lamina::border {

namespace {

bool is_sequence(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); }
Py_ssize_t length(PyObject* sequence) { return PySequence_Fast_GET_SIZE(sequence); }
PyObject* const* items_of(PyObject* sequence) { return PySequence_Fast_ITEMS(sequence); }

template <class Check>
bool all_items(PyObject* o, Check check) {
  if (!is_sequence(o)) return false;
  for (Py_ssize_t i = 0; i < length(o); ++i)
    if (!check(items_of(o)[i])) return false;
  return true;
}

// A tensor of one dimension and integers may stand for a list of ints.
bool is_int_tensor(PyObject* o) {
  return is_tensor(o) && unwrap(o).dim() == 1 && is_integral(unwrap(o).dtype()) &&
         unwrap(o).device().is_cpu();
}

bool is_number_or_one_element(PyObject* o) {
  if (is_tensor(o)) return unwrap(o).dim() == 0 && !unwrap(o).requires_grad();
  return is_number(o);
}

bool fits(PyObject* o, const Param& p) {
  switch (p.type) {
    case P::Tensor:
      return is_tensor(o);
    case P::TensorOrScalar:
      return is_tensor(o) || is_number(o);
    case P::Scalar:
      return is_number_or_one_element(o);
    case P::Int:
      return is_int(o);
    case P::Double:
      return is_real(o);
    case P::Bool:
      return PyBool_Check(o) || (is_numpy_scalar(o) && std::strstr(Py_TYPE(o)->tp_name, "bool"));
    case P::String:
      return PyUnicode_Check(o);
    case P::IntList:
      // The first item decides; a wrong later one is reported by the conversion.
      if (is_sequence(o)) return length(o) == 0 || is_int(items_of(o)[0]);
      return (p.list_size > 0 && is_int(o)) || (!is_tensor(o) ? false : is_int_tensor(o));
    case P::DoubleList:
      return all_items(o, is_real) || (p.list_size > 0 && is_real(o));
    case P::BoolList:
      return all_items(o, [](PyObject* i) { return bool(PyBool_Check(i)); }) ||
             (p.list_size > 0 && PyBool_Check(o));
    case P::ScalarList:
      return all_items(o, is_number_or_one_element) ||
             (p.list_size > 0 && is_number_or_one_element(o));
    case P::TensorList:
      return all_items(o, [](PyObject* i) { return is_tensor(i); });
    case P::OptTensorList:
      return all_items(o, [](PyObject* i) { return i == Py_None || is_tensor(i); });
    case P::ScalarType:
      return is_dtype(o);
    case P::Device:
      return is_device(o);
    case P::Layout:
      return Py_TYPE(o) == &layout_type;
    case P::MemoryFormat:
      return Py_TYPE(o) == &memory_format_type;
    case P::Generator:
      return PyObject_TypeCheck(o, &generator_type);
    case P::Object:
      return true;
  }
  return false;
}

const char* type_name(ParamType t) {
  switch (t) {
    case P::Tensor:
      return "Tensor";
    case P::TensorOrScalar:
      return "Tensor or Number";
    case P::Scalar:
      return "Number";
    case P::Int:
      return "int";
    case P::Double:
      return "float";
    case P::Bool:
      return "bool";
    case P::String:
      return "str";
    case P::IntList:
      return "tuple of ints";
    case P::DoubleList:
      return "tuple of floats";
    case P::BoolList:
      return "tuple of bools";
    case P::ScalarList:
      return "tuple of Scalars";
    case P::TensorList:
      return "tuple of Tensors";
    case P::OptTensorList:
      return "tuple of Tensors";
    case P::ScalarType:
      return "torch.dtype";
    case P::Device:
      return "torch.device";
    case P::Layout:
      return "torch.layout";
    case P::MemoryFormat:
      return "torch.memory_format";
    case P::Generator:
      return "torch.Generator";
    case P::Object:
      return "object";
  }
  return "";
}

// Does a keyword name this parameter? NumPy's names for the same thing are accepted too.
bool names_param(PyObject* keyword, const char* param) {
  if (PyUnicode_CompareWithASCIIString(keyword, param) == 0) return true;
  const auto is = [&](const char* text) {
    return PyUnicode_CompareWithASCIIString(keyword, text) == 0;
  };
  switch (param[0]) {
    case 'd':
      return std::strcmp(param, "dim") == 0 && is("axis");
    case 'k':
      return std::strcmp(param, "keepdim") == 0 && is("keepdims");
    case 'i':
      return std::strcmp(param, "input") == 0 && (is("x") || is("a") || is("x1") || is("self"));
    case 'o':
      return std::strcmp(param, "other") == 0 && is("x2");
    default:
      return false;
  }
}

std::string type_text(const PyTypeObject* t) {
  if (t == tensor_type) return "Tensor";
  const char* n = t->tp_name;
  if (std::strncmp(n, "lamina.", 7) == 0) return std::string("torch.") + (n + 7);
  return n;
}
std::string type_of(PyObject* o) { return type_text(Py_TYPE(o)); }

// The item that makes a list not fit, or -1.
Py_ssize_t wrong_item(PyObject* o, const Param& p) {
  if (!is_sequence(o)) return -1;
  for (Py_ssize_t i = 0; i < length(o); ++i) {
    PyObject* item = items_of(o)[i];
    const bool good = p.type == P::IntList      ? is_int(item)
                      : p.type == P::TensorList ? is_tensor(item)
                                                : true;
    if (!good) return i;
  }
  return -1;
}

}  // namespace

std::string text_of(const Mismatch& m, const Signature& s) {
  const char* name = s.params ? s.params[m.param].name : "";
  switch (m.kind) {
    case Mismatch::kFits:
      return "";
    case Mismatch::kTooMany:
      return str("takes ", m.position, " positional argument", m.position == 1 ? "" : "s", " but ",
                 m.given, m.given == 1 ? " was" : " were", " given");
    case Mismatch::kUnknown:
      return str("got an unexpected keyword argument '", PyUnicode_AsUTF8(m.what), "'");
    case Mismatch::kTwice:
      return str("got multiple values for argument '", name, "'");
    case Mismatch::kMissing: {
      std::string names;
      for (int i = 0; i < s.count; ++i)
        if (m.missing >> i & 1) names += str(names.empty() ? "\"" : ", \"", s.params[i].name, "\"");
      return str("missing ", std::popcount(m.missing), " required positional arguments: ", names);
    }
    default:
      break;
  }
  const std::string at = m.position ? str(" (position ", m.position, ")") : "";
  const std::string type = type_text(reinterpret_cast<PyTypeObject*>(m.what));
  return str("argument '", name, "'", at, " must be ", type_name(s.params[m.param].type), ", ") +
         (m.kind == Mismatch::kItem
              ? str("but found element of type ", type, " at position ", m.given)
              : "not " + type);
}

// Matches one call; `problem` (may be null) receives why a signature does not fit.
struct Matcher {
  ParsedArgs& out;
  Parser& parser;
  PyObject* self;
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
  // Whether a tensor of one element may stand for a number; an overload that takes it as a tensor
  // goes first.
  bool lenient = true;

  bool match(const Signature& s, Mismatch* problem) {
    PyObject** slots = out.slots_;
    int given = 0;  // slots filled by position
    out.varargs_slot_ = -1;
    if (self) {
      slots[0] = self;
      given = 1;
      if (is_tensor(self)) {
        out.work_ = unwrap(self).numel();
        out.subclass_ |= !is_exact_tensor(self);
      }
    }
    const Py_ssize_t room = s.positional - given;
    Py_ssize_t taken = nargs;
    // x.view(2, 3): the only positional parameter is a list of ints.
    if (room == 1 && nargs >= 1 && s.params[given].type == P::IntList && !is_sequence(args[0]) &&
        is_int(args[0]) && (nargs > 1 || s.params[given].list_size == 0)) {
      slots[given] = args[0];
      out.varargs_ = args;
      out.varargs_count_ = static_cast<int32_t>(nargs);
      out.varargs_slot_ = static_cast<int8_t>(given);
      ++given;
      taken = nargs;
    } else {
      if (nargs > room) {
        if (problem)
          *problem = {.kind = Mismatch::kTooMany,
                      .position = s.positional - (self ? 1 : 0),
                      .given = static_cast<int32_t>(nargs)};
        return false;
      }
      for (Py_ssize_t i = 0; i < taken; ++i) {
        const Param& p = s.params[given];
        PyObject* o = args[i];
        if (!bind(s, given, o, p, static_cast<int>(i) + 1, problem)) return false;
        ++given;
      }
    }
    const Py_ssize_t names = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (names == 0) {
      for (int i = given; i < s.count; ++i) {
        if (!(s.params[i].flags & kDefault)) return missing(s, i, problem);
        slots[i] = nullptr;
      }
      return true;
    }
    for (int i = given; i < s.count; ++i) slots[i] = nullptr;
    PyObject* const* interned = parser.names(static_cast<int>(&s - parser.signatures()));
    uint32_t named = 0;
    for (Py_ssize_t k = 0; k < names; ++k) {
      PyObject* name = PyTuple_GET_ITEM(kwnames, k);
      int i = 0;
      while (i < s.count && interned[i] != name) ++i;
      if (i == s.count)
        for (i = 0; i < s.count && !names_param(name, s.params[i].name);) ++i;
      if (i == s.count) {
        if (problem) *problem = {.kind = Mismatch::kUnknown, .what = name};
        return false;
      }
      if (i < given || (named >> i & 1)) {
        if (problem) *problem = {.kind = Mismatch::kTwice, .param = static_cast<int8_t>(i)};
        return false;
      }
      named |= 1u << i;
      if (!bind(s, i, args[nargs + k], s.params[i], 0, problem)) return false;
    }
    for (int i = given; i < s.count; ++i)
      if (!(s.params[i].flags & kDefault) && !(named >> i & 1)) return missing(s, i, problem);
    return true;
  }

  bool bind(const Signature&, int i, PyObject* o, const Param& p, int position, Mismatch* problem) {
    if (o == Py_None && p.type != P::Object) {
      if (p.flags & kNone) {
        out.slots_[i] = nullptr;
        return true;
      }
    } else if (p.type <= P::TensorOrScalar && is_tensor(o)) {
      const int64_t n = unwrap(o).numel();
      if (n > out.work_) out.work_ = n;
      out.subclass_ |= !is_exact_tensor(o);
      out.slots_[i] = o;
      return true;
    } else if (p.type != P::Tensor && fits(o, p) &&
               (lenient || !takes_number(p.type) || !is_tensor(o))) {
      if (p.type == P::TensorList || p.type == P::OptTensorList)
        for (Py_ssize_t k = 0; k < length(o); ++k)
          out.subclass_ |= items_of(o)[k] != Py_None && !is_exact_tensor(items_of(o)[k]);
      out.slots_[i] = o;
      return true;
    }
    if (problem) {
      const Py_ssize_t item = wrong_item(o, p);
      PyObject* found = item < 0 ? o : items_of(o)[item];
      *problem = {.kind = item < 0 ? Mismatch::kType : Mismatch::kItem,
                  .param = static_cast<int8_t>(i),
                  .position = position,
                  .given = static_cast<int32_t>(item),
                  .what = reinterpret_cast<PyObject*>(Py_TYPE(found))};
    }
    return false;
  }

  static bool takes_number(ParamType t) {
    return t == P::Scalar || t == P::Int || t == P::Double || t == P::IntList;
  }

  bool missing(const Signature& s, int first, Mismatch* problem) {
    if (problem) {
      *problem = {.kind = Mismatch::kMissing, .param = static_cast<int8_t>(first)};
      for (int i = first; i < s.count; ++i)
        if (!(s.params[i].flags & kDefault) && !out.slots_[i]) problem->missing |= 1u << i;
    }
    return false;
  }

  [[noreturn]] __attribute__((cold)) void fail(const Parser& parser) {
    const std::string name = parser.name();
    std::memset(out.slots_, 0, sizeof(out.slots_));
    if (parser.count() == 1) {
      Mismatch mismatch;
      match(parser.signatures()[0], &mismatch);
      const std::string problem = text_of(mismatch, parser.signatures()[0]);
      if (problem.starts_with("argument") || problem.starts_with("got"))
        raise_type(name + (problem.starts_with("got") ? "() " : "(): ") + problem);
      raise_type(name + "() " + problem);
    }
    std::string got;
    for (Py_ssize_t i = 0; i < nargs; ++i) got += (got.empty() ? "" : ", ") + describe(args[i]);
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
      got +=
          (got.empty() ? "" : ", ") + (std::string(PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, k))) +
                                       "=" + describe(args[nargs + k]));
    std::string text = name + "() received an invalid combination of arguments - got (" + got +
                       "), but expected one of:\n";
    for (int i = 0; i < parser.count(); ++i) {
      const Signature& s = parser.signatures()[i];
      text += " * (" + std::string(s.text) + ")\n";
      Mismatch mismatch;
      std::memset(out.slots_, 0, sizeof(out.slots_));
      match(s, &mismatch);
      text += "      didn't match because: " + text_of(mismatch, s) + "\n";
    }
    raise_type(text);
  }

  // Tells the reader of events which signature was chosen, and how the others fit.
  __attribute__((cold)) void tell() {
    constexpr int kMost = 16;
    Mismatch others[kMost];
    int count = 0;
    if (parser.count() > 1) {
      ParsedArgs scratch(parser);
      Matcher again{scratch, parser, self, args, nargs, kwnames, lenient};
      for (int i = 0; i < parser.count() && count < kMost; ++i) {
        if (i == out.index()) continue;
        std::memset(scratch.slots_, 0, sizeof(scratch.slots_));
        again.match(parser.signatures()[i], &others[count]);
        others[count++].signature = static_cast<int8_t>(i);
      }
    }
    note_matching(parser, out.index(), others, count);
  }

  static std::string describe(PyObject* o) {
    if (!is_sequence(o)) return type_of(o);
    std::string text = PyTuple_Check(o) ? "tuple of (" : "list of [";
    for (Py_ssize_t i = 0; i < length(o) && i < 8; ++i)
      text += (i ? ", " : "") + type_of(items_of(o)[i]);
    if (length(o) > 8) text += ", ...";
    return text + (PyTuple_Check(o) ? ")" : "]");
  }
};

namespace {

// Lets modes, subclasses and foreign objects take the call over; returns where nobody does.
__attribute__((cold)) void offer(const Parser& parser, PyObject* self, PyObject* const* args,
                                 Py_ssize_t nargs, PyObject* kwnames) {
  const Override o =
      offer_call(public_function(parser, self != nullptr), self, args, nargs, kwnames);
  if (o.taken) throw TakenOver{o.result};
}

}  // namespace

ParsedArgs::ParsedArgs(Parser& parser, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames)
    : parser_(&parser) {
  Matcher m{*this, parser, self, args, nargs, kwnames};
  m.lenient = parser.count() == 1;
  do {
    for (int i = 0; i < parser.count(); ++i) {
      if (m.match(parser.signatures()[i], nullptr)) {
        index_ = static_cast<int8_t>(i);
        if (subclass_ || entered_function_modes != 0) [[unlikely]] {
          if (subclass_ || has_mode()) offer(parser, self, args, nargs, kwnames);
          if (wants_matching()) m.tell();
        }
        return;
      }
    }
  } while (!std::exchange(m.lenient, true));
  offer(parser, self, args, nargs, kwnames);
  m.fail(parser);
}

PyObject* ParsedArgs::unreachable() const {
  raise_runtime(std::string(parser_->name()) + ": internal error: no call for signature " +
                std::to_string(index_));
}

namespace {

// Conversions name the parameter when they fail.
template <class F>
auto convert(const ParsedArgs& r, int i, F&& f) {
  try {
    return f(r.object(i));
  } catch (const PythonError&) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
      PyErr_Clear();
      const Param& p = r.parser().signatures()[r.index()].params[i];
      raise_value(std::string(r.parser().name()) + "(): Overflow when unpacking long: argument '" +
                  p.name + "' does not fit in 64 bits");
    }
    throw;
  }
}

}  // namespace

// A number too large for any type stays an OverflowError, as in the peer.
Scalar ParsedArgs::scalar(int i) const { return to_scalar(slots_[i]); }
std::optional<Scalar> ParsedArgs::optional_scalar(int i) const {
  return slots_[i] ? std::optional(scalar(i)) : std::nullopt;
}
int64_t ParsedArgs::integer(int i) const { return convert(*this, i, to_int); }
std::optional<int64_t> ParsedArgs::optional_integer(int i) const {
  return slots_[i] ? std::optional(integer(i)) : std::nullopt;
}
double ParsedArgs::real(int i) const { return convert(*this, i, to_double); }
std::optional<double> ParsedArgs::optional_real(int i) const {
  return slots_[i] ? std::optional(real(i)) : std::nullopt;
}
bool ParsedArgs::boolean(int i) const { return to_bool(slots_[i]); }
std::optional<bool> ParsedArgs::optional_boolean(int i) const {
  return slots_[i] ? std::optional(boolean(i)) : std::nullopt;
}
std::string_view ParsedArgs::string(int i) const { return to_string_view(slots_[i]); }
std::optional<std::string_view> ParsedArgs::optional_string(int i) const {
  return slots_[i] ? std::optional(string(i)) : std::nullopt;
}

Sizes ParsedArgs::int_list(int i) const {
  Sizes out;
  const auto add = [&](PyObject* const* items, Py_ssize_t n) {
    out.reserve(static_cast<size_t>(n));
    for (Py_ssize_t k = 0; k < n; ++k) {
      if (!is_int(items[k])) {
        const Param& p = parser_->signatures()[index_].params[i];
        raise_type(std::string(parser_->name()) + "(): argument '" + p.name +
                   "' failed to unpack the object at pos " + std::to_string(k + 1) +
                   " with error \"type must be tuple of ints,but got " + type_of(items[k]) + "\"");
      }
      out.push_back(PyLong_CheckExact(items[k]) ? convert_item(i, items[k]) : to_int(items[k]));
    }
  };
  PyObject* o = slots_[i];
  if (i == varargs_slot_) {
    add(varargs_, varargs_count_);
  } else if (is_sequence(o)) {
    add(items_of(o), length(o));
  } else if (border::is_tensor(o) && unwrap(o).dim() == 1) {
    const Tensor& t = unwrap(o);
    if (transforms::is_batched(t)) transforms::raise_item("using a Tensor as a list of ints");
    LAMINA_CHECK(t.data() || t.numel() == 0, parser_->name(),
                 ": a tensor without memory has no ints");
    for (int64_t k = 0; k < t.numel(); ++k)
      out.push_back(
          load_element(static_cast<char*>(t.data()) +
                           k * t.strides()[0] * static_cast<int64_t>(item_size(t.dtype())),
                       t.dtype())
              .to_int());
  } else {
    const int64_t v = integer(i);
    const Param& p = parser_->signatures()[index_].params[i];
    out.resize(p.list_size > 0 ? p.list_size : 1, v);
  }
  if (i == 0) {
    // Creation: the sizes tell what will be written. Wrong ones raise in the call itself.
    int64_t n = 1;
    for (const int64_t d : out)
      if (__builtin_mul_overflow(n, d, &n)) n = 0;
    work_ += n;
  }
  return out;
}
int64_t ParsedArgs::convert_item(int i, PyObject* o) const {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow != 0) {
    const Param& p = parser_->signatures()[index_].params[i];
    raise_type(std::string(parser_->name()) + "(): argument '" + p.name +
               "' failed to unpack an object: Overflow when unpacking long; it does not fit in 64 "
               "bits");
  }
  return v;
}
std::optional<Sizes> ParsedArgs::optional_int_list(int i) const {
  return slots_[i] ? std::optional(int_list(i)) : std::nullopt;
}

SmallVector<double, 6> ParsedArgs::double_list(int i) const {
  SmallVector<double, 6> out;
  PyObject* o = slots_[i];
  if (!is_sequence(o)) {
    out.resize(parser_->signatures()[index_].params[i].list_size, to_double(o));
    return out;
  }
  for (Py_ssize_t k = 0; k < length(o); ++k) out.push_back(to_double(items_of(o)[k]));
  return out;
}
std::optional<SmallVector<double, 6>> ParsedArgs::optional_double_list(int i) const {
  return slots_[i] ? std::optional(double_list(i)) : std::nullopt;
}
SmallVector<bool, 8> ParsedArgs::bool_list(int i) const {
  SmallVector<bool, 8> out;
  PyObject* o = slots_[i];
  if (!is_sequence(o)) {
    out.resize(parser_->signatures()[index_].params[i].list_size, to_bool(o));
    return out;
  }
  for (Py_ssize_t k = 0; k < length(o); ++k) out.push_back(to_bool(items_of(o)[k]));
  return out;
}
SmallVector<Scalar, 4> ParsedArgs::scalar_list(int i) const {
  SmallVector<Scalar, 4> out;
  PyObject* o = slots_[i];
  if (!is_sequence(o)) {
    out.resize(parser_->signatures()[index_].params[i].list_size, to_scalar(o));
    return out;
  }
  for (Py_ssize_t k = 0; k < length(o); ++k) out.push_back(to_scalar(items_of(o)[k]));
  return out;
}

TensorBuffer::TensorBuffer(size_t n, bool borrowed) : size_(n), borrowed_(borrowed) {
  if (n > kInline) heap_ = std::allocator<Tensor>().allocate(n);
  std::memset(static_cast<void*>(data()), 0, n * sizeof(Tensor));  // undefined tensors
}
TensorBuffer::TensorBuffer(TensorBuffer&& o) noexcept
    : size_(o.size_), borrowed_(o.borrowed_), heap_(std::exchange(o.heap_, nullptr)) {
  static_assert(sizeof(Tensor) == sizeof(TensorImpl*));
  if (!heap_) std::memcpy(inline_, o.inline_, size_ * sizeof(Tensor));  // the handles move
  o.size_ = 0;
}
void TensorBuffer::release() noexcept {
  for (size_t i = 0; i < size_; ++i) data()[i].~Tensor();
  if (heap_) std::allocator<Tensor>().deallocate(heap_, size_);
}

TensorBuffer ParsedArgs::tensor_list(int i) const { return optional_tensor_list(i); }
TensorBuffer ParsedArgs::optional_tensor_list(int i) const {
  PyObject* o = slots_[i];
  if (!o) return TensorBuffer(0);
  const auto n = static_cast<size_t>(length(o));
  PyObject* const* items = items_of(o);
  TensorBuffer out(n, n <= TensorBuffer::kInline && PyTuple_CheckExact(o));
  for (size_t k = 0; k < n; ++k) {
    if (items[k] == Py_None) continue;
    const Tensor& t = unwrap(items[k]);
    out.put(k, t);
    work_ += t.numel();
  }
  return out;
}

ScalarType ParsedArgs::scalar_type(int i) const { return to_dtype(slots_[i]); }
std::optional<ScalarType> ParsedArgs::optional_scalar_type(int i) const {
  return slots_[i] ? std::optional(scalar_type(i)) : std::nullopt;
}
Device ParsedArgs::device(int i) const {
  const Device device = to_device(slots_[i]);
  // Programs that try the GPU first expect this type of error.
  if (device.type == DeviceType::CUDA) [[unlikely]]
    raise_python(PyExc_AssertionError, std::string(parser_->name()) +
                                           "(): Torch not compiled with CUDA enabled (Lamina has "
                                           "no memory on this device; expected cpu or meta)");
  return device;
}
std::optional<Device> ParsedArgs::optional_device(int i) const {
  if (slots_[i]) return device(i);
  // Functions of a tensor take its device.
  if (parser_->signatures()[index_].params[0].type == P::Tensor) return std::nullopt;
  const Device d = default_device();
  return d == kCpu ? std::nullopt : std::optional(d);
}
Layout ParsedArgs::layout_or(int i, Layout absent) const {
  return slots_[i] ? to_layout(slots_[i]) : absent;
}
std::optional<Layout> ParsedArgs::optional_layout(int i) const {
  return slots_[i] ? std::optional(to_layout(slots_[i])) : std::nullopt;
}
MemoryFormat ParsedArgs::memory_format_or(int i, MemoryFormat absent) const {
  return slots_[i] ? to_memory_format(slots_[i]) : absent;
}
std::optional<MemoryFormat> ParsedArgs::optional_memory_format(int i) const {
  return slots_[i] ? std::optional(to_memory_format(slots_[i])) : std::nullopt;
}
Generator ParsedArgs::generator(int i) const {
  return slots_[i] ? reinterpret_cast<GeneratorObject*>(slots_[i])->value : Generator();
}

PyObject* const* Parser::names(int signature) {
  if (!names_) {
    size_t total = 0;
    for (int i = 0; i < count_; ++i) total += signatures_[i].count;
    auto* made = new PyObject*[total];
    size_t k = 0;
    for (int i = 0; i < count_; ++i)
      for (int p = 0; p < signatures_[i].count; ++p)
        made[k++] = checked(PyUnicode_InternFromString(signatures_[i].params[p].name));
    names_ = made;
  }
  PyObject** names = names_;
  for (int i = 0; i < signature; ++i) names += signatures_[i].count;
  return names;
}

}  // namespace lamina::border
