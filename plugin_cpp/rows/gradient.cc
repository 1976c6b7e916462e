#include "plugin_cpp/rows/gradient.h"

#include <algorithm>  // for clamp, max, all_of, copy_n, fill_n, min
#include <array>      // for array
#include <cmath>      // for isinf, sqrt
#include <memory>     // for unique_ptr

#include "common/threading_utils.h"        // for ParallelFor
#include "plugin_cpp/rows/person_bound.h"  // for BoundPersons, WorstNorms
#include "plugin_cpp/simd.h"               // for ResizeInLargePages
#include "xgboost/logging.h"               // for CHECK

namespace xgboost::dp {
namespace {
// In rows. A power of two would map the classes of a row to few cache sets.
constexpr std::size_t kBlock = 504;

struct Block {
  std::size_t begin{0};
  std::size_t n{0};
  std::array<double, kBlock> given;    // weights
  std::array<double, kBlock> weights;  // in their unit, within their public bound
  std::array<double, kBlock> labels;   // kPrediction with a loss of XGBoost
  std::array<double, kBlock> norms;    // kPrediction: the largest over all labels, for C = 1
};

/** @brief The norms of all rows. Often all are equal; they are then read as a single number. */
class RowNorms {
 public:
  RowNorms() = default;
  explicit RowNorms(std::size_t n_rows)
      : n_rows_{n_rows}, same_((n_rows + kBlock - 1) / kBlock), norms_{new float[n_rows]} {}

  void Set(Block const& block) {
    if (!norms_) {
      return;
    }
    auto first = static_cast<float>(block.norms[0]);
    bool is_same = true;
    for (std::size_t k = 0; k < block.n; ++k) {
      is_same &= static_cast<float>(block.norms[k]) == first;
    }
    same_[block.begin / kBlock] = is_same ? first : kDiffer;
    if (!is_same) {
      std::copy_n(block.norms.data(), block.n, norms_.get() + block.begin);
    }
  }

  [[nodiscard]] WorstNorms All() {
    bool is_same = std::all_of(same_.cbegin(), same_.cend(),
                               [&](auto v) { return v == same_[0] && v != kDiffer; });
    for (std::size_t b = 0; !is_same && b < same_.size(); ++b) {
      if (same_[b] != kDiffer) {
        std::fill_n(norms_.get() + b * kBlock, std::min(n_rows_ - b * kBlock, kBlock), same_[b]);
      }
    }
    return {same_.empty() ? 0.0f : same_[0], is_same ? nullptr : norms_.get()};
  }

 private:
  static constexpr float kDiffer = -1;  // no norm

  std::size_t n_rows_{0};
  std::vector<float> same_;  // of each block
  std::unique_ptr<float[]> norms_;
};

/**
 * @brief Inputs of the row bound: gradients at labels clamped to their range, and bounded weights.
 */
class RowInputs {
 public:
  RowInputs(RowBound const& bound, MetaInfo const& info, RoundLoss const& own,
            std::vector<std::uint8_t> const& sample)
      : bound_{bound},
        own_{own},
        info_{info},
        weights_{info.weights_.ConstHostSpan()},
        labels_{info.labels.HostView()},
        sample_{sample} {}

  void Begin(std::size_t begin, std::size_t n, Block* out) const;
  /** @brief Read the pairs of rows; if `is_logistic`, margins instead of gradients. */
  void Read(linalg::MatrixView<GradientPair const> gpair, Block* block, double* gradients,
            double* hessians) const;

 private:
  void Read(Block const& block, GradientPair const* pairs, std::size_t stride, double* gradients,
            double* hessians) const;
  /**
   * @brief Compute the derivatives of the plan's loss and, in the mode kPrediction, the norms of
   *        rows.
   */
  void ReadLoss(Block* block, double* gradients, double* hessians) const;

