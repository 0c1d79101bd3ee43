// Convolutions and matrix products by oneDNN, versions 2 and 3. Between operations, images are
// channels-last if this saves conversions, and all other tensors are row-major. If a primitive
// requires another layout, weights are reordered once and activations at each call.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dnnl.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

#include "lib/engine/elementwise.h"
#include "lib/engine/fp32_view.h"
#include "lib/engine/kernels.h"
#include "lib/engine/layout.h"
#include "lib/engine/omp_parallel.h"
#include "lib/engine/onednn_version.h"
#include "lib/engine/packed_gemm.h"
#include "lib/engine/weight_repack.h"
#include "lib/ops/sliding_window.h"
#include "lib/support/memory_limits.h"

namespace mlc::engine {

namespace {

using dnnl::memory;

const dnnl::engine& Cpu() {
  static const dnnl::engine engine = [] {
    // Must precede the first primitive: some virtual machines report AMX but trap on its
    // instructions. The call has no effect on other architectures, and the user's setting takes
    // precedence.
    if (!std::getenv("ONEDNN_MAX_CPU_ISA") && !std::getenv("DNNL_MAX_CPU_ISA"))
      (void)dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

// Sets the number of threads that oneDNN uses on this thread during the object's lifetime. oneDNN
// takes it from its OpenMP library (found by name, since it may differ from that of our compiler),
// which stores it per thread; the destructor restores the caller's number. Has no effect if oneDNN
// was built with another threading runtime.
class WithThreads {
 public:
  explicit WithThreads(int threads) : before_(Get() ? Get()() : 0) {
    if (!before_) return;
    ExpectThreads(threads);
    Set()(threads);
  }
  ~WithThreads() {
    if (before_) Set()(before_);
  }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;

 private:
  using Getter = int (*)();
  using Setter = void (*)(int);
  static Getter Get() {
    static const auto get =
        reinterpret_cast<Getter>(Set() ? EngineSymbol("omp_get_max_threads") : nullptr);
    return get;
  }
  static Setter Set() {
    static const auto set = reinterpret_cast<Setter>(EngineSymbol("omp_set_num_threads"));
    return set;
  }
  int before_;
};

// The minimum number of multiplications for several threads: OpenMP threads synchronise in the time
// in which one thread computes this many.
constexpr double kWorthThreads = 1 << 16;

// The room for generated code: oneDNN writes the code of a primitive without checking that it got
// memory for it.
constexpr size_t kMostCode = 8 << 20;

memory::desc RowMajor(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(dims[i], 1);
  return {dims, memory::data_type::f32, strides};
}
memory::desc Any(const Dims& dims) {
  return {dims, memory::data_type::f32, memory::format_tag::any};
}
memory::desc ChannelsLast(const Dims& dims) {
  using enum memory::format_tag;
  return {dims, memory::data_type::f32, dims.size() == 3 ? nwc : dims.size() == 4 ? nhwc : ndhwc};
}
// Describes a row-major image, as channels-last if both layouts are the same.
memory::desc RowMajorImage(const Dims& dims) {
  bool same = dims[1] == 1 || ElementCount(dims) == dims[0] * dims[1];
  return same ? ChannelsLast(dims) : RowMajor(dims);
}

// Returns the stream of this thread, since each thread executes its own primitives.
dnnl::stream& Stream() {
  static thread_local dnnl::stream stream(Cpu());
  return stream;
}

// Returns memory of this thread for one use at a time.
template <class Use>
float* Scratch(int64_t count) {
  static thread_local std::unique_ptr<float[]> scratch;
  static thread_local int64_t most = 0;
  if (count > most) {
    scratch.reset();
    scratch = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count));
    most = count;
  }
  return scratch.get();
}

// Returns a scratchpad that belongs to the executing thread, unlike oneDNN's own, which belong to
// the thread that created the primitive.
memory Scratchpad(const memory::desc& desc) {
  static thread_local memory largest;
  static thread_local size_t most = 0;
  if (const size_t size = desc.get_size(); size > most) {
    largest = memory({{static_cast<memory::dim>(size)}, memory::data_type::u8, Dims{1}}, Cpu());
    most = size;
  }
  return memory(desc, Cpu(), largest.get_data_handle());
}
dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// Two layouts of the same elements, and the conversion from the first to the second.
class Reordering {
 public:
  Reordering(memory::desc from, memory::desc to) : from_(std::move(from)), to_(std::move(to)) {
    same_ = from_ == to_;
    if (!same_) reorder_ = dnnl::reorder(dnnl::reorder::primitive_desc(Cpu(), from_, Cpu(), to_));
  }
  bool same() const { return same_; }
  const memory::desc& from() const { return from_; }
  const memory::desc& to() const { return to_; }
  memory From(const float* data) const { return {from_, Cpu(), const_cast<float*>(data)}; }
  // Returns `data` in the second layout, or unchanged if the layouts are the same.
  memory Convert(dnnl::stream& stream, const float* data) const {
    memory source = From(data);
    if (same()) return source;
    memory target(to_, Cpu());
    reorder_.execute(stream, source, target);
    return target;
  }
  // Returns memory in the first layout; Finish converts it to the second layout in `data`.
  memory Before(float* data) const { return same() ? From(data) : memory(from_, Cpu()); }
  void Finish(dnnl::stream& stream, memory& source, float* data) const {
    if (same()) return;
    memory target(to_, Cpu(), data);
    reorder_.execute(stream, source, target);
  }

