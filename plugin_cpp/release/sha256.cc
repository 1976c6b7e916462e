#include "plugin_cpp/release/sha256.h"

#include <algorithm>  // for min, copy_n

#include "plugin_cpp/random/chacha20.h"  // for SecureWipe

namespace xgboost::dp {
namespace {
std::uint32_t RotateRight(std::uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

constexpr std::size_t kRounds = 64;
// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, kRounds> kConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
}  // namespace

Sha256::~Sha256() {
  SecureWipe(state_.data(), sizeof(state_));
  SecureWipe(buffer_.data(), sizeof(buffer_));
}

void Sha256::Compress(std::uint8_t const* block) {
  std::array<std::uint32_t, kRounds> w;
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = static_cast<std::uint32_t>(block[4 * i]) << 24 |
           static_cast<std::uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(block[4 * i + 2]) << 8 |
           static_cast<std::uint32_t>(block[4 * i + 3]);
  }
  for (std::size_t i = 16; i < kRounds; ++i) {
    auto s0 = RotateRight(w[i - 15], 7) ^ RotateRight(w[i - 15], 18) ^ (w[i - 15] >> 3);
    auto s1 = RotateRight(w[i - 2], 17) ^ RotateRight(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < kRounds; ++i) {
    auto s1 = RotateRight(e, 6) ^ RotateRight(e, 11) ^ RotateRight(e, 25);
    auto t1 = h + s1 + ((e & f) ^ (~e & g)) + kConstants[i] + w[i];
    auto s0 = RotateRight(a, 2) ^ RotateRight(a, 13) ^ RotateRight(a, 22);
    auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  std::array<std::uint32_t, 8> const added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < added.size(); ++i) {
    state_[i] += added[i];
  }
  SecureWipe(w.data(), sizeof(w));
}

Sha256& Sha256::Append(void const* data, std::size_t n_bytes) {
  auto const* from = static_cast<std::uint8_t const*>(data);
  n_bytes_ += n_bytes;
  while (n_bytes > 0) {
    if (n_buffered_ == 0 && n_bytes >= kBlock) {
      this->Compress(from);
      from += kBlock;
      n_bytes -= kBlock;
      continue;
    }
    auto taken = std::min(n_bytes, kBlock - n_buffered_);
    std::copy_n(from, taken, buffer_.begin() + n_buffered_);
    n_buffered_ += taken;
    from += taken;
    n_bytes -= taken;
    if (n_buffered_ == kBlock) {
      this->Compress(buffer_.data());
      n_buffered_ = 0;
    }
  }
  return *this;
}

Sha256& Sha256::Append(std::uint64_t number) {
  std::array<std::uint8_t, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
  return this->Append(bytes.data(), bytes.size());
}

Digest Sha256::Finish() {
  auto n_bits = 8 * n_bytes_;
  std::array<std::uint8_t, kBlock + 8> end{0x80};
  auto n_padding = (n_buffered_ < 56 ? 56 : 120) - n_buffered_;
  for (std::size_t i = 0; i < 8; ++i) {
    end[n_padding + i] = static_cast<std::uint8_t>(n_bits >> (8 * (7 - i)));
  }
  this->Append(end.data(), n_padding + 8);
  Digest out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(state_[i / 4] >> (8 * (3 - i % 4)));
  }
  return out;
}

std::string ToHex(std::uint8_t const* bytes, std::size_t n_bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < n_bytes; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

Digest Hmac(Digest const& key, std::string const& text) {
  constexpr std::size_t kBlock = 64;
  auto padded = [&](std::uint8_t with) {
    std::array<std::uint8_t, kBlock> out;
    out.fill(with);
    for (std::size_t i = 0; i < key.size(); ++i) {
      out[i] ^= key[i];
    }
    return out;
  };
  auto inner = padded(0x36), outer = padded(0x5c);
  auto first = Sha256{}.Append(inner.data(), inner.size()).Append(text).Finish();
  auto out = Sha256{}.Append(outer.data(), outer.size()).Append(first).Finish();
  SecureWipe(inner.data(), sizeof(inner));
  SecureWipe(outer.data(), sizeof(outer));
  return out;
}
}  // namespace xgboost::dp
