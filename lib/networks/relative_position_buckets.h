// lib/networks/relative_position_buckets.h - buckets of relative positions.
//
// int32 [2 * most - 1]: element i is the bucket of query - key = i - (most - 1). Logarithms are
// taken in fp32, as in the models' own code, so that distances at the ends of buckets fall into the
// same ones.
#pragma once

#include "lib/ir/tensor.h"

namespace mlc {

// T5's (arXiv 1910.10683, section 2.1; transformers' modeling_mpnet.py, relative_position_bucket):
// half of the buckets for keys behind the query, half for the others; the first half of these one
// distance each, the rest logarithmic up to `max_distance`.
Tensor BiasBuckets(int64_t most, int64_t buckets, int64_t max_distance);

// DeBERTa's, plus `span`, within [0, 2 * span) (transformers' modeling_deberta_v2.py,
// make_log_bucket_position): one distance each up to buckets / 2, then logarithmic up to
// `max_distance`. buckets 0: one distance each.
Tensor DisentangledBuckets(int64_t most, int64_t buckets, int64_t max_distance, int64_t span);

}  // namespace mlc
