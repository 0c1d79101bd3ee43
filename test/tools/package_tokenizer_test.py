"""Tests the tokenizer of a package: its files, where they are, and what they replace."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import json_schema  # noqa: E402
from driver import CORPUS, ROOT, expect, run, run_tests  # noqa: E402
from language_models import Llama, refused  # noqa: E402
from speaking_models import Speaker, ids_of  # noqa: E402

FILES = ["config.json", "tokenizer.json", "tokenizer_config.json"]


def beside(folder):
    """Returns the names of the folders with tokenizers."""
    return sorted(path.name for path in folder.glob("*.tokenizer"))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read(folder):
    return [json.loads((folder / name).read_text()) for name in FILES]


def says(package, model):
    """Returns whether both give the same ids for a text."""
    answers = [expect(run("run", path, "--prompt", "Hello", "--generate", 3, "--units", "reference", "--json"), 0).answer["prompt_tokens"]
               for path in (package, model)]
    return answers[0] == answers[1] == ids_of("Hello")


def check_gguf(folder, speaker):
    """Checks the files of a GGUF file's tokenizer."""
    model, tokenizer, config = read(folder)
    assert model["model_type"] == "llama" and model["vocab_size"] == speaker.vocabulary and model["eos_token_id"] == 2, model
    assert model["hidden_size"] == 64 and model["max_position_embeddings"] == 256, model
    assert tokenizer["model"]["vocab"] == {token: i for i, token in enumerate(speaker.tokens)}
    assert [token["content"] for token in tokenizer["added_tokens"] if token["special"]] == ["<unk>", "<s>", "</s>"]
    # A class that swift-transformers knows, without rules of its own.
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast" and config["clean_up_tokenization_spaces"] is False, config
    assert (config["bos_token"], config["eos_token"], config["unk_token"]) == ("<s>", "</s>", "<unk>"), config
    assert config["chat_template"] == "{{ '<|im_start|>' }}", config


def test_of_a_gguf_file(folder):
    speaker = Speaker(chat_template="{{ '<|im_start|>' }}")
    model, package = speaker.gguf(folder / "m.gguf"), folder / "p.mlpackage"
    answer = expect(run("compile", model, "-o", package, "--json"), 0).answer
    tokenizer = folder / "p.tokenizer"
    assert beside(folder) == ["p.tokenizer"] and answer["tokenizer"] == str(tokenizer), answer
    assert names(tokenizer) == FILES
    check_gguf(tokenizer, speaker)
    assert says(package, model)
    manifest = json.loads((folder / "p.manifest.json").read_text())
    assert manifest["tokenizer"]["bytes"] == (tokenizer / "tokenizer.json").stat().st_size, manifest
    assert not json_schema.errors(manifest, json.loads((ROOT / "manifests" / "manifest.schema.json").read_text()))
    first = [(tokenizer / name).read_bytes() for name in FILES]
    expect(run("compile", model, "-o", package, "--no-manifest"), 0)
    assert [(tokenizer / name).read_bytes() for name in FILES] == first


def test_of_a_folder(folder):
    source = Speaker().hugging_face(folder / "m", chat_template="{{ '<|im_start|>' }}")
    (source / "chat_template.jinja").write_text("{{ '<start_of_turn>' }}")
    package = folder / "p.mlpackage"
    expect(run("compile", source, "-o", package), 0)
    tokenizer = folder / "p.tokenizer"
    for name in ("tokenizer.json", "config.json"):
        assert (tokenizer / name).read_bytes() == (source / name).read_bytes()
    config = json.loads((tokenizer / "tokenizer_config.json").read_text())
    assert config["eos_token"] == "</s>" and config["chat_template"] == "{{ '<start_of_turn>' }}", config
    manifest = json.loads((folder / "p.manifest.json").read_text())
    assert {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} <= {file["name"] for file in manifest["source"]["files"]}
    assert says(package, source)
    # The folder of the source has these files.
    expect(run("compile", source, "-o", f"{source}/"), 0)
    assert not beside(source) and "written_by" not in (source / "tokenizer_config.json").read_text() and says(source / "m.mlpackage", source)


