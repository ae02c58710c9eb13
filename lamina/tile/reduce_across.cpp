// Reductions across kept elements: rows folded into a row.
#include <algorithm>
#include <memory>

#include "lamina/queue/parallel.h"
#include "lamina/tile/reduce.h"

namespace lamina::tile {

namespace {
constexpr int64_t kTile = 512;  // kept elements folded at a time, gathered and converted in between
constexpr int64_t kWideTile = 2048;  // where rows are folded as they lie
}  // namespace

void Reduction::fold_rows(char* parts, const char* in, int64_t begin, int64_t rows, int64_t cols,
                          char* spare, char* raw, char* to) const {
  if (rows > kRowsPerFold) {
    const int64_t half = split_point(rows, kRowsPerFold);
    fold_rows(parts, in, begin, half, cols, spare, raw, to);
    char* second = spare;
    fold_rows(second, in, begin + half, rows - half, cols, spare + cols * item, raw, to);
    level.fold_across[static_cast<int>(merge_fold)][slot](parts, parts, (second - parts) / item, 2,
                                                          cols);
    return;
  }
  Walk walk(reduced, in, begin);
  const FoldAcross across = level.fold_across[static_cast<int>(fold)][slot];
  if (plain() && kept.in[0] == in_item && rows <= walk.left() && reduced.in[0] % item == 0)
    return across(parts, walk.in, reduced.in[0] / item, rows, cols);
  char* gathered = plain() ? to : raw;
  for (int64_t done = 0;;) {
    const int64_t run = std::min(rows - done, walk.left());
    level.move[size_index(in_item)](gathered + done * cols * in_item, cols * in_item, in_item,
                                    walk.in, reduced.in[0], kept.in[0], run, cols);
    done += run;
    if (done == rows) break;
    walk.next_run();
  }
  if (gathered != to) finish_load(to, raw, rows * cols);
  across(parts, to, cols, rows, cols);
}

void Reduction::run_across() {
  const bool in_place =
      plain() && kept.in[0] == in_item && reduced.n == 1 && reduced.in[0] % item == 0;
  const int64_t widest = (in_place ? kWideTile : kTile) / (std::max(item, in_item) > 8 ? 2 : 1);
  const int64_t cols = std::min(kept.size[0], widest);
  const int64_t tiles = (kept.size[0] + cols - 1) / cols;
  const int64_t outer = kept.count / kept.size[0];
  // Rows of a chunk: a power of two times kRowsPerFold, so that chunking does not change the tree.
  int64_t chunk_rows = kRowsPerFold;
  while (chunk_rows * cols < kReduceChunk) chunk_rows *= 2;
  const int64_t chunks = (reduced.count + chunk_rows - 1) / chunk_rows;
  int64_t levels = 2;
  for (int64_t rows = kRowsPerFold; rows < std::min(chunk_rows, reduced.count); rows *= 2) ++levels;
  std::unique_ptr<char[]> partials;
  if (chunks > 1)
    partials =
        std::make_unique_for_overwrite<char[]>(static_cast<size_t>(chunks * kept.count * item));
  const int64_t work = cols * std::min(chunk_rows, reduced.count);
  queue::parallel_for(0, outer * tiles * chunks, std::max<int64_t>(1, kParallelGrain / work),
                      [&](int64_t b, int64_t e) {
                        const auto spare = std::make_unique_for_overwrite<char[]>(
                            static_cast<size_t>(levels * cols * item));
                        alignas(64) char raw[kRowsPerFold * kTile * 8];
                        alignas(64) char to[kRowsPerFold * kTile * 8];
                        for (int64_t task = b; task < e; ++task) {
                          const int64_t tile = task % tiles;
                          const int64_t chunk = task / tiles % chunks;
                          const int64_t row = task / tiles / chunks;
                          const int64_t first = row * kept.size[0] + tile * cols;
                          const int64_t count = std::min(cols, kept.size[0] - tile * cols);
                          const int64_t begin = chunk * chunk_rows;
                          fold_rows(spare.get(), place(first).in, begin,
                                    std::min(chunk_rows, reduced.count - begin), count,
                                    spare.get() + cols * item, raw, to);
                          if (chunks == 1)
                            write(spare.get(), first, count);
                          else
                            std::memcpy(partials.get() + (chunk * kept.count + first) * item,
                                        spare.get(), static_cast<size_t>(count * item));
                        }
                      });
  if (chunks == 1) return;
  // The upper part of the same tree, on rows of partial results.
  const FoldAcross across = level.fold_across[static_cast<int>(merge_fold)][slot];
  queue::parallel_for(0, kept.count, kTile, [&](int64_t b, int64_t e) {
    for (int64_t width = 1; width < chunks; width *= 2)
      for (int64_t i = 0; i + width < chunks; i += 2 * width) {
        char* first = partials.get() + (i * kept.count + b) * item;
        across(first, first, width * kept.count, 2, e - b);
      }
  });
  for (int64_t k = 0; k < kept.count; k += kept.size[0])
    write(partials.get() + k * item, k, kept.size[0]);
}

}  // namespace lamina::tile
