// tokenizers_batch.mjs DIR [--add-special] <CASES.json - tokenizes texts with Hugging Face's tokenizers library. stdin holds
// [[path of tokenizer.json, [text ...]] ...]; stdout gets a list of lists of ids per file, or an error text. With --add-special,
// the special tokens of the template are added. With --pairs, a text is [first, second or null], and an answer [ids, types], with
// special tokens. DIR is the folder in which npm installed @anush008/tokenizers, its Node binding.
import { createRequire } from 'module';
import fs from 'fs';

const { Tokenizer } = createRequire(process.argv[2] + '/x.js')('@anush008/tokenizers');
const addSpecialTokens = process.argv.includes('--add-special');
const pairs = process.argv.includes('--pairs');
const answers = [];
for (const [file, texts] of JSON.parse(fs.readFileSync(0))) {
  try {
    const tokenizer = Tokenizer.fromFile(file);
    const lists = [];
    for (const text of texts) {
      const [first, second] = pairs ? text : [text, null];
      const encoding = await tokenizer.encode(first, second, { addSpecialTokens: addSpecialTokens || pairs });
      lists.push(pairs ? [encoding.getIds(), encoding.getTypeIds()] : encoding.getIds());
    }
    answers.push(lists);
  } catch (error) {
    answers.push(String(error));
  }
}
process.stdout.write(JSON.stringify(answers));
