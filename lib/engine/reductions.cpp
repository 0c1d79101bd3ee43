// Reductions and normalisations on floats, with sums in double, and attention, a softmax between
// two products.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/engine/fp32_view.h"
#include "lib/engine/gemm.h"
#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"
#include "lib/engine/vector_math.h"
#include "lib/ir/arithmetic.h"
#include "lib/ops/eval.h"
#include "lib/support/threads.h"

namespace mlc::engine {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// x as [outer, length, inner], where `length` covers the axes of an operator, which must be
// adjacent.
struct Span {
  int64_t outer = 1, length = 1, inner = 1;
  bool valid = true;
  Span(const Dims& dims, std::vector<int64_t> axes) {
    int rank = static_cast<int>(dims.size());
    for (int64_t& axis : axes) axis = OpContext::Axis(axis, rank);
    std::ranges::sort(axes);
    for (size_t i = 1; i < axes.size(); ++i) valid = valid && axes[i] == axes[i - 1] + 1;
    int64_t first = axes.empty() ? rank : axes.front(), end = axes.empty() ? rank : axes.back() + 1;
    for (int64_t d = 0; d < rank; ++d) (d < first ? outer : d < end ? length : inner) *= dims[d];
    valid = valid && outer * length * inner > 0;
  }
};

double Sum(const float* x, int64_t n) {
  double lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) lanes[k] += static_cast<double>(x[i + k]);
  for (; i < n; ++i) lanes[0] += static_cast<double>(x[i]);
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

double SumSquares(const float* x, int64_t n, double mean) {
  double lanes[8] = {};
  int64_t i = 0;
  auto square = [&](int64_t at) {
    double d = static_cast<double>(x[at]) - mean;
    return d * d;
  };
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) lanes[k] += square(i + k);
  for (; i < n; ++i) lanes[0] += square(i);
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

float Greatest(const float* x, int64_t n) {
  float greatest = -kInfinity;
  for (int64_t i = 0; i < n; ++i)
    greatest = greatest >= x[i] || greatest != greatest ? greatest : x[i];
  return greatest;
}

void SoftmaxRow(const float* x, float* y, int64_t n) {
  float greatest = Greatest(x, n);
  for (int64_t i = 0; i < n; ++i) y[i] = Exp(x[i] - greatest);
  float scale = static_cast<float>(1 / Sum(y, n));
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

// The cost of an element in a softmax or layer norm, relative to that of an addition or copy.
constexpr int64_t kElementCost = 2;

void Softmax(EvalContext& context, int threads, bool wide) {
  Fp32View x(context.in("x"), threads);
  Fp32Result y(context.out_dtype(), context.out_dims(), threads, wide);
  Span span(context.out_dims(), {context.Int("axis")});
  if (span.inner == 1) {
    OmpParallelForRanges(
        span.outer, threads,
        [&](int64_t o, int64_t end) {
          for (; o < end; ++o)
            SoftmaxRow(x.data() + o * span.length, y.data() + o * span.length, span.length);
        },
        kElementCost * span.length);
  } else {
    std::vector<float> greatest(span.inner), sum(span.inner);
    for (int64_t o = 0; o < span.outer; ++o) {
      const float* from = x.data() + o * span.length * span.inner;
      float* to = y.data() + o * span.length * span.inner;
      std::ranges::fill(greatest, -kInfinity);
      std::ranges::fill(sum, 0.0f);
      for (int64_t k = 0; k < span.length; ++k)
        for (int64_t i = 0; i < span.inner; ++i) {
          float v = from[k * span.inner + i];
          greatest[i] = greatest[i] >= v || greatest[i] != greatest[i] ? greatest[i] : v;
        }
      for (int64_t k = 0; k < span.length; ++k)
        for (int64_t i = 0; i < span.inner; ++i)
          sum[i] += to[k * span.inner + i] = Exp(from[k * span.inner + i] - greatest[i]);
      for (int64_t k = 0; k < span.length; ++k)
        for (int64_t i = 0; i < span.inner; ++i) to[k * span.inner + i] /= sum[i];
    }
  }
  context.Set(y.Take());
}

Kernel PrepareSoftmax(const KernelSite& site) {
  if (!IsKernelFloat(site.context.dtype("x")) ||
      !Span(site.context.out_dims(), {site.context.Int("axis")}).valid)
    return {};
  return [threads = site.team(), wide = site.wide](EvalContext& context) {
    Softmax(context, threads, wide);
  };
}

// The additive mask of attention, [.., rows, keys]: -infinity where a boolean mask is false.
struct Mask {
  std::vector<float> values;
  std::vector<int64_t> rows;  // beginning of each row of scores
  int64_t step = 0;
  Mask(const EvalContext& context, const Dims& scores) {
    if (!context.has("attn_mask")) return;
    Tensor mask = context.in("attn_mask");
    if (mask.dtype() == DType::kBool) {
      for (bool kept : mask.data<bool>()) values.push_back(kept ? 0 : -kInfinity);
    } else {
      Fp32View floats(mask);
      values.assign(floats.data(), floats.data() + floats.size());
    }
    Dims strides = BroadcastStrides(mask.dims(), scores), outer = scores;
    step = strides.back();
    strides.pop_back();
    outer.pop_back();
    Walk<1>(outer, {strides}, [&](int64_t at) { rows.push_back(at); });
  }
  void AddTo(int64_t row, float* scores, int64_t keys) const {
    if (values.empty()) return;
    for (int64_t i = 0; i < keys; ++i) scores[i] += values[rows[row] + i * step];
  }
};

void Attention(EvalContext& context, int threads) {
  Fp32View query(context.in("query")), key(context.in("key")), value(context.in("value"));
  Dims dims = StaticDims(context.shape("query"));
  int64_t width = dims.back(), rows = dims[dims.size() - 2],
          value_width = context.out_dims().back();
  Dims scores_dims = dims;
  int64_t keys = scores_dims.back() = StaticDims(context.shape("key"))[dims.size() - 2];
  int64_t batch = ElementCount(Dims(dims.begin(), dims.end() - 2));
  Mask mask(context, scores_dims);
  Fp32Result y(context.out_dtype(), context.out_dims());
  std::fill_n(y.data(), y.size(), 0.0f);
  float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
  double work = static_cast<double>(batch * rows) * static_cast<double>(keys) *
                static_cast<double>(width + value_width);
  // Limits the number of rows of scores at a time, since all scores would need quadratic memory.
  constexpr int64_t kRows = 64;
  const int64_t blocks = (rows + kRows - 1) / kRows;
  ParallelFor(batch * blocks, WorthThreads(work, threads), [&](int64_t block) {
    const int64_t b = block / blocks, first = block % blocks * kRows,
                  count = std::min(kRows, rows - first), row = b * rows + first;
    std::vector<float> scores(count * keys);
    AddProduct(PackedRows({query.data() + row * width, width}, count, width),
               ColumnsOf({key.data() + b * keys * width, 1, width}, keys), keys, scores.data(),
               keys, 1);
    for (int64_t i = 0; i < count; ++i) {
      float* of_row = scores.data() + i * keys;
      for (int64_t j = 0; j < keys; ++j) of_row[j] *= scale;
      mask.AddTo(row + i, of_row, keys);
      SoftmaxRow(of_row, of_row, keys);
    }
    AddProduct(PackedRows({scores.data(), keys}, count, keys),
               ColumnsOf({value.data() + b * keys * value_width, value_width}, value_width),
               value_width, y.data() + row * value_width, value_width, 1);
  });
  context.Set(y.Take());
}

Kernel PrepareAttention(const KernelSite& site) {
  for (std::string_view name : {"query", "key", "value"})
    if (!IsKernelFloat(site.context.dtype(name))) return {};
  return [threads = site.threads](EvalContext& context) { Attention(context, threads); };
}

// gamma and beta, with defaults of one and zero.
struct Affine {
  std::vector<float> gamma, beta;
  Affine(const EvalContext& context, int64_t count) : gamma(count, 1.0f), beta(count, 0.0f) {
    Read(context, "gamma", gamma);
    Read(context, "beta", beta);
  }
  static void Read(const EvalContext& context, std::string_view name, std::vector<float>& values) {
    if (!context.has(name)) return;
    std::vector<double> wide = context.in(name).Doubles();
    std::copy(wide.begin(), wide.end(), values.begin());
  }
};

void LayerNorm(EvalContext& context, int threads, bool wide) {
  Fp32View x(context.in("x"), threads);
  Fp32Result y(context.out_dtype(), context.out_dims(), threads, wide);
  Span span(context.out_dims(), context.Ints("axes"));
  Affine affine(context, span.length);
  double epsilon = context.Double("epsilon");
  auto norm = [&](const float* from, float* to) {
    double n = static_cast<double>(span.length), mean = Sum(from, span.length) / n;
    float center = static_cast<float>(mean);
    float scale =
        static_cast<float>(1 / std::sqrt(SumSquares(from, span.length, mean) / n + epsilon));
    for (int64_t i = 0; i < span.length; ++i)
      to[i] = (from[i] - center) * scale * affine.gamma[i] + affine.beta[i];
  };
  OmpParallelForRanges(
      span.outer, threads,
      [&](int64_t o, int64_t end) {
        for (; o < end; ++o) norm(x.data() + o * span.length, y.data() + o * span.length);
      },
      kElementCost * span.length);
  context.Set(y.Take());
}

Kernel PrepareLayerNorm(const KernelSite& site) {
  if (!IsKernelFloat(site.context.dtype("x"))) return {};
  Span span(site.context.out_dims(), site.context.Ints("axes"));
  if (!span.valid || span.inner != 1) return {};
  return [threads = site.team(), wide = site.wide](EvalContext& context) {
    LayerNorm(context, threads, wide);
  };
}

// Computes to = (from - center) * scale + shift.
void Shift(const float* from, float* to, int64_t n, float center, float scale, float shift) {
  for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - center) * scale + shift;
}

void BatchNorm(EvalContext& context) {
  Dims dims = context.out_dims();
  Fp32View x(context.in("x"));
  Fp32Result y(context.out_dtype(), dims);
  Affine affine(context, dims[1]);
  std::vector<double> mean = context.in("mean").Doubles(),
                      variance = context.in("variance").Doubles();
  double epsilon = context.Double("epsilon");
  int64_t planes = dims[0] * dims[1], inner = planes ? y.size() / planes : 0;
  for (int64_t p = 0; p < planes; ++p) {
    int64_t c = p % dims[1];
    float scale =
        static_cast<float>(static_cast<double>(affine.gamma[c]) / std::sqrt(variance[c] + epsilon));
    Shift(x.data() + p * inner, y.data() + p * inner, inner, static_cast<float>(mean[c]), scale,
          affine.beta[c]);
  }
  context.Set(y.Take());
}

void InstanceNorm(EvalContext& context) {
  Dims dims = context.out_dims();
  Fp32View x(context.in("x"));
  Fp32Result y(context.out_dtype(), dims);
  Affine affine(context, dims[1]);
  double epsilon = context.Double("epsilon");
  int64_t planes = dims[0] * dims[1], inner = planes ? y.size() / planes : 0;
  for (int64_t p = 0; p < planes; ++p) {
    const float* from = x.data() + p * inner;
    double n = static_cast<double>(inner), mean = Sum(from, inner) / n;
    double scale = 1 / std::sqrt(SumSquares(from, inner, mean) / n + epsilon);
    Shift(from, y.data() + p * inner, inner, static_cast<float>(mean),
          static_cast<float>(scale) * affine.gamma[p % dims[1]], affine.beta[p % dims[1]]);
  }
  context.Set(y.Take());
}

Span ReducedSpan(const EvalContext& context) {
  Dims dims = StaticDims(context.shape("x"));
  return Span(dims, context.has("axes") ? context.Ints("axes") : Consecutive(0, std::ssize(dims)));
}

// The operand in the layout in which it is read.
struct Reduced {
  Span span;
  Tensor x;
  explicit Reduced(const EvalContext& context) : span(ReducedSpan(context)), x(context.in("x")) {
    ImageLayout layout = ImageLayout::Of(x);
    if (!layout.channels_last()) return;
    Dims dims = x.dims();
    // The reduction covers all pixels, whose channels are contiguous.
    if (span.outer != dims[0] * dims[1] || span.inner != 1) return;
    x = layout.Laid(x);
    span.outer = dims[0];
    span.inner = dims[1];
  }
};

constexpr int kColumns = 32;
// Computes sums[i] = sum of x[k * stride + i] over k < rows, in order of k, for all i < kColumns at
// once.
[[gnu::always_inline]] inline void AddColumnsOf(const float* x, int64_t rows, int64_t stride,
                                                double* sums) {
  typedef float Floats4 __attribute__((vector_size(16), aligned(4), may_alias));
  typedef double Doubles4 __attribute__((vector_size(32)));
  Doubles4 all[kColumns / 4] = {};
  for (int64_t k = 0; k < rows; ++k, x += stride)
#pragma GCC unroll 8
    for (int v = 0; v < kColumns / 4; ++v)
      all[v] += __builtin_convertvector(*reinterpret_cast<const Floats4*>(x + 4 * v), Doubles4);
  for (int i = 0; i < kColumns; ++i) sums[i] = all[i / 4][i % 4];
}
void BaselineAddColumns(const float* x, int64_t rows, int64_t stride, double* sums) {
  AddColumnsOf(x, rows, stride, sums);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void Avx2AddColumns(const float* x, int64_t rows, int64_t stride,
                                            double* sums) {
  AddColumnsOf(x, rows, stride, sums);
}
const auto kAddColumns = __builtin_cpu_supports("avx2") ? Avx2AddColumns : BaselineAddColumns;
#else
constexpr auto kAddColumns = BaselineAddColumns;
#endif

// Computes the sum of each of `columns` columns, in order of their elements.
void SumColumns(const float* x, int64_t rows, int64_t columns, int threads, double* sums) {
  const int64_t whole = columns / kColumns;
  OmpParallelForRanges(
      whole, threads,
      [&](int64_t first, int64_t end) {
        for (int64_t i = first * kColumns; i < end * kColumns; i += kColumns)
          kAddColumns(x + i, rows, columns, sums + i);
      },
      rows * kColumns);
  for (int64_t i = whole * kColumns; i < columns; ++i) {
    sums[i] = 0;
    for (int64_t k = 0; k < rows; ++k) sums[i] += static_cast<double>(x[k * columns + i]);
  }
}

// Computes a mean or a sum.
template <bool kMean>
void ReduceSum(EvalContext& context, int threads) {
  Reduced reduced(context);
  const Span& span = reduced.span;
  Fp32View x(reduced.x, threads);
  Fp32Result y(context.out_dtype(), context.out_dims());
  double scale = kMean ? 1 / static_cast<double>(span.length) : 1;
  std::vector<double> sums(span.inner);
  for (int64_t o = 0; o < span.outer; ++o) {
    const float* from = x.data() + o * span.length * span.inner;
    float* to = y.data() + o * span.inner;
    if (span.inner == 1) {
      *to = static_cast<float>(Sum(from, span.length) * scale);
      continue;
    }
    SumColumns(from, span.length, span.inner, threads, sums.data());
    for (int64_t i = 0; i < span.inner; ++i) to[i] = static_cast<float>(sums[i] * scale);
  }
  context.Set(y.Take());
}

template <bool kMaximum>
void ReduceExtreme(EvalContext& context, int threads) {
  Reduced reduced(context);
  const Span& span = reduced.span;
  Fp32View x(reduced.x, threads);
  Fp32Result y(context.out_dtype(), context.out_dims());
  for (int64_t o = 0; o < span.outer; ++o) {
    const float* from = x.data() + o * span.length * span.inner;
    float* to = y.data() + o * span.inner;
    std::copy_n(from, span.inner, to);
    for (int64_t k = 1; k < span.length; ++k)
      for (int64_t i = 0; i < span.inner; ++i) {
        float v = from[k * span.inner + i];
        to[i] = (kMaximum ? to[i] >= v : to[i] <= v) || to[i] != to[i] ? to[i] : v;
      }
  }
  context.Set(y.Take());
}

template <void (*kRun)(EvalContext&, int threads)>
Kernel PrepareReduction(const KernelSite& site) {
  if (!IsKernelFloat(site.context.dtype("x")) || !ReducedSpan(site.context).valid) return {};
  return [threads = site.team()](EvalContext& context) { kRun(context, threads); };
}

template <void (*kRun)(EvalContext&, int threads)>
constexpr KernelRow ReductionRow(std::string_view op, bool reproducible) {
  return {.op = op,
          .prepare = PrepareReduction<kRun>,
          .reproducible = reproducible,
          .any_layout = true,
          .takes_wide = true};
}

constexpr KernelRow kRows[] = {
    {.op = "batch_norm", .prepare = OfFloatX<BatchNorm>},
    {.op = "instance_norm", .prepare = OfFloatX<InstanceNorm>},
    {.op = "layer_norm", .prepare = PrepareLayerNorm, .takes_wide = true},
    ReductionRow<ReduceExtreme<true>>("reduce_max", true),
    ReductionRow<ReduceSum<true>>("reduce_mean", false),
    ReductionRow<ReduceExtreme<false>>("reduce_min", true),
    ReductionRow<ReduceSum<false>>("reduce_sum", false),
    {.op = "scaled_dot_product_attention", .prepare = PrepareAttention},
    {.op = "softmax", .prepare = PrepareSoftmax, .takes_wide = true},
};

}  // namespace

std::span<const KernelRow> ReductionKernels() { return kRows; }

}  // namespace mlc::engine