 private:
  memory::desc from_, to_;
  bool same_;
  dnnl::reorder reorder_;
};

// A constant in the layouts that primitives require, shared by all kernels that use it.
struct Layouts {
  struct Laid {
    memory::desc from, to;
    memory elements;
    Tensor owner;  // keeps `elements` alive if they are those of the constant
  };
  mutable std::mutex mutex;
  mutable std::list<Laid> laid;

  memory Get(const Tensor& tensor, const Reordering& order) const {
    std::lock_guard lock(mutex);
    for (const Laid& each : laid)
      if (each.from == order.from() && each.to == order.to()) return each.elements;
    Laid fresh{order.from(), order.to(), {}, {}};
    if (order.same() && tensor.dtype() == DType::kFp32) {
      fresh.owner = tensor.InMemory();
      fresh.elements = order.From(Fp32View(fresh.owner).data());
    } else {
      dnnl::stream& stream = Stream();
      Weights floats = Weights::Expanded(tensor);
      fresh.elements = memory(order.to(), Cpu());
      if (order.same())
        std::copy_n(floats.data(), tensor.size(),
                    static_cast<float*>(fresh.elements.get_data_handle()));
      else
        fresh.elements = order.Convert(stream, floats.data());
      stream.wait();
      tensor.Release(0, tensor.size());
    }
    laid.push_back(fresh);
    return fresh.elements;
  }
};

// Biases and scratchpad are optional.
void Execute(const dnnl::primitive& primitive, const memory& source, const memory& weights,
             const memory& biases, const memory& target, const memory& scratch) {
  // The C interface accepts the arguments without a map.
  std::array<dnnl_exec_arg_t, 5> args{{{DNNL_ARG_SRC, source.get()},
                                       {DNNL_ARG_WEIGHTS, weights.get()},
                                       {DNNL_ARG_DST, target.get()}}};
  int count = 3;
  if (biases) args[count++] = {DNNL_ARG_BIAS, biases.get()};
  if (scratch) args[count++] = {DNNL_ARG_SCRATCHPAD, scratch.get()};
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), Stream().get(), count, args.data()),
      "a primitive could not be executed");
  Stream().wait();
}

// The positions of elements in a blocked layout.
struct Blocking {
  bool known = false;
  Dims strides;  // by dimension, from one block to the next
  // Dimension and length of each block, the innermost last.
  std::vector<std::pair<int, int64_t>> inner;

