// Convolutions and matrix products with gemm.h: in double for results that must be bit-identical to
// eval, in float for encoded weights.
#include <algorithm>
#include <optional>
#include <type_traits>

#include "lib/engine/fp32_view.h"
#include "lib/engine/kernels.h"
#include "lib/engine/packed_gemm.h"
#include "lib/ops/eval.h"
#include "lib/ops/sliding_window.h"
#include "lib/support/threads.h"

namespace mlc::engine {

namespace {

int64_t Volume(const Geometry::Spatial& size) { return size[0] * size[1] * size[2]; }

// The number of independent products that run in parallel, and the number of threads for each.
struct Shares {
  int across, each;
  Shares(int64_t count, double multiplications, int threads)
      : across(static_cast<int>(
            std::clamp<int64_t>(count, 1, WorthThreads(multiplications, threads)))),
        each(std::max(1, threads / across)) {}
};

// The implementation of the products, and the weights that are the same in every call.
struct Setting {
  Method method;
  std::string_view fixed_name;
  std::shared_ptr<const Weights> fixed;
  Weights Operand(const EvalContext& context, std::string_view name) const {
    return name == fixed_name ? *fixed : Weights::Expanded(context.in(name));
  }
};

// A result that accumulates products, starting from zero; T is the type of the accumulator
// (gemm.h). Take() adds the optional bias of dimension `axis` at the end, as eval does; with float
// accumulators the bias comes first.
template <class T>
class Sums {
 public:
  Sums(const EvalContext& context, int axis)
      : context_(context), dims_(context.out_dims()), axis_(axis) {
    if constexpr (kFloat) {
      result_.emplace(context.out_dtype(), dims_);
      data_ = result_->data();
      std::fill_n(data_, result_->size(), 0.0f);
      AddBias();
    } else {
      copy_.resize(static_cast<size_t>(ElementCount(dims_)));
      data_ = copy_.data();
    }
  }
  T* data() const { return data_; }
  int64_t size() const { return ElementCount(dims_); }
  Tensor Take() {
    if constexpr (kFloat) {
      return result_->Take();
    } else {
      AddBias();
      Fp32Result result(context_.out_dtype(), dims_);
      // Round to odd, so that rounding to fp16 gives the same result as a single rounding.
      if (context_.out_dtype() == DType::kFp16)
        std::transform(copy_.begin(), copy_.end(), result.data(), RoundToOdd);
      else
        std::copy(copy_.begin(), copy_.end(), result.data());
      return result.Take();
    }
  }

 private:
  static constexpr bool kFloat = std::is_same_v<T, float>;
  void AddBias() {
    if (context_.def().Find("bias") < 0 || !context_.has("bias") || size() == 0) return;
    Fp32View bias(context_.in("bias"));
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(axis_) + 1; d < dims_.size(); ++d) inner *= dims_[d];
    T* to = data_;
    for (const T* end = data_ + size(); to < end;)
      for (int64_t row = 0; row < bias.size(); ++row)
        for (int64_t i = 0; i < inner; ++i) *to++ += bias[row];
  }
  const EvalContext& context_;
  Dims dims_;
  int axis_;
  std::optional<Fp32Result> result_;
  std::vector<T> copy_;
  T* data_;
};

// An image padded with zeros as far as the windows reach; the image itself if they reach no
// padding.
class PaddedImage {
 public:
  PaddedImage(const Geometry& g, int64_t channels) : g_(g), channels_(channels), size_(g.in) {
    for (int i = 0; i < 3; ++i)
      size_[i] =
          std::max(g.before[i] + g.in[i], g.In(i, g.out[i] - 1, g.kernel[i] - 1) + g.before[i] + 1);
    if (size_ != g.in) copy_.resize(channels * Volume(size_));
  }
  const Geometry::Spatial& size() const { return size_; }
  bool pads() const { return !copy_.empty(); }
  // Returns [channels, size()], valid until the next call. Zero times an infinite weight is NaN.
  const float* Of(const float* x, int threads) {
    if (copy_.empty()) return x;
    ParallelFor(
        channels_, WorthThreads(static_cast<double>(copy_.size()), threads), [&](int64_t c) {
          for (int64_t i0 = 0; i0 < g_.in[0]; ++i0)
            for (int64_t i1 = 0; i1 < g_.in[1]; ++i1)
              std::copy_n(
                  x + ((c * g_.in[0] + i0) * g_.in[1] + i1) * g_.in[2], g_.in[2],
                  copy_.data() + At(c, i0 + g_.before[0], i1 + g_.before[1]) + g_.before[2]);
        });
    return copy_.data();
  }
  int64_t At(int64_t channel, int64_t i0, int64_t i1) const {
    return ((channel * size_[0] + i0) * size_[1] + i1) * size_[2];
  }

