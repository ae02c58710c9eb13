// Memory shared with NumPy and every other exporter of buffers, without NumPy's C API.
#include <cstring>
#include <string>

#include "lamina/border/construct.h"

namespace lamina::border {

namespace {

// A buffer of Python that a storage keeps alive.
struct HeldBuffer {
  Py_buffer view;
};

void release_buffer(void*, size_t, void* context) noexcept {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  auto* held = static_cast<HeldBuffer*>(context);
  PyBuffer_Release(&held->view);
  delete held;
  PyGILState_Release(state);
}

[[noreturn]] void raise_unsupported(const std::string& what) {
  raise_type("can't convert np.ndarray of type " + what +
             ". The only supported types are: float64, float32, float16, complex64, complex128, "
             "int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.");
}

// The format of the struct module for one element.
ScalarType dtype_of_format(const char* format, Py_ssize_t itemsize) {
  const std::string whole = format ? format : "B";
  const char* f = whole.c_str();
  if (*f == '>' || *f == '!') {
    if (itemsize > 1)
      raise_value(
          "given numpy array has byte order different from the native byte order. "
          "Conversion between byte orders is currently not supported.");
  }
  if (*f == '@' || *f == '=' || *f == '<' || *f == '>' || *f == '!' || *f == '|') ++f;
  const auto integer = [&](bool is_signed) {
    switch (itemsize) {
      case 1:
        return is_signed ? ScalarType::Int8 : ScalarType::UInt8;
      case 2:
        return is_signed ? ScalarType::Int16 : ScalarType::UInt16;
      case 4:
        return is_signed ? ScalarType::Int32 : ScalarType::UInt32;
      case 8:
        return is_signed ? ScalarType::Int64 : ScalarType::UInt64;
      default:
        raise_unsupported(whole);
    }
  };
  if (f[0] == 'Z' && f[1] == 'f' && !f[2]) return ScalarType::Complex64;
  if (f[0] == 'Z' && f[1] == 'd' && !f[2]) return ScalarType::Complex128;
  if (f[0] && f[1]) raise_unsupported(whole);
  switch (f[0]) {
    case '?':
      return ScalarType::Bool;
    case 'e':
      return ScalarType::Float16;
    case 'f':
      return ScalarType::Float32;
    case 'd':
      return ScalarType::Float64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return integer(true);
    case 'c':
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return integer(false);
    default:
      raise_unsupported(whole);
  }
}

// The object whose buffer is meant: itself, or what its __array__ gives.
Ref buffer_source(PyObject* array) {
  if (PyObject_CheckBuffer(array)) return Ref::share(array);
  if (PyObject_HasAttrString(array, "__array__")) {
    Ref result = owned(PyObject_CallMethod(array, "__array__", nullptr));
    if (PyObject_CheckBuffer(result.get())) return result;
  }
  if (PyObject_HasAttrString(array, "__array_interface__")) {
    Ref numpy = owned(PyImport_ImportModule("numpy"));
    return owned(PyObject_CallMethod(numpy.get(), "asarray", "O", array));
  }
  raise_type(std::string("expected an array, not ") + Py_TYPE(array)->tp_name);
}

void get_view(PyObject* source, Py_buffer* view) {
  if (PyObject_GetBuffer(source, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
    if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_BufferError) ||
        PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      Ref dtype = Ref::steal(PyObject_GetAttrString(source, "dtype"));
      PyErr_Clear();
      Ref text = Ref::steal(dtype ? PyObject_Str(dtype.get()) : nullptr);
      PyErr_Clear();
      const char* name = text ? PyUnicode_AsUTF8(text.get()) : Py_TYPE(source)->tp_name;
      raise_unsupported(std::string("numpy.") + (name ? name : "object_"));
    }
    throw PythonError{};
  }
}

// A view that ends with the scope.
struct ShortView {
  explicit ShortView(PyObject* array) : source(buffer_source(array)) {
    get_view(source.get(), &view);
  }
  ~ShortView() { PyBuffer_Release(&view); }
  ShortView(const ShortView&) = delete;
  Ref source;
  Py_buffer view;
};

Tensor on_storage(void* data, size_t nbytes, ScalarType dtype, IntList sizes, IntList strides,
                  int64_t offset, HeldBuffer* held) {
  IntrusivePtr<Storage> storage = Storage::make(data, nbytes, kCpu, release_buffer, held);
  storage->set_resizable(false);
  Tensor t = Tensor::adopt(
      TensorImpl::make(dtype, kCpu, strided_keys(DeviceType::CPU), std::move(storage)));
  t.impl()->set_window(sizes, strides, offset);
  return t;
}

}  // namespace

