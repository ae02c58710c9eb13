#include "lamina/core/tensor_impl.h"

#include <new>

#include "lamina/core/block.h"
#include "lamina/core/error.h"
#include "lamina/core/mode.h"

namespace lamina {

constinit thread_local Mode t_mode;

namespace {
PyObjectReleaser pyobject_releaser = nullptr;
constexpr size_t align_up(size_t n) { return (n + 63) & ~size_t{63}; }
}  // namespace

void set_pyobject_releaser(PyObjectReleaser f) { pyobject_releaser = f; }

// Header, storage and bytes of a small tensor in one allocation. The two headers die independently
// (a view may outlive the tensor, and a tensor may be given another storage), so the block counts
// them.
struct TensorBlock {
  TensorImpl impl;
  Storage storage;
  std::atomic<uint8_t> alive{2};
  const uint32_t room;  // bytes behind the headers

  static TensorBlock* of(TensorImpl* impl) { return reinterpret_cast<TensorBlock*>(impl); }
  static TensorBlock* of(Storage* storage) {
    return reinterpret_cast<TensorBlock*>(reinterpret_cast<char*>(storage) - kStorageOffset);
  }
  static const size_t kStorageOffset;
  static size_t bytes_offset() { return align_up(sizeof(TensorBlock)); }
  void drop() noexcept {
    if (alive.load(std::memory_order_acquire) == 1 ||
        alive.fetch_sub(1, std::memory_order_acq_rel) == 1)
      free_block(this, bytes_offset() + room);
  }
  TensorBlock(ScalarType dtype, Device device, void* data, size_t bytes, uint32_t room)
      : impl(dtype, device, strided_keys(device.type), &storage),
        storage(data, bytes, device, nullptr, nullptr),
        room(room) {
    impl.in_block_ = true;
    storage.in_block_ = true;
  }
  ~TensorBlock() = delete;
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
const size_t TensorBlock::kStorageOffset = offsetof(TensorBlock, storage);
#pragma GCC diagnostic pop

TensorImpl* TensorImpl::make_in_block(ScalarType dtype, Device device, size_t bytes) {
  // Two block sizes only, so that the free lists stay short.
  const uint32_t room = bytes <= 64 ? 64 : kMaxInBlock;
  char* memory = static_cast<char*>(allocate_block(TensorBlock::bytes_offset() + room));
  // Nothing to point at is a null pointer, as in a storage of its own.
  char* data = bytes ? memory + TensorBlock::bytes_offset() : nullptr;
  TensorImpl* impl = &(new (memory) TensorBlock(dtype, device, data, bytes, room))->impl;
  impl->inference_ = t_mode.inference;
  return impl;
}

TensorImpl* TensorImpl::make(ScalarType dtype, Device device, KeySet keys,
                             IntrusivePtr<Storage> storage) {
  void* memory = allocate_block(sizeof(TensorImpl));
  TensorImpl* impl = new (memory) TensorImpl(dtype, device, keys, storage.leak());
  impl->inference_ = t_mode.inference;
  return impl;
}

TensorImpl::~TensorImpl() = default;

void TensorImpl::set_base(TensorImpl* base, ViewOrigin origin) {
  if (base) base->retain();
  if (base_) base_->release();
  base_ = base;
  origin_ = origin;
  view_version_ = version();
}

void TensorImpl::destroy() noexcept {
  if (owns_pyobject_ && pyobject_releaser && pyobject_releaser(pyobject_)) return;
  Storage* storage = std::exchange(storage_, nullptr);
  TensorImpl* base = std::exchange(base_, nullptr);
  TensorBlock* block = in_block_ ? TensorBlock::of(this) : nullptr;
  this->~TensorImpl();
  if (storage) storage->release();
  if (base) base->release();  // a base has none itself: this does not recurse
  if (block)
    block->drop();
  else
    free_block(this, sizeof(TensorImpl));
}

IntrusivePtr<Storage> Storage::make(void* data, size_t nbytes, Device device, Deleter deleter,
                                    void* context) {
  void* memory = allocate_block(sizeof(Storage));
  return IntrusivePtr<Storage>::adopt(new (memory) Storage(data, nbytes, device, deleter, context));
}

void Storage::reset(void* data, size_t nbytes, Deleter deleter, void* context) {
  if (deleter_) deleter_(data_, nbytes_, context_);
  data_ = data;
  nbytes_ = nbytes;
  deleter_ = deleter;
  context_ = context;
}

void Storage::destroy() noexcept {
  TensorBlock* block = in_block_ ? TensorBlock::of(this) : nullptr;
  this->~Storage();
  if (block)
    block->drop();
  else
    free_block(this, sizeof(Storage));
}

int64_t* TensorImpl::reserve_dims(int64_t ndim) {
  LAMINA_CHECK(ndim <= 64, "tensor: too many dimensions; got ", ndim, "; expected at most 64");
  if (ndim > kInlineDims) {
    heap_.reset(new int64_t[2 * ndim]);
    ndim_ = static_cast<uint8_t>(ndim);
    return heap_.get();
  }
  ndim_ = static_cast<uint8_t>(ndim);
  return inline_;
}

void TensorImpl::set_window(IntList sizes, IntList strides, int64_t offset) {
  // The lists may be this tensor's own.
  const Sizes keep_sizes{std::span<const int64_t>(sizes)},
      keep_strides{std::span<const int64_t>(strides)};
  const int64_t n = static_cast<int64_t>(keep_sizes.size());
  int64_t* p = reserve_dims(n);
  int64_t numel = 1;
  for (int64_t i = 0; i < n; ++i) {
    p[i] = keep_sizes[i];
    p[n + i] = keep_strides[i];
    numel *= p[i];
  }
  numel_ = numel;
  offset_ = offset;
  int64_t expected = 1;
  bool contiguous = true;
  for (int64_t i = n - 1; i >= 0; --i) {
    if (p[i] == 1) continue;
    contiguous &= p[n + i] == expected;
    expected *= p[i];
  }
  contiguous_ = contiguous || numel == 0;
}

void TensorImpl::set_contiguous_window(IntList sizes) {
  const int64_t n = static_cast<int64_t>(sizes.size());
  const bool own = sizes.data() == sizes_data();
  const Sizes keep = own ? Sizes{std::span<const int64_t>(sizes)} : Sizes{};
  const int64_t* from = own ? keep.data() : sizes.data();
  int64_t* p = reserve_dims(n);
  int64_t step = 1;
  int64_t numel = 1;
  for (int64_t i = n - 1; i >= 0; --i) {
    p[i] = from[i];
    p[n + i] = step;
    step *= from[i] > 1 ? from[i] : 1;
    numel *= from[i];
  }
  numel_ = numel;
  contiguous_ = true;
}

}  // namespace lamina
