#include "plugin_cpp/split/histogram.h"

#include <algorithm>  // for max, max_element, copy
#include <cmath>      // for sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t
#include <iterator>   // for distance
#include <limits>     // for numeric_limits
#include <vector>     // for vector

#include "plugin_cpp/distributed.h"  // for FromRankZero

namespace xgboost::dp {
std::vector<GradientSum> HistogramSelector::Release(std::vector<GradientSum> cells) const {
  if (!plan_.noise_free) {
    for (auto& cell : cells) {
      cell.grad += DiscreteGaussian(rng_, plan_.histogram_sigma2);
      cell.hess += DiscreteGaussian(rng_, plan_.histogram_sigma2);
    }
  }
  return cells;
}

double HistogramSelector::Gain(CellSum const& s) const {
  double g = static_cast<double>(s.sum.grad) * plan_.row_bound.GradientStep();
  double step = plan_.row_bound.HessianStep();
  double noise = std::sqrt(static_cast<double>(plan_.histogram_sigma2) *
                           static_cast<double>(s.cells));
  double h = std::max({static_cast<double>(s.sum.hess) * step, noise * step,
                       plan_.leaf.min_child_weight, 1e-6});
  return g * g / (h + plan_.leaf.lambda);
}

std::vector<ReleasedSplit> HistogramSelector::Select(std::vector<OpenNode> const& nodes,
                                                     bool oblivious) const {
  // What rank 0 tells of each node: feature, candidate, and (G, H, cells) of both children.
  constexpr std::size_t kFields = 8;
  auto flat = FromRankZero(ctx_, [&] {
    // Every cell of every feature is released, node by node, before anything is chosen.
    std::vector<std::vector<std::vector<GradientSum>>> released(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (auto f : nodes[i].features) {
        released[i].push_back(this->Release(candidates_->Cells(f, nodes[i].hist, nodes[i].total)));
      }
    }
    std::vector<std::int64_t> out(nodes.size() * kFields);
    auto n_choices = oblivious ? std::size_t{1} : nodes.size();
    for (std::size_t choice = 0; choice < n_choices; ++choice) {
      auto first = oblivious ? std::size_t{0} : choice;
      auto last = oblivious ? nodes.size() : choice + 1;
      auto const& features = nodes[first].features;
      double best = -std::numeric_limits<double>::infinity();
      std::size_t best_j = 0, best_idx = 0;
      std::vector<double> gains;
      for (std::size_t j = 0; j < features.size(); ++j) {
        gains.assign(candidates_->Size(features[j]), 0.0);
        for (auto i = first; i < last; ++i) {
          candidates_->ForEachOfCells(features[j], released[i][j],
                                      [&](std::size_t idx, CellSum const& l, CellSum const& r) {
                                        gains[idx] += this->Gain(l) + this->Gain(r);
                                      });
        }
        auto it = std::max_element(gains.cbegin(), gains.cend());
        if (*it > best) {
          best = *it;
          best_j = j;
          best_idx = std::distance(gains.cbegin(), it);
        }
      }
      for (auto i = first; i < last; ++i) {
        candidates_->ForEachOfCells(
            features[best_j], released[i][best_j],
            [&](std::size_t idx, CellSum const& l, CellSum const& r) {
              if (idx == best_idx) {
                std::vector<std::int64_t> fields{static_cast<std::int64_t>(features[best_j]),
                                                 static_cast<std::int64_t>(idx), l.sum.grad,
                                                 l.sum.hess, l.cells, r.sum.grad, r.sum.hess,
                                                 r.cells};
                std::copy(fields.cbegin(), fields.cend(), out.begin() + i * kFields);
              }
            });
      }
    }
    return out;
  });

  std::vector<ReleasedSplit> splits;
  for (auto const* v = flat.data(); v != flat.data() + flat.size(); v += kFields) {
    splits.push_back({candidates_->At(static_cast<bst_feature_t>(v[0]), v[1]),
                      {{v[2], v[3]}, v[4]},
                      {{v[5], v[6]}, v[7]}});
  }
  return splits;
}
}  // namespace xgboost::dp
