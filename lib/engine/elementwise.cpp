// Elementwise operators on floats, in loops that compilers turn into vector instructions.
#include <array>
#include <cmath>
#include <limits>

#include "lib/engine/floats.h"
#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"
#include "lib/engine/vector_math.h"
#include "lib/ops/eval.h"

namespace mlc {

namespace {

// NaN when either is, as in eval. Selections, no branches.
inline float Maximum(float a, float b) {
  float greater = a < b ? b : a;
  return b != b ? b : greater;
}
inline float Minimum(float a, float b) {
  float less = a > b ? b : a;
  return b != b ? b : less;
}
// NaN stays NaN.
inline float AtLeast(float x, float low) { return x < low ? low : x; }
inline float AtMost(float x, float high) { return x > high ? high : x; }

template <class F>
void MapX(EvalContext& context, F f) {
  Tensor tensor = context.in("x");
  ImageLayout layout = ImageLayout::Of(tensor);
  Floats x(layout.Laid(tensor));
  FloatResult y(context.out_dtype(), layout.Laid(context.out_dims()));
  const float* from = x.data();
  float* to = y.data();
  for (int64_t i = 0, n = y.size(); i < n; ++i) to[i] = f(from[i]);
  context.Set(layout.Shown(y.Take()));
}

float Number(const EvalContext& context, std::string_view name) {
  return static_cast<float>(context.Double(name));
}

void Relu(EvalContext& c) {
  MapX(c, [](float x) { return AtLeast(x, 0.0f); });
}
void Relu6(EvalContext& c) {
  MapX(c, [](float x) { return AtMost(AtLeast(x, 0.0f), 6.0f); });
}
void LeakyRelu(EvalContext& c) {
  MapX(c, [a = Number(c, "alpha")](float x) {
    float scaled = a * x;
    return x >= 0 ? x : scaled;
  });
}
void Elu(EvalContext& c) {
  MapX(c, [a = Number(c, "alpha")](float x) {
    float low = a * Expm1(x);
    return x >= 0 ? x : low;
  });
}
void Clip(EvalContext& c) {
  MapX(c, [low = Number(c, "alpha"), high = Number(c, "beta")](float x) {
    return Minimum(Maximum(x, low), high);
  });
}
void LinearActivation(EvalContext& c) {
  MapX(c, [a = Number(c, "alpha"), b = Number(c, "beta")](float x) { return a * x + b; });
}
void SigmoidHard(EvalContext& c) {
  MapX(c, [a = Number(c, "alpha"), b = Number(c, "beta")](float x) {
    return AtMost(AtLeast(a * x + b, 0.0f), 1.0f);
  });
}
void SigmoidOp(EvalContext& c) {
  MapX(c, [](float x) { return Sigmoid(x); });
}
void Silu(EvalContext& c) {
  MapX(c, [](float x) { return x * Sigmoid(x); });
}
void TanhOp(EvalContext& c) {
  MapX(c, [](float x) { return Tanh(x); });
}
void Softplus(EvalContext& c) {
  MapX(c, [](float x) { return Log1p(Exp(-std::fabs(x))) + AtLeast(x, 0.0f); });
}
void Gelu(EvalContext& c) {
  std::string mode = c.String("mode");
  if (mode == "TANH_APPROXIMATION")
    MapX(c, [](float x) {
      return 0.5f * x * (1.0f + Tanh(0.797884561f * (x + 0.044715f * x * x * x)));
    });
  else if (mode == "SIGMOID_APPROXIMATION")
    MapX(c, [](float x) { return x * Sigmoid(1.702f * x); });
  else
    MapX(c, [](float x) {
      float tail = NormalTail(std::fabs(x)), rest = 1.0f - tail;
      return x * (x < 0 ? tail : rest);
    });
}
void ErfOp(EvalContext& c) {
  MapX(c, [](float x) { return Erf(x); });
}
void ExpOp(EvalContext& c) {
  MapX(c, [](float x) { return Exp(x); });
}
void Sqrt(EvalContext& c) {
  MapX(c, [](float x) { return std::sqrt(x); });
}
void Rsqrt(EvalContext& c) {
  MapX(c, [e = c.Double("epsilon")](float x) { return static_cast<float>(1 / std::sqrt(x + e)); });
}
void Inverse(EvalContext& c) {
  MapX(c, [e = c.Double("epsilon")](float x) { return static_cast<float>(1 / (x + e)); });
}
void Square(EvalContext& c) {
  MapX(c, [](float x) { return x * x; });
}
void Abs(EvalContext& c) {
  MapX(c, [](float x) { return std::fabs(x); });
}
void Cast(EvalContext& c) {
  MapX(c, [](float x) { return x; });
}

void Select(EvalContext& context) {
  Dims dims = context.out_dims();
  Tensor cond = context.in("cond");
  Floats a(context.in("a")), b(context.in("b"));
  FloatResult y(context.out_dtype(), dims);
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

// Two operands broadcast to `dims`, with neighbouring dimensions merged where both operands allow
// it.
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

template <class F>
void MapPairsFast(EvalContext& context, F f) {
  Dims out = context.out_dims();
  ImageLayout layout = ImageLayout::Of(std::array{context.in("x"), context.in("y")}, out);
  Tensor x_tensor = layout.Laid(context.in("x"), out.size()),
         y_tensor = layout.Laid(context.in("y"), out.size());
  out = layout.Laid(out);
  FloatResult result(context.out_dtype(), out);
  Floats x(x_tensor), y(y_tensor);
  Broadcast plan(out, x_tensor.dims(), y_tensor.dims());
  int64_t inner = plan.dims.back(), x_step = plan.x_strides.back(), y_step = plan.y_strides.back();
  auto outer = [](Dims dims) {
    dims.pop_back();
    return dims;
  };
  float* to = result.data();
  if (result.size() > 0)
    Walk<2>(outer(plan.dims), {outer(plan.x_strides), outer(plan.y_strides)},
            [&](int64_t i, int64_t j) {
              const float *a = x.data() + i, *b = y.data() + j;
              if (x_step == 1 && y_step == 1)
                for (int64_t k = 0; k < inner; ++k) to[k] = f(a[k], b[k]);
              else if (x_step == 1 && y_step == 0)
                for (int64_t k = 0; k < inner; ++k) to[k] = f(a[k], *b);
              else if (x_step == 0 && y_step == 1)
                for (int64_t k = 0; k < inner; ++k) to[k] = f(*a, b[k]);
              else
                for (int64_t k = 0; k < inner; ++k) to[k] = f(a[k * x_step], b[k * y_step]);
              to += inner;
            });
  context.Set(layout.Shown(result.Take()));
}

void Add(EvalContext& c) {
  MapPairsFast(c, [](float x, float y) { return x + y; });
}
void Sub(EvalContext& c) {
  MapPairsFast(c, [](float x, float y) { return x - y; });
}
void Mul(EvalContext& c) {
  MapPairsFast(c, [](float x, float y) { return x * y; });
}
void RealDiv(EvalContext& c) {
  MapPairsFast(c, [](float x, float y) { return x / y; });
}
void MaximumOp(EvalContext& c) { MapPairsFast(c, Maximum); }
void MinimumOp(EvalContext& c) { MapPairsFast(c, Minimum); }
void Pow(EvalContext& c) {
  Tensor y = c.in("y");
  if (y.size() == 1 && y.Double(0) == 2)
    MapPairsFast(c, [](float x, float) { return x * x; });
  else if (y.size() == 1 && y.Double(0) == 0.5)
    // Of -inf it is inf, of -0.0 it is 0.0: std::pow(x, 0.5f) comes out as a plain square root.
    MapPairsFast(c, [](float x, float) {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      float root = std::sqrt(x + 0.0f);
      return x == -kInfinity ? kInfinity : root;
    });
  else
    MapPairsFast(c, [](float x, float p) {
      return static_cast<float>(std::pow(static_cast<double>(x), static_cast<double>(p)));
    });
}

// The kernel where the named operands and the result are floats.
template <void (*kRun)(EvalContext&)>
Kernel Unary(const KernelSite& site) {
  bool floats = IsKernelFloat(site.context.dtype("x")) && IsKernelFloat(site.context.out_dtype());
  return floats ? Kernel(kRun) : Kernel();
}
template <void (*kRun)(EvalContext&)>
Kernel Binary(const KernelSite& site) {
  return IsKernelFloat(site.context.dtype("y")) ? Unary<kRun>(site) : Kernel();
}
Kernel PrepareSelect(const KernelSite& site) {
  return IsKernelFloat(site.context.dtype("a")) && IsKernelFloat(site.context.dtype("b"))
             ? Kernel(Select)
             : Kernel();
}

constexpr KernelRow kRows[] = {
    {"abs", Unary<Abs>, true, true},
    {"add", Binary<Add>, true, true},
    {"cast", Unary<Cast>, true, true},
    {"clip", Unary<Clip>, true, true},
    {"elu", Unary<Elu>, true, true},
    {"erf", Unary<ErfOp>, true, true},
    {"exp", Unary<ExpOp>, true, true},
    {"gelu", Unary<Gelu>, true, true},
    {"inverse", Unary<Inverse>, true, true},
    {"leaky_relu", Unary<LeakyRelu>, true, true},
    {"linear_activation", Unary<LinearActivation>, true, true},
    {"maximum", Binary<MaximumOp>, true, true},
    {"minimum", Binary<MinimumOp>, true, true},
    {"mul", Binary<Mul>, true, true},
    {"pow", Binary<Pow>, true, true},
    {"real_div", Binary<RealDiv>, true, true},
    {"relu", Unary<Relu>, true, true},
    {"relu6", Unary<Relu6>, true, true},
    {"rsqrt", Unary<Rsqrt>, true, true},
    {"select", PrepareSelect},
    {"sigmoid", Unary<SigmoidOp>, true, true},
    {"sigmoid_hard", Unary<SigmoidHard>, true, true},
    {"silu", Unary<Silu>, true, true},
    {"softplus", Unary<Softplus>, true, true},
    {"sqrt", Unary<Sqrt>, true, true},
    {"square", Unary<Square>, true, true},
    {"sub", Binary<Sub>, true, true},
    {"tanh", Unary<TanhOp>, true, true},
};

}  // namespace

std::span<const KernelRow> ElementwiseKernels() { return kRows; }

}  // namespace mlc