  explicit Blocking(const memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
    known = desc.get_format_kind() == memory::format_kind::blocked;
    if (!known) return;
    strides = desc.get_strides();
    const Dims lengths = desc.get_inner_blks(), dimensions = desc.get_inner_idxs();
    for (size_t i = 0; i < lengths.size(); ++i)
      inner.push_back({static_cast<int>(dimensions[i]), lengths[i]});
#else
    known = desc.data.format_kind == dnnl_blocked && desc.data.extra.flags == 0;
    if (!known) return;
    const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
    strides.assign(blocking.strides, blocking.strides + desc.data.ndims);
    for (int i = 0; i < blocking.inner_nblks; ++i)
      inner.push_back({static_cast<int>(blocking.inner_idxs[i]), blocking.inner_blks[i]});
#endif
  }
  // Returns the offset of a coordinate; the position of an element is the sum over its dimensions.
  int64_t Offset(int dimension, int64_t i) const {
    int64_t offset = 0, unit = 1;
    for (size_t b = inner.size(); b-- > 0;) {
      const auto [of, length] = inner[b];
      if (of == dimension) {
        offset += i % length * unit;
        i /= length;
      }
      unit *= length;
    }
    return offset + i * strides[dimension];
  }
};

// The stored layout of weights: a matrix whose rows are the outermost dimensions.
struct Held {
  Dims dims, strides;
  int outputs;   // the dimension of outputs, which are computed independently
  int rows = 1;  // number of dimensions that form the rows

  Dims Order() const {
    Dims order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater(), [&](int64_t d) { return strides[d]; });
    return order;
  }
  // Returns the placement of some of the outputs.
  RepackPlan PlacedAs(const Blocking& blocking, int64_t count, int64_t size) const {
    Dims part = dims, order = Order();
    part[outputs] = count;
    auto offsets = [&](auto begin, auto end) {
      std::vector<int32_t> all{0}, next;
      for (; begin != end; ++begin) {
        next.clear();
        for (int32_t offset : all)
          for (int64_t i = 0; i < part[*begin]; ++i)
            next.push_back(offset + static_cast<int32_t>(blocking.Offset(*begin, i)));
        all.swap(next);
      }
      return all;
    };
    return {offsets(order.begin(), order.begin() + rows),
            offsets(order.begin() + rows, order.end()), size};
  }
};

// A product with encoded weights, divided by outputs; the weights of one part at a time are
// expanded in each run.
struct Parts {
  struct Part {
    dnnl::primitive primitive;
    memory::desc weight, bias, result, scratchpad;
    RepackPlan placement;
  };
  std::shared_ptr<const Weights> weights;
  int64_t outputs, each;    // in total, and per part except the last
  int64_t step, row;        // distances in the weights, between outputs and between rows
  std::vector<Part> kinds;  // all parts except the last, and the last if it differs

  void Run(const memory& source, const float* bias, float* y, int64_t vectors, int threads) const {
    for (int64_t from = 0; from < outputs; from += each) {
      const int64_t count = std::min(each, outputs - from);
      const Part& part = count == each ? kinds.front() : kinds.back();
      float* laid = Scratch<Part>(part.placement.size);
      RepackWeights(*weights, from * step, row, part.placement, threads, laid);
      float* results = count == outputs ? y : Scratch<Parts>(vectors * count);
      memory weight(part.weight, Cpu(), laid), result(part.result, Cpu(), results), biases, scratch;
      if (bias) biases = memory(part.bias, Cpu(), const_cast<float*>(bias + from));
      if (part.scratchpad.get_size() > 0) scratch = Scratchpad(part.scratchpad);
      Execute(part.primitive, source, weight, biases, result, scratch);
      if (results != y)
        OmpParallelForRanges(
            vectors, threads,
            [&](int64_t first, int64_t end) {
              for (int64_t i = first; i < end; ++i)
                std::copy_n(results + i * count, count, y + i * outputs + from);
            },
            count);
    }
  }
};

// A convolution or matrix product: a sum of products of two operands.
struct Contraction {
  std::string_view x_name, weight_name;
  dnnl::primitive primitive;
  Reordering x, weight, result;
  std::optional<Reordering> x_last = {};  // for a channels-last image
  bool y_last = false;                    // whether the result is channels-last
  memory::desc bias;                      // zero if there is none
  memory::desc scratchpad;
  bool has_scratchpad = scratchpad.get_size() > 0;
  int threads = 1;
  bool wide = false;                                 // as in KernelSite
  bool chain = false;                                // whether it runs on a ChainContext
  memory fixed_weight = {}, fixed_bias = {};         // for constant operands
  std::shared_ptr<const Fp32View> bias_floats = {};  // keeps the data of fixed_bias alive
  std::shared_ptr<const Layouts> layouts = {};
  std::shared_ptr<const Parts> parts = {};  // for encoded weights