def test_a_folder_to_ship(folder):
    """-o DIR/ puts the files beside the package; packages with the same tokenizer share them, others are refused."""
    speaker = Speaker(chat_template="{{ '<|im_start|>' }}")
    model, app = speaker.gguf(folder / "m.gguf"), folder / "app"
    answer = expect(run("compile", model, "-o", f"{app}/", "--json"), 0, ).answer
    assert names(app) == sorted(FILES + ["m.manifest.json", "m.mlpackage"]) and answer["tokenizer"] == str(app), names(app)
    check_gguf(app, speaker)
    assert says(app / "m.mlpackage", model)
    expect(run("verify", model, app / "m.mlpackage"), 0, "PASSED", "matches the source's")
    shutil.copy(model, folder / "n.gguf")
    expect(run("compile", folder / "n.gguf", "-o", f"{app}/", "--compress", "int8"), 0)
    before = {name: (app / name).read_bytes() for name in FILES}
    other = Speaker(chat_template="{{ 'another' }}").gguf(folder / "other.gguf")
    refused(run("compile", other, "-o", f"{app}/"), "file-exists", "belongs to", "whose tokenizer", "other.tokenizer")
    assert not (app / "other.mlpackage").exists() and {name: (app / name).read_bytes() for name in FILES} == before
    expect(run("compile", other, "-o", app / "other.mlpackage"), 0)
    assert beside(app) == ["other.tokenizer"] and says(app / "other.mlpackage", other) and says(app / "m.mlpackage", model)
    # The files of the only package in the folder are replaced, and removed, with it.
    alone = folder / "alone"
    for source, listed in ((model, FILES), (other, FILES), (Llama().gguf(folder / "silent.gguf"), [])):
        shutil.copy(source, folder / "x.gguf")
        expect(run("compile", folder / "x.gguf", "-o", f"{alone}/"), 0)
        assert [name for name in names(alone) if not name.startswith("x.")] == listed, names(alone)
    (alone / "config.json").write_text("{}")
    refused(run("compile", model, "-o", f"{alone}/"), "file-exists", "config.json", "not written by mlc", "--force")
    expect(run("compile", model, "-o", f"{alone}/", "--force"), 0)
    check_gguf(alone, speaker)


def test_it_goes_with_its_package(folder):
    """Compiling again replaces it, or removes it if the new model has none; what mlc did not write is kept, or requires --force."""
    model, package = Speaker().gguf(folder / "m.gguf"), folder / "p.mlpackage"
    silent = Llama().gguf(folder / "silent.gguf")
    source = Speaker(chat_template="x").hugging_face(folder / "hf")
    for path, has in ((model, True), (source, True), (model, True), (silent, False), (source, True)):
        expect(run("compile", path, "-o", package), 0)
        assert beside(folder) == ["p.tokenizer"] * has, (path, beside(folder))
        assert ("tokenizer" in json.loads((folder / "p.manifest.json").read_text())) == has, path
    tokenizer = folder / "p.tokenizer"
    for text in ("mine", "{}", json.dumps({"written_by": "me"})):
        shutil.rmtree(package)
        shutil.rmtree(tokenizer)
        tokenizer.mkdir()
        (tokenizer / "tokenizer_config.json").write_text(text)
        refused(run("compile", model, "-o", package), "file-exists", "p.tokenizer", "--force")
        assert names(tokenizer) == ["tokenizer_config.json"] and not package.exists()
        expect(run("compile", silent, "-o", package), 0)  # this model needs no tokenizer
        assert (tokenizer / "tokenizer_config.json").read_text() == text
        expect(run("compile", model, "-o", package, "--force"), 0)
        assert names(tokenizer) == FILES and says(package, model)
    broken = Speaker().hugging_face(folder / "broken")
    (broken / "tokenizer.json").write_text("{no JSON")
    expect(run("compile", broken, "-o", package), 0, "the package has no tokenizer beside it")
    assert beside(folder) == []