 private:
  const Geometry& g_;
  int64_t channels_;
  Geometry::Spatial size_;
  std::vector<float> copy_;
};

// The windows of an image as columns of a matrix [channels * taps, positions] (im2col): element (k,
// j) is at the beginning of window j plus offset k.
struct Windows {
  std::vector<int64_t> begins, offsets;
  Windows(const Geometry& g, const PaddedImage& image, int64_t channels) {
    for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
      for (int64_t o1 = 0; o1 < g.out[1]; ++o1)
        for (int64_t o2 = 0; o2 < g.out[2]; ++o2)
          begins.push_back(image.At(0, o0 * g.stride[0], o1 * g.stride[1]) + o2 * g.stride[2]);
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t k0 = 0; k0 < g.kernel[0]; ++k0)
        for (int64_t k1 = 0; k1 < g.kernel[1]; ++k1)
          for (int64_t k2 = 0; k2 < g.kernel[2]; ++k2)
            offsets.push_back(image.At(c, k0 * g.dilation[0], k1 * g.dilation[1]) +
                              k2 * g.dilation[2]);
  }
  // Returns all columns, one after the other.
  std::vector<float> All(const float* image) const {
    std::vector<float> all;
    for (int64_t begin : begins)
      for (int64_t offset : offsets) all.push_back(image[begin + offset]);
    return all;
  }
  Columns Of(const float* image) const {
    return [this, image](int64_t k0, int64_t depth, int64_t j0, float* scratch) -> const float* {
      const int64_t* begin = begins.data() + j0;
      int64_t width = std::min<int64_t>(kTileColumns, std::ssize(begins) - j0);
      bool neighbours = begin[width - 1] - begin[0] == width - 1;
      float* to = scratch;
      for (int64_t k = k0; k < k0 + depth; ++k, to += kTileColumns) {
        const float* from = image + offsets[k];
        if (width < kTileColumns)
          for (int64_t j = 0; j < width; ++j) to[j] = from[begin[j]];
        else if (neighbours)
          std::copy_n(from + begin[0], kTileColumns, to);
        else
          for (int64_t j = 0; j < kTileColumns; ++j) to[j] = from[begin[j]];
      }
      return scratch;
    };
  }
};

// Computes y[i] += w * x[i * step].
template <class T>
[[gnu::always_inline]] inline void AddScaled(T w, const float* x, int64_t step, T* y, int64_t n) {
  if (step == 1)
    for (int64_t i = 0; i < n; ++i) y[i] += w * T{x[i]};
  else
    for (int64_t i = 0; i < n; ++i) y[i] += w * T{x[i * step]};
}
template <class T>
void BaselineAddScaled(T w, const float* x, int64_t step, T* y, int64_t n) {
  AddScaled(w, x, step, y, n);
}
#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2")]] void Avx2AddScaled(T w, const float* x, int64_t step, T* y, int64_t n) {
  AddScaled(w, x, step, y, n);
}
template <class T>
const auto kAddScaled = __builtin_cpu_supports("avx2") ? Avx2AddScaled<T> : BaselineAddScaled<T>;
#else
template <class T>
constexpr auto kAddScaled = BaselineAddScaled<T>;
#endif