  void Run(EvalContext& context) const {
    WithThreads with_threads(threads);
    dnnl::stream& stream = Stream();
    Tensor x_tensor = context.in(x_name);
    ImageLayout x_layout = x_last ? ImageLayout::Of(x_tensor) : ImageLayout(), y_layout(y_last);
    Fp32View x_floats(x_layout.Laid(x_tensor), threads);
    const auto* followed = chain ? static_cast<const ChainContext*>(&context) : nullptr;
    Fp32Result y(followed ? followed->last_dtype() : context.out_dtype(),
                 y_layout.Laid(context.out_dims()), threads, wide);
    std::optional<Fp32View> own_weight, own_bias;
    memory source = (x_layout.channels_last() ? *x_last : x).Convert(stream, x_floats.data()),
           weights = fixed_weight, biases = fixed_bias, target = result.Before(y.data()), scratch;
    if (!weights && !parts) {
      own_weight.emplace(context.in(weight_name));
      weights = weight.Convert(stream, own_weight->data());
    }
    if (!biases && !bias.is_zero()) {
      own_bias.emplace(context.in("bias"));
      biases = memory(bias, Cpu(), const_cast<float*>(own_bias->data()));
    }
    if (parts) {
      const void* bias_data = biases ? biases.get_data_handle() : nullptr;
      parts->Run(source, static_cast<const float*>(bias_data), y.data(), y.size() / parts->outputs,
                 threads);
    } else {
      if (has_scratchpad) scratch = Scratchpad(scratchpad);
      Execute(primitive, source, weights, biases, target, scratch);
      result.Finish(stream, target, y.data());
      stream.wait();
    }
    context.Set(followed ? followed->Follow(std::move(y), y_layout, threads)
                         : y_layout.Shown(y.Take()));
  }
};

// Returns the number of threads, which oneDNN requires to be the same for creating and executing a
// primitive.
int ChooseThreads(const KernelSite& site, double multiplications) {
  return multiplications < kWorthThreads ? 1 : site.threads;
}

Kernel Finish(const KernelSite& site, Contraction made) {
  auto contraction = std::make_shared<Contraction>(std::move(made));
  if (site.is_constant(contraction->weight_name) && !contraction->parts) {
    const Tensor tensor = site.context.in(contraction->weight_name);
    contraction->layouts = site.prepared.Get<Layouts>(
        tensor, "oneDNN", [] { return std::make_shared<const Layouts>(); });
    contraction->fixed_weight = contraction->layouts->Get(tensor, contraction->weight);
  }
  if (!contraction->bias.is_zero() && site.is_constant("bias")) {
    contraction->bias_floats = std::make_shared<const Fp32View>(site.context.in("bias"));
    contraction->fixed_bias =
        memory(contraction->bias, Cpu(), const_cast<float*>(contraction->bias_floats->data()));
  }
  return [contraction](EvalContext& context) {
    try {
      contraction->Run(context);
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
      throw InternalError(fmt::format("oneDNN: {}: {}", context.def().name, error.what()));
    }
  };
}

// Returns an empty kernel if oneDNN does not support the types.
template <Kernel (*kMake)(const KernelSite&, bool chain), bool kChain = false>
Kernel OrNothing(const KernelSite& site) {
  try {
    return kMake(site, kChain);
  } catch (const dnnl::error&) {
    return {};
  }
}

// Returns whether all of these operands are float tensors with at least one element.
bool AreFloats(const EvalContext& context, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (context.has(name) &&
        (!IsKernelFloat(context.dtype(name)) || ElementCount(StaticDims(context.shape(name))) == 0))
      return false;
  return IsKernelFloat(context.out_dtype());
}

