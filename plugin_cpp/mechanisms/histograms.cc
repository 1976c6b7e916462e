/**
 * Splits from noisy sums: every sum of a level is released with Gaussian noise. The best split and
 * the sums of its children are post-processing.
 *
 * Histograms (FEVERLESS; DP-GBM) consist of the sums of all bins of all features. Partially random
 * splits (Maddock et al. 2022, section 4.3.2) use one random cut of each feature and the sums of
 * its two sides. A row is in one node of a level and, with a bin for missing values, in one bin or
 * on one side of each feature. The squared L2 sensitivity of a level is therefore the number of
 * features times the sensitivity of leaves.
 *
 * Proof: docs/proofs/sensitivity.md
 */
#include <algorithm>  // for max
#include <cmath>      // for sqrt
#include <cstddef>    // for size_t
#include <cstdint>    // for int32_t
#include <limits>     // for numeric_limits
#include <memory>     // for make_unique, unique_ptr
#include <utility>    // for pair
#include <vector>     // for vector

#include "plugin_cpp/grow/exact_levels.h"  // for ExactLevels
#include "plugin_cpp/grow/splitter.h"      // for Splitter
#include "plugin_cpp/plan/plan.h"          // for HistogramEvent
#include "plugin_cpp/random/samplers.h"    // for UniformBelow

namespace xgboost::dp {
namespace {
class NoisySplits : public Splitter {
 public:
  explicit NoisySplits(SplitterParts const& parts)
      : plan_{parts.plan},
        candidates_{parts.candidates},
        structure_{parts.structure},
        release_{parts.release},
        levels_{parts} {}

  void Begin(common::Span<ClassGradients const> gradients) override {
    CHECK_EQ(gradients.size(), 1);
    levels_.Begin(gradients, {gradients[0].total});
  }
  /** @brief The split with the largest gain on noisy sums, for each node or for a whole level. */
  [[nodiscard]] Partitions Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                                  std::int32_t n_levels) override;
  void Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
              std::vector<std::vector<bst_node_t>> const& children, bool last) override;
  [[nodiscard]] std::vector<LeafSums> End(std::vector<bst_node_t> const& leaves,
                                          std::vector<bst_node_t>* positions) override;

 private:
  /** @brief A feature of a node, its released cells, and its random cut, if any. */
  struct Cells {
    bst_feature_t feature{0};
    std::size_t cut{0};
    NoisySum const* sums{nullptr};
  };
  using NodeCells = std::vector<Cells>;

  /** @brief Features of all nodes, in the order of their release. */
  [[nodiscard]] std::vector<NodeCells> List(std::vector<OpenNode> const& nodes, bool oblivious);
  /** @brief Release the sums of all cells. */
  void ReleaseSums(std::vector<OpenNode> const& nodes, std::size_t class_idx,
                   std::vector<NodeCells>* cells);
  /** @brief Call fn(index, left, right) for the candidates of a feature. */
  template <typename Fn>
  void ForEachCandidate(Cells const& cells, Fn&& fn) const;
  /** @brief The best split of some nodes, as the indices of the feature and the candidate. */
  [[nodiscard]] std::pair<std::size_t, std::size_t> Best(NodeCells const* begin,
                                                         NodeCells const* end) const;
  [[nodiscard]] double Gain(NoisySum const& s) const;

  Plan const& plan_;
  SplitCandidates const& candidates_;
  RandomSource* structure_;
  Release* release_;
  ExactLevels<LocalSum> levels_;
  Released<NoisySum> released_;                        // of the level
  std::vector<std::pair<NoisySum, NoisySum>> chosen_;  // sums of both children of its nodes
  std::vector<NoisySum> sums_;                         // by node
};

double NoisySplits::Gain(NoisySum const& s) const {
  double g = static_cast<double>(s.grad.Value()) * plan_.row_bound.GradientStep();
  double step = plan_.row_bound.HessianStep();
  double noise = std::sqrt(released_.variance * static_cast<double>(s.cells));
  double h = std::max({static_cast<double>(s.hess.Value()) * step, noise * step,
                       plan_.leaf.min_child_weight, 1e-6});
  return g * g / (h + plan_.leaf.lambda);
}

std::vector<NoisySplits::NodeCells> NoisySplits::List(std::vector<OpenNode> const& nodes,
                                                      bool oblivious) {
  std::vector<NodeCells> out;
  for (auto const& node : nodes) {
    if (oblivious && !out.empty()) {
      out.push_back(out.front());
      continue;
    }
    out.emplace_back();
    for (auto f : node.features) {
      out.back().push_back({f});
      if (plan_.split == SplitChoice::kPartial) {
        out.back().back().cut = UniformBelow(structure_, candidates_.Size(f));
      }
    }
  }
  return out;
}