  RowBound const& bound_;
  RoundLoss const& own_;
  MetaInfo const& info_;
  common::Span<float const> weights_;
  linalg::MatrixView<float const> labels_;
  std::vector<std::uint8_t> const& sample_;
};

void RowInputs::Begin(std::size_t begin, std::size_t n, Block* out) const {
  out->begin = begin;
  out->n = n;
  bool by_prediction = bound_.mode == RowBound::Mode::kPrediction;
  if (by_prediction || bound_.max_weight > 0 || bound_.unit_hessian || own_.loss) {
    if (weights_.empty()) {
      out->given.fill(1.0);  // may exceed the bound too
    } else {
      std::copy_n(weights_.data() + begin, n, out->given.data());
    }
    for (std::size_t k = 0; k < n; ++k) {
      auto weight = out->given[k] / bound_.weight_unit;
      bool heavy = bound_.max_weight > 0 && weight > bound_.max_weight;
      out->weights[k] = heavy ? bound_.max_weight : weight;
    }
  }
  if (by_prediction && !own_.loss) {
    auto const* first = &labels_(begin, 0);
    for (std::size_t k = 0; k < n; ++k) {
      out->labels[k] = first[k * labels_.Stride(0)];
    }
  }
}

void RowInputs::Read(Block const& block, GradientPair const* pairs, std::size_t stride,
                     double* gradients, double* hessians) const {
  auto begin = block.begin, n = block.n;
  for (std::size_t k = 0; k < n; ++k) {
    gradients[k] = pairs[k * stride].GetGrad();
    hessians[k] = pairs[k * stride].GetHess();
  }
  if (bound_.clamp_target) {
    // Squared loss: w (F - y) becomes w (F - clamp(y)). Labels beyond their declared domain are
    // clamped, not refused: the row bound holds in any case.
    for (std::size_t k = 0; k < n; ++k) {
      double y = labels_(begin + k, 0);
      gradients[k] += hessians[k] * (y - std::clamp(y, bound_.target_lower, bound_.target_upper));
    }
  }
  if (bound_.max_weight > 0) {
    for (std::size_t k = 0; k < n; ++k) {
      if (block.weights[k] != block.given[k]) {
        double shrink = block.weights[k] / block.given[k];
        gradients[k] *= shrink;
        hessians[k] *= shrink;
      }
    }
  }
  if (bound_.unit_hessian) {
    std::copy_n(block.weights.data(), n, hessians);
  }
  if (bound_.scale != 1.0) {
    for (std::size_t k = 0; k < n; ++k) {
      gradients[k] /= bound_.scale;
    }
  }
}

void RowInputs::ReadLoss(Block* block, double* g, double* h) const {
  auto begin = block->begin, n = block->n;
  auto const* weights = block->weights.data();
  auto const& loss = *own_.loss;
  auto n_out = loss.NumOutputs(), n_labels = loss.NumLabels();
  std::vector<double> margins(n * n_out), labels(n * n_labels), upper(loss.IsInterval() ? n : 0);
  auto firsts = info_.labels_lower_bound_.ConstHostSpan();
  auto lasts = info_.labels_upper_bound_.ConstHostSpan();
  auto start = own_.round == 0 ? loss.Start() : 0.0;
  for (std::size_t l = 0; l < n_labels; ++l) {
    auto range = loss.TargetRange(l, {bound_.target_lower, bound_.target_upper});
    auto within = [&](double label) { return std::clamp(label, range.lower, range.upper); };
    for (std::size_t i = 0; i < n; ++i) {
      if (loss.IsInterval()) {
        labels[i] = within(firsts[begin + i]);
        double last = lasts[begin + i];
        upper[i] = std::isinf(last) ? last : std::max(within(last), labels[i]);
      } else {
        labels[l * n + i] = within(labels_(begin + i, l));
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n_out; ++k) {
      margins[k * n + i] = own_.margins[(begin + i) * n_out + k] + start;
    }
  }
  LossRows rows{n, margins.data(), labels.data(), upper.data(), weights, own_.round};
  loss.Pairs(rows, g, h);
  for (std::size_t k = 0; k < n_out; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      auto at = k * n + i;
      if (!loss.IsWeighted()) {
        g[at] *= weights[i];
        h[at] *= weights[i];
      }
      if (bound_.unit_hessian) {
        h[at] = weights[i];
      }
    }
  }
  if (bound_.mode == RowBound::Mode::kPrediction) {
    // Unit Hessians do not depend on the label: use the norm of gradients only.
    auto r = bound_.hessian_weight;
    auto* norms = block->norms.data();
    loss.LargestNorms(rows, bound_.unit_hessian ? 0.0 : r, norms);
    for (std::size_t i = 0; bound_.unit_hessian && i < n; ++i) {
      norms[i] = std::sqrt(norms[i] * norms[i] + r * static_cast<double>(n_out));
    }
  }
}

void RowInputs::Read(linalg::MatrixView<GradientPair const> gpair, Block* block, double* gradients,
                     double* hessians) const {
  if (own_.is_logistic) {
    for (std::size_t i = 0, row = block->begin; i < block->n; ++i, ++row) {
      gradients[i] = own_.margins[row];
      block->weights[i] = sample_.empty() || sample_[row] ? block->weights[i] : 0.0;
    }
    return;
  }
  if (own_.loss) {
    this->ReadLoss(block, gradients, hessians);
  }
  for (std::size_t k = 0; k < gpair.Shape(1); ++k) {
    auto *g = gradients + k * block->n, *h = hessians + k * block->n;
    if (!own_.loss) {
      this->Read(*block, &gpair(block->begin, k), gpair.Stride(0), g, h);
    }
    for (std::size_t i = 0; !sample_.empty() && i < block->n; ++i) {
      if (!sample_[block->begin + i]) {
        g[i] = h[i] = 0.0;
      }
    }
  }
}

/** @brief Replaces the gradients of a block, class by class, by integers. */
class BlockQuantiser {
 public:
  BlockQuantiser(RowBound const& bound, RoundLoss const& own, std::size_t n_class)
      : by_prediction_{bound.mode == RowBound::Mode::kPrediction},
        is_logistic_{own.is_logistic},
        has_loss_{own.loss != nullptr},
        n_class_{n_class},
        pair_{bound},
        classes_{bound, n_class} {}

