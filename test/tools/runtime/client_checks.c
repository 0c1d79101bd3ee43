/* client_checks.c - what a client in C depends on: cancellation, time limits, memory, callbacks on the thread of the
 * caller, small stacks, loading the library twice. Links nothing of mlc: the library is loaded with dlopen.
 *
 *     client_checks libmlc.so digits.onnx FOLDER */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <mlc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* library;
#define FUNCTION(name) __typeof__(name)* name##_ = (__typeof__(name)*)dlsym(library, #name)
#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static pthread_t caller;
static int calls, cancel_at = -1;
static int32_t progress(const char* step, double share, void* user) {
  CHECK(pthread_equal(pthread_self(), caller) && user == &calls && step[0] && share >= 0);
  return ++calls == cancel_at;
}
static int logged;
static void log_text(int32_t level, const char* id, const char* text, void* user) {
  CHECK(pthread_equal(pthread_self(), caller) && user == &logged && id && text[0]);
  CHECK(level == MLC_NOTE || level == MLC_WARNING);
  ++logged;
}

static char *model_path, package[4096];

static void compile_with_callbacks(void) {
  FUNCTION(mlc_context_new);
  FUNCTION(mlc_context_set_log);
  FUNCTION(mlc_context_set_progress);
  FUNCTION(mlc_context_cancel);
  FUNCTION(mlc_context_reset);
  FUNCTION(mlc_context_free);
  FUNCTION(mlc_compile);
  FUNCTION(mlc_error_id);
  FUNCTION(mlc_error_free);
  mlc_context* context = NULL;
  mlc_error* error = NULL;
  FILE* file;
  caller = pthread_self();
  CHECK(mlc_context_new_("{\"threads\": 2}", &context, NULL) == MLC_OK);
  mlc_context_set_log_(context, log_text, &logged);
  mlc_context_set_progress_(context, progress, &calls);
  CHECK(mlc_compile_(context, model_path, package, "{\"force\": true}", NULL, &error) == MLC_OK);
  CHECK(calls > 0 && !error);
  calls = 0;
  cancel_at = 1;
  CHECK(mlc_compile_(context, model_path, "cancelled.mlpackage", NULL, NULL, &error) ==
        MLC_ERROR_CANCELLED);
  CHECK(strcmp(mlc_error_id_(error), "cancelled") == 0);
  mlc_error_free_(error);
  file = fopen("cancelled.mlpackage/Manifest.json", "r");
  CHECK(!file);
  mlc_context_reset_(context);
  cancel_at = -1;
  mlc_context_cancel_(context);
  CHECK(mlc_compile_(context, model_path, package, "{\"force\": true}", NULL, NULL) ==
        MLC_ERROR_CANCELLED);
  mlc_context_free_(context);
}

static void compile_from_memory(void) {
  FUNCTION(mlc_compile_memory);
  FUNCTION(mlc_string_free);
  FILE* file = fopen(model_path, "rb");
  static char bytes[1 << 20];
  const size_t size = fread(bytes, 1, sizeof bytes, file);
  char* result = NULL;
  fclose(file);
  CHECK(mlc_compile_memory_(NULL, bytes, size, NULL, "memory.mlpackage", NULL, &result, NULL) ==
        MLC_OK);
  CHECK(strstr(result, "\"operations\""));
  mlc_string_free_(result);
  CHECK(mlc_compile_memory_(NULL, bytes, size / 2, NULL, "half.mlpackage", NULL, NULL, NULL) ==
        MLC_ERROR_INPUT);
}

static void* predict(void* unused) {
  FUNCTION(mlc_model_load);
  FUNCTION(mlc_model_free);
  FUNCTION(mlc_predict);
  FUNCTION(mlc_error_free);
  mlc_model* model = NULL;
  mlc_error* error = NULL;
  float image[64] = {0}, scores[10];
  const int64_t image_dims[] = {1, 1, 8, 8}, score_dims[] = {1, 10};
  const mlc_tensor x = {sizeof x, image, MLC_FP32, 4, image_dims, NULL, NULL};
  const mlc_tensor y = {sizeof y, scores, MLC_FP32, 2, score_dims, NULL, NULL};
  const mlc_tensor *inputs[] = {&x}, *outputs[] = {&y};
  const char *input_names[] = {"image"}, *output_names[] = {"probabilities"};
  CHECK(mlc_model_load_(NULL, package, NULL, &model, NULL) == MLC_OK);
  CHECK(mlc_predict_(model, NULL, 1, input_names, inputs, 1, output_names, outputs, 0, NULL, NULL) ==
        MLC_OK);
  CHECK(mlc_predict_(model, NULL, 1, input_names, inputs, 1, output_names, outputs, 60000, NULL,
                     &error) == MLC_OK);
  mlc_error_free_(error);
  mlc_model_free_(model);
  return unused;
}

int main(int argc, char** argv) {
  int round;
  sigset_t before, after;
  struct sigaction bus;
  CHECK(argc == 3);
  model_path = argv[2];
  strcpy(package, "digits.mlpackage");
  CHECK(setlocale(LC_ALL, "C"));
  sigprocmask(SIG_SETMASK, NULL, &before);
  for (round = 0; round < 2; ++round) {
    pthread_t thread;
    pthread_attr_t attributes;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    compile_with_callbacks();
    compile_from_memory();
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 << 10);
    CHECK(pthread_create(&thread, &attributes, predict, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(dlclose(library) == 0);
  }
  sigprocmask(SIG_SETMASK, NULL, &after);
  CHECK(memcmp(&before, &after, sizeof before) == 0);
  CHECK(sigaction(SIGBUS, NULL, &bus) == 0 && bus.sa_handler == SIG_DFL);
  CHECK(strcmp(setlocale(LC_ALL, NULL), "C") == 0);
  puts("ok");
  return 0;
}