// Adds one channel of a padded image, filtered, to y, one row at a time.
template <class T>
void AddFiltered(const Geometry& g, const PaddedImage& image, const float* x, const float* weight,
                 T* y) {
  for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
    for (int64_t o1 = 0; o1 < g.out[1]; ++o1, y += g.out[2]) {
      const float* w = weight;
      for (int64_t k0 = 0; k0 < g.kernel[0]; ++k0)
        for (int64_t k1 = 0; k1 < g.kernel[1]; ++k1) {
          const float* from = x + image.At(0, o0 * g.stride[0] + k0 * g.dilation[0],
                                           o1 * g.stride[1] + k1 * g.dilation[1]);
          for (int64_t k2 = 0; k2 < g.kernel[2]; ++k2, ++w, from += g.dilation[2])
            kAddScaled<T>(T{*w}, from, g.stride[2], y, g.out[2]);
        }
    }
}

template <class T>
void Conv(EvalContext& context, const Setting& setting) {
  const int threads = setting.method.threads;
  Fp32View x(context.in("x"));
  Weights weight = setting.Operand(context, "weight");
  Dims x_dims = StaticDims(context.shape("x")), weight_dims = StaticDims(context.shape("weight")),
       dims = context.out_dims();
  Geometry g(ReadWindow(context), x_dims, dims);
  Sums<T> y(context, 1);
  int64_t groups = context.Int("groups"), ins = weight_dims[1], outs = dims[1] / groups,
          taps = Volume(g.kernel), positions = Volume(g.out);
  double work = static_cast<double>(dims[1] * ins * taps) * static_cast<double>(positions);
  PaddedImage image(g, x_dims[1]);
  // eval skips padding, so an infinite weight would give NaN only here.
  if (std::is_same_v<T, double> && image.pads() && !context.in("weight").range().finite())
    return context.def().eval(context);
  auto for_images = [&](auto&& f) {
    for (int64_t n = 0; n < dims[0]; ++n)
      f(image.Of(x.data() + n * x_dims[1] * Volume(g.in), threads),
        y.data() + n * dims[1] * positions);
  };
  if (ins == 1 && outs < kTileRows) {
    for_images([&](const float* from, T* to) {
      ParallelFor(dims[1], WorthThreads(work, threads), [&](int64_t c) {
        std::vector<float> filter(static_cast<size_t>(taps));
        weight.Read(c * taps, taps, filter.data());
        AddFiltered(g, image, from + image.At(c / outs, 0, 0), filter.data(), to + c * positions);
      });
    });
  } else {
    Windows windows(g, image, ins);
    Shares shares(groups, work, threads);
    const Method method = setting.method.With(shares.each);
    const int64_t k = ins * taps;
    std::vector<PackedRows> rows;
    if (weight.data() && positions >= kFewVectors)
      for (int64_t i = 0; i < groups; ++i)
        rows.emplace_back(MatrixView{weight.data() + i * outs * k, k}, outs, k, threads);
    for_images([&](const float* from, T* to) {
      ParallelFor(groups, shares.across, [&](int64_t i) {
        const float* inputs = from + image.At(i * ins, 0, 0);
        T* results = to + i * outs * positions;
        WeightView view{&weight, i * outs * k, k, 1};
        if (positions < kFewVectors)
          AddDots(view, outs, k, windows.All(inputs).data(), positions, results, positions, 1,
                  method);
        else if (rows.empty())
          AddProduct(view, outs, k, windows.Of(inputs), positions, results, positions, method);
        else
          AddProduct(rows[i], windows.Of(inputs), positions, results, positions, method.threads,
                     method.tiles<T>());
      });
    });
  }
  context.Set(y.Take());
}

