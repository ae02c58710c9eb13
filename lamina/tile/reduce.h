// The parts of a reduction: what is kept and what is folded, how a leaf is loaded, what a partial
// result is.
#pragma once

#include <cstring>

#include "lamina/tile/level.h"

namespace lamina::tile {

// Elements per chunk of one output's reduction: a power of two times kLeaf, so that chunking does
// not change the tree.
inline constexpr int64_t kReduceChunk = 64 * kLeaf;
inline constexpr int64_t kRowsPerFold = 16;
inline constexpr int kMaxGroup = 16;

// Result of a part of one output's elements.
struct Partial {
  alignas(16) unsigned char value[16];  // folds and extremes: of the work type
  int64_t index;                        // argmax and argmin: position in the reduced dimensions
  double mean, m2, count;  // moments; logsumexp keeps its maximum in `mean`, its sum in `m2`
};

struct Reduction {
  enum class Mode : uint8_t { Fold, Find, Moments, LogSumExp };

  const ReduceCall& call;
  const Level& level;
  ScalarType type;  // in which elements are folded
  int slot;
  int64_t item;  // bytes of an element of that type
  Mode mode = Mode::Fold;
  Fold fold = Fold::sum;
  Fold merge_fold = Fold::sum;  // for partial results

  struct Dims {
    int n = 0;
    int64_t size[kMaxDims];
    int64_t in[kMaxDims], out[kMaxDims], index[kMaxDims];  // byte strides
    int64_t count = 1;
  };
  Dims kept, reduced;  // dimension 0 is the innermost
  int64_t in_item;

  // Goes over the reduced elements from number `begin` on, one run of the innermost dimension after
  // the other; `in` is the address of the next.
  struct Walk {
    const Dims& dims;
    const char* in;
    int64_t index[kMaxDims];

    Walk(const Dims& d, const char* first, int64_t begin) : dims(d), in(first) {
      for (int k = 0; k < dims.n; ++k) {
        index[k] = begin % dims.size[k];
        begin /= dims.size[k];
        in += index[k] * dims.in[k];
      }
    }
    int64_t left() const { return dims.size[0] - index[0]; }  // in this run
    void next_run() {
      in -= index[0] * dims.in[0];
      index[0] = 0;
      for (int k = 1; k < dims.n; ++k) {
        in += dims.in[k];
        if (++index[k] < dims.size[k]) break;
        in -= dims.size[k] * dims.in[k];
        index[k] = 0;
      }
    }
  };

  explicit Reduction(const ReduceCall& c);
  void run();

 private:
  void choose_mode();
  void collect_dims();
  void run_empty();
  void run_across();
  void run_groups();
  void run_rows();

  struct Place {
    char* in;
    char* out;
    char* index;
  };
  Place place(int64_t k) const;  // of the k-th kept element
  bool plain() const {
    return call.input.dtype == type && !call.map && call.kind != Reduce::nansum &&
           call.kind != Reduce::count_nonzero;
  }
  void map_block(char* data, int64_t n) const;
  // Converts `n` gathered elements in place of `raw` to the work type at `to` and applies the map.
  void finish_load(char* to, const char* raw, int64_t n) const;

  // One output's elements [begin, begin + n) are adjacent, of the work type, and need no map.
  bool adjacent_rows() const {
    return mode == Mode::Fold && plain() && reduced.n == 1 && reduced.in[0] == in_item;
  }
  void fold_adjacent(char* value, const char* x, int64_t n) const;

  // Per output: leaves of adjacent elements.
  const char* load_leaf(const char* in, int64_t begin, int64_t n, int64_t group, char* raw,
                        char* to, int64_t& row_stride) const;
  void leaf(Partial& part, const char* x, int64_t begin, int64_t n) const;
  void merge(Partial& a, const Partial& b) const;
  void tree(Partial* parts, const char* in, int64_t begin, int64_t n, int64_t group, char* raw,
            char* to) const;
  void finish(const Partial& part, const Place& p) const;
  // Folds: results of `count` kept elements that follow each other in the innermost dimension.
  void write(const char* values, int64_t first, int64_t count) const;

  // Across kept elements: rows folded into a row.
  void fold_rows(char* parts, const char* in, int64_t begin, int64_t rows, int64_t cols,
                 char* spare, char* raw, char* to) const;
};

// Splits n > unit into the largest power of two times unit below n, and the rest: a fixed tree.
constexpr int64_t split_point(int64_t n, int64_t unit) {
  int64_t half = unit;
  while (half * 2 < n) half *= 2;
  return half;
}

}  // namespace lamina::tile
