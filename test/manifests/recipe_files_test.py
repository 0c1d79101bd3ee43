"""Checks that every recipe in manifests/ follows the schema, and that the files it names exist and are consistent."""
import copy
import hashlib
import json
import pathlib
import sys
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
import json_schema  # noqa: E402

FOLDER = ROOT / "manifests"
SCHEMA = json.loads((FOLDER / "recipe.schema.json").read_text())
RECIPES = {p.name: json.loads(p.read_text()) for p in FOLDER.glob("*.json") if not p.name.endswith(".schema.json")}


class Recipes(unittest.TestCase):
    def test_schema(self):
        self.assertIn("digits.json", RECIPES)
        for name, recipe in RECIPES.items():
            self.assertEqual(json_schema.errors(recipe, SCHEMA), [], name)

    def test_schema_refuses(self):
        for path, value, text in [
                (["source", "sha256"], "12", "does not match"),
                (["variants"], [], "fewer than 1"),
                (["variants", 0, "options"], "--precision", "not of type"),
                (["variants", 0, "budget"], "loose", "does not match"),
                (["check", "accuracy", "expected"], 1.5, "above"),
                (["chekc"], {}, "not allowed")]:
            recipe = copy.deepcopy(RECIPES["digits.json"])
            inner = recipe
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            found = json_schema.errors(recipe, SCHEMA)
            self.assertEqual(len(found), 1, found)
            self.assertIn(text, found[0])

    def test_sources(self):
        for recipe in RECIPES.values():
            data = (FOLDER / recipe["source"]["path"]).read_bytes()
            self.assertEqual(hashlib.sha256(data).hexdigest(), recipe["source"]["sha256"])
            self.assertEqual(len({v["name"] for v in recipe["variants"]}), len(recipe["variants"]))

    def test_expected_accuracy_is_that_of_the_reference(self):
        for recipe in RECIPES.values():
            check = recipe.get("check", {})
            accuracy = check.get("accuracy")
            if not accuracy or accuracy["output"] not in check.get("reference", {}):
                continue
            output = np.load(FOLDER / check["reference"][accuracy["output"]])
            labels = np.load(FOLDER / accuracy["labels"])
            measured = (output.argmax(1) == labels).mean()
            self.assertAlmostEqual(measured, accuracy["expected"], places=4)


if __name__ == "__main__":
    unittest.main()