ScalarType array_dtype(PyObject* array) {
  const ShortView v(array);
  return dtype_of_format(v.view.format, v.view.itemsize);
}

Sizes array_sizes(PyObject* array) {
  const ShortView v(array);
  Sizes sizes;
  for (int i = 0; i < v.view.ndim; ++i) sizes.push_back(v.view.shape[i]);
  return sizes;
}

Tensor share_array(PyObject* array, bool warn) {
  Ref source = buffer_source(array);
  auto held = std::make_unique<HeldBuffer>();
  get_view(source.get(), &held->view);
  const Py_buffer& v = held->view;
  try {
    const ScalarType dtype = dtype_of_format(v.format, v.itemsize);
    if (v.suboffsets) raise_type("from_numpy: buffers with suboffsets are not supported");
    const auto item = static_cast<int64_t>(item_size(dtype));
    Sizes sizes, strides;
    int64_t low = 0, high = 0;  // bytes from v.buf to the first and the last element
    bool empty = false;
    int64_t dense = item;
    for (int i = v.ndim - 1; i >= 0; --i) {
      const int64_t n = v.shape[i];
      int64_t step = v.strides ? v.strides[i] : dense;
      dense *= n;
      if (n <= 1) step = step % item ? item : step;
      if (step % item)
        raise_value(
            "given numpy array strides not a multiple of the element byte size. Copy the "
            "numpy array to reallocate the memory.");
      sizes.insert(0, n);
      strides.insert(0, step / item);
      empty |= n == 0;
      if (n > 1) (step < 0 ? low : high) += step * (n - 1);
    }
    if (empty) low = high = 0;
    if (v.readonly && warn &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            "The given NumPy array is not writable, and Lamina does not know such tensors: "
            "writing to this one writes to the array. Copy the array to protect it.",
            1) < 0)
      throw PythonError{};
    char* data = static_cast<char*>(v.buf) + low;
    const size_t nbytes = empty ? 0 : static_cast<size_t>(high - low + item);
    return on_storage(data, nbytes, dtype, sizes, strides, -low / item, held.release());
  } catch (...) {
    if (held) PyBuffer_Release(&held->view);
    throw;
  }
}

Tensor share_buffer(PyObject* buffer, ScalarType dtype, int64_t count, int64_t offset,
                    const char* op) {
  auto held = std::make_unique<HeldBuffer>();
  if (PyObject_GetBuffer(buffer, &held->view, PyBUF_SIMPLE) < 0) {
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      raise_value(std::string(op) + ": the object does not implement the buffer protocol");
    }
    throw PythonError{};
  }
  const Py_buffer& v = held->view;
  try {
    const auto item = static_cast<int64_t>(item_size(dtype));
    const std::string o(op);
    if (v.len == 0 || count == 0)
      raise_value(o + ": both buffer length (" + std::to_string(v.len) + ") and count (" +
                  std::to_string(count) + ") must not be 0");
    if (offset < 0 || offset >= v.len)
      raise_value(o + ": offset (" + std::to_string(offset) +
                  " bytes) must be non-negative and no greater than buffer length (" +
                  std::to_string(v.len) + " bytes) minus 1");
    if (count < 0) {
      if ((v.len - offset) % item)
        raise_value(o + ": buffer length (" + std::to_string(v.len - offset) +
                    " bytes) after offset (" + std::to_string(offset) +
                    " bytes) must be a multiple of element size (" + std::to_string(item) + ")");
      count = (v.len - offset) / item;
    }
    if (count > (v.len - offset) / item)
      raise_value(o + ": requested buffer length (" + std::to_string(count) + " * " +
                  std::to_string(item) + " bytes) after offset (" + std::to_string(offset) +
                  " bytes) must not be greater than actual buffer length (" +
                  std::to_string(v.len) + " bytes)");
    char* data = static_cast<char*>(v.buf) + offset;
    if (reinterpret_cast<uintptr_t>(data) %
        static_cast<uintptr_t>(is_complex(dtype) ? item / 2 : item))
      raise_value(o + ": the data is not aligned to the element size");
    if (v.readonly &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The given buffer is not writable, and Lamina does not know such tensors: "
                     "writing to this one writes to the buffer. Copy the buffer to protect it.",
                     1) < 0)
      throw PythonError{};
    return on_storage(data, static_cast<size_t>(count * item), dtype, Sizes{count}, Sizes{1}, 0,
                      held.release());
  } catch (...) {
    if (held) PyBuffer_Release(&held->view);
    throw;
  }
}

