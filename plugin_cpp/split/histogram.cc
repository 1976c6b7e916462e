#include "plugin_cpp/split/histogram.h"

#include <algorithm>  // for max, copy
#include <cmath>      // for sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t
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

std::vector<HistogramSelector::Offer> HistogramSelector::MakeOffers(OpenNode const& node,
                                                                    bst_feature_t f,
                                                                    std::size_t random) const {
  std::vector<Offer> offers;
  if (plan_.split == SplitChoice::kPartial) {
    auto left = candidates_->LeftSum(candidates_->At(f, random), node.hist, node.total);
    auto sides = this->Release({left, node.total - left});
    offers.push_back({random, {sides[0], 1}, {sides[1], 1}});
    return offers;
  }
  candidates_->ForEachOfCells(f, this->Release(candidates_->Cells(f, node.hist, node.total)),
                              [&](std::size_t idx, CellSum const& left, CellSum const& right) {
                                offers.push_back({idx, left, right});
                              });
  return offers;
}

std::vector<ReleasedSplit> HistogramSelector::Select(std::vector<OpenNode> const& nodes,
                                                     bool oblivious) const {
  // What rank 0 tells of each node: feature, candidate, and (G, H, cells) of both children.
  constexpr std::size_t kFields = 8;
  auto flat = FromRankZero(ctx_, [&] {
    // Every sum of every feature is released, node by node, before anything is chosen.
    std::vector<std::vector<std::vector<Offer>>> offers(nodes.size());
    std::vector<std::size_t> random;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i == 0 || !oblivious) {
        random.clear();
        for (auto f : nodes[i].features) {
          random.push_back(plan_.split == SplitChoice::kPartial
                               ? UniformBelow(structure_, candidates_->Size(f))
                               : 0);
        }
      }
      for (std::size_t j = 0; j < nodes[i].features.size(); ++j) {
        offers[i].push_back(this->MakeOffers(nodes[i], nodes[i].features[j], random[j]));
      }
    }
    std::vector<std::int64_t> out(nodes.size() * kFields);
    auto n_choices = oblivious ? std::size_t{1} : nodes.size();
    for (std::size_t choice = 0; choice < n_choices; ++choice) {
      auto first = oblivious ? std::size_t{0} : choice;
      auto last = oblivious ? nodes.size() : choice + 1;
      auto const& features = nodes[first].features;
      double best = -std::numeric_limits<double>::infinity();
      std::size_t best_j = 0, best_k = 0;
      for (std::size_t j = 0; j < features.size(); ++j) {
        for (std::size_t k = 0; k < offers[first][j].size(); ++k) {
          double gain = 0.0;
          for (auto i = first; i < last; ++i) {
            gain += this->Gain(offers[i][j][k].left) + this->Gain(offers[i][j][k].right);
          }
          if (gain > best) {
            best = gain;
            best_j = j;
            best_k = k;
          }
        }
      }
      for (auto i = first; i < last; ++i) {
        auto const& [idx, left, right] = offers[i][best_j][best_k];
        std::vector<std::int64_t> fields{static_cast<std::int64_t>(features[best_j]),
                                         static_cast<std::int64_t>(idx), left.sum.grad,
                                         left.sum.hess, left.cells, right.sum.grad,
                                         right.sum.hess, right.cells};
        std::copy(fields.cbegin(), fields.cend(), out.begin() + i * kFields);
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
