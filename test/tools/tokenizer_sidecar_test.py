"""Tests the tokenizer file beside a package: its contents, its package, and what it replaces."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import gguf_wire  # noqa: E402
import json_schema  # noqa: E402
from driver import CORPUS, ROOT, expect, run, run_tests  # noqa: E402
from language_models import Llama, refused  # noqa: E402
from speaking_models import Speaker, ids_of  # noqa: E402


def beside(folder):
    return sorted(path.name for path in folder.glob("*.tokenizer.*"))


def says(package, model):
    """Asserts that both give the same ids for a text."""
    answers = [expect(run("run", path, "--prompt", "Hello", "--generate", 3, "--units", "reference", "--json"), 0).answer["prompt_tokens"]
               for path in (package, model)]
    return answers[0] == answers[1] == ids_of("Hello")


def test_of_a_gguf_file(folder):
    speaker = Speaker(chat_template="{{ '<|im_start|>' }}")
    model, package = speaker.gguf(folder / "m.gguf"), folder / "p.mlpackage"
    answer = expect(run("compile", model, "-o", package, "--json"), 0).answer
    file = folder / "p.tokenizer.gguf"
    assert beside(folder) == ["p.tokenizer.gguf"] and answer["tokenizer"] == str(file), answer
    metadata, tensors = gguf_wire.read(file)
    assert not tensors and metadata == {"general.architecture": "llama"} | speaker.keys, metadata
    assert says(package, model)
    manifest = json.loads((folder / "p.manifest.json").read_text())
    assert manifest["tokenizer"]["format"] == "gguf" and manifest["tokenizer"]["bytes"] == file.stat().st_size, manifest
    assert not json_schema.errors(manifest, json.loads((ROOT / "manifests" / "manifest.schema.json").read_text()))
    first = file.read_bytes()
    expect(run("compile", model, "-o", package, "--no-manifest"), 0)
    assert file.read_bytes() == first
    expect(run("inspect", file), 0)


def test_of_a_folder(folder):
    hugging_face = Speaker().hugging_face(folder / "m", chat_template="{{ '<|im_start|>' }}")
    (hugging_face / "chat_template.jinja").write_text("{{ '<start_of_turn>' }}")
    package = folder / "p.mlpackage"
    expect(run("compile", hugging_face, "-o", package), 0)
    assert beside(folder) == ["p.tokenizer.json"]
    text, own = (folder / "p.tokenizer.json").read_text(), (hugging_face / "tokenizer.json").read_text()
    assert text.startswith(own.rstrip()[:-1].rstrip()), "what was there is as it was"
    read = json.loads(text)
    config = read.pop("tokenizer_config")
    assert read == json.loads(own) and config["eos_token"] == "</s>" and config["chat_template"] == "{{ '<start_of_turn>' }}", config
    manifest = json.loads((folder / "p.manifest.json").read_text())
    assert {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} <= {file["name"] for file in manifest["source"]["files"]}
    assert says(package, hugging_face)


def test_it_goes_with_its_package(folder):
    """Compiling again replaces it, or removes it if the new model has none; a file that mlc did not write is kept, or requires --force."""
    model, package = Speaker().gguf(folder / "m.gguf"), folder / "p.mlpackage"
    silent = Llama().gguf(folder / "silent.gguf")
    hugging_face = Speaker().hugging_face(folder / "hf")
    for source, expected in ((model, "gguf"), (hugging_face, "json"), (model, "gguf"), (silent, None), (hugging_face, "json")):
        expect(run("compile", source, "-o", package), 0)
        assert beside(folder) == ([f"p.tokenizer.{expected}"] if expected else []), (source, beside(folder))
        named = json.loads((folder / "p.manifest.json").read_text()).get("tokenizer", {}).get("format")
        assert named == expected, (source, named)
    for name, data in (("p.tokenizer.gguf", model.read_bytes()), ("p.tokenizer.gguf", b"mine"), ("p.tokenizer.json", b"{}")):
        shutil.rmtree(package)
        for old in beside(folder):
            (folder / old).unlink()
        (folder / name).write_bytes(data)
        refused(run("compile", model, "-o", package), "file-exists", name, "--force")
        assert (folder / name).read_bytes() == data and not package.exists()
        expect(run("compile", silent, "-o", package), 0)  # this model needs no tokenizer
        assert (folder / name).read_bytes() == data
        expect(run("compile", model, "-o", package, "--force"), 0)
        assert beside(folder) == ["p.tokenizer.gguf"] and says(package, model)
    broken = Speaker().hugging_face(folder / "broken")
    (broken / "tokenizer.json").write_text("{no JSON")
    expect(run("compile", broken, "-o", package), 0, "the package has no tokenizer beside it")
    assert beside(folder) == []


def test_bundles_have_it_too(folder):
    model, package = Speaker().gguf(folder / "m.gguf"), folder / "p.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    # With the same name it is the same file; in another folder it is a copy.
    expect(run("precompile", package, "-o", folder / "p.mlmodelc"), 0)
    assert beside(folder) == ["p.tokenizer.gguf"] and says(folder / "p.mlmodelc", model)
    other = folder / "other"
    other.mkdir()
    expect(run("precompile", package, "-o", other / "q.mlmodelc"), 0)
    assert (other / "q.tokenizer.gguf").read_bytes() == (folder / "p.tokenizer.gguf").read_bytes()
    assert says(other / "q.mlmodelc", model)
    (other / "q.tokenizer.gguf").write_bytes(b"mine")
    refused(run("precompile", package, "-o", other / "q.mlmodelc"), "file-exists", "q.tokenizer.gguf")
    expect(run("precompile", package, "-o", other / "q.mlmodelc", "--force"), 0)
    assert says(other / "q.mlmodelc", model)
    expect(run("compile", model, "-o", folder / "r.mlmodelc"), 0)
    assert (folder / "r.tokenizer.gguf").exists() and says(folder / "r.mlmodelc", model)
    expect(run("compile", Llama().gguf(folder / "silent.gguf"), "-o", folder / "s.mlpackage"), 0)
    expect(run("precompile", folder / "s.mlpackage", "-o", other / "q.mlmodelc"), 0)
    assert beside(other) == []


def test_an_encoder_has_it(folder):
    model = CORPUS / "gguf" / "bert_cls.f32.gguf"
    if not model.exists():
        print("# an encoder's tokenizer: skipped, needs ../shared/corpus")
        return
    expect(run("compile", model, "-o", folder / "p.mlpackage"), 0)
    assert beside(folder) == ["p.tokenizer.gguf"]


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "tokenizers beside packages"))
