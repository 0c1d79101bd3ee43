// lib/networks/relative_position_buckets.h - buckets of relative positions.
//
// The tables are int32 [2 * most - 1]: element i is the bucket of query - key = i - (most - 1).
// Logarithms are computed in fp32, as in the models' own code, so that distances at bucket
// boundaries fall into the same buckets.
#pragma once

#include "lib/ir/tensor.h"

namespace mlc::networks {

// Returns T5's buckets (arXiv 1910.10683, section 2.1; transformers' modeling_mpnet.py,
// relative_position_bucket): half of the buckets are for keys before the query, half for the
// others. In each half, the first half of the buckets are for one distance each, the rest are
// logarithmic up to `max_distance`. With `one_sided`, for decoders, all buckets are for keys up to the
// query.
Tensor BiasBuckets(int64_t most, int64_t buckets, int64_t max_distance, bool one_sided = false);

// Returns DeBERTa's buckets plus `span`, within [0, 2 * span) (transformers'
// modeling_deberta_v2.py, make_log_bucket_position): one distance each up to buckets / 2, then
// logarithmic up to `max_distance`. If buckets is 0, each distance has a separate bucket.
Tensor DisentangledBuckets(int64_t most, int64_t buckets, int64_t max_distance, int64_t span);

}  // namespace mlc::networks
