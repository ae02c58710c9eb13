// lamina.ops.NAMESPACE.NAME.OVERLOAD(...): any operator by its schema, boxed.
#include "lamina/border/operators.h"

#include <cctype>
#include <string>
#include <unordered_map>
#include <vector>

#include "lamina/border/tensor_object.h"
#include "lamina/dispatch/library.h"

namespace lamina::border {

namespace {

using dispatch::Stack;
using dispatch::Value;

std::string trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return std::string(s);
}

// The items of a list in brackets that begins at `open`; `end` is where it closes.
std::vector<std::string> split_list(std::string_view schema, size_t open, size_t& end) {
  int depth = 0;
  std::vector<std::string> parts;
  std::string part;
  for (size_t i = open; i < schema.size(); ++i) {
    const char c = schema[i];
    end = i;
    if (c == ')' && --depth == 0) break;
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 1) {
      parts.push_back(trimmed(part));
      part.clear();
    } else if (i != open) {
      part += c;
    }
    if (c == '(') ++depth;
  }
  if (!trimmed(part).empty()) parts.push_back(trimmed(part));
  return parts;
}

// Takes the alias marks out of a type.
void take_alias(SchemaParam& s) {
  const size_t mark = s.type.find('(');
  if (mark == std::string::npos) return;
  const size_t close = s.type.find(')');
  s.alias = s.type.substr(mark + 1, close - mark - 1);
  s.type.erase(mark, close - mark + 1);
}

std::vector<SchemaParam> parameters(const std::vector<std::string>& parts) {
  std::vector<SchemaParam> out;
  bool keyword_only = false;
  for (const std::string& p : parts) {
    if (p == "*") {
      keyword_only = true;
      continue;
    }
    SchemaParam s;
    s.keyword_only = keyword_only;
    const size_t space =
        p.rfind(' ', p.find('=') == std::string::npos ? std::string::npos : p.find('='));
    s.type = p.substr(0, space);
    take_alias(s);
    std::string rest = p.substr(space + 1);
    const size_t equal = rest.find('=');
    s.has_preset = equal != std::string::npos;
    s.name = rest.substr(0, equal);
    if (s.has_preset) s.preset = rest.substr(equal + 1);
    out.push_back(s);
  }
  return out;
}

bool starts(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

std::vector<int64_t> ints_of(PyObject* o) {
  if (is_int(o)) return {to_int(o)};
  Ref items = owned(PySequence_Fast(o, "expected a sequence of ints"));
  std::vector<int64_t> out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    out.push_back(to_int(PySequence_Fast_GET_ITEM(items.get(), i)));
  return out;
}

}  // namespace

// "ns::name.overload(Tensor(a) self, int dim=0) -> (Tensor(a), Tensor)"
ParsedSchema parse_schema(std::string_view schema) {
  ParsedSchema out;
  size_t end = 0;
  out.params = parameters(split_list(schema, schema.find('('), end));
  const size_t arrow = schema.find("->", end);
  if (arrow == std::string_view::npos) return out;
  const std::string rest = trimmed(schema.substr(arrow + 2));
  const std::vector<std::string> items =
      starts(rest, "(") ? split_list(rest, 0, end) : std::vector<std::string>{rest};
  for (const std::string& item : items) {
    SchemaParam r;
    r.type = item.substr(0, item.find(' '));
    r.name = item.find(' ') == std::string::npos ? "" : item.substr(item.rfind(' ') + 1);
    take_alias(r);
    out.returns.push_back(std::move(r));
  }
  return out;
}

const ParsedSchema& schema_of(const dispatch::Operator& op) {
  // Under the GIL. An operator made at run time may come back with another schema.
  static std::unordered_map<const char*, ParsedSchema> known;
  const auto [at, fresh] = known.try_emplace(op.info().schema);
  if (fresh) at->second = parse_schema(op.info().schema);
  return at->second;
}