#if DNNL_VERSION_MAJOR >= 3
Dims DimsOf(const memory::desc& desc) { return desc.get_dims(); }
template <class P, class... Parts>
typename P::primitive_desc Describe(Parts&&... parts) {
  return typename P::primitive_desc(Cpu(), std::forward<Parts>(parts)..., Attributes());
}
#else
Dims DimsOf(const memory::desc& desc) { return desc.dims(); }
template <class P, class... Parts>
typename P::primitive_desc Describe(Parts&&... parts) {
  return typename P::primitive_desc(typename P::desc(std::forward<Parts>(parts)...), Attributes(),
                                    Cpu());
}
#endif

// The number of floats to expand at a time: as many as fit into the cache of each of these threads,
// or up to kMostOfPart if the weights cannot be divided further.
constexpr int64_t kPart = int64_t{1} << 18, kMostParts = 4, kMostOfPart = int64_t{1} << 20;

bool StaysAsItIs(const KernelSite& site, std::string_view name) {
  return site.is_constant(name) && IsNarrow(site.context.in(name));
}

// Prepares a product with an encoded constant. `describe` returns the primitive for a number of
// outputs, whose results are contiguous for each of the `vectors`, or nothing if oneDNN has only
// reference loops for it. Returns null if other kernels are faster.
template <class P, class Describe>
std::shared_ptr<const Parts> Divide(const KernelSite& site, std::string_view name, const Held& held,
                                    int64_t vectors, int threads, Describe&& describe) {
  const Dims order = held.Order();
  const int64_t outputs = held.dims[held.outputs], each_takes = ElementCount(held.dims) / outputs;
  const bool grouped = held.rows > 1;
  if (vectors < kFewVectors && !grouped && order[0] == held.outputs) return nullptr;
  int64_t each = outputs;
  const int64_t part = kPart * std::min<int64_t>(threads, kMostParts);
  if (!grouped && each * each_takes > part) {
    constexpr int64_t kVector = 16, kBlock = 64;
    const int64_t most = std::max<int64_t>(part / each_takes, 1),
                  unit = most < kBlock ? kVector : kBlock,
                  wanted = std::max<int64_t>(most / unit, 1) * unit,
                  parts = (outputs + wanted - 1) / wanted;
    each = std::min(outputs, ((outputs + parts - 1) / parts + unit - 1) / unit * unit);
  }
  if (each * each_takes > kMostOfPart) return nullptr;
  const Tensor tensor = site.context.in(name);
  auto divided = std::make_shared<Parts>();
  divided->outputs = outputs;
  divided->each = each;
  divided->step = held.strides[held.outputs];
  divided->row = grouped ? 0 : held.strides[order[0]];
  auto add = [&](int64_t count) {
    std::optional<typename P::primitive_desc> description = describe(count);
    if (!description) return false;
    const memory::desc weight = description->weights_desc();
    const Blocking blocking(weight);
    if (!blocking.known) return false;
    divided->kinds.push_back(
        {P(*description), weight, description->bias_desc(), description->dst_desc(),
         description->scratchpad_desc(),
         held.PlacedAs(blocking, count, static_cast<int64_t>(weight.get_size() / sizeof(float)))});
    return true;
  };
  if (!add(each) || (outputs % each && !add(outputs % each))) return nullptr;
  if (grouped) divided->row = std::ssize(divided->kinds[0].placement.columns);
  divided->weights = site.prepared.Get<Weights>(tensor, "as it is", [&] {
    return std::make_shared<const Weights>(Weights::AsTheyAre(tensor));
  });
  return divided;
}

