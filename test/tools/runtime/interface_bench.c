/* interface_bench.c - the costs of the C interface, for scripts/bench: a prediction beyond the time of the engine, building an
 * operation, and a borrowed constant. Prints one line for each. */
#define _GNU_SOURCE
#include <mlc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void check(int32_t code, mlc_error* error) {
  if (code == MLC_OK) return;
  fprintf(stderr, "%s\n", mlc_error_text(error));
  exit(1);
}

static long resident_kilobytes(void) {
  long size = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2) return 0;
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A chain of additions of x of [4] and constants. */
static mlc_program* chain(int operations) {
  mlc_error* error = NULL;
  mlc_program* program = NULL;
  mlc_block* body = NULL;
  mlc_value value;
  const int64_t dims[] = {4};
  int i;
  check(mlc_program_new(NULL, &program, &error), error);
  check(mlc_function_add(program, "main", &body, &error), error);
  check(mlc_block_input(body, "x", MLC_FP32, 1, dims, &value, &error), error);
  for (i = 0; i < operations; ++i) {
    mlc_op* op = NULL;
    check(mlc_op_new(body, "add", NULL, &op, &error), error);
    check(mlc_op_arg(op, "x", value, &error), error);
    check(mlc_op_float(op, "y", i, &error), error);
    check(mlc_op_finish(op, 1, &value, NULL, &error), error);
    mlc_op_free(op);
  }
  check(mlc_block_output(body, "y", value, &error), error);
  return program;
}

static void predictions(void) {
  enum { kWarm = 1000, kRuns = 20000 };
  mlc_error* error = NULL;
  mlc_program* program = chain(1);
  mlc_model* model = NULL;
  float in[4] = {1, 2, 3, 4}, out[4];
  const int64_t dims[] = {4};
  const mlc_tensor x = {sizeof x, in, MLC_FP32, 1, dims, NULL, NULL}, y = {sizeof y, out, MLC_FP32, 1, dims, NULL, NULL};
  const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
  const char *input_names[] = {"x"}, *output_names[] = {"y"};
  char* text = NULL;
  const char* mean;
  double start = 0, each, engine;
  int i;
  check(mlc_program_load(NULL, program, NULL, &model, &error), error);
  for (i = -kWarm; i < kRuns; ++i) {
    if (i == 0) start = now();
    check(mlc_predict(model, NULL, 1, input_names, inputs, 1, output_names, outputs, 0, NULL, &error), error);
  }
  each = (now() - start) / kRuns * 1e6;
  check(mlc_model_telemetry(model, &text, &error), error);
  mean = strstr(strstr(text, "\"predict_ms\""), "\"p50\":");
  engine = atof(mean + strlen("\"p50\":")) * 1e3;
  printf("a prediction of one operation: %.2f us, of which the engine %.2f us\n", each, engine);
  mlc_string_free(text);
  mlc_model_free(model);
  mlc_program_free(program);
}

static void borrowed(size_t bytes) {
  mlc_error* error = NULL;
  mlc_program* program = NULL;
  mlc_block* body = NULL;
  mlc_value value;
  const int64_t dims[] = {(int64_t)(bytes / 4)};
  float* data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const mlc_tensor tensor = {sizeof tensor, data, MLC_FP32, 1, dims, NULL, NULL};
  const long before = resident_kilobytes();
  const double start = now();
  check(mlc_program_new(NULL, &program, &error), error);
  check(mlc_function_add(program, "main", &body, &error), error);
  check(mlc_block_constant_borrowed(body, "w", &tensor, NULL, NULL, &value, &error), error);
  printf("a borrowed constant of %.1f GB: %.3f ms, %ld kB of memory\n", (double)bytes / 1e9, (now() - start) * 1e3,
         resident_kilobytes() - before);
  mlc_program_free(program);
}

int main(void) {
  const double start = now();
  mlc_program* program = chain(100000);
  printf("building 100,000 operations: %.2f s\n", now() - start);
  mlc_program_free(program);
  predictions();
  borrowed((size_t)1 << 30);
  return 0;
}