Value value_of(const SchemaParam& p, PyObject* o) {
  const bool list = p.type.find('[') != std::string::npos;
  if (o == Py_None) {
    if (p.type.back() != '?')
      raise_type("argument '" + p.name + "' must be " + p.type + ", not None");
    return {};
  }
  if (starts(p.type, "Tensor")) {
    if (!list) {
      if (!is_tensor(o))
        raise_type("argument '" + p.name + "' must be Tensor, not " + Py_TYPE(o)->tp_name);
      return unwrap(o);
    }
    Ref items = owned(PySequence_Fast(o, "expected a sequence of tensors"));
    std::vector<Tensor> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
      if (!is_tensor(item) && !(item == Py_None && starts(p.type, "Tensor?")))
        raise_type("argument '" + p.name + "' must be a list of Tensors");
      out.push_back(item == Py_None ? Tensor() : unwrap(item));
    }
    return out;
  }
  if (starts(p.type, "int") || starts(p.type, "SymInt")) {
    if (list) return ints_of(o);
    return to_int(o);
  }
  if (starts(p.type, "float")) {
    if (!list) return to_double(o);
    Ref items = owned(PySequence_Fast(o, "expected a sequence of floats"));
    std::vector<double> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      out.push_back(to_double(PySequence_Fast_GET_ITEM(items.get(), i)));
    return out;
  }
  if (starts(p.type, "bool")) {
    if (!list) return to_bool(o);
    Ref items = owned(PySequence_Fast(o, "expected a sequence of bools"));
    std::vector<bool> out;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
      out.push_back(to_bool(PySequence_Fast_GET_ITEM(items.get(), i)));
    return out;
  }
  if (starts(p.type, "Scalar") && !starts(p.type, "ScalarType") && !list) return to_scalar(o);
  if (starts(p.type, "ScalarType")) return to_dtype(o);
  if (starts(p.type, "str")) return std::string(to_string_view(o));
  if (starts(p.type, "Device")) return to_device(o);
  if (starts(p.type, "Layout")) return to_layout(o);
  if (starts(p.type, "MemoryFormat")) return to_memory_format(o);
  if (starts(p.type, "Generator")) {
    if (!PyObject_TypeCheck(o, &generator_type))
      raise_type("argument '" + p.name + "' must be a Generator");
    return reinterpret_cast<GeneratorObject*>(o)->value;
  }
  raise_type("argument '" + p.name + "' has a type that cannot be passed from Python: " + p.type);
}

Value preset_of(const SchemaParam& p) {
  const std::string& d = p.preset;
  if (d == "None") return {};
  if (d == "True" || d == "False") return d == "True";
  if (d == "[]") return std::vector<int64_t>{};
  if (!d.empty() && d[0] == '[') {
    std::vector<int64_t> out;
    for (size_t i = 1; i < d.size();) {
      out.push_back(std::stoll(d.substr(i)));
      i = d.find(',', i);
      if (i == std::string::npos) break;
      ++i;
    }
    return out;
  }
  if (d == "contiguous_format") return MemoryFormat::Contiguous;
  if (d == "preserve_format") return MemoryFormat::Preserve;
  if (d == "strided") return Layout::Strided;
  if (d[0] == '\'' || d[0] == '"') return d.substr(1, d.size() - 2);
  if (p.type.find("[") != std::string::npos) return std::vector<int64_t>{std::stoll(d)};
  if (starts(p.type, "float")) return std::stod(d);
  if (starts(p.type, "Scalar"))
    return d.find_first_of(".e") == std::string::npos ? Scalar(static_cast<int64_t>(std::stoll(d)))
                                                      : Scalar(std::stod(d));
  if (d == "long") return ScalarType::Int64;
  return static_cast<int64_t>(std::stoll(d));
}

PyObject* wrap_value(const Value& v) {
  return std::visit(
      [](const auto& x) -> PyObject* {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, Generator>) {
          Py_RETURN_NONE;
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          return wrap_ints(x);
        } else if constexpr (std::is_same_v<T, std::vector<double>> ||
                             std::is_same_v<T, std::vector<bool>> ||
                             std::is_same_v<T, std::vector<Scalar>>) {
          Ref list = owned(PyList_New(static_cast<Py_ssize_t>(x.size())));
          for (size_t i = 0; i < x.size(); ++i) {
            const typename T::value_type item = x[i];
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), checked(wrap(item)));
          }
          return list.leak();
        } else {
          return wrap(x);
        }
      },
      v);
}

namespace {
bool is_preset(const SchemaParam& p, PyObject* value) {
  if (!p.has_preset) return false;
  Ref preset = owned(wrap_value(preset_of(p)));
  if (PyList_Check(value)) preset = owned(PySequence_List(preset.get()));
  if (is_tensor(value)) return false;
  if (Py_TYPE(value) != Py_TYPE(preset.get()) && !(PyNumber_Check(value))) return false;
  const int same = PyObject_RichCompareBool(value, preset.get(), Py_EQ);
  if (same < 0) PyErr_Clear();
  return same == 1;
}
}  // namespace

