// DLPack: tensors to and from other libraries, without copies. Structures as the protocol fixes
// them (dmlc.github.io/dlpack), versions 0 and 1.
#include <memory>
#include <string>
#include <vector>

#include "lamina/border/tensor_object.h"

namespace lamina::border {

namespace {

struct DlDevice {
  int32_t type;
  int32_t id;
};
struct DlType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null for row-major order
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr uint64_t kReadOnly = 1, kCopied = 2;
constexpr int32_t kDlCpu = 1;
enum Code : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4m3fn = 10,
  kFloat8E5m2 = 12
};

DlType type_of(ScalarType t) {
  const auto bits = static_cast<uint8_t>(8 * item_size(t));
  if (t == ScalarType::BFloat16) return {kBfloat, bits, 1};
  if (t == ScalarType::Float8E4M3FN) return {kFloat8E4m3fn, bits, 1};
  if (t == ScalarType::Float8E5M2) return {kFloat8E5m2, bits, 1};
  const Code code = is_bool(t)       ? kBool
                    : is_complex(t)  ? kComplex
                    : is_floating(t) ? kFloat
                    : is_unsigned(t) ? kUInt
                                     : kInt;
  return {code, bits, 1};
}

ScalarType type_from(DlType d) {
  for (const ScalarType t : kAllScalarTypes) {
    const DlType own = type_of(t);
    if (own.code == d.code && own.bits == d.bits && d.lanes == 1) return t;
  }
  raise_python(PyExc_BufferError, "from_dlpack: no such element type; got code " +
                                      std::to_string(d.code) + ", " + std::to_string(d.bits) +
                                      " bits, " + std::to_string(d.lanes) + " lanes");
}

// What an exported tensor keeps: itself, and the lists that the structure points to.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor value;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
void delete_exported(Managed* m) {
  delete static_cast<Exported<Managed>*>(m->context);
}
template <class Managed>
const char* name_of = nullptr;
template <>
const char* name_of<DlManaged> = "dltensor";
template <>
const char* name_of<DlVersioned> = "dltensor_versioned";

template <class Managed>
void drop_capsule(PyObject* capsule) {
  // A consumer renames the capsule and takes over.
  if (!PyCapsule_IsValid(capsule, name_of<Managed>)) return;
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name_of<Managed>));
  if (m && m->deleter) m->deleter(m);
}

template <class Managed>
PyObject* export_tensor(const Tensor& t, bool copied) {
  auto e = std::make_unique<Exported<Managed>>();
  e->value = t;
  e->shape.assign(t.sizes().begin(), t.sizes().end());
  e->strides.assign(t.strides().begin(), t.strides().end());
  // As other libraries do: the stride of a dimension of size 1 says nothing.
  for (size_t i = 0; i < e->shape.size(); ++i)
    if (e->shape[i] < 2) e->strides[i] = 1;
  DlTensor& d = e->managed.tensor;
  d = {t.data(),
       {kDlCpu, 0},
       static_cast<int32_t>(t.dim()),
       type_of(t.dtype()),
       e->shape.data(),
       e->strides.data(),
       0};
  e->managed.context = e.get();
  e->managed.deleter = delete_exported<Managed>;
  if constexpr (std::is_same_v<Managed, DlVersioned>) {
    e->managed.major = 1;
    e->managed.minor = 0;
    e->managed.flags = copied ? kCopied : 0;
  }
  PyObject* capsule = PyCapsule_New(&e->managed, name_of<Managed>, drop_capsule<Managed>);
  if (capsule) e.release();
  return capsule;
}

// _to_dlpack(tensor, versioned, copied) -> capsule
PyObject* to_dlpack(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject* object;
  int versioned, copied;
  if (!PyArg_ParseTuple(args, "Opp:_to_dlpack", &object, &versioned, &copied)) return nullptr;
  if (!is_tensor(object)) raise_type("_to_dlpack: expected a Tensor");
  const Tensor& t = unwrap(object);
  if (!t.device().is_cpu())
    raise_python(PyExc_BufferError, "__dlpack__: only tensors on the CPU can be exported; got " +
                                        to_string(t.device()));
  if (!t.data() && t.numel() > 0)
    raise_python(PyExc_BufferError, "__dlpack__: the tensor has no memory");
  return versioned ? export_tensor<DlVersioned>(t, copied != 0)
                   : export_tensor<DlManaged>(t, false);
  LAMINA_BORDER_END
}

