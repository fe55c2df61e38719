/**
 * Letters that pass for others: words of several scripts (`pаypal` with a Cyrillic а), words that read as Latin among
 * ASCII ones (`ехес.com`), and letters that are only a style of an ASCII letter (`𝐬𝐮𝐝𝐨`).
 *
 * A word may have one script, or one of the combinations that UTS 39 calls Highly Restrictive. Digits and marks have none.
 *
 * @see https://www.unicode.org/reports/tr39/
 */
export interface Lookalike {
  /** Where the run of letters ends, as an index into the text. */
  end: number;
  /** What they are: the name of their script, or `styled`. */
  label: string;
}

/** Scripts with a label of their own. Letters of any other count as one script. */
const SCRIPTS =
  'Latin Cyrillic Greek Han Hiragana Katakana Hangul Bopomofo Arabic Hebrew Armenian Georgian Devanagari Thai Cherokee Coptic Lisu'.split(
    ' ',
  );
const OF_SCRIPT = SCRIPTS.map((name) => [name, new RegExp(`\\p{scx=${name}}`, 'u')] as const);
const OTHER = 'other script';
const STYLE = 'styled';
const LABELLED = new RegExp(`⟨(?:${[...SCRIPTS, OTHER, STYLE].join('|')})⟩`, 'g');
/** Has no script of its own, or that of the letters around it. */
const NEUTRAL = /[\p{scx=Common}\p{scx=Inherited}\p{M}\p{N}]/u;
/** Scripts that are written in one word: Chinese, Japanese and Korean, each with Latin. */
const TOGETHER = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];
const EAST_ASIAN = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}]/u;

/** Cyrillic, Greek, Armenian and Coptic letters that look like a Latin one in most fonts (Unicode's confusables.txt). */
const LIKE_LATIN = new Set('АВЕКМНОРСТУХаеорсухІіЈјЅѕԌԚԛԜԝԁһҺҽҮүѴѵѡӀӏӔӕΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺͿϜαινορυγσϲϳքգզհոռցօՕսՍաՏⲥⲟⲣ');
/** Latin letters that are no letter of a living alphabet: small capitals, and those of phonetic alphabets. */
const ODD_LATIN = /[ɑɡɢɩɪɴʀʏʙʜʟᴀᴃ-ᴇᴊ-ᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱꞯ]/u;
/** Letters, roman numerals and the digits of mathematics, which have a plain form. Other digits are those of a language. */
const STYLED = /[\p{Lu}\p{Ll}\p{Lt}\p{Nl}\u{1d7ce}-\u{1d7ff}]/u;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const NOT_ASCII = /[^\0-\x7f]/;

/**
 * The runs of letters in a text that pass for others, in their order. Skips a run that its label follows already, in ⟨⟩.
 * Takes linear time.
 */
export function lookalikes(text: string): Lookalike[] {
  if (!NOT_ASCII.test(text)) return [];
  const labelled = [...text.matchAll(LABELLED)].map(({ 0: label, index }) => ({ label, index }));
  if (labelled.length === 0) return unlabelled(text);
  const found: Lookalike[] = [];
  let [at, removed] = [0, 0];
  for (const { end, label } of unlabelled(text.replace(LABELLED, ''))) {
    for (let next = labelled[at]; next !== undefined && next.index - removed < end; next = labelled[++at])
      removed += next.label.length;
    if (!text.startsWith(`⟨${label}⟩`, end + removed)) found.push({ end: end + removed, label });
  }
  return found;
}

function unlabelled(text: string): Lookalike[] {
  const scriptOf = scriptFinder();
  const passesForAscii = /[a-z]/i.test(text) && readsAsLatin(text);
  const found: Lookalike[] = [];
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!NOT_ASCII.test(word)) continue;
    let end = index;
    let run = null as Lookalike | null;
    for (const [letter, label] of labelsOf(word, scriptOf, passesForAscii)) {
      end += letter.length;
      if (label === null) run = null;
      else if (run?.label === label) run.end = end;
      else {
        run = { end, label };
        found.push(run);
      }
    }
  }
  return found;
}

/** The letters of a word, each with what it passes for another by, or null. */
function labelsOf(word: string, scriptOf: (letter: string) => string | null, passesForAscii: boolean) {
  const letters = [...word].map((letter) => [letter, scriptOf(letter)] as const);
  const scripts = letters.flatMap(([, script]) => script ?? []);
  const kinds = [...new Set(scripts)];
  const isMixed = kinds.length > 1 && !TOGETHER.some((some) => kinds.every((one) => some.includes(one)));
  // A word in capitals is a heading, a constant or an abbreviation of its language.
  const isWhole = kinds.length === 1 && passesForAscii && word !== word.toUpperCase();
  if (!isMixed && (!isWhole || kinds[0] === 'Latin')) {
    // full-width letters are plain among East Asian ones
    const isEastAsian = EAST_ASIAN.test(word);
    return letters.map(([letter]) => [letter, !isEastAsian && isStyled(letter) ? STYLE : null] as const);
  }
  const count = (script: string) => scripts.filter((one) => one === script).length;
  // Marked are the letters that make it read as Latin, else those of the rarer scripts.
  const main = readsAsLatin(word) ? 'Latin' : kinds.reduce((most, one) => (count(one) > count(most) ? one : most));
  return letters.map(([letter, script]) => [letter, script === main ? null : script] as const);
}

/** Returns the script of each letter, null for what has none. Tries that of the letter before first: few change. */
function scriptFinder(): (letter: string) => string | null {
  let last = OF_SCRIPT[0];
  return (letter) => {
    if (/[a-z]/i.test(letter)) return 'Latin';
    if (NEUTRAL.test(letter)) return null;
    if (!last?.[1].test(letter)) last = OF_SCRIPT.find(([, of]) => of.test(letter));
    return last?.[0] ?? OTHER;
  };
}

/** Returns true if every letter is ASCII or looks like a Latin one: text in another language has others, too. */
function readsAsLatin(text: string): boolean {
  const letters = text.normalize('NFD').match(/\p{L}/gu) ?? [];
  return letters.every((letter) => !NOT_ASCII.test(letter) || LIKE_LATIN.has(letter));
}

function isStyled(letter: string): boolean {
  if (!NOT_ASCII.test(letter)) return false;
  return ODD_LATIN.test(letter) || (STYLED.test(letter) && !NOT_ASCII.test(letter.normalize('NFKC')));
}