CallArguments arguments_of(const dispatch::Operator& op, const Stack& stack) {
  const std::vector<SchemaParam>& params = schema_of(op).params;
  std::vector<Ref> positional;
  CallArguments out;
  out.kwargs = owned(PyDict_New());
  for (size_t i = 0; i < params.size() && i < stack.size(); ++i) {
    Ref item = owned(wrap_value(stack[i]));
    if (std::holds_alternative<std::vector<Tensor>>(stack[i]) ||
        std::holds_alternative<std::vector<int64_t>>(stack[i]))
      item = owned(PySequence_List(item.get()));
    if (!params[i].keyword_only) {
      positional.push_back(std::move(item));
    } else if (!is_preset(params[i], item.get())) {
      checked(PyDict_SetItemString(out.kwargs.get(), params[i].name.c_str(), item.get()));
    }
  }
  while (!positional.empty() && is_preset(params[positional.size() - 1], positional.back().get()))
    positional.pop_back();
  out.args = owned(PyTuple_New(static_cast<Py_ssize_t>(positional.size())));
  for (size_t i = 0; i < positional.size(); ++i)
    PyTuple_SET_ITEM(out.args.get(), static_cast<Py_ssize_t>(i), positional[i].leak());
  return out;
}

void set_results(const dispatch::Operator& op, PyObject* result, Stack& stack) {
  const std::vector<SchemaParam>& returns = schema_of(op).returns;
  Stack values;
  const auto add = [&](SchemaParam p, PyObject* o) {
    if (p.name.empty()) p.name = "result";
    // A kernel may leave a gradient out.
    values.push_back(o == Py_None ? Value() : value_of(p, o));
  };
  if (returns.size() == 1) {
    add(returns[0], result);
  } else if (returns.size() > 1) {
    Ref items = owned(PySequence_Fast(result, "expected a tuple of results"));
    if (PySequence_Fast_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(returns.size()))
      raise_type(op.full_name() + ": a kernel of Python returned " +
                 std::to_string(PySequence_Fast_GET_SIZE(items.get())) + " results; expected " +
                 std::to_string(returns.size()));
    for (size_t i = 0; i < returns.size(); ++i)
      add(returns[i], PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)));
  }
  stack = std::move(values);
}

PyObject* overload_object(const dispatch::Operator& op) {
  static PyObject* function = nullptr;
  if (!function) {
    Ref module = owned(PyImport_ImportModule("lamina._ops_namespace"));
    function = checked(PyObject_GetAttrString(module.get(), "overload"));
  }
  Ref name = owned(wrap(op.full_name()));
  return checked(PyObject_CallOneArg(function, name.get()));
}

namespace {

Value argument_value(const SchemaParam& p, PyObject* o, const std::string& name) {
  try {
    return value_of(p, o);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw;
    PyErr_Clear();
    raise_runtime(name + "() Expected a value of type '" + p.type + "' for argument '" + p.name +
                  "' but instead found type '" + Py_TYPE(o)->tp_name + "'.");
  }
}

// _call_operator("aten::slice.Tensor", *args, **kwargs)
PyObject* call_operator(PyObject*, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n < 1) raise_type("_call_operator: the operator's name is missing");
  const std::string name(to_string_view(PyTuple_GET_ITEM(args, 0)));
  const dispatch::Operator* op = dispatch::find_operator(name);
  LAMINA_CHECK(op, "no operator of that name; got ", name);
  const std::vector<SchemaParam>& params = schema_of(*op).params;
  Stack stack;
  Py_ssize_t taken = 0, position = 1;
  for (const SchemaParam& p : params) {
    PyObject* named = kwargs ? PyDict_GetItemString(kwargs, p.name.c_str()) : nullptr;
    if (!p.keyword_only && position < n) {
      if (named) raise_runtime(name + "() got multiple values for argument '" + p.name + "'");
      stack.push_back(argument_value(p, PyTuple_GET_ITEM(args, position++), name));
    } else if (named) {
      stack.push_back(argument_value(p, named, name));
      ++taken;
    } else if (p.has_preset) {
      stack.push_back(preset_of(p));
    } else {
      raise_runtime(name + "() is missing value for argument '" + p.name + "'");
    }
  }
  if (position < n) raise_runtime(name + "() takes fewer positional arguments");
  if (kwargs && taken < PyDict_GET_SIZE(kwargs))
    raise_runtime("Unknown keyword argument for operator '" + name + "'");
  op->call_boxed(stack);
  if (stack.empty()) Py_RETURN_NONE;
  if (stack.size() == 1) return wrap_value(stack[0]);
  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(stack.size())));
  for (size_t i = 0; i < stack.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(wrap_value(stack[i])));
  return tuple.leak();
  LAMINA_BORDER_END
}

}  // namespace

PyMethodDef operator_functions[] = {
    {"_call_operator", fast(call_operator), METH_VARARGS | METH_KEYWORDS,
     "Calls an operator by its full name."},
    {}};

}  // namespace lamina::border