// Adds the products of each tap and each input position to y, one channel of the result.
template <class T>
void AddSpread(const Geometry& g, const Geometry::Spatial& crop, const T* products, T* y) {
  for (int64_t k0 = 0; k0 < g.kernel[0]; ++k0)
    for (int64_t k1 = 0; k1 < g.kernel[1]; ++k1)
      for (int64_t k2 = 0; k2 < g.kernel[2]; ++k2) {
        int64_t s = g.stride[2], at = k2 * g.dilation[2] - crop[2];
        int64_t first = at >= 0 ? 0 : (-at + s - 1) / s,
                end = at >= g.out[2] ? 0 : std::min(g.in[2], (g.out[2] - 1 - at) / s + 1);
        for (int64_t i0 = 0; i0 < g.in[0]; ++i0)
          for (int64_t i1 = 0; i1 < g.in[1]; ++i1, products += g.in[2]) {
            int64_t o0 = i0 * g.stride[0] + k0 * g.dilation[0] - crop[0],
                    o1 = i1 * g.stride[1] + k1 * g.dilation[1] - crop[1];
            if (o0 < 0 || o0 >= g.out[0] || o1 < 0 || o1 >= g.out[1]) continue;
            T* row = y + (o0 * g.out[1] + o1) * g.out[2] + at;
            for (int64_t i = first; i < end; ++i) row[i * s] += products[i];
          }
      }
}

template <class T>
void ConvTranspose(EvalContext& context, const Setting& setting) {
  const int threads = setting.method.threads;
  Fp32View x(context.in("x"));
  Weights weight = setting.Operand(context, "weight");
  Dims x_dims = StaticDims(context.shape("x")), weight_dims = StaticDims(context.shape("weight")),
       dims = context.out_dims();
  Window window = ReadWindow(context);
  Geometry g(window, x_dims, dims);
  std::vector<int64_t> crops = TransposedCrop(window, x_dims, dims);
  Geometry::Spatial crop{};
  std::copy(crops.begin(), crops.end(), crop.end() - std::ssize(crops));
  Sums<T> y(context, 1);
  int64_t groups = context.Int("groups"), outs = weight_dims[1], taps = Volume(g.kernel),
          positions = Volume(g.in), out_positions = Volume(g.out);
  int64_t ins = x_dims[1] / groups;
  Shares shares(groups,
                static_cast<double>(x_dims[1] * outs * taps) * static_cast<double>(positions),
                threads);
  // The number of channels at a time, so that their products take 16 MB.
  int64_t most = std::clamp<int64_t>((1 << 22) / (taps * positions + 1), 1, outs);
  for (int64_t n = 0; n < dims[0]; ++n)
    ParallelFor(groups, shares.across, [&](int64_t group) {
      const float* from = x.data() + (n * x_dims[1] + group * ins) * positions;
      T* to = y.data() + (n * dims[1] + group * outs) * out_positions;
      std::vector<T> products;
      for (int64_t c = 0; c < outs; c += most) {
        int64_t count = std::min(most, outs - c);
        products.assign(count * taps * positions, T{0});
        WeightView rows{&weight, (group * ins * outs + c) * taps, 1, outs * taps};
        AddProduct(rows, count * taps, ins, ColumnsOf(MatrixView{from, positions}, positions),
                   positions, products.data(), positions, setting.method.With(shares.each));
        ParallelFor(count, WorthThreads(static_cast<double>(products.size()), shares.each),
                    [&](int64_t i) {
                      AddSpread(g, crop, products.data() + i * taps * positions,
                                to + (c + i) * out_positions);
                    });
      }
    });
  context.Set(y.Take());
}

// Returns n columns of a matrix of k rows, one after the other: in place or in `copy`.
const float* Vectors(const WeightView& view, int64_t k, int64_t n, std::vector<float>& copy) {
  if (const float* there = view.InPlace().data;
      there && view.row == 1 && (view.column == k || n == 1))
    return there;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t p = 0; p < k; ++p) {
      copy.emplace_back();
      view.weights->Read(view.first + p * view.row + j * view.column, 1, &copy.back());
    }
  return copy.data();
}

