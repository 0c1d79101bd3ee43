// lib/passes/chunks.h - the form in which the pass channels-first represents values: one or more
// chunks, which are tensors of four dimensions (batch, channels, height, width). A divided
// dimension, such as that of attention heads, has one chunk for each index.
//
// A value [1, 16, 4, 32] whose dimensions are none, width, divided and channel consists of four
// chunks [1, 32, 1, 16]. Reordering the dimensions of a value needs no operation: only its roles
// change.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lib/passes/rewriting.h"

namespace mlc::passes {

// The dimension of the chunks that holds a dimension of the value; kNone for dimensions of 1.
enum class Role : uint8_t { kNone, kBatch, kChannel, kHeight, kWidth, kDivided };
using Roles = std::vector<Role>;  // one for each dimension

// The dimension of a chunk for each role but kNone and kDivided.
inline int64_t PlaceOf(Role role) { return static_cast<int64_t>(role) - 1; }

struct Chunked {
  Roles roles;
  std::vector<Value*> chunks;  // in row-major order of the divided dimensions
};

// Returns the roles of the operand of a linear layer: its last dimension is the channels. Empty if
// it has more dimensions than a chunk.
Roles RolesOfFeatures(const Value* x);
// Returns the roles with kNone for dimensions of 1.
Roles WithoutOnes(Roles roles, const Shape& shape);
// The sizes of the divided dimensions.
std::vector<int64_t> DividedSizes(const Roles& roles, const Shape& shape);
// The shape of all chunks, concatenated along their channels.
Shape ShapeOfChunks(const Roles& roles, const Shape& shape);
// Returns whether a value of this shape can be divided according to these roles and restored: at
// most one dimension is dynamic, the number of chunks is limited to 64, and each role but kDivided
// occurs once.
bool IsPossible(const Roles& roles, const Shape& shape);

// Divides a value; IsPossible must hold.
std::vector<Value*> Divided(Builder& b, Value* value, const Roles& roles);
// The inverse of Divided: the value, of this shape.
Value* Whole(Builder& b, const Chunked& chunked, const Shape& shape);

// Calls f(index of each dimension) for each chunk, in order; the index of an undivided dimension is
// 0.
template <class F>
void ForEachChunk(const Roles& roles, const Shape& shape, F&& f) {
  std::vector<int64_t> index(roles.size(), 0);
  for (;;) {
    f(std::as_const(index));
    size_t i = roles.size();
    while (i-- > 0) {
      if (roles[i] != Role::kDivided) continue;
      if (++index[i] < shape[i].constant()) break;
      index[i] = 0;
    }
    if (i == static_cast<size_t>(-1)) return;
  }
}

// The position of the chunk of an operand of shape `own`, which is broadcast to `shape`.
size_t IndexOf(const std::vector<int64_t>& index, const Roles& roles, const Shape& shape,
               const Shape& own);

// For a reshape that turns the dimensions `source`, with roles `from`, into `target`: sets the
// roles of `target`, and returns false if the reshape mixes dimensions. Channels are divided only
// if `may_divide` returns true.
bool RegroupRoles(const Roles& from, const std::vector<size_t>& source,
                  const std::vector<size_t>& target, const std::function<bool()>& may_divide,
                  Roles& roles);

// The arguments of an operation, other than its data, for the chunks of its data, if the operator
// works in any layout (OpDef::layout).
struct ChunkArguments {
  Builder::Args args;
  std::unordered_set<int64_t> dropped;  // dimensions of the data that the results lack
};
// Returns nothing if arguments are computed, or refer to a divided dimension. Reductions keep their
// dimensions, as 1.
std::optional<ChunkArguments> ArgumentsForChunks(const Operation& op, const Roles& roles);

}  // namespace mlc::passes