void NoisySplits::ReleaseSums(std::vector<OpenNode> const& nodes, std::size_t class_idx,
                              std::vector<NodeCells>* cells) {
  std::vector<LocalSum> exact;
  std::vector<std::size_t> begins;
  std::vector<LocalSum> memory;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto sums = levels_.Sums(nodes[i].nidx);
    for (auto const& [f, cut, unused] : (*cells)[i]) {
      begins.push_back(exact.size());
      if (plan_.split == SplitChoice::kPartial) {
        auto split = candidates_.At(f, cut);
        auto sides = candidates_.Cells({&split, 1}, sums);
        exact.insert(exact.end(), sides.cbegin(), sides.cend());
      } else {
        auto bins = candidates_.Bins(f, sums, &memory);
        exact.insert(exact.end(), bins.data(), bins.data() + bins.size());
        exact.push_back(candidates_.Missing(f, sums));
      }
    }
  }
  released_ = release_->AddNoise(HistogramEvent(plan_), exact, class_idx);
  auto begin = begins.cbegin();
  for (auto& node_cells : *cells) {
    for (auto& feature_cells : node_cells) {
      feature_cells.sums = released_.values.data() + *begin++;
    }
  }
}

template <typename Fn>
void NoisySplits::ForEachCandidate(Cells const& cells, Fn&& fn) const {
  if (plan_.split == SplitChoice::kPartial) {
    fn(cells.cut, cells.sums[0], cells.sums[1]);
    return;
  }
  auto n_bins = candidates_.NumBins(cells.feature);
  NoisySum total;
  for (std::size_t i = 0; i <= n_bins; ++i) {
    total += cells.sums[i];
  }
  candidates_.ForEach(cells.feature, cells.sums, cells.sums[n_bins], total, fn);
}

std::pair<std::size_t, std::size_t> NoisySplits::Best(NodeCells const* begin,
                                                      NodeCells const* end) const {
  std::pair<std::size_t, std::size_t> best;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < begin->size(); ++j) {
    std::vector<double> gains;
    std::vector<std::size_t> idx;
    for (auto const* node = begin; node != end; ++node) {
      std::size_t k = 0;
      this->ForEachCandidate((*node)[j], [&](auto i, NoisySum const& left, NoisySum const& right) {
        if (node == begin) {
          gains.push_back(0.0);
          idx.push_back(i);
        }
        gains[k++] += this->Gain(left) + this->Gain(right);
      });
    }
    for (std::size_t k = 0; k < gains.size(); ++k) {
      if (gains[k] > largest) {
        largest = gains[k];
        best = {j, idx[k]};
      }
    }
  }
  return best;
}

Partitions NoisySplits::Choose(std::vector<OpenNode> const& nodes, TreeSpec const& tree,
                               std::int32_t) {
  auto cells = this->List(nodes, tree.oblivious);
  // All sums are released before anything is chosen.
  this->ReleaseSums(nodes, tree.class_idx, &cells);
  Partitions partitions;
  chosen_.clear();
  std::pair<std::size_t, std::size_t> best;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i == 0 || !tree.oblivious) {
      best = this->Best(&cells[i], tree.oblivious ? cells.data() + cells.size() : &cells[i] + 1);
    }
    auto const& feature_cells = cells[i][best.first];
    auto split = candidates_.At(feature_cells.feature, best.second);
    partitions.Add(&split, 1);
    this->ForEachCandidate(feature_cells,
                           [&](auto idx, NoisySum const& left, NoisySum const& right) {
                             if (idx == best.second) {
                               chosen_.emplace_back(left, right);
                             }
                           });
  }
  return partitions;
}

void NoisySplits::Follow(std::vector<OpenNode> const& nodes, Partitions const& partitions,
                         std::vector<std::vector<bst_node_t>> const& children, bool last) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    sums_.resize(std::max(sums_.size(), static_cast<std::size_t>(children[i][1]) + 1));
    sums_[children[i][0]] = chosen_[i].first;
    sums_[children[i][1]] = chosen_[i].second;
  }
  levels_.Follow(nodes, partitions, children, last);
}

std::vector<LeafSums> NoisySplits::End(std::vector<bst_node_t> const& leaves,
                                       std::vector<bst_node_t>* positions) {
  levels_.Positions(positions);
  Released<NoisySum> out{{}, released_.variance};
  for (auto nidx : leaves) {
    out.values.push_back(sums_[nidx]);
  }
  return {out};
}

}  // namespace

std::unique_ptr<Splitter> MakeNoisySplits(SplitterParts const& parts) {
  return std::make_unique<NoisySplits>(parts);
}
}  // namespace xgboost::dp
