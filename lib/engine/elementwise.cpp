// Elementwise operators on floats, as loops that compilers vectorise.
#include "lib/engine/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "lib/engine/fp32_view.h"
#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"
#include "lib/engine/vector_math.h"
#include "lib/ops/eval.h"

namespace mlc::engine {

namespace {

// NaN if either operand is, as in eval. Written without branches.
inline float Maximum(float a, float b) {
  float greater = a < b ? b : a;
  return b != b ? b : greater;
}
inline float Minimum(float a, float b) {
  float less = a > b ? b : a;
  return b != b ? b : less;
}
// Preserves NaN.
inline float AtLeast(float x, float low) { return x < low ? low : x; }
inline float AtMost(float x, float high) { return x > high ? high : x; }

// A version of each loop for processors with AVX2. Results are bit-identical, because nothing is
// contracted to fused multiply-add.
#if defined(__x86_64__)
#define MLC_AVX2 [[gnu::target("avx2"), gnu::flatten]]
const bool kHasAvx2 = __builtin_cpu_supports("avx2");
#else
#define MLC_AVX2
constexpr bool kHasAvx2 = false;
#endif

template <class F>
[[gnu::always_inline]] inline void MapEach(const F& f, const float* x, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = f(x[i]);
}
template <class F>
void MapPlain(const F& f, const float* x, float* to, int64_t n) {
  MapEach(f, x, to, n);
}
template <class F>
MLC_AVX2 void MapAvx2(const F& f, const float* x, float* to, int64_t n) {
  MapEach(f, x, to, n);
}
template <class F>
Loop Unary(F f) {
  return [f](const float* x, int64_t, const float*, int64_t, float* to, int64_t n) {
    kHasAvx2 ? MapAvx2(f, x, to, n) : MapPlain(f, x, to, n);
  };
}

template <class F>
[[gnu::always_inline]] inline void MapPairs(const F& f, const float* x, int64_t x_step,
                                            const float* y, int64_t y_step, float* to, int64_t n) {
  if (x_step == 1 && y_step == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = f(x[i], y[i]);
  else if (x_step == 1 && y_step == 0)
    for (int64_t i = 0; i < n; ++i) to[i] = f(x[i], *y);
  else if (x_step == 0 && y_step == 1)
    for (int64_t i = 0; i < n; ++i) to[i] = f(*x, y[i]);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = f(x[i * x_step], y[i * y_step]);
}
template <class F>
void PairsPlain(const F& f, const float* x, int64_t x_step, const float* y, int64_t y_step,
                float* to, int64_t n) {
  MapPairs(f, x, x_step, y, y_step, to, n);
}
template <class F>
MLC_AVX2 void PairsAvx2(const F& f, const float* x, int64_t x_step, const float* y, int64_t y_step,
                        float* to, int64_t n) {
  MapPairs(f, x, x_step, y, y_step, to, n);
}
template <class F>
Loop Binary(F f) {
  return [f](const float* x, int64_t x_step, const float* y, int64_t y_step, float* to, int64_t n) {
    kHasAvx2 ? PairsAvx2(f, x, x_step, y, y_step, to, n)
             : PairsPlain(f, x, x_step, y, y_step, to, n);
  };
}

// A function without parameters.
template <auto kFunction>
Loop One(const EvalContext&) {
  return Unary([](float x) { return kFunction(x); });
}
template <auto kFunction>
Loop Two(const EvalContext&) {
  return Binary([](float x, float y) { return kFunction(x, y); });
}

constexpr auto kAbs = [](float x) { return std::fabs(x); };
constexpr auto kRelu = [](float x) { return AtLeast(x, 0.0f); };
constexpr auto kRelu6 = [](float x) { return AtMost(AtLeast(x, 0.0f), 6.0f); };
constexpr auto kSilu = [](float x) { return x * Sigmoid(x); };
constexpr auto kSoftplus = [](float x) { return Log1p(Exp(-std::fabs(x))) + AtLeast(x, 0.0f); };
constexpr auto kSqrt = [](float x) { return std::sqrt(x); };
constexpr auto kSquare = [](float x) { return x * x; };

float Number(const EvalContext& context, std::string_view name) {
  return static_cast<float>(context.Double(name));
}

Loop LeakyRelu(const EvalContext& c) {
  return Unary([a = Number(c, "alpha")](float x) {
    float scaled = a * x;
    return x >= 0 ? x : scaled;
  });
}
Loop Elu(const EvalContext& c) {
  return Unary([a = Number(c, "alpha")](float x) {
    float low = a * Expm1(x);
    return x >= 0 ? x : low;
  });
}
Loop Clip(const EvalContext& c) {
  return Unary([low = Number(c, "alpha"), high = Number(c, "beta")](float x) {
    return Minimum(Maximum(x, low), high);
  });
}
Loop LinearActivation(const EvalContext& c) {
  return Unary([a = Number(c, "alpha"), b = Number(c, "beta")](float x) { return a * x + b; });
}
Loop SigmoidHard(const EvalContext& c) {
  return Unary([a = Number(c, "alpha"), b = Number(c, "beta")](float x) {
    return AtMost(AtLeast(a * x + b, 0.0f), 1.0f);
  });
}
Loop Gelu(const EvalContext& c) {
  std::string mode = c.String("mode");
  if (mode == "TANH_APPROXIMATION")
    return Unary([](float x) {
      return 0.5f * x * (1.0f + Tanh(0.797884561f * (x + 0.044715f * x * x * x)));
    });
  else if (mode == "SIGMOID_APPROXIMATION")
    return Unary([](float x) { return x * Sigmoid(1.702f * x); });
  else
    return Unary([](float x) {
      float tail = NormalTail(std::fabs(x)), rest = 1.0f - tail;
      return x * (x < 0 ? tail : rest);
    });
}
Loop Rsqrt(const EvalContext& c) {
  return Unary(
      [e = c.Double("epsilon")](float x) { return static_cast<float>(1 / std::sqrt(x + e)); });
}
Loop Inverse(const EvalContext& c) {
  return Unary([e = c.Double("epsilon")](float x) { return static_cast<float>(1 / (x + e)); });
}

void Select(EvalContext& context) {
  Dims dims = context.out_dims();
  Tensor cond = context.in("cond");
  Fp32View a(context.in("a")), b(context.in("b"));
  Fp32Result y(context.out_dtype(), dims);
  Pin<bool> pinned = cond.data<bool>();
  const bool* flags = pinned.data();
  const float *x0 = a.data(), *x1 = b.data();
  float* to = y.data();
  if (cond.dims() == dims && a.size() == y.size() && b.size() == y.size()) {
    for (int64_t i = 0, n = y.size(); i < n; ++i) to[i] = flags[i] ? x0[i] : x1[i];
  } else {
    Walk<3>(dims,
            {BroadcastStrides(cond.dims(), dims), BroadcastStrides(context.in("a").dims(), dims),
             BroadcastStrides(context.in("b").dims(), dims)},
            [&](int64_t i, int64_t j, int64_t k) { *to++ = flags[i] ? x0[j] : x1[k]; });
  }
  context.Set(y.Take());
}

// Two operands broadcast to `dims`, where adjacent dimensions are merged if both operands allow it.
struct Broadcast {
  Dims dims, x_strides, y_strides;
  Broadcast(const Dims& out, const Dims& x, const Dims& y) {
    Dims xs = BroadcastStrides(x, out), ys = BroadcastStrides(y, out);
    for (size_t d = 0; d < out.size(); ++d) {
      if (out[d] == 1) continue;
      if (!dims.empty() && x_strides.back() == xs[d] * out[d] &&
          y_strides.back() == ys[d] * out[d]) {
        dims.back() *= out[d];
        x_strides.back() = xs[d];
        y_strides.back() = ys[d];
      } else {
        dims.push_back(out[d]);
        x_strides.push_back(xs[d]);
        y_strides.push_back(ys[d]);
      }
    }
    if (dims.empty()) dims = x_strides = y_strides = {1};
  }
};

Loop Pow(const EvalContext& c) {
  Tensor y = c.in("y");  // unknown if the chain computes it
  bool single = y && y.size() == 1;
  if (single && y.Double(0) == 2)
    return Binary([](float x, float) { return x * x; });
  else if (single && y.Double(0) == 0.5)
    // Gives inf for -inf and 0.0 for -0.0: the compiler turns std::pow(x, 0.5f) into a plain square
    // root.
    return Binary([](float x, float) {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      float root = std::sqrt(x + 0.0f);
      return x == -kInfinity ? kInfinity : root;
    });
  else
    return Binary([](float x, float p) {
      return static_cast<float>(std::pow(static_cast<double>(x), static_cast<double>(p)));
    });
}

// `exact` operators give the same bits as eval, rounded again if the type is narrower. In fp32 they
// compute one sum, product, quotient or root, for which double rounding from 24 to 11 or from 53 to
// 24 digits is innocuous (Figueroa, When is double rounding innocuous?, 1995).
struct LoopRow {
  std::string_view op;
  Loop (*make)(const EvalContext&);
  bool binary = false, exact = false;
};
constexpr bool kUnary = false, kBinary = true, kExact = true;
constexpr LoopRow kLoops[] = {
    {"abs", One<kAbs>, kUnary, kExact},
    {"add", Two<std::plus<>{}>, kBinary, kExact},
    {"cast", One<std::identity{}>, kUnary, kExact},
    {"clip", Clip, kUnary, kExact},
    {"elu", Elu},
    {"erf", One<Erf>},
    {"exp", One<Exp>},
    {"gelu", Gelu},
    {"inverse", Inverse},
    {"leaky_relu", LeakyRelu, kUnary, kExact},
    {"linear_activation", LinearActivation},
    {"maximum", Two<Maximum>, kBinary, kExact},
    {"minimum", Two<Minimum>, kBinary, kExact},
    {"mul", Two<std::multiplies<>{}>, kBinary, kExact},
    {"pow", Pow, kBinary},
    {"real_div", Two<std::divides<>{}>, kBinary, kExact},
    {"relu", One<kRelu>, kUnary, kExact},
    {"relu6", One<kRelu6>, kUnary, kExact},
    {"rsqrt", Rsqrt},
    {"sigmoid", One<Sigmoid>},
    {"sigmoid_hard", SigmoidHard},
    {"silu", One<kSilu>},
    {"softplus", One<kSoftplus>},
    {"sqrt", One<kSqrt>, kUnary, kExact},
    {"square", One<kSquare>, kUnary, kExact},
    {"sub", Two<std::minus<>{}>, kBinary, kExact},
    {"tanh", One<Tanh>},
};

void RunUnary(EvalContext& context, const Loop& loop, int threads, bool wide) {
  Tensor tensor = context.in("x");
  ImageLayout layout = ImageLayout::Of(tensor);
  Fp32View x(layout.Laid(tensor), threads);
  Fp32Result y(context.out_dtype(), layout.Laid(context.out_dims()), threads, wide);
  OmpParallelForRanges(y.size(), threads, [&](int64_t first, int64_t end) {
    loop(x.data() + first, 1, nullptr, 0, y.data() + first, end - first);
  });
  context.Set(layout.Shown(y.Take()));
}

void RunBinary(EvalContext& context, const Loop& loop, int threads, bool wide) {
  Dims out = context.out_dims();
  ImageLayout layout = ImageLayout::Of(std::array{context.in("x"), context.in("y")}, out);
  Tensor x_tensor = layout.Laid(context.in("x"), out.size()),
         y_tensor = layout.Laid(context.in("y"), out.size());
  out = layout.Laid(out);
  Fp32Result result(context.out_dtype(), out, threads, wide);
  Fp32View x(x_tensor, threads), y(y_tensor, threads);
  const Broadcast plan(out, x_tensor.dims(), y_tensor.dims());
  const int64_t x_step = plan.x_strides.back(), y_step = plan.y_strides.back();
  auto outer = [](Dims dims) {
    dims.pop_back();
    return dims;
  };
  if (result.size() > 0) {
    const int64_t slice = result.size() / plan.dims[0];
    OmpParallelForRanges(
        plan.dims[0], threads,
        [&](int64_t first, int64_t end) {
          Dims part = plan.dims;
          part[0] = end - first;
          float* to = result.data() + first * slice;
          Walk<2>(outer(part), {outer(plan.x_strides), outer(plan.y_strides)},
                  [&](int64_t i, int64_t j) {
                    loop(x.data() + first * plan.x_strides[0] + i, x_step,
                         y.data() + first * plan.y_strides[0] + j, y_step, to, part.back());
                    to += part.back();
                  });
        },
        slice);
  }
  context.Set(layout.Shown(result.Take()));
}

// Prepares a kernel for float operands and results.
template <size_t kRow>
Kernel Prepare(const KernelSite& site) {
  const EvalContext& c = site.context;
  static constexpr const LoopRow& kLoop = kLoops[kRow];
  if (!IsKernelFloat(c.dtype("x")) || !IsKernelFloat(c.out_dtype())) return {};
  if (kLoop.binary && !IsKernelFloat(c.dtype("y"))) return {};
  // A parameter with more digits than x would be rounded twice, with a different result.
  if (site.reproducible && c.def().Find("alpha") >= 0 && c.dtype("alpha") != c.dtype("x"))
    return {};
  return [threads = site.team(), wide = site.wide](EvalContext& context) {
    (kLoop.binary ? RunBinary : RunUnary)(context, kLoop.make(context), threads, wide);
  };
}

Kernel PrepareSelect(const KernelSite& site) {
  return IsKernelFloat(site.context.dtype("a")) && IsKernelFloat(site.context.dtype("b"))
             ? Kernel(Select)
             : Kernel();
}

template <size_t... kRow>
constexpr auto MakeRows(std::index_sequence<kRow...>) {
  return std::array{KernelRow{.op = kLoops[kRow].op,
                              .prepare = Prepare<kRow>,
                              .reproducible = kLoops[kRow].exact,
                              .any_layout = true,
                              .takes_wide = true}...,
                    KernelRow{.op = "select", .prepare = PrepareSelect, .reproducible = true}};
}
constexpr auto kRows = MakeRows(std::make_index_sequence<std::size(kLoops)>());

}  // namespace

std::span<const KernelRow> ElementwiseKernels() { return kRows; }

Loop MakeLoop(const EvalContext& context) {
  for (const LoopRow& row : kLoops)
    if (row.op == context.def().name) return row.make(context);
  return {};
}

bool HasLoop(std::string_view op) {
  return std::ranges::any_of(kLoops, [&](const LoopRow& row) { return row.op == op; });
}

}  // namespace mlc::engine