// Computes c [m, n] += a [m, k] b [k, n], row-major.
template <class T>
void AddMatrixProduct(const WeightView& a, const WeightView& b, int64_t m, int64_t k, int64_t n,
                      T* c, const Method& method) {
  std::vector<float> copy;
  if (m < kFewVectors && b.row == 1)
    return AddDots(b.Transposed(), n, k, Vectors(a.Transposed(), k, m, copy), m, c, 1, n, method);
  if (n < kFewVectors && a.column == 1)
    return AddDots(a, m, k, Vectors(b, k, n, copy), n, c, n, 1, method);
  if (n > kTileColumns / 2 || m < n) return AddProduct(a, m, k, ColumnsOf(b, n), n, c, n, method);
  // If n is much smaller than the columns of a tile, compute the transposed product, which has the
  // same sums.
  std::vector<T> transposed(m * n);
  auto turn = [&](auto&& f) {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) f(c[i * n + j], transposed[j * m + i]);
  };
  turn([](T from, T& to) { to = from; });
  const WeightView right = a.Transposed();
  AddProduct(b.Transposed(), n, k, ColumnsOf(right, m), m, transposed.data(), m, method);
  turn([](T& to, T from) { to = from; });
}

template <class T>
void Linear(EvalContext& context, const Setting& setting) {
  Weights x = Weights::Expanded(context.in("x")), weight = setting.Operand(context, "weight");
  Sums<T> y(context, static_cast<int>(context.out_dims().size()) - 1);
  Dims dims = StaticDims(context.shape("weight"));
  int64_t n = dims[0], k = dims[1], m = n ? y.size() / n : 0;
  AddMatrixProduct({&x, 0, k, 1}, {&weight, 0, 1, k}, m, k, n, y.data(), setting.method);
  context.Set(y.Take());
}

// An operand of matmul: matrices [rows, columns] in an array of `batch` dims.
struct Matrices {
  Dims batch;
  int64_t rows = 1, columns = 1;
  bool transposed;
  Matrices(const EvalContext& context, std::string_view name, bool left)
      : batch(StaticDims(context.shape(name))),
        transposed(context.Bool(left ? "transpose_x" : "transpose_y")) {
    auto take = [&] {
      int64_t size = batch.back();
      batch.pop_back();
      return size;
    };
    bool vector = batch.size() == 1;
    if (!vector || left) columns = take();
    if (!vector || !left) rows = take();
    if (transposed) std::swap(rows, columns);
  }
  WeightView View(const Weights& elements, int64_t first) const {
    return transposed ? WeightView{&elements, first, 1, rows}
                      : WeightView{&elements, first, columns, 1};
  }
};

template <class T>
void Matmul(EvalContext& context, const Setting& setting) {
  Weights x = setting.Operand(context, "x"), y = setting.Operand(context, "y");
  Sums<T> z(context, 0);
  Matrices left(context, "x", true), right(context, "y", false);
  Dims batch = context.out_dims();
  batch.resize(std::max(left.batch.size(), right.batch.size()));
  // A batch of matrices times one matrix is one tall matrix times that matrix.
  if (!left.transposed && ElementCount(right.batch) == 1) {
    left.rows *= ElementCount(left.batch);
    left.batch = right.batch = batch = {};
  }
  int64_t m = left.rows, k = left.columns, n = right.columns;
  std::vector<std::array<int64_t, 2>> pairs;
  Walk<2>(batch, {BroadcastStrides(left.batch, batch), BroadcastStrides(right.batch, batch)},
          [&](int64_t i, int64_t j) {
            pairs.push_back({i * m * k, j * k * n});
          });
  Shares shares(std::ssize(pairs), static_cast<double>(z.size()) * static_cast<double>(k),
                setting.method.threads);
  ParallelFor(std::ssize(pairs), shares.across, [&](int64_t i) {
    AddMatrixProduct(left.View(x, pairs[i][0]), right.View(y, pairs[i][1]), m, k, n,
                     z.data() + i * m * n, setting.method.With(shares.each));
  });
  context.Set(z.Take());
}