// Each element of the weight is multiplied at `positions` positions.
template <class P>
Kernel FinishConvolution(const KernelSite& site, dnnl::algorithm algorithm, const Geometry& g,
                         int spatial, const memory::desc& plain_weight, const Dims& weight_dims,
                         const Geometry::Spatial& before, const Geometry::Spatial& after,
                         int64_t positions, bool chain) {
  const EvalContext& context = site.context;
  int threads = ChooseThreads(
      site, static_cast<double>(positions) * static_cast<double>(ElementCount(weight_dims)));
  WithThreads with_threads(threads);
  RequireRoom(kMostCode);
  auto last = [&](const Geometry::Spatial& values, int64_t less = 0) {
    Dims dims(values.end() - spatial, values.end());
    for (int64_t& value : dims) value -= less;
    return dims;
  };
  Dims x = StaticDims(context.shape("x")), y = context.out_dims();
  memory::desc bias = context.has("bias") ? RowMajor({y[1]}) : memory::desc();
  auto inference = dnnl::prop_kind::forward_inference;
  Dims strides = last(g.stride), dilations = last(g.dilation, 1), left = last(before),
       right = last(after);
  auto describe = [&](const memory::desc& from, const Dims& weight, const memory::desc& to) {
    if (bias.is_zero())
      return Describe<P>(inference, algorithm, from, Any(weight), to, strides, dilations, left,
                         right);
    return Describe<P>(inference, algorithm, from, Any(weight), RowMajor({DimsOf(to)[1]}), to,
                       strides, dilations, left, right);
  };
  // Uses the layouts that the primitive, or its parts, require for images and weights.
  auto finish = [&](dnnl::primitive primitive, const memory::desc& from, const memory::desc& weight,
                    const memory::desc& to, const memory::desc& scratchpad,
                    std::shared_ptr<const Parts> parts) {
    const bool y_last = to == ChannelsLast(y) && !(to == RowMajorImage(y));
    return Finish(site, {.x_name = "x",
                         .weight_name = "weight",
                         .primitive = std::move(primitive),
                         .x = Reordering(RowMajorImage(x), from),
                         .weight = Reordering(plain_weight, weight),
                         .result = Reordering(to, y_last ? to : RowMajorImage(y)),
                         .x_last = Reordering(ChannelsLast(x), from),
                         .y_last = y_last,
                         .bias = bias,
                         .scratchpad = scratchpad,
                         .threads = threads,
                         .wide = site.wide,
                         .chain = chain,
                         .parts = std::move(parts)});
  };
  if (StaysAsItIs(site, "weight")) {
    const bool grouped = std::ssize(weight_dims) > spatial + 2;
    const Held held{weight_dims, Blocking(plain_weight).strides, grouped, grouped ? 2 : 1};
    auto parts = Divide<P>(site, "weight", held, positions, threads,
                           [&](int64_t count) -> std::optional<typename P::primitive_desc> {
                             Dims weight = weight_dims, part = y;
                             weight[held.outputs] = count;
                             if (!grouped) part[1] = count;
                             auto description =
                                 describe(ChannelsLast(x), weight, ChannelsLast(part));
                             if (std::string_view(description.impl_info_str()).starts_with("ref"))
                               return {};
                             return description;
                           });
    if (!parts) return {};
    return finish({}, ChannelsLast(x), plain_weight, ChannelsLast(y), {}, parts);
  }
  auto description = describe(ChannelsLast(x), weight_dims, ChannelsLast(y));
  // For reference loops, try whether another layout has a faster implementation.
  if (std::string_view(description.impl_info_str()).starts_with("ref"))
    description = describe(Any(x), weight_dims, Any(y));
  return finish(P(description), description.src_desc(), description.weights_desc(),
                description.dst_desc(), description.scratchpad_desc(), {});
}

Kernel PrepareConv(const KernelSite& site, bool chain) {
  const EvalContext& context = site.context;
  if (!AreFloats(context, {"x", "weight", "bias"})) return {};
  Dims x = StaticDims(context.shape("x")), weight = StaticDims(context.shape("weight"));
  Window window = ReadWindow(context);
  Geometry g(window, x, context.out_dims());
  Geometry::Spatial after{};
  for (int i = 0; i < 3; ++i) after[i] = g.In(i, g.out[i] - 1, g.kernel[i] - 1) - g.in[i] + 1;
  int64_t groups = context.Int("groups");
  Dims dims = weight;
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
  }
  return FinishConvolution<dnnl::convolution_forward>(
      site, dnnl::algorithm::convolution_direct, g, window.spatial(), RowMajor(dims), dims,
      g.before, after, ElementCount(context.out_dims()) / weight[0], chain);
}

