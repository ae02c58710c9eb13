// Random numbers whose distribution each element has for itself, drawn one after the other from one
// generator: the bits depend on the seed and the parameters alone.
#pragma once

#include "lamina/cpu/random.h"

namespace lamina::cpu {

// All arrays hold n doubles. Poisson numbers of the means `rate`, which are not negative.
void poisson(double* out, const double* rate, int64_t n, Mt19937Generator& g);
// Successes among count[i] trials of probability p[i], which lies in [0, 1].
void binomial(double* out, const double* count, const double* p, int64_t n, Mt19937Generator& g);
// Gamma numbers of shape `alpha` > 0 and rate 1, at least the smallest normal double.
void standard_gamma(double* out, const double* alpha, int64_t n, Mt19937Generator& g);

// How a gamma number x of shape alpha moves with alpha at a fixed probability: -(dP/dalpha) /
// (dP/dx) with P(alpha, x) the regularized lower incomplete gamma function.
double standard_gamma_grad(double alpha, double x);

}  // namespace lamina::cpu