// einsum "nchw,nwhu->nchu", where h is 1, or "chw,whr->chr": matrix products of a batch.
template <class T>
void Einsum(EvalContext& context, const Setting& setting) {
  Dims left = StaticDims(context.shape("values", 0)),
       right = StaticDims(context.shape("values", 1));
  for (Dims* dims : {&left, &right})
    if (dims->size() == 3) dims->insert(dims->begin(), 1);
  const int64_t m = left[1], k = left[3], n = right[3], count = std::max(left[0], right[0]);
  Weights x = Weights::Expanded(context.in("values", 0)),
          y = Weights::Expanded(context.in("values", 1));
  Sums<T> z(context, 0);
  Shares shares(count, static_cast<double>(z.size()) * static_cast<double>(k),
                setting.method.threads);
  ParallelFor(count, shares.across, [&](int64_t i) {
    AddMatrixProduct({&x, left[0] == 1 ? 0 : i * m * k, k, 1},
                     {&y, right[0] == 1 ? 0 : i * k * n, n, 1}, m, k, n, z.data() + i * m * n,
                     setting.method.With(shares.each));
  });
  context.Set(z.Take());
}

Kernel PrepareEinsum(const KernelSite& site) {
  const EvalContext& context = site.context;
  const Dims x = StaticDims(context.shape("values", 0)), y = StaticDims(context.shape("values", 1));
  const size_t h = x.size() - 2;
  if (!IsKernelFloat(context.dtype("values", 0)) || x[h] != 1 || y[h] != 1 || x.back() != y[h - 1])
    return {};
  return [setting = Setting{{.threads = site.threads}, {}, {}},
          run = site.reproducible ? Einsum<double> : Einsum<float>](EvalContext& call) {
    run(call, setting);
  };
}

using Params = std::array<std::string_view, 2>;
constexpr Params kWeight = {"weight"}, kFactors = {"x", "y"};

using Run = void (*)(EvalContext&, const Setting&);
template <Run kFast, Run kExact, const Params& kWeights>
Kernel Prepare(const KernelSite& site) {
  const EvalContext& context = site.context;
  for (std::string_view name : {"x", "y", "weight", "bias"})
    if (context.def().Find(name) >= 0 && context.has(name) && !IsKernelFloat(context.dtype(name)))
      return {};
  if (!IsKernelFloat(context.out_dtype())) return {};
  Setting setting{{.threads = site.threads}, {}, {}};
  for (std::string_view name : kWeights) {
    if (name.empty() || !site.is_constant(name)) continue;
    const Tensor tensor = context.in(name);
    setting.fixed_name = name;
    setting.fixed = site.prepared.Get<Weights>(tensor, "as it is", [&] {
      return std::make_shared<const Weights>(Weights::AsTheyAre(tensor));
    });
    break;
  }
  return [setting, run = site.reproducible ? kExact : kFast](EvalContext& call) {
    run(call, setting);
  };
}

template <Run kFast, Run kExact, const Params& kWeights>
constexpr KernelRow RowOf(std::string_view op) {
  return {.op = op,
          .prepare = Prepare<kFast, kExact, kWeights>,
          .reproducible = true,
          .takes_wide = true,
          .weights = kWeights};
}

constexpr KernelRow kRows[] = {
    RowOf<Conv<float>, Conv<double>, kWeight>("conv"),
    RowOf<ConvTranspose<float>, ConvTranspose<double>, kWeight>("conv_transpose"),
    RowOf<Linear<float>, Linear<double>, kWeight>("linear"),
    RowOf<Matmul<float>, Matmul<double>, kFactors>("matmul"),
    {.op = "einsum", .prepare = PrepareEinsum, .reproducible = true, .takes_wide = true},
};

}  // namespace

std::span<const KernelRow> ProductKernels() { return kRows; }

}  // namespace mlc::engine