template <class Managed>
void release(void*, size_t, void* context) noexcept {
  auto* m = static_cast<Managed*>(context);
  if (!m->deleter) return;
  // Producers written in Python need the interpreter.
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  m->deleter(m);
  PyGILState_Release(state);
}

template <class Managed>
PyObject* import_tensor(PyObject* capsule, const char* used) {
  auto* m = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name_of<Managed>));
  if (!m) throw PythonError{};
  const DlTensor& d = m->tensor;
  if constexpr (std::is_same_v<Managed, DlVersioned>) {
    if (m->major > 1)
      raise_python(PyExc_BufferError,
                   "from_dlpack: version " + std::to_string(m->major) + " of DLPack is too new");
    if ((m->flags & kReadOnly) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "from_dlpack: the memory is read-only, and Lamina does not know such tensors: "
                     "writing to this one writes there",
                     1) < 0)
      throw PythonError{};
  }
  if (d.device.type != kDlCpu)
    raise_python(PyExc_BufferError,
                 "from_dlpack: only memory of the CPU can be shared; got device " +
                     std::to_string(d.device.type));
  LAMINA_CHECK(d.ndim >= 0 && d.ndim <= 64, "from_dlpack: at most 64 dimensions; got ", d.ndim);
  const ScalarType dtype = type_from(d.dtype);
  Sizes sizes, strides(static_cast<size_t>(d.ndim), 1);
  int64_t low = 0, high = 0;
  bool empty = false;
  for (int32_t i = 0; i < d.ndim; ++i) {
    LAMINA_CHECK(d.shape[i] >= 0, "from_dlpack: a negative size; got ", d.shape[i]);
    sizes.push_back(d.shape[i]);
    empty |= d.shape[i] == 0;
  }
  for (int32_t i = d.ndim - 1; i >= 0; --i) {
    const auto k = static_cast<size_t>(i);
    if (d.strides)
      strides[k] = d.strides[i];
    else if (i + 1 < d.ndim)
      strides[k] = strides[k + 1] * sizes[k + 1];
    if (sizes[k] > 1) (strides[k] < 0 ? low : high) += (sizes[k] - 1) * strides[k];
  }
  if (empty) low = high = 0;
  const auto item = static_cast<int64_t>(item_size(dtype));
  char* first = static_cast<char*>(d.data) + d.byte_offset;
  char* data = d.data ? first + low * item : nullptr;
  LAMINA_CHECK(d.data || empty, "from_dlpack: the structure points to nothing");
  const auto alignment = static_cast<uintptr_t>(is_complex(dtype) ? item / 2 : item);
  LAMINA_CHECK(reinterpret_cast<uintptr_t>(data) % alignment == 0,
               "from_dlpack: the data is not aligned to the element size");
  const size_t nbytes = empty ? 0 : static_cast<size_t>((high - low + 1) * item);
  checked(PyCapsule_SetName(capsule, used));
  IntrusivePtr<Storage> storage = Storage::make(data, nbytes, kCpu, release<Managed>, m);
  storage->set_resizable(false);
  Tensor t = Tensor::adopt(
      TensorImpl::make(dtype, kCpu, strided_keys(DeviceType::CPU), std::move(storage)));
  t.impl()->set_window(sizes, strides, -low);
  return wrap(std::move(t));
}

// _from_dlpack(capsule) -> Tensor
PyObject* from_dlpack(PyObject*, PyObject* capsule) {
  LAMINA_BORDER_BEGIN
  if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    return import_tensor<DlVersioned>(capsule, "used_dltensor_versioned");
  if (PyCapsule_IsValid(capsule, "dltensor"))
    return import_tensor<DlManaged>(capsule, "used_dltensor");
  raise_runtime(
      "from_dlpack: expected a fresh capsule of DLPack; a capsule can be consumed only once");
  LAMINA_BORDER_END
}

}  // namespace

PyMethodDef dlpack_functions[] = {{"_to_dlpack", to_dlpack, METH_VARARGS, nullptr},
                                  {"_from_dlpack", from_dlpack, METH_O, nullptr},
                                  {}};

}  // namespace lamina::border
