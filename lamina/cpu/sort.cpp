// Sorting by unsigned keys: every type maps to an unsigned integer whose order is that of the
// values (NaN last, both zeros equal), so one radix sort serves all types and is stable. Values go
// out as they came in, bit for bit.
#include "lamina/cpu/sort.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/scratch.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {
namespace {

constexpr int64_t kSmallSort = 96;    // below, insertion beats counting
constexpr int64_t kRowGrain = 32768;  // elements in a chunk of a parallel loop
constexpr int64_t kInsertionK = 48;   // topk up to here keeps its best in a sorted list
constexpr int64_t kScan = 64;

// The unsigned key of an element given by its bits.
template <class U>
U float_key(U bits, U nan_above) {
  constexpr U kSign = U(1) << (sizeof(U) * 8 - 1);
  const U magnitude = bits & static_cast<U>(~kSign);
  if (magnitude == 0) bits = 0;
  const U key = bits & kSign ? static_cast<U>(~bits) : static_cast<U>(bits | kSign);
  return magnitude > nan_above ? static_cast<U>(~U(0)) : key;
}
template <class U>
struct UnsignedKey {
  using Key = U;
  static Key of(U v) { return v; }
};
template <class U>
struct SignedKey {
  using Key = U;
  static Key of(U v) { return v ^ static_cast<U>(U(1) << (sizeof(U) * 8 - 1)); }
};
template <class U, U kInfinity>
struct FloatKey {
  using Key = U;
  static Key of(U v) { return float_key<U>(v, kInfinity); }
};

// Calls f with the key mapping of a dtype.
template <class F>
void visit_key(const char* op, ScalarType dtype, F&& f) {
  switch (dtype) {
    case ScalarType::Bool:
    case ScalarType::UInt8:
      return f(UnsignedKey<uint8_t>());
    case ScalarType::UInt16:
      return f(UnsignedKey<uint16_t>());
    case ScalarType::UInt32:
      return f(UnsignedKey<uint32_t>());
    case ScalarType::UInt64:
      return f(UnsignedKey<uint64_t>());
    case ScalarType::Int8:
      return f(SignedKey<uint8_t>());
    case ScalarType::Int16:
      return f(SignedKey<uint16_t>());
    case ScalarType::Int32:
      return f(SignedKey<uint32_t>());
    case ScalarType::Int64:
      return f(SignedKey<uint64_t>());
    case ScalarType::Float16:
      return f(FloatKey<uint16_t, 0x7c00>());
    case ScalarType::BFloat16:
      return f(FloatKey<uint16_t, 0x7f80>());
    case ScalarType::Float32:
      return f(FloatKey<uint32_t, 0x7f800000>());
    case ScalarType::Float64:
      return f(FloatKey<uint64_t, 0x7ff0000000000000>());
    default:
      raise(ErrorKind::NotImplemented, str(op, ": not implemented for ", name(dtype)));
  }
}

template <class Key>
struct Item {
  Key key;
  uint32_t index;
};

// Stable; the result lies in `items`. `other` is as large.
template <class Key>
void radix_sort(Item<Key>* items, Item<Key>* other, int64_t n) {
  if (n <= kSmallSort) {
    for (int64_t i = 1; i < n; ++i) {
      const Item<Key> v = items[i];
      int64_t j = i;
      for (; j > 0 && items[j - 1].key > v.key; --j) items[j] = items[j - 1];
      items[j] = v;
    }
    return;
  }
  constexpr int kPasses = sizeof(Key);
  uint32_t counts[kPasses][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int p = 0; p < kPasses; ++p) ++counts[p][static_cast<uint8_t>(items[i].key >> (8 * p))];
  Item<Key>*from = items, *to = other;
  for (int p = 0; p < kPasses; ++p) {
    uint32_t* count = counts[p];
    if (count[static_cast<uint8_t>(items[0].key >> (8 * p))] == n)
      continue;  // all digits are the same
    uint32_t sum = 0;
    for (int d = 0; d < 256; ++d) {
      const uint32_t here = count[d];
      count[d] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < n; ++i)
      to[count[static_cast<uint8_t>(from[i].key >> (8 * p))]++] = from[i];
    std::swap(from, to);
  }
  if (from != items)
    std::memcpy(static_cast<void*>(items), from, static_cast<size_t>(n) * sizeof *items);
}

struct Rows {
  const void* self;
  int64_t n, row_stride, stride;
};

template <class Map>
void sort_as(void* values, int64_t* indices, const Rows& rows, int64_t begin, int64_t end,
             bool descending) {
  using Key = typename Map::Key;
  const Scratch first(bytes_of(rows.n, sizeof(Item<Key>))),
      second(bytes_of(rows.n, sizeof(Item<Key>)));
  auto* items = first.get<Item<Key>>();
  const Key flip = descending ? static_cast<Key>(~Key(0)) : Key(0);
  for (int64_t r = begin; r < end; ++r) {
    const Key* row = static_cast<const Key*>(rows.self) + r * rows.row_stride;
    for (int64_t i = 0; i < rows.n; ++i)
      items[i] = {static_cast<Key>(Map::of(row[i * rows.stride]) ^ flip), static_cast<uint32_t>(i)};
    radix_sort(items, second.get<Item<Key>>(), rows.n);
    Key* out = static_cast<Key*>(values) + r * rows.n;
    for (int64_t i = 0; i < rows.n; ++i) {
      out[i] = row[items[i].index * rows.stride];
      indices[r * rows.n + i] = items[i].index;
    }
  }
}

// Rows of 2^32 elements and more.
template <class Map>
void sort_huge(void* values, int64_t* indices, const Rows& rows, int64_t r, bool descending) {
  using Key = typename Map::Key;
  const Key* row = static_cast<const Key*>(rows.self) + r * rows.row_stride;
  int64_t* order = indices + r * rows.n;
  for (int64_t i = 0; i < rows.n; ++i) order[i] = i;
  std::stable_sort(order, order + rows.n, [&](int64_t a, int64_t b) {
    const Key x = Map::of(row[a * rows.stride]), y = Map::of(row[b * rows.stride]);
    return descending ? x > y : x < y;
  });
  Key* out = static_cast<Key*>(values) + r * rows.n;
  for (int64_t i = 0; i < rows.n; ++i) out[i] = row[order[i] * rows.stride];
}

// Best first by smallest key; ties by index.
template <class Key>
bool before(const Item<Key>& a, const Item<Key>& b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

template <class Map>
void topk_as(void* values, int64_t* indices, const Rows& rows, int64_t k, int64_t begin,
             int64_t end, bool largest) {
  using Key = typename Map::Key;
  const bool by_list = k <= kInsertionK;
  const Scratch scratch(bytes_of(by_list ? k : rows.n, sizeof(Item<Key>)));
  auto* best = scratch.get<Item<Key>>();
  const Key flip = largest ? static_cast<Key>(~Key(0)) : Key(0);
  for (int64_t r = begin; r < end; ++r) {
    const Key* row = static_cast<const Key*>(rows.self) + r * rows.row_stride;
    const auto key_at = [&](int64_t i) {
      return static_cast<Key>(Map::of(row[i * rows.stride]) ^ flip);
    };
    if (by_list) {
      int64_t held = 0;
      const auto insert = [&](Key key, int64_t i) {
        int64_t j = held < k ? held++ : k - 1;
        for (; j > 0 && best[j - 1].key > key; --j) best[j] = best[j - 1];
        best[j] = {key, static_cast<uint32_t>(i)};
      };
      int64_t i = 0;
      for (; i < k; ++i) insert(key_at(i), i);
      Key keys[kScan];
      for (; i + kScan <= rows.n; i += kScan) {
        const Key bound = best[k - 1].key;
        // Most blocks have nothing better than the k-th; seeing that takes no branch an element.
        unsigned any = 0;
        if (rows.stride == 1) {
          for (int64_t s = 0; s < kScan; ++s) {
            keys[s] = static_cast<Key>(Map::of(row[i + s]) ^ flip);
            any |= keys[s] < bound;
          }
        } else {
          for (int64_t s = 0; s < kScan; ++s) {
            keys[s] = key_at(i + s);
            any |= keys[s] < bound;
          }
        }
        if (any)
          for (int64_t s = 0; s < kScan; ++s)
            if (keys[s] < best[k - 1].key) insert(keys[s], i + s);
      }
      for (; i < rows.n; ++i)
        if (key_at(i) < best[k - 1].key) insert(key_at(i), i);
    } else {
      for (int64_t i = 0; i < rows.n; ++i) best[i] = {key_at(i), static_cast<uint32_t>(i)};
      if (k < rows.n) std::nth_element(best, best + k, best + rows.n, before<Key>);
      std::sort(best, best + k, before<Key>);
    }
    Key* out = static_cast<Key*>(values) + r * k;
    for (int64_t i = 0; i < k; ++i) {
      out[i] = row[best[i].index * rows.stride];
      indices[r * k + i] = best[i].index;
    }
  }
}

template <class T>
auto comparable(T v) {
  if constexpr (is_small_float_type<T>)
    return static_cast<float>(v);
  else
    return v;
}

template <class T>
int64_t position(const T* row, int64_t n, T value, bool right) {
  const auto v = comparable(value);
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const auto m = comparable(row[middle]);
    // Written with "not", so that a NaN is sought at the end.
    const bool after = right ? !(m > v) : !(m >= v);
    if (after)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

void sort_rows(void* values, int64_t* indices, const void* self, int64_t rows, int64_t n,
               int64_t row_stride, int64_t stride, ScalarType dtype, bool descending) {
  if (rows <= 0 || n <= 0) return;
  const Rows in{self, n, row_stride, stride};
  visit_key("sort", dtype, [&](auto map) {
    using Map = decltype(map);
    queue::parallel_for(0, rows, std::max<int64_t>(1, kRowGrain / 8 / n),
                        [&](int64_t begin, int64_t end) {
                          if (n > std::numeric_limits<uint32_t>::max())
                            for (int64_t r = begin; r < end; ++r)
                              sort_huge<Map>(values, indices, in, r, descending);
                          else
                            sort_as<Map>(values, indices, in, begin, end, descending);
                        });
  });
}

void topk_rows(void* values, int64_t* indices, const void* self, int64_t rows, int64_t n, int64_t k,
               int64_t row_stride, int64_t stride, ScalarType dtype, bool largest) {
  LAMINA_CHECK(k >= 0 && k <= n, "selected index k out of range; got k ", k, " for a size of ", n);
  LAMINA_CHECK(n <= std::numeric_limits<uint32_t>::max(),
               "topk: rows of 2^32 and more elements are not supported; got ", n);
  if (rows <= 0 || k == 0) return;
  const Rows in{self, n, row_stride, stride};
  visit_key("topk", dtype, [&](auto map) {
    queue::parallel_for(0, rows, std::max<int64_t>(1, kRowGrain / n),
                        [&](int64_t begin, int64_t end) {
                          topk_as<decltype(map)>(values, indices, in, k, begin, end, largest);
                        });
  });
}

void searchsorted(int64_t* out, const void* sequence, int64_t rows, int64_t n, const void* values,
                  int64_t value_rows, int64_t per_row, ScalarType dtype, bool right) {
  LAMINA_INTERNAL_CHECK(rows == 1 || rows == value_rows);
  if (value_rows <= 0 || per_row <= 0) return;
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_type<T>) {
      raise(ErrorKind::NotImplemented, str("searchsorted: not implemented for ", name(dtype)));
    } else {
      const auto* s = static_cast<const T*>(sequence);
      const auto* v = static_cast<const T*>(values);
      queue::parallel_for(0, value_rows * per_row, 2048, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          out[i] = position(s + (rows == 1 ? 0 : i / per_row * n), n, v[i], right);
      });
    }
  });
}

}  // namespace lamina::cpu
