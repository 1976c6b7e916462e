#include "plugin_cpp/split/noisy.h"

#include <algorithm>  // for max, copy
#include <cmath>      // for sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for int64_t
#include <limits>     // for numeric_limits
#include <vector>     // for vector

#include "plugin_cpp/release/workers.h"  // for FromRankZero

namespace xgboost::dp {
namespace {
// What is told of each chosen split: feature, candidate, and (G, H, cells) of both children.
constexpr std::size_t kFields = 8;
}  // namespace

std::vector<std::int64_t> HistogramSelector::AddNoise(std::vector<std::int64_t> sums) const {
  if (!plan_.noise_free) {
    for (auto& sum : sums) {
      sum += DiscreteGaussian(rng_, plan_.histogram_sigma2);
    }
  }
  return sums;
}

double HistogramSelector::Gain(CellSum const& s) const {
  double g = static_cast<double>(s.sum.grad) * plan_.row_bound.GradientStep();
  double step = plan_.row_bound.HessianStep();
  double noise = std::sqrt(plan_.masking.DrawnVariance(plan_.histogram_sigma2) *
                           static_cast<double>(s.cells));
  double h = std::max({static_cast<double>(s.sum.hess) * step, noise * step,
                       plan_.leaf.min_child_weight, 1e-6});
  return g * g / (h + plan_.leaf.lambda);
}

std::size_t HistogramSelector::NumCells(bst_feature_t f) const {
  // The bins and the missing values, or the two sides of the only cut.
  return plan_.split == SplitChoice::kPartial ? 2 : candidates_->NumBins(f) + 1;
}

std::vector<HistogramSelector::Offer> HistogramSelector::MakeOffers(
    bst_feature_t f, std::int64_t cut, std::vector<GradientSum> const& released) const {
  std::vector<Offer> offers;
  if (plan_.split == SplitChoice::kPartial) {
    offers.push_back({static_cast<std::size_t>(cut), {released[0], 1}, {released[1], 1}});
    return offers;
  }
  candidates_->ForEachOfCells(f, released,
                              [&](std::size_t idx, CellSum const& left, CellSum const& right) {
                                offers.push_back({idx, left, right});
                              });
  return offers;
}

std::vector<std::int64_t> HistogramSelector::DrawCuts(std::vector<OpenNode> const& nodes,
                                                      bool oblivious) const {
  if (plan_.split != SplitChoice::kPartial) {
    return {};
  }
  return FromRankZero(ctx_, [&] {
    std::vector<std::int64_t> cuts, of_node;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (i == 0 || !oblivious) {
        of_node.clear();
        for (auto f : nodes[i].features) {
          of_node.push_back(
              static_cast<std::int64_t>(UniformBelow(structure_, candidates_->Size(f))));
        }
      }
      cuts.insert(cuts.end(), of_node.cbegin(), of_node.cend());
    }
    return cuts;
  });
}

std::vector<std::int64_t> HistogramSelector::ListSums(std::vector<OpenNode> const& nodes,
                                                      std::vector<std::int64_t> const& cuts) const {
  std::vector<GradientSum> cells;
  auto cut = cuts.cbegin();
  for (auto const& node : nodes) {
    for (auto f : node.features) {
      if (plan_.split == SplitChoice::kPartial) {
        auto split = candidates_->At(f, *cut++);
        auto sides = candidates_->SumsOf(f, node.hist, node.total).Cells({&split, 1});
        cells.insert(cells.end(), sides.cbegin(), sides.cend());
      } else {
        auto of_feature = candidates_->Cells(f, node.hist, node.total);
        cells.insert(cells.end(), of_feature.cbegin(), of_feature.cend());
      }
    }
  }
  return Flat(cells);
}

std::vector<std::int64_t> HistogramSelector::Choose(
    std::vector<OpenNode> const& nodes, bool oblivious, std::vector<std::int64_t> const& cuts,
    std::vector<std::int64_t> const& released) const {
  std::vector<std::vector<std::vector<Offer>>> offers(nodes.size());
  auto cut = cuts.cbegin();
  auto sum = released.cbegin();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (auto f : nodes[i].features) {
      std::vector<GradientSum> cells(this->NumCells(f));
      for (auto& cell : cells) {
        cell = {sum[0], sum[1]};
        sum += 2;
      }
      offers[i].push_back(this->MakeOffers(f, cuts.empty() ? 0 : *cut++, cells));
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
}

std::vector<ReleasedSplit> HistogramSelector::Select(std::vector<OpenNode> const& nodes,
                                                     bool oblivious) const {
  auto cuts = this->DrawCuts(nodes, oblivious);
  // Every sum of every feature is released, node by node, before anything is chosen.
  std::vector<std::int64_t> released;
  if (masked_) {
    released = masked_->Release(this->ListSums(nodes, cuts), plan_.histogram_sigma2);
  }
  // Masked sums are known to all; one worker decides, so that rounding is the same for all.
  auto flat = FromRankZero(ctx_, [&] {
    if (!masked_) {
      released = this->AddNoise(this->ListSums(nodes, cuts));
    }
    return this->Choose(nodes, oblivious, cuts, released);
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