  void operator()(double* gradients, double* hessians, Block* p_block) const {
    auto& block = *p_block;
    auto n = block.n;
    if (is_logistic_) {
      pair_(block.labels.data(), block.weights.data(), gradients, hessians, block.norms.data(), n);
    } else if (by_prediction_) {
      for (std::size_t i = 0; i < n; ++i) {
        auto *g = gradients + i, *h = hessians + i;
        block.norms[i] = has_loss_ ? classes_.Bound(block.norms[i], block.weights[i], g, h, n)
                                   : classes_(block.labels[i], block.weights[i], g, h, n);
      }
    } else {
      pair_(gradients, hessians, n_class_ * n);
    }
  }

 private:
  bool by_prediction_, is_logistic_, has_loss_;
  std::size_t n_class_;
  RowQuantiser pair_;
  ClassQuantiser classes_;
};
}  // namespace

void QuantiseGradients(Context const* ctx, RowBound const& bound, MetaInfo const& info,
                       Persons const* persons, RoundLoss const& own,
                       linalg::MatrixView<GradientPair const> gpair,
                       std::vector<std::uint8_t> const& sample, PersonRows* several,
                       std::vector<ClassGradients>* out) {
  auto n_rows = info.num_row_;
  auto n_class = gpair.Shape(1);
  CHECK(gpair.Shape(0) == n_rows);  // CHECK_EQ would print the number of rows
  CHECK(sample.empty() || sample.size() == n_rows);
  CHECK(bound.person_level == (persons != nullptr));
  out->resize(n_class);
  for (auto& class_gradients : *out) {
    ResizeInLargePages(n_rows, &class_gradients.pairs);
  }
  CHECK(own.margins.size() == n_rows * n_class);
  CHECK(!own.loss || own.loss->NumOutputs() == n_class);
  RowInputs inputs{bound, info, own, sample};
  BlockQuantiser quantise{bound, own, n_class};
  auto n_blocks = (n_rows + kBlock - 1) / kBlock;
  bool has_several = persons && !persons->Groups().empty();
  RowNorms norms;
  if (has_several && bound.mode == RowBound::Mode::kPrediction) {
    norms = RowNorms{n_rows};
  }
  std::vector<LocalSum> partial(n_blocks * n_class);
  common::ParallelFor(n_blocks, ctx->Threads(), [&](auto b) {
    auto begin = static_cast<std::size_t>(b) * kBlock;
    Block block;
    inputs.Begin(begin, std::min(n_rows - begin, kBlock), &block);
    auto n = block.n;
    std::vector<double> gradients(n * n_class), hessians(n * n_class);  // class by class
    inputs.Read(gpair, &block, gradients.data(), hessians.data());
    quantise(gradients.data(), hessians.data(), &block);
    norms.Set(block);
    for (std::size_t k = 0; k < n_class; ++k) {
      LocalSum sum;
      auto* words = (*out)[k].pairs.data() + begin;
      for (std::size_t i = 0; i < n; ++i) {
        // Both are at most 2^24.
        auto g = static_cast<std::int32_t>(gradients[k * n + i]);
        auto h = static_cast<std::int32_t>(hessians[k * n + i]);
        words[i] = PackedPair{g, h};
        sum.grad += g;
        sum.hess += h;
      }
      partial[b * n_class + k] = sum;
    }
  });

  for (std::size_t k = 0; k < n_class; ++k) {
    (*out)[k].total = {};
    for (std::size_t b = 0; b < n_blocks; ++b) {
      (*out)[k].total += partial[b * n_class + k];
    }
  }
  if (has_several) {
    BoundPersons(ctx, bound, *persons, norms.All(), several, out);
  }
}
}  // namespace xgboost::dp
