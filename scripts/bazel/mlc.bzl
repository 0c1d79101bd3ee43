"""Rules that build and check Core ML packages with mlc, for Bazel 4.2 and newer.

    load("//scripts/bazel:mlc.bzl", "mlc_recipe")
    mlc_recipe(name = "digits", recipe = "digits.json", data = [...], variants = {...})

`mlc build --emit bazel` prints such calls. Each variant NAME of a recipe has the targets
    NAME           the package and its manifest: `mlc compile`
    NAME_test      the checks of the recipe: `mlc build`
    NAME_parity    comparison with the source on generated inputs: `mlc verify`
    NAME_bundle    a parity bundle for another machine: `mlc verify --bundle`
    NAME_device    runs that bundle with the mlc-run of a Mac; tagged mac, exclusive and manual
"""

TOOLCHAIN = "//scripts/bazel:toolchain_type"

MlcPackageInfo = provider(fields = ["source", "data", "package", "words"])

def _toolchain_impl(ctx):
    return [platform_common.ToolchainInfo(mlc = ctx.file.mlc, files = [ctx.file.mlc] + ctx.files.libs)]

mlc_toolchain = rule(
    implementation = _toolchain_impl,
    doc = "The executable, and the shared libraries that it needs besides those of the system.",
    attrs = {
        "mlc": attr.label(allow_single_file = True, mandatory = True),
        "libs": attr.label_list(allow_files = True),
    },
)

# Inputs of a sandbox are links out of the folder of the model, which mlc refuses to follow: it gets copies.
_COPY = """set -euo pipefail
export LC_ALL=C.UTF-8 HOME="${TMPDIR:-/tmp}"
root="$PWD"
mlc="$root/MLC"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
for file in FILES; do mkdir -p "$work/$(dirname "$file")"; cp -RL "$file" "$work/$file"; done
chmod -R u+w "$work"
"""

def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"

def _script(mlc, files, body, path):
    names = " ".join([_quoted(path(file)) for file in files])
    return _COPY.replace("MLC", path(mlc)).replace("FILES", names) + body

def _path(file):
    return file.path

def _short_path(file):
    return file.short_path

def _package_impl(ctx):
    mlc = ctx.toolchains[TOOLCHAIN]
    package = ctx.actions.declare_directory(ctx.label.name + ".mlpackage")
    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest.json")
    files = [ctx.file.recipe] + ctx.files.data
    words = ctx.attr.options

    # Paths in options are relative to the folder of the recipe.
    body = """cd "$work/{folder}"
rmdir "$root/{package}"
"$mlc" compile {source} -o "$root/{package}" --sha256 {words} > /dev/null
""".format(
        folder = ctx.file.recipe.dirname,
        package = package.path,
        source = _quoted(ctx.attr.source),
        words = words,
    )
    ctx.actions.run_shell(
        outputs = [package, manifest],
        inputs = files,
        tools = mlc.files,
        command = _script(mlc.mlc, files, body, _path),
        mnemonic = "MlcCompile",
        progress_message = "Compiling %s.mlpackage" % ctx.label.name,
        use_default_shell_env = False,
        env = {"PATH": "/usr/bin:/bin"},
    )
    return [
        DefaultInfo(files = depset([package, manifest])),
        MlcPackageInfo(source = ctx.attr.source, data = files, package = package, words = words),
    ]

mlc_package = rule(
    implementation = _package_impl,
    doc = "A package and its manifest. `source` and the files in `options` are relative to the folder of the recipe.",
    attrs = {
        "recipe": attr.label(allow_single_file = True, mandatory = True),
        "source": attr.string(mandatory = True),
        "data": attr.label_list(allow_files = True),
        "options": attr.string(doc = "Words of a shell."),
    },
    toolchains = [TOOLCHAIN],
)

def _bundle_impl(ctx):
    mlc = ctx.toolchains[TOOLCHAIN]
    info = ctx.attr.package[MlcPackageInfo]
    bundle = ctx.actions.declare_directory(ctx.label.name)
    files = info.data + ctx.attr.package[DefaultInfo].files.to_list()
    body = """rmdir "$root/{bundle}"
"$mlc" verify "$work/{folder}/"{source} "$work/{package}" --bundle "$root/{bundle}" > "$work/log" ||
  {{ status=$?; cat "$work/log" >&2; exit $status; }}
""".format(
        bundle = bundle.path,
        folder = info.data[0].dirname,
        source = _quoted(info.source),
        package = info.package.path,
    )
    ctx.actions.run_shell(
        outputs = [bundle],
        inputs = files,
        tools = mlc.files,
        command = _script(mlc.mlc, files, body, _path),
        mnemonic = "MlcBundle",
        progress_message = "Making the parity bundle %s" % ctx.label.name,
        env = {"PATH": "/usr/bin:/bin"},
    )
    return [DefaultInfo(files = depset([bundle]))]

