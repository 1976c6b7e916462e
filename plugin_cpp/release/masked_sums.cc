#include "plugin_cpp/release/masked_sums.h"

#include <algorithm>  // for copy_n, equal
#include <tuple>      // for tuple_size_v
#include <utility>    // for exchange, move

#include "plugin_cpp/random/chacha20.h"  // for ChaCha20Source, SecureWipe, WipeStack
#include "xgboost/logging.h"             // for CHECK, CHECK_EQ

namespace xgboost::dp {
namespace {
// Each key of pads serves one stream of one sum.
constexpr std::uint32_t kPadStream = 0;
constexpr std::size_t kKind = 8;
constexpr char kPads[] = "dp-pads.";
constexpr char kSums[] = "dp-sums.";
constexpr char kAcknowledged[] = "dp-heard";
constexpr std::size_t kTag = std::tuple_size_v<Tag>;
// Exact sums are below 2^62 and noise is below 2^53: a worker has invented a larger number.
constexpr std::int64_t kMaxSum = (std::int64_t{1} << 62) + (std::int64_t{1} << 53);

struct Kept {
  std::string id;
  std::shared_ptr<MaskedSums> sums;
};

Kept& ThreadSums() {
  static thread_local Kept kept;
  return kept;
}

// All parts have a fixed length, so the encoding is unique.
std::string Text(std::string const& kind, std::int32_t sender, Digest const& context,
                 Digest const& content) {
  CHECK_EQ(kind.size(), kKind);
  auto text = kind;
  for (int shift = 0; shift < 32; shift += 8) {
    text.push_back(static_cast<char>(static_cast<std::uint32_t>(sender) >> shift));
  }
  text.append(context.cbegin(), context.cend());
  return text.append(content.cbegin(), content.cend());
}
}  // namespace

PairKeys::PairKeys(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds) : rank_{rank} {
  CHECK(world >= 2 && rank >= 0 && rank < world) << "Masked sums require at least two workers.";
  keys_.resize(world, Digest{});
  for (std::int32_t peer = 0; peer < world; ++peer) {
    if (peer != rank) {
      auto& key = keys_[peer];
      std::copy_n(seeds + key.size() * static_cast<std::size_t>(peer), key.size(), key.begin());
    }
  }
}

PairKeys::~PairKeys() {
  for (auto& key : keys_) {
    SecureWipe(key.data(), key.size());
  }
}

void PairKeys::Mask(Digest const& context, std::vector<std::uint64_t>* values) const {
  for (std::int32_t peer = 0; peer < this->World(); ++peer) {
    if (peer == rank_) {
      continue;
    }
    ChaChaKey key = Hmac(keys_[peer], Text(kPads, 0, context, Digest{}));
    ChaCha20Source source{key, kPadStream};
    SecureWipe(key.data(), key.size());
    // Unsigned: arithmetic modulo 2^64.
    if (rank_ < peer) {
      for (auto& v : *values) {
        v += source.Next64();
      }
    } else {
      for (auto& v : *values) {
        v -= source.Next64();
      }
    }
  }
  WipeStack();
}

Tag PairKeys::MakeTag(std::int32_t peer, std::int32_t sender, std::string const& kind,
                      Digest const& context, Digest const& content) const {
  CHECK(kind != kPads && peer != rank_);
  auto digest = Hmac(keys_.at(peer), Text(kind, sender, context, content));
  Tag tag{};
  for (std::size_t i = 0; i < 8 * tag.size(); ++i) {
    tag[i / 8] |= static_cast<std::uint64_t>(digest[i]) << (8 * (i % 8));
  }
  return tag;
}

MaskedSums::MaskedSums(std::int32_t rank, std::int32_t world, std::uint8_t const* seeds,
                       Digest const& session)
    : keys_{rank, world, seeds}, transcript_{session} {}

void MaskedSums::Go(Step from, Step to) {
  CHECK(step_ == from)
      << "The pads of this training with masked sums are used up. Start a new training.";
  step_ = to;
}

void MaskedSums::AppendTags(std::string const& kind, Digest const& content, Words* out) const {
  for (std::int32_t peer = 0; peer < this->World(); ++peer) {
    auto tag = peer == this->Rank() ? Tag{}
                                    : keys_.MakeTag(peer, this->Rank(), kind, transcript_, content);
    out->insert(out->end(), tag.cbegin(), tag.cend());
  }
}

bool MaskedSums::IsFrom(std::int32_t sender, std::string const& kind, Digest const& content,
                        std::uint64_t const* tags) const {
  auto right = keys_.MakeTag(sender, sender, kind, transcript_, content);
  std::uint64_t differs = 0;
  for (std::size_t i = 0; i < kTag; ++i) {
    differs |= right[i] ^ tags[kTag * this->Rank() + i];
  }
  return differs == 0;
}

MaskedSums::Words MaskedSums::SendShares(std::string const& what, Words values) {
  this->Go(Step::kSendShares, Step::kAcknowledge);
  size_ = values.size();
  transcript_ =
      Sha256{}.Append(transcript_).Append(what.size()).Append(what).Append(size_).Finish();
  keys_.Mask(transcript_, &values);
  auto digest = Sha256{}.Append(values.data(), sizeof(values[0]) * size_).Finish();
  this->AppendTags(kSums, digest, &values);
  sent_ = values;
  return values;
}

MaskedSums::Words MaskedSums::Acknowledge(Words const& messages) {
  this->Go(Step::kAcknowledge, Step::kUnmask);
  auto each = size_ + kTag * this->World();
  CHECK_EQ(messages.size(), each * this->World());
  sums_.assign(size_, 0);
  wrong_ = -1;
  Sha256 all;
  all.Append(transcript_);
  for (std::int32_t sender = 0; sender < this->World(); ++sender) {
    auto const* words = messages.data() + each * sender;
    auto digest = Sha256{}.Append(words, sizeof(*words) * size_).Finish();
    bool right = sender == this->Rank() ? std::equal(sent_.cbegin(), sent_.cend(), words)
                                        : this->IsFrom(sender, kSums, digest, words + size_);
    if (!right) {
      wrong_ = wrong_ < 0 ? sender : wrong_;
    }
    all.Append(digest);
    for (std::size_t i = 0; i < size_; ++i) {
      sums_[i] += words[i];  // unsigned: modulo 2^64
    }
  }
  sent_.clear();
  transcript_ = all.Finish();
  if (wrong_ >= 0) {
    sums_.clear();
    return Words(kTag * this->World(), 0);
  }
  Words answer;
  this->AppendTags(kAcknowledged, Digest{}, &answer);
  return answer;
}

std::vector<std::int64_t> MaskedSums::Unmask(Words const& acknowledgements) {
  this->Go(Step::kUnmask, Step::kFailed);
  CHECK(wrong_ < 0) << "Masked sums: the message received from worker " << wrong_
                    << " cannot be authenticated: it was sent by someone else, was changed in "
                       "transit, or belongs to another release, training or history of results. "
                       "The training has ended. Check the connections between the parties.";
  CHECK_EQ(acknowledgements.size(), kTag * this->World() * this->World());
  for (std::int32_t sender = 0; sender < this->World(); ++sender) {
    CHECK(sender == this->Rank() ||
          this->IsFrom(sender, kAcknowledged, Digest{},
                       acknowledgements.data() + kTag * this->World() * sender))
        << "Masked sums: worker " << sender
        << " does not confirm that it received the same messages as this worker: messages were "
           "changed in transit, or a worker sent different ones. The training has ended. Check the "
           "connections between the parties.";
  }
  std::vector<std::int64_t> out;
  for (auto word : std::exchange(sums_, {})) {
    out.push_back(static_cast<std::int64_t>(word));
    CHECK(out.back() >= -kMaxSum && out.back() <= kMaxSum)
        << "Masked sums: a sum exceeds any possible sum of rows and noise, so a worker sent "
           "invalid numbers. The training has ended. Find out which party runs a different "
           "program.";
  }
  step_ = Step::kSendShares;
  return out;
}

Digest MaskedSums::SharedBytes(std::string const& purpose) const {
  return Sha256{}.Append(transcript_).Append(purpose).Finish();
}

void KeepSums(std::string const& id, std::shared_ptr<MaskedSums> sums) {
  ThreadSums() = {id, std::move(sums)};
}

void DropSums() { ThreadSums() = {}; }

std::shared_ptr<MaskedSums> FindSums(std::string const& id, bool take) {
  auto& kept = ThreadSums();
  CHECK(kept.sums && kept.id == id)
      << "The workers have not agreed on keys for this training with masked sums. Call "
         "`xgboost.train` with `dp_secure_aggregation` on every worker, in the thread that joined "
         "the communicator.";
  auto sums = kept.sums;
  if (take) {
    DropSums();
  }
  return sums;
}
}  // namespace xgboost::dp
