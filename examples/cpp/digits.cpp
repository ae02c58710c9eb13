// Trains a classifier with two hidden layers on handwritten digits, without Python in the process:
//
//   gzip -dc examples/data/digits.csv.gz | build/digits [passes]
//
// The same program in Python is python/lamina/demo/digits.py; the numbers are the same to the last
// bit.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>

#include "lamina/lamina.h"

namespace {

using lamina::Tensor;

struct Digits {
  Tensor images;  // (n, 64), values from 0 to 1
  Tensor labels;  // (n)
};

// One digit a line: 64 pixels of 0 to 16, then the label.
Digits load(std::istream& in) {
  std::vector<float> pixels;
  std::vector<int64_t> labels;
  std::string line;
  while (std::getline(in, line)) {
    const char* at = line.data();
    const char* const end = at + line.size();
    for (int field = 0; field < 65; ++field) {
      int64_t value = 0;
      const auto [next, problem] = std::from_chars(at, end, value);
      LAMINA_CHECK_VALUE(problem == std::errc(), "digits: expected 64 pixels and a label; got ",
                         line);
      if (field < 64)
        pixels.push_back(static_cast<float>(value) / 16);
      else
        labels.push_back(value);
      at = next == end ? next : next + 1;  // past the comma
    }
  }
  const int64_t count = static_cast<int64_t>(labels.size());
  return {lamina::from_values(pixels, {count, 64}), lamina::from_values(labels, {count})};
}

Digits select(const Digits& all, const Tensor& rows) {
  return {lamina::index_select(all.images, 0, rows), lamina::index_select(all.labels, 0, rows)};
}

class Classifier {
 public:
  explicit Classifier(const std::vector<int64_t>& sizes) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i) {
      const Tensor weight =
          lamina::randn({sizes[i + 1], sizes[i]}) * std::sqrt(2.0 / static_cast<double>(sizes[i]));
      weights_.push_back(lamina::requires_grad(weight));
      biases_.push_back(lamina::requires_grad(lamina::zeros({sizes[i + 1]})));
    }
  }

  // Scores (n, 10) of images (n, 64).
  Tensor operator()(Tensor x) const {
    for (size_t i = 0; i + 1 < weights_.size(); ++i)
      x = lamina::relu(lamina::linear(x, weights_[i], biases_[i]));
    return lamina::linear(x, weights_.back(), biases_.back());
  }

  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = weights_;
    all.insert(all.end(), biases_.begin(), biases_.end());
    return all;
  }

 private:
  std::vector<Tensor> weights_, biases_;
};

// Stochastic gradient descent: v = momentum v + gradient, p = p - rate v.
class Momentum {
 public:
  explicit Momentum(std::vector<Tensor> parameters, double momentum = 0.9)
      : parameters_(std::move(parameters)), momentum_(momentum) {
    for (const Tensor& p : parameters_) velocities_.push_back(lamina::zeros_like(p));
  }

  void step(double rate) {
    const lamina::NoGrad off;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      lamina::add_(lamina::mul_(velocities_[i], momentum_), lamina::grad(parameters_[i]));
      lamina::sub_(parameters_[i], velocities_[i], rate);
      lamina::set_grad(parameters_[i], {});
    }
  }

 private:
  std::vector<Tensor> parameters_, velocities_;
  double momentum_;
};

double accuracy(const Classifier& model, const Digits& digits) {
  const lamina::NoGrad off;
  const Tensor right = lamina::argmax(model(digits.images), 1) == digits.labels;
  return lamina::item<double>(lamina::mean(lamina::to(right, lamina::ScalarType::Float64)));
}

int run(int passes) {
  constexpr int64_t kTestCount = 360;
  constexpr int64_t kBatch = 32;
  const Digits all = load(std::cin);
  const int64_t total = all.labels.numel();
  LAMINA_CHECK_VALUE(total > kTestCount,
                     "digits: expected more than 360 digits on standard input; got ", total);
  lamina::manual_seed(0);
  const Tensor order = lamina::randperm(total);
  const Digits test = select(all, lamina::narrow(order, 0, 0, kTestCount));
  const Digits train = select(all, lamina::narrow(order, 0, kTestCount, total - kTestCount));
  const int64_t count = train.labels.numel();

  lamina::manual_seed(0);
  const Classifier model({64, 128, 64, 10});
  Momentum optimizer(model.parameters());
  for (int pass = 0; pass < passes; ++pass) {
    const Tensor shuffled = lamina::randperm(count);
    Tensor loss;
    for (int64_t start = 0; start < count; start += kBatch) {
      const Digits batch =
          select(train, lamina::narrow(shuffled, 0, start, std::min(kBatch, count - start)));
      loss = lamina::cross_entropy_loss(model(batch.images), batch.labels);
      lamina::backward(loss);
      optimizer.step(0.1 * (1 - static_cast<double>(pass) / passes));
    }
    if ((pass + 1) % 10 == 0 || pass + 1 == passes)
      std::printf("pass %3d  loss %.4f  test accuracy %.2f %%\n", pass + 1,
                  lamina::item<double>(loss), 100 * accuracy(model, test));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int passes = 100;
  if (argc > 1) {
    const std::string text = argv[1];
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), passes);
    if (argc > 2 || problem != std::errc() || end != text.data() + text.size() || passes < 1) {
      std::fprintf(stderr, "usage: gzip -dc digits.csv.gz | %s [passes]\n", argv[0]);
      return 2;
    }
  }
  try {
    return run(passes);
  } catch (const lamina::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