mlc_bundle = rule(
    implementation = _bundle_impl,
    doc = "The package with generated inputs and the outputs of the source, for mlc-run --bundle on another machine.",
    attrs = {"package": attr.label(providers = [MlcPackageInfo], mandatory = True)},
    toolchains = [TOOLCHAIN],
)

def _test(ctx, files, body):
    mlc = ctx.toolchains[TOOLCHAIN]
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    text = "#!/bin/bash\n" + _script(mlc.mlc, files, body, _short_path)
    ctx.actions.write(script, text, is_executable = True)
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files = files + mlc.files))]

def _parity_test_impl(ctx):
    info = ctx.attr.package[MlcPackageInfo]
    files = info.data + ctx.attr.package[DefaultInfo].files.to_list()
    body = """status=0
"$mlc" verify "$work/{folder}/"{source} "$work/{package}" --json {budget} > "$work/verify.json" || status=$?
cp "$work/verify.json" "${{TEST_UNDECLARED_OUTPUTS_DIR:-$work}}/" || true
[ $status -eq 0 ] || cat "$work/verify.json"
exit $status
""".format(
        folder = info.data[0].short_path.rpartition("/")[0] or ".",
        source = _quoted(info.source),
        package = info.package.short_path,
        budget = "--budget " + _quoted(ctx.attr.budget) if ctx.attr.budget else "",
    )
    return _test(ctx, files, body)

mlc_parity_test = rule(
    implementation = _parity_test_impl,
    doc = "Compares a package with its source on generated inputs, in mlc's own engine.",
    attrs = {
        "package": attr.label(providers = [MlcPackageInfo], mandatory = True),
        "budget": attr.string(doc = "fp32, fp16 or int8. Default: by the precision of the package."),
    },
    test = True,
    toolchains = [TOOLCHAIN],
)

def _recipe_test_impl(ctx):
    files = [ctx.file.recipe] + ctx.files.data
    body = """"$mlc" build "$work/{recipe}" --only {variant} -o "$work/out"
""".format(recipe = ctx.file.recipe.short_path, variant = _quoted(ctx.attr.variant))
    return _test(ctx, files, body)

mlc_recipe_test = rule(
    implementation = _recipe_test_impl,
    doc = "The checks of a recipe: references, accuracy and limits.",
    attrs = {
        "recipe": attr.label(allow_single_file = True, mandatory = True),
        "data": attr.label_list(allow_files = True),
        "variant": attr.string(mandatory = True),
    },
    test = True,
    toolchains = [TOOLCHAIN],
)

def _device_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    bundle = ctx.files.bundle[0]
    ctx.actions.write(script, """#!/bin/bash
set -euo pipefail
command -v mlc-run >/dev/null || { echo "mlc-run is not in PATH" >&2; exit 1; }
exec mlc-run --bundle %s --result "${TEST_UNDECLARED_OUTPUTS_DIR:-/tmp}/result.json"
""" % _quoted(bundle.short_path), is_executable = True)
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files = [bundle]))]

mlc_device_test = rule(
    implementation = _device_test_impl,
    doc = "Runs a parity bundle with the mlc-run of the machine.",
    attrs = {"bundle": attr.label(mandatory = True)},
    test = True,
)

def mlc_recipe(name, recipe, source, data, variants):
    """All targets of a recipe.

    Args:
      name: of a filegroup with all packages, and of the test suites NAME_tests and NAME_devices.
      recipe: the JSON file.
      source: the model, as in the recipe.
      data: all files that the recipe names.
      variants: the options of each variant, as words of a shell: {"digits-fp16": "--precision fp16"}.
    """
    tests = []
    devices = []
    for variant, options in variants.items():
        mlc_package(name = variant, recipe = recipe, source = source, data = data, options = options)
        mlc_recipe_test(name = variant + "_test", recipe = recipe, data = data, variant = variant)
        mlc_parity_test(name = variant + "_parity", package = variant)
        mlc_bundle(name = variant + "_bundle", package = variant)
        mlc_device_test(name = variant + "_device", bundle = variant + "_bundle", tags = ["mac", "exclusive", "manual"])
        tests += [variant + "_test", variant + "_parity"]
        devices.append(variant + "_device")
    native.filegroup(name = name, srcs = variants.keys())
    native.test_suite(name = name + "_tests", tests = tests)
    native.test_suite(name = name + "_devices", tests = devices, tags = ["manual"])
