// Batches of matrices: what linear algebra demands of its operands.
#pragma once

#include "lamina/core/error.h"
#include "lamina/core/tensor.h"

namespace lamina {

// Raise Runtime for operands that are no matrices (or batches of them), or not square.
void check_matrix(const Tensor& t, const char* op, const char* name = "A");
void check_square(const Tensor& t, const char* op, const char* name = "A");
// Raises for types that LAPACK does not compute; which kind of error that is differs by operator.
void check_lapack_type(const Tensor& t, const char* op, ErrorKind integers = ErrorKind::Runtime,
                       ErrorKind small_floats = ErrorKind::NotImplemented);

// Sizes of the batch: all but the last two.
Sizes batch_of(const Tensor& t);
// A batch with one or two sizes more.
Sizes with_sizes(Sizes batch, int64_t n);
Sizes with_sizes(Sizes batch, int64_t n, int64_t m);
inline int64_t rows_of(const Tensor& t) { return t.sizes()[static_cast<size_t>(t.dim() - 2)]; }
inline int64_t columns_of(const Tensor& t) { return t.sizes()[static_cast<size_t>(t.dim() - 1)]; }

// Whether B of A X = B is a batch of vectors.
bool is_vector_side(const Tensor& A, const Tensor& B);
// Whether UPLO names the upper triangle; raises Runtime where it is neither L nor U.
bool is_upper(std::string_view uplo, const char* op);

}  // namespace lamina