namespace {

// ---- to NumPy ---------------------------------------------------------------------------------

// What numpy.asarray reads: it describes the memory and keeps the tensor alive.
struct ExporterObject {
  PyObject_HEAD Tensor value;
};
void exporter_dealloc(PyObject* self) {
  reinterpret_cast<ExporterObject*>(self)->value.~Tensor();
  Py_TYPE(self)->tp_free(self);
}

const char* typestr(ScalarType t) {
  switch (t) {
    case ScalarType::Bool:
      return "|b1";
    case ScalarType::UInt8:
      return "|u1";
    case ScalarType::Int8:
      return "|i1";
    case ScalarType::Int16:
      return "<i2";
    case ScalarType::Int32:
      return "<i4";
    case ScalarType::Int64:
      return "<i8";
    case ScalarType::UInt16:
      return "<u2";
    case ScalarType::UInt32:
      return "<u4";
    case ScalarType::UInt64:
      return "<u8";
    case ScalarType::Float16:
      return "<f2";
    case ScalarType::Float32:
      return "<f4";
    case ScalarType::Float64:
      return "<f8";
    case ScalarType::Complex64:
      return "<c8";
    case ScalarType::Complex128:
      return "<c16";
    default:
      raise_type("Got unsupported ScalarType " + std::string(legacy_name(t)));
  }
}

PyObject* get_interface(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = reinterpret_cast<ExporterObject*>(self)->value;
  Sizes steps;
  for (const int64_t s : t.strides())
    steps.push_back(s * static_cast<int64_t>(item_size(t.dtype())));
  Ref sizes = owned(wrap_ints(t.sizes()));
  Ref strides = owned(wrap_ints(steps));
  // An address for an array without elements, too: NumPy refuses null.
  static char nothing[16];
  Ref address = owned(PyLong_FromVoidPtr(t.data() ? t.data() : nothing));
  return Py_BuildValue("{s:i,s:O,s:s,s:O,s:(OO)}", "version", 3, "shape", sizes.get(), "typestr",
                       typestr(t.dtype()), "strides", strides.get(), "data", address.get(),
                       Py_False);
  LAMINA_BORDER_END
}
PyGetSetDef exporter_getset[] = {{"__array_interface__", get_interface, nullptr, nullptr, nullptr},
                                 {}};
PyTypeObject exporter_type = [] {
  PyTypeObject t = blank_type();
  t.tp_name = "lamina._C._ArrayExporter";
  t.tp_basicsize = sizeof(ExporterObject);
  t.tp_dealloc = exporter_dealloc;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_getset = exporter_getset;
  return t;
}();

PyObject* to_numpy(const Tensor& t) {
  if (t.is_meta()) raise_type("can't convert meta device type tensor to numpy");
  if (!t.device().is_cpu())
    raise_type(
        "can't convert " + to_string(t.device()) +
        " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.");
  if (t.keys().has(DispatchKey::Conjugate))
    raise_runtime(
        "Can't call numpy() on Tensor that has conjugate bit set. Use "
        "tensor.resolve_conj().numpy() instead.");
  if (t.keys().has(DispatchKey::Negative))
    raise_runtime(
        "Can't call numpy() on Tensor that has negative bit set. Use "
        "tensor.resolve_neg().numpy() instead.");
  LAMINA_CHECK(t.data() || t.numel() == 0, "numpy: the tensor has no memory");
  typestr(t.dtype());
  static bool ready = false;
  if (!ready) checked(PyType_Ready(&exporter_type));
  ready = true;
  static PyObject* as_array_function = nullptr;
  if (!as_array_function) {
    Ref numpy = owned(PyImport_ImportModule("numpy"));
    as_array_function = checked(PyObject_GetAttrString(numpy.get(), "asarray"));
  }
  Ref exporter = owned(exporter_type.tp_alloc(&exporter_type, 0));
  new (&reinterpret_cast<ExporterObject*>(exporter.get())->value) Tensor(t);
  return PyObject_CallOneArg(as_array_function, exporter.get());
}

constexpr Param kNumpy[] = {{"input", P::Tensor}, {"force", P::Bool, kDefault | kKeyword}};
constexpr Signature kNumpySignatures[] = {
    make_signature(kNumpy, "Tensor input, *, bool force = False")};
constinit Parser numpy_parser("numpy", kNumpySignatures);

PyObject* numpy(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(numpy_parser, self, args, nargs, names);
  Ref source = Ref::share(self);
  if (r.boolean_or(1, false)) {
    source = call_method(generated_method("detach"), self);
    const KeySet keys = unwrap(source.get()).keys();
    if (keys.has(DispatchKey::Conjugate) || keys.has(DispatchKey::Negative))
      source = call_method(generated_method("clone"), source.get());
  } else if (unwrap(self).requires_grad()) {
    raise_runtime(
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  }
  return to_numpy(unwrap(source.get()));
  LAMINA_BORDER_END
}

PyObject* array(PyObject* self, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject* dtype = Py_None;
  PyObject* copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype,
                                   &copy))
    return nullptr;
  if (unwrap(self).requires_grad())
    raise_runtime(
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  Ref result = owned(to_numpy(unwrap(self)));
  if (copy == Py_True) {
    if (dtype != Py_None) return PyObject_CallMethod(result.get(), "astype", "O", dtype);
    return PyObject_CallMethod(result.get(), "copy", nullptr);
  }
  if (dtype != Py_None) {
    Ref options = owned(Py_BuildValue("{s:O}", "copy", Py_False));
    Ref arguments = owned(PyTuple_Pack(1, dtype));
    Ref method = owned(PyObject_GetAttrString(result.get(), "astype"));
    return PyObject_Call(method.get(), arguments.get(), options.get());
  }
  return result.leak();
  LAMINA_BORDER_END
}

PyObject* from_numpy(PyObject*, PyObject* object) {
  LAMINA_BORDER_BEGIN
  if (std::strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") != 0 &&
      !(PyObject_CheckBuffer(object) && PyObject_HasAttrString(object, "__array_interface__") &&
        !is_numpy_scalar(object)))
    raise_type(std::string("expected np.ndarray (got ") + Py_TYPE(object)->tp_name + ")");
  return wrap(share_array(object, true));
  LAMINA_BORDER_END
}

constexpr Param kFromBuffer[] = {{"buffer", P::Object},
                                 {"dtype", P::ScalarType, kKeyword},
                                 {"count", P::Int, kDefault | kKeyword},
                                 {"offset", P::Int, kDefault | kKeyword},
                                 {"requires_grad", P::Bool, kDefault | kKeyword}};
constexpr Signature kFromBufferSignatures[] = {
    make_signature(kFromBuffer,
                   "object buffer, *, torch.dtype dtype, int count = -1, int offset = 0, bool "
                   "requires_grad = False")};
constinit Parser from_buffer_parser("frombuffer", kFromBufferSignatures);

PyObject* from_buffer(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(from_buffer_parser, nullptr, args, nargs, names);
  Tensor t = share_buffer(r.object(0), r.scalar_type(1), r.integer_or(2, -1), r.integer_or(3, 0),
                          "frombuffer");
  Ref result = owned(wrap(std::move(t)));
  if (r.boolean_or(4, false)) owned(PyObject_CallMethod(result.get(), "requires_grad_", nullptr));
  return result.leak();
  LAMINA_BORDER_END
}

}  // namespace

PyMethodDef tensor_numpy_methods[] = {
    {"numpy", fast(numpy), METH_FASTCALL | METH_KEYWORDS, "A NumPy array on the same memory."},
    {"__array__", fast(array), METH_VARARGS | METH_KEYWORDS, nullptr},
    {}};

PyMethodDef numpy_functions[] = {
    {"from_numpy", from_numpy, METH_O, "A tensor on the memory of a NumPy array."},
    {"frombuffer", fast(from_buffer), METH_FASTCALL | METH_KEYWORDS,
     "A tensor on the memory of a buffer."},
    {}};

}  // namespace lamina::border