Kernel PrepareConvTranspose(const KernelSite& site, bool chain) {
  const EvalContext& context = site.context;
  if (!AreFloats(context, {"x", "weight", "bias"})) return {};
  Dims x = StaticDims(context.shape("x")), weight = StaticDims(context.shape("weight")),
       y = context.out_dims();
  Window window = ReadWindow(context);
  Geometry g(window, x, y);
  std::vector<int64_t> crop = TransposedCrop(window, x, y);
  Geometry::Spatial before{}, after{};
  std::copy(crop.begin(), crop.end(), before.end() - static_cast<int64_t>(crop.size()));
  for (int i = 0; i < 3; ++i)
    after[i] =
        (g.in[i] - 1) * g.stride[i] + (g.kernel[i] - 1) * g.dilation[i] + 1 - before[i] - g.out[i];
  // MIL's weight is [in, out / groups, kernel]; oneDNN's logical shape is [groups, out / groups, in
  // / groups, kernel].
  int64_t groups = context.Int("groups"), in = weight[0] / groups, out = weight[1];
  Dims dims{out, in}, strides;
  dims.insert(dims.end(), weight.begin() + 2, weight.end());
  int64_t taps = std::accumulate(weight.begin() + 2, weight.end(), int64_t{1}, std::multiplies<>());
  strides = {taps, out * taps};
  for (size_t i = 2; i < weight.size(); ++i) {
    taps /= weight[i];
    strides.push_back(taps);
  }
  if (groups > 1) {
    dims.insert(dims.begin(), groups);
    strides.insert(strides.begin(), in * strides[1]);
  }
  memory::desc plain(dims, memory::data_type::f32, strides);
  return FinishConvolution<dnnl::deconvolution_forward>(site, dnnl::algorithm::deconvolution_direct,
                                                        g, window.spatial(), plain, dims, before,
                                                        after, ElementCount(x) / weight[0], chain);
}

// Computes x [.., m, k] times weight [.., k, n]; a constant weight may be reordered.
Kernel FinishMatmul(const KernelSite& site, std::string_view x_name, std::string_view weight_name,
                    const memory::desc& x, const memory::desc& weight, const Dims& weight_dims,
                    const Dims& y_dims, bool with_bias, bool chain) {
  int threads = ChooseThreads(site, static_cast<double>(ElementCount(y_dims)) *
                                        static_cast<double>(weight_dims[weight_dims.size() - 2]));
  WithThreads with_threads(threads);
  if (StaysAsItIs(site, x_name)) return {};
  RequireRoom(kMostCode);
  Dims bias_dims(y_dims.size(), 1);
  bias_dims.back() = y_dims.back();
  memory::desc y = RowMajor(y_dims), bias = with_bias ? RowMajor(bias_dims) : memory::desc();
  auto finish = [&](dnnl::primitive primitive, const memory::desc& from, const memory::desc& laid,
                    const memory::desc& to, const memory::desc& scratchpad,
                    std::shared_ptr<const Parts> parts) {
    return Finish(site, {.x_name = x_name,
                         .weight_name = weight_name,
                         .primitive = std::move(primitive),
                         .x = Reordering(x, from),
                         .weight = Reordering(weight, laid),
                         .result = Reordering(to, y),
                         .bias = bias,
                         .scratchpad = scratchpad,
                         .threads = threads,
                         .wide = site.wide,
                         .chain = chain,
                         .parts = std::move(parts)});
  };
  if (StaysAsItIs(site, weight_name)) {
    if (weight_dims.size() > 2) return {};
    auto parts = Divide<dnnl::matmul>(
        site, weight_name, {weight_dims, Blocking(weight).strides, 1}, y_dims[0], threads,
        [&](int64_t count) -> std::optional<dnnl::matmul::primitive_desc> {
          const memory::desc from = Any({weight_dims[0], count}), to = RowMajor({y_dims[0], count});
          return with_bias ? Describe<dnnl::matmul>(x, from, RowMajor({1, count}), to)
                           : Describe<dnnl::matmul>(x, from, to);
        });
    if (!parts) return {};
    return finish({}, x, weight, y, {}, parts);
  }
  memory::desc wanted = site.is_constant(weight_name) ? Any(weight_dims) : weight;
  auto description =
      with_bias ? Describe<dnnl::matmul>(x, wanted, bias, y) : Describe<dnnl::matmul>(x, wanted, y);
  return finish(dnnl::matmul(description), description.src_desc(), description.weights_desc(),
                description.dst_desc(), description.scratchpad_desc(), {});
}