def test_bundles_have_it_too(folder):
    model, package = Speaker().gguf(folder / "m.gguf"), folder / "p.mlpackage"
    expect(run("compile", model, "-o", package), 0)
    # With the same name it is the same folder; elsewhere it is a copy.
    expect(run("precompile", package, "-o", folder / "p.mlmodelc"), 0)
    assert beside(folder) == ["p.tokenizer"] and says(folder / "p.mlmodelc", model)
    other = folder / "other"
    other.mkdir()
    expect(run("precompile", package, "-o", other / "q.mlmodelc"), 0)
    assert read(other / "q.tokenizer") == read(folder / "p.tokenizer")
    assert says(other / "q.mlmodelc", model)
    shutil.rmtree(other / "q.tokenizer")
    (other / "q.tokenizer").mkdir()
    refused(run("precompile", package, "-o", other / "q.mlmodelc"), "file-exists", "q.tokenizer")
    expect(run("precompile", package, "-o", other / "q.mlmodelc", "--force"), 0)
    assert says(other / "q.mlmodelc", model)
    expect(run("compile", model, "-o", folder / "r.mlmodelc"), 0)
    assert (folder / "r.tokenizer").exists() and says(folder / "r.mlmodelc", model)
    expect(run("compile", Llama().gguf(folder / "silent.gguf"), "-o", folder / "s.mlpackage"), 0)
    expect(run("precompile", folder / "s.mlpackage", "-o", other / "q.mlmodelc"), 0)
    assert beside(other) == []
    expect(run("compile", model, "-o", f"{folder}/ship/"), 0)
    expect(run("precompile", folder / "ship" / "m.mlpackage", "-o", folder / "ship" / "n.mlmodelc"), 0)
    assert beside(folder / "ship") == [] and says(folder / "ship" / "n.mlmodelc", model)


def test_without_a_package(folder):
    model = Speaker().gguf(folder / "m.gguf")
    for _ in range(2):
        expect(run("tokenize", model, "-o", folder / "t"), 0, str(folder / "t"))
    assert names(folder / "t") == FILES and run("tokenize", folder / "t", "--text", "Hi", "--json").answer["ids"] == ids_of("Hi")
    refused(run("tokenize", model, "-o", folder / "t", "--text", "x"), "usage", "--text")
    refused(run("tokenize", Llama().gguf(folder / "silent.gguf"), "-o", folder / "u"), "unsupported-tokenizer")


def test_of_an_onnx_model(folder):
    """It has the tokenizer.json of its folder if its inputs are tokens."""
    sample = ROOT / "manifests" / "passages"
    source, package = folder / "m", folder / "p.mlpackage"
    (source / "onnx").mkdir(parents=True)
    for name in ("tokenizer.json", "config.json"):
        shutil.copy(sample / name, source)
    for place in (source / "m.onnx", source / "onnx" / "m.onnx"):  # also optimum's layout
        shutil.copy(sample / "passages.onnx", place)
        expect(run("compile", place, "-o", package), 0)
        assert names(folder / "p.tokenizer") == FILES
        for name in ("tokenizer.json", "config.json"):
            assert (folder / "p.tokenizer" / name).read_bytes() == (source / name).read_bytes()
        manifest = json.loads((folder / "p.manifest.json").read_text())
        assert {"tokenizer.json", "config.json"} <= {pathlib.Path(file["name"]).name for file in manifest["source"]["files"]}, manifest
        shown = expect(run("verify", place, package), 0, "PASSED").stdout
        assert "matches the source's" in shown, shown
    texts = [expect(run("run", path, "--text", "in the beginning", "--json"), 0).answer["text"] for path in (package, source / "m.onnx")]
    assert texts[0]["tokens"] == texts[1]["tokens"] and len(texts[0]["tokens"]) == 5, texts
    shutil.copy(ROOT / "manifests" / "digits" / "digits.onnx", source)
    shutil.rmtree(folder / "p.tokenizer")
    for other in (source / "digits.onnx", shutil.copy(sample / "passages.onnx", folder)):
        expect(run("compile", other, "-o", package), 0)
        assert beside(folder) == [] and "tokenizer" not in json.loads((folder / "p.manifest.json").read_text())


def test_an_encoder_has_it(folder):
    model = CORPUS / "gguf" / "bert_cls.f32.gguf"
    if not model.exists():
        print("# an encoder's tokenizer: skipped, needs ../shared/corpus")
        return
    expect(run("compile", model, "-o", folder / "p.mlpackage"), 0)
    _, tokenizer, config = read(folder / "p.tokenizer")
    assert config["tokenizer_class"] == "BertTokenizer" and tokenizer["model"]["type"] == "WordPiece", config


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "tokenizers of packages"))
