#include "lamina/core/tensor_impl.h"

#include <functional>
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

inline TensorImpl::~TensorImpl() = default;

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
  // Both headers at once, while nobody holds a part of the block.
  void drop_all() noexcept {
    impl.~TensorImpl();
    storage.~Storage();
    free_block(this, bytes_offset() + room);
  }
  bool unshared(const Storage* of_impl) const {
    return of_impl == &storage && storage.use_count() == 1;
  }
  TensorBlock(ScalarType dtype, Device device, void* data, size_t bytes, uint32_t room)
      : impl(dtype, device, strided_keys(device.type), &storage),
        storage(data, bytes, device, nullptr, nullptr),
        room(room) {
    impl.in_block_ = true;
    impl.inference_ = t_mode.inference;
    storage.in_block_ = true;
  }
  ~TensorBlock() = delete;
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
const size_t TensorBlock::kStorageOffset = offsetof(TensorBlock, storage);
#pragma GCC diagnostic pop

namespace {
inline __attribute__((always_inline)) TensorBlock* make_block(ScalarType dtype, Device device,
                                                              size_t bytes) {
  // Two block sizes only, so that the free lists stay short.
  const uint32_t room = bytes <= 64 ? 64 : TensorImpl::kMaxInBlock;
  char* memory = static_cast<char*>(allocate_block(TensorBlock::bytes_offset() + room));
  // Nothing to point at is a null pointer, as in a storage of its own.
  char* data = bytes ? memory + TensorBlock::bytes_offset() : nullptr;
  return new (memory) TensorBlock(dtype, device, data, bytes, room);
}
}  // namespace

TensorImpl* TensorImpl::make_in_block(ScalarType dtype, Device device, size_t bytes) {
  return &make_block(dtype, device, bytes)->impl;
}

TensorImpl* TensorImpl::make_in_block(ScalarType dtype, Device device, size_t bytes, IntList sizes,
                                      int64_t numel) {
  TensorImpl* impl = &make_block(dtype, device, bytes)->impl;
  const auto n = static_cast<int>(sizes.size());
  int64_t* p = impl->inline_;
  int64_t step = 1;
  for (int i = n - 1; i >= 0; --i) {
    const int64_t size = sizes[i];
    p[i] = size;
    p[n + i] = step;
    step *= size > 1 ? size : 1;
  }
  impl->ndim_ = static_cast<uint8_t>(n);
  impl->numel_ = numel;
  return impl;
}

TensorImpl* TensorImpl::make(ScalarType dtype, Device device, KeySet keys,
                             IntrusivePtr<Storage> storage) {
  void* memory = allocate_block(sizeof(TensorImpl));
  TensorImpl* impl = new (memory) TensorImpl(dtype, device, keys, storage.leak());
  impl->inference_ = t_mode.inference;
  return impl;
}

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
  if (block && block->unshared(storage)) {
    block->drop_all();
    if (base) base->release();
    return;
  }
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

int64_t* TensorImpl::reserve_heap_dims(int64_t ndim) {
  LAMINA_CHECK(ndim <= 64, "tensor: too many dimensions; got ", ndim, "; expected at most 64");
  heap_.reset(new int64_t[2 * ndim]);
  ndim_ = static_cast<uint8_t>(ndim);
  return heap_.get();
}

namespace {
// Whether a list lies in [low, high): a tensor may be given its own sizes or strides.
bool lies_in(IntList list, const int64_t* low, const int64_t* high) {
  return std::less_equal<>()(low, list.data()) && std::less<>()(list.data(), high);
}
}  // namespace

void TensorImpl::set_window(IntList sizes, IntList strides, int64_t offset) {
  const int64_t* own = sizes_data();
  const int64_t* own_end = own + 2 * ndim_;
  if (lies_in(sizes, own, own_end) || lies_in(strides, own, own_end)) {
    const Sizes keep_sizes{std::span<const int64_t>(sizes)},
        keep_strides{std::span<const int64_t>(strides)};
    return set_window(keep_sizes, keep_strides, offset);
  }
  const auto n = static_cast<int64_t>(sizes.size());
  int64_t* p = reserve_dims(n);
  for (int64_t i = 0; i < n; ++i) {
    p[i] = sizes[i];
    p[n + i] = strides[i];
  }
  finish_window(offset);
}

void TensorImpl::finish_window(int64_t offset) {
  const int64_t n = ndim_;
  const int64_t* p = sizes_data();
  int64_t numel = 1;
  bool contiguous = true, overflow = false;
  for (int64_t i = n - 1; i >= 0; --i) {
    // A size of one has no stride; `numel` is the stride that row-major order would have.
    contiguous &= p[i] == 1 || p[n + i] == numel;
    overflow |= __builtin_mul_overflow(numel, p[i], &numel);
  }
  if (overflow) [[unlikely]]
    numel = numel_of(this->sizes());  // raises, unless a size is zero
  numel_ = numel;
  offset_ = offset;
  contiguous_ = contiguous || numel == 0;
}

void TensorImpl::set_contiguous_window(IntList sizes) {
  const int64_t n = static_cast<int64_t>(sizes.size());
  const bool own = lies_in(sizes, sizes_data(), sizes_data() + 2 * ndim_);
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