Kernel PrepareLinear(const KernelSite& site, bool chain) {
  const EvalContext& context = site.context;
  if (!AreFloats(context, {"x", "weight", "bias"})) return {};
  Dims weight = StaticDims(context.shape("weight")), y = context.out_dims();
  int64_t n = weight[0], k = weight[1], m = ElementCount(y) / n;
  memory::desc transposed({k, n}, memory::data_type::f32, Dims{1, k});
  return FinishMatmul(site, "x", "weight", RowMajor({m, k}), transposed, {k, n}, {m, n},
                      context.has("bias"), chain);
}

// An operand as [batch, rows, columns] with leading batch dimensions of 1, transposed by its
// strides if required.
struct Matrices {
  Dims shape, strides;
  Matrices(const Dims& dims, bool transposed, size_t rank, bool left)
      : shape(dims), strides(rank, 1) {
    if (shape.size() == 1) shape.insert(left ? shape.begin() : shape.end(), 1);
    shape.insert(shape.begin(), rank - shape.size(), 1);
    for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    if (!transposed) return;
    std::swap(shape[rank - 2], shape[rank - 1]);
    std::swap(strides[rank - 2], strides[rank - 1]);
  }
  memory::desc desc() const { return {shape, memory::data_type::f32, strides}; }
};

Kernel PrepareMatmul(const KernelSite& site, bool chain) {
  const EvalContext& context = site.context;
  if (!AreFloats(context, {"x", "y"})) return {};
  Dims x_dims = StaticDims(context.shape("x")), y_dims = StaticDims(context.shape("y"));
  bool x_swapped = context.Bool("transpose_x"), y_swapped = context.Bool("transpose_y");
  // A batch of matrices times one matrix is one tall matrix times that matrix.
  if (x_dims.size() > 2 && y_dims.size() == 2 && !x_swapped) {
    int64_t k = x_dims.back(), m = ElementCount(x_dims) / k;
    x_dims = {m, k};
  }
  size_t rank = std::max<size_t>({x_dims.size(), y_dims.size(), 2});
  Matrices x(x_dims, x_swapped, rank, true), y(y_dims, y_swapped, rank, false);
  Dims shape(rank);
  for (size_t i = 0; i + 2 < rank; ++i) shape[i] = std::max(x.shape[i], y.shape[i]);
  shape[rank - 2] = x.shape[rank - 2];
  shape[rank - 1] = y.shape[rank - 1];
  return FinishMatmul(site, "x", "y", x.desc(), y.desc(), y.shape, shape, false, chain);
}

constexpr KernelRow kRows[] = {
    // Not reproducible: sums depend on the instruction set, the version of oneDNN and the number of
    // threads.
    {"conv", OrNothing<PrepareConv>, false, true, true, OrNothing<PrepareConv, true>},
    {"conv_transpose", OrNothing<PrepareConvTranspose>, false, true, true,
     OrNothing<PrepareConvTranspose, true>},
    {"linear", OrNothing<PrepareLinear>, false, false, true, OrNothing<PrepareLinear, true>},
    {"matmul", OrNothing<PrepareMatmul>, false, false, true, OrNothing<PrepareMatmul, true>},
};

}  // namespace

std::span<const KernelRow> OneDnnKernels() { return kRows; }

void* EngineSymbol(const char* name) {
  static void* const library = [] {
    Dl_info info;
    void* own =
        dladdr(dnnl_version(), &info) ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    return own ? own : dlopen(nullptr, RTLD_LAZY);  // statically linked
  }();
  return dlsym(library, name);
}

LibraryVersion EngineLibrary() {
  const dnnl_version_t* running = dnnl_version();
  return {"oneDNN",
          fmt::format("{}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH),
          fmt::format("{}.{}.{}", running->major, running->minor, running->patch)};
}

}  // namespace mlc::engine
