// Pools: several instances of a model that serve one queue.
#include <chrono>
#include <nlohmann/json.hpp>

#include "lib/runtime/model_pool.h"
#include "tools/driver/options_json.h"
#include "tools/runtime/function_options.h"
#include "tools/runtime/predict.h"

using namespace mlc;
using namespace mlc::abi;

struct mlc_pool {
  std::shared_ptr<LoadedFunction> function;
  PoolOptions options;
  std::unique_ptr<runtime::Pool> pool;
};

int32_t mlc_pool_new(mlc_model* model, const char* options, mlc_pool** pool, mlc_error** error) {
  return Call(error, [&] {
    Require(model, "model");
    Require(pool, "pool");
    constexpr int64_t kMostInstances = 256, kMostWaiting = 1 << 20;
    auto made = std::make_unique<mlc_pool>();
    made->function = model->function;
    driver::FillFromJson(PoolTable(made->options), OrEmpty(options));
    const auto [count, queue] = made->options;
    if (count < 1 || count > kMostInstances)
      throw Error("usage", "--instances: {}", count).Expected("1 to {}", kMostInstances);
    if (queue < 1 || queue > kMostWaiting)
      throw Error("usage", "--queue: {}", queue).Expected("1 to {}", kMostWaiting);
    const LoadedFunction& function = *model->function;
    std::vector<std::unique_ptr<runtime::GuardedModel>> instances;
    for (int64_t i = 0; i < count; ++i) {
      const std::lock_guard lock(function.model->mutex);
      instances.push_back(function.model->model->Load(function.function, function.Guard()));
    }
    made->pool = std::make_unique<runtime::Pool>(std::move(instances), static_cast<size_t>(queue));
    *pool = made.release();
  });
}

int32_t mlc_pool_run(mlc_pool* pool, const mlc_request* request, int32_t wait, int64_t timeout_ms,
                     mlc_results** results, mlc_error** error) {
  return Call(error, [&] {
    Require(pool, "pool");
    Require(request, "request");
    Require(results, "results");
    if (request->function != pool->function)
      throw Error("bad-input", "the request belongs to another model than the pool");
    if (request->state)
      throw Error("bad-input", "the request has states, which the instances of a pool do not keep")
          .Help("use mlc_request_run");
    runtime::PoolTask task{.inputs = request->inputs, .timeout = {}};
    Complete(*pool->function, task.inputs);
    runtime::Pool::Deadline until;
    if (timeout_ms != 0) {
      task.timeout = TimeoutFrom(timeout_ms);
      until = std::chrono::steady_clock::now() + *task.timeout;
    }
    std::future<runtime::Prediction> future = pool->pool->Submit(
        std::move(task), wait ? runtime::Pool::WhenFull::kBlock : runtime::Pool::WhenFull::kRefuse,
        until);
    if (until && future.wait_until(*until) != std::future_status::ready)
      throw Error("timeout", "no result within {} ms, which include the time in the queue",
                  timeout_ms);
    *results = ResultsOf(pool->function, future.get()).release();
  });
}

int32_t mlc_pool_statistics(mlc_pool* pool, char** result, mlc_error** error) {
  return Call(error, [&] {
    Require(pool, "pool");
    Require(result, "result");
    const runtime::PoolStatistics found = pool->pool->statistics();
    StoreResult({{"instances", pool->options.instances},
                 {"queue", pool->options.queue},
                 {"submitted", found.submitted},
                 {"finished", found.finished},
                 {"rejected", found.rejected},
                 {"blocked", found.blocked},
                 {"queue_high_water", found.queue_high_water},
                 {"waited_p50_ms", found.waited.p50},
                 {"waited_p99_ms", found.waited.p99}},
                result);
  });
}

void mlc_pool_free(mlc_pool* pool) { delete pool; }
